"""Formats of `mcpspy show`: columns for people, JSON objects for programs.

Prints the lines, the counts and the summary. `show` decides what is printed, and when.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from mcpspy.analysis import rows
from mcpspy.analysis.apps import AppLinks
from mcpspy.analysis.export import columns
from mcpspy.analysis.export.base import dumps, fragment
from mcpspy.core.counted import counted
from mcpspy.core.protocol.message import Failure, Malformed, Notification, Request, Result
from mcpspy.core.protocol.peers import Peers
from mcpspy.core.query.absent import absent_name
from mcpspy.core.recording.decode import Damaged, Header, Note
from mcpspy.core.redact.placeholder import PLACEHOLDER
from mcpspy.core.sanitize import sanitize
from mcpspy.core.session.exchange import State
from mcpspy.core.session.outcome import is_error_response
from mcpspy.core.session.rule_notes import RULE
from mcpspy.core.session.session import Change, Session
from mcpspy.core.session.translation_notes import TRANSLATE
from mcpspy.io.recording.reader import Recording, RecordingState
from mcpspy.ui.cli.show_layout import Widths, heads, message_line, needs, note_line, widths
from mcpspy.ui.model.body import pretty
from mcpspy.ui.text.terminal import Output, warn_incomplete, write_json
from mcpspy.ui.text.width import cells

if TYPE_CHECKING:
    from mcpspy.analysis.lint import Finding
    from mcpspy.ui.views.extension import Extension

_BETWEEN = " · "

OWN_SAMPLE = 50
"""Number of changes that determine the widths of the user's columns, whose functions may be slow."""

OWN_WIDEST = 40

RENDER_WAIT = 6.0
"""Seconds to wait for a function of the user, longer than its time limit."""


def stream(change: Change) -> str:
    """Return the HTTP stream of a change."""
    what = change.what
    if isinstance(what, Note):
        return str(what.fields.get("stream") or "")
    return "" if isinstance(what, Damaged) else what.frame.stream or ""


def redacted(change: Change) -> int:
    """Return the number of redaction placeholders in a message."""
    what = change.what
    return 0 if isinstance(what, Note | Damaged) else len(PLACEHOLDER.findall(what.data))


def is_http_detail(change: Change, row: rows.Row, *, follows: bool = False) -> bool:
    """Return whether a change only notes that an HTTP exchange took place, without an error.

    The row of a GET stream has all of it, except while the session is followed: then its end has the rest.
    """
    what = change.what
    if not isinstance(what, Note):
        return False
    if (http := change.http) is not None and http.is_get:
        return http.is_folded or (what.kind == "http-end" and not follows)
    if row.tone != rows.QUIET:
        return False
    if what.kind == "http":
        return what.fields.get("status") is not None and not what.fields.get("error")
    if what.kind == RULE:  # Of a translated message, whose row says so.
        return what.fields.get("action") == TRANSLATE
    return what.kind == "sse" or (what.kind == "http-end" and not what.fields.get("hung_up"))


