"""Sessions: correlation of requests and outcomes, whatever the peers do."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any, NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mcpspy.core.protocol.message import Malformed, Notification, Request, Result
from mcpspy.core.protocol.peers import Peer
from mcpspy.core.recording.decode import Damaged, Frame, Note, read_entry
from mcpspy.core.session.exchange import Exchange, State
from mcpspy.core.session.outcome import of
from mcpspy.core.session.session import Change, Session, is_injected

META = "io.modelcontextprotocol/"


class Talk:
    """A session that grows by the messages of both sides, in order."""

    def __init__(self) -> None:
        self.session = Session()
        self.at = 0.0

    def raw(self, side: str, data: str, stream: str | None = None, http: int | None = None) -> list[Change]:
        self.at += 1.0
        return self.session.add(Frame(self.at, side, data.encode(), stream, http))

    def say(self, side: str, stream: str | None = None, http: int | None = None, **members: Any) -> Change:
        """Add one message; ids and tokens are values, `jsonrpc` is added."""
        (change,) = self.raw(side, json.dumps({"jsonrpc": "2.0", **members}), stream, http)
        return change

    def ask(self, id: Any, method: str = "tools/call", side: str = "client", **params: Any) -> Exchange:  # noqa: A002
        change = self.say(side, id=id, method=method, params=params)
        assert change.exchange is not None
        return change.exchange

    def answer(self, id: Any, side: str = "server", **result: Any) -> Change:  # noqa: A002
        return self.say(side, id=id, result=result)

    def refuse(self, id: Any, code: int = -32601, side: str = "server") -> Change:  # noqa: A002
        return self.say(side, id=id, error={"code": code, "message": "no"})

    def cancel(self, id: Any, side: str = "client") -> Change:  # noqa: A002
        return self.say(side, method="notifications/cancelled", params={"requestId": id})

    def report(self, token: Any, side: str = "server") -> Change:
        return self.say(side, method="notifications/progress", params={"progressToken": token, "progress": 1})

    def note(self, kind: str, **fields: Any) -> Change:
        self.at += 1.0
        (change,) = self.session.add(Note(self.at, kind, fields))
        return change

    def handshake(self, revision: str = "2025-11-25") -> None:
        info: dict[str, Any] = {"protocolVersion": revision, "capabilities": {}}
        self.ask("init", "initialize", **info, clientInfo={"name": "host", "version": "1"})
        self.answer("init", **info, serverInfo={"name": "srv", "version": "2"})

    def modern(self, **more: Any) -> dict[str, Any]:
        """Return the `_meta` of a request of 2026-07-28."""
        return {
            META + "protocolVersion": "2026-07-28",
            META + "clientCapabilities": {"elicitation": {}},
            META + "clientInfo": {"name": "host", "version": "1"},
            **more,
        }


@pytest.fixture
def talk() -> Talk:
    return Talk()


def states(talk: Talk) -> list[str]:
    return [exchange.state.value for exchange in talk.session.exchanges]


# Pairing


def test_an_answer_goes_to_the_request_with_its_id(talk: Talk) -> None:
    first, second = talk.ask(1), talk.ask(2)
    assert talk.session.pending == [first, second]
    change = talk.answer(2, x="second")
    assert (change.exchange, change.flaw) == (second, None)
    assert isinstance(second.answer, Result)
    assert second.answer.result == {"x": "second"}
    assert second.latency == 1.0
    assert talk.session.pending == [first]
    assert states(talk) == ["pending", "ok"]
    assert (first.number, second.number) == (0, 1)


@pytest.mark.parametrize(
    ("message", "state"),
    [
        ({"result": {}}, State.OK),
        ({"result": None}, State.OK),
        ({"result": {"isError": True}}, State.TOOL_ERROR),
        ({"result": {"isError": False}}, State.OK),
        ({"result": {"isError": "true"}}, State.OK),
        ({"result": {"resultType": "input_required", "inputRequests": {}}}, State.INPUT_REQUIRED),
        ({"result": {"resultType": "complete"}}, State.OK),
        ({"result": {"resultType": "task", "taskId": "t"}}, State.OK),
        ({"result": {}, "error": None}, State.OK),
        ({"error": {"code": -32603, "message": "boom"}}, State.ERROR),
        ({"error": None}, State.ERROR),
    ],
    ids=lambda value: str(value)[:60],
)
def test_the_response_decides_the_outcome(talk: Talk, message: dict[str, Any], state: State) -> None:
    exchange = talk.ask(1)
    change = talk.say("server", id=1, **message)
    assert (change.exchange, exchange.state) == (exchange, state)
    assert exchange.answer is change.what
    assert talk.session.pending == ([exchange] if state is State.INPUT_REQUIRED else [])


def test_both_sides_count_from_one_and_each_gets_its_own_answer(talk: Talk) -> None:
    asked_by_client = talk.ask(1, "tools/call")
    asked_by_server = talk.ask(1, "sampling/createMessage", side="server")
    assert talk.answer(1, side="client", role="assistant").exchange is asked_by_server
    assert states(talk) == ["pending", "ok"]
    assert talk.answer(1, side="server", content=[]).exchange is asked_by_client
    assert [change.flaw for change in talk.session.changes] == [None] * 4


def test_the_side_that_asked_cannot_answer_itself(talk: Talk) -> None:
    exchange = talk.ask(1, side="server", method="ping")
    change = talk.answer(1, side="server")
    assert (change.exchange, change.flaw) == (None, "unsolicited response")
    assert exchange.is_open


IDS = [1, "1", 1.5, True, "true", 0, "", 2**53 + 1, 2**64 + 1, float(2**64), "é", [1], None]


@pytest.mark.parametrize("wanted", IDS, ids=repr)
def test_similar_ids_are_distinct(talk: Talk, wanted: Any) -> None:
    exchanges = {repr(value): talk.ask(value) for value in IDS}
    assert [exchange.flaws for exchange in exchanges.values()] == [[]] * len(IDS)
    change = talk.answer(wanted)
    if wanted is None:  # A response to `null` means that the id could not be read.
        assert (change.exchange, change.flaw) == (None, "response without an id")
        return
    assert change.exchange is exchanges[repr(wanted)]
    assert Counter(states(talk)) == {"ok": 1, "pending": len(IDS) - 1}


def test_an_id_spelled_in_escapes_is_the_same_id(talk: Talk) -> None:
    exchange = talk.ask("é")
    (change,) = talk.raw("server", r'{"jsonrpc":"2.0","id":"\u00e9","result":{}}')
    assert change.exchange is exchange


@pytest.mark.parametrize(
    ("asked", "answered"),
    [
        ("1.0", "1"),
        ("1", "1.0"),
        ("1e0", "1"),
        ("-0", "0"),
        ("0", "-0.0"),
        ("1000000", "1e+06"),
        ("1.50", "15e-1"),
    ],
)
def test_a_number_in_another_spelling_is_the_same_id_and_an_issue_names_both(
    talk: Talk, asked: str, answered: str
) -> None:
    (request,) = talk.raw("client", f'{{"jsonrpc":"2.0","id":{asked},"method":"ping"}}')
    (response,) = talk.raw("server", f'{{"jsonrpc":"2.0","id":{answered},"result":{{}}}}')
    assert response.exchange is not None
    assert response.exchange is request.exchange
    assert response.flaw == f"its id is {answered}, the request's is {asked}"
    assert response.exchange.state is State.OK


@pytest.mark.parametrize(("asked", "answered"), [(1, "1"), ("1", 1), (-7, "-7"), ("0", 0)])
def test_a_response_with_another_spelling_of_the_id_is_unsolicited_with_a_hint(
    talk: Talk, asked: Any, answered: Any
) -> None:
    exchange = talk.ask(asked)
    change = talk.answer(answered)
    assert change.exchange is None
    assert change.flaw == (
        f"unsolicited response: the pending id is {json.dumps(asked)}, this is {json.dumps(answered)}"
    )
    assert exchange.is_open
    assert talk.answer(asked).exchange is exchange


def test_two_requests_in_flight_under_one_id_are_answered_in_turn(talk: Talk) -> None:
    first, second, third = (talk.ask(1, name=name) for name in "abc")
    assert first.flaws == []
    assert second.flaws == third.flaws == ["id 1 is in use by an unanswered request"]
    assert [change.flaw for change in talk.session.changes[1:]] == second.flaws * 2
    assert talk.session.pending == [first, second, third]
    answers = [talk.answer(1) for _ in range(3)]
    assert [change.exchange for change in answers] == [first, second, third]
    assert {change.flaw for change in answers} == {
        "paired by order: more than one request in flight had id 1"
    }
    assert talk.answer(1).flaw == "id 1 was answered before"
    assert talk.ask(1).state is State.PENDING
    assert talk.answer(1).flaw is None


def test_an_id_used_again_is_a_flaw_until_2025_11_25(talk: Talk) -> None:
    talk.handshake("2025-11-25")
    first = talk.ask(1)
    talk.answer(1)
    second = talk.ask(1)
    assert second.flaws == ["id 1 was used before"]
    assert talk.session.changes[-1].flaw == "id 1 was used before"
    assert talk.answer(1).exchange is second
    assert first.answer is not second.answer
    assert talk.ask(1, side="server", method="ping").flaws == []


def test_an_id_used_again_is_legal_from_2026_07_28(talk: Talk) -> None:
    talk.ask(1, _meta=talk.modern())
    talk.answer(1)
    second = talk.ask(1, _meta=talk.modern())
    assert second.flaws == []
    third = talk.ask(1, _meta=talk.modern())
    assert third.flaws == ["id 1 is in use by an unanswered request"]
    assert talk.answer(1).exchange is second


def test_an_unsolicited_response_is_reported(talk: Talk) -> None:
    change = talk.answer(5)
    assert (change.exchange, change.flaw) == (None, "unsolicited response")
    change = talk.refuse(6)
    assert (change.exchange, change.flaw) == (None, "unsolicited response")
    assert talk.session.exchanges == []


def test_a_second_answer_does_not_replace_the_first(talk: Talk) -> None:
    exchange = talk.ask(1)
    first = talk.answer(1)
    second = talk.refuse(1)
    assert (second.exchange, second.flaw) == (exchange, "id 1 was answered before")
    assert (exchange.answer, exchange.state) == (first.what, State.OK)


@pytest.mark.parametrize("members", [{}, {"id": None}], ids=["absent", "null"])
def test_a_response_without_an_id_settles_no_request(talk: Talk, members: dict[str, Any]) -> None:
    exchange = talk.ask(1)
    change = talk.say("server", **members, error={"code": -32700, "message": "parse error"})
    assert (change.exchange, change.flaw) == (None, "response without an id")
    assert exchange.is_open


def test_a_second_answer_under_an_id_used_again_belongs_to_the_later_request(talk: Talk) -> None:
    for _ in range(2):
        later = talk.ask(1)
        talk.answer(1)
    assert talk.answer(1).exchange is later
    assert talk.cancel(1).exchange is later


def test_a_response_before_its_request_is_unsolicited(talk: Talk) -> None:
    assert talk.answer(1).flaw == "unsolicited response"
    assert talk.ask(1).is_open


# Streams


def test_two_streams_with_the_same_ids_are_kept_apart(talk: Talk) -> None:
    changes = [talk.say("client", stream, id=1, method="ping") for stream in ("a", "b", None)]
    assert [change.flaw for change in changes] == [None] * 3
    answers = [talk.say("server", stream, id=1, result={}) for stream in ("b", None, "a")]
    assert [answer.exchange for answer in answers] == [changes[place].exchange for place in (1, 2, 0)]
    stray = talk.say("server", "c", id=1, result={})
    assert (stray.exchange, stray.flaw) == (None, "unsolicited response")


def test_cancelling_and_progress_stay_on_their_stream(talk: Talk) -> None:
    meta = {"_meta": {"progressToken": 1}}
    a, b = (talk.say("client", s, id=1, method="tools/call", params=meta).exchange for s in "ab")
    assert a is not None
    assert b is not None
    talk.say("server", "b", method="notifications/progress", params={"progressToken": 1})
    talk.say("client", "a", method="notifications/cancelled", params={"requestId": 1})
    assert (len(a.progress), len(b.progress)) == (0, 1)
    assert (a.state, b.state) == (State.CANCELLED, State.PENDING)


def test_the_http_exchange_is_not_part_of_the_key(talk: Talk) -> None:
    exchange = talk.say("client", "s", 1, id=1, method="tools/call").exchange
    assert talk.say("server", "s", 9, id=1, result={}).exchange is exchange


def test_an_error_without_an_id_answers_the_post_that_carried_it(talk: Talk) -> None:
    first = talk.say("client", "s", 1, id=1, method="tools/call").exchange
    second = talk.say("client", "s", 2, id=2, method="tools/call").exchange
    change = talk.say("server", None, 2, id=None, error={"code": -32000, "message": "no session"})
    assert change.exchange is second
    assert change.flaw == "no id: paired by its HTTP exchange"
    assert states(talk) == ["pending", "error"]
    assert first in talk.session.pending
    again = talk.say("server", None, 2, id=None, error={"code": -32000, "message": "no session"})
    assert again.flaw == "response without an id"


def test_an_error_with_another_id_answers_the_post_that_carried_it(talk: Talk) -> None:
    first = posted(talk, 1, 4)
    talk.note("http", http=4, stream="1", status=406)
    error = {"code": -32600, "message": "Not Acceptable"}
    change = talk.say("server", "1", 4, id="server-error", error=error)
    assert change.exchange is first
    assert change.flaw == 'its id is "server-error", the request\'s is 1: paired by its HTTP exchange'
    second = posted(talk, 2, 5)
    assert talk.say("server", "1", 5, id="server-error", error=error).exchange is second
    third = posted(talk, 3, 6)
    assert talk.say("server", "1", 6, id=7, result={}).exchange is None, (
        "only an error belongs to its exchange"
    )
    assert third.is_open


def test_an_error_without_an_id_does_not_choose_from_a_batch(talk: Talk) -> None:
    batch = [{"jsonrpc": "2.0", "id": n, "method": "ping"} for n in (1, 2)]
    talk.raw("client", json.dumps(batch), "s", 4)
    change = talk.say("server", "s", 4, id=None, error={"code": -32600, "message": "no batches"})
    assert (change.exchange, change.flaw) == (None, "response without an id")
    assert states(talk) == ["pending"] * 2


def test_an_error_without_an_id_is_not_for_the_servers_own_request_on_that_post(talk: Talk) -> None:
    mine = talk.say("client", "s", 1, id=7, method="tools/call").exchange
    talk.say("server", "s", 1, id=1, method="roots/list")
    change = talk.say("server", "s", 1, id=None, error={"code": -32603, "message": "boom"})
    assert change.exchange is mine


# Cancelling


def test_a_cancelled_request_that_is_never_answered_stays_cancelled(talk: Talk) -> None:
    exchange = talk.ask(1)
    change = talk.cancel(1)
    assert (change.exchange, change.flaw) == (exchange, None)
    assert (exchange.state, exchange.cancel) == (State.CANCELLED, change.what)
    assert talk.session.pending == []
    talk.note("exit", code=0)
    assert exchange.state is State.CANCELLED


@pytest.mark.parametrize(
    ("answer", "state"),
    [
        ({"result": {"content": []}}, State.LATE_OK),
        ({"result": {"isError": True}}, State.LATE_TOOL_ERROR),
        ({"error": {"code": 0, "message": "Request cancelled"}}, State.LATE_ERROR),
        ({"error": {"code": -32800, "message": "Request cancelled"}}, State.LATE_ERROR),
    ],
    ids=["result", "tool error", "error 0", "error -32800"],
)
def test_a_late_response_has_the_outcome_of_the_response(
    talk: Talk, answer: dict[str, Any], state: State
) -> None:
    exchange = talk.ask(1)
    talk.cancel(1)
    change = talk.say("server", id=1, **answer)
    assert (change.exchange, change.flaw) == (exchange, "answered after it was cancelled")
    assert (exchange.state, exchange.answer) == (state, change.what)
    assert exchange.latency == 2.0


def test_each_side_cancels_its_own_requests_only(talk: Talk) -> None:
    mine, yours = talk.ask(1), talk.ask(1, "sampling/createMessage", side="server")
    assert talk.cancel(1, side="server").exchange is yours
    assert (mine.state, yours.state) == (State.PENDING, State.CANCELLED)


@pytest.mark.parametrize(
    ("params", "flaw"),
    [
        ({"requestId": 9}, "cancels an unknown request"),
        ({"requestId": "1"}, "cancels an unknown request"),
        ({}, "cancels nothing: it has no requestId"),
        (None, "cancels nothing: it has no requestId"),
        ([1], "cancels nothing: it has no requestId"),
    ],
)
def test_a_cancellation_of_an_unknown_request_is_an_issue(talk: Talk, params: Any, flaw: str) -> None:
    exchange = talk.ask(1)
    change = talk.say("client", method="notifications/cancelled", params=params)
    assert (change.exchange, change.flaw) == (None, flaw)
    assert exchange.is_open


def test_a_cancellation_after_the_response_changes_nothing(talk: Talk) -> None:
    exchange = talk.ask(1)
    talk.answer(1)
    change = talk.cancel(1)
    assert (change.exchange, change.flaw) == (exchange, "cancelled after the response")
    assert (exchange.state, exchange.cancel) == (State.OK, None)


def test_a_second_cancellation_does_not_replace_the_first(talk: Talk) -> None:
    exchange = talk.ask(1)
    first = talk.cancel(1)
    assert talk.cancel(1).exchange is exchange
    assert (exchange.state, exchange.cancel) == (State.CANCELLED, first.what)


def test_the_id_of_a_cancelled_request_may_be_used_again_and_the_new_one_is_answered_first(
    talk: Talk,
) -> None:
    old = talk.ask(1, _meta=talk.modern())
    talk.cancel(1)
    new = talk.ask(1, _meta=talk.modern())
    assert new.flaws == []
    assert talk.answer(1).exchange is new
    late = talk.answer(1)
    assert (late.exchange, late.flaw) == (old, "answered after it was cancelled")
    assert states(talk) == ["answered late", "ok"]


def test_a_cancel_with_two_requests_under_the_id_hits_one_that_is_open(talk: Talk) -> None:
    first, second = talk.ask(1), talk.ask(1)
    assert [talk.cancel(1).exchange, talk.cancel(1).exchange] == [first, second]
    assert talk.session.pending == []


def test_the_id_zero_can_be_cancelled(talk: Talk) -> None:
    assert talk.ask(0) is talk.cancel(0).exchange


# Progress


def test_progress_goes_to_the_request_that_gave_the_token(talk: Talk) -> None:
    first = talk.ask(1, _meta={"progressToken": "t"})
    second = talk.ask(2, _meta={"progressToken": 1})
    mine = talk.report(1)
    assert (mine.exchange, mine.flaw) == (second, None)
    talk.report("t")
    talk.report("t")
    assert (len(first.progress), len(second.progress)) == (2, 1)
    assert second.progress == [mine.what]
    assert states(talk) == ["pending"] * 2


def test_the_tokens_of_the_two_sides_are_independent(talk: Talk) -> None:
    mine = talk.ask(1, _meta={"progressToken": 5})
    yours = talk.ask(1, "sampling/createMessage", side="server", _meta={"progressToken": 5})
    assert talk.report(5, side="client").exchange is yours
    assert talk.report(5, side="server").exchange is mine


@pytest.mark.parametrize("token", [3, 2, 1.5, None], ids=repr)
def test_progress_for_an_unknown_token_is_an_issue(talk: Talk, token: Any) -> None:
    exchange = talk.ask(1, _meta={"progressToken": 1})
    change = talk.report(token)
    assert (change.exchange, change.flaw) == (None, "progress for an unknown token")
    assert exchange.progress == []


def test_progress_without_a_token_belongs_to_no_request(talk: Talk) -> None:
    talk.ask(1)
    change = talk.say("server", method="notifications/progress")
    assert (change.exchange, change.flaw) == (None, "progress for an unknown token")


def test_progress_after_the_answer_is_a_flaw(talk: Talk) -> None:
    exchange = talk.ask(1, _meta={"progressToken": 1})
    talk.answer(1)
    change = talk.report(1)
    assert (change.exchange, change.flaw) == (exchange, "progress after the answer")
    assert exchange.progress == [change.what]
    assert exchange.state is State.OK


def test_progress_after_a_cancellation_is_not_an_issue(talk: Talk) -> None:
    talk.ask(1, _meta={"progressToken": 1})
    talk.cancel(1)
    assert talk.report(1).flaw is None


@pytest.mark.parametrize(
    "result",
    [
        {"task": {"taskId": "t", "status": "working"}},
        {"resultType": "task", "taskId": "t", "status": "working"},
    ],
    ids=["2025-11-25", "2026-07-28"],
)
def test_the_progress_of_a_task_continues_after_its_response(talk: Talk, result: dict[str, Any]) -> None:
    exchange = talk.ask(1, _meta={"progressToken": 1})
    talk.answer(1, **result)
    change = talk.report(1)
    assert (change.exchange, change.flaw) == (exchange, None)
    assert exchange.progress == [change.what]


def test_a_token_used_again_is_that_of_the_later_request(talk: Talk) -> None:
    talk.ask(1, _meta={"progressToken": 1})
    talk.answer(1)
    later = talk.ask(2, _meta={"progressToken": 1})
    change = talk.report(1)
    assert (change.exchange, change.flaw) == (later, None)


# Batches and malformed messages


def test_each_message_of_a_batch_is_a_change_and_is_paired(talk: Talk) -> None:
    asked = [
        {"jsonrpc": "2.0", "id": 1, "method": "ping"},
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        {"jsonrpc": "2.0", "id": 2, "method": "tools/list"},
        5,
    ]
    changes = talk.raw("client", json.dumps(asked))
    assert [type(change.what) for change in changes] == [Request, Notification, Request, Malformed]
    assert [change.number for change in changes] == [0, 1, 2, 3]
    answered = talk.raw("server", json.dumps([{"jsonrpc": "2.0", "id": n, "result": {}} for n in (2, 1, 3)]))
    assert [change.exchange for change in answered] == [changes[2].exchange, changes[0].exchange, None]
    assert [change.flaw for change in answered] == [None, None, "unsolicited response"]


@pytest.mark.parametrize("data", ["", "hello", "[]", "{}", '{"jsonrpc":"2.0","id":1}', "{oops}"])
def test_a_malformed_message_is_a_change_and_settles_no_request(talk: Talk, data: str) -> None:
    exchange = talk.ask(1)
    (change,) = talk.raw("server", data)
    assert isinstance(change.what, Malformed)
    assert (change.exchange, change.flaw) == (None, None)
    assert exchange.is_open


def test_a_damaged_line_is_a_change_and_not_the_time_of_the_last_entry(talk: Talk) -> None:
    talk.ask(1)
    (change,) = talk.session.add(Damaged(b"half a li", "not JSON"))
    assert change.what == Damaged(b"half a li", "not JSON")
    assert talk.session.last_at == 1.0


def test_changes_are_numbered_in_the_order_of_the_wire(talk: Talk) -> None:
    talk.ask(1)
    talk.note("stderr", text="hello")
    talk.answer(1)
    talk.answer(1)
    assert [change.number for change in talk.session.changes] == [0, 1, 2, 3]
    assert talk.session.last_at == 4.0
    talk.note("stderr", text="more")
    assert talk.session.last_at == 5.0


# Peers


def test_the_handshake_names_both_sides_and_the_revision(talk: Talk) -> None:
    talk.ask(
        0,
        "initialize",
        protocolVersion="2025-11-25",
        capabilities={"roots": {}},
        clientInfo={"name": "host", "version": "1.2"},
    )
    assert (talk.session.client, talk.session.server) == (Peer("host", "1.2"), None)
    assert talk.session.revision == "2025-11-25"
    talk.answer(
        0,
        protocolVersion="2025-06-18",
        capabilities={"tools": {"listChanged": True}},
        serverInfo={"name": "srv", "version": "3"},
    )
    session = talk.session
    assert (session.server, session.revision, session.is_modern) == (Peer("srv", "3"), "2025-06-18", False)
    assert session.client_capabilities == {"roots": {}}
    assert session.server_capabilities == {"tools": {"listChanged": True}}
    assert (str(session.client), str(Peer("x", ""))) == ("host 1.2", "x")


def test_a_modern_session_without_a_handshake_names_its_peers_in_meta(talk: Talk) -> None:
    talk.ask(1, "tools/list", _meta=talk.modern())
    session = talk.session
    assert (session.client, session.server) == (Peer("host", "1"), None)
    assert (session.revision, session.is_modern) == ("2026-07-28", True)
    assert session.client_capabilities == {"elicitation": {}}
    talk.answer(1, tools=[], _meta={META + "serverInfo": {"name": "srv", "version": "2"}})
    assert session.server == Peer("srv", "2")


def test_a_modern_client_may_give_its_name_later_than_its_revision(talk: Talk) -> None:
    talk.ask(1, "tools/list", _meta={META + "protocolVersion": "2026-07-28"})
    assert (talk.session.client, talk.session.revision) == (None, "2026-07-28")
    talk.ask(2, "tools/list", _meta=talk.modern())
    assert talk.session.client == Peer("host", "1")


def test_discover_returns_the_servers_capabilities(talk: Talk) -> None:
    talk.ask(1, "server/discover", _meta=talk.modern())
    talk.answer(
        1,
        resultType="complete",
        supportedVersions=["2026-07-28"],
        capabilities={"tools": {}},
        _meta={META + "serverInfo": {"name": "srv", "version": "2"}},
    )
    session = talk.session
    assert (session.server, session.revision) == (Peer("srv", "2"), "2026-07-28")
    assert session.server_capabilities == {"tools": {}}


def test_a_refused_probe_is_followed_by_the_handshake_and_leaves_no_trace(talk: Talk) -> None:
    probe = talk.ask(1, "server/discover", _meta=talk.modern())
    assert talk.session.is_modern
    talk.refuse(1)
    assert (probe.state, talk.session.revision, talk.session.is_modern) == (State.ERROR, None, False)
    talk.handshake("2025-11-25")
    session = talk.session
    assert (session.revision, session.is_modern) == ("2025-11-25", False)
    assert (session.client, session.server) == (Peer("host", "1"), Peer("srv", "2"))
    assert session.client_capabilities == {}
    talk.ask(2, _meta={"progressToken": 2})
    assert session.revision == "2025-11-25"
    talk.answer(2)
    assert talk.ask(2).flaws == ["id 2 was used before"]


def test_a_refused_handshake_is_followed_by_a_modern_session(talk: Talk) -> None:
    talk.ask(1, "initialize", protocolVersion="2025-11-25", clientInfo={"name": "host", "version": "1"})
    talk.refuse(1, code=-32022)
    talk.ask(2, "tools/list", _meta=talk.modern())
    assert (talk.session.revision, talk.session.is_modern) == ("2026-07-28", True)
    assert talk.session.client_capabilities == {"elicitation": {}}


@pytest.mark.parametrize(
    "info", [None, 5, "host", [], {}, {"name": ""}, {"name": 5}, {"name": None}, {"version": "1"}], ids=repr
)
def test_an_invalid_handshake_names_no_peer(talk: Talk, info: Any) -> None:
    talk.ask(1, "initialize", protocolVersion=5, capabilities=[], clientInfo=info)
    talk.answer(
        1, protocolVersion=None, capabilities="all", serverInfo=info, _meta={META + "serverInfo": info}
    )
    session = talk.session
    assert (session.client, session.server, session.revision) == (None, None, None)
    assert (session.client_capabilities, session.server_capabilities) == ({}, {})
    assert states(talk) == ["ok"]


def test_a_handshake_without_names_keeps_the_peers_of_the_probe(talk: Talk) -> None:
    talk.ask(1, "server/discover", _meta=talk.modern())
    talk.refuse(1)
    talk.ask(2, "initialize", protocolVersion="2025-11-25")
    assert (talk.session.client, talk.session.revision) == (Peer("host", "1"), "2025-11-25")


def test_a_peer_without_a_version_has_its_name(talk: Talk) -> None:
    talk.ask(1, "initialize", clientInfo={"name": "host", "version": 2})
    assert talk.session.client == Peer("host", "")


@pytest.mark.parametrize("result", [None, [], "x", 5], ids=repr)
def test_a_handshake_result_that_is_not_an_object_changes_nothing(talk: Talk, result: Any) -> None:
    talk.ask(1, "initialize", protocolVersion="2025-11-25")
    talk.say("server", id=1, result=result)
    assert (talk.session.server, talk.session.revision) == (None, "2025-11-25")


# Questions (2026-07-28)


def question(talk: Talk, id: Any, parts: list[str] | None = None, state: str | None = None) -> Change:  # noqa: A002
    """Answer a request with a question: `input_required`."""
    members: dict[str, Any] = {"resultType": "input_required"}
    if parts is not None:
        members["inputRequests"] = {part: {"method": "elicitation/create", "params": {}} for part in parts}
    if state is not None:
        members["requestState"] = state
    return talk.answer(id, **members)


def reply(parts: list[str] | None = None, state: str | None = None) -> dict[str, Any]:
    """Return the params that carry the answer to a question."""
    members: dict[str, Any] = {}
    if parts is not None:
        members["inputResponses"] = {part: {"action": "accept"} for part in parts}
    if state is not None:
        members["requestState"] = state
    return members


@pytest.mark.parametrize(
    ("parts", "state"),
    [(["a"], "v1.sealed"), (["a", "b"], None), (None, "v1.sealed")],
    ids=["both", "parts", "state"],
)
def test_a_question_is_linked_to_the_request_that_answers_it(
    talk: Talk, parts: list[str] | None, state: str | None
) -> None:
    asked = talk.ask(1, name="deploy")
    question(talk, 1, parts, state)
    assert (asked.state, asked.is_open) == (State.INPUT_REQUIRED, False)
    again = talk.ask(2, name="deploy", **reply(parts[::-1] if parts else None, state))
    assert (again.continues, asked.continued_by) == (asked, again)
    assert (asked.continues, again.continued_by) == (None, None)
    talk.answer(2, content=[])
    assert states(talk) == ["input required", "ok"]
    assert talk.session.pending == []


def test_a_chain_of_three_questions_is_linked_all_along(talk: Talk) -> None:
    chain = [talk.ask(1, name="deploy")]
    question(talk, 1, ["a"], "s1")
    chain.append(talk.ask(2, name="deploy", **reply(["a"], "s1")))
    question(talk, 2, ["b"], "s2")
    chain.append(talk.ask(3, name="deploy", **reply(["b"], "s2")))
    question(talk, 3, ["b"], None)
    chain.append(talk.ask(4, name="deploy", **reply(["b"])))
    talk.answer(4, content=[])
    assert [exchange.continues for exchange in chain] == [None, *chain[:3]]
    assert [exchange.continued_by for exchange in chain] == [*chain[1:], None]
    assert states(talk) == ["input required"] * 3 + ["ok"]


@pytest.mark.parametrize(
    ("method", "params"),
    [
        ("tools/call", {"name": "other", **reply(["a"], "s")}),
        ("prompts/get", {"name": "deploy", **reply(["a"], "s")}),
        ("tools/call", {"name": "deploy", **reply(["a"], "t")}),
        ("tools/call", {"name": "deploy", **reply(["a"])}),
        ("tools/call", {"name": "deploy"}),
    ],
    ids=["another tool", "another method", "another state", "no state", "no reply"],
)
def test_a_request_that_answers_another_question_is_not_linked(
    talk: Talk, method: str, params: dict[str, Any]
) -> None:
    asked = talk.ask(1, name="deploy")
    question(talk, 1, ["a"], "s")
    assert talk.ask(2, method, **params).continues is None
    assert asked.continued_by is None


@pytest.mark.parametrize(
    ("method", "params"),
    [
        ("tools/call", {"name": "other", **reply(["a", "b"])}),
        ("prompts/get", {"name": "deploy", **reply(["a", "b"])}),
        ("tools/call", {"name": "deploy", **reply(["a"])}),
        ("tools/call", {"name": "deploy", **reply(["a", "b"], "s")}),
    ],
    ids=["another tool", "another method", "other parts", "a state"],
)
def test_without_a_state_the_names_of_the_parts_must_be_the_same(
    talk: Talk, method: str, params: dict[str, Any]
) -> None:
    asked = talk.ask(1, name="deploy")
    question(talk, 1, ["a", "b"])
    assert talk.ask(2, method, **params).continues is None
    assert talk.ask(3, name="deploy", **reply(["b", "a"])).continues is asked


def test_a_question_is_answered_once(talk: Talk) -> None:
    asked = talk.ask(1, name="deploy")
    question(talk, 1, ["a"], "s")
    first = talk.ask(2, name="deploy", **reply(["a"], "s"))
    second = talk.ask(3, name="deploy", **reply(["a"], "s"))
    assert (asked.continued_by, first.continues, second.continues) == (first, asked, None)


def test_two_questions_that_look_the_same_are_answered_in_turn(talk: Talk) -> None:
    asked = [talk.ask(n, name="deploy") for n in (1, 2)]
    question(talk, 1, ["a"], "step-1")
    question(talk, 2, ["a"], "step-1")
    again = [talk.ask(n, name="deploy", **reply(["a"], "step-1")) for n in (3, 4)]
    assert [exchange.continues for exchange in again] == asked
    assert [exchange.continued_by for exchange in asked] == again


def test_a_state_finds_its_question_from_another_post(talk: Talk) -> None:
    params = {"name": "deploy"}
    asked = talk.say("client", "post-1", id=1, method="tools/call", params=params).exchange
    talk.say("server", "post-1", id=1, result={"resultType": "input_required", "requestState": "v1.sealed"})
    again = talk.say(
        "client", "post-2", id=1, method="tools/call", params={**params, **reply(None, "v1.sealed")}
    ).exchange
    assert again is not None
    assert again.continues is asked


# Subscriptions (2026-07-28)


def told(talk: Talk, id: Any, method: str = "notifications/tools/list_changed") -> Change:  # noqa: A002
    """Send a notification of the server for a subscription."""
    return talk.say("server", method=method, params={"_meta": {META + "subscriptionId": id}})


def listen(talk: Talk, id: Any = "listen-1") -> Exchange:  # noqa: A002
    return talk.ask(id, "subscriptions/listen", notifications={"toolsListChanged": True}, _meta=talk.modern())


def test_a_subscription_stays_open_and_collects_what_it_asked_for(talk: Talk) -> None:
    exchange = listen(talk)
    changes = [told(talk, "listen-1", "notifications/subscriptions/acknowledged"), told(talk, "listen-1")]
    assert [change.exchange for change in changes] == [exchange] * 2
    assert exchange.progress == [change.what for change in changes]
    assert (exchange.is_open, exchange.is_subscription) == (True, True)
    assert talk.session.pending == [], "a subscription may stay open for hours"


def test_notifications_go_to_their_own_subscription_only(talk: Talk) -> None:
    first, second = listen(talk, "listen:0"), listen(talk, "listen:1")
    call = talk.ask(1, _meta=talk.modern())
    told(talk, "listen:1")
    assert told(talk, 1).exchange is None, "a call is not a subscription"
    assert told(talk, "listen:9").exchange is None
    assert (len(first.progress), len(second.progress), len(call.progress)) == (0, 1, 0)


def test_a_notification_without_a_subscription_belongs_to_no_request(talk: Talk) -> None:
    listen(talk)
    change = talk.say("server", method="notifications/message", params={"level": "info", "data": ""})
    assert (change.exchange, change.flaw) == (None, None)


@pytest.mark.parametrize("side", ["client", "server"])
def test_either_side_may_close_a_subscription(talk: Talk, side: str) -> None:
    exchange = listen(talk)
    change = talk.cancel("listen-1", side=side)
    assert (change.exchange, change.flaw) == (exchange, None)
    assert (exchange.state, exchange.cancel) == (State.CLOSED, change.what)


@pytest.mark.parametrize("first", ["cancel", "result"])
def test_a_server_may_close_a_subscription_by_cancel_and_result(talk: Talk, first: str) -> None:
    exchange = listen(talk)
    if first == "cancel":
        talk.cancel("listen-1", side="server")
        change = talk.answer("listen-1", resultType="complete")
        assert (change.exchange, change.flaw) == (exchange, None)
        assert exchange.state is State.CLOSED
    else:
        talk.answer("listen-1", resultType="complete")
        assert exchange.state is State.OK
        talk.cancel("listen-1", side="server")
    assert exchange.answer is not None


def test_a_subscription_answered_with_an_error_has_failed(talk: Talk) -> None:
    exchange = listen(talk)
    talk.refuse("listen-1", code=-32000)
    assert exchange.state is State.ERROR


def test_a_server_cannot_cancel_a_request_other_than_a_subscription(talk: Talk) -> None:
    exchange = talk.ask(1)
    change = talk.cancel(1, side="server")
    assert (change.exchange, change.flaw) == (None, "cancels an unknown request")
    assert exchange.is_open


def test_a_subscription_that_begins_again_under_its_id_gets_the_notifications(talk: Talk) -> None:
    old = listen(talk)
    talk.cancel("listen-1")
    new = listen(talk)
    assert new.flaws == []
    assert told(talk, "listen-1").exchange is new
    talk.cancel("listen-1", side="server")
    assert (old.state, new.state) == (State.CLOSED, State.CLOSED)
    assert (len(old.progress), len(new.progress)) == (0, 1)


# The end


def test_the_exit_ends_what_is_pending(talk: Talk) -> None:
    answered, open_, listening, cancelled = talk.ask(1), talk.ask(2), listen(talk), talk.ask(3)
    yours = talk.ask(1, "roots/list", side="server")
    talk.answer(1)
    talk.cancel(3)
    change = talk.note("exit", code=-9)
    assert talk.session.exit is change.what
    assert (answered.state, cancelled.state) == (State.OK, State.CANCELLED)
    assert (open_.state, yours.state) == (State.UNANSWERED, State.UNANSWERED)
    assert listening.state is State.CLOSED
    assert talk.session.pending == []
    assert talk.session.end() == []


def test_other_notes_end_nothing(talk: Talk) -> None:
    exchange = talk.ask(1)
    for kind in ("stderr", "signal", "part", "a kind of tomorrow"):
        change = talk.note(kind, text="x")
        assert (change.exchange, change.flaw) == (None, None)
    assert exchange.is_open
    assert talk.session.exit is None


def test_a_request_before_lost_entries_is_not_called_unanswered(talk: Talk) -> None:
    asked, later = talk.ask(1), talk.ask(2)
    talk.note("lost", entries=3, why="disk full")
    after = talk.ask(3)
    assert states(talk) == ["unknown", "unknown", "pending"]
    assert talk.answer(2).exchange is later
    assert talk.answer(9).flaw == "its request was not recorded"
    assert (talk.session.end(), asked.state.value) == ([after], "unknown")
    assert [change.exchange for change in talk.session.unanswered] == [after]


def test_a_message_that_is_too_large_may_be_the_response_of_requests_to_its_sender(talk: Talk) -> None:
    asked = talk.ask(1)
    talk.note("oversized", **{"from": "server", "pipe": "stderr"}, size=9)
    talk.note("oversized", **{"from": "client"}, size=9)
    assert states(talk) == ["pending"]
    talk.note("oversized", **{"from": "server"}, size=9)
    after = talk.ask(2)
    assert states(talk) == ["unknown", "pending"]
    assert talk.answer(9).flaw == "its request was not recorded"
    assert talk.answer(1).exchange is asked
    assert talk.session.end() == [after]


def test_over_http_only_the_request_of_the_same_exchange_is_unknown(talk: Talk) -> None:
    first, second = posted(talk, 1, 7), posted(talk, 2, 8)
    talk.note("oversized", **{"from": "server", "http": 8, "stream": "1"}, size=9)
    assert (first.state.value, second.state.value) == ("pending", "unknown")


def test_the_end_without_an_exit_returns_what_stays_unanswered(talk: Talk) -> None:
    exchange, listening = talk.ask(1), listen(talk)
    assert talk.session.end() == [exchange]
    assert listening.state is State.CLOSED
    assert talk.session.exit is None
    assert states(talk) == ["no answer", "closed"]


# HTTP: requests that the end of an exchange settles.


def posted(talk: Talk, number: int, http: int, stream: str = "1", **params: Any) -> Exchange:
    change = talk.say("client", stream, http, id=number, method="tools/call", params=params)
    assert change.exchange is not None
    return change.exchange


def event(talk: Talk, number: int, event_id: str, stream: str = "1") -> Change:
    data = json.dumps({"jsonrpc": "2.0", "id": number, "result": {}}).encode()
    talk.at += 1.0
    (change,) = talk.session.add(Frame(talk.at, "server", data, stream, 9, "\n", event_id))
    return change


def test_an_error_status_without_a_message_refuses_the_request(talk: Talk) -> None:
    asked = posted(talk, 1, 7)
    talk.note("http", http=7, stream="1", status=404)
    assert asked.is_open
    assert talk.note("http-end", http=7, stream="1", hung_up=None).exchange is asked
    assert (asked.state, asked.flaws) == (State.REFUSED, [])
    assert asked.why == "HTTP 404"
    assert talk.session.pending == []


def test_an_error_status_with_a_message_is_settled_by_the_message(talk: Talk) -> None:
    asked = posted(talk, 1, 7)
    talk.note("http", http=7, stream="1", status=400)
    talk.say("server", "1", 7, id=1, error={"code": -32602, "message": "no"})
    talk.note("http-end", http=7, stream="1", hung_up=None)
    assert (asked.state, asked.flaws) == (State.ERROR, [])


def test_a_post_that_is_accepted_leaves_its_request_to_another_stream(talk: Talk) -> None:
    asked = posted(talk, 1, 7)
    talk.note("http", http=7, stream="1", status=202)
    assert talk.note("http-end", http=7, stream="1", hung_up=None).exchange is None
    assert asked.is_open
    assert event(talk, 1, "e1").exchange is asked
    assert asked.state is State.OK


def test_a_client_that_disconnects_has_cancelled_in_2026_only(talk: Talk) -> None:
    before = posted(talk, 1, 7)
    talk.note("http-end", http=7, stream="1", hung_up="client")
    assert before.is_open
    after = posted(talk, 2, 8, "8", _meta=talk.modern())
    assert talk.note("http-end", http=8, stream="8", hung_up="client").exchange is after
    assert after.state is State.CANCELLED


def test_an_event_that_a_resumed_stream_repeats_counts_once(talk: Talk) -> None:
    asked = posted(talk, 1, 7)
    assert event(talk, 1, "e1").exchange is asked
    again = event(talk, 1, "e1")
    assert again.exchange is None
    assert again.flaw == "repeated event: its stream was resumed"
    assert event(talk, 1, "e1", stream="2").flaw == "unsolicited response", "event ids are unique per stream"


def test_adding_entries_in_two_halves_equals_adding_all(talk: Talk) -> None:
    talk.handshake()
    talk.ask(1, _meta={"progressToken": 1})
    talk.report(1)
    talk.answer(1)
    talk.answer(1)
    entries = [
        change.what.frame for change in talk.session.changes if not isinstance(change.what, Note | Damaged)
    ]
    halves = Session().add_all(entries[:3]).add_all(entries[3:])
    assert [(change.number, change.flaw) for change in halves.changes] == [
        (change.number, change.flaw) for change in talk.session.changes
    ]


# Generated conversations with a known outcome

POOL = [1, "1", 1.5, 2**64 + 1]
STREAMS = [None, "s"]


class Action(NamedTuple):
    """One step; its effect depends on the requests that are open then."""

    kind: str
    side: str
    stream: str | None
    id: Any


ACTIONS = st.lists(
    st.builds(
        Action,
        st.sampled_from(
            ["ask", "ask", "ask", "result", "tool error", "error", "progress", "cancel", "stray"]
        ),
        st.sampled_from(["client", "server"]),
        st.sampled_from(STREAMS),
        st.sampled_from(POOL),
    ),
    max_size=60,
)


class Truth:
    """The expected outcome of one request."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.state = "pending"
        self.answer: int | None = None
        self.cancel: int | None = None
        self.progress: list[int] = []


