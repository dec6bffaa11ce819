"""Watchdog for slow and hanging requests."""

from __future__ import annotations

from mcpspy.core.intercept.actions import AbortUpstream, Forward, Inject, Step
from mcpspy.core.intercept.interceptor import Interceptor
from mcpspy.core.protocol.message import loads
from tests.core.intercept.interceptors import (
    actions,
    call,
    exchange_named,
    interceptor,
    notes,
    progress,
    result,
)

LANE = exchange_named("lane")
MODERN = call(1).replace(
    b'"params": {', b'"params": {"_meta": {"io.modelcontextprotocol/protocolVersion": "2026-07-28"}, '
)
WITH_TOKEN = call(1).replace(b'"params": {', b'"params": {"_meta": {"progressToken": 3}, ')
CANCEL = b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}'


def spoken(steps: list[Step]) -> list[tuple[str, object]]:
    return [(step.side, loads(step.data)) for step in steps if isinstance(step, Inject)]


def test_a_hanging_call_gets_an_error_is_cancelled_and_its_late_response_is_swallowed() -> None:
    watched = interceptor(call_timeout=5)
    watched.process(1.0, "client", call(7))
    assert watched.next_at == 6.0
    assert watched.run_due(5.9) == []
    steps = watched.run_due(6.0)

    said = "Request timed out: no response to tools/call echo within 5 s (mcpspy --call-timeout)"
    assert spoken(steps) == [
        ("server", {"jsonrpc": "2.0", "id": 7, "error": {"code": -32001, "message": said}}),
        (
            "client",
            {
                "jsonrpc": "2.0",
                "method": "notifications/cancelled",
                "params": {"requestId": 7, "reason": "no response within 5 s"},
            },
        ),
    ]
    assert [(note["action"], note["id"], note["seconds"]) for note in notes(steps)] == [("timeout", "7", 5)]
    late = watched.process(9.0, "server", result(7))
    assert late.to_mcpspy
    assert [note["action"] for note in notes(late.steps)] == ["swallowed"]
    assert not any(isinstance(step, Forward) for step in late.steps)
    assert watched.process(9.5, "server", result(7)).is_untouched  # A second response is the server's error.
    assert watched.next_at is None


def test_requests_answered_or_cancelled_in_time_do_not_time_out() -> None:
    watched = interceptor(call_timeout=5)
    watched.process(1.0, "client", call(1))
    watched.process(1.0, "client", call(2))
    assert watched.process(2.0, "server", result(2)).is_untouched
    assert watched.process(2.0, "client", CANCEL).is_untouched

    assert (watched.next_at, watched.run_due(100)) == (None, [])


def test_a_response_that_spells_the_number_of_its_id_differently_is_in_time() -> None:
    watched = interceptor(call_timeout=5)
    watched.process(1.0, "client", call(1))
    assert watched.process(2.0, "server", result(1).replace(b'"id": 1', b'"id": 1.0')).is_untouched

    assert (watched.next_at, watched.run_due(100)) == (None, [])


def test_progress_restarts_the_timeout() -> None:
    watched = interceptor(call_timeout=5)
    watched.process(1.0, "client", WITH_TOKEN)
    watched.process(5.0, "server", progress(3))
    watched.process(5.5, "server", progress(4))

    assert watched.next_at == 10.0


def test_initialize_is_never_cancelled_and_a_subscription_never_hangs() -> None:
    watched = interceptor(call_timeout=5)
    watched.process(0.0, "client", b'{"jsonrpc":"2.0","id":1,"method":"initialize"}')
    watched.process(0.0, "client", b'{"jsonrpc":"2.0","id":2,"method":"subscriptions/listen"}')
    watched.process(
        0.0, "server", b'{"jsonrpc":"2.0","id":3,"method":"roots/list"}'
    )  # The user may take a long time to answer.

    assert [said["id"] for _, said in spoken(watched.run_due(5))] == [1]  # type: ignore[index]
    assert watched.next_at is None


