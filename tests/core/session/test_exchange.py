"""States of a request: every event in every state, written out independently."""

from __future__ import annotations

from itertools import product

import pytest

from mcpspy.core.protocol.message import Failure, Request, Result, read_frame
from mcpspy.core.recording.decode import Frame
from mcpspy.core.session.exchange import MAY_CHANGE, TRANSITIONS, Event, Exchange, State, transition

ANSWERS = {Event.RESULT, Event.TOOL_ERROR, Event.QUESTION, Event.FAILURE}
REFINED = {State.OK, State.INPUT_REQUIRED, State.REFUSED}
"""States that only the result of a task, the end of the session, or a translation changes."""
FINAL = set(State) - MAY_CHANGE - REFINED

LEADS_TO = {
    ("pending", "progress"): "pending",
    ("pending", "result"): "ok",
    ("pending", "tool error"): "tool error",
    ("pending", "question"): "input required",
    ("pending", "failure"): "error",
    ("pending", "task"): "working",
    ("pending", "redirect"): "redirected",
    ("pending", "incomplete response"): "incomplete",
    ("pending", "cancel"): "cancelled",
    ("pending", "close"): "closed",
    ("pending", "refusal"): "refused",
    ("pending", "drop"): "dropped",
    ("pending", "loss of its sender"): "abandoned",
    ("pending", "loss of entries"): "unknown",
    ("pending", "end of session"): "no answer",
    ("unknown", "progress"): "unknown",
    ("unknown", "result"): "ok",
    ("unknown", "tool error"): "tool error",
    ("unknown", "question"): "input required",
    ("unknown", "failure"): "error",
    ("unknown", "task"): "working",
    ("unknown", "failure of its task"): "task failed",
    ("unknown", "cancellation of its task"): "cancelled",
    ("unknown", "redirect"): "redirected",
    ("unknown", "incomplete response"): "incomplete",
    ("unknown", "cancel"): "cancelled",
    ("unknown", "refusal"): "refused",
    ("dropped", "result"): "ok",
    ("dropped", "tool error"): "tool error",
    ("dropped", "question"): "input required",
    ("dropped", "failure"): "error",
    ("cancelled", "progress"): "cancelled",
    ("cancelled", "result"): "answered late",
    ("cancelled", "tool error"): "late tool error",
    ("cancelled", "question"): "answered late",
    ("cancelled", "failure"): "late error",
    ("cancelled", "task"): "answered late",
    ("cancelled", "incomplete response"): "incomplete",
    ("refused", "repetition elsewhere"): "pending",
    ("redirected", "repetition elsewhere"): "pending",
    ("redirected", "result"): "ok",
    ("redirected", "tool error"): "tool error",
    ("redirected", "question"): "input required",
    ("redirected", "failure"): "error",
    ("redirected", "loss of entries"): "unknown",
    ("incomplete", "progress"): "incomplete",
    ("incomplete", "result"): "ok",
    ("incomplete", "tool error"): "tool error",
    ("incomplete", "question"): "input required",
    ("incomplete", "failure"): "error",
    ("incomplete", "task"): "working",
    ("input required", "end of session"): "not continued",
    ("working", "progress"): "working",
    ("working", "result"): "ok",
    ("working", "tool error"): "tool error",
    ("working", "failure"): "error",
    ("working", "failure of its task"): "task failed",
    ("working", "cancellation of its task"): "cancelled",
    ("working", "loss of entries"): "unknown",
    ("working", "end of session"): "task not finished",
    ("ok", "tool error"): "tool error",
    ("task failed", "tool error"): "tool error",
    ("task failed", "failure"): "error",
}


def exchange_in(state: State, method: str = "tools/call") -> Exchange:
    frame = Frame(1.0, "client", b'{"jsonrpc":"2.0","id":1,"method":"%b"}' % method.encode())
    (request,) = read_frame(frame)
    assert isinstance(request, Request)
    exchange = Exchange(0, request)
    exchange.state = state
    return exchange


@pytest.mark.parametrize(
    ("state", "event"), list(product(State, Event)), ids=lambda value: value.name.lower()
)
def test_an_event_follows_the_table_or_changes_nothing(state: State, event: Event) -> None:
    exchange = exchange_in(state)
    wanted = LEADS_TO.get((state.value, event.value))
    assert transition(exchange, event) is (wanted is not None)
    assert exchange.state == (wanted or state.value)


def test_the_table_names_nothing_twice_and_nothing_unknown() -> None:
    assert {
        (state.value, event.value): following.value
        for state, row in TRANSITIONS.items()
        for event, following in row.items()
    } == LEADS_TO


@pytest.mark.parametrize("state", sorted(FINAL))
def test_a_response_is_final(state: State) -> None:
    exchange = exchange_in(state)
    assert not any(transition(exchange, event) for event in Event)
    assert exchange.state is state


def test_every_state_can_be_reached_from_a_new_request() -> None:
    reached = {State.PENDING}
    while more := {to for state in reached for to in TRANSITIONS.get(state, {}).values()} - reached:
        reached |= more
    assert reached == set(State)


def test_every_response_settles_a_request_that_may_change() -> None:
    for state in MAY_CHANGE - {State.WORKING, State.TASK_FAILED}:
        assert {TRANSITIONS[state][event] for event in ANSWERS} <= FINAL | REFINED


@pytest.mark.parametrize("state", list(State))
def test_only_a_pending_request_and_a_working_task_are_open(state: State) -> None:
    assert exchange_in(state).is_open is (state in (State.PENDING, State.WORKING))


def test_a_new_exchange_is_pending_and_empty() -> None:
    exchange = exchange_in(State.PENDING)
    assert (exchange.number, exchange.state, exchange.is_open) == (0, State.PENDING, True)
    assert (exchange.answer, exchange.cancel, exchange.latency) == (None, None, None)
    assert (exchange.continues, exchange.continued_by) == (None, None)
    assert (exchange.progress, exchange.flaws) == ([], [])


def test_two_exchanges_do_not_share_their_lists() -> None:
    first, second = exchange_in(State.PENDING), exchange_in(State.PENDING)
    first.flaws.append("a flaw")
    assert second.flaws == []
    assert first.progress is not second.progress


@pytest.mark.parametrize(
    ("method", "stays"),
    [("subscriptions/listen", True), ("resources/subscribe", False), ("tools/call", False)],
)
def test_only_a_listen_stays_open_by_design(method: str, stays: bool) -> None:
    assert exchange_in(State.PENDING, method).is_subscription is stays


@pytest.mark.parametrize(
    "answer", [b'"result":{}', b'"error":{"code":1,"message":""}'], ids=["result", "error"]
)
def test_latency_is_the_time_from_request_to_response(answer: bytes) -> None:
    exchange = exchange_in(State.PENDING)
    (message,) = read_frame(Frame(3.5, "server", b'{"jsonrpc":"2.0","id":1,%b}' % answer))
    assert isinstance(message, Result | Failure)
    exchange.answer = message
    assert exchange.latency == 2.5
