"""A session as `mcpspy show` prints it: lines for people, objects for programs.

Owns the columns, what is counted on the way, and the last lines. What is
printed, and when, is `show`'s.
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
from mcpspy.ui.terminal import Output, columns, warn_torn

if TYPE_CHECKING:
    from mcpspy.analysis.lint import Finding

_METHOD, _ABOUT, _STATUS = 30, 34, 24
"""Columns of the three that differ, where there is room; the rest are as wide as their numbers."""

_HEADS = ("time", "", "method", "about", "id", "latency", "size", "status")
_KINDS = {
    Request: "request",
    Notification: "notification",
    Result: "result",
    Failure: "failure",
    Malformed: "malformed",
}


def stream(change: Change) -> str:
    """Return the HTTP stream that something belongs to."""
    what = change.what
    if isinstance(what, Note):
        return sanitize(str(what.fields.get("stream", "")))
    return "" if isinstance(what, Damaged) else sanitize(what.frame.stream or "")


def redacted(change: Change) -> int:
    """Return how many values of a message are placeholders of secrets."""
    what = change.what
    return 0 if isinstance(what, Note | Damaged) else len(PLACEHOLDER.findall(what.data))


def widths(terminal: int, arrow: int = 1) -> tuple[int, ...]:
    """Return the columns of each cell, so that the status is still seen on a narrow terminal."""
    method, about = _METHOD, _ABOUT
    if terminal:
        room = max(terminal - (8 + arrow + 6 + 9 + 6 + 7 * 2) - _STATUS, 20)
        method = min(method, max(12, room // 2))
        about = max(min(about, room - method), 8) if room < method + about else room - method
    return (-8, arrow, method, about, 6, -9, -6, 0)


class TextFormatter:
    """For people."""

    def __init__(self, session: Session, *, verbose: bool, is_filtered: bool) -> None:
        self._session = session
        self._is_filtered = is_filtered
        self._verbose = verbose
        self._output = Output()
        self._flaws = 0
        self._redacted = 0
        self._shown = 0
        # Several clients may talk through one HTTP proxy: the stream tells them apart.
        self._shows_stream = session.header is not None and session.header.transport == "http"
        self._widths = widths(self._output.width, 5 if self._shows_stream else 1)

    def begin(self) -> None:
        """Print whose session it is, and the heads of the columns."""
        header = self._session.header
        assert header is not None
        what = " ".join(header.command) if header.command else header.upstream or ""
        kept = " · secrets and all (--no-redact)" if header.redacted is False else ""
        self._output.line(
            f"{sanitize(header.name)} · {sanitize(header.id)} · {sanitize(header.started)} · {sanitize(what)}{kept}"
        )
        self._output.line(columns(_HEADS, self._widths), rows.QUIET)

    def change(self, change: Change, *, shown: bool, findings: Sequence[Finding] = ()) -> None:
        """Count what an entry did, and print it if it is wanted, with what is wrong with it."""
        said = rows.row(change)
        self._flaws += said.tone == rows.ODD and not isinstance(change.what, Note)
        self._redacted += redacted(change)
        # As it comes, a request has no outcome yet; its answer's line will say it.
        if isinstance(change.what, Request) and not change.flaw and not change.what.flaws:
            said = said._replace(status="")
        if shown:
            self._print(change, said, findings)

    def line(self, change: Change, findings: Sequence[Finding] = ()) -> None:
        """Print a change that was counted before, as things stand now."""
        self._print(change, rows.row(change), findings)

    def finding(self, finding: Finding) -> None:
        """Print what is wrong with a change that was printed before."""
        about = rows.row(self._session.changes[finding.number])
        self._found(finding, f" ({about.method} at {about.time})")

    def _found(self, finding: Finding, about: str = "") -> None:
        from mcpspy.ui.report.lint_text import brief

        text, tone = brief(finding)
        self._output.line(f"{'':8}  {text}{about}", tone)

    def _print(self, change: Change, said: rows.Row, findings: Sequence[Finding]) -> None:
        self._shown += 1
        arrow = f"{stream(change):>3} {said.arrow}" if self._shows_stream else said.arrow
        cells = (
            said.time,
            arrow,
            said.method,
            said.subject,
            said.id,
            said.latency,
            said.size,
            said.status,
        )
        line = columns(cells, self._widths)
        if said.arrow == rows.ASIDE:  # A note has one thing to say, and may use the whole line.
            noted = (said.time, arrow, said.method, said.subject, said.status)
            line = columns(noted, (*self._widths[:2], 8 if self._shows_stream else 6, 0, 0))
        self._output.line(line, None if said.tone == rows.OK else said.tone)
        for finding in findings:
            self._found(finding)
        if self._verbose and not isinstance(change.what, Note | Damaged):
            for line in pretty(change.what.data):
                self._output.line("          " + line)

    def end(self, recording: Recording, left: list[Change], listed: list[Change], findings: int) -> None:
        """Print the summary: the requests `left` without an answer are counted, `listed` ones are named."""
        session, output = self._session, self._output
        parties = [
            f"{self._shown} of {len(session.changes)} lines" if self._is_filtered else "",
            f"{session.client} → {session.server or '?'}" if session.client else "",
            f"protocol {session.revision}" if session.revision else "",
            f"{len(session.exchanges)} requests",
            f"{sum(rows.has_failed(e) for e in session.exchanges)} failed",
            f"{len(left)} unanswered" if left else "",
            f"{self._flaws} odd" if self._flaws else "",
            f"{findings} finding{'s'[: findings != 1]}" if findings else "",
            f"{self._redacted} values redacted" if self._redacted else "",
            {RecordingState.LIVE: "live", RecordingState.DIED: "died: it has no exit note"}.get(
                recording.state, ""
            )
            or rows.ending(session.exit),
        ]
        output.line()
        output.line(sanitize(" · ".join(part for part in parties if part)))
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
                rows.ODD,
            )


class JsonFormatter:
    """For programs."""

    def __init__(self, verbose: bool) -> None:
        self._verbose = verbose

    def begin(self) -> None:
        """There is no heading."""

    def change(self, change: Change, *, shown: bool, findings: Sequence[Finding] = ()) -> None:
        """Print what an entry did, if it is wanted."""
        if shown:
            self.line(change, findings)

    def line(self, change: Change, findings: Sequence[Finding] = ()) -> None:
        """Print a change, as things stand now."""
        said = self._as_json(change)
        if findings:
            said["findings"] = [_finding(finding) for finding in findings]
        self._write(said)

    def finding(self, finding: Finding) -> None:
        """Print what is wrong with a change that was printed before; `n` is its number."""
        self._write({"n": finding.number, "kind": "finding", **_finding(finding)})

    def _write(self, said: dict[str, Any]) -> None:
        sys.stdout.buffer.write(orjson.dumps(said, option=orjson.OPT_APPEND_NEWLINE))
        sys.stdout.buffer.flush()

    def end(self, recording: Recording, left: list[Change], listed: list[Change], findings: int) -> None:
        """Say on stderr what is amiss with the file."""
        warn_torn(recording.path, recording.torn)

    def _as_json(self, change: Change) -> dict[str, Any]:
        what, exchange = change.what, change.exchange
        if isinstance(what, Note):
            return {"n": change.number, "t": what.at, "kind": "note", "note": what.kind, **what.fields}
        if isinstance(what, Damaged):
            text = what.data.decode("utf-8", "backslashreplace")
            return {"n": change.number, "kind": "damaged", "why": what.why, "text": text}
        said: dict[str, Any] = {
            "n": change.number,
            "t": what.at,
            **({"stream": what.frame.stream} if what.frame.stream is not None else {}),
            "from": what.side,
            "kind": _KINDS[type(what)],
            "size": len(what.data),
        }
        if isinstance(what, Request | Notification):
            said |= {"method": what.method, "about": what.subject}
        elif exchange is not None:
            said |= {"method": exchange.request.method, "about": exchange.request.subject}
        if isinstance(what, Request | Result | Failure):
            said["id"] = orjson.Fragment(what.id) if what.id is not None else None
        if exchange is not None:
            said["exchange"] = exchange.number
            if isinstance(what, Result | Failure):
                said |= {"latency": round(what.at - exchange.request.at, 6), "status": str(exchange.state)}
            elif isinstance(what, Request) and exchange.answer is None and not exchange.is_open:
                said["status"] = str(exchange.state)  # No answer will say it.
        if isinstance(what, Malformed):
            said["why"] = what.why
        if count := redacted(change):
            said["redacted"] = count
        if flaws := [*what.flaws, *([change.flaw] if change.flaw else [])]:
            said["flaws"] = flaws
        if self._verbose:
            said |= self._body(what.data)
        return said

    def _body(self, data: bytes) -> dict[str, Any]:
        """Return the body as it was, if that is JSON, else as text."""
        spliced = fragment(data)
        return {"raw": data.decode("utf-8", "backslashreplace")} if spliced is None else {"msg": spliced}


def _finding(finding: Finding) -> dict[str, str]:
    """Return what `n` of the message does not say; lone surrogates have no place in JSON."""
    said = {
        "code": finding.code,
        "severity": str(finding.severity),
        "message": finding.message,
        "excerpt": finding.excerpt,
    }
    return {key: value.encode("utf-8", "backslashreplace").decode() for key, value in said.items()}
