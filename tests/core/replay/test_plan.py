"""The messages of a recorded client, and its wait conditions."""

from __future__ import annotations

from typing import Any

from mcpspy.core.recording.decode import read_entry
from mcpspy.core.replay.plan import ReplayPlan, WaitKind, by_client, plans
from mcpspy.core.session.session import Session
from tests.core.mock.talking import log, modern, progress
from tests.core.replay.playing import Talk


def plan(talk: Talk) -> ReplayPlan:
    talk.session.end()
    (found,) = plans(talk.session)
    return found


def waits(talk: Talk) -> list[list[tuple[WaitKind, Any]]]:
    """Return the wait conditions of each message, with the end last."""
    found = plan(talk)
    return [[(wait.what, wait.key) for wait in step.waits] for step in (*found.steps, found.end)]


def test_a_request_waits_for_the_responses_that_the_client_had_by_then() -> None:
    talk = Talk().client(id=1, method="a").client(id=2, method="b")
    talk.server(id=2, result={}).client(id=3, method="c").server(id=1, result={}).server(id=3, result={})

    assert waits(talk) == [[], [], [(WaitKind.RESPONSE, 1)], [(WaitKind.RESPONSE, 0), (WaitKind.RESPONSE, 2)]]


def test_messages_before_a_response_are_not_waited_for() -> None:
    talk = Talk().client(id=1, method="a").server(**log()).server(id=1, result={}).client(id=2, method="b")

    assert waits(talk)[1] == [(WaitKind.RESPONSE, 0)]


def test_messages_after_the_last_response_are_waited_for_with_their_delay() -> None:
    talk = Talk().call(1).server(id=0, method="roots/list").client(id=0, result={"roots": []}).server(**log())
    talk.client(id=2, method="b")
    (_, step) = plan(talk).steps

    assert [(wait.what, wait.key, wait.count, wait.delay) for wait in step.waits[1:]] == [
        (WaitKind.SERVER_REQUEST, "roots/list", 1, 1.0),
        (WaitKind.NOTIFICATION, "notifications/message", 1, 3.0),
    ]
    assert step.gap == 1.0


def test_a_cancellation_waits_for_the_progress_that_came_before_it() -> None:
    talk = Talk().client(id=7, method="tools/call", params={"_meta": {"progressToken": "t"}})
    talk.server(**progress("t", 1)).client(method="notifications/cancelled", params={"requestId": 7})

    assert waits(talk)[1] == [(WaitKind.NOTIFICATION, ("notifications/progress", 0))]


def test_an_answer_that_came_late_is_not_certain_to_come() -> None:
    talk = Talk().client(id=1, method="a").client(method="notifications/cancelled", params={"requestId": 1})
    talk.server(id=1, error={"code": 0, "message": "cancelled"}).client(id=2, method="b").server(
        id=2, result={}
    )
    (_, _, after) = plan(talk).steps

    assert [(wait.key, wait.is_certain) for wait in after.waits] == [(0, False)]


def test_the_end_waits_for_unanswered_requests_as_the_live_server_may_respond() -> None:
    talk = Talk().client(id=1, method="a").note("exit", code=1, signal=None)

    assert waits(talk)[-1] == [(WaitKind.RESPONSE, 0)]


def test_messages_on_a_subscription_are_waited_for_even_before_a_response() -> None:
    talk = Talk().client(id="l", method="subscriptions/listen", params={"_meta": modern()}).call(1)
    talk.client(id=2, method="touch")
    told = {"uri": "note://a", "_meta": {"io.modelcontextprotocol/subscriptionId": "l"}}
    talk.server(method="notifications/resources/updated", params=told).server(id=2, result={})

    updated = (WaitKind.NOTIFICATION, ("notifications/resources/updated", "note://a"))
    assert waits(talk.call(3))[3] == [updated, (WaitKind.RESPONSE, 2)]


