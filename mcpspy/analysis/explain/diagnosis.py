"""The diagnosis of a session: collects the signs of causes in one pass, and ranks the causes.

A sign is a finding of lint, a line on stderr, an HTTP response, a failed request or the end of the server. Causes are in
the order of `causes.CAUSES`; those that another cause brings about are left out.
"""

from __future__ import annotations

from collections import deque
from typing import Any, NamedTuple

from msgspec import Struct

from mcpspy.analysis.explain.causes import BY_RULE, CAUSES, GAVE_UP, REVISION, START_SIGNS, TLS
from mcpspy.analysis.lint import EntryPosition, Finding, Linter, Severity, StreamingSession
from mcpspy.analysis.lint.host_profiles import HostProfile
from mcpspy.core.protocol.message import Failure, Message, Notification, Request, Result
from mcpspy.core.protocol.spec import CLIENT, SERVER
from mcpspy.core.recording.decode import Entry, Header, Note
from mcpspy.core.sanitize import sanitize
from mcpspy.core.session.exchange import SUBSCRIBE, Exchange
from mcpspy.core.session.rule_notes import RULE
from mcpspy.core.session.session import Change
from mcpspy.errors import NOT_EXECUTABLE, NOT_FOUND

QUOTE = 200
"""Maximum characters of a quote."""

MOST = 10_000
"""Maximum number of signs of one cause that are kept while a session is read."""

SHOWN = 5
"""Maximum number of signs of one cause that are kept as evidence."""

STDERR = 200
"""Lines on stderr that are kept: the last ones."""

LAST_SECONDS = 2.0
"""Seconds before the end of the server whose lines on stderr explain it."""

PATIENCE = 1.0
"""Seconds after which a server should have ended that got the end of stdin."""

ACTIONS = ("drop", "error", "respond", "replace", "corrupt", "disconnect", "hold", "timeout")
"""Actions of rules and viewers that a peer notices."""

AT_START = ("command-not-found", "permission-denied", "module-missing", "runtime-version", "configuration-missing", "start-failed")  # fmt: skip

_NO_START = (
    "crash",
    "timeout",
    "stdout-noise",
    "no-response",
    "orphaned-process",
    "handshake",
    "protocol-violation",
)
_OF_CRASH = ("no-response", "orphaned-process", "handshake", "protocol-violation")

CONSEQUENCES: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(AT_START[:-1], ("start-failed", *_NO_START)),
    "start-failed": _NO_START,
    **dict.fromkeys(
        ("tls-failure", "upstream-unreachable", "authorization", "session-lost"),
        ("wrong-endpoint", "http-error", "request-failed", "invalid-result", *_OF_CRASH),
    ),
    "wrong-endpoint": ("http-error", "request-failed", *_OF_CRASH),
    "version-mismatch": ("http-error", "request-failed", "downgrade", *_OF_CRASH),
    "mcpspy-rule": ("request-failed", "timeout", "message-cut", "stdout-noise", "http-error", *_OF_CRASH),
    "crash": _OF_CRASH,
    "message-cut": ("stdout-noise", "timeout", *_OF_CRASH),
    "stdout-noise": ("protocol-violation",),
    "timeout": ("no-response", "orphaned-process"),
    "no-response": ("orphaned-process",),
    "http-error": ("request-failed", *_OF_CRASH),
    "capability-missing": ("method-not-found", "request-failed"),
    "unlisted-tool": ("request-failed", "invalid-arguments"),
    "invalid-arguments": ("request-failed",),
    "method-not-found": ("request-failed",),
    "schema-dropped": ("invalid-result", "protocol-violation"),
}
"""Cause → the causes that are reported only without it."""

OF_REQUEST = ("no-response", "timeout", "crash", "stdout-noise", "message-cut", "mcpspy-rule", "upstream-unreachable", "tls-failure", "authorization", "session-lost", "http-error", *AT_START)  # fmt: skip
"""Causes, also on later lines, because of which a request has no response."""


class EvidenceLine(Struct, frozen=True):
    """A line of the recording that is a sign of a cause."""

    line: int
    """Line of its file; the header is line 1. 0 if there is none."""
    text: str
    """The sign, sanitized; at most `QUOTE` characters."""
    part: int = 1
    """Number of the session's file, from 1."""


