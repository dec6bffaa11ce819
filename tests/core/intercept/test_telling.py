"""What viewers are told of held messages and of requests of ours, and what is noted."""

from __future__ import annotations

import pytest

from mcpspy.core.intercept import telling
from mcpspy.core.intercept.judge import Verdict
from mcpspy.core.intercept.letter import Letter, Part
from mcpspy.core.intercept.ours import Injected
from mcpspy.core.intercept.steps import Remark, Tell
from tests.core.intercept.desks import call, message, told

NAMED = {"from": "client", "id": "1", "method": "tools/call", "subject": "echo"}


@pytest.fixture
def letter() -> Letter:
    data = call()
    parts = [Part(message(data), None, Verdict())]
    letter = Letter(7, 1.0, "client", data, stream=None, lane="lane", parts=parts)
    letter.holder, letter.held_at = ("viewer", "tui"), 2.0
    return letter


def test_who_holds_a_message_how_long_and_its_text_are_told(letter: Letter) -> None:
    noted, event = telling.held(letter, 5.0)

    assert noted == Remark("rule", {"action": "hold", "viewer": "tui", **NAMED, "ticket": 7}, "lane")
    assert event == Tell(None, {"event": "held", **telling.shown(letter, 5.0)})
    assert telling.shown(letter, 5.0) == {
        "ticket": 7,
        "at": 1.0,
        **NAMED,
        "viewer": "tui",
        "deadline": 7.0,
        "text": call().decode(),
    }


def test_what_a_viewer_made_of_a_message_is_noted_and_that_it_is_held_no_more_is_told(letter: Letter) -> None:
    letter.edited = b'{"\xff"'
    noted, event = telling.released(letter, 2.5, "edited", "tui")

    assert isinstance(noted, Remark)
    assert noted.fields == {
        "action": "release",
        **NAMED,
        "ticket": 7,
        "why": "edited",
        "viewer": "tui",
        "seconds": 0.5,
        "sent_b64": "eyL/Ig==",
    }
    assert told([event]) == [{"event": "released", "ticket": 7, "why": "edited", "viewer": "tui"}]


def test_that_there_was_no_room_is_noted(letter: Letter) -> None:
    assert telling.full("delay", letter).fields == {"action": "delay", **NAMED, "why": "full"}


def test_only_who_asked_is_told_of_the_answer() -> None:
    ours = Injected('"m-1"', "client", "ping", "tui", 3, 1.0)

    assert telling.answered(ours, 1.25, {"error": "no"}) == Tell(
        "tui", {"event": "answer", "n": 3, "id": '"m-1"', "error": "no", "seconds": 0.25}
    )