def test_the_end_waits_a_moment_for_messages_that_belong_to_no_request() -> None:
    talk = Talk().client(id=1, method="a").server(**log()).server(**log()).server(id=1, result={})
    last = plan(talk.client(id=2, method="b").server(id=2, result={})).end

    assert [(wait.key, wait.count, wait.delay) for wait in last.waits] == [
        (1, 1, 1.0),
        ("notifications/message", 2, 0.0),
    ]


def test_messages_after_the_client_has_closed_its_end_are_not_waited_for() -> None:
    talk = Talk().call(1).note("eof", **{"from": "client"}).server(**log())

    assert waits(talk)[-1] == [(WaitKind.RESPONSE, 0)]


def test_a_client_that_disconnected_has_cancelled_from_2026_07_28_on() -> None:
    talk = Talk().client(id=1, method="tools/call", params={"_meta": modern()}, stream="1", http=1)
    talk.note("http-end", http=1, stream="1", hung_up="client")
    (_, step) = plan(talk).steps

    assert step.message is None
    assert step.exchange is talk.session.exchanges[0]


def test_an_http_error_without_a_message_is_a_response() -> None:
    talk = Talk().client(id=1, method="a", stream="1", http=1).note("http", http=1, stream="1", status=500)
    talk.note("http-end", http=1, stream="1", hung_up=None).client(id=2, method="b", stream="2", http=2)

    assert waits(talk)[1] == [(WaitKind.RESPONSE, 0)]


def test_an_event_that_a_resumed_stream_repeats_counts_once() -> None:
    from mcpspy.core.recording.decode import Frame

    talk = Talk().client(id=1, method="a", stream="1", http=1)
    for _ in range(2):
        talk.session.add(Frame(2.0, "server", b'{"jsonrpc":"2.0","method":"x"}', "1", 1, event_id="e"))
    talk.client(id=2, method="b", stream="1", http=2)

    assert waits(talk)[1] == [(WaitKind.NOTIFICATION, "x")]


def opened(talk: Talk, stream: str, number: int) -> None:
    params = {"protocolVersion": "2025-11-25"}
    talk.client(id=0, method="initialize", params=params, stream=stream, http=number)
    talk.server(id=0, result={}, stream=stream, http=number)


def test_two_sessions_are_two_clients_and_a_probe_belongs_to_the_next_one() -> None:
    talk = Talk().client(id=9, method="server/discover", params={"_meta": modern()}, stream="1", http=1)
    opened(talk, "2", 2)
    talk.session.end()
    assert [len(found.steps) for found in plans(talk.session)] == [2]

    opened(talk, "3", 3)
    talk.client(id=1, method="a", stream="2", http=4)
    talk.session.end()
    assert [len(found.steps) for found in plans(talk.session)] == [3, 1]


def test_a_client_without_a_session_is_not_the_one_with_one() -> None:
    talk = Talk()
    opened(talk, "1", 1)
    talk.client(id=1, method="tools/list", params={"_meta": modern()}, stream="2", http=2)
    talk.client(id=2, method="tools/list", params={"_meta": modern()}, stream="3", http=3)
    talk.session.end()

    assert [len(found.steps) for found in plans(talk.session)] == [1, 2]


def test_an_answered_probe_belongs_to_the_client_without_a_handshake_whichever_came_first() -> None:
    for first in ("legacy", "modern"):
        talk = Talk()
        if first == "legacy":
            opened(talk, "1", 1)
        talk.client(id=1, method="server/discover", params={"_meta": modern()}, stream="2", http=2)
        talk.server(id=1, result={}, stream="2", http=2)
        if first == "modern":
            opened(talk, "1", 1)
        talk.client(id=2, method="tools/list", params={"_meta": modern()}, stream="3", http=3)
        talk.session.end()

        methods = [[each.request.method for each in found.requests] for found in plans(talk.session)]
        eras = [["initialize"], ["server/discover", "tools/list"]]
        assert methods == (eras if first == "legacy" else eras[::-1])


