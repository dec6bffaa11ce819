"""Requests from their first message to their outcome; the ones that did not succeed are symptoms.

`core.session.outcome` has the meaning of states, and `FinalOutcomes` decides when one is final.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterator
from itertools import islice
from typing import Any

from msgspec import DecodeError, json

from mcpspy.analysis.explain.evidence import EvidenceLine, PrintedLine, evidence
from mcpspy.analysis.explain.facts import MAX_STDERR, PATIENCE, Facts, SlowCall
from mcpspy.analysis.explain.open_request import OpenRequest, with_data
from mcpspy.analysis.explain.side_facts import MAX_ODD_LINES, about_message, about_request
from mcpspy.analysis.explain.symptoms import MAX_EVIDENCE, FailedRequest, IgnoredResponse, RefusedExchange
from mcpspy.analysis.lint.finding import EntryPosition, Finding
from mcpspy.core.protocol.message import Failure, Notification, Request, Result
from mcpspy.core.protocol.refusal import ACCEPTED
from mcpspy.core.protocol.spec import CLIENT, SERVER, other
from mcpspy.core.session import outcome
from mcpspy.core.session.exchange import Exchange, State
from mcpspy.core.session.rule_notes import words

MAX_SYMPTOMS = 500
"""Kinds of failures that are distinguished; more are counted with the last one of their state."""

AT_ONCE = 0.05
"""Seconds between two messages that came together: no client answers a request in this time."""

RIGHT_AFTER = 0.1
"""Seconds after an error in which a line on stderr is about it."""

MAX_SLOW = 200
"""Calls that waited and that are kept."""

MAX_ANSWERED = 64
"""Answered requests that are kept, to recognise a cancellation after the response."""

MAX_TEXT = 200
"""Characters of an argument up to which it is kept."""

MAX_TEXTS = 20
"""Texts among the arguments of a call that are kept."""

GAVE_UP = re.compile(r"(?i)time[d -]*out|deadline|-32001")
BY_USER = re.compile(r"(?i)\buser\b|interrupt|\besc\b|stopped by|cancel button")

HIDDEN_FAILURE = "AGENT103"
"""The rule of results that report a failure as a success."""

_VOLATILE = re.compile(r"\b[0-9a-fA-F]{8}-[0-9a-fA-F-]{27}\b|\b[0-9a-f]{12,}\b|\d+(?:\.\d+)?")

# Reading a member of an Enum runs Python code; reading a name does not.
_OK = State.OK


class RequestOutcomes:
    """The requests of a session: their messages in, symptoms into the facts."""

    def __init__(self, facts: Facts, focus: frozenset[int]) -> None:
        """`focus` are the numbers of the exchanges that are to be explained, each as its own symptom."""
        self._facts, self._focus = facts, focus
        self._open: dict[int, OpenRequest] = {}
        self._last_failed: FailedRequest | None = None
        self._succeeded: deque[OpenRequest] = deque(maxlen=MAX_ANSWERED)
        """The latest requests that got a result."""
        self._failed: dict[tuple[object, ...], FailedRequest] = {}
        self._by_request: dict[tuple[str, str, str], list[tuple[Request, FailedRequest]]] = {}
        """Refused requests that may be sent again, by side, method and subject."""

    def add_request(
        self, what: Request, exchange: Exchange, place: EntryPosition, findings: list[Finding]
    ) -> None:
        """Add a request with its findings; it may be one that is sent again after a redirect, or that polls a task."""
        call = exchange.poll_of or exchange
        if what is exchange.request and call is exchange:
            self._open_request(exchange, place)
        known = self._open.get(call.number)
        if known is None:
            return
        if findings:
            known.findings += tuple(findings)
        if what.method in self._facts.listed.next_pages:
            self._facts.listed.add_request(what)

    def add_call(self, exchange: Exchange, place: EntryPosition) -> None:
        """Add a call of a tool by the client that has no finding, on stdio."""
        facts = self._facts
        before = facts.sides[CLIENT].before
        self._open[exchange.number] = OpenRequest(exchange, place, not facts.answered, before)

    def add_result(self, exchange: Exchange, at: float, place: EntryPosition) -> None:
        """Add the result of such a call, with which it has succeeded."""
        known = self._open.pop(exchange.number, None)
        if known is not None:
            known.answer_at, known.answer_place = at, place
            if known.asked_at is not None:
                self._add_asked_late(exchange, known, known.asked_at, at)
            self._succeed(exchange, known)

    def add_notification(
        self, what: Notification, exchange: Exchange, place: EntryPosition, findings: list[Finding]
    ) -> None:
        """Add progress of a request, or its cancellation."""
        call = exchange.poll_of or exchange
        known = self._open.get(call.number)
        if known is not None:
            known.findings += tuple(findings)
            known.add_notification(what, place)
            return
        # It may have its result.
        known = next((known for known in self._succeeded if known.exchange is call), None)
        if known is not None:
            self._succeeded.remove(known)
            known.add_notification(what, place)
            self._add_ignored(call, known)

    def add_response(
        self, what: Result | Failure, exchange: Exchange, place: EntryPosition, findings: list[Finding]
    ) -> None:
        """Add a response to a request."""
        call = exchange.poll_of or exchange
        known = self._open.get(call.number)
        if known is None:
            return
        if findings:
            known.findings += tuple(findings)
        known.answer_at, known.answer_place = what.frame.at, place
        if what.frame.http != call.request.frame.http:
            self._add_crossed(what, call, place)
        if call.state is not _OK and (call.state in outcome.FAILED or call.state in outcome.UNANSWERED):
            answer = outcome.error_of(call)
            known.words = outcome.error_text(call)
            if isinstance(answer, Failure):
                known.words, known.code = with_data(answer, known.words), answer.code
        elif (
            what.kind == Result.kind
            and what.frame.side == SERVER
            and self._facts.listed.concerns(call.request)
        ):
            self._facts.listed.add_result(what, call.request, place)

    def _add_crossed(self, what: Result | Failure, call: Exchange, place: EntryPosition) -> None:
        """Remember a response that came in the answer to the POST of another request; a GET may have it (2025-03-26)."""
        http = self._facts.http
        carrier = None if what.frame.http is None else http.posted.get(what.frame.http)
        is_other = carrier is not None and carrier.number not in (None, call.number)
        if carrier is not None and is_other and len(http.crossed) < MAX_EVIDENCE:
            http.crossed.append(
                evidence(place, f"the response to {about_request(call)}, in that to {carrier.asked}")
            )

    def is_open(self, number: int | None) -> bool:
        """Return whether the outcome of a request is not final."""
        return number in self._open

    def add_carrier(self, exchange: RefusedExchange) -> None:
        """Add the HTTP exchange that carried a request, and that has ended."""
        known = None if exchange.request_number is None else self._open.get(exchange.request_number)
        if known is not None and not (exchange.is_plain and known.answer_at is not None):
            known.carrier = exchange

    def add_effect(self, fields: dict[str, Any]) -> None:
        """Add what a rule or a viewer did to a message of a request, or to its response."""
        stream, number = fields.get("stream"), fields.get("id")
        sides = (str(fields.get("from")), other(str(fields.get("from"))))
        for side in sides:
            for known in reversed(self._open.values()):
                request = known.exchange.request
                if (request.frame.stream, request.side, request.id) == (stream, side, number):
                    known.effects += (words(fields),)
                    return
        if self._last_failed is not None and self._last_failed.id == number:  # Its response was changed.
            self._last_failed.effects.append(words(fields))

    def _open_request(self, exchange: Exchange, place: EntryPosition) -> None:
        request, facts = exchange.request, self._facts
        known = OpenRequest(exchange, place, not facts.answered, facts.sides[request.side].before)
        self._open[exchange.number] = known
        if request.frame.side == SERVER:
            waiting = (each for each in facts.session.pending if each.request.side == CLIENT)
            known.waiting = tuple(about_request(each) for each in islice(waiting, 3))
            if request.frame.http is not None:
                for call in self._open.values():
                    if call.exchange.request.frame.http == request.frame.http and call is not known:
                        call.asked_at, call.asked_method = request.at, request.method
        if request.method == "initialize" and isinstance(params := request.params, dict):
            asked = params.get("protocolVersion")
            facts.listed.asked_revision = asked if isinstance(asked, str) else None
            if len(facts.http.begun) < MAX_SYMPTOMS:
                facts.http.begun[request.frame.stream or ""] = request.at, place

    def settle(self, exchange: Exchange) -> None:
        """Take a request whose outcome is final (`FinalOutcomes`): it is a symptom if it has not succeeded."""
        known = self._open.pop(exchange.number, None)
        if known is None:
            return
        request, state = exchange.request, exchange.state
        if known.asked_at is not None and known.answer_at is not None:
            self._add_asked_late(exchange, known, known.asked_at, known.answer_at)
        if state is _OK:
            self._succeed(exchange, known)
            return
        if not self._is_symptom(exchange, known):
            return
        carrier = known.carrier
        if carrier is None and request.frame.http is not None:
            never_came = state in (State.CANCELLED, State.UNANSWERED)
            carrier = self._facts.http.of(request.frame.http, with_plain=never_came)
        self._add_failed(exchange, known, carrier)

    def _succeed(self, exchange: Exchange, known: OpenRequest) -> None:
        """Take a request that succeeded."""
        request = exchange.request
        self._facts.answered[request.frame.side, request.method] += 1
        self._facts.text_ids_answered += request.id.startswith('"')
        if len(self._facts.http.begun) > 1 and known.answer_at is not None:
            self._facts.http.answered_in[request.frame.stream or ""] = known.answer_at
        if known.answer_at is not None and known.answer_at - request.frame.at >= PATIENCE:
            self._add_slow(exchange, known, known.answer_at)
        if self._by_request:
            refused = self._by_request.get((request.side, request.method, request.subject or ""), ())
            for earlier, failed in refused:
                if failed.succeeded_at is None and _arguments(earlier) == _arguments(request):
                    if self._facts.http.is_of_other_program(request.frame.http, failed.carrier):
                        continue  # Nothing has become better for the program that was refused.
                    failed.succeeded_at = known.answer_at
        if known.findings and any(each.code == HIDDEN_FAILURE for each in known.findings):
            surplus = self._facts.listed.surplus(request.subject, _arguments(request))
            if surplus and sum(map(len, self._facts.surplus.values())) < MAX_SYMPTOMS:
                self._facts.surplus.setdefault(request.subject or "", set()).update(surplus)
        self._succeeded.append(known)

    def _add_failed(self, exchange: Exchange, known: OpenRequest, carrier: RefusedExchange | None) -> None:
        """Add a failed request to those that failed in the same way."""
        request, state = exchange.request, exchange.state
        key = request.side, request.method, request.subject or ""
        status = None if carrier is None else carrier.status
        # A 401 before the sign-in is another one than after it.
        has_token = carrier is not None and carrier.has_token
        words = known.words or (carrier.words if carrier is not None else "")
        like = _VOLATILE.sub("0", words[:200])
        group: tuple[object, ...] = (*key, state, like, status, has_token, bool(known.effects))
        if exchange.number in self._focus:
            group = (exchange.number,)
        if len(self._failed) >= MAX_SYMPTOMS and group not in self._failed:
            group = (request.side, state)
        if (same := self._failed.get(group)) is None:
            same = self._failed[group] = self._failed_request(exchange, known, carrier, words)
            self._facts.symptoms.append(same)
        else:
            same.count += 1
            same.succeeded_at = None
            if known.findings:
                same.findings += known.findings[: MAX_ODD_LINES - len(same.findings)]
        if (status or 0) >= 300:  # The last request of its kind may be sent again.
            others = [each for each in self._by_request.get(key, ()) if each[1] is not same]
            self._by_request[key] = [*others, (request, same)]
        self._last_failed = same
        if len(same.numbers) < MAX_SYMPTOMS:
            same.numbers.add(exchange.number)
        if len(same.lines) < MAX_EVIDENCE:
            for line in self._lines(exchange, known, words):
                same.add_line(line)

    def add_stderr(self, line: PrintedLine) -> None:
        """Take a line on stderr: servers print the reason of an error right after they have sent it, too."""
        last = self._last_failed
        if last is None or not 0 <= line.at - last.until <= RIGHT_AFTER or len(last.stderr) >= MAX_STDERR:
            return
        if (self._facts.client.last_at or 0.0) <= last.until:  # It is not about a later request.
            last.stderr.append(line)

    def _add_slow(self, exchange: Exchange, known: OpenRequest, answer_at: float) -> None:
        """Remember a call that waited, to recognise a server that works on one request at a time."""
        request = exchange.request
        if request.side != CLIENT:
            return
        first, facts = known.progress_at, self._facts
        if known.progress > 1 and first is not None and first - request.at > answer_at - first + PATIENCE:
            facts.held_back = facts.held_back or evidence(
                known.answer_place or known.place,
                f"{about_request(exchange)}: {known.progress} notifications and the response came together, after"
                f" {first - request.at:.1f} s",
            )
        if len(facts.slow) < MAX_SLOW:
            facts.slow.append(SlowCall(request.at, answer_at, known.place, about_request(exchange)))

    def _add_asked_late(
        self, exchange: Exchange, known: OpenRequest, asked_at: float, answer_at: float
    ) -> None:
        """Remember a call whose server asked the client something, which came only with the response."""
        waited = asked_at - exchange.request.at
        if answer_at - asked_at < AT_ONCE and waited > PATIENCE:
            self._facts.held_back = self._facts.held_back or evidence(
                known.answer_place or known.place,
                f"{about_request(exchange)}: {known.asked_method} of the server and the response came together, after "
                f"{waited:.1f} s",
            )
            if len(self._facts.held_back_calls) < MAX_SYMPTOMS:
                self._facts.held_back_calls.add(exchange.number)

    def _is_symptom(self, exchange: Exchange, known: OpenRequest) -> bool:
        state = exchange.state
        if state in outcome.FAILED or state in outcome.UNANSWERED:
            return True
        if state in (State.DROPPED, State.ABANDONED):
            return bool(known.effects)
        if state not in (State.CANCELLED, State.LATE_OK) or BY_USER.search(known.reason):
            return False
        at = known.cancel_at if known.cancel_at is not None else self._facts.last_at
        waited = at - exchange.request.at
        return bool(GAVE_UP.search(known.reason)) or (waited >= PATIENCE and not exchange.is_subscription)

    def _failed_request(
        self, exchange: Exchange, known: OpenRequest, carrier: RefusedExchange | None, words: str
    ) -> FailedRequest:
        request = exchange.request
        settled = known.cancel_at or known.answer_at or self._facts.last_at
        if (
            known.cancel_at is None
            and known.answer_at is None
            and carrier is not None
            and carrier.status not in ACCEPTED  # In HTTP+SSE, responses come on another stream.
        ):
            settled = carrier.ended_at or carrier.at
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
            has_token=request.progress_token is not None,
            arguments=frozenset(arguments),
            json_arguments=tuple(name for name, value in arguments.items() if _is_json_text(value)),
            texts=_texts(arguments),
            progress=known.progress,
            progress_words=known.progress_words,
            batch=request.index,
            effects=[*known.effects],
            findings=[*known.findings],
            redirect=exchange.redirect,
            carrier=carrier,
            stderr=[
                line for line in self._facts.stderr if request.at - 0.01 <= line.at <= settled + PATIENCE
            ],
            waiting=[*known.waiting],
            stream=request.frame.stream or "",
            is_first=known.is_first,
            before="" if known.before is None else about_message(known.before, None),
        )

    def _lines(self, exchange: Exchange, known: OpenRequest, words: str) -> Iterator[EvidenceLine]:
        state, _ = outcome.describe(exchange)
        about, message = about_request(exchange), outcome.error_text(exchange)
        rest = words.removeprefix(message).removeprefix(": ") if message and message in state else words
        said = f": {rest}" if rest and rest not in state else ""
        yield evidence(known.answer_place or known.place, f"{about}: {state}{said}")
        if known.cancel_place is not None:
            yield evidence(known.cancel_place, f"{about} cancelled: {known.reason or 'without a reason'}")

    def _add_ignored(self, exchange: Exchange, known: OpenRequest) -> None:
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
        self._facts.symptoms.append(ignored)


def _arguments(request: Request) -> dict[str, Any]:
    arguments = request.params.get("arguments") if isinstance(request.params, dict) else None
    return arguments if isinstance(arguments, dict) else {}


def _texts(arguments: dict[str, Any]) -> tuple[str, ...]:
    """Return the short texts among the values of arguments."""
    texts = (value for value in arguments.values() if isinstance(value, str) and 1 < len(value) <= MAX_TEXT)
    return tuple(islice(texts, MAX_TEXTS))


def _is_json_text(value: object) -> bool:
    if not isinstance(value, str) or value[:1] + value[-1:] not in ("[]", "{}"):
        return False
    try:
        json.decode(value)
    except DecodeError:
        return False
    return True
