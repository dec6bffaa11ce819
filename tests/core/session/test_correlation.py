"""Pairing, on the least that can be paired: whole sessions are `test_session`'s."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule
from msgspec import Raw, Struct

from mcpspy.core.protocol.spec import other
from mcpspy.core.recording.decode import Frame
from mcpspy.core.session.correlation import Correlation, question
from mcpspy.core.session.exchange import Event, State
from mcpspy.core.session.session import Change, Session


class Asked(Struct, eq=False):
    """A request of which nothing is known but its state."""

    state: State = State.PENDING
    is_task: bool = False
    is_subscription: bool = False
    is_modern: bool = False


CLIENT, SERVER = Frame(0.0, "client", b""), Frame(0.0, "server", b"")


def test_an_answer_settles_the_request_that_waits_under_its_id() -> None:
    pairing, asked = Correlation[Asked](), Asked()
    assert pairing.request(asked, CLIENT, "1", None, modern=False) is None
    assert list(pairing.pending()) == [asked]
    assert pairing.answer(CLIENT, "1", Event.RESULT) == (None, None), "the client asked itself"
    assert pairing.answer(SERVER, "1", Event.RESULT) == (asked, None)
    assert (asked.state, list(pairing.pending())) == (State.OK, [])
    assert pairing.stray(SERVER, "1") == (asked, "id 1 was answered before")


def test_an_answer_finds_its_request_however_long_ago() -> None:
    pairing = Correlation[Asked](forgets=True)
    first = Asked()
    pairing.ask_plainly(first, (None, "client", "0"), None)
    for number in range(1, 50):
        pairing.ask_plainly(Asked(), (None, "client", str(number)), None)
        pairing.answer_plainly((None, "client", str(number)), Event.RESULT)
        pairing.forget_but(3)

    assert len(pairing._answered) == 3
    assert pairing.waiting() == [first]
    assert pairing.answer(Frame(1.0, "server", b""), "0", Event.RESULT) == (first, None)
    assert first.state is State.OK


def test_an_http_exchange_is_forgotten_only_after_its_end() -> None:
    pairing = Correlation[Asked](forgets=True)
    for number in range(1, 20):
        frame = Frame(0.0, "client", b"", stream="1", http=number)
        pairing.request(Asked(), frame, str(number), None, modern=False)
        pairing.http(number, 404)
        if number > 1:
            pairing.http_end(number, None)
        pairing.forget_but(3)

    assert sorted(pairing._posted) == [1, 17, 18, 19]
    refused, flaw = pairing.http_end(1, None)
    assert refused is not None
    assert (refused.state, flaw) == (State.REFUSED, "HTTP 404")


def test_a_request_that_is_asked_plainly_is_refused_by_its_exchange_all_the_same() -> None:
    pairing = Correlation[Asked](forgets=True)
    for number, exchanges in ((1, [5]), (2, [6, 6])):
        key = ("1", "client", str(number))
        pairing.ask_plainly(Asked(), key, None)
        for http in exchanges:
            pairing.post_plainly(http, key)
            pairing.http(http, 500)

    assert [pairing.http_end(http, None)[1] for http in (5, 6)] == ["HTTP 500", None]


def test_events_that_came_lately_are_known_when_they_come_again() -> None:
    pairing = Correlation[Asked](forgets=True)
    for number in range(10):
        assert not pairing.comes_again(Frame(0.0, "server", b"", stream="1", event_id=str(number)))
        pairing.forget_but(3)

    assert [
        pairing.comes_again(Frame(0.0, "server", b"", stream="1", event_id=str(number)))
        for number in (9, 7, 0)
    ] == [True, True, False]


def test_a_question_that_was_answered_leaves_nothing() -> None:
    pairing = Correlation[Asked](forgets=True)
    asked = (None, "tools/call", "book", "state")
    first, second = Asked(), Asked()
    pairing.asks(asked, first)
    pairing.asks(asked, second)

    assert [pairing.continued(asked) for _ in range(3)] == [first, second, None]
    assert pairing._questions == {}


@pytest.mark.parametrize(("modern", "flaw"), [(False, "id 1 was used before"), (True, None)])
def test_an_id_may_come_again_only_where_there_is_no_session(modern: bool, flaw: str | None) -> None:
    pairing = Correlation[Asked]()
    pairing.request(Asked(), CLIENT, "1", None, modern=modern)
    pairing.answer(SERVER, "1", Event.RESULT)
    assert pairing.request(Asked(), CLIENT, "1", None, modern=modern) == flaw


def test_streams_do_not_share_ids() -> None:
    pairing, one, two = Correlation[Asked](), Asked(), Asked()
    pairing.request(one, Frame(0.0, "client", b"", "1", 1), "1", None, modern=False)
    pairing.request(two, Frame(0.0, "client", b"", "2", 2), "1", None, modern=False)
    assert pairing.answer(Frame(0.0, "server", b"", "2", 2), "1", Event.RESULT) == (two, None)
    assert one.state is State.PENDING


def test_what_is_left_at_the_end_got_no_answer_but_a_subscription_is_closed() -> None:
    pairing, plain, listening = Correlation[Asked](), Asked(), Asked(is_subscription=True)
    pairing.request(plain, CLIENT, "1", None, modern=True)
    pairing.request(listening, CLIENT, "2", None, modern=True)
    assert pairing.end() == [plain, listening]
    assert (plain.state, listening.state) == (State.UNANSWERED, State.CLOSED)


def test_a_question_and_its_answer_share_the_state_whatever_the_stream() -> None:
    state, nothing = Raw(b'"s"'), Raw()
    assert question("1", "tools/call", "x", state, nothing) == question(
        "2", "tools/call", "x", state, nothing
    )
    assert question("1", "m", None, nothing, Raw(b'{"b":1,"a":2}')) == ("1", "m", None, "a,b")


KEYS = st.tuples(
    st.sampled_from([None, "a"]), st.sampled_from(["client", "server"]), st.sampled_from([1, "1", 2.0])
)
"""Stream, who asks, id: few, so that they meet."""

Key = tuple[str | None, str, Any]


class Conversations(RuleBasedStateMachine):
    """Whatever is asked, answered, cancelled and reported on, by both sides of two streams: who has what."""

    def __init__(self) -> None:
        super().__init__()
        self.session = Session()
        self.states: list[str] = []
        self.waiting: dict[Key, int] = {}
        self.progress: dict[int, int] = {}
        self.strays = 0

    def say(self, stream: str | None, side: str, **members: Any) -> Change:
        (change,) = self.session.add(
            Frame(0.0, side, json.dumps({"jsonrpc": "2.0", **members}).encode(), stream)
        )
        return change

    @rule(key=KEYS)
    def ask(self, key: Key) -> None:
        if key in self.waiting:
            return
        stream, side, number = key
        token = len(self.states)
        self.say(stream, side, id=number, method="x/y", params={"_meta": {"progressToken": token}})
        self.waiting[key] = len(self.states)
        self.states.append("pending")

    @rule(key=KEYS, failed=st.booleans())
    def answer(self, key: Key, failed: bool) -> None:
        stream, side, number = key
        body = {"error": {"code": -1, "message": "no"}} if failed else {"result": {}}
        change = self.say(stream, other(side), id=number, **body)
        if key not in self.waiting:
            assert change.flaw
            return
        asked = self.waiting.pop(key)
        assert change.exchange is self.session.exchanges[asked]
        was = self.states[asked]
        self.states[asked] = "answered late" if was == "cancelled" else "error" if failed else "ok"

    @rule(key=KEYS)
    def cancel(self, key: Key) -> None:
        stream, side, number = key
        change = self.say(stream, side, method="notifications/cancelled", params={"requestId": number})
        asked = self.waiting.get(key)
        if asked is None:
            assert change.flaw or change.exchange is None or change.exchange.answer is not None
        else:
            self.states[asked] = "cancelled"

    @precondition(lambda self: self.states)
    @rule(data=st.data())
    def report(self, data: st.DataObject) -> None:
        asked = data.draw(st.sampled_from(range(len(self.states))))
        request = self.session.exchanges[asked].request
        params = {"progressToken": asked, "progress": 1}
        change = self.say(
            request.frame.stream, other(request.frame.side), method="notifications/progress", params=params
        )
        assert change.exchange is self.session.exchanges[asked]
        assert bool(change.flaw) == (self.states[asked] in ("ok", "error", "answered late"))

    @invariant()
    def each_request_is_what_became_of_it(self) -> None:
        assert [exchange.state.value for exchange in self.session.exchanges] == self.states
        pending = {
            self.session.exchanges[n].number for n in self.waiting.values() if self.states[n] == "pending"
        }
        assert {exchange.number for exchange in self.session.pending} == pending

    def teardown(self) -> None:
        left = self.session.end()
        assert sorted(exchange.number for exchange in left) == [
            n for n, state in enumerate(self.states) if state == "pending"
        ]


TestConversations = Conversations.TestCase
TestConversations.settings = settings(max_examples=30, stateful_step_count=30, deadline=None)
