"""`mcpspy tui`: view sessions in the terminal, including live ones."""

from __future__ import annotations

import argparse
import gc
import os
import sys
from collections.abc import Callable
from pathlib import Path

from mcpspy.errors import CannotStart, UsageError
from mcpspy.io.hosts.temporary import remove_left
from mcpspy.io.recording.lookup import find
from mcpspy.io.recording.reader import Summary, read_header_of, summarize
from mcpspy.io.recording.recorder import say
from mcpspy.io.recording.runs import RUN, FollowedRun, Runs, find_run
from mcpspy.io.settings import flag, sessions_folder, table
from mcpspy.ui.cli.arguments import is_folder, sessions_of_host
from mcpspy.ui.cli.options import FOLDER, SSH, UNSAFE_REGEX, VIEW_SCRIPT, Argument, Switch

EPILOG = """\
examples:
  mcpspy tui                    all sessions, live ones first
  mcpspy tui weather            the newest session with this name
  mcpspy tui last               the newest session
  mcpspy tui recordings/        the sessions of a folder
  mcpspy tui recordings/peer-sdk-auto.jsonl
  mcpspy tui host.jsonl server.jsonl      both sessions, merged by time
  mcpspy tui --ssh ada@box      the sessions of another machine (docs/tui.md)
  mcpspy tui run:last           the sessions of all servers of the newest run, as one

SESSION is a file, `last`, a session name, the beginning of a session id, a folder, or
run:ID (see mcpspy runs).
Press ? for the keys. NO_COLOR disables colours; TEXTUAL_THEME=mcpspy-light
selects the theme for light terminals, and T switches between the themes.

exit codes: 0; 2 usage error, or not a recording; 3 not readable, or no terminal; 129 the
terminal was closed
"""

HUNG_UP = 129
"""Exit code after the terminal was closed, as after SIGHUP."""

OPTIONS = (
    Argument("session", "SESSION", "session to open; several are merged by time", nargs="*"),
    Switch("--ascii", "draw ASCII only, as in locales without UTF-8"),
    Switch("--no-cache", "neither read nor write the index of a large session in its folder"),
    VIEW_SCRIPT,
    FOLDER,
    SSH,
    UNSAFE_REGEX,
)  # fmt: skip


def main(args: argparse.Namespace) -> int:
    """Open the terminal UI; sessions that cannot be read are reported before."""
    reports: list[Callable[[str], None]] = [say]

    def report(text: str) -> None:
        reports[-1](text)

    with sessions_of_host(args, report):
        return _open(args, reports)


def _open(args: argparse.Namespace, reports: list[Callable[[str], None]]) -> int:
    """Open the terminal UI; add to `reports` what shows the state of a connection there."""
    if len(args.session) == 1 and is_folder(args.session[0], args.dir):
        args.dir, args.session = args.session[0], []
    shown = _shown(args.session, args.dir)
    # All three streams: Textual reads keys from stdin and draws on stderr.
    if (
        not all(stream.isatty() for stream in (sys.stdin, sys.stdout, sys.stderr))
        or os.environ.get("TERM") == "dumb"
    ):
        raise CannotStart("tui needs a terminal", "use mcpspy show to print a session")
    from mcpspy.ui.views.extension import Extension

    extension = Extension(args.script, table("views"))
    # Imported modules and a million rows are not garbage: each collection would scan all of them. Young objects are
    # collected in small portions: 100,000 of them kept a key waiting for 117 ms (measured with 10,000 mocked requests).
    gc.set_threshold(5_000, 1_000, 100)
    from mcpspy.ui.tui.app import McpspyApp
    from mcpspy.ui.tui.theme import needs_ascii

    app = McpspyApp(
        args.dir,
        shown,
        table("keys"),
        args.unsafe_regex or flag("unsafe_regex"),
        ascii_only=args.ascii or flag("ascii") or needs_ascii(),
        uses_cache=not args.no_cache,
        extension=extension,
    )
    app.notices += remove_left()
    if args.ssh is not None:
        app.is_remote = True
        reports.append(app.report)
    gc.freeze()
    app.run()
    if app.is_hung_up:
        return HUNG_UP
    if app.fault is None:
        return 0
    from mcpspy.ui.cli.main import BUG
    from mcpspy.ui.text.terminal import bug_line

    sys.stderr.write(f"mcpspy: {bug_line(app.fault, 300)}\n")
    return BUG


def _shown(names: list[str], folder: str | None) -> list[Summary] | FollowedRun:
    """Return the sessions to open, or the run. Raises UsageError or CannotStart."""
    if len(names) == 1 and names[0].startswith(RUN):
        runs = Runs(folder)
        return FollowedRun(runs, find_run(names[0], folder, runs))
    paths = [_find(name, folder) for name in names]
    return [summarize(path, read_header_of(path), counts=False) for path in dict.fromkeys(paths)]


def _find(name: str, folder: str | None) -> Path:
    """Return the recording of a session; raise UsageError, or CannotStart for a live session of another folder."""
    try:
        return find(name, folder)
    except UsageError:
        from mcpspy.io.control.client import live_sessions, missing_session

        looked_at = sessions_folder(folder)
        found = [each for each in live_sessions() if each.is_called(name) and not each.is_in(looked_at)]
        if not found:
            raise
        subject = "tui: no session" if name == "last" else f"tui: no session {name}"
        raise missing_session(looked_at, found, subject) from None
