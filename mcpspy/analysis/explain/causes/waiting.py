"""Responses that are missing or late: who waited for whom."""

from __future__ import annotations

from collections.abc import Iterator

from mcpspy.analysis.explain.causes import examples as ex
from mcpspy.analysis.explain.causes.requests import (
    SHORT_WAIT,
    held_up,
    without_response,
)
from mcpspy.analysis.explain.causes.unanswered import RIGHT_AFTER
from mcpspy.analysis.explain.claims import Claim, Level, cause
from mcpspy.analysis.explain.evidence import evidence
from mcpspy.analysis.explain.facts import PATIENCE, Facts
from mcpspy.analysis.explain.outcomes import GAVE_UP
from mcpspy.analysis.explain.symptoms import ClientLeft, FailedRequest
from mcpspy.core.counted import duration
from mcpspy.core.protocol.spec import CLIENT, SERVER, other

_ELICITED = ex.asked("elicitation/create", message="b", requestedSchema={"type": "object", "properties": {}})
_GIVEN_UP = ex.notified("<", "notifications/cancelled", requestId=7, reason="timed out")
_ASKS_PEOPLE = ("elicitation/create", "sampling/createMessage")
"""Requests that a client may show to its user before it answers."""


@cause(
    "client-did-not-respond",
    "the server waited for a response of the client",
    Level.EXACT,
    rules="LIFE106 LIFE203 LIFE405",
    positive=(
        ex.session(ex.call(), ex.asked("roots/list"), ex.END),
        # An observation: the session was over.
        ex.session(ex.call(), ex.done(), ex.CLIENT_CLOSED, ex.asked("roots/list"), ex.exited(0)),
        ex.session("@ client={}", ex.call(), ex.asked("roots/list"), "+ 60", ex.cancelled()),
        ex.session("@ bare", ex.initialize(), ex.asked("roots/list"), "+ 60", ex.cancelled(1)),
        ex.session(
            ex.call(), _ELICITED, "+ 60", _GIVEN_UP, ex.done(), '> {"id":7,"result":{"action":"cancel"}}'
        ),
    ),
    negative=ex.session(ex.call(), ex.asked("roots/list"), '> {"id":7,"result":{"roots":[]}}', ex.done()),
)
def client_did_not_respond(facts: Facts) -> Iterator[Claim]:
    """A host that does not answer roots, sampling or elicitation requests holds up the call in
    which the server asks.
    """
    has_left = any(not left.is_initialized and not left.after > PATIENCE for left in facts.of(ClientLeft))
    cancelled = [
        each for violation in facts.violations("LIFE203", side=CLIENT) for each in violation.findings
    ]
    for asking in without_response(facts, SERVER):
        if any(
            each.message.endswith(f" id {asking.id}") and asking.asked_at <= each.at for each in cancelled
        ):
            continue  # `cancelled-by-receiver`
        if has_left and asking.took < PATIENCE:
            continue  # It left because of this message, or before it could answer.
        if facts.client.closed_at is not None and asking.asked_at >= facts.client.closed_at:
            yield _asked_after_close(facts, asking)
            continue
        held = [failed for failed in without_response(facts, CLIENT) if failed.about in asking.waiting]
        held = [each for each in held if each.asked_at <= asking.asked_at <= each.until]
        held += [
            each
            for each in held_up(facts, asking)
            if GAVE_UP.search(each.words) and 0 <= each.until - asking.until < PATIENCE
        ]
        until = f" for {asking.waited}" if asking.took > 0 else ""
        calls = f", and held up {', '.join(dict.fromkeys(asking.waiting))}" if asking.waiting else ""
        title = f"the server's {asking.about} got no response from the client{until}{calls}"
        next_step = (
            f"the client must answer {asking.method}, or not declare the capability; the server should "
            f"ask only what the client declares, and continue without an answer"
        )
        side, is_early = CLIENT, any(each.is_handshake for each in held)
        is_undeclared = any(each.code == "LIFE106" for each in asking.findings)
        if is_early:
            side = SERVER
            title += ": it was sent before the response to initialize"
            next_step = (
                "let the server answer initialize first, and ask after notifications/initialized: until then a client cannot "
                "know what it has agreed to answer"
            )
        elif asking.answer_at is not None:
            side = ""
            title = (
                f"the client answered {asking.about} after {duration(asking.answer_at - asking.asked_at)}, when the server "
                f"had given it up after {asking.waited}{calls}"
            )
            next_step = f"raise the server's timeout of {asking.waited} for this question: a user may have to answer it"
            if asking.method not in _ASKS_PEOPLE:
                next_step = (
                    f"make the client's answer faster, or raise the server's timeout of {asking.waited}"
                )
        elif is_undeclared:
            side = SERVER
            title = f"the server sent {asking.about}, which the client has not declared, and got no response{until}{calls}"
            next_step = (
                f"let the server ask only what the client declares (capabilities in initialize), and continue without; the "
                f"client should answer {asking.method} with the error -32601"
            )
        elif asking.method in _ASKS_PEOPLE:
            next_step += "; it may have waited for its user"
            side = CLIENT if asking.took >= PEOPLES_PATIENCE else ""
        yield Claim(title, next_step, [asking, *held], side=side)


