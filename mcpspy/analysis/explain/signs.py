"""The signs of causes: findings of lint, stderr, HTTP responses, failed requests, and the end."""

from __future__ import annotations

from collections import deque
from typing import Any

from msgspec import Struct

from mcpspy.analysis.explain.causes import BY_RULE, GAVE_UP, REVISION, START_SIGNS, TLS
from mcpspy.analysis.lint import EntryPosition, Finding, Severity
from mcpspy.core.protocol.message import Failure, Message, Notification, Request, Result
from mcpspy.core.protocol.spec import CLIENT, SERVER
from mcpspy.core.recording.decode import Note
from mcpspy.core.sanitize import sanitize
from mcpspy.core.session import outcome
from mcpspy.core.session.exchange import SUBSCRIBE, Exchange, State
from mcpspy.core.session.rule_notes import RULE
from mcpspy.core.session.session import Change
from mcpspy.errors import NOT_EXECUTABLE, NOT_FOUND

QUOTE = 200
"""Maximum characters of a quote."""

MOST = 10_000
"""Maximum number of signs of one cause that are kept while a session is read."""

STDERR = 200
"""Lines on stderr that are kept: the last ones."""

LAST_SECONDS = 2.0
"""Seconds before the end of the server whose lines on stderr explain it."""

PATIENCE = 1.0
"""Seconds after which a server should have ended that got the end of stdin, and before which no client gives up."""

ACTIONS = ("drop", "error", "respond", "replace", "corrupt", "disconnect", "hold", "timeout")
"""Actions of rules and viewers that a peer notices."""

AT_START = ("command-not-found", "permission-denied", "module-missing", "runtime-version", "configuration-missing", "start-failed")  # fmt: skip


class EvidenceLine(Struct, frozen=True):
    """A line of the recording that is a sign of a cause."""

    line: int
    """Line of its file; the header is line 1. 0 if there is none."""
    text: str
    """The sign, sanitized; at most `QUOTE` characters."""
    part: int = 1
    """Number of the session's file, from 1."""


class Signs:
    """The signs found so far, by cause, with what is needed to judge them at the end."""

    def __init__(self) -> None:
        self.found: dict[str, list[EvidenceLine]] = {}
        self.messages = self.requests = 0
        self.has_answered = False
        """The server has sent a message."""
        self.stderr: deque[tuple[float, EntryPosition, str]] = deque(maxlen=STDERR)
        self.last = EntryPosition()
        """Position of the last note."""
        self.asked: str | None = None
        """The revision that the client asked for."""
        self.closed_at: float | None = None
        """Time at which the client closed the server's stdin, if the server had not ended before."""
        self.is_ended = False
        """The server has closed its stdout."""
        self.waits_since: float | None = None
        """Time of the first request without a response."""
        self.places: dict[int, EntryPosition] = {}
        """Number of an exchange without a response → position of its request."""
        self.posted: dict[str, str] = {}
        """Number of an HTTP exchange without a response → the message that the client posted, in words."""
        self.refused: dict[tuple[str, str], list[EvidenceLine]] = {}
        """Cause and request, in words → HTTP responses that matter only if this request does not succeed later."""
        self.challenged = ""
        """The last request that lacked authorization."""
        self.statuses: dict[str, tuple[str, EvidenceLine]] = {}
        """A live HTTP exchange or a task → the cause and the sign of its status, unless an error follows."""
        self.at_work: dict[int, tuple[Exchange, EntryPosition]] = {}
        """Number of a call whose task has not ended → the call, and the position of its last message."""

    def add(self, cause: str, place: EntryPosition, text: str) -> None:
        _append(self.found.setdefault(cause, []), _evidence(place, text))

    def refuse(self, cause: str, request: str, place: EntryPosition, text: str) -> None:
        """Add a sign that `forget` removes."""
        _append(self.refused.setdefault((cause, request), []), _evidence(place, text))

    def forget(self, cause: str) -> None:
        """Remove the refusals for a cause: the client has begun again."""
        self.refused = {key: signs for key, signs in self.refused.items() if key[0] != cause}

    def wait(self, since: float) -> None:
        """Remember that a request had no response since then."""
        self.waits_since = since if self.waits_since is None else min(since, self.waits_since)

    def add_stderr(self, cause: str, since: float) -> None:
        """Add the last lines on stderr since a time, without the code and the places of stack traces."""
        said = [
            each for each in self.stderr if each[0] >= since and each[2].strip() and not each[2][0].isspace()
        ]
        for _, place, text in said[-3:]:
            self.add(cause, place, f"stderr: {text}")


