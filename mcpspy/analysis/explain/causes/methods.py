"""Methods that one side does not know: of requests, pings, and notifications sent as requests."""

from __future__ import annotations

import re
from collections.abc import Iterator

from mcpspy.analysis.explain.causes import examples as ex
from mcpspy.analysis.explain.causes.leaving import SECONDS_TO_LEAVE
from mcpspy.analysis.explain.causes.requests import NO_PARAMS, errors, held_up
from mcpspy.analysis.explain.claims import Claim, Level, cause
from mcpspy.analysis.explain.evidence import clause
from mcpspy.analysis.explain.facts import Facts
from mcpspy.analysis.explain.symptoms import (
    ClientLeft,
    FailedRequest,
    ServerEnd,
    Symptom,
)
from mcpspy.analysis.lint.rules.methods import has_capability
from mcpspy.core.protocol.spec import CLIENT, METHODS, SERVER, other
from mcpspy.core.session.exchange import State

_OPTIONAL = (
    "resources/list resources/templates/list prompts/list logging/setLevel completion/complete ping "
    "tools/list"
).split()
"""Methods that clients ask for without need."""

_UNKNOWN_METHOD = re.compile(r"(?i)\bmethod\b")
"""The words of a receiver that does not know a method, under whatever code."""


def _is_unknown(failed: FailedRequest) -> bool:
    """Return whether an error means that its receiver does not know the method."""
    known = failed.method in METHODS
    if failed.method == "ping" and (
        _NO_REQUEST.fullmatch(failed.words) or _UNKNOWN_METHOD.search(failed.words)
    ):
        return True
    is_other_code = not known and NO_PARAMS.fullmatch(failed.words.strip()) is not None
    is_no_method = not known and "/" not in failed.method
    return failed.code == -32601 or is_other_code or (is_no_method and failed.code in (-32600, -32602))


_NO_REQUEST = re.compile(r"(?i)\W*invalid request\W*")
"""The words of servers that take a ping for no request at all."""

MANY_STARTS = 3
"""Sessions that a client began, beyond which it did so for a reason."""


def _ping_refused(facts: Facts, failed: FailedRequest, left: list[Symptom]) -> Claim:
    """Return the claim of a ping that got an error, with the end of the server that sent it."""
    side, receiver, answered_at = failed.side, other(failed.side), failed.answer_at or 0.0
    ends = [each for each in facts.of(ServerEnd) if side == SERVER and answered_at <= each.at]
    # With a code, it has ended by an error that nothing caught, which may have another reason later.
    ends = [each for each in ends if not each.code or each.at - answered_at < SECONDS_TO_LEAVE]
    title = f"the {receiver} answers ping with the error {failed.code}; every side must answer it with an empty result"
    if ends or left:
        how = "left" if side == CLIENT else "ended at this error" if ends and ends[0].code else "ended"
        title += f": the {side} took the {receiver} for dead, and {how}"
    began = facts.client.methods["initialize"] if side == CLIENT else 0
    if began > MANY_STARTS:
        title += f": the client took the server for lost, and began the session {began} times"
    next_step = f"let the {receiver} answer ping with {{}}; the {side} may take any answer for a sign of life"
    # The one has no ping, and the other takes its answer for none.
    is_open = began > MANY_STARTS or _NO_REQUEST.fullmatch(failed.words) is not None
    is_open |= bool(ends or left) and failed.code != -32601
    symptoms = [failed, *left, *(symptom for each in ends for symptom in (each, *each.during))]
    symptoms += [*held_up(facts, failed), *facts.violations(*_OF_METHODS, side=side)]
    return Claim(title, next_step, symptoms, side="" if is_open else receiver, level=Level.EXACT)


_OF_METHODS = ("DATA603", "LIFE106", "LIFE108", "LIFE109")


