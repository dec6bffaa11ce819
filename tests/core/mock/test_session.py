"""Mock sessions of one client."""

from __future__ import annotations

import json
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mcpspy.core.mock.loader import InteractionLoader
from mcpspy.core.mock.recordings import Recordings
from mcpspy.core.mock.selector import MatchMode
from mcpspy.core.mock.session import MockSession
from mcpspy.core.mock.steering import MockOptions
from mcpspy.core.mock.store import InteractionStore
from mcpspy.core.protocol.message import Failure, Notification, Request, Result
from mcpspy.core.recording.decode import Entry, Note
from mcpspy.core.session.session import Session
from mcpspy.io.recording.reader import Recording
from tests.core.mock.talking import (
    VERSION,
    Json,
    Live,
    Talk,
    asking,
    entries,
    log,
    modern,
    names,
    progress,
    recordings_of,
    slow,
)

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
    assert live.session.next_at == live.now + 0.5
    assert live.session.owes
    assert [names(live.wait(0.5)) for _ in range(3)] == [
        ["notifications/progress"],
        ["notifications/progress"],
        ["a"],
    ]
    after = live.session
    assert after.next_at is None
    assert not after.owes


def test_a_cancelled_request_gets_no_more_messages() -> None:
    live = slow().live(speed=1.0)
    live.ask("a", "tools/call", name="slow", _meta={"progressToken": 0})
    assert names(live.wait(1.0)) == ["notifications/progress"]
    assert live.say(method="notifications/cancelled", params={"requestId": "a"}) == []
    assert live.wait(10.0) == []
    assert not live.session.owes


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
    assert live.session.complaints() == []


def test_a_request_without_a_recorded_response_is_reported() -> None:
    live = Talk().call(1).client(id=2, method="a").live()
    assert live.ask(5, "a") == []
    (said,) = live.session.complaints()
    assert said.startswith("a: the recording has no response")


def test_the_mock_waits_for_the_response_to_a_server_request() -> None:
    answer: Json = {"result": {"roots": []}}
    live = asking().live()
    live.initialize(roots={})
    (request,) = live.call("a", "ask")
    assert request["method"] == "roots/list"
    assert live.wait(100.0) == []
    assert names(live.say(id=request["id"], **answer)) == ["notifications/message", "a"]
    assert live.say(id=request["id"], **answer) == [], "an answer counts once"


@pytest.mark.parametrize("id", [{}, {"id": None}])
@pytest.mark.parametrize("outcome", [{"result": None}, {"error": {"code": -32601, "message": "no"}}])
def test_a_response_without_an_id_to_a_notification_is_repeated_at_its_place(id: Json, outcome: Json) -> None:  # noqa: A002
    talk = Talk().handshake().server(**id, **outcome).call(1)
    live = talk.live()
    live.initialize()
    assert live.say(method="notifications/initialized") == [{"jsonrpc": "2.0", **id, **outcome}]
    assert live.answered(7) == "yes"
    assert live.say(method="notifications/initialized") == []


def test_a_response_without_an_id_during_a_request_does_not_answer_it() -> None:
    talk = Talk().handshake().client(id=1, method="tools/call", params={"name": "echo"})
    live = talk.server(result=None).server(id=1, result={"said": "yes"}).live()
    live.initialize()
    stray, answer = live.call("a")
    assert stray == {"jsonrpc": "2.0", "result": None}
    assert (answer["id"], answer["result"]) == ("a", {"said": "yes"})


def test_the_recorded_response_to_garbage_is_not_sent_in_addition_to_that_of_the_mock() -> None:
    parse_error = {"code": -32700, "message": "garbage"}
    live = Talk().handshake().frame("client", b"{").server(id=None, error=parse_error).live()
    live.initialize()
    assert live.say(method="notifications/initialized") == []
    assert [said["error"]["code"] for said in live.send(b"{")] == [-32700]


def test_messages_recorded_after_a_notification_are_sent_once() -> None:
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
def test_some_requests_succeed_even_if_they_were_not_recorded(method: str) -> None:
    live = Talk().handshake().live()
    assert live.ask(1, method, uri="x:") == [{"jsonrpc": "2.0", "id": 1, "result": {}}]
    assert live.session.selector.misses == []


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
def test_an_invalid_request_is_refused_and_the_next_is_answered(data: bytes, code: int, id: object) -> None:  # noqa: A002
    live = Talk().handshake().live()
    (said,) = live.send(data)
    assert (said["error"]["code"], said["id"]) == (code, id)
    assert names(live.ask(7, "ping")) == [7]


