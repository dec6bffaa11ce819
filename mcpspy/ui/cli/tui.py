"""`mcpspy tui`: sessions in the terminal, live ones too."""

from __future__ import annotations

import argparse
import os
import sys

from mcpspy.errors import CannotStart
from mcpspy.io.store import find, read_header_of, summarize
from mcpspy.ui.inert import inert

EPILOG = """\
examples:
  mcpspy tui                    every session; live ones first
  mcpspy tui weather            the newest one of that name
  mcpspy tui last               the newest one
  mcpspy tui recordings/peer-sdk-auto.jsonl

SESSION is a file, `last`, a session's name, or its id (the beginning will do).
? shows the keys. NO_COLOR is heeded; TEXTUAL_THEME=mcpspy-light is for light
terminals, and t changes between the two.
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Describe the options."""
    parser.add_argument("session", metavar="SESSION", nargs="?", help="open this one at once")
    parser.add_argument("--dir", metavar="DIR", help="the folder of sessions")


def main(args: argparse.Namespace) -> int:
    """Open the screen; a session that cannot be read is said before."""
    summary = None
    if args.session is not None:
        path = find(args.session, args.dir)
        summary = summarize(path, read_header_of(path))
    # All three: keys come by stdin, and Textual draws on stderr.
    if (
        not all(stream.isatty() for stream in (sys.stdin, sys.stdout, sys.stderr))
        or os.environ.get("TERM") == "dumb"
    ):
        raise CannotStart("tui needs a terminal; mcpspy show prints the session")
    from mcpspy.ui.tui.app import Inspector

    app = Inspector(args.dir, summary)
    app.run()
    return 0 if app.fault is None else _say(app.fault)


def _say(fault: Exception) -> int:
    """Say in one line what went wrong; the traceback, which has no locals, is kept for its owner."""
    from mcpspy.ui.cli.table import BUG, keep_traceback

    try:
        raise fault
    except Exception as error:
        what = inert(f"{type(error).__name__}: {error}")[:300]
        sys.stderr.write(f"mcpspy: a bug in mcpspy: {what} ({keep_traceback()})\n")
    return BUG
