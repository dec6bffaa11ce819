"""`mcpspy show`: print a session, one message per line; --mock: the requests that a mock can answer."""

from __future__ import annotations

import argparse
import asyncio
import sys
from collections.abc import Iterable
from datetime import datetime
from itertools import islice
from operator import itemgetter
from typing import TYPE_CHECKING, NamedTuple

from mcpspy.analysis import rows
from mcpspy.core.mock.interaction import Interaction
from mcpspy.core.mock.recordings import Recordings
from mcpspy.core.query.item import NEAR
from mcpspy.core.query.parser import Query
from mcpspy.core.recording.decode import Note
from mcpspy.core.sanitize import sanitize
from mcpspy.core.session.exchange import MAY_CHANGE
from mcpspy.core.session.session import Change, Session
from mcpspy.errors import UsageError
from mcpspy.io.mock.loader import RecordingsLoader
from mcpspy.io.recording.piped import check_complete
from mcpspy.io.recording.reader import Recording, RecordingState, summarize
from mcpspy.io.recording.runs import RUN, find_run
from mcpspy.io.recording.scan import part_after
from mcpspy.io.recording.tail import follow
from mcpspy.io.settings import table
from mcpspy.ui.cli.arguments import counted_back, is_folder, query_of, recordings, session_path
from mcpspy.ui.cli.options import FOLDER, LAKE, UNSAFE_REGEX, VIEW_SCRIPT, Argument, Option, Switch, formats
from mcpspy.ui.cli.parser import integer, read_unsafe_regex
from mcpspy.ui.cli.show_format import JsonFormatter, TextFormatter
from mcpspy.ui.model.filter_items import ChangeItem
from mcpspy.ui.text.terminal import Output, columns, print_json, warn_incomplete
from mcpspy.ui.text.width import elide, pad, shorten_subject

if TYPE_CHECKING:
    from mcpspy.analysis.lint import Finding
    from mcpspy.ui.report.lint_scan import LiveLinter

EPILOG = """\
examples:
  mcpspy show                   the newest session
  mcpspy show weather -v        the newest session with this name, with message bodies
  mcpspy show recordings/ -q status:error    the failures of all sessions in a folder
  mcpspy show last --follow     print new messages until the session ends
  mcpspy show -q 'tool:forecast status:error or >1s'
  mcpspy show last --follow --lint    with protocol violations below each message
  mcpspy show weather --mock    the requests that `mcpspy mock weather` can answer
  mcpspy show last --format json | jq -c 'select(.kind == "request" and .code)'

SESSION is a file, `last`, a session name, the beginning of a session id, lake:SESSION of
a lake, run:ID of `mcpspy runs`, or a folder of recordings: then each line begins with its
session.
QUERY: words, tool:NAME, method:tools/*, status:error, is:pending, >200ms, size>10kb,
kind:batch, method!=ping, text:WORDS, /REGEX/, combined with and, or, not, ( ); see
docs/filter.md. docs/show.schema.json describes the lines of --format json.
→ from the client, ← from the server, · a note: stderr, exit, signals.
"""

MOCK_HEADS = ("method", "target", "requests", "answers")
MOCK_WIDTHS = (30, 44, -8, -7)

SAMPLE = 500
"""Number of entries that determine the widths of the columns."""

NARROWEST = 40
"""Columns of the narrowest output."""

PREFIX = 16
"""Columns of a session's name before the lines of a folder."""


class MockListingEntry(NamedTuple):
    """The recorded requests for one tool, resource or prompt, or of one method without a target."""

    method: str
    about: str | None
    requests: int
    """Number of different requests."""
    answers: int
    """Number of recorded responses, which the mock sends one after the other."""


def read_width(text: str) -> int:
    """Return a number of columns; raise UsageError."""
    return 0 if text == "0" else integer("width", f"use {NARROWEST} or more, or 0", NARROWEST)(text)


OPTIONS = (
    Argument("session", "SESSION", "session to print, - for stdin (default: last)", nargs="?",
        default="last"),
    Switch("-v --verbose", "also print message bodies, and all HTTP notes"),
    Switch("-f --follow", "print new messages until the session ends"),
    Option("-q --filter", "QUERY", "print only matching messages, e.g. 'tool:x >200ms'"),
    UNSAFE_REGEX,
    Switch("--lint", "print findings of `mcpspy lint` below each message"),
    Switch("--http", "also print successful HTTP requests and ends of HTTP exchanges"),
    Switch("--mock", "print the requests that a mock of the session can answer, and how often",
        excludes=("--follow", "--filter", "--lint"), hint="--mock counts the whole recording"),
    *formats("json: one object per message or note"),
    Option("--color", None,
        "use colors (default: auto: on a terminal, unless NO_COLOR is set, or if FORCE_COLOR is)",
        choices=["auto", "always", "never"], default="auto"),
    Option("--width", "N",
        f"columns of the output, at least {NARROWEST}; 0: do not cut lines (default: the terminal's)",
        read=read_width),
    VIEW_SCRIPT,
    FOLDER,
    LAKE,
)  # fmt: skip


