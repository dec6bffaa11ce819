"""Steering of a mock while it serves: options, answers of the user, and notes."""

from __future__ import annotations

from typing import Any

import pytest

from mcpspy.core.mock.selector import MatchMode
from mcpspy.core.mock.session import MockSession
from mcpspy.core.mock.steering import MockOptions, Steering
from mcpspy.errors import UsageError
from tests.core.mock.talking import Json, Live, Talk


class Steered(Live):
    """A client of a mock that a viewer steers."""

    def __init__(self, talk: Talk, **options: Any) -> None:
        super().__init__(talk.recordings())
        self.steering = Steering(MockOptions(**options))
        self.session = MockSession(self.session.recordings, self.steering.options, self.now, self.steering)

    def order(self, **fields: Any) -> None:
        self.steering.order(fields)
        self.session.change(self.steering.options)

    def notes(self) -> list[Json]:
        return [note.fields for note in self.session.notes()]


def talk() -> Talk:
    """The handshake is request 0 of the recording."""
    return Talk().handshake().call(1, "echo", "first").call(2, "echo", "second").call(3, "add", "3", a=1, b=2)


ERROR = {"code": -32000, "message": "out of order"}


def test_a_note_names_the_recorded_request_and_its_place_in_the_queue() -> None:
    live = Steered(talk())
    live.initialize()
    assert [live.answered(each) for each in (5, 6, 7)] == ["first", "second", "second"]
    shake, *notes = live.notes()
    assert (shake["did"], shake["name"], shake["interaction"]) == ("played", "another client 9", 0)
    assert [(each["did"], each["id"], each["interaction"], each["place"]) for each in notes] == [
        ("played", "5", 1, 1),
        ("played", "6", 2, 2),
        ("played", "7", 2, 2),
    ]
    assert {each["count"] for each in notes} == {2}
    assert live.notes() == []


def test_a_note_of_a_miss_has_the_nearest_request_and_the_first_difference() -> None:
    live = Steered(talk())
    assert live.answered(5, "add", a=1, b=3) == -32603
    (note,) = live.notes()
    assert note == {
        "did": "missed",
        "id": "5",
        "request": "tools/call add",
        "miss": "not recorded",
        "nearest": 3,
        "nearest_request": "tools/call add",
        "at": "/params/arguments/b",
        "recorded": "2",
        "sent": "3",
        "more": 0,
    }


def test_a_secret_in_a_difference_is_not_noted() -> None:
    live = Steered(Talk().call(1, "login", token="none"))
    live.call(5, "login", token="ghp_012345678901234567890123456789012345")
    assert "ghp_" not in str(live.notes())


def test_an_empty_result_is_noted_as_generated() -> None:
    live = Steered(talk())
    live.ask(5, "ping")
    assert [each["did"] for each in live.notes()] == ["generated"]


def test_the_next_request_gets_the_error_of_the_user_once() -> None:
    live = Steered(talk())
    live.order(answer={"error": ERROR})
    live.initialize()
    assert live.answered(5) == -32000
    assert live.answered(6) == "second"
    assert [each["did"] for each in live.notes()] == ["played", "answered", "played"]


def test_the_answer_to_an_interaction_stays_until_it_is_taken_back() -> None:
    live = Steered(talk())
    live.order(answer={"interaction": 3, "result": {"said": "edited"}})
    assert [live.answered(each, "add", a=1, b=2) for each in (5, 6)] == ["edited", "edited"]
    assert live.answered(7) == "first"
    live.order(answer={"interaction": 3})
    assert live.answered(8, "add", a=1, b=2) == "3"
    assert live.steering.state["answers"] == []


def test_an_answer_may_be_given_several_times() -> None:
    live = Steered(talk())
    live.order(answer={"interaction": 3, "times": 2, "error": ERROR})
    assert [live.answered(each, "add", a=1, b=2) for each in (5, 6, 7)] == [-32000, -32000, "3"]


def test_a_delayed_response_comes_later_and_others_overtake_it() -> None:
    live = Steered(talk())
    live.order(answer={"delay": 2})
    assert live.call(5) == []
    owes = live.session.owes
    assert live.answered(6, "add", a=1, b=2) == "3"
    assert [each["result"]["said"] for each in live.wait(2.0)] == ["first"]
    assert (owes, live.session.owes) == (True, False)
    assert live.notes()[0]["delay"] == 2.0


def test_a_delayed_miss_comes_later_too() -> None:
    live = Steered(talk())
    live.order(answer={"delay": 1})
    assert live.call(5, "unknown") == []
    assert [each["error"]["code"] for each in live.wait(1.0)] == [-32603]


def test_a_cancelled_request_gets_no_delayed_response() -> None:
    live = Steered(talk())
    live.order(answer={"delay": 1})
    live.call(5)
    live.say(method="notifications/cancelled", params={"requestId": 5})
    assert live.wait(2.0) == []


def test_the_matching_mode_changes_for_further_requests() -> None:
    live = Steered(talk())
    assert live.answered(5, "add", a=9) == -32603
    live.order(match="lenient")
    assert live.answered(6, "add", a=9) == "3"
    assert live.steering.options.match is MatchMode.LENIENT


def test_misses_get_the_nearest_from_then_on() -> None:
    live = Steered(talk())
    live.order(misses="nearest")
    assert live.answered(5, "add", a=9) == "3"
    (note,) = live.notes()
    assert (note["did"], note["interaction"], note["miss"]) == ("nearest", 3, "not recorded")
    live.order(misses="method-not-found")
    assert live.answered(6, "add", a=9) == -32601


def test_misses_are_forwarded_if_there_is_a_real_server() -> None:
    live = Steered(talk(), may_forward=True)
    assert live.session.passthrough is not None
    live.order(misses="forward")
    assert live.call(5, "unknown") == []
    assert b'"unknown"' in live.session.passthrough.take_outgoing()[0]
    assert [each["did"] for each in live.notes()] == ["forwarded"]
    live.order(misses="error")
    assert live.answered(6, "unknown") == -32603


def test_the_speed_changes() -> None:
    live = Steered(talk())
    live.order(speed=2)
    assert live.call(5) == []
    assert [each["result"]["said"] for each in live.wait(0.5)] == ["first"]


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ({"match": "roughly"}, "match must be one of exact, "),
        ({"speed": -1}, "speed must be a number"),
        ({"speed": True}, "speed must be a number"),
        ({"misses": "drop"}, "misses must be one of error, "),
        ({"misses": "forward"}, "no real server"),
        ({"colour": 1}, "unknown key colour"),
        ({"answer": []}, "answer must be an object"),
        ({"answer": {"interaction": -1, "delay": 1}}, "interaction must be a number from 0"),
        ({"answer": {"times": "2"}}, "times must be a number from 1"),
        ({"answer": {"result": []}}, "result must be an object"),
        ({"answer": {"result": {}, "error": ERROR}}, "either a result or an error"),
        ({"answer": {"error": {"code": "1", "message": ""}}}, "integer code"),
        ({"answer": {"delay": 1e9}}, "delay must be a number"),
        ({"answer": {"later": 1}}, "unknown key later"),
        ({"speed": 2, "answer": {"delay": "x"}}, "delay must be a number"),
    ],
)
def test_an_invalid_order_is_refused_and_changes_nothing(fields: Json, why: str) -> None:
    steering = Steering(MockOptions())
    before = steering.state
    with pytest.raises(UsageError, match=why):
        steering.order(fields)
    assert steering.state == before