def test_in_2026_07_28_over_http_the_request_is_closed() -> None:
    watched = interceptor(call_timeout=5)
    watched.process(0.0, "client", MODERN, stream="4", exchange=LANE)
    steps = actions(watched.run_due(5))

    assert isinstance(steps[0], Inject)
    assert (steps[0].exchange, steps[0].stream) == (LANE, "4")
    assert steps[1:] == [AbortUpstream(LANE)]


def test_before_2026_07_28_over_http_a_cancellation_is_a_separate_message() -> None:
    watched = interceptor(call_timeout=5)
    watched.process(0.0, "client", call(1), stream="4", exchange=LANE)
    cancelled = actions(watched.run_due(5))[1]

    assert isinstance(cancelled, Inject)
    assert (cancelled.exchange, cancelled.stream, cancelled.side) == (None, "4", "client")


def test_a_request_that_was_never_forwarded_is_not_cancelled() -> None:
    watched = interceptor("tool:echo => drop", "tool:slow => delay 9s", call_timeout=5)
    watched.process(0.0, "client", call(1))
    watched.process(0.0, "client", call(2, tool="slow"))
    steps = watched.run_due(5)

    assert [said["id"] for _, said in spoken(steps)] == [1, 2]  # type: ignore[index]
    assert not any(isinstance(step, Forward) for step in watched.run_due(9))


def test_a_response_that_a_rule_drops_or_delays_too_long_does_not_prevent_the_timeout() -> None:
    watched = interceptor("kind:result id:1 => drop", "kind:result id:2 => delay 9s", call_timeout=5)
    for number in (1, 2):
        watched.process(0.0, "client", call(number))
        watched.process(1.0, "server", result(number))
    steps = watched.run_due(5)

    assert [(side, said["id"]) for side, said in spoken(steps)] == [("server", 1), ("server", 2)]  # type: ignore[index]
    steps = watched.run_due(10)
    assert [note["action"] for note in notes(steps)] == ["swallowed"]
    assert not any(isinstance(step, Forward) for step in steps)


def test_a_response_from_a_rule_after_the_timeout_is_not_sent() -> None:
    watched = interceptor("tool:echo => delay 9s", "tool:echo => error no", call_timeout=5)
    watched.process(0.0, "client", call(1))

    assert len(spoken(watched.run_due(5))) == 1
    assert spoken(watched.run_due(9)) == []


def test_a_held_message_does_not_time_out() -> None:
    watched = interceptor(call_timeout=5)
    watched.execute(0.0, "tui", {"order": "hold", "query": "tool:echo"})
    held = watched.process(1.0, "client", call(1))
    assert watched.run_due(100) == []
    watched.execute(101.0, "tui", {"order": "release", "ticket": held.ticket})

    assert watched.next_at == 106.0


def test_a_slow_request_is_noted_once_and_stays_pending() -> None:
    watched = interceptor(slow=2)
    watched.process(0.0, "client", call(1))
    watched.process(0.5, "client", call(2))
    watched.process(1.0, "server", result(2))
    steps = watched.run_due(2.0)

    assert [(note["action"], note["id"], note["subject"], note["seconds"]) for note in notes(steps)] == [
        ("slow", "1", "echo", 2)
    ]
    assert actions(steps) == []
    assert watched.process(3.0, "server", result(1)).is_untouched
    assert watched.next_at is None


def test_no_response_is_sent_to_an_exchange_that_has_ended() -> None:
    watched = interceptor(call_timeout=5)
    watched.process(0.0, "client", call(1), exchange=exchange_named("one"))
    watched.process(0.0, "client", call(2), exchange=exchange_named("two"))
    watched.exchange_ended(1.0, exchange_named("one"))

    assert [
        step.exchange for step in watched.run_due(5) if isinstance(step, Inject) and step.side == "server"
    ] == [exchange_named("two")]


def test_an_id_that_is_used_again_is_answered_once() -> None:
    watched = interceptor(call_timeout=5)
    watched.process(0.0, "client", call(1))
    watched.process(3.0, "client", call(1))

    assert watched.next_at == 8.0
    assert len(spoken(watched.run_due(8))) == 2  # The response and the cancellation.
    assert isinstance(watched, Interceptor)