def test_the_messages_of_interleaved_clients_are_put_together_and_keep_their_recorded_positions() -> None:
    talk = Talk()
    opened(talk, "1", 1)
    talk.client(id=1, method="a", params={"_meta": modern()}, stream="2", http=2)
    talk.client(id=1, method="b", stream="1", http=3)
    talk.server(id=1, result={}, stream="2", http=2)
    talk.client(id=2, method="c", params={"_meta": modern()}, stream="3", http=4)
    talk.session.end()
    order = by_client(talk.session)

    assert [exchange.request.method for exchange in order.session.exchanges] == ["initialize", "b", "a", "c"]
    assert [order.exchanges[number] for number in range(4)] == [0, 2, 1, 3]
    assert [order.lines[line] for line in range(2, 8)] == [2, 3, 5, 4, 6, 7]


def test_a_batch_of_one_of_several_clients_is_one_line() -> None:
    talk = Talk()
    opened(talk, "1", 1)
    batch = b'[{"jsonrpc":"2.0","id":1,"method":"b"},{"jsonrpc":"2.0","id":2,"method":"c"}]'
    talk.client(id=1, method="a", params={"_meta": modern()}, stream="2", http=2)
    talk.frame("client", batch, "1", 3).server(id=1, result={}, stream="2", http=2)
    talk.session.end()
    order = by_client(talk.session)

    assert [exchange.request.method for exchange in order.session.exchanges] == ["initialize", "b", "c", "a"]
    assert [order.exchanges[number] for number in range(4)] == [0, 2, 3, 1]
    assert [order.lines[line] for line in range(2, 7)] == [2, 3, 5, 4, 6]


def test_one_client_keeps_its_order() -> None:
    talk = Talk().call(1)
    talk.session.end()

    assert by_client(talk.session).session is talk.session


def test_malformed_messages_of_a_client_are_sent_too() -> None:
    talk = Talk().frame("client", b"{oops}")

    assert [step.message.data for step in plan(talk).steps if step.message is not None] == [b"{oops}"]


def test_a_session_without_messages_of_a_client_has_no_plan() -> None:
    talk = Talk().server(**log())
    talk.session.end()

    assert plans(talk.session) == []


def test_injected_messages_are_not_replayed_but_responses_of_mcpspy_count_as_received() -> None:
    lines = [
        b'{"t":1,"from":"client","msg":{"jsonrpc":"2.0","id":1,"method":"a"}}',
        b'{"t":2,"from":"server","by":"mcpspy","msg":{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":"m"}}}',
        b'{"t":3,"from":"client","by":"mcpspy","msg":{"jsonrpc":"2.0","id":"m-1","method":"b"}}',
        b'{"t":4,"from":"server","to":"mcpspy","msg":{"jsonrpc":"2.0","id":"m-1","result":{}}}',
        b'{"t":5,"from":"server","by":"mcpspy","msg":{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}}',
        b'{"t":6,"from":"client","msg":{"jsonrpc":"2.0","id":2,"method":"c"}}',
    ]
    session = Session().add_all(map(read_entry, lines))
    session.end()
    (found,) = plans(session)

    assert [step.message.data for step in found.steps if step.message is not None] == [
        b'{"jsonrpc":"2.0","id":1,"method":"a"}',
        b'{"jsonrpc":"2.0","id":2,"method":"c"}',
    ]
    assert [(wait.what, wait.key) for wait in found.steps[1].waits] == [(WaitKind.RESPONSE, 0)]


def test_responses_that_came_after_the_end_of_the_client_are_waited_for_before_its_end() -> None:
    lines = [
        b'{"t":1,"from":"client","msg":{"jsonrpc":"2.0","id":1,"method":"a"}}',
        b'{"t":2,"note":"eof","from":"client"}',
        b'{"t":5,"from":"server","msg":{"jsonrpc":"2.0","id":1,"result":{}}}',
    ]
    session = Session().add_all(map(read_entry, lines))
    session.end()
    (found,) = plans(session)

    assert [(wait.what, wait.key, wait.delay) for wait in found.end.waits] == [(WaitKind.RESPONSE, 0, 3.0)]