class Conversation:
    """Two peers that use the same ids and send random messages; every message has a unique mark."""

    def __init__(self) -> None:
        self.entries: list[Frame] = []
        self.made: list[Truth] = []
        self.paired: list[int | None] = []
        """For each message, the request it belongs to."""
        self.waiting: dict[tuple[Any, ...], list[Truth]] = {}
        self.answered: dict[tuple[Any, ...], Truth] = {}

    def take(self, action: Action) -> None:
        """Take a step. A key is requester, stream and id as JSON text, which distinguishes ids."""
        key = (action.side, action.stream, json.dumps(action.id))
        getattr(self, "_" + action.kind.replace(" ", "_"))(action, key)

    def _said(self, action: Action, by_asker: bool, paired: Truth | None, **members: Any) -> None:
        side = action.side if by_asker else {"client": "server", "server": "client"}[action.side]
        data = json.dumps({"jsonrpc": "2.0", **members}).encode()
        self.entries.append(Frame(float(len(self.entries)), side, data, action.stream))
        self.paired.append(None if paired is None else paired.number)

    def _ask(self, action: Action, key: tuple[Any, ...]) -> None:
        truth = Truth(len(self.made))
        self.made.append(truth)
        self.waiting.setdefault(key, []).append(truth)
        params = {"mark": truth.number, "_meta": {"progressToken": truth.number}}
        self._said(action, True, truth, id=action.id, method="tools/call", params=params)

    def _open(self, key: tuple[Any, ...]) -> Truth | None:
        return next((truth for truth in self.waiting.get(key, []) if truth.state == "pending"), None)

    def _answer(self, action: Action, key: tuple[Any, ...], state: str, **members: Any) -> None:
        waiting = self.waiting.get(key, [])
        truth = self._open(key) or (waiting[0] if waiting else None)
        if truth is None:
            self._stray(action, key)
            return
        waiting.remove(truth)
        self.answered[key] = truth
        late = "answered late" if state == "ok" else f"late {state}"
        truth.state = state if truth.state == "pending" else late
        truth.answer = len(self.entries)
        self._said(action, False, truth, id=action.id, **members)

    def _result(self, action: Action, key: tuple[Any, ...]) -> None:
        self._answer(action, key, "ok", result={"mark": len(self.entries)})

    def _tool_error(self, action: Action, key: tuple[Any, ...]) -> None:
        self._answer(action, key, "tool error", result={"isError": True})

    def _error(self, action: Action, key: tuple[Any, ...]) -> None:
        self._answer(action, key, "error", error={"code": 1, "message": "no"})

    def _stray(self, action: Action, key: tuple[Any, ...]) -> None:
        if not self.waiting.get(key):
            self._said(action, False, self.answered.get(key), id=action.id, result={})

    def _progress(self, action: Action, key: tuple[Any, ...]) -> None:
        truth = self._open(key)
        if truth is not None:
            truth.progress.append(len(self.entries))
            params = {"progressToken": truth.number, "progress": 1}
            self._said(action, False, truth, method="notifications/progress", params=params)

    def _cancel(self, action: Action, key: tuple[Any, ...]) -> None:
        truth = self._open(key)
        if truth is not None:
            truth.state, truth.cancel = "cancelled", len(self.entries)
            self._said(action, True, truth, method="notifications/cancelled", params={"requestId": action.id})


