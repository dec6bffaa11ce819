"""One client of a recorded server."""

from __future__ import annotations

import json
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mcpspy.core.mock.recordings import Library
from mcpspy.core.mock.session import Conversation, Options
from mcpspy.core.protocol.message import Failure, Notification, Request, Result
from mcpspy.core.recording.decode import Note
from mcpspy.core.session.session import Session
from mcpspy.io.recording.reader import Recording
from tests.core.mock.talking import Json, Live, Talk, asking, log, modern, names, progress, slow

RECORDINGS = sorted((Path(__file__).parents[3] / "recordings").glob("*.jsonl"))


def test_progress_comes_before_the_result_under_the_live_token() -> None:
    said = slow().live().ask("a", "tools/call", name="slow", _meta={"progressToken": "live"})
    assert [message.get("params") for message in said[:2]] == [
        {"progressToken": "live", "progress": 1},
        {"progressToken": "live", "progress": 2},
    ]
    assert said[2] == {"jsonrpc": "2.0", "id": "a", "result": {"said": "done"}}


def test_a_slow_answer_takes_the_recorded_time() -> None:
    live = slow().live(speed=2.0)
    assert live.ask("a", "tools/call", name="slow", _meta={"progressToken": 0}) == []
    assert live.conversation.next_at == live.now + 0.5
    assert live.conversation.owes
    assert [names(live.wait(0.5)) for _ in range(3)] == [
        ["notifications/progress"],
        ["notifications/progress"],
        ["a"],
    ]
    after = live.conversation
    assert after.next_at is None
    assert not after.owes


def test_what_is_cancelled_stops() -> None:
    live = slow().live(speed=1.0)
    live.ask("a", "tools/call", name="slow", _meta={"progressToken": 0})
    assert names(live.wait(1.0)) == ["notifications/progress"]
    assert live.say(method="notifications/cancelled", params={"requestId": "a"}) == []
    assert live.wait(10.0) == []
    assert not live.conversation.owes


def test_the_answer_to_a_cancellation_waits_for_it() -> None:
    talk = Talk().client(id=1, method="a").client(method="notifications/cancelled", params={"requestId": 1})
    live = talk.server(id=1, error={"code": 0, "message": "Request cancelled"}).live()
    assert live.ask(5, "a") == []
    (said,) = live.say(method="notifications/cancelled", params={"requestId": 5})
    assert (said["id"], said["error"]["code"]) == (5, 0)


def test_a_call_that_was_cancelled_and_never_answered_is_not_answered_now() -> None:
    talk = Talk().client(id=1, method="a").client(method="notifications/cancelled", params={"requestId": 1})
    live = talk.call(2).live()
    assert live.ask(5, "a") == []
    assert live.conversation.complaints() == []


def test_a_call_that_nobody_cancelled_and_nobody_answered_is_said_to_be_that() -> None:
    live = Talk().call(1).client(id=2, method="a").live()
    assert live.ask(5, "a") == []
    (said,) = live.conversation.complaints()
    assert said.startswith("a: was never answered")


@pytest.mark.parametrize("answer", [{"result": {"roots": []}}, {"error": {"code": -1, "message": "no"}}])
def test_a_request_of_the_server_is_answered_before_it_goes_on(answer: Json) -> None:
    live = asking().live()
    live.initialize(roots={})
    (request,) = live.call("a", "ask")
    assert request["method"] == "roots/list"
    assert live.wait(100.0) == []
    assert names(live.say(id=request["id"], **answer)) == ["notifications/message", "a"]
    assert live.say(id=request["id"], **answer) == [], "an answer counts once"


def test_what_followed_a_notification_follows_it_and_once() -> None:
    live = Talk().handshake().server(method="notifications/tools/list_changed").live()
    live.initialize()
    assert names(live.say(method="notifications/initialized")) == ["notifications/tools/list_changed"]
    assert live.say(method="notifications/initialized") == []
    assert live.say(method="notifications/whatever") == []


def test_a_task_is_followed_to_its_result() -> None:
    task = {"taskId": "t", "status": "working"}
    talk = Talk().client(id=1, method="tools/call", params={"name": "research", "task": {}})
    talk.server(method="notifications/tasks/status", params=task).server(id=1, result={"task": task})
    for number, state in enumerate(("working", "completed")):
        talk.client(id=2 + number, method="tasks/get", params={"taskId": "t"})
        talk.server(id=2 + number, result={**task, "status": state})
    talk.client(id=4, method="tasks/result", params={"taskId": "t"}).server(id=4, result={"said": "report"})
    live = talk.live()
    status, created = live.ask(1, "tools/call", name="research", task={})
    assert status["params"]["taskId"] == created["result"]["task"]["taskId"] == "t"
    polled = [live.ask(id, "tasks/get", taskId="t")[0]["result"]["status"] for id in (2, 3, 4)]  # noqa: A001
    assert polled == ["working", "completed", "completed"]
    assert live.ask(5, "tasks/result", taskId="t")[0]["result"]["said"] == "report"


