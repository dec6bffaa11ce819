"""Waiting for messages: limits and conditions."""

from __future__ import annotations

import pytest

from mcpspy.core.replay.plan import PlanStep, WaitCondition, WaitKind
from mcpspy.core.replay.received import ReceivedMessages

QUESTION = WaitCondition(WaitKind.SERVER_REQUEST, "roots/list", 2, 0.1)
NOTIFICATION = WaitCondition(WaitKind.NOTIFICATION, "n", 1, 4.0)
PROGRESS = WaitCondition(WaitKind.NOTIFICATION, ("notifications/progress", 7), 1, 0.0)
ANSWER = WaitCondition(WaitKind.RESPONSE, 7, 1, 0.0, is_certain=True)


def step(*waits: WaitCondition) -> PlanStep:
    return PlanStep(None, 0.0, waits, 0.0)


def test_as_many_messages_of_a_kind_must_arrive_as_in_the_recording() -> None:
    received_messages = ReceivedMessages()
    received_messages.add(WaitKind.SERVER_REQUEST, "roots/list", 5.0)
    assert received_messages.missing(step(QUESTION)) == [QUESTION]

    received_messages.add(WaitKind.SERVER_REQUEST, "roots/list", 6.0)
    assert received_messages.missing(step(QUESTION)) == []
    assert received_messages.since(step(QUESTION), 1.0) == 6.0
    assert received_messages.since(step(QUESTION), 9.0) == 9.0


@pytest.mark.parametrize(
    ("waits", "most", "ends"),
    [
        ((), 30.0, 1.0),
        ((PROGRESS,), 30.0, 1.5),
        ((QUESTION,), 30.0, 3.0),
        ((QUESTION, NOTIFICATION), 30.0, 13.0),
        ((NOTIFICATION,), 5.0, 6.0),
        ((ANSWER,), 30.0, 1.0),
    ],
)
def test_the_limit_is_three_times_the_recorded_delay_within_bounds(
    waits: tuple[WaitCondition, ...], most: float, ends: float
) -> None:
    assert ReceivedMessages().waits_until(step(*waits), 1.0, most) == ends


def test_the_limit_counts_from_the_last_response() -> None:
    received_messages = ReceivedMessages()
    received_messages.settled[7] = 8.0

    assert received_messages.waits_until(step(ANSWER, NOTIFICATION), 1.0, 30.0) == 20.0
    assert received_messages.missing(step(PROGRESS)) == []