def main(args: argparse.Namespace) -> int:
    if args.mock:
        path = session_path(args.session, args.dir, lake=args.lake)
        _print_mock(RecordingsLoader([path], (), merge=False).recordings(), args)
        return 0
    if args.script or args.verbose or table("views"):
        from mcpspy.ui.views.extension import Extension

        args.extension = Extension(args.script, table("views"))
    else:
        args.extension = None
    query = query_of(args.filter, linted=args.lint, allow_unsafe=read_unsafe_regex(args))
    if args.session.startswith(RUN):
        _print_run(query, args)
        return 0
    if is_folder(args.session, args.dir):
        _print_folder(query, args)
        return 0
    path = session_path(args.session, args.dir, follows=args.follow, lake=args.lake)
    printer = _SessionPrinter(Recording(path), query, args)
    printer.formatter.begin()
    if printer.follows:
        asyncio.run(printer.follow())
    else:
        printer.read()
    printer.end()
    check_complete()
    return 0


def _print_folder(query: Query | None, args: argparse.Namespace) -> None:
    """Print the sessions of a folder, the oldest first; each line begins with the id and name of its session."""
    if args.follow:
        raise UsageError("show: --follow prints one session", "use a session of the folder")
    for _, path in recordings([args.session], args.dir):
        printer = _SessionPrinter(recording := Recording(path), query, args)
        printer.formatter.prefix = f"{recording.header.id}  {_column(recording)}"
        printer.read()
        printer.end()


def _print_run(query: Query | None, args: argparse.Namespace) -> None:
    """Print the sessions of a run as one, in order of time; each line begins with its time and session."""
    if args.follow:
        raise UsageError("show: --follow prints one session", "use a session of the run: mcpspy runs")
    found = find_run(args.session, args.dir)
    printers = []
    for summary in found.sessions:
        printer = _SessionPrinter(recording := Recording(summary.path), query, args, is_merged=True)
        printer.read()
        began = datetime.fromisoformat(recording.header.started).timestamp() - found.run.began
        printers.append((printer, began, _column(recording)))
    lines = [
        ((began + change.what.at, number), change)
        for number, (printer, began, _) in enumerate(printers)
        for change in printer.matching()
    ]
    for (at, number), change in sorted(lines, key=itemgetter(0)):
        printer, _, name = printers[number]
        printer.formatter.prefix = f"{rows.moment(at):>10}  {name}"
        printer.line(change)
    for printer, _, _ in printers:
        printer.warn()


def _column(recording: Recording) -> str:
    """Return the name of a session as a column before its lines."""
    return f"{pad(sanitize(recording.header.name), PREFIX)}  "


def mock_entries(interactions: Iterable[Interaction]) -> list[MockListingEntry]:
    """Count the requests that can be answered, ordered by their first occurrence."""
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


def _print_mock(recordings: Recordings, args: argparse.Namespace) -> None:
    found = mock_entries(recordings.interactions)
    if args.format == "json":
        for entry in found:
            print_json(entry._asdict())
        return
    output = Output(args.color, args.width)
    method, target, *numbers = MOCK_WIDTHS
    if output.width:  # The numbers stay visible.
        method = method if output.width >= 80 else 16
        target = max(8, min(target, output.width - method - 3 * 2 + sum(numbers)))
    widths = (method, target, *numbers)
    output.line(columns(MOCK_HEADS, widths), rows.QUIET)
    for entry in found:
        numbers_of = str(entry.requests), str(entry.answers)
        subject = shorten_subject(sanitize(entry.about or ""), target)
        output.line(columns((elide(sanitize(entry.method), method), subject, *numbers_of), widths))
    output.line()
    output.line(f"{sum(entry.requests for entry in found)} requests, plus the handshake")