@pytest.mark.parametrize(
    "method", ["ping", "resources/subscribe", "resources/unsubscribe", "logging/setLevel"]
)
def test_some_requests_never_miss(method: str) -> None:
    live = Talk().handshake().live()
    assert live.ask(1, method, uri="x:") == [{"jsonrpc": "2.0", "id": 1, "result": {}}]
    assert live.conversation.choice.misses == []


def test_a_batch_is_read_where_the_revision_has_it() -> None:
    batch = json.dumps([{"jsonrpc": "2.0", "id": id, "method": "ping"} for id in (1, 2)]).encode()  # noqa: A001
    live = Talk().handshake("2025-03-26").live()
    live.initialize("2025-03-26")
    assert names(live.send(batch)) == [1, 2]
    later = Talk().handshake().live()
    later.initialize()
    (said,) = later.send(batch)
    assert (said["id"], said["error"]["code"]) == (None, -32600)


@pytest.mark.parametrize(
    ("data", "code", "id"),
    [
        (b"hello", -32700, None),
        (b'{"jsonrpc":"2.0","id":1,', -32700, None),
        (b"\xef\xbb\xbf{}", -32700, None),
        (b"3", -32600, None),
        (b"{}", -32600, None),
        (b'{"jsonrpc":"2.0","id":1,"method":5}', -32600, None),
        (b'{"jsonrpc":"1.0","id":1,"method":"ping"}', -32600, 1),
        (b'{"jsonrpc":"2.0","id":null,"method":"ping"}', -32600, None),
        (b'{"jsonrpc":"2.0","id":1.5,"method":"ping"}', -32600, None),
    ],
)
def test_what_is_no_request_is_refused_and_the_next_is_answered(data: bytes, code: int, id: object) -> None:  # noqa: A002
    live = Talk().handshake().live()
    (said,) = live.send(data)
    assert (said["error"]["code"], said["id"]) == (code, id)
    assert names(live.ask(7, "ping")) == [7]


def test_a_blank_line_says_nothing() -> None:
    assert Talk().handshake().live().send(b" \r") == []


def test_what_belongs_to_which_request_is_said_for_a_transport_that_must_know() -> None:
    live = slow().live()
    live.conversation.receive(
        b'{"jsonrpc":"2.0","id":"a","method":"tools/call","params":{"name":"slow","_meta":{"progressToken":1}}}',
        live.now,
    )
    said = list(live.conversation.take(live.now))
    assert [(outgoing.request, outgoing.is_answer) for outgoing in said] == [
        (b'"a"', False),
        (b'"a"', False),
        (b'"a"', True),
    ]


def test_what_is_listened_for_belongs_to_the_subscription_and_not_to_its_cause() -> None:
    meta = {"io.modelcontextprotocol/subscriptionId": "l"}
    talk = Talk().client(id="l", method="subscriptions/listen", params={"_meta": modern()})
    talk.client(id=1, method="touch", params={"_meta": modern()})
    talk.server(method="notifications/resources/updated", params={"uri": "x:", "_meta": meta})
    live = talk.server(id=1, result={}).live()
    live.ask("live", "subscriptions/listen", _meta=modern())
    said = json.dumps({"jsonrpc": "2.0", "id": 2, "method": "touch", "params": {"_meta": modern()}})
    live.conversation.receive(said.encode(), live.now)
    assert [outgoing.request for outgoing in live.conversation.take(live.now)] == [b'"live"', b"2"]


def test_of_two_requests_under_one_id_the_younger_is_cancelled() -> None:
    live = slow().live(speed=1.0)
    live.ask("a", "tools/call", name="slow")
    live.wait(0.5)
    live.ask("a", "tools/call", name="slow")
    live.say(method="notifications/cancelled", params={"requestId": "a"})
    assert names(live.wait(10.0)) == ["a"]


@given(
    st.lists(st.binary(max_size=60) | st.text(alphabet='{}[]":,0123idmethod', max_size=40).map(str.encode))
)
def test_nothing_that_a_client_sends_stops_it(lines: list[bytes]) -> None:
    live = Talk().handshake().call(1).live(speed=1.0)
    for line in lines:
        live.send(line)
    live.now += 60.0
    live.heard()
    assert names(live.ask("still here", "ping"))[-1] == "still here"


JUNK = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)
METHODS = st.sampled_from(
    "initialize server/discover tools/call tools/list logging/setLevel subscriptions/listen tasks/get ping "
    "notifications/initialized notifications/cancelled notifications/progress x".split()
)
PARAMS = JUNK | st.dictionaries(
    st.sampled_from(
        "name arguments _meta cursor requestState inputResponses taskId requestId level progressToken "
        "protocolVersion capabilities".split()
    ),
    JUNK | st.dictionaries(st.sampled_from([*modern(), "progressToken"]), JUNK),
)