PEOPLES_PATIENCE = 30.0
"""Seconds in which the user of a client may read a question, and answer it."""


def _asked_after_close(facts: Facts, asking: FailedRequest) -> Claim:
    """Return the claim of a question, such as for the roots, after a short session was over: nothing failed for the client."""
    return Claim(
        title=f"the server sent {asking.about} after the client had closed its stdin: no response is possible",
        next_step="let the server end with its stdin; the session itself is not affected",
        symptoms=[asking, *facts.violations("LIFE405")],
        side=SERVER,
        level=Level.GENERAL,
        is_observation=True,
    )


def _names(failed: list[FailedRequest]) -> str:
    return ", ".join(dict.fromkeys(each.about for each in failed[:3]))


@cause(
    "server-stuck",
    "the server answers nothing any more since one request",
    Level.SPECIFIC,
    positive=ex.session(ex.call(), ex.request("ping", 3), ex.END),
    negative=(
        ex.session(ex.request("ping"), ex.request("ping", 3), ex.result(3), ex.END),
        ex.session("+ 0.01", ex.request("tools/list"), ex.call(3), ex.END),
        ex.session("+ 0.01", ex.call(), ex.call(3, "b"), "+ 4", ex.cancelled(), ex.cancelled(3)),
    ),
)
def server_stuck(facts: Facts) -> Iterator[Claim]:
    """A call blocks the server: it waits in the handler, holds a lock, or runs a child process that
    shares stdin.
    """
    for side in (CLIENT, SERVER):
        waiting = without_response(facts, side)
        failed = [each for each in waiting if each.answer_at is None and not each.is_handshake]
        if sum(each.count for each in failed) < 2 or any(each.batch is not None for each in failed):
            continue
        first, receiver = failed[0], other(side)
        if max(each.took for each in failed) < PATIENCE:
            continue  # The requester did not wait, as a pipe that ends after its last line.
        if not _is_stuck(failed):
            continue
        if (facts.sides[receiver].last_at or 0.0) > first.asked_at:
            continue
        is_initialized = facts.client.methods["notifications/initialized"] or facts.session.is_modern
        if side == CLIENT and facts.client.methods["initialize"] and not is_initialized:
            continue  # It may wait for the end of the handshake: `handshake-incomplete`.
        others = _names([each for each in failed[1:] if each.asked_at >= first.asked_at])
        unread = facts.notes.get("unread", []) if receiver == SERVER else []
        read = f"{unread[-1][0].fields.get('size')} bytes are unread" if unread else ""
        is_unread = any(note.fields.get("since") == round(first.asked_at, 6) for note, _ in unread)
        if is_unread and first.before:
            title = (
                f"the server read nothing any more after {first.before} ({read}): {first.about} and what came after it "
                f"never reached it"
            )
            next_step = (
                f"look where the server waits after {first.before} (py-spy dump, a debugger): a handler that waits in the "
                "loop that reads stdin keeps it from each further message, also from a cancellation"
            )
            claim = Claim(title, next_step, [*failed], side=SERVER, level=Level.EXACT)
            yield claim
            continue
        title = (
            f"the {receiver} answered nothing any more{f', and read nothing ({read}),' if read else ''} after "
            f"{first.about}: it is stuck in this call, also for {others or 'the calls after it'}"
        )
        if not others:
            title = (
                f"the {receiver} answered nothing any more{f', and read nothing ({read}),' if read else ''} after "
                f"{first.about}: it is stuck in it, or needs longer each time than the {side} waits ({first.waited})"
            )
        next_step = (
            "look what this call waits for (py-spy dump, a debugger): a lock, a child process that "
            "shares stdin, a blocking call in an event loop, or a stderr that the client does not read"
        )
        # A call that takes as long each time need not hang.
        is_open = not others and not read and first.method == "tools/call"
        yield Claim(title, next_step, [*failed], side="" if is_open else receiver)