def _evidence(place: EntryPosition, text: str) -> EvidenceLine:
    return EvidenceLine(place.line, sanitize(" ".join(text.split()))[:QUOTE], place.part)


def _append(signs: list[EvidenceLine], sign: EvidenceLine) -> None:
    if len(signs) < MOST:
        signs.append(sign)


def add_change(signs: Signs, change: Change, place: EntryPosition) -> None:
    """Add the signs of a message or a note."""
    what, exchange = change.what, change.exchange
    if isinstance(what, Note):
        _take_note(signs, what, exchange, place)
        return
    if not isinstance(what, Message):
        return
    signs.messages += 1
    if what.side == SERVER and isinstance(what, Request | Notification | Result | Failure):
        signs.has_answered = True
    if isinstance(what, Request | Notification):
        if what.side == CLIENT and what.frame.http is not None:
            signs.posted[str(what.frame.http)] = _about(what)
        _take_call(signs, what, exchange, place)
    elif isinstance(what, Result | Failure) and exchange is not None:
        signs.places.pop(exchange.number, None)
        signs.statuses.pop(str(what.frame.http), None)
        if change.is_error:
            call = exchange.poll_of or exchange
            signs.statuses.pop(_task(call), None)
            _take_failure(signs, what, call, place)
        elif isinstance(what, Result) and not what.is_tool_error:
            _take_handshake(signs, what, exchange.request, place)
    elif isinstance(what, Failure) and REVISION.search(what.text):  # Of a notification, or with the id null.
        signs.add("version-mismatch", place, f"error {what.code}: {what.text}")
    if exchange is not None and not isinstance(what, Request):
        _take_task(signs, exchange.poll_of or exchange, place)


def _take_task(signs: Signs, call: Exchange, place: EntryPosition) -> None:
    """Add the sign of a task that failed, and remember one that works."""
    if call.state is State.WORKING:
        signs.at_work[call.number] = call, place
        return
    had_worked = signs.at_work.pop(call.number, None) is not None
    if had_worked and call.is_counted and call.final is None and outcome.of(call.state).failed:
        sign = _evidence(place, f"{_about(call.request)}: {outcome.describe(call)[0]}")
        signs.statuses[_task(call)] = "request-failed", sign


def _task(call: Exchange) -> str:
    return f"task of {call.number}"


def add_unfinished(signs: Signs) -> None:
    """Add the signs of tasks that still work at the end."""
    for call, place in signs.at_work.values():
        if call.is_counted and outcome.of(call.state).unanswered:
            signs.wait(call.request.at)
            signs.add("no-response", place, f"{_about(call.request)}: {outcome.describe(call)[0]}")


def _take_call(
    signs: Signs, what: Request | Notification, exchange: Exchange | None, place: EntryPosition
) -> None:
    if isinstance(what, Notification):
        if what.method == "notifications/cancelled" and exchange is not None:
            _take_cancellation(signs, what, exchange, place)
        return
    signs.requests += 1
    if exchange is not None:
        signs.places[exchange.number] = place
    if what.method == "initialize":
        params = what.params
        asked = params.get("protocolVersion") if isinstance(params, dict) else None
        signs.asked = asked if isinstance(asked, str) else None
        signs.forget("session-lost")