def test_a_blank_line_gets_no_response() -> None:
    assert Talk().handshake().live().send(b" \r") == []


def test_outgoing_messages_name_the_request_that_they_belong_to() -> None:
    live = slow().live()
    live.session.receive(
        b'{"jsonrpc":"2.0","id":"a","method":"tools/call","params":{"name":"slow","_meta":{"progressToken":1}}}',
        live.now,
    )
    said = list(live.session.take(live.now))
    assert [(outgoing.request, outgoing.is_answer) for outgoing in said] == [
        (b'"a"', False),
        (b'"a"', False),
        (b'"a"', True),
    ]


def test_a_subscribed_notification_belongs_to_its_subscription_and_not_to_its_cause() -> None:
    meta = {"io.modelcontextprotocol/subscriptionId": "l"}
    talk = Talk().client(id="l", method="subscriptions/listen", params={"_meta": modern()})
    talk.client(id=1, method="touch", params={"_meta": modern()})
    talk.server(method="notifications/resources/updated", params={"uri": "x:", "_meta": meta})
    live = talk.server(id=1, result={}).live()
    live.ask("live", "subscriptions/listen", _meta=modern())
    said = json.dumps({"jsonrpc": "2.0", "id": 2, "method": "touch", "params": {"_meta": modern()}})
    live.session.receive(said.encode(), live.now)
    assert [outgoing.request for outgoing in live.session.take(live.now)] == [b'"live"', b"2"]


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
def test_nothing_that_a_client_sends_stops_the_mock(lines: list[bytes]) -> None:
    live = Talk().handshake().call(1).live(speed=1.0)
    for line in lines:
        live.send(line)
    live.now += 60.0
    live.received()
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
def test_the_mock_survives_arbitrary_requests(said: list[tuple[str, Any, Any]]) -> None:
    live = Live(asking().recordings("/params/arguments/0"))
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
            st.lists(st.sampled_from(["progress", "log", "ask", "answer", "received"]), max_size=5)
        ):
            if what == "log":
                talk.server(**log())
            elif what == "ask":
                last += 1
                asked.append(last)
                talk.server(id=last, method="ping", params={"n": last})
            elif what == "received" and asked:
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


Received = dict[str, list[Any]]
"""Received messages by key: responses by id, progress by token, requests by content, others by method."""


def recorded(session: Session) -> Received:
    received: Received = defaultdict(list)
    for change in session.changes:
        if (
            isinstance(change.what, Request | Notification | Result | Failure)
            and change.what.side == "server"
        ):
            hear(received, json.loads(change.what.data))
    return received


def replayed(session: Session, speed: float) -> Received:
    """Play the client of a session: send its messages at their times, and its responses when they are requested."""
    client = MockSession(recordings_of([("r.jsonl", session)]), MockOptions(speed=speed), 0.0)
    received: Received = defaultdict(list)
    answers: dict[str, list[bytes]] = defaultdict(list)
    for exchange in session.exchanges:
        if exchange.request.side == "server" and exchange.answer is not None:
            answers[question(json.loads(exchange.request.data))].append(exchange.answer.data)

    def listen(now: float) -> None:
        again = True
        while again:
            again = False
            for outgoing in client.take(now):
                said = json.loads(outgoing.data)
                hear(received, said)
                if "method" in said and "id" in said and answers[question(said)]:
                    answer = {**json.loads(answers[question(said)].pop(0)), "id": said["id"]}
                    client.receive(json.dumps(answer).encode(), outgoing.at)
                    again = True

    for change in session.changes:
        what = change.what
        if isinstance(what, Request | Notification) and what.side == "client":
            listen(what.at)
            client.receive(what.data, what.at)
        elif isinstance(what, Note) and what.kind == "eof" and what.fields["from"] == "client":
            listen(what.at)
            client.close(what.at)
    listen(1e9)
    assert client.complaints() == [
        f"{exchange.request.method} {exchange.request.subject}: the recording has no response, so none is sent"
        for exchange in session.exchanges
        if exchange.request.side == "client" and exchange.answer is None and exchange.cancel is None
    ]
    assert client.selector.unused() == []
    return received


def question(said: Json) -> str:
    return json.dumps([said["method"], said.get("params")])


