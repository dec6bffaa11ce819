"""Pairing, on the least that can be paired: whole sessions are `test_session`'s."""

from __future__ import annotations

import pytest
from msgspec import Raw, Struct

from mcpspy.core.exchange import Event, State
from mcpspy.core.pairing import Pairing, question
from mcpspy.core.record import Frame


class Asked(Struct, eq=False):
    """A request of which nothing is known but its state."""

    state: State = State.PENDING
    is_task: bool = False
    is_subscription: bool = False
    is_modern: bool = False


CLIENT, SERVER = Frame(0.0, "client", b""), Frame(0.0, "server", b"")


def test_an_answer_settles_the_request_that_waits_under_its_id() -> None:
    pairing, asked = Pairing[Asked](), Asked()
    assert pairing.request(asked, CLIENT, "1", None, modern=False) is None
    assert list(pairing.pending()) == [asked]
    assert pairing.answer(CLIENT, "1", Event.RESULT) == (None, None), "the client asked itself"
    assert pairing.answer(SERVER, "1", Event.RESULT) == (asked, None)
    assert (asked.state, list(pairing.pending())) == (State.OK, [])
    assert pairing.stray(SERVER, "1") == (asked, "id 1 was answered before")


@pytest.mark.parametrize(("modern", "flaw"), [(False, "id 1 was used before"), (True, None)])
def test_an_id_may_come_again_only_where_there_is_no_session(modern: bool, flaw: str | None) -> None:
    pairing = Pairing[Asked]()
    pairing.request(Asked(), CLIENT, "1", None, modern=modern)
    pairing.answer(SERVER, "1", Event.RESULT)
    assert pairing.request(Asked(), CLIENT, "1", None, modern=modern) == flaw


def test_streams_do_not_share_ids() -> None:
    pairing, one, two = Pairing[Asked](), Asked(), Asked()
    pairing.request(one, Frame(0.0, "client", b"", "1", 1), "1", None, modern=False)
    pairing.request(two, Frame(0.0, "client", b"", "2", 2), "1", None, modern=False)
    assert pairing.answer(Frame(0.0, "server", b"", "2", 2), "1", Event.RESULT) == (two, None)
    assert one.state is State.PENDING


def test_what_is_left_at_the_end_got_no_answer_but_a_subscription_is_closed() -> None:
    pairing, plain, listening = Pairing[Asked](), Asked(), Asked(is_subscription=True)
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
