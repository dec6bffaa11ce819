"""Correlation of any conversation, against a model; which lines take the short cut."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from mcpspy.core.protocol.spec import other
from mcpspy.core.recording.decode import Frame, Note, read_entry
from mcpspy.core.session.correlation import REPEATED_EVENT
from mcpspy.core.session.exchange import State
from mcpspy.core.session.index import Index
from mcpspy.core.session.session import Change, Session

KEYS = st.tuples(
    st.sampled_from([None, "a"]), st.sampled_from(["client", "server"]), st.sampled_from([1, "1", 2.0])
)
"""Stream, requester and id, from small sets, so that they collide."""

Key = tuple[str | None, str, Any]


class Conversations(RuleBasedStateMachine):
    """Requests, responses, cancellations and progress of both sides of two streams, with a model of the table."""

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
        self.states[asked] = (
            ("late error" if failed else "answered late")
            if was == "cancelled"
            else "error"
            if failed
            else "ok"
        )

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
        assert bool(change.flaw) == (self.states[asked] in ("ok", "error", "answered late", "late error"))

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


HELLO = [
    b'{"t":0.1,"from":"client","msg":{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","clientInfo":{"name":"c","version":"1"}}}}',
    b'{"t":0.2,"from":"server","msg":{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":"2025-11-25","serverInfo":{"name":"s","version":"1"}}}}',
]
ASKED = b'{"t":1.5,"from":"client","msg":{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","_meta":{"progressToken":7}}}}'
ANSWERED = b'{"t":2.5,"from":"server","msg":{"jsonrpc":"2.0","id":1,"result":{"isError":true,"content":[]}}}'
TOLD = b'{"t":3.5,"from":"server","msg":{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info"}}}'
OVER_HTTP = b'"stream":"1","http":5,"from"'


def taken(lines: list[bytes], *, hello: bool = True) -> tuple[int, Index]:
    """Return the number of lines that take the short cut, and the index of all of them."""
    index = Index()
    index.add_lines(HELLO if hello else [], 0)
    return index.take_plain(lines, 0), index


def test_calls_and_their_results_take_the_short_cut() -> None:
    count, index = taken([ASKED, ANSWERED])
    assert count == 2
    assert (index.last_at, index.pair(2), index.pair(3), list(index.wrong)) == (2.5, 3, 2, [3])
    assert [
        (index.texts[index.method[row]], index.texts[index.subject[row]], index.id(row), index.side(row))
        for row in (2, 3)
    ] == [("tools/call", "echo", "1", "client"), ("tools/call", "echo", "1", "server")]
    assert index.state(2) is State.TOOL_ERROR


def test_a_plain_request_is_refused_by_its_own_exchange_and_not_by_one_that_carried_two() -> None:
    def posted(number: int, http: int) -> bytes:
        head = OVER_HTTP.replace(b"5", b"%d" % http)
        return ASKED.replace(b'"from"', head).replace(b'"id":1', b'"id":%d' % number)

    count, index = taken([posted(1, 5), posted(2, 6), posted(3, 6)])
    assert count == 3
    for http in (5, 6):
        index._pairing.http(http, 500, {})
    assert [index._pairing.http_end(http, None)[1] for http in (5, 6)] == ["HTTP 500", None]


def test_the_short_cut_works_over_http_too_and_its_end_finds_the_request() -> None:
    count, index = taken([ASKED.replace(b'"from"', OVER_HTTP)])
    assert (count, index.http(2), index.texts[index.stream[2]]) == (1, 5, "1")
    lines = [
        b'{"t":4,"note":"http","http":5,"stream":"1","status":500}',
        b'{"t":5,"note":"http-end","http":5,"stream":"1"}',
    ]
    index.add_lines(lines, 0)
    assert index.state(2) is State.REFUSED


def test_progress_finds_a_request_that_took_the_short_cut() -> None:
    _, index = taken([ASKED])
    report = TOLD.replace(b"notifications/message", b"notifications/progress")
    index.add_lines([report.replace(b'"level":"info"', b'"progressToken":7,"progress":1')], 0)
    assert (index.progress, index.flaws) == ({2: 3}, {})


PLAIN = ASKED.replace(b'"id":1', b'"id":8')


@pytest.mark.parametrize(
    "line",
    [
        b'{"t":1,"note":"stderr","text":"x"}',
        ASKED.replace(b'"from"', b'"by":"mcpspy","from"'),
        ASKED.replace(b'"id":1', b'"id":"1"'),
        ASKED.replace(b'"id":1', b'"id":-1'),
        ASKED.replace(b'"id":1', b'"id":0'),
        ASKED.replace(b'"id":1', b'"id":8'),  # Its id is pending already.
        ASKED.replace(b"tools/call", b"initialize"),
        ASKED.replace(b"tools/call", b"subscriptions/listen"),
        ASKED.replace(b'"method"', b'"result":{},"method"'),
        ANSWERED,  # Unsolicited.
        ANSWERED.replace(b'"id":1', b'"id":8').replace(b'"server"', b'"client"'),
        ANSWERED.replace(b'"id":1', b'"id":8').replace(b'"from"', OVER_HTTP),  # On another stream.
        ANSWERED.replace(b'"id":1,', b""),
        ASKED.replace(b'"name"', b'"x":"\xff","name"'),
    ],
    ids=range(14),
)
def test_a_message_that_needs_a_decision_does_not_take_the_short_cut(line: bytes) -> None:
    count, index = taken([PLAIN, line, PLAIN.replace(b'"id":8', b'"id":9')])
    assert (count, len(index), index.pending, index.last_at) == (1, 3, 1, 1.5)


def test_a_handshake_does_not_take_the_short_cut_however_plain_it_is() -> None:
    index = Index()
    index.add_lines([*HELLO, HELLO[0].replace(b'"id":0', b'"id":5')], 0)
    again = HELLO[1].replace(b'"id":0', b'"id":5').replace(b'"s"', b'"new"')
    assert index.take_plain([again], 0) == 0
    index.add_lines([again], 0)
    assert str(index.server) == "new 1"


def test_there_is_no_short_cut_before_the_handshake() -> None:
    assert taken([ASKED], hello=False)[0] == 0


def test_an_id_that_was_used_before_does_not_take_the_short_cut() -> None:
    assert taken([ASKED, ANSWERED, ASKED])[0] == 2


def test_a_result_that_identifies_the_server_does_not_take_the_short_cut() -> None:
    index = Index()
    index.add_lines([HELLO[0], HELLO[1].replace(b"serverInfo", b"info")], 0)
    named = ANSWERED.replace(
        b'"isError":true', b'"_meta":{"io.modelcontextprotocol/serverInfo":{"name":"s","version":"1"}}'
    )
    assert index.take_plain([ASKED, named], 0) == 1
    index.add_lines([named], 0)
    assert str(index.server) == "s 1"


def test_every_entry_yields_a_change_of_the_right_type() -> None:
    session = Session()
    changes = [
        (type(change).__name__, change.request and change.request.number, change.flaw)
        for entry in (
            frame({"id": 1, "method": "ping", "params": {"_meta": {"progressToken": 7}}}),
            frame({"method": "notifications/progress", "params": {"progressToken": 7}}, "server"),
            frame({"id": 1, "result": {}}, "server"),
            frame({"id": 1, "result": {}}, "server"),
            frame({"id": 2, "method": "ping"}, http=5),
            Note(0.0, "http", {"http": 5, "status": 404}),
            Note(0.0, "http-end", {"http": 5}),
            frame({"id": 3, "method": "ping"}),
            frame({"method": "notifications/cancelled", "params": {"requestId": 3}}),
            frame({"method": "notifications/message"}, "server", event_id="e"),
            frame({"method": "notifications/message"}, "server", event_id="e"),
            frame({"oops": 1}),
            frame({"id": 4, "method": "ping"}),
            Note(1.0, "exit", {"code": 0}),
        )
        for change in session.changes_of(entry)
    ]
    assert changes == [
        ("RequestOpened", 0, None),
        ("RequestProgressed", 0, None),
        ("RequestAnswered", 0, None),
        ("UnsolicitedResponse", 0, "id 1 was answered before"),
        ("RequestOpened", 1, None),
        ("CorrelatedEntry", None, None),
        ("HttpExchangeEnded", 1, None),
        ("RequestOpened", 2, None),
        ("RequestCancelled", 2, None),
        ("CorrelatedEntry", None, None),
        ("RepeatedEvent", None, REPEATED_EVENT),
        ("CorrelatedEntry", None, None),
        ("RequestOpened", 3, None),
        ("CorrelatedEntry", None, None),
    ]
    assert [each.state for each in session.exchanges[1:]] == [
        State.REFUSED,
        State.CANCELLED,
        State.UNANSWERED,
    ]


def frame(message: dict[str, Any], side: str = "client", **head: Any) -> Frame:
    return Frame(0.0, side, json.dumps({"jsonrpc": "2.0", **message}).encode(), **head)


def test_the_revision_is_the_one_that_both_sides_accepted() -> None:
    session = Session()
    session.add(read_entry(HELLO[0]))
    assert session.revision_text == "2025-11-25 (no answer to initialize)"
    session.add(read_entry(HELLO[1].replace(b"2025-11-25", b"1999-01-01")))
    assert (session.revision_text, session.agreed_revision) == (
        "1999-01-01 (not accepted by the client)",
        None,
    )
    session.add(read_entry(ASKED))
    assert (session.revision_text, session.agreed_revision) == ("1999-01-01", "1999-01-01")


def test_a_stream_is_labelled_with_its_client_and_its_number_if_two_have_one_name() -> None:
    session, index = Session(), Index()
    hello = [line.replace(b'"from"', OVER_HTTP) for line in HELLO]
    other_hello = [line.replace(b'"stream":"1"', b'"stream":"2"') for line in hello]
    for lines, labels in ((hello, ["c", "2", ""]), (other_hello, ["c #1", "c #2", ""])):
        session.add_all(map(read_entry, lines))
        index.add_lines(lines, 0)
        assert [session.client_label(stream) for stream in ("1", "2", None)] == labels
        assert [index.client_label(stream) for stream in ("1", "2", None)] == labels


def test_a_plain_request_names_the_client_of_its_stream() -> None:
    meta = b'"_meta":{"io.modelcontextprotocol/clientInfo":{"name":"later","version":"1"},'
    count, index = taken([ASKED.replace(b'"_meta":{', meta).replace(b'"from"', OVER_HTTP)])
    assert (count, index.client_label("1")) == (1, "later")