def hear(received: Received, said: Json) -> None:
    if "method" not in said:
        received[f"answer to {said['id']!r}"].append(said)
    elif "id" in said:
        received[question(said)].append("asked")
    elif said["method"] == "notifications/progress":
        received[f"progress of {said['params']['progressToken']!r}"].append(said)
    else:
        received[said["method"]].append(said)


class Reading:
    """A client of recordings that are read entry by entry, starting with the last recording."""

    def __init__(self, *talks: Talk, **options: Any) -> None:
        self.loaders = [
            InteractionLoader(InteractionStore(f"{number}.jsonl"), talk.session.header)
            for number, talk in enumerate(talks)
        ]
        self._unread: list[tuple[InteractionLoader, list[Entry]]] = [
            (loader, list(entries(talk.session))) for loader, talk in zip(self.loaders, talks, strict=True)
        ]
        self.recordings = Recordings([loader.store for loader in self.loaders])
        self.session = MockSession(self.recordings, MockOptions(**options), 0.0)

    def read(self, count: int, which: int = -1) -> list[Json]:
        """Read entries of the last incomplete recording, or of another one; return the messages that the client gets."""
        for _ in range(count):
            if self._unread:
                loader, left = self._unread[which]
                if left:
                    loader.add(left.pop(0))
                if not left:
                    loader.finish()
                    self._unread.pop(which)
            self.session.resume(0.0)
        return self.received()

    def read_all(self) -> list[Json]:
        return self.read(1 + sum(len(left) for _, left in self._unread))

    def say(self, **members: Any) -> list[Json]:
        self.session.receive(json.dumps({"jsonrpc": "2.0", **members}).encode(), 0.0)
        return self.received()

    def call(self, id: Any, tool: str = "echo", **arguments: Any) -> list[Any]:  # noqa: A002
        """Call a tool; return the ids and texts of the responses that arrive at once."""
        return told(self.say(id=id, method="tools/call", params={"name": tool, "arguments": arguments}))

    def received(self) -> list[Json]:
        return [json.loads(outgoing.data) for outgoing in self.session.take(0.0)]


def told(said: list[Json]) -> list[Any]:
    return [(each.get("id"), each["result"]["said"] if "result" in each else "error") for each in said]


def three() -> Talk:
    return Talk().call(1, answer="a", n=1).call(2, answer="b", n=2).call(3, answer="c", n=1)


def test_a_completed_interaction_is_answered_before_the_rest_is_read() -> None:
    reading = Reading(three())
    assert reading.call("x", n=1) == []
    assert reading.session.waits
    assert reading.session.owes
    assert told(reading.read(2)) == [], "a notification may still belong to it"
    assert told(reading.read(1)) == [("x", "a")]
    assert not reading.session.waits


def test_a_request_waits_behind_an_earlier_pending_request() -> None:
    reading = Reading(three())
    reading.read(3)
    assert reading.call("x", n=2) == []
    assert reading.call("y", n=1) == [], "though it is there already"
    assert told(reading.read(2)) == [("x", "b"), ("y", "a")]


def test_a_response_waits_for_the_next_in_its_queue_or_the_end_of_the_recording() -> None:
    reading = Reading(three())
    reading.read(4)
    assert [reading.call("x", n=1), reading.call("y", n=1), reading.call("z", n=1)] == [[("x", "a")], [], []]
    assert told(reading.read_all()) == [("y", "c"), ("z", "c")]
    assert [interaction.number for interaction in reading.session.selector.unused()] == [1]


def test_a_miss_is_certain_only_at_the_end_of_the_recording() -> None:
    reading = Reading(three())
    reading.read(5)
    assert [reading.call("x", "other"), reading.say(id="p", method="ping")] == [[], []]
    assert [each["id"] for each in reading.read_all()] == ["x", "p"]
    assert reading.session.selector.misses == ["not recorded: tools/call other"]


def test_input_that_needs_no_recording_does_not_wait() -> None:
    reading = Reading(Talk().handshake().client(id=1, method="a").server(id=7, method="ping").call(2))
    reading.read(2)
    reading.call("x")
    reading.session.receive(b"garbage", 0.0)
    assert [each["error"]["code"] for each in reading.received()] == [-32700]
    assert reading.say(id=9, result={}) == []


def test_a_notification_waits_for_the_messages_that_followed_it() -> None:
    talk = Talk().handshake().server(method="notifications/tools/list_changed").call(1)
    reading = Reading(talk)
    reading.read(3)
    assert reading.say(method="notifications/initialized") == []
    assert [each["method"] for each in reading.read(2)] == ["notifications/tools/list_changed"]


