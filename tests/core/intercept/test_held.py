"""In-flight messages with the decisions about them."""

from __future__ import annotations

import pytest

from mcpspy.core.intercept.actions import AddNote, Notify
from mcpspy.core.intercept.evaluator import MessageChecks
from mcpspy.core.intercept.held import InFlightMessage, MessagePart, RuleDecision
from mcpspy.core.protocol.message import read_frame
from mcpspy.core.recording.decode import Frame
from tests.core.intercept.interceptors import call, events, exchange_named, message, rules

NAMED = {"from": "client", "id": "1", "method": "tools/call", "subject": "echo"}

BATCH = b"[" + call(1, "a") + b" , " + call(2, "b") + b"]"


def flight(data: bytes, *flags: str) -> InFlightMessage:
    checks = MessageChecks(rules(*flags))
    parts = [
        MessagePart(each, None, checks.decide(each, None)) for each in read_frame(Frame(0.0, "client", data))
    ]
    return InFlightMessage(1, 0.0, "client", data, stream=None, exchange=None, parts=parts)


def test_a_message_without_decisions_is_forwarded_unchanged() -> None:
    assert flight(BATCH).outgoing() is None
    assert flight(call(1, "a")).outgoing() is None


def test_a_part_of_a_batch_may_be_removed_or_changed() -> None:
    assert flight(BATCH, "tool:a => drop").outgoing() == b"[" + call(2, "b") + b"]"
    changed = flight(BATCH, "tool:b => replace /params = 1").outgoing()
    assert changed == b"[" + call(1, "a") + b',{"jsonrpc":"2.0","id":2,"method":"tools/call","params":1}]'


def test_a_batch_waits_for_its_slowest_part_and_ends_with_any() -> None:
    both = flight(BATCH, "tool:a => delay 1s", "tool:b => delay 3s", "tool:b => disconnect")

    assert both.delay == 3
    assert both.is_disconnected
    assert both.is_blocked


def test_nothing_is_forwarded_if_all_parts_are_removed() -> None:
    assert flight(BATCH, " => drop").is_blocked
    assert not flight(BATCH, "tool:a => drop").is_blocked


def test_an_edit_of_a_viewer_takes_precedence_over_rules() -> None:
    half = flight(call(1, "a"), "tool:a => corrupt half-line")
    assert half.is_cut
    half.edited = b"{}"

    assert half.outgoing() == b"{}"
    assert not half.is_cut


def test_its_size_is_its_memory() -> None:
    assert flight(BATCH).size == len(BATCH)
    assert flight(call(1, "a"), " => corrupt oversize 1mb").size == (1 << 20) + len(call(1, "a"))


@pytest.fixture
def held() -> InFlightMessage:
    data = call()
    parts = [MessagePart(message(data), None, RuleDecision())]
    flight = InFlightMessage(
        7, 1.0, "client", data, stream=None, exchange=exchange_named("lane"), parts=parts
    )
    flight.holder, flight.held_at = ("viewer", "tui"), 2.0
    return flight


def test_viewers_see_the_holder_the_deadline_and_the_text_of_a_held_message(held: InFlightMessage) -> None:
    noted, event = held.hold_steps(5.0)

    assert noted == AddNote("rule", {"action": "hold", "viewer": "tui", **NAMED, "ticket": 7}, held.exchange)
    assert event == Notify(None, {"event": "held", **held.viewer_fields(5.0)})
    assert held.viewer_fields(5.0) == {
        "ticket": 7,
        "at": 1.0,
        **NAMED,
        "viewer": "tui",
        "deadline": 7.0,
        "text": call().decode(),
    }


def test_a_release_is_noted_with_the_edit_and_sent_to_viewers(
    held: InFlightMessage,
) -> None:
    held.edited = b'{"\xff"'
    noted, event = held.release_steps(2.5, "edited", "tui")

    assert isinstance(noted, AddNote)
    assert noted.fields == {
        "action": "release",
        **NAMED,
        "ticket": 7,
        "why": "edited",
        "viewer": "tui",
        "seconds": 0.5,
        "sent_b64": "eyL/Ig==",
    }
    assert events([event]) == [{"event": "released", "ticket": 7, "why": "edited", "viewer": "tui"}]


def test_a_full_buffer_is_noted(held: InFlightMessage) -> None:
    assert held.full_note("delay").fields == {"action": "delay", **NAMED, "why": "full"}