def place(message: Any) -> int | None:
    return None if message is None else int(message.at)


@given(ACTIONS)
@settings(max_examples=150)
def test_a_random_conversation_has_the_expected_outcome(actions: list[Action]) -> None:
    truth = Conversation()
    for action in actions:
        truth.take(action)
    session = Session().add_all(truth.entries)
    assert [change.exchange and change.exchange.number for change in session.changes] == truth.paired
    assert [
        (e.number, e.state.value, place(e.answer), place(e.cancel), [place(p) for p in e.progress])
        for e in session.exchanges
    ] == [(t.number, t.state, t.answer, t.cancel, t.progress) for t in truth.made]
    assert {e.number for e in session.pending} == {t.number for t in truth.made if t.state == "pending"}
    session.end()
    assert [e.state.value for e in session.exchanges] == [
        "no answer" if t.state == "pending" else t.state for t in truth.made
    ]


@given(ACTIONS)
def test_only_protocol_violations_have_a_flaw(actions: list[Action]) -> None:
    truth = Conversation()
    for action in actions:
        truth.take(action)
    session = Session().add_all(truth.entries)
    used: set[tuple[Any, ...]] = set()
    for change in session.changes:
        message = change.what
        if isinstance(message, Request):
            key = (message.side, message.frame.stream, message.id)
            assert (change.flaw is not None) == (key in used)
            used.add(key)
        elif isinstance(message, Notification):
            assert change.flaw is None
        else:
            answered = [e for e in session.exchanges if e.answer is message and not of(e.state).is_late]
            by_order = (change.flaw or "").startswith("paired by order")
            assert (change.flaw is None or by_order) == bool(answered)