class Cause(Struct, frozen=True):
    code: str
    """Its name in `CAUSES`."""
    title: str
    detail: str
    """The first sign in words."""
    evidence: tuple[EvidenceLine, ...]
    count: int
    """Number of signs, also of those that are not in `evidence`; at most `MOST`."""
    next_step: str


class LastGood(Struct, frozen=True):
    """The last session of the server that had no error, and what changed since then."""

    session: str
    """Its id."""
    started: str
    changes: tuple[EvidenceLine, ...]
    """Differences of definitions, capabilities, versions, outcomes and latency; the most relevant first."""
    count: int
    """Number of differences, also of those that are not in `changes`."""
    known: tuple[str, ...]
    """Codes of the causes that the good session has too."""


class Diagnosis(Struct, frozen=True):
    summary: str
    causes: tuple[Cause, ...]
    """The most likely one first."""
    last_good: LastGood | None = None


class _Refusal(NamedTuple):
    cause: str
    place: EntryPosition
    text: str
    request: str
    """Method of the refused message and its subject, or the method of HTTP."""


class _Signs:
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
        """Time at which the client closed the server's stdin."""
        self.waits_since: float | None = None
        """Time of the first request without a response."""
        self.places: dict[int, EntryPosition] = {}
        """Number of an exchange without a response → position of its request."""
        self.posted: dict[str, str] = {}
        """Number of an HTTP exchange without a response → the message that the client posted, in words."""
        self.refused: list[_Refusal] = []
        """HTTP responses that matter only if the client does not succeed after them."""

    def add(self, cause: str, place: EntryPosition, text: str) -> None:
        signs = self.found.setdefault(cause, [])
        if len(signs) < MOST:
            signs.append(_evidence(place, text))

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

    def ranked(self, related: set[int] | None) -> tuple[Cause, ...]:
        """Return the causes with signs, the first in `CAUSES` first, without consequences of others."""
        found = {code: [*every] for code, every in self.found.items()}
        for refusal in self.refused:
            found.setdefault(refusal.cause, []).append(_evidence(refusal.place, refusal.text))
        if related is not None:
            first = min(related)
            is_open = any(place.line in related for place in self.places.values())
            found = {
                code: kept
                for code, every in found.items()
                if (
                    kept := [
                        each
                        for each in every
                        if each.line in related or (is_open and code in OF_REQUEST and each.line >= first)
                    ]
                )
            }
        left_out = {consequence for code in found for consequence in CONSEQUENCES.get(code, ())}
        return tuple(_cause(code, found[code]) for code in CAUSES if code in found and code not in left_out)


def _evidence(place: EntryPosition, text: str) -> EvidenceLine:
    return EvidenceLine(place.line, sanitize(" ".join(text.split()))[:QUOTE], place.part)


def _cause(code: str, signs: list[EvidenceLine]) -> Cause:
    kind = CAUSES[code]
    evidence = tuple(dict.fromkeys(signs))
    return Cause(code, kind.title, evidence[0].text, evidence[:SHOWN], len(evidence), kind.next_step)


class Explainer:
    """Explains a session while it is read: entries in, a diagnosis out."""

    def __init__(self, header: Header, hosts: tuple[HostProfile, ...] | None = None) -> None:
        """`hosts` are the hosts whose limits count; None for those that `clientInfo` names."""
        self._session, self._linter = StreamingSession(header), Linter(header, hosts=hosts)
        self._signs = _Signs()
        self._is_stdio = header.transport == "stdio"

    def add(self, entry: Entry, place: EntryPosition) -> list[int]:
        """Add the next entry; return the numbers of the exchanges to which its messages belong."""
        exchanges = []
        for change in self._session.add(entry):
            if change.exchange is not None:
                exchanges.append(change.exchange.number)
            _take(self._signs, change, place)
            for finding in self._linter.add(change, place):
                _take_finding(self._signs, finding)
        return exchanges

    def end(self) -> None:
        """Add what is known at the end of a session that is not live."""
        self._session.end()
        for finding in self._linter.end():
            _take_finding(self._signs, finding)
        if self._session.exit is not None and self._is_stdio:
            _take_exit(self._signs, self._session.exit)
        if self._signs.waits_since is not None:
            for cause in ("timeout", "no-response"):
                if cause in self._signs.found:
                    self._signs.add_stderr(cause, self._signs.waits_since)

    def diagnosis(self, lines: set[int] | None = None) -> Diagnosis:
        """Return the causes: all, or those of the exchange on these lines of the first file."""
        signs = self._signs
        causes = signs.ranked(lines)
        if causes:
            rest = f" (and {len(causes) - 1} more)" if len(causes) > 1 else ""
            return Diagnosis(f"{causes[0].title}{rest}", causes)
        about = f"in {signs.messages:,} messages" if lines is None else f"with line {min(lines)}"
        return Diagnosis(f"nothing wrong found {about}", ())