def _take_handshake(signs: Signs, what: Result, request: Request, place: EntryPosition) -> None:
    """Add the sign of a revision that differs. The client may continue with one that both sides know."""
    if request.method not in ("initialize", "server/discover"):
        signs.refused.pop(("version-mismatch", "server/discover"), None)
        return
    result = what.result if isinstance(what.result, dict) else {}
    chosen, supported = result.get("protocolVersion"), result.get("supportedVersions")
    if request.method == "server/discover":
        if isinstance(supported, list) and request.revision not in (None, *supported):
            text = f"the client asked for {request.revision}, the server supports {', '.join(map(str, supported))}"
            signs.refuse("version-mismatch", request.method, place, text)
    elif signs.asked is not None and isinstance(chosen, str) and chosen < signs.asked:
        signs.add("downgrade", place, f"the client asked for {signs.asked}, the server chose {chosen}")


def _take_cancellation(signs: Signs, what: Notification, exchange: Exchange, place: EntryPosition) -> None:
    params = what.params
    reason = params.get("reason") if isinstance(params, dict) else None
    if isinstance(reason, str) and GAVE_UP.search(reason):
        waited = what.at - exchange.request.at
        signs.wait(exchange.request.at)
        signs.add(
            "timeout",
            place,
            f"{_about(exchange.request)} cancelled after {waited:.1f} s without a response: {reason}",
        )


def _take_failure(signs: Signs, what: Result | Failure, exchange: Exchange, place: EntryPosition) -> None:
    method, text = exchange.request.method, what.text
    code = what.code if isinstance(what, Failure) else None
    words = text.lower()
    if method == "server/discover" and code == -32601:  # The client continues with initialize.
        return
    if method == SUBSCRIBE and code == -32000:  # The end of the connection.
        return
    if REVISION.search(text) and code is not None:
        cause = "version-mismatch"
    elif code == -32601:
        cause = "method-not-found"
    elif GAVE_UP.search(text):
        cause = "timeout"
    elif method == "tools/call" and "tool" in words and ("unknown" in words or "not found" in words):
        cause = "unlisted-tool"
    elif code == -32602 or (
        method == "tools/call" and ("validation" in words or "invalid arguments" in words)
    ):
        cause = "invalid-arguments" if method == "tools/call" else "request-failed"
    else:
        cause = "request-failed"
    said = f"error {code}: {text}" if code is not None else f"tool error: {text}"
    signs.add(cause, place, f"{_about(exchange.request)}: {said}")


def _take_note(signs: Signs, note: Note, exchange: Exchange | None, place: EntryPosition) -> None:
    fields, signs.last = note.fields, place
    if note.kind == "stderr":
        signs.stderr.append((note.at, place, note.text))
    elif note.kind == "eof":
        if fields.get("from") == SERVER:
            signs.is_ended = True
        elif fields.get("from") == CLIENT and not signs.is_ended:
            signs.closed_at = note.at
    elif note.kind == "signal" and signs.closed_at is not None and note.at - signs.closed_at > PATIENCE:
        waited = note.at - signs.closed_at
        signs.add(
            "orphaned-process",
            place,
            f"the server still ran {waited:.1f} s after its stdin was closed; then {fields.get('signal')}",
        )
    elif note.kind == "error":
        text = str(fields.get("text", ""))
        is_missing = "No such file" in text or "not found" in text.lower()
        cause = "command-not-found" if is_missing else "start-failed"
        is_forbidden = "ermission" in text or "not executable" in text
        signs.add("permission-denied" if is_forbidden else cause, place, text)
    elif note.kind == RULE and fields.get("action") in ACTIONS:
        by = fields.get("rule") or fields.get("viewer") or "mcpspy"
        subject = " ".join(str(fields[name]) for name in ("method", "subject") if fields.get(name))
        signs.add("mcpspy-rule", place, f"{by}: {fields['action']} {subject}")
    elif note.kind == "http":
        _take_http(signs, fields, place)
    elif note.kind == "http-end":
        if (status := signs.statuses.pop(str(fields.get("http")), None)) is not None:
            _append(signs.found.setdefault(status[0], []), status[1])
        if exchange is not None and exchange.state is State.CANCELLED:
            _take_hang_up(signs, note, exchange, place)