KEYS = st.sampled_from(
    "jsonrpc id method params result error _meta progressToken requestId requestState inputRequests"
    " inputResponses resultType task isError clientInfo serverInfo capabilities protocolVersion name".split()
    + [META + key for key in ("subscriptionId", "protocolVersion", "clientInfo", "serverInfo")]
)
METHODS = st.sampled_from(
    [
        "initialize",
        "server/discover",
        "subscriptions/listen",
        "tools/call",
        "notifications/cancelled",
        "notifications/progress",
        "notifications/message",
        "input_required",
        "2026-07-28",
    ]
)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(0, 3) | METHODS | st.floats() | st.text(max_size=2),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=6),
    max_leaves=20,
)
LINES = st.tuples(
    st.sampled_from(["client", "server"]),
    st.dictionaries(KEYS, VALUES, max_size=6) | VALUES,
    st.sampled_from([None, "s"]),
    st.sampled_from([None, 1]),
)


@given(st.lists(LINES, max_size=12), st.lists(st.binary(max_size=20), max_size=3))
def test_no_message_raises(said: list[tuple[str, Any, str | None, int | None]], junk: list[bytes]) -> None:
    session = Session()
    for number, (side, value, stream, http) in enumerate(said):
        changes = session.add(Frame(float(number), side, json.dumps(value).encode(), stream, http))
        assert changes == session.changes[-len(changes) :]
    for line in junk:
        session.add(read_entry(line))
    session.add(Note(99.0, "exit", {}))
    assert session.pending == []
    assert [change.number for change in session.changes] == list(range(len(session.changes)))


