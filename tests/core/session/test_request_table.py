"""The request table on minimal requests; `test_session` covers whole sessions."""

from __future__ import annotations

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Raw, Struct

from mcpspy.core.recording.decode import Frame
from mcpspy.core.session.exchange import Event, State
from mcpspy.core.session.request_table import RequestTable, id_key, question


class OpenRequest(Struct, eq=False):
    """A request that has only a state."""

    state: State = State.PENDING
    poll_of: None = None
    is_counted: bool = True
    is_subscription: bool = False
    is_modern: bool = False


CLIENT, SERVER = Frame(0.0, "client", b""), Frame(0.0, "server", b"")


def test_a_response_settles_the_pending_request_with_its_id() -> None:
    pairing, asked = RequestTable[OpenRequest](), OpenRequest()
    assert pairing.request(asked, CLIENT, "1", None, modern=False) is None
    assert list(pairing.pending()) == [asked]
    assert pairing.answer(CLIENT, "1", Event.RESULT) == (None, None), "the client answered its own request"
    assert pairing.answer(SERVER, "1", Event.RESULT) == (asked, None)
    assert (asked.state, list(pairing.pending())) == (State.OK, [])
    assert pairing.explain_unsolicited(SERVER, "1") == (asked, "id 1 was answered before")


def test_a_response_finds_its_request_however_old() -> None:
    pairing = RequestTable[OpenRequest](forgets=True)
    first = OpenRequest()
    pairing.request(first, CLIENT, "0", None, modern=False)
    for number in range(1, 50):
        pairing.request(OpenRequest(), CLIENT, str(number), None, modern=False)
        pairing.answer(SERVER, str(number), Event.RESULT)
        pairing.forget_but(3)

    assert len(pairing._answered) == 3
    assert pairing.waiting() == [first]
    assert pairing.answer(Frame(1.0, "server", b""), "0", Event.RESULT) == (first, None)
    assert first.state is State.OK


def test_an_http_exchange_is_forgotten_only_after_its_end() -> None:
    pairing = RequestTable[OpenRequest](forgets=True)
    for number in range(1, 20):
        frame = Frame(0.0, "client", b"", stream="1", http=number)
        pairing.request(OpenRequest(), frame, str(number), None, modern=False)
        pairing.http(number, 404, {})
        if number > 1:
            pairing.http_end(number, None)
        pairing.forget_but(3)

    assert sorted(pairing._posted) == [1, 17, 18, 19]
    refused, flaw = pairing.http_end(1, None)
    assert refused is not None
    assert (refused.state, flaw) == (State.REFUSED, "HTTP 404")


def test_recent_events_are_recognised_when_they_are_repeated() -> None:
    pairing = RequestTable[OpenRequest](forgets=True)
    for number in range(10):
        assert not pairing.is_repeated(Frame(0.0, "server", b"", stream="1", event_id=str(number)))
        pairing.forget_but(3)

    assert [
        pairing.is_repeated(Frame(0.0, "server", b"", stream="1", event_id=str(number)))
        for number in (9, 7, 0)
    ] == [True, True, False]


def test_other_messages_with_the_id_of_an_event_are_not_repeated() -> None:
    pairing = RequestTable[OpenRequest](forgets=True)
    events = [Frame(0.0, "server", data, stream="1", event_id="session") for data in (b"1", b"2", b"2")]
    assert [pairing.is_repeated(event) for event in events] == [False, False, True]


def test_an_answered_question_is_forgotten() -> None:
    pairing = RequestTable[OpenRequest](forgets=True)
    asked = ("tools/call", "book", "state")
    first, second = OpenRequest(), OpenRequest()
    pairing.add_question(asked, first)
    pairing.add_question(asked, second)

    assert [pairing.continued(asked) for _ in range(3)] == [first, second, None]
    assert pairing._questions == {}


@pytest.mark.parametrize(("modern", "flaw"), [(False, "id 1 was used before"), (True, None)])
def test_an_id_may_be_reused_only_without_a_session(modern: bool, flaw: str | None) -> None:
    pairing = RequestTable[OpenRequest]()
    pairing.request(OpenRequest(), CLIENT, "1", None, modern=modern)
    pairing.answer(SERVER, "1", Event.RESULT)
    assert pairing.request(OpenRequest(), CLIENT, "1", None, modern=modern) == flaw


def test_streams_do_not_share_ids() -> None:
    pairing, one, two = RequestTable[OpenRequest](), OpenRequest(), OpenRequest()
    pairing.request(one, Frame(0.0, "client", b"", "1", 1), "1", None, modern=False)
    pairing.request(two, Frame(0.0, "client", b"", "2", 2), "1", None, modern=False)
    assert pairing.answer(Frame(0.0, "server", b"", "2", 2), "1", Event.RESULT) == (two, None)
    assert one.state is State.PENDING


def test_open_requests_end_unanswered_but_a_subscription_is_closed() -> None:
    pairing, plain, listening = RequestTable[OpenRequest](), OpenRequest(), OpenRequest(is_subscription=True)
    pairing.request(plain, CLIENT, "1", None, modern=True)
    pairing.request(listening, CLIENT, "2", None, modern=True)
    assert pairing.end() == [plain, listening]
    assert (plain.state, listening.state) == (State.UNANSWERED, State.CLOSED)


def test_a_question_and_its_answer_share_the_state_or_the_names_of_the_parts() -> None:
    assert question("tools/call", "x", Raw(b'"s"'), Raw(b'{"a":1}')) == question(
        "tools/call", "x", Raw(b'"s"'), Raw()
    )
    assert question("m", None, Raw(), Raw(b'{"b":1,"a":2}')) == ("m", None, "a,b")


NUMBERS = st.from_regex(r"-?(0|[1-9][0-9]{0,20})(\.[0-9]{1,5})?([eE][+-]?[0-9]{1,2})?", fullmatch=True)


@given(NUMBERS, NUMBERS)
def test_two_numbers_are_one_id_if_their_values_are_equal(one: str, two: str) -> None:
    assert (id_key(one) == id_key(two)) is (Decimal(one) == Decimal(two))
    assert Decimal(id_key(one)) == Decimal(one)
    assert id_key(f'"{one}"') == f'"{one}"', "a string is another id"


@pytest.mark.parametrize("text", ["-Infinity", "NaN", "true", "null", "1e99999", "[1.0]", "7"])
def test_other_ids_keep_their_text(text: str) -> None:
    assert id_key(text) == text