@given(st.lists(st.tuples(METHODS, JUNK, PARAMS), max_size=6))
def test_requests_that_nobody_should_send_are_answered_all_the_same(said: list[tuple[str, Any, Any]]) -> None:
    live = Live(asking().library("/params/arguments/0"))
    for method, id, params in said:  # noqa: A001
        live.say(method=method, id=id, params=params)
        live.say(method=method, params=params)
    assert names(live.ask("still here", "ping"))[-1] == "still here"


@given(st.data())
@settings(max_examples=60, deadline=None)
def test_any_conversation_replayed_by_its_own_client_gets_its_own_answers(data: st.DataObject) -> None:
    talk = Talk().handshake()
    waiting: list[int] = []
    reporting: list[int] = []
    asked: list[int] = []
    last = 0
    for number in range(1, data.draw(st.integers(1, 15), label="requests") + 1):
        token = {"_meta": {"progressToken": number}} if data.draw(st.booleans()) else {}
        about = {"name": data.draw(st.sampled_from("ab")), "arguments": {"n": data.draw(st.integers(0, 1))}}
        talk.client(id=number, method="tools/call", params={**about, **token})
        waiting.append(number)
        for what in data.draw(
            st.lists(st.sampled_from(["progress", "log", "ask", "answer", "heard"]), max_size=5)
        ):
            if what == "log":
                talk.server(**log())
            elif what == "ask":
                last += 1
                asked.append(last)
                talk.server(id=last, method="ping", params={"n": last})
            elif what == "heard" and asked:
                talk.client(id=asked.pop(0), result={})
            elif what == "progress" and (open_ones := [each for each in reporting if each in waiting]):
                talk.server(**progress(data.draw(st.sampled_from(open_ones)), number))
            elif what == "answer" and waiting:
                done = waiting.pop(data.draw(st.integers(0, len(waiting) - 1)))
                talk.server(id=done, result={"said": f"{done} {number}"})
    for speed in (0.0, 1.0):
        assert replayed(talk.session, speed) == recorded(talk.session)


@pytest.mark.parametrize("path", RECORDINGS, ids=lambda path: path.stem)
@pytest.mark.parametrize("speed", [0.0, 1.0])
def test_a_real_conversation_replayed_by_its_own_client_gets_its_own_answers(
    path: Path, speed: float
) -> None:
    recording = Recording(path)
    session = Session(recording.header).add_all(recording)
    assert replayed(session, speed) == recorded(session)


Heard = dict[str, list[Any]]
"""Under the id of a request its answers, under its token what was reported, under a method what was said besides."""


def recorded(session: Session) -> Heard:
    heard: Heard = defaultdict(list)
    for change in session.changes:
        if (
            isinstance(change.what, Request | Notification | Result | Failure)
            and change.what.side == "server"
        ):
            hear(heard, json.loads(change.what.data))
    return heard


def replayed(session: Session, speed: float) -> Heard:
    """Be the client: say what it said when it said it, but answers when they are asked for."""
    conversation = Conversation(Library.of([("r.jsonl", session)]), Options(speed=speed), 0.0)
    heard: Heard = defaultdict(list)
    answers: dict[str, list[bytes]] = defaultdict(list)
    for exchange in session.exchanges:
        if exchange.request.side == "server" and exchange.answer is not None:
            answers[question(json.loads(exchange.request.data))].append(exchange.answer.data)

    def listen(now: float) -> None:
        again = True
        while again:
            again = False
            for outgoing in conversation.take(now):
                said = json.loads(outgoing.data)
                hear(heard, said)
                if "method" in said and "id" in said and answers[question(said)]:
                    answer = {**json.loads(answers[question(said)].pop(0)), "id": said["id"]}
                    conversation.receive(json.dumps(answer).encode(), outgoing.at)
                    again = True

    for change in session.changes:
        what = change.what
        if isinstance(what, Request | Notification) and what.side == "client":
            listen(what.at)
            conversation.receive(what.data, what.at)
        elif isinstance(what, Note) and what.kind == "eof" and what.fields["from"] == "client":
            listen(what.at)
            conversation.close(what.at)
    listen(1e9)
    assert conversation.complaints() == [
        f"{exchange.request.method} {exchange.request.subject}: was never answered when it was recorded, so it is not now"
        for exchange in session.exchanges
        if exchange.request.side == "client" and exchange.answer is None and exchange.cancel is None
    ]
    assert conversation.choice.unused() == []
    return heard


def question(said: Json) -> str:
    return json.dumps([said["method"], said.get("params")])


def hear(heard: Heard, said: Json) -> None:
    if "method" not in said:
        heard[f"answer to {said['id']!r}"].append(said)
    elif "id" in said:
        heard[question(said)].append("asked")
    elif said["method"] == "notifications/progress":
        heard[f"progress of {said['params']['progressToken']!r}"].append(said)
    else:
        heard[said["method"]].append(said)