def _is_stuck(failed: list[FailedRequest]) -> bool:
    """Return whether requests without a response show more than calls that are slow: a ping, a list, or a long wait."""
    if any(each.method != "tools/call" for each in failed):
        return True
    return max(each.took for each in failed) >= SHORT_WAIT


def had_read_nothing(facts: Facts) -> bool:
    """Return whether the server's first message came long after the client had left, so that it was not ready until then."""
    left_at, first_at = facts.client.closed_at, facts.server.first_at
    if left_at is None or first_at is None:
        return False
    return first_at - left_at >= (0.5 if facts.notes.get("unread") else SECONDS_TO_FLUSH)


SECONDS_TO_FLUSH = 1.5
"""Seconds after the end of stdin within which a program ends, and writes what is in its buffer."""


def _answered_at_end(facts: Facts, left_at: float) -> Iterator[Claim]:
    """Yield a claim of a request that waited until the client closed stdin, and was answered at once then."""
    for call in facts.slow:
        waited, after = left_at - call.asked_at, call.answer_at - left_at
        if waited >= SECONDS_OF_CHANCE and 0 <= after < SECONDS_TO_ANSWER:
            title = (
                f"the server answered {call.about} only when the client closed stdin, {duration(waited)} after the request: until "
                f"then it waited for more input, or kept its output back"
            )
            next_step = (
                "look at the loop that reads stdin: one that waits for new bytes (poll, select) must first take the lines that "
                "are in its buffer already, since messages may arrive together; and flush stdout after each message"
            )
            lines = [
                evidence(call.place, f"{call.about}: the request"),
                evidence(facts.client.closed_place, "the client closed stdin"),
            ]
            yield Claim(title, next_step, [], evidence=lines, side=SERVER)
            return


SECONDS_OF_CHANCE = 2.0
"""Seconds that a request waited, after which a response just at the end of stdin does not come by chance."""

SECONDS_TO_ANSWER = 0.1
"""Seconds after the end of stdin in which a server answers what it had read already."""


