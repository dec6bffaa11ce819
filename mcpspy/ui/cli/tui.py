"""`mcpspy tui`: view sessions in the terminal, including live ones."""

from __future__ import annotations

import argparse
import gc
import os
import sys

from mcpspy.core.sanitize import sanitize
from mcpspy.errors import CannotStart
from mcpspy.io.recording.reader import find, read_header_of, summarize
from mcpspy.io.settings import table
from mcpspy.ui.cli.options import FOLDER, describe

EPILOG = """\
examples:
  mcpspy tui                    every session; live ones first
  mcpspy tui weather            the newest one of that name
  mcpspy tui last               the newest one
  mcpspy tui recordings/peer-sdk-auto.jsonl
  mcpspy tui host.jsonl server.jsonl      both, merged by time

SESSION is a file, `last`, a session's name, or its id (the beginning will do).
? shows the keys. NO_COLOR is heeded; TEXTUAL_THEME=mcpspy-light is for light
terminals, and T changes between the two.
"""


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "session",
        metavar="SESSION",
        nargs="*",
        help="open this one at once; several are read as one, by time",
    )
    describe(parser, FOLDER)


def main(args: argparse.Namespace) -> int:
    """Open the screen; sessions that cannot be read are reported first."""
    paths = [find(which, args.dir) for which in args.session]
    summaries = [summarize(path, read_header_of(path), counts=False) for path in dict.fromkeys(paths)]
    # All three: Textual reads keys from stdin and draws on stderr.
    if (
        not all(stream.isatty() for stream in (sys.stdin, sys.stdout, sys.stderr))
        or os.environ.get("TERM") == "dumb"
    ):
        raise CannotStart("tui needs a terminal; mcpspy show prints the session")
    # Imported modules and a million rows are not garbage: collections would scan them again and again.
    gc.set_threshold(100_000, 50, 100)
    from mcpspy.ui.tui.app import McpspyApp

    app = McpspyApp(args.dir, summaries, table("keys"))
    gc.freeze()
    app.run()
    return 0 if app.fault is None else _report_bug(app.fault)


def _report_bug(fault: Exception) -> int:
    """Print one line on the bug; the traceback, without locals, is written to a file of the user."""
    from mcpspy.ui.cli.main import BUG, keep_traceback

    try:
        raise fault
    except Exception as error:
        what = sanitize(f"{type(error).__name__}: {error}")[:300]
        sys.stderr.write(f"mcpspy: a bug in mcpspy: {what} ({keep_traceback()})\n")
    return BUG
