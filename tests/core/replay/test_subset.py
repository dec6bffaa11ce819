"""Parts of a recording that can be replayed on their own."""

from __future__ import annotations

from mcpspy.core.protocol.message import Message, Notification, Result
from mcpspy.core.replay.plan import plans
from mcpspy.core.replay.subset import as_recorded, needed, reduced
from mcpspy.core.replay.substitution import Substitutions, rule
from mcpspy.core.session.session import Session
from tests.core.mock.talking import log
from tests.core.replay.playing import Talk


def test_a_request_needs_the_handshake_and_the_source_of_its_cursor() -> None:
    talk = Talk().handshake().call(1).client(id=2, method="tools/list")
    talk.server(id=2, result={"nextCursor": "p2"}).client(id=3, method="tools/list", params={"cursor": "p2"})
    talk.server(id=3, result={}).call(4)

    assert needed(talk.session, {3}) == {0, 2, 3}
    assert needed(talk.session, {4}) == {0, 4}


def test_a_task_needs_the_call_that_made_it() -> None:
    talk = Talk().call(1).client(id=2, method="tools/call", params={"name": "x", "task": {}})
    talk.server(id=2, result={"task": {"taskId": "t"}}).client(
        id=3, method="tasks/result", params={"taskId": "t"}
    )

    assert needed(talk.session, {2}) == {1, 2}


def test_a_question_and_its_answer_are_replayed_together() -> None:
    talk = Talk().client(id=1, method="tools/call", params={"name": "ask"})
    talk.server(
        id=1, result={"resultType": "input_required", "inputRequests": {"a": {}}, "requestState": "s"}
    )
    talk.client(
        id=2, method="tools/call", params={"name": "ask", "requestState": "s", "inputResponses": {"a": {}}}
    )
    talk.server(id=2, result={})

    assert needed(talk.session, {0}) == needed(talk.session, {1}) == {0, 1}


def said(session: Session) -> list[str]:
    """Return the messages of a session, by method or id."""
    return [
        change.what.method if isinstance(change.what, Notification) else change.what.data.decode()[:28]
        for change in session.changes
        if isinstance(change.what, Message)
    ]


def test_server_messages_for_other_exchanges_are_removed_and_lines_keep_their_places() -> None:
    talk = Talk().handshake().server(**log("debug"))
    talk.client(id=1, method="tools/call", params={"name": "a"}).server(**log())
    talk.server(id=0, method="roots/list").client(id=0, result={}).server(id=1, result={}).server(**log())
    talk.call(2, "b").server(**log("error"))
    part = reduced(talk.session, {0, 3})

    assert [each.request.id for each in part.exchanges] == ["0", "2"]
    assert said(part).count("notifications/message") == 2  # After the handshake, and after b.
    assert len(part.changes) == len(talk.session.changes)
    assert part.changes[-1].number == talk.session.changes[-1].number
    (plan,) = plans(part)
    assert not plan.questions
    assert [step.waits[-1].key for step in plan.steps[2:]] == ["notifications/message"]


def test_messages_during_an_open_call_belong_to_that_call() -> None:
    talk = Talk().client(id=1, method="a").client(id=2, method="b").server(id=2, result={})
    talk.server(**log()).server(id=1, result={}).server(**log("debug"))

    assert said(reduced(talk.session, {0})).count("notifications/message") == 1
    assert said(reduced(talk.session, {1})).count("notifications/message") == 1
    assert [
        change.what.at
        for change in reduced(talk.session, {1}).changes
        if isinstance(change.what, Notification)
    ] == [6.0]


def test_all_exchanges_are_the_whole_session() -> None:
    talk = (
        Talk()
        .handshake()
        .call(1)
        .server(id=0, method="roots/list")
        .client(id=0, result={})
        .frame("client", b"{x}")
    )
    talk.note("stderr", text="hm").server(**log())
    everything = {exchange.number for exchange in talk.session.exchanges}

    part = reduced(talk.session, everything)
    assert [change.what for change in part.changes] == [change.what for change in talk.session.changes]


def test_an_http_exchange_is_removed_with_its_notes() -> None:
    talk = Talk().client(id=1, method="a", stream="1", http=1).note("http", http=1, stream="1", status=500)
    talk.note("http-end", http=1, stream="1", hung_up=None).client(id=2, method="b", stream="2", http=2)
    talk.server(id=2, result={}, stream="2", http=2)

    part = reduced(talk.session, {1})
    assert [exchange.request.method for exchange in part.exchanges] == ["b"]


def test_as_recorded_replaces_only_the_carried_values() -> None:
    talk = Talk().call(1, "open", "s-2").note("stderr", text="s-2")
    talk.frame("client", b'[{"jsonrpc":"2.0","id":2,"method":"a"},{"jsonrpc":"2.0","id":3,"method":"b"}]')
    carried = Substitutions((rule("/result/said"),))
    (old, new) = (Talk().call(1, "open", value).session.exchanges[0].answer for value in ("s-1", "s-2"))
    assert isinstance(old, Result)
    assert isinstance(new, Result)
    carried.learn(old, new)
    found = as_recorded(talk.session, [carried])

    assert [change.what.data for change in found.changes if isinstance(change.what, Message)][1:] == [
        talk.session.changes[1].what.data.replace(b"s-2", b"s-1"),  # type: ignore[union-attr]
        b'{"jsonrpc":"2.0","id":2,"method":"a"}',
        b'{"jsonrpc":"2.0","id":3,"method":"b"}',
    ]
    assert found.changes[2].what == talk.session.changes[2].what


def test_over_http_a_server_message_belongs_to_the_exchange_that_carried_it() -> None:
    talk = Talk().client(id=1, method="a", stream="1", http=1).client(id=2, method="b", stream="1", http=2)
    talk.server(**log(), stream="1", http=1).server(id=2, result={}, stream="1", http=2)
    talk.server(id=1, result={}, stream="1", http=1).server(**log("error"), stream="1", http=2)

    assert [said(reduced(talk.session, {number})).count("notifications/message") for number in (0, 1)] == [
        1,
        1,
    ]
    assert said(reduced(talk.session, {0}))[1] == "notifications/message"
