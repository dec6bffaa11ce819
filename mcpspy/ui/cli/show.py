"""`mcpspy show`: a session in lines, one a message."""

from __future__ import annotations

import argparse
import asyncio
import sys
from typing import TYPE_CHECKING

from mcpspy.core.query.parser import Query
from mcpspy.core.session.session import Change, Session
from mcpspy.errors import UsageError
from mcpspy.io.mock.loader import RecordingsLoader
from mcpspy.io.recording.reader import Recording, RecordingState, find
from mcpspy.io.recording.tail import follow
from mcpspy.ui.cli.arguments import counted_back, query_of
from mcpspy.ui.cli.options import FOLDER, describe
from mcpspy.ui.cli.show_format import JsonFormatter, TextFormatter
from mcpspy.ui.cli.show_mock import print_repertoire
from mcpspy.ui.filter_items import ChangeItem

if TYPE_CHECKING:
    from mcpspy.analysis.lint import Finding
    from mcpspy.ui.report.lint_scan import LiveLinter

EPILOG = """\
examples:
  mcpspy show                   the newest session
  mcpspy show weather -v        the newest one of that name, with bodies
  mcpspy show last --follow     as it happens
  mcpspy show -q 'tool:forecast status:error or >1s'
  mcpspy show last --follow --lint    with what breaks the protocol, below each message
  mcpspy show weather --mock    what `mcpspy mock weather` could answer
  mcpspy show last --json | jq -c 'select(.kind == "failure")'

SESSION is a file, `last`, a session's name, or its id (the beginning will do).
QUERY: words, tool:NAME, method:tools/*, status:error, is:pending, >200ms, size>10kb,
text:WORDS, /REGEX/, with and, or, not, ( ); docs/filter.md has them all.
→ the client said, ← the server said, · nobody said it.
"""


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "session", metavar="SESSION", nargs="?", default="last", help="which one (default: last)"
    )
    options = {
        "-v --verbose": (None, "with the body of every message"),
        "-f --follow": (None, "go on as the session does, to its end"),
        "-q --filter": ("QUERY", "only what this finds, as in 'tool:x >200ms'"),
        "--lint": (None, "with what `mcpspy lint` says of each message, below it"),
        "--mock": (None, "what a mock of it could answer, and how often"),
        "--json": (None, "one JSON object a message or note"),
        **FOLDER,
    }
    describe(parser, options)


def main(args: argparse.Namespace) -> int:
    if args.mock:
        if args.follow or args.filter is not None or args.lint:
            raise UsageError("show: --mock counts a whole recording", "without --follow, --filter and --lint")
        print_repertoire(
            RecordingsLoader([find(args.session, args.dir)], (), merge=False).recordings(), as_json=args.json
        )
        return 0
    query = query_of(args.filter, linted=args.lint)
    recording = Recording(find(args.session, args.dir))
    counted_back(query, recording.path, recording.header)
    shown = _Shown(recording, query, args)
    shown.printer.begin()
    if args.follow:
        asyncio.run(shown.follow())
    else:
        shown.read()
    shown.end()
    return 0


class _Shown:
    """A session that is shown: what is read of it, and what is printed of that."""

    def __init__(self, recording: Recording, query: Query | None, args: argparse.Namespace) -> None:
        self._recording = recording
        self._query = query
        self._follows: bool = args.follow
        self._session = Session(recording.header)
        self._waits = not args.follow and (args.json or args.lint or query is not None)
        """Whether everything is printed at the end, when it is known what became of every request."""
        self._live: LiveLinter | None = None
        if args.lint:
            from mcpspy.ui.report.lint_scan import LiveLinter

            self._live = LiveLinter(recording.header)
        self.printer = (
            JsonFormatter(args.verbose)
            if args.json
            else TextFormatter(self._session, verbose=args.verbose, is_filtered=query is not None)
        )

    def read(self) -> None:
        """Take the recording as it is."""
        for entry in self._recording:
            for change in self._session.add(entry):
                self.printer.change(change, shown=not self._waits)
                if self._live is not None:
                    self._live.add(change)

    async def follow(self) -> None:
        """Print what there is, and what comes, to the session's end."""
        async for entry in follow(self._recording.path):
            for change in self._session.add(entry):
                earlier = self._live.add(change) if self._live is not None else []
                self.printer.change(change, shown=self._wants(change), findings=self._findings(change.number))
                self._tell_of(earlier)
            sys.stdout.flush()

    def end(self) -> None:
        """Print what is known only now."""
        session, printer, live = self._session, self.printer, self._live
        if self._recording.state is not RecordingState.LIVE:
            session.end()
            at_end = live.end() if live is not None else []
            if self._follows:
                self._tell_of(at_end)
        if self._waits:
            for change in session.changes:
                if self._wants(change):
                    printer.line(change, self._findings(change.number))
        left = session.unanswered
        printer.end(
            self._recording, left, list(filter(self._wants, left)), len(live) if live is not None else 0
        )

    def _wants(self, change: Change) -> bool:
        words = self._live.words(change.number) if self._live is not None else ()
        return self._query is None or self._query.matches(ChangeItem(change, words))

    def _findings(self, number: int) -> list[Finding]:
        return self._live.of(number) if self._live is not None else []

    def _tell_of(self, findings: list[Finding]) -> None:
        """Print findings on what was printed before."""
        for found in findings:
            if self._wants(self._session.changes[found.number]):
                self.printer.finding(found)