def test_a_request_that_waits_and_is_cancelled_is_not_answered() -> None:
    told_so, hung_up = Reading(three()), Reading(three())
    told_so.call("x", n=1)
    told_so.say(method="notifications/cancelled", params={"requestId": "x"})
    hung_up.call("x", n=1)
    hung_up.session.cancel('"x"', 0.0)
    assert not hung_up.session.waits
    assert [told_so.read_all(), hung_up.read_all()] == [[], []]
    assert told(told_so.say(id="y", method="tools/call", params={"name": "echo", "arguments": {"n": 2}}))


def test_a_client_that_closed_its_end_gets_pending_responses_and_then_the_end() -> None:
    talk = Talk().client(id="l", method="subscriptions/listen", params={"_meta": modern()}).call(1)
    talk.note("eof", **{"from": "client"}).server(id="l", error={"code": -32000, "message": "closed"})
    reading = Reading(talk)
    reading.say(id="live", method="subscriptions/listen", params={"_meta": modern()})
    reading.session.close(0.0)
    assert reading.session.owes
    (said,) = reading.read_all()
    assert (said["id"], said["error"]["code"]) == ("live", -32000)
    assert not reading.session.owes


def test_the_last_recording_can_answer_before_the_first_is_read() -> None:
    reading = Reading(
        Talk().call(1, answer="old", n=1).call(2, "first"), Talk().call(1, answer="new", n=1).call(2, n=9)
    )
    reading.read(3)
    assert reading.call("x", n=1) == [("x", "new")]
    assert reading.call("y", "first") == []
    assert told(reading.read(3)) == [], "the last is whole, the first has just begun"
    assert told(reading.read_all()) == [("y", "yes")]
    assert reading.recordings.conflicts == ["tools/call echo: 1.jsonl and 0.jsonl differ; using 1.jsonl"]


def test_a_response_is_not_settled_before_the_last_recording_is_read() -> None:
    reading = Reading(three(), Talk().call(1, "other").call(2, answer="new", n=1))
    reading.read(3, which=0)
    reading.read(2)
    assert reading.call("x", n=1) == []
    assert told(reading.read_all()) == [("x", "new")]


def test_an_unknown_revision_is_not_refused_before_the_recording_is_read() -> None:
    talk = Talk()
    for id, version in ((1, "2026-07-28"), (2, "2026-07-28"), (3, "2027-01-01")):  # noqa: A001
        talk.client(id=id, method="tools/list", params={"_meta": modern(**{VERSION: version})})
        talk.server(id=id, result={"said": version})
    reading = Reading(talk, match=MatchMode.METHOD)
    reading.read(3)
    params = {"_meta": modern(**{VERSION: "2027-01-01"})}
    assert reading.say(id="x", method="tools/list", params=params) == []
    assert told(reading.read_all()) == [("x", "2026-07-28")]


def test_a_response_to_an_unread_input_request_waits() -> None:
    talk = Talk()
    for said in ("accept", "decline"):
        params = {"name": "ask", "requestState": "s", "inputResponses": {"q": said}, "_meta": modern()}
        talk.client(id=1, method="tools/call", params=params).server(id=1, result={"said": said})
        talk.client(method="notifications/x")
    reading = Reading(talk)
    reading.read(3)
    assert reading.say(id="x", method="tools/call", params=params) == []
    assert told(reading.read_all()) == [("x", "decline")]


def test_other_arguments_match_only_after_the_whole_recording_is_read() -> None:
    reading = Reading(three(), match=MatchMode.LENIENT)
    reading.read(5)
    assert reading.call("x", n=1) == [("x", "a")]
    assert reading.call("y", n=7) == []
    assert told(reading.read_all()) == [("y", "error")]
    late = Reading(
        Talk().call(1, n=1).client(method="notifications/x").call(2, answer="b", n=7), match=MatchMode.LENIENT
    )
    late.read(3)
    assert late.call("x", n=7) == [], "though it is the only one so far"
    assert told(late.read_all()) == [("x", "b")]


