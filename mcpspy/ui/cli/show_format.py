"""The formats of `mcpspy show`: columns for people, JSON objects for programs.

Owns the columns, the counts and the summary. `show` decides what is printed, and when.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import orjson

from mcpspy.analysis import rows
from mcpspy.analysis.export.base import fragment
from mcpspy.core.protocol.message import Failure, Malformed, Notification, Request, Result
from mcpspy.core.recording.decode import Damaged, Note
from mcpspy.core.redact.placeholder import PLACEHOLDER
from mcpspy.core.sanitize import sanitize
from mcpspy.core.session.session import Change, Session
from mcpspy.io.recording.reader import Recording, RecordingState
from mcpspy.ui.body import pretty
from mcpspy.ui.terminal import Output, columns, warn_incomplete

if TYPE_CHECKING:
    from mcpspy.analysis.lint import Finding

_METHOD, _ABOUT, _STATUS = 30, 34, 24
"""Widths of the three variable columns on a wide terminal."""

_HEADS = ("time", "", "method", "about", "id", "latency", "size", "status")
_KINDS = {
    Request: "request",
    Notification: "notification",
    Result: "result",
    Failure: "failure",
    Malformed: "malformed",
}


def stream(change: Change) -> str:
    """Return the HTTP stream of a change."""
    what = change.what
    if isinstance(what, Note):
        return sanitize(str(what.fields.get("stream", "")))
    return "" if isinstance(what, Damaged) else sanitize(what.frame.stream or "")


def redacted(change: Change) -> int:
    """Return the number of placeholders of secrets in a message."""
    what = change.what
    return 0 if isinstance(what, Note | Damaged) else len(PLACEHOLDER.findall(what.data))


def widths(terminal: int, arrow: int = 1) -> tuple[int, ...]:
    """Return the width of each column, so that the status is visible on a narrow terminal."""
    method, about = _METHOD, _ABOUT
    if terminal:
        rest = max(terminal - (8 + arrow + 6 + 9 + 6 + 7 * 2) - _STATUS, 20)
        method = min(method, max(12, rest // 2))
        about = max(min(about, rest - method), 8) if rest < method + about else rest - method
    return (-8, arrow, method, about, 6, -9, -6, 0)


class TextFormatter:
    """Prints columns for people."""

    def __init__(self, session: Session, *, verbose: bool, is_filtered: bool) -> None:
        self._session = session
        self._is_filtered = is_filtered
        self._verbose = verbose
        self._output = Output()
        self._flaws = 0
        self._redacted = 0
        self._shown = 0
        # Several clients may use one HTTP proxy: the stream distinguishes them.
        self._shows_stream = session.header is not None and session.header.transport == "http"
        self._widths = widths(self._output.width, 5 if self._shows_stream else 1)

    def begin(self) -> None:
        """Print the session, and the heads of the columns."""
        header = self._session.header
        assert header is not None
        what = " ".join(header.command) if header.command else header.upstream or ""
        unredacted = " · secrets and all (--no-redact)" if header.redacted is False else ""
        self._output.line(
            f"{sanitize(header.name)} · {sanitize(header.id)} · {sanitize(header.started)} · {sanitize(what)}{unredacted}"
        )
        self._output.line(columns(_HEADS, self._widths), rows.QUIET)

    def change(self, change: Change, *, shown: bool, findings: Sequence[Finding] = ()) -> None:
        """Count a change; print it and its findings if `shown`."""
        row = rows.row(change)
        self._flaws += row.tone == rows.ISSUE and not isinstance(change.what, Note)
        self._redacted += redacted(change)
        # A request has no outcome yet: the line of its response has it.
        if isinstance(change.what, Request) and not change.flaw and not change.what.flaws:
            row = row._replace(status="")
        if shown:
            self._print(change, row, findings)

    def line(self, change: Change, findings: Sequence[Finding] = ()) -> None:
        """Print a change that was counted before, in its current state."""
        self._print(change, rows.row(change), findings)

    def finding(self, finding: Finding) -> None:
        """Print a finding on a change that was printed before."""
        about = rows.row(self._session.changes[finding.number])
        self._found(finding, f" ({about.method} at {about.time})")

    def _found(self, finding: Finding, about: str = "") -> None:
        from mcpspy.ui.report.lint_text import brief

        text, tone = brief(finding)
        self._output.line(f"{'':8}  {text}{about}", tone)

    def _print(self, change: Change, row: rows.Row, findings: Sequence[Finding]) -> None:
        self._shown += 1
        arrow = f"{stream(change):>3} {row.arrow}" if self._shows_stream else row.arrow
        cells = (row.time, arrow, row.method, row.subject, row.id, row.latency, row.size, row.status)
        line = columns(cells, self._widths)
        if row.arrow == rows.NO_DIRECTION:  # The text of a note may use the whole line.
            cells_of_note = (row.time, arrow, row.method, row.subject, row.status)
            line = columns(cells_of_note, (*self._widths[:2], 8 if self._shows_stream else 6, 0, 0))
        self._output.line(line, None if row.tone == rows.OK else row.tone)
        for finding in findings:
            self._found(finding)
        if self._verbose and not isinstance(change.what, Note | Damaged):
            for line in pretty(change.what.data):
                self._output.line("          " + line)

    def end(
        self, recording: Recording, unanswered: list[Change], listed: list[Change], findings: int
    ) -> None:
        """Print the summary: the number of `unanswered` requests, and those of them that are `listed`."""
        session, output = self._session, self._output
        parts = [
            f"{self._shown} of {len(session.changes)} lines" if self._is_filtered else "",
            f"{session.client} → {session.server or '?'}" if session.client else "",
            f"protocol {session.revision}" if session.revision else "",
            f"{len(session.exchanges)} requests",
            f"{sum(rows.has_failed(e) for e in session.exchanges)} failed",
            f"{len(unanswered)} unanswered" if unanswered else "",
            f"{self._flaws} odd" if self._flaws else "",
            f"{findings} finding{'s'[: findings != 1]}" if findings else "",
            f"{self._redacted} values redacted" if self._redacted else "",
            {RecordingState.LIVE: "live", RecordingState.DIED: "died: it has no exit note"}.get(
                recording.state, ""
            )
            or rows.ending(session.exit),
        ]
        output.line()
        output.line(sanitize(" · ".join(part for part in parts if part)))
        for change in listed:
            request, exchange = change.what, change.exchange
            if not isinstance(request, Request) or exchange is None:
                continue
            about = f" {request.subject}" if request.subject else ""
            yet, tone = (" yet", rows.OPEN) if exchange.is_open else ("", rows.BAD)
            output.line(
                f"no answer{yet}: {sanitize(request.method + about)}, id {sanitize(request.id)}, since {rows.moment(request.at)}",
                tone,
            )
        if recording.torn:
            output.line(
                f"the last line is torn ({recording.torn} bytes, left out): its writer was stopped while writing",
                rows.ISSUE,
            )


class JsonFormatter:
    """Prints JSON objects for programs."""

    def __init__(self, verbose: bool) -> None:
        self._verbose = verbose

    def begin(self) -> None:
        """Print nothing: JSON has no heading."""

    def change(self, change: Change, *, shown: bool, findings: Sequence[Finding] = ()) -> None:
        """Print a change if `shown`."""
        if shown:
            self.line(change, findings)

    def line(self, change: Change, findings: Sequence[Finding] = ()) -> None:
        """Print a change in its current state."""
        document = self._as_json(change)
        if findings:
            document["findings"] = [_finding(finding) for finding in findings]
        self._write(document)

    def finding(self, finding: Finding) -> None:
        """Print a finding on a change that was printed before; `n` is its number."""
        self._write({"n": finding.number, "kind": "finding", **_finding(finding)})

    def _write(self, document: dict[str, Any]) -> None:
        sys.stdout.buffer.write(orjson.dumps(document, option=orjson.OPT_APPEND_NEWLINE))
        sys.stdout.buffer.flush()

    def end(
        self, recording: Recording, unanswered: list[Change], listed: list[Change], findings: int
    ) -> None:
        """Warn if the last line is torn."""
        warn_incomplete(recording.path, recording.torn)

    def _as_json(self, change: Change) -> dict[str, Any]:
        what, exchange = change.what, change.exchange
        if isinstance(what, Note):
            return {"n": change.number, "t": what.at, "kind": "note", "note": what.kind, **what.fields}
        if isinstance(what, Damaged):
            text = what.data.decode("utf-8", "backslashreplace")
            return {"n": change.number, "kind": "damaged", "why": what.why, "text": text}
        document: dict[str, Any] = {
            "n": change.number,
            "t": what.at,
            **({"stream": what.frame.stream} if what.frame.stream is not None else {}),
            "from": what.side,
            "kind": _KINDS[type(what)],
            "size": len(what.data),
        }
        if isinstance(what, Request | Notification):
            document |= {"method": what.method, "about": what.subject}
        elif exchange is not None:
            document |= {"method": exchange.request.method, "about": exchange.request.subject}
        if isinstance(what, Request | Result | Failure):
            document["id"] = orjson.Fragment(what.id) if what.id is not None else None
        if exchange is not None:
            document["exchange"] = exchange.number
            if isinstance(what, Result | Failure):
                document |= {
                    "latency": round(what.at - exchange.request.at, 6),
                    "status": str(exchange.state),
                }
            elif isinstance(what, Request) and exchange.answer is None and not exchange.is_open:
                document["status"] = str(exchange.state)  # No response will say it.
        if isinstance(what, Malformed):
            document["why"] = what.why
        if count := redacted(change):
            document["redacted"] = count
        if flaws := [*what.flaws, *([change.flaw] if change.flaw else [])]:
            document["flaws"] = flaws
        if self._verbose:
            document |= self._body(what.data)
        return document

    def _body(self, data: bytes) -> dict[str, Any]:
        """Return the message as JSON, or as text if it is not JSON."""
        spliced = fragment(data)
        return {"raw": data.decode("utf-8", "backslashreplace")} if spliced is None else {"msg": spliced}


def _finding(finding: Finding) -> dict[str, str]:
    """Return the fields of a finding as valid JSON: without lone surrogates."""
    fields = {
        "code": finding.code,
        "severity": str(finding.severity),
        "message": finding.message,
        "excerpt": finding.excerpt,
    }
    return {key: value.encode("utf-8", "backslashreplace").decode() for key, value in fields.items()}
