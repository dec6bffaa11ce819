"""The facts of a session: its symptoms, and their surroundings.

They are gathered in one pass, and name no cause.

Memory is bounded: an open request has a record, and requests that failed in the same way are one symptom.
"""

from __future__ import annotations

import re
from collections import Counter, deque
from collections.abc import Iterator
from typing import Any, NamedTuple, TypeVar

from msgspec import DecodeError, Struct, field, json

from mcpspy.analysis.explain.evidence import EvidenceLine, PrintedLine, evidence, named_error
from mcpspy.analysis.explain.http_facts import HttpFacts
from mcpspy.analysis.explain.listed_facts import ListedFacts
from mcpspy.analysis.explain.side_facts import (
    MAX_ODD_LINES,
    SentText,
    SideFacts,
    about_message,
    about_request,
)
from mcpspy.analysis.explain.symptoms import (
    ClientLeft,
    FailedRequest,
    IgnoredResponse,
    RefusedExchange,
    ServerEnd,
    Symptom,
    Violation,
)
from mcpspy.analysis.lint.finding import EntryPosition, Finding
from mcpspy.core.protocol.message import (
    Failure,
    Malformed,
    Message,
    Notification,
    Request,
    Result,
)
from mcpspy.core.protocol.plain_line import UnreadNotification, UnreadRequest, UnreadResult
from mcpspy.core.protocol.refusal import ACCEPTED
from mcpspy.core.protocol.spec import CLIENT, SERVER, other
from mcpspy.core.recording.decode import Header, Note
from mcpspy.core.session import outcome
from mcpspy.core.session.exchange import Exchange, State
from mcpspy.core.session.rule_notes import ABOUT_MESSAGES, NOTICED, words
from mcpspy.core.session.session import Change, is_injected
from mcpspy.core.session.streaming import FinalOutcomes, StreamingSession

MAX_SYMPTOMS = 500
"""Kinds of failures that are distinguished; more are counted with the last one of their state."""

MAX_STDERR = 300
"""Lines on stderr that are kept: the last ones, and as many of the first seconds."""

MAX_SLOW = 200
"""Calls that waited and that are kept."""

MAX_ANSWERED = 64
"""Answered requests that are kept, to recognise a cancellation after the response."""

PATIENCE = 1.0
"""Seconds before which no client gives up a request."""

LAST_SECONDS = 5.0
"""Seconds before the end of the server whose lines on stderr explain it."""

GAVE_UP = re.compile(r"(?i)time[d -]*out|deadline|-32001")
BY_USER = re.compile(r"(?i)\buser\b|interrupt|\besc\b|stopped by|cancel button")

_VOLATILE = re.compile(r"\b[0-9a-fA-F]{8}-[0-9a-fA-F-]{27}\b|\b[0-9a-f]{12,}\b|\d+(?:\.\d+)?")

# Each message passes here: `A | B` in a call makes a new union, and reading a member of an Enum runs Python code.
_UNREAD = (UnreadRequest, UnreadNotification, UnreadResult)
_OK, _PENDING = State.OK, State.PENDING
_NOTHING: list[Finding] = []

S = TypeVar("S", bound=Symptom)


class SlowCall(NamedTuple):
    """A call that was answered after more than `PATIENCE`."""

    asked_at: float
    answer_at: float
    place: EntryPosition
    about: str


class _Open(Struct):
    """A request whose outcome is not final."""

    exchange: Exchange
    place: EntryPosition
    is_first: bool
    has_token: bool
    findings: list[Finding] = field(default_factory=list)
    words: str = ""
    code: int | None = None
    answer_at: float | None = None
    answer_place: EntryPosition | None = None
    cancelled_by: str = ""
    reason: str = ""
    cancel_at: float | None = None
    cancel_place: EntryPosition | None = None
    progress: int = 0
    progress_at: float | None = None
    """Time of the first progress."""
    waiting: list[str] = field(default_factory=list)
    effects: list[str] = field(default_factory=list)
    carrier: RefusedExchange | None = None
    """The HTTP exchange that carried it, once it has ended, if it is not an ordinary one."""

    def add_notification(self, what: Notification, place: EntryPosition) -> None:
        if what.method == "notifications/progress":
            self.progress += 1
            self.progress_at = what.at if self.progress_at is None else self.progress_at
        elif what.method == "notifications/cancelled" and self.cancel_at is None:
            params = what.params
            reason = params.get("reason") if isinstance(params, dict) else None
            self.cancelled_by, self.cancel_at, self.cancel_place = what.side, what.at, place
            self.reason = reason if isinstance(reason, str) else ""