@cause(
    "output-only-at-end",
    "the server's output comes only when its input ends",
    Level.EXACT,
    rules="LIFE114 LIFE202 LIFE405 LIFE406",
    positive=(
        ex.session(
            "@ bare", ex.request("initialize", 1), "+ 0.01", ex.CLIENT_CLOSED, ex.result(1), ex.exited(0)
        ),
        ex.session(
            *(ex.request("tools/list"), "+ 7", "+ 0.01", ex.CLIENT_CLOSED, ex.result(tools=[]), ex.exited(0))
        ),
    ),
    negative=(
        ex.session(
            "@ bare", ex.request("initialize", 1), ex.CLIENT_CLOSED, "+ 4", ex.result(1), ex.exited(0)
        ),
        ex.session(ex.request("tools/list"), "+ 7", ex.result(tools=[]), ex.CLIENT_CLOSED, ex.exited(0)),
    ),
)
def output_only_at_end(facts: Facts) -> Iterator[Claim]:
    """Output to a pipe stays in a buffer until it is full or the program ends; or the server reads
    all of stdin first.
    """
    left_at, begun_at = facts.client.closed_at, facts.client.first_at
    times = [at for at in (facts.server.first_at,) if at is not None] + [
        each.at for each in facts.server.odd[:1]
    ]
    if not facts.is_stdio or left_at is None or begun_at is None or not times:
        return
    if min(times) < left_at:
        yield from _answered_at_end(facts, left_at)
        return
    is_flushed = min(times) - left_at < SECONDS_TO_FLUSH
    if (
        left_at - begun_at >= 0.5 and is_flushed and not had_read_nothing(facts)
    ):  # Else it was still starting.
        waited = [each for each in facts.failed() if each.side == CLIENT and each.asked_at < left_at]
        findings = facts.violations("LIFE114", "LIFE202", "LIFE405", "LIFE406")
        title = (
            "the server's first message came only after the client had closed stdin: its output was not "
            "flushed, or it reads stdin to the end before it answers"
        )
        next_step = (
            "flush stdout after each message (print(…, flush=True), python -u, stdbuf -oL), and read "
            "stdin line by line"
        )
        symptoms = [*waited, *facts.of(ClientLeft), *findings]
        lines = [evidence(facts.client.closed_place, "the client closed stdin")]
        lines += [evidence(facts.server.last_place, "messages of the server after it")]
        yield Claim(title, next_step, symptoms, evidence=lines, side=SERVER)


@cause(
    "one-at-a-time",
    "the server works on one request at a time",
    Level.GENERAL,
    positive=ex.session(ex.call(), ex.call(3), "+ 0.1", ex.done(), ex.done(3)),
    negative=ex.session(ex.call(), ex.call(3), "+ 0.1", ex.done(3), ex.done()),
)
def one_at_a_time(facts: Facts) -> Iterator[Claim]:
    """Calls that were sent while a slow one ran are answered right after it: they waited for it,
    and are not slow themselves.
    """
    for slow in facts.slow:
        took = slow.answer_at - slow.asked_at
        during = [each for each in facts.slow if slow.asked_at < each.asked_at < slow.answer_at]
        after = [each for each in during if 0 <= each.answer_at - slow.answer_at <= RIGHT_AFTER]
        after = [each for each in after if each.answer_at - each.asked_at < took]
        if after:
            names = ", ".join(dict.fromkeys(each.about for each in after[:3]))
            title = (
                f"{names} waited until {slow.about} had its response after {took:.1f} s: the server "
                f"works on one request at a time"
            )
            next_step = (
                "let the server work on calls concurrently (async, threads); these calls are not slow "
                "themselves"
            )
            line = evidence(slow.place, f"{slow.about}: {took:.1f} s")
            yield Claim(title, next_step, [], [line], SERVER, is_observation=True)
            break


LONG_FOR_A_LIST = 10.0
"""Seconds: hosts wait 10 to 60 s for the lists when they start a server."""


@cause(
    "list-slow",
    "a list was answered so late that hosts give up",
    Level.GENERAL,
    positive=ex.session(ex.request("tools/list"), "+ 30", ex.result(tools=[ex.with_schema()])),
    negative=ex.session(ex.request("tools/list"), "+ 3", ex.result(tools=[ex.with_schema()])),
)
def list_slow(facts: Facts) -> Iterator[Claim]:
    """Nothing has failed in this session, and another host would have shown no tools."""
    for slow in facts.slow:
        took = slow.answer_at - slow.asked_at
        if took >= LONG_FOR_A_LIST and slow.about.partition(" ")[0].endswith("/list"):
            title = f"{slow.about} was answered after {duration(took)}: many hosts give up before"
            next_step = (
                "let the server answer lists from memory; if it had nothing to do, it may have left the line in a buffer: "
                "it must take every line that it has read before it waits for more"
            )
            line = evidence(slow.place, f"{slow.about}: {took:.1f} s")
            yield Claim(title, next_step, [], [line], SERVER, is_observation=True)
            break