class TextFormatter:
    """Prints columns for people.

    The columns are as wide as the changes of `sample` and the time of the `last` entry need, if the terminal is wide
    enough. The notes on HTTP exchanges without errors are shown if an option or the filter names them.
    """

    def __init__(
        self,
        session: Session,
        args: argparse.Namespace,
        sample: Sequence[Change],
        last: float,
        *,
        follows: bool,
    ) -> None:
        self._follows = follows
        self._session = session
        self.prefix = ""
        """Text before each line, in place of a heading and a summary."""
        self._is_filtered = args.filter is not None
        self._filter: str = args.filter or ""
        self._verbose = args.verbose
        names_notes = any(word in (args.filter or "") for word in ("http", "note", "sse"))
        self._shows_http = args.http or args.verbose or names_notes
        self._output = Output(args.color, args.width)
        self._apps = AppLinks()
        self._issues = 0
        self._redacted = 0
        self._shown = 0
        self._hidden = 0
        # One HTTP proxy can have several clients: the stream distinguishes them.
        assert session.header is not None
        self._has_streams = session.header.transport == "http"
        self._columns = columns.SessionColumns(session.header)
        self._extension: Extension | None = args.extension
        self._own: dict[str, int] = {}
        """Headings of the user's columns, with their widths."""
        self._widths = self._fitted(sample, last)

    def _fitted(self, sample: Sequence[Change], last: float) -> Widths:
        for change in sample:
            self._columns.add(change)
        streams = ["1", *map(self._stream, sample)] if self._has_streams else []
        for name, cell in (item for change in sample[:OWN_SAMPLE] for item in self._own_cells(change)):
            self._own[name] = min(max(self._own.get(name, cells(name)), cells(cell)), OWN_WIDEST)
        taken = sum(self._own.values()) + 2 * len(self._own)
        width = max(self._output.width - taken, 1) if self._output.width else 0
        return widths(width, needs(map(rows.row, sample), streams, rows.moment(last)))

    def _own_cells(self, change: Change) -> list[tuple[str, str]]:
        """Return the heading and the cell of each of the user's columns."""
        return [] if self._extension is None else list(own_cells(self._extension, change))

    def _stream(self, change: Change) -> str:
        """Return the name of the client of an HTTP stream, else the stream; empty on stdio."""
        return sanitize(self._columns.label(stream(change))) if self._has_streams else ""

    def begin(self) -> None:
        """Print the session, and the column names."""
        header = self._session.header
        assert header is not None
        command = rows.server(header)
        unredacted = "not redacted (--no-redact)" if header.redacted is False else ""
        self._wrapped(header.name, header.id, header.started, command, unredacted)
        self._output.line(heads(self._widths, self._own.items()), rows.QUIET)

    def change(self, change: Change, *, shown: bool, findings: Sequence[Finding] = ()) -> None:
        """Count a change; print it and its findings if `shown`."""
        row = rows.row(change)
        self._columns.add(change)
        self._apps.add(change, self._session.client_capabilities)
        self._issues += change.has_issue
        self._redacted += redacted(change)
        if shown:
            # Nothing is known of a new request except its issues: the line of its response has the outcome.
            if change.status is State.PENDING and not isinstance(change.what, Note | Damaged):
                notes = row.status.partition("pending")[2].removeprefix("; ")
                row = row._replace(status=rows.with_batch(notes, change.what))
            self._print(change, row, findings)

    def line(self, change: Change, findings: Sequence[Finding] = ()) -> None:
        """Print a change that was counted before, in its current state."""
        self._print(change, rows.row(change), findings)

    def finding(self, finding: Finding) -> None:
        """Print a finding on a change that was printed before."""
        about = rows.row(self._session.changes[finding.number])
        self._print_finding(finding, f" ({about.method} at {about.time})")

    def _print_finding(self, finding: Finding, about: str = "") -> None:
        from mcpspy.ui.report.lint import brief

        text, tone = brief(finding)
        self._output.line(f"{'':8}  {text}{about}", tone)

    def _print(self, change: Change, row: rows.Row, findings: Sequence[Finding]) -> None:
        if not self._shows_http and not findings and is_http_detail(change, row, follows=self._follows):
            self._hidden += 1
            return
        self._shown += 1
        row = row._replace(status=rows.with_link(row.status, self._apps.words(change.number)))
        if isinstance(change.what, Note | Damaged | Malformed):
            line = note_line(row, self._stream(change), self._widths)
        else:
            cells_of = dict(self._own_cells(change)) if self._own else {}
            own = [(cells_of.get(name, ""), width) for name, width in self._own.items()]
            line = message_line(row, self._stream(change), self._widths, own)
        self._output.line(self.prefix + line, None if row.tone == rows.OK else row.tone)
        for finding in findings:
            self._print_finding(finding)
        if not self._verbose:
            return
        if isinstance(change.what, Note) and isinstance(body := change.what.fields.get("body"), str):
            self._print_body(body.encode("utf-8", "replace"))
        if not isinstance(change.what, Note | Damaged):
            self._print_body(change.what.data)
            if self._extension is not None:
                self._print_views(self._extension, change.what.data)

    def _print_body(self, data: bytes) -> None:
        for line in pretty(data):
            self._output.line("          " + line)

    def _print_views(self, extension: Extension, data: bytes) -> None:
        """Print the views of the contents of a message."""
        for pointer, label, lines in extension.views(data, wait=RENDER_WAIT):
            needs_colours = any((style or "").startswith("#") for line in lines for _, style in line)
            if self._output.colour or not needs_colours:
                self._output.line(f"          {pointer}: {label}", rows.QUIET)
                for line in lines:
                    self._output.pieces([("          ", None), *line])

    def _wrapped(self, *parts: str) -> None:
        """Print parts with dots between them, in as many lines as the terminal needs."""
        line = ""
        for part in map(sanitize, filter(None, parts)):
            longer = f"{line}{_BETWEEN}{part}" if line else part
            if line and self._output.width and cells(longer) > self._output.width:
                self._output.line(line)
                longer = part
            line = longer
        self._output.line(line)

    def end(
        self, recording: Recording, unanswered: list[Change], listed: list[Change], findings: int
    ) -> None:
        """Print the summary: the number of `unanswered` requests, and those of them that are `listed`."""
        session, output = self._session, self._output
        if self.prefix:
            warn_incomplete(recording.path, recording.torn)
            return
        clients = ", ".join(map(str, self._columns.clients or filter(None, [session.client])))
        ours = sum(exchange.request.frame.by is not None for exchange in session.exchanges)
        output.line()
        self._wrapped(
            f"{self._shown} of {len(session.changes)} lines" if self._is_filtered else "",
            f"{clients} → {session.server or '?'}" if clients else "",
            f"protocol {session.revision_text}" if session.revision_text else "",
            counted(len(session.exchanges), "request") + (f" ({ours} by mcpspy)" if ours else ""),
            f"{session.counts.errors} failed",
            f"{len(unanswered)} unanswered" if unanswered else "",
            counted(self._issues, "protocol issue") if self._issues else "",
            counted(findings, "finding") if findings else "",
            f"{counted(self._redacted, 'value')} redacted" if self._redacted else "",
            f"{counted(self._hidden, 'HTTP note')} hidden (--http)" if self._hidden else "",
            {RecordingState.LIVE: "live", RecordingState.DIED: "died (no exit note)"}.get(recording.state, "")
            or rows.ending(session.exit),
        )
        if self._filter and not self._shown and (absent := absent_name(self._filter, _names(session))):
            output.line(sanitize(f"0 rows: {absent}"), rows.ISSUE)
        for change in listed:
            request, exchange = change.what, change.exchange
            if not isinstance(request, Request) or exchange is None:
                continue
            about = f" {request.subject}" if request.subject else ""
            state = "no answer yet" if exchange.state is State.PENDING else exchange.state
            tone = rows.OPEN if exchange.is_open else rows.BAD
            output.line(
                f"{state}: {sanitize(request.method + about)}, id {sanitize(request.id)}, since {rows.moment(request.at)}",
                tone,
            )
        ended_badly = session.exit is not None and rows.ended_badly(session.exit)
        if not self._follows and (session.counts.errors or unanswered or ended_badly):
            from mcpspy.ui.report.explanation import first_cause, wrapped

            if (cause := first_cause(recording.path)) is not None:
                why = f"why: {cause.title}"
                output.lines(wrapped(why, output.width or len(why), rows.BAD))
        if recording.torn:
            output.line(
                f"incomplete last line skipped ({recording.torn} bytes): mcpspy was stopped while writing it",
                rows.ISSUE,
            )