@pytest.mark.parametrize("key", ["progressToken", META + "clientInfo", META + "subscriptionId"])
def test_no_depth_raises(key: str) -> None:
    for depth in range(850, 1010):
        talk = Talk()
        deep = "[" * depth + "]" * depth
        talk.raw("client", f'{{"id":1,"method":"x","params":{{"name":{deep},"_meta":{{"{key}":{deep}}}}}}}')
        talk.raw("server", f'{{"method":"x","params":{{"_meta":{{"{key}":{{"name":{deep}}}}}}}}}')
        talk.raw("client", f'{{"id":2,"method":"initialize","params":{{"clientInfo":{{"name":{deep}}}}}}}')
        talk.raw("client", f'{{"method":"notifications/cancelled","params":{{"requestId":{deep}}}}}')
        assert len(talk.session.changes) == 4


def test_a_hundred_thousand_open_requests_are_paired_in_any_order() -> None:
    """Pairing is a look-up, not a search: quadratic would take minutes."""
    count = 100_000
    session = Session()
    for number in range(count):
        session.add(Frame(0.0, "client", b'{"jsonrpc":"2.0","id":%d,"method":"ping"}' % number))
    for number in reversed(range(count)):
        session.add(Frame(1.0, "server", b'{"jsonrpc":"2.0","id":%d,"result":{}}' % number))
    assert session.pending == []
    assert {exchange.state for exchange in session.exchanges} == {State.OK}