class Facts:
    """Collects the facts: changes of a session with their findings in, symptoms out."""

    def __init__(
        self, header: Header, session: StreamingSession, focus: frozenset[int] = frozenset()
    ) -> None:
        """`focus` are the numbers of the exchanges that are to be explained, each for itself."""
        self.header, self.session, self.focus = header, session, focus
        self.is_stdio = header.transport == "stdio"
        self.sides = {CLIENT: SideFacts(), SERVER: SideFacts()}
        self.symptoms: list[Symptom] = []
        self.stderr: deque[PrintedLine] = deque(maxlen=MAX_STDERR)
        self.first_stderr: list[PrintedLine] = []
        self.notes: dict[str, list[tuple[Note, EntryPosition]]] = {}
        """Kind → notes that are neither of HTTP exchanges nor stderr, at most `MAX_ODD_LINES` of each."""
        self.http = HttpFacts()
        self.findings: dict[str, Violation] = {}
        """Code of a rule and side → its findings."""
        self.listed = ListedFacts()
        self.sent_text = SentText()
        self.held_back: EvidenceLine | None = None
        """A call whose progress came all at once, with its response."""
        self.slow: list[SlowCall] = []
        self.answered: Counter[tuple[str, str]] = Counter()
        """Side and method → number of its requests that got a result."""
        self.exit: Note | None = None
        self.exit_place = EntryPosition()
        self.last_at = 0.0
        self._outcomes = FinalOutcomes()
        self._open: dict[int, _Open] = {}
        self._last_failed: FailedRequest | None = None
        self._succeeded: deque[_Open] = deque(maxlen=MAX_ANSWERED)
        """The latest requests that got a result."""
        self._failed: dict[tuple[object, ...], FailedRequest] = {}
        self._by_request: dict[tuple[str, str, str], list[FailedRequest]] = {}

    @property
    def client(self) -> SideFacts:
        return self.sides[CLIENT]

    @property
    def server(self) -> SideFacts:
        return self.sides[SERVER]

    def of(self, kind: type[S]) -> list[S]:
        """Return the symptoms of a kind, in the order in which they began."""
        return [each for each in self.symptoms if isinstance(each, kind)]

    def failed(self, *states: State) -> list[FailedRequest]:
        """Return the requests that failed; in these states, if any are given."""
        return [each for each in self.of(FailedRequest) if not states or each.state in states]

    def violations(self, *codes: str, side: str = "") -> list[Violation]:
        """Return the findings of these rules, each with its count."""
        return [
            each for each in self.findings.values() if each.code in codes and (not side or each.side == side)
        ]

    def add(self, change: Change, place: EntryPosition, findings: list[Finding]) -> None:
        """Add a change with the findings of its lines."""
        what, exchange = change.what, change.exchange
        at = what.at
        self.last_at = max(self.last_at, at)
        if findings and not self._is_refusal(what):
            for finding in findings:
                self.add_finding(finding)
        if isinstance(what, Note):
            self._add_note(what, place, change)
        elif isinstance(what, Message) and not is_injected(change):
            self._add_message(what, change, place, findings)
        for settled in self._outcomes.take(change):
            self._settle(settled)
        if exchange is not None:
            for settled in self._outcomes.overdue(at):
                self._settle(settled)

    def add_ordinary(self, change: Change, place: EntryPosition) -> bool:
        """Count an ordinary message without findings; return False for another one, which is to be passed to `add`.

        It is a request of the client, or its progress or its result in time, without anything else to say about it.
        """
        what, exchange = change.what, change.exchange
        if exchange is None or not isinstance(what, _UNREAD):
            return False
        frame, number = what.frame, exchange.number
        at = frame.at
        if self._outcomes.since and self._outcomes.is_late(at):
            return False
        if isinstance(what, UnreadRequest):
            if frame.side != CLIENT:
                return False
            self.last_at = max(self.last_at, at)
            self.client.add(what, exchange, place, _NOTHING, is_refusal=False)
            if frame.http is not None:
                self.http.post(frame.http, about_request(exchange), number)
            has_token = b"rogress" in what.data and what.progress_token is not None
            self._open[number] = _Open(exchange, place, not self.answered, has_token)
            self._outcomes.open(exchange)
            if what.method == "tools/call":
                self.sent_text.add_sent(what.data)
            return True
        request, known = exchange.request, self._open.get(number)
        if (
            known is None
            or frame.side != SERVER
            or request.frame.by is not None
            or (frame.http is not None and self._is_refusal(what))
        ):
            return False
        if isinstance(what, UnreadNotification):
            if exchange.state is not _PENDING or what.method != "notifications/progress":
                return False
            known.add_notification(what, place)
        elif (
            exchange.state is not _OK
            or at - request.frame.at >= PATIENCE
            or self._by_request
            or request.method.endswith("/list")
            or self.listed.apps.concerns(request)
        ):
            return False
        else:
            known.answer_at, known.answer_place = at, place
            del self._open[number]
            self._outcomes.close(exchange)
            self.sent_text.add_received(what.data, place)
            self.answered[CLIENT, request.method] += 1
            self._succeeded.append(known)
        self.last_at = max(self.last_at, at)
        self.server.add(what, exchange, place, _NOTHING, is_refusal=False)
        return True

    def _is_refusal(self, what: object) -> bool:
        """Return whether a message is the body of a refused HTTP request, which need not be a response of JSON-RPC."""
        if not isinstance(what, Message) or what.frame.http is None or what.side == CLIENT:
            return False
        exchange = self.http.of(what.frame.http)
        return exchange is not None and (exchange.status or 0) >= 300

    def add_finding(self, finding: Finding) -> None:
        key = f"{finding.code} {finding.side}"
        if (known := self.findings.get(key)) is None:
            known = self.findings[key] = Violation(
                at=finding.at, place=finding.place, code=finding.code, side=finding.side, count=0
            )
        known.count += 1
        if len(known.findings) < MAX_ODD_LINES:
            known.findings.append(finding)
            excerpt = f" | {finding.excerpt}" if finding.excerpt else ""
            known.add_line(evidence(finding.place, f"{finding.code} {finding.message}{excerpt}"))

    def end(self) -> None:
        """Add what is known at the end of a session that is not live, after the session's own end."""
        for settled in self._outcomes.end():
            self._settle(settled)
        self._add_server_end()
        self._add_client_left()
        self.symptoms += self.http.refusals()
        self.symptoms.sort(key=lambda symptom: (symptom.at, symptom.place))

    # Messages

    def _add_message(
        self, what: Message, change: Change, place: EntryPosition, findings: list[Finding]
    ) -> None:
        exchange, side, is_refusal = change.exchange, self.sides[what.side], self._is_refusal(what)
        if isinstance(what, Malformed):
            posted = self.http.posted.get(what.frame.http or 0)
            answers_notification = what.side == SERVER and posted is not None and posted.number is None
            side.add_odd(what, place, is_refusal=is_refusal or answers_notification)
            return
        if is_refusal and (carrier := self.http.of(what.frame.http or 0)) is not None:
            if isinstance(what, Failure):
                carrier.words = carrier.words or what.text
            if carrier.method == "GET":
                return
        side.add(what, exchange, place, findings, is_refusal=is_refusal)
        if what.frame.http is not None and what.side == CLIENT and isinstance(what, Request | Notification):
            number = exchange.number if isinstance(what, Request) and exchange is not None else None
            self.http.post(what.frame.http, about_message(what, exchange), number)
        if exchange is None:
            return
        if isinstance(what, Request) and what.method == "tools/call":
            self.sent_text.add_sent(what.data)
        elif isinstance(what, Result) and what.side == SERVER:
            self.sent_text.add_received(what.data, place)
        if change.opened is not None and exchange.poll_of is None:
            self._open_request(exchange, place)
        call = exchange.poll_of or exchange
        if (known := self._open.get(call.number)) is not None:
            known.findings += findings
            self._add_to_request(what, call, known, place)
        elif isinstance(what, Notification):
            self._add_after_result(what, call, place)

    def _add_after_result(self, what: Notification, call: Exchange, place: EntryPosition) -> None:
        """Add a notification about a request that has its result."""
        known = next((known for known in self._succeeded if known.exchange is call), None)
        if known is not None:
            self._succeeded.remove(known)
            known.add_notification(what, place)
            self._add_ignored(call, known)

    def _add_to_request(self, what: Message, call: Exchange, known: _Open, place: EntryPosition) -> None:
        """Add a message of a request whose outcome is not final."""
        if isinstance(what, Notification):
            known.add_notification(what, place)
        elif isinstance(what, Request):
            self.listed.add_request(what)
        elif isinstance(what, Result | Failure):
            known.answer_at, known.answer_place = what.at, place
            if call.state in outcome.FAILED or call.state in outcome.UNANSWERED:
                answer = outcome.error_of(call)
                known.words = outcome.error_text(call)
                known.code = answer.code if isinstance(answer, Failure) else None
            elif isinstance(what, Result) and what.side == SERVER:
                self.listed.add_result(what, call.request, place)

    def _open_request(self, exchange: Exchange, place: EntryPosition) -> None:
        request = exchange.request
        known = self._open[exchange.number] = _Open(
            exchange, place, not self.answered, request.progress_token is not None
        )
        if request.side == SERVER:
            known.waiting = [
                about_request(each) for each in self.session.pending if each.request.side == CLIENT
            ][:3]
        if request.method == "initialize" and isinstance(params := request.params, dict):
            asked = params.get("protocolVersion")
            self.listed.asked_revision = asked if isinstance(asked, str) else None

    # Outcomes

    def _settle(self, exchange: Exchange) -> None:
        """Add a request whose outcome is final as a symptom, if it has not succeeded."""
        known = self._open.pop(exchange.number, None)
        if known is None or not exchange.is_counted:
            return
        request, state = exchange.request, exchange.state
        key = (request.side, request.method, request.subject or "")
        if state is State.OK:
            self.answered[request.side, request.method] += 1
            self._add_slow(exchange, known)
            for earlier in self._by_request.pop(key, ()):
                earlier.succeeded_at = known.answer_at
            self._succeeded.append(known)
            return
        if not self._is_symptom(exchange, known):
            return
        refusal = known.carrier
        if refusal is None and request.frame.http is not None:
            refusal = self.http.of(request.frame.http)
            if refusal is None and state in (State.CANCELLED, State.UNANSWERED):
                refusal = self.http.begun.get(request.frame.http)
        self._add_failed(self._failed_request(exchange, known, refusal), exchange, known)

    def _add_failed(self, failed: FailedRequest, exchange: Exchange, known: _Open) -> None:
        """Add a failed request to those that failed in the same way."""
        refusal, key = failed.refusal, (failed.side, failed.method, failed.subject)
        status = None if refusal is None else refusal.status
        words = _VOLATILE.sub("0", failed.words[:200])
        group: tuple[object, ...] = (*key, failed.state, words, status, bool(failed.effects))
        if exchange.number in self.focus:
            group = (exchange.number,)
        if len(self._failed) >= MAX_SYMPTOMS and group not in self._failed:
            group = (failed.side, failed.state)
        if (same := self._failed.get(group)) is None:
            same = self._failed[group] = failed
            self.symptoms.append(failed)
            if (status or 0) >= 300:
                self._by_request.setdefault(key, []).append(failed)
        else:
            same.count += 1
            same.findings += failed.findings[: MAX_ODD_LINES - len(same.findings)]
        self._last_failed = same
        if len(same.numbers) < MAX_SYMPTOMS:
            same.numbers.add(exchange.number)
        for line in self._lines(exchange, known, failed):
            same.add_line(line)

    def _add_slow(self, exchange: Exchange, known: _Open) -> None:
        """Remember a call that waited, to recognise a server that works on one request at a time."""
        request = exchange.request
        if known.answer_at is None or request.side != CLIENT or known.answer_at - request.at < PATIENCE:
            return
        first = known.progress_at
        if (
            known.progress > 1
            and first is not None
            and first - request.at > known.answer_at - first + PATIENCE
        ):
            self.held_back = self.held_back or evidence(
                known.answer_place or known.place,
                f"{about_request(exchange)}: {known.progress} notifications and the response came together, after"
                f" {first - request.at:.1f} s",
            )
        if len(self.slow) < MAX_SLOW:
            self.slow.append(SlowCall(request.at, known.answer_at, known.place, about_request(exchange)))

    def _is_symptom(self, exchange: Exchange, known: _Open) -> bool:
        state = exchange.state
        if state in outcome.FAILED or state in outcome.UNANSWERED:
            return True
        if state in (State.DROPPED, State.ABANDONED):
            return bool(known.effects)
        if state not in (State.CANCELLED, State.LATE_OK) or BY_USER.search(known.reason):
            return False
        at = known.cancel_at if known.cancel_at is not None else self.last_at
        waited = at - exchange.request.at
        return bool(GAVE_UP.search(known.reason)) or (waited >= PATIENCE and not exchange.is_subscription)

    def _failed_request(
        self, exchange: Exchange, known: _Open, refusal: RefusedExchange | None
    ) -> FailedRequest:
        request = exchange.request
        settled = known.cancel_at or known.answer_at or self.last_at
        if (
            known.cancel_at is None
            and known.answer_at is None
            and refusal is not None
            and refusal.status not in ACCEPTED  # In HTTP+SSE, responses come on another stream.
        ):
            settled = refusal.ended_at or refusal.at
        words = known.words or (refusal.words if refusal is not None else "")
        cancelled_by = known.cancelled_by
        if not cancelled_by and exchange.state is State.CANCELLED:
            cancelled_by = CLIENT if " client " in f" {exchange.why} " else SERVER
        arguments = _arguments(request)
        return FailedRequest(
            at=request.at,
            place=known.place,
            side=request.side,
            id=request.id,
            method=request.method,
            subject=request.subject or "",
            state=exchange.state,
            words=words,
            why=exchange.why,
            code=known.code,
            asked_at=request.at,
            took=settled - request.at,
            cancelled_by=cancelled_by,
            reason=known.reason,
            gave_up_at=known.cancel_at,
            answer_at=known.answer_at,
            has_token=known.has_token,
            arguments=frozenset(arguments),
            json_arguments=tuple(name for name, value in arguments.items() if _is_json_text(value)),
            progress=known.progress,
            batch=request.index,
            effects=known.effects,
            findings=[*known.findings],
            refusal=refusal,
            stderr=[line for line in self.stderr if request.at - 0.01 <= line.at <= settled + PATIENCE],
            waiting=known.waiting,
            stream=request.frame.stream or "",
            is_first=known.is_first,
        )

    def _lines(self, exchange: Exchange, known: _Open, failed: FailedRequest) -> Iterator[EvidenceLine]:
        state, _ = outcome.describe(exchange)
        said = f": {failed.words}" if failed.words and failed.words not in state else ""
        yield evidence(known.answer_place or known.place, f"{failed.about}: {state}{said}")
        if known.cancel_place is not None:
            yield evidence(
                known.cancel_place, f"{failed.about} cancelled: {known.reason or 'without a reason'}"
            )

    def _add_ignored(self, exchange: Exchange, known: _Open) -> None:
        """Add a response that was followed by a cancellation: its requester did not accept it."""
        if known.cancel_at is None or known.answer_at is None or known.cancel_place is None:
            return
        waited = known.cancel_at - known.answer_at
        if waited < PATIENCE / 2 or not (GAVE_UP.search(known.reason) or not known.reason):
            return
        ignored = IgnoredResponse(
            at=known.answer_at,
            place=known.answer_place or known.place,
            side=exchange.request.side,
            about=about_request(exchange),
            waited=waited,
            findings=[*known.findings],
        )
        ignored.add_line(evidence(ignored.place, f"the response to {ignored.about}"))
        ignored.add_line(evidence(known.cancel_place, f"cancelled {waited:.1f} s after it: {known.reason}"))
        self.symptoms.append(ignored)

    # Notes

    def _add_note(self, note: Note, place: EntryPosition, change: Change) -> None:
        kind, fields = note.kind, note.fields
        if kind == "stderr":
            line = PrintedLine(note.at, place, note.text)
            self.stderr.append(line)
            if len(self.first_stderr) < MAX_STDERR:
                self.first_stderr.append(line)
            return
        if kind == "http":
            self.http.begin(note, place)
            return
        if kind == "http-end":
            ended = self.http.end(note, change.http)
            number = None if ended is None else ended.request_number
            known = None if number is None else self._open.get(number)
            if (
                known is not None
                and ended is not None
                and not (ended.is_plain and known.answer_at is not None)
            ):
                known.carrier = ended
            return
        if kind in ABOUT_MESSAGES and fields.get("action") in NOTICED:
            self._add_effect(fields)
        noted = self.notes.setdefault(kind, [])
        if len(noted) < MAX_ODD_LINES:
            noted.append((note, place))
        if kind == "eof" and (side := self.sides.get(str(fields.get("from")))) is not None:
            side.closed_at, side.closed_place = note.at, place
        elif kind in ("exit", "end") and (self.exit is None or fields.get("code") is not None):
            self.exit, self.exit_place = note, place
        elif kind == "oauth":
            self.http.add_oauth(note, place)

    def _add_effect(self, fields: dict[str, Any]) -> None:
        """Add what a rule or a viewer did to a message of a request, or to its response."""
        stream, number = fields.get("stream"), fields.get("id")
        sides = (str(fields.get("from")), other(str(fields.get("from"))))
        for side in sides:
            for known in reversed(self._open.values()):
                request = known.exchange.request
                if (request.frame.stream, request.side, request.id) == (stream, side, number):
                    known.effects.append(words(fields))
                    return
        if self._last_failed is not None and self._last_failed.id == number:  # Its response was changed.
            self._last_failed.effects.append(words(fields))

    # The end

    def _add_server_end(self) -> None:
        """Add the end of the server, if the client had not asked for it."""
        error = self.notes.get("error")
        if not self.is_stdio or (self.exit is None and error is None):
            return
        fields = {} if self.exit is None else self.exit.fields
        code, signal = fields.get("code"), fields.get("signal")
        ended_at = self.last_at if self.exit is None else self.exit.at
        left_at, host_signals = self.client.closed_at, self.notes.get("signal", [])
        stopped_at = min(
            [note.at for note, _ in host_signals] + ([] if left_at is None else [left_at]), default=None
        )
        server_closed = self.server.closed_at
        first = min(at for at in (server_closed, ended_at) if at is not None)
        asked = stopped_at is not None and stopped_at <= first
        during = [each for each in self.failed(State.UNANSWERED) if each.side == CLIENT and not each.refusal]
        if asked and error is None and (left_at is None or not during or signal is not None or not code):
            return
        has_answered = self.server.messages > 0
        if (
            has_answered
            and not code
            and signal is None
            and not during
            and not asked
            and not self.client.messages
        ):
            return
        if error is None and not self.client.messages and code == 0:
            return
        end = ServerEnd(
            at=first,
            place=self.exit_place if error is None else error[0][1],
            code=code if isinstance(code, int) else None,
            signal=None if signal is None else str(signal),
            has_answered=has_answered,
            error="" if error is None else error[0][0].text,
            during=during,
        )
        end.named = named_error(self._last_words(first, has_answered=has_answered), certain=has_answered)
        if error is not None:
            end.add_line(evidence(error[0][1], end.error))
        elif self.exit is not None:
            end.add_line(evidence(self.exit_place, f"the server ended: {end.words}"))
        self.symptoms.append(end)

    def _last_words(self, at: float, *, has_answered: bool) -> list[PrintedLine]:
        """Return what the server printed before its end: on stderr, and on stdout if it had not answered."""
        if has_answered:
            return [line for line in self.stderr if line.at >= at - LAST_SECONDS]
        odd = [
            PrintedLine(each.at, each.place, each.data.decode("utf-8", "replace")) for each in self.server.odd
        ]
        return sorted([*self.stderr, *odd], key=lambda line: (line.at, line.place))

    def _add_client_left(self) -> None:
        """Add the end of the client, if it left right after a message and had not used the session."""
        server, client = self.server, self.client
        left_at = client.closed_at if self.is_stdio else self.http.last_at
        if server.last_at is None or left_at is None or not server.messages:
            return
        is_initialized = bool(client.methods["notifications/initialized"] or self.session.is_modern)
        has_asked_more = client.last_request_at > server.last_at
        has_called = client.methods["tools/call"]
        has_left_before = client.closed_at is not None and client.closed_at <= server.last_at
        if has_called or has_asked_more or has_left_before or not client.messages or server.ends_refused:
            return
        left = ClientLeft(
            at=server.last_at,
            place=server.last_place,
            after=max(left_at - server.last_at, 0.0),
            message=server.last_message,
            is_initialized=is_initialized,
            findings=[*server.last[3]] if server.last is not None else [],
        )
        left.add_line(evidence(server.last_place, f"the last message: {server.last_message}"))
        self.symptoms.append(left)


def _arguments(request: Request) -> dict[str, Any]:
    arguments = request.params.get("arguments") if isinstance(request.params, dict) else None
    return arguments if isinstance(arguments, dict) else {}


def _is_json_text(value: object) -> bool:
    if not isinstance(value, str) or value[:1] + value[-1:] not in ("[]", "{}"):
        return False
    try:
        json.decode(value)
    except DecodeError:
        return False
    return True