def _take(signs: _Signs, change: Change, place: EntryPosition) -> None:
    what, exchange = change.what, change.exchange
    if isinstance(what, Note):
        _take_note(signs, what, place)
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
        if isinstance(what, Failure) or what.is_tool_error:
            _take_failure(signs, what, exchange, place)
        elif exchange.request.method == "initialize":
            _take_handshake(signs, what, place)
    elif isinstance(what, Failure) and REVISION.search(what.text):  # Of a notification, or with the id null.
        signs.add("version-mismatch", place, f"error {what.code}: {what.text}")


def _take_call(
    signs: _Signs, what: Request | Notification, exchange: Exchange | None, place: EntryPosition
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
        signs.refused = [each for each in signs.refused if each.cause != "session-lost"]


def _take_handshake(signs: _Signs, what: Result, place: EntryPosition) -> None:
    chosen = what.result.get("protocolVersion") if isinstance(what.result, dict) else None
    if signs.asked is not None and isinstance(chosen, str) and chosen < signs.asked:
        signs.add("downgrade", place, f"the client asked for {signs.asked}, the server chose {chosen}")


def _take_cancellation(signs: _Signs, what: Notification, exchange: Exchange, place: EntryPosition) -> None:
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


def _take_failure(signs: _Signs, what: Result | Failure, exchange: Exchange, place: EntryPosition) -> None:
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


def _take_note(signs: _Signs, note: Note, place: EntryPosition) -> None:
    fields, signs.last = note.fields, place
    if note.kind == "stderr":
        signs.stderr.append((note.at, place, note.text))
    elif note.kind == "eof" and fields.get("from") == CLIENT:
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


def _take_http(signs: _Signs, fields: dict[str, Any], place: EntryPosition) -> None:
    status, error, path = fields.get("status"), fields.get("error"), str(fields.get("path", ""))
    request, response = (
        value if isinstance(value := fields.get(name), dict) else {} for name in ("request", "response")
    )
    line = f"{fields.get('method')} {path}: HTTP {status}"
    asked = signs.posted.pop(str(fields.get("http")), str(fields.get("method")))
    if isinstance(error, str):
        signs.add("tls-failure" if TLS.search(error) else "upstream-unreachable", place, error)
    elif not isinstance(status, int):
        return
    elif status < 300:
        signs.refused = [
            each
            for each in signs.refused
            if each.cause != "authorization" or asked not in (each.request, "initialize")
        ]
    elif status in (401, 403):
        challenge = response.get("www-authenticate")
        text = f"{line}; {challenge}" if challenge else line
        signs.refused.append(_Refusal("authorization", place, text, asked))
    elif status >= 400 and signs.refused and signs.refused[-1].cause == "authorization":
        # Metadata, registration or token, for the request that was refused.
        signs.refused.append(_Refusal("authorization", place, line, signs.refused[-1].request))
    elif status == 404 and "mcp-session-id" in request:
        signs.refused.append(_Refusal("session-lost", place, f"{line}, with a session id", asked))
    elif fields.get("method") == "POST" and status in (404, 405):
        signs.add("wrong-endpoint", place, line)
    elif status == 429 or status >= 500 or (fields.get("method") == "POST" and status >= 400):
        signs.add("http-error", place, line)


def _take_finding(signs: _Signs, finding: Finding) -> None:
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


def _take_exit(signs: _Signs, note: Note) -> None:
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
