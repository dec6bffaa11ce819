"""`mcpspy show`: a session, one message per line; --mock: the requests that a mock can answer."""

from __future__ import annotations

import argparse
import asyncio
import sys
from collections.abc import Iterable
from typing import TYPE_CHECKING, NamedTuple

import orjson

from mcpspy.analysis import rows
from mcpspy.core.mock.interaction import Interaction
from mcpspy.core.mock.recordings import Recordings
from mcpspy.core.query.parser import Query
from mcpspy.core.sanitize import sanitize
from mcpspy.core.session.session import Change, Session
from mcpspy.errors import UsageError
from mcpspy.io.mock.loader import RecordingsLoader
from mcpspy.io.recording.reader import Recording, RecordingState, find
from mcpspy.io.recording.tail import follow
from mcpspy.ui.cli.arguments import counted_back, query_of
from mcpspy.ui.cli.options import FOLDER, describe
from mcpspy.ui.cli.show_format import JsonFormatter, TextFormatter
from mcpspy.ui.filter_items import ChangeItem
from mcpspy.ui.terminal import Output, columns

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

MOCK_HEADS = ("method", "about", "requests", "answers")
MOCK_WIDTHS = (30, 44, -8, -7)


class MockListingEntry(NamedTuple):
    """The recorded requests for one tool, resource or prompt, or of one method without a subject."""

    method: str
    about: str | None
    requests: int
    """Different requests, each answered separately."""
    answers: int
    """Recorded responses, given one after the other."""


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
        _print_mock(
            RecordingsLoader([find(args.session, args.dir)], (), merge=False).recordings(), as_json=args.json
        )
        return 0
    query = query_of(args.filter, linted=args.lint)
    recording = Recording(find(args.session, args.dir))
    counted_back(query, recording.path, recording.header)
    printer = _SessionPrinter(recording, query, args)
    printer.formatter.begin()
    if args.follow:
        asyncio.run(printer.follow())
    else:
        printer.read()
    printer.end()
    return 0


def mock_entries(interactions: Iterable[Interaction]) -> list[MockListingEntry]:
    """Count the requests that can be answered, in the order of their first."""
    found: dict[tuple[str, str | None], tuple[set[bytes], int, int]] = {}
    for interaction in interactions:
        request = interaction.key
        if request is not None:
            key = request.method, request.subject
            digests, answers, order = found.get(key, (set(), 0, interaction.order))
            digests.add(request.digest)
            found[key] = digests, answers + interaction.is_answered, min(order, interaction.order)
    ordered = sorted(found.items(), key=lambda item: item[1][2])
    return [
        MockListingEntry(method, about, len(digests), answers)
        for (method, about), (digests, answers, _) in ordered
    ]


def _print_mock(recordings: Recordings, *, as_json: bool) -> None:
    found = mock_entries(recordings.interactions)
    if as_json:
        for entry in found:
            sys.stdout.write(orjson.dumps(entry._asdict()).decode() + "\n")
        return
    output = Output()
    output.line(columns(MOCK_HEADS, MOCK_WIDTHS), rows.QUIET)
    for entry in found:
        cells = sanitize(entry.method), sanitize(entry.about or ""), str(entry.requests), str(entry.answers)
        output.line(columns(cells, MOCK_WIDTHS))
    output.line()
    output.line(f"{sum(entry.requests for entry in found)} requests, and the handshake")


class _SessionPrinter:
    """Reads a session and prints the changes that are selected."""

    def __init__(self, recording: Recording, query: Query | None, args: argparse.Namespace) -> None:
        self._recording = recording
        self._query = query
        self._follows: bool = args.follow
        self._session = Session(recording.header)
        self._is_deferred = not args.follow and (args.json or args.lint or query is not None)
        """Everything is printed at the end, when the outcome of every request is known."""
        self._live: LiveLinter | None = None
        if args.lint:
            from mcpspy.ui.report.lint_scan import LiveLinter

            self._live = LiveLinter(recording.header)
        self.formatter = (
            JsonFormatter(args.verbose)
            if args.json
            else TextFormatter(self._session, verbose=args.verbose, is_filtered=query is not None)
        )

    def read(self) -> None:
        for entry in self._recording:
            for change in self._session.add(entry):
                self.formatter.change(change, shown=not self._is_deferred)
                if self._live is not None:
                    self._live.add(change)

    async def follow(self) -> None:
        """Print the changes so far, then new ones, until the session ends."""
        async for entry in follow(self._recording.path):
            for change in self._session.add(entry):
                earlier = self._live.add(change) if self._live is not None else []
                self.formatter.change(
                    change, shown=self._matches(change), findings=self._findings(change.number)
                )
                self._print_findings(earlier)
            sys.stdout.flush()

    def end(self) -> None:
        """Print the summary, and changes that a filter or linter can decide only now."""
        session, formatter, live = self._session, self.formatter, self._live
        if self._recording.state is not RecordingState.LIVE:
            session.end()
            at_end = live.end() if live is not None else []
            if self._follows:
                self._print_findings(at_end)
        if self._is_deferred:
            for change in session.changes:
                if self._matches(change):
                    formatter.line(change, self._findings(change.number))
        unanswered = session.unanswered
        listed = list(filter(self._matches, unanswered))
        formatter.end(self._recording, unanswered, listed, len(live) if live is not None else 0)

    def _matches(self, change: Change) -> bool:
        words = self._live.words(change.number) if self._live is not None else ()
        return self._query is None or self._query.matches(ChangeItem(change, words))

    def _findings(self, number: int) -> list[Finding]:
        return self._live.of(number) if self._live is not None else []

    def _print_findings(self, findings: list[Finding]) -> None:
        """Print findings on changes that were printed before."""
        for found in findings:
            if self._matches(self._session.changes[found.number]):
                self.formatter.finding(found)