class _SessionPrinter:
    """Reads a session and prints the changes that match the filter."""

    def __init__(
        self, recording: Recording, query: Query | None, args: argparse.Namespace, *, is_merged: bool = False
    ) -> None:
        """`is_merged`: the caller prints the changes, in order with those of other sessions."""
        counted_back(query, recording.path, recording.header)
        self._recording = recording
        self._query = query
        self.follows: bool = args.follow and recording.state is RecordingState.LIVE
        """True if more entries may come: then every line is printed at once."""
        self._session = Session(recording.header)
        is_selected = args.format == "json" or args.lint or query is not None
        self._is_deferred = is_merged or (not self.follows and is_selected)
        """Prints everything at the end, when the outcome of every request is known."""
        self._printed = 0
        self._live: LiveLinter | None = None
        if args.lint:
            from mcpspy.ui.report.lint_scan import LintSettings, LiveLinter

            rules, _ = LintSettings().of(recording.header.name or recording.path.stem)
            self._live = LiveLinter(recording.header, rules)
        self.formatter = (
            JsonFormatter(recording.header, args.verbose, args.extension)
            if args.format == "json"
            else self._text(args)
        )

    def _text(self, args: argparse.Namespace) -> TextFormatter:
        path, header = self._recording.path, self._recording.header
        sample = Session(header).add_all(islice(Recording(path), SAMPLE))
        last = summarize(path, header, counts=False).last
        return TextFormatter(self._session, args, sample.changes, last, follows=self.follows)

    def read(self) -> None:
        for entry in self._recording:
            for change in self._session.add(entry):
                self.formatter.change(change, shown=False)
                if self._live is not None:
                    self._live.add(change)
            if not self._is_deferred:
                self._print_settled()

    async def follow(self) -> None:
        """Print the changes so far, then new ones, until the session ends.

        A failure prints the lines of stderr before it, if the filter matches them because of the failure.
        """
        passed: list[Change] = []
        async for entry in follow(self._recording.path):
            for change in self._session.add(entry):
                for before in filter(self._matches, passed):
                    self.line(before)
                recent = [*passed[-NEAR:], change] if isinstance(change.what, Note) else []
                passed = [event for event in recent if not self._matches(event)]
                earlier = self._live.add(change) if self._live is not None else []
                self.formatter.change(
                    change, shown=self._matches(change), findings=self._findings(change.number)
                )
                self._print_findings(earlier)
            # The first file may be gone at the end.
            self._recording.path = part_after(self._recording.path, entry) or self._recording.path
            sys.stdout.flush()

    def end(self) -> None:
        """Print the summary, and the changes that were deferred."""
        session, formatter, live = self._session, self.formatter, self._live
        if self._recording.state is not RecordingState.LIVE:
            session.end()
            at_end = live.end() if live is not None else []
            if self.follows:
                self._print_findings(at_end)
        if not self.follows:
            for change in session.changes[self._printed :]:
                if self._matches(change):
                    self.line(change)
        unanswered = session.unanswered
        listed = list(filter(self._matches, unanswered))
        if self.follows and isinstance(formatter, JsonFormatter):  # Text has them in its summary.
            for change in listed:
                formatter.line(change)
        formatter.end(self._recording, unanswered, listed, len(live) if live is not None else 0)

    def matching(self) -> list[Change]:
        """End a session that was read; return the changes that match the filter."""
        if self._recording.state is not RecordingState.LIVE:
            self._session.end()
            if self._live is not None:
                self._live.end()
        return list(filter(self._matches, self._session.changes))

    def line(self, change: Change) -> None:
        self.formatter.line(change, self._findings(change.number))

    def warn(self) -> None:
        """Report an incomplete last line on stderr."""
        warn_incomplete(self._recording.path, self._recording.torn)

    def _print_settled(self) -> None:
        """Print changes up to the first request that may still be answered: the rest of the file decides on it.

        The latest change waits for the notes about it.
        """
        changes = self._session.changes
        while self._printed < len(changes) - 1:
            change = changes[self._printed]
            # A stream may be opened again until the end.
            if change.status in MAY_CHANGE or (change.http is not None and change.http.is_get):
                return
            self.formatter.line(change)
            self._printed += 1

    def _matches(self, change: Change) -> bool:
        words = self._live.words(change.number) if self._live is not None else ()
        return self._query is None or self._query.matches(ChangeItem(change, words, self._session.changes))

    def _findings(self, number: int) -> list[Finding]:
        return self._live.of(number) if self._live is not None else []

    def _print_findings(self, findings: list[Finding]) -> None:
        """Print findings on changes that were printed before."""
        for found in findings:
            if self._matches(self._session.changes[found.number]):
                self.formatter.finding(found)