def _take_hang_up(signs: Signs, note: Note, exchange: Exchange, place: EntryPosition) -> None:
    """Add the sign of a client that closed the connection of its request: since 2026-07-28, this cancels it."""
    request = exchange.request
    waited = note.at - request.at
    if waited >= PATIENCE and request.method != SUBSCRIBE:
        signs.wait(request.at)
        signs.add(
            "timeout", place, f"{_about(request)}: the client hung up after {waited:.1f} s without a response"
        )


def _take_http(signs: Signs, fields: dict[str, Any], place: EntryPosition) -> None:
    status, error, path = fields.get("status"), fields.get("error"), str(fields.get("path", ""))
    request, response = (
        value if isinstance(value := fields.get(name), dict) else {} for name in ("request", "response")
    )
    number, method = str(fields.get("http")), str(fields.get("method"))
    line, asked = f"{method} {path}: HTTP {status}", signs.posted.pop(number, method)
    if isinstance(error, str):
        signs.add("tls-failure" if TLS.search(error) else "upstream-unreachable", place, error)
    elif not isinstance(status, int):
        return
    elif status < 300:
        signs.refused.pop(("authorization", asked), None)
        if asked == "initialize":
            signs.forget("authorization")
        if asked in (signs.challenged, "initialize"):
            signs.challenged = ""
    elif status in (401, 403):
        challenge, signs.challenged = response.get("www-authenticate"), asked
        signs.refuse("authorization", asked, place, f"{line}; {challenge}" if challenge else line)
    elif status >= 400 and signs.challenged and asked == method:  # Metadata, registration or token.
        signs.refuse("authorization", signs.challenged, place, line)
    elif status == 404 and "mcp-session-id" in request:
        signs.refuse("session-lost", asked, place, f"{line}, with a session id")
    elif method == "POST" and status in (400, 404, 405):
        is_known = status == 400 or signs.has_answered
        signs.statuses[number] = "http-error" if is_known else "wrong-endpoint", _evidence(place, line)
    elif status == 429 or status >= 500 or (method == "POST" and status >= 400):
        signs.add("http-error", place, line)


def add_finding(signs: Signs, finding: Finding) -> None:
    """Add a finding of lint, if it is the sign of a cause."""
    cause = BY_RULE.get(finding.code)
    if cause is None:
        if finding.severity is not Severity.ERROR:
            return
        cause = "protocol-violation"
    if finding.code == "LIFE404" and signs.closed_at is not None:  # It ended because the client wanted it to.
        return
    if finding.code == "LIFE201":
        signs.wait(finding.at)
    quote = f" | {finding.excerpt}" if finding.excerpt else ""
    signs.add(cause, finding.place, f"{finding.code} {finding.message}{quote}")


def add_exit(signs: Signs, note: Note) -> None:
    """Add the signs of the end: a server that did not start, or the last lines on stderr before a crash."""
    code, signal = (note.fields.get(name) for name in ("code", "signal"))
    if signs.has_answered:
        if signal is not None and signs.closed_at is None:
            signs.add("crash", signs.last, f"the server was ended by {signal}")
        if "crash" in signs.found:
            signs.add_stderr("crash", note.at - LAST_SECONDS)
        return
    if code == 0 and not signs.requests:
        return  # There was no request.
    if signs.closed_at is not None and (code == 0 or signal is not None):
        return  # The client ended it before a response.
    if any(cause in signs.found for cause in AT_START if cause != "start-failed"):
        return
    for cause, pattern in START_SIGNS.items():
        if found := [each for each in signs.stderr if pattern.search(each[2])]:
            for _, place, text in found:
                signs.add(cause, place, f"stderr: {text}")
            return
    by_code: dict[object, str] = {NOT_FOUND: "command-not-found", NOT_EXECUTABLE: "permission-denied"}
    cause = by_code.get(code, "start-failed")
    signs.add(cause, signs.last, f"exit code {code}" if signal is None else f"ended by {signal}")
    signs.add_stderr(cause, note.at - LAST_SECONDS)


def _about(call: Request | Notification) -> str:
    return f"{call.method} {call.subject or ''}".strip()