def test_mode_method_takes_the_next_request_as_soon_as_it_is_read() -> None:
    reading = Reading(three(), match=MatchMode.METHOD)
    reading.read(3)
    assert reading.call("x", "whatever") == [("x", "a")]
    assert reading.call("y", "whatever") == []
    assert told(reading.read(2)) == [("y", "b")]
    two = Reading(three(), three(), match=MatchMode.METHOD)
    two.read(8)
    assert two.call("x") == [], "those of the first come first"
    assert told(two.read_all()) == [("x", "a")]


def test_two_requests_of_a_batch_use_different_interactions() -> None:
    reading = Reading(Talk().handshake("2025-03-26").call(1, answer="a").call(2, answer="b").call(3, "x"))
    reading.read(5)
    params = {"name": "echo", "arguments": {}}
    batch = [{"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params} for id in (1, 2)]  # noqa: A001
    reading.session.revision = "2025-03-26"
    reading.session.receive(json.dumps(batch).encode(), 0.0)
    assert reading.session.waits
    assert told(reading.read_all()) == [(1, "a"), (2, "b")]


@given(st.data())
@settings(max_examples=100, deadline=None)
def test_responses_during_loading_equal_those_after_loading(data: st.DataObject) -> None:
    talk = Talk().handshake()
    said: list[Json] = []
    for number in range(1, data.draw(st.integers(1, 8), label="requests") + 1):
        about = {"name": data.draw(st.sampled_from("ab")), "_meta": {"progressToken": number}}
        asked: Json = {"id": number, "method": "tools/call", "params": about}
        said.append(asked)
        talk.client(**asked)
        for what in data.draw(st.lists(st.sampled_from(["progress", "log", "changed"]), max_size=2)):
            told = {"progress": progress(number, 1), "log": log(), "changed": {"method": "notifications/x"}}
            talk.server(**told[what])
        if data.draw(st.booleans(), label="answered"):
            talk.server(id=number, result={"said": number})
    order = data.draw(st.permutations(said))
    match = data.draw(st.sampled_from(MatchMode))
    whole, part = Reading(talk, match=match), Reading(talk, match=match)
    expected = whole.read_all()
    received: list[Json] = []
    for asked in order:
        expected += whole.say(**asked)
        received += part.read(data.draw(st.integers(0, 4)))
        received += part.say(**asked)
    assert received + part.read_all() == expected
    assert part.session.complaints() == whole.session.complaints()


CALL = b'{"jsonrpc":"2.0","id":%b,"method":"tools/call","params":{"name":"echo","arguments":{}}}'
RESULT = b'{"jsonrpc":"2.0","id":%b,"result":{"said":"yes"}}'
INVALID = b'{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"invalid request: id is 1.0"}}'


@pytest.mark.parametrize(
    ("asked", "echoed", "sent", "answered"),
    [
        (b"1.0", b"1.0", b"1.0", b"1.0"),
        (b"1.0", b"1", b"1.0", b"1"),
        (b"1.0", b"1", b"-2e1", b"-20"),
        (b"1.0", b"1", b"1.5", b"1.5"),
        (b"1.0", b"1", b"1e999", b"1e999"),
        (b"1.5", b"1.5", b"1.0", b"1.0"),
        (b"1.0", b"1", b"7", b"7"),
        (b"1.0", b"1.0", b'"a"', b'"a"'),
    ],
)
def test_an_id_with_a_fraction_is_answered_in_the_spelling_of_the_recorded_server(
    asked: bytes, echoed: bytes, sent: bytes, answered: bytes
) -> None:
    live = Talk().handshake().frame("client", CALL % asked).frame("server", RESULT % echoed).live()
    for _ in range(2):
        live.session.receive(CALL % sent, live.now)
        assert [each.data for each in live.session.take(live.now)] == [RESULT % answered]


def test_an_id_with_a_fraction_gets_nothing_from_a_server_that_never_answered_one() -> None:
    live = Talk().handshake().frame("client", CALL % b"1.0").live()
    live.session.receive(CALL % b"1.0", live.now)
    assert list(live.session.take(live.now)) == []


@pytest.mark.parametrize("sent", [b"1.0", b"null", b"true"])
def test_other_invalid_ids_are_rejected_and_take_no_recorded_response(sent: bytes) -> None:
    talk = Talk().handshake().call(1, answer="first").call(2, answer="second")
    live = talk.live()
    live.session.receive(CALL % sent, live.now)
    (rejected,) = live.session.take(live.now)
    assert rejected.data == INVALID.replace(b"1.0", sent)
    assert [live.answered(each) for each in (1, 2)] == ["first", "second"]