@cause(
    "method-not-found",
    "the receiver does not know a method",
    Level.SPECIFIC,
    rules="DATA603 LIFE106 LIFE108 LIFE109",
    positive=(
        ex.session(ex.request("tools/list"), ex.error("Method not found", -32601)),
        ex.session("@ bare", ex.request("forecast"), ex.error("Invalid request parameters", -32602)),
        ex.session(
            *("+ 0.01", ex.request("tools/list"), ex.asked("ping")),
            '> {"id":7,"error":{"code":-32601,"message":"Method not found: ping"}}',
            *(ex.stderr("Error [ERR_UNHANDLED_ERROR]: Unhandled error."), ex.exited(1)),
        ),
    ),
    negative=(
        ex.session(ex.request("tools/list"), ex.error("internal error")),
        ex.session(ex.call(), ex.done(), ex.call(3, "b"), ex.error("Method not found", -32601, 3)),
    ),
)
def method_not_found(facts: Facts) -> Iterator[Claim]:
    """The method is of a capability that was not declared, or of another revision. Asking for an
    optional one is harmless.
    """
    for side in (CLIENT, SERVER):
        declared = facts.session.server_capabilities if side == CLIENT else facts.session.client_capabilities
        for failed in errors(facts, side):
            known, receiver = METHODS.get(failed.method), other(side)
            is_no_method = known is None and "/" not in failed.method
            # A receiver that has answered others knows the method, and not what this request names.
            is_known = failed.method == "server/discover" or facts.answered[side, failed.method]
            if not _is_unknown(failed) or is_known or failed.method.startswith("notifications/"):
                continue  # `notification-with-id` has the last.
            needed = (known.needs or "") if known is not None else ""
            is_declared = bool(needed) and has_capability(declared, needed)
            if failed.subject in {uri for uri, _ in facts.listed.apps.tools.values()}:
                continue  # The server's tools name this page: `app-invalid`.
            left: list[Symptom] = [
                each
                for each in facts.of(ClientLeft)
                if side == CLIENT and each.at <= (failed.answer_at or 0.0)
            ]
            if failed.method == "ping":
                yield _ping_refused(facts, failed, left)
                continue
            if is_declared:
                title = f"the {receiver} declared {needed}, and does not know {failed.method} (error -32601)"
                next_step = f"implement {failed.method}, or do not declare {needed}"
                next_step += (
                    "; if what it offers depends on the account, look what the token may do"
                    * facts.http.has_token
                )
            elif needed:
                title = f"the {side} asked for {failed.method}, and the {receiver} has not declared {needed}"
                title += ", and left after this error, although it is the right answer" if left else ""
                next_step = f"let the {side} ask only for what is declared; or declare and implement {needed}"
            elif is_no_method:
                title = f"the {side} sent the request {failed.method}, and MCP has no method of this name"
                title += f" (error {failed.code}{clause(failed.words)})"
                next_step = "call a tool by the method tools/call, with its name in params.name"
                if not facts.client.methods["initialize"] + facts.client.methods["server/discover"]:
                    next_step += ", and send initialize and notifications/initialized before"
            else:
                title = f"the {receiver} does not know {failed.method} (error {failed.code}{clause(failed.words)})"
                next_step = f"check the method's name and revision: {failed.method} is not in this {receiver}"
                if failed.code != -32601:
                    next_step += (
                        f"; let the {receiver} answer unknown methods with -32601, and not as wrong params"
                    )
            findings = facts.violations(*_OF_METHODS, side=receiver if is_declared else side)
            symptoms = [failed, *left, *held_up(facts, failed), *findings]
            is_early = bool(needed) and not is_declared
            # The code is the right answer to a method that MCP does not have.
            is_right = known is None and failed.code == -32601
            who = side if is_early or is_no_method or is_right else receiver
            if is_declared and facts.http.has_token:
                who = ""  # An account may have no tools.
            claim = Claim(title, next_step, symptoms, side=who)
            claim.is_observation = is_early and failed.method in _OPTIONAL and not left
            is_exact = is_no_method or (is_declared and failed.method != "tools/call")
            claim.level = Level.EXACT if is_exact else None
            yield claim


@cause(
    "notification-with-id",
    "a notification was sent as a request",
    Level.EXACT,
    rules="LIFE106 LIFE108 LIFE109",
    positive=(
        ex.session(ex.request("notifications/initialized", 9), ex.error("Method not found", -32601, 9)),
        ex.session(ex.request("notifications/initialized", 9), "+ 30", ex.END),
    ),
    negative=ex.session(ex.notified(">", "notifications/initialized"), ex.request("ping"), ex.result()),
)
def notification_with_id(facts: Facts) -> Iterator[Claim]:
    """The library of the sender gives each message an id. The receiver then takes the notification for a request that it does
    not know, or never answers it, and its sender waits.
    """
    for failed in facts.failed():
        if not failed.method.startswith("notifications/") or failed.effects:
            continue
        title = f"the {failed.side} sent {failed.method} with an id, as a request: it is a notification, which gets no response"
        title += clause(failed.words)
        next_step = f"let the {failed.side} send {failed.method} without an id, and not wait for a response"
        symptoms = [failed, *facts.violations("LIFE106", "LIFE108", "LIFE109", side=failed.side)]
        if failed.method == "notifications/initialized":  # For the server, the handshake has no end.
            symptoms += [
                each
                for each in errors(facts)
                if each.at > failed.at and NO_PARAMS.fullmatch(each.words.strip())
            ]
            # A client that takes the error for the response to its next request goes away then.
            symptoms += [
                each for each in facts.failed(State.UNANSWERED) if 0 < each.at - failed.at < SECONDS_TO_LEAVE
            ]
        symptoms += [end for end in facts.of(ServerEnd) if failed in end.during]
        yield Claim(title, next_step, symptoms, side=failed.side)