def test_actions_of_rules_are_stored_with_their_message() -> None:
    lines = [
        b'{"t":1,"from":"client","msg":[{"jsonrpc":"2.0","id":1,"method":"a"},{"jsonrpc":"2.0","id":2,"method":"b"}]}',
        b'{"t":1,"note":"rule","action":"replace","rule":"1","id":"1"}',
        b'{"t":1,"note":"rule","action":"hold","viewer":"tui","id":"2","ticket":9}',
        b'{"t":2,"from":"server","msg":{"jsonrpc":"2.0","id":1,"result":{}}}',
        b'{"t":3,"note":"rule","action":"release","viewer":"tui","id":"2","ticket":9,"why":"accepted","seconds":2.0}',
        b'{"t":4,"note":"rule","action":"slow","id":"7"}',
    ]
    session = Session().add_all(map(read_entry, lines))

    assert [change.effect for change in session.changes] == [
        "changed (rule 1)",
        "held (tui); released after 2 s (tui)",
        *[None] * 5,
    ]
    assert [exchange.effects for exchange in session.exchanges] == [
        ["changed (rule 1)"],
        ["held (tui)", "released after 2 s (tui)"],
    ]


def test_a_response_of_mcpspy_and_the_peers_after_it_are_not_issues() -> None:
    lines = [
        b'{"t":1,"from":"client","msg":{"jsonrpc":"2.0","id":1,"method":"tools/call"}}',
        b'{"t":2,"from":"server","by":"mcpspy","msg":{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":"m"}}}',
        b'{"t":2,"from":"client","by":"mcpspy","msg":{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}}',
        b'{"t":3,"from":"server","to":"mcpspy","msg":{"jsonrpc":"2.0","id":1,"result":{}}}',
    ]
    session = Session().add_all(map(read_entry, lines))

    assert [change.flaw for change in session.changes] == [None] * 4
    assert session.exchanges[0].state is State.ERROR
    assert (
        session.add(read_entry(lines[3].replace(b'"to":"mcpspy",', b"")))[0].flaw
        == "id 1 was answered before"
    )


def test_an_injected_request_belongs_to_no_peer() -> None:
    lines = [
        b'{"t":1,"from":"client","by":"mcpspy","msg":{"jsonrpc":"2.0","id":"m-1","method":"ping"}}',
        b'{"t":1,"from":"server","to":"mcpspy","msg":{"jsonrpc":"2.0","id":"m-1","result":{}}}',
        b'{"t":1,"from":"client","by":"mcpspy","msg":{"jsonrpc":"2.0","method":"x"}}',
        b'{"t":1,"from":"client","to":"mcpspy","msg":{"jsonrpc":"2.0","id":2,"method":"tools/call"}}',
        b'{"t":2,"from":"server","by":"mcpspy","msg":{"jsonrpc":"2.0","id":2,"result":{}}}',
    ]
    session = Session().add_all(map(read_entry, lines))

    assert [is_injected(change) for change in session.changes] == [True, True, True, False, False]