def _names(session: Session) -> Iterator[tuple[str, str]]:
    """Yield the methods of a session's messages with their subjects."""
    for change in session.changes:
        if isinstance(change.what, Request | Notification):
            yield change.what.method, change.what.subject or ""


def own_cells(extension: Extension, change: Change) -> Iterator[tuple[str, str]]:
    """Yield the heading and the cell of each of the user's columns, if this change ends an exchange."""
    what, exchange = change.what, change.exchange
    if exchange is None or not (
        what is exchange.answer or (what is exchange.request and not exchange.answer)
    ):
        return
    key = exchange.number, exchange.state, exchange.answer is None
    for name in extension.columns:
        yield name, extension.cell(name, key, lambda: exchange, wait=RENDER_WAIT)[0]


class JsonFormatter:
    """Prints JSON objects for programs, as docs/show.schema.json describes them."""

    def __init__(self, header: Header, verbose: bool, extension: Extension | None = None) -> None:
        self.prefix = ""
        """Text before each line of the other format."""
        self._verbose = verbose
        self._extension = extension
        self._columns = columns.SessionColumns(header)
        self._apps, self._peers = AppLinks(), Peers()
        self._responses: dict[int, int] = {}
        """Number of an exchange → `n` of its response."""
        self._requests: dict[int, int] = {}

    def begin(self) -> None:
        """Print nothing: JSON has no heading."""

    def change(self, change: Change, *, shown: bool, findings: Sequence[Finding] = ()) -> None:
        """Remember a change; print it if `shown`."""
        what, exchange = change.what, change.exchange
        self._columns.add(change)
        if isinstance(what, Request):
            self._peers.add_request(what)
        self._apps.add(change, self._peers.client_capabilities)
        if exchange is not None and isinstance(what, Request):
            self._requests[exchange.number] = change.number
        elif exchange is not None and what is exchange.answer:
            self._responses[exchange.number] = change.number
        if shown:
            self.line(change, findings)

    def line(self, change: Change, findings: Sequence[Finding] = ()) -> None:
        """Print a change in its current state."""
        document = self._as_json(change)
        if self._extension is not None and (own := dict(own_cells(self._extension, change))):
            document["columns"] = own
        if findings:
            document["findings"] = [_finding(finding) for finding in findings]
        self._write(document)

    def finding(self, finding: Finding) -> None:
        """Print a finding on a change that was printed before; `n` is its number."""
        self._write({"n": finding.number, "kind": "finding", **_finding(finding)})

    def _write(self, document: dict[str, Any]) -> None:
        write_json(dumps(document).encode() + b"\n")

    def end(
        self, recording: Recording, unanswered: list[Change], listed: list[Change], findings: int
    ) -> None:
        """Report an incomplete last line on stderr."""
        warn_incomplete(recording.path, recording.torn)

    def _as_json(self, change: Change) -> dict[str, Any]:
        what, number = change.what, {"n": change.number}
        if isinstance(what, Damaged):
            text = what.data.decode("utf-8", "backslashreplace")
            return {**number, "kind": "damaged", "why": what.why, "text": text}
        moment = {**number, **self._columns.moment(what.at)}
        if isinstance(what, Note):
            own = {**moment, "kind": "note", "note": what.kind}
            return own | {key: value for key, value in what.fields.items() if key not in own}
        stream = what.frame.stream
        document: dict[str, Any] = {
            **moment,
            **({"stream": stream} if stream is not None else {}),
            **self._columns.peers(stream),
            "from": what.side,
            "kind": what.kind,
            **columns.batch(what),
            "bytes": len(what.data),
            **self._call(change),
        }
        if isinstance(what, Malformed):
            document["why"] = what.why
        if count := redacted(change):
            document["redacted"] = count
        if flaws := [*what.flaws, *([change.flaw] if change.flaw else [])]:
            document["flaws"] = flaws
        if change.effect is not None:
            document["effect"] = change.effect
        if (link := self._apps.links.get(change.number)) is not None:
            document["app"] = link.as_json()
        if self._verbose:
            body = fragment(what.data)
            text = what.data.decode("utf-8", "backslashreplace")
            document |= {"raw": text} if body is None else {"msg": body}
        return document

    def _call(self, change: Change) -> dict[str, Any]:
        """Return method, target, id, progress, and the outcome of the request that a message is or answers."""
        what, exchange = change.what, change.exchange
        found: dict[str, Any] = {}
        if isinstance(what, Request | Notification):
            found = columns.target(what.method, what.subject)
        elif exchange is not None:
            found = columns.target(exchange.request.method, exchange.request.subject)
        if isinstance(what, Notification):
            return (
                found | ({} if exchange is None else {"exchange": exchange.number}) | columns.progress(what)
            )
        if not isinstance(what, Request | Result | Failure):
            return found
        found["id"] = columns.json_id(what)
        if exchange is not None:
            found |= columns.outcome(exchange)
            places = {"request_n": self._requests, "response_n": self._responses}
            found |= {name: of[exchange.number] for name, of in places.items() if exchange.number in of}
        if isinstance(what, Request) or (exchange is not None and what is exchange.answer):
            return found
        # An unsolicited, second or late response: its own outcome.
        for name in ("code", "error"):
            found.pop(name, None)
        status = None if change.status is None else str(change.status)
        found |= {"status": status, **columns.error(what if is_error_response(what) else None)}
        if exchange is not None:
            found["latency_ms"] = columns.milliseconds(exchange.latency_at(what.at))
        return found


def _finding(finding: Finding) -> dict[str, str]:
    """Return the fields of a finding as valid JSON: without lone surrogates."""
    fields = {
        "code": finding.code,
        "severity": str(finding.severity),
        "message": finding.message,
        "excerpt": finding.excerpt,
    }
    return {key: value.encode("utf-8", "backslashreplace").decode() for key, value in fields.items()}
