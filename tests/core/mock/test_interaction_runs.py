"""When the steps of a scene are due."""

from __future__ import annotations

from typing import Any

import pytest

from mcpspy.core.mock.interaction import Run, Scene
from tests.core.mock.talking import Talk, scenes

LOG: dict[str, Any] = {"method": "notifications/message", "params": {"level": "info", "data": "x"}}


def scene(*, cancelled: bool = False) -> Scene:
    talk = Talk().client(id=1, method="a").server(**LOG).server(id=1, method="roots/list")
    if cancelled:
        talk.client(method="notifications/cancelled", params={"requestId": 1})
        talk.server(id=1, error={"code": 0, "message": "Request cancelled"})
    else:
        talk.client(id=1, result={}).server(id=1, result={})
    return scenes(talk.session)[0]


def due(run: Run, *, skips: bool = False) -> list[tuple[float, int]]:
    return [(at, place) for at, place, _ in run.due(lambda _: skips)]


@pytest.mark.parametrize(("speed", "scale"), [(0.0, 0.0), (1.0, 1.0), (2.0, 0.5), (0.5, 2.0)])
def test_steps_come_at_their_recorded_distance_scaled(speed: float, scale: float) -> None:
    run = Run(scene(), 100.0, speed)
    assert due(run) == [(100 + scale, 0), (100 + 2 * scale, 1)]
    run.open(1, 200.0)
    assert due(run) == [(200 + scale, 2)]
    assert due(run) == []


def test_steps_keep_their_order_even_if_the_client_answers_early() -> None:
    run = Run(scene(), 100.0, 1.0)
    run.open(1, 100.0)
    assert due(run) == [(101.0, 0), (102.0, 1), (102.0, 2)]


def test_a_request_that_is_skipped_counts_as_answered() -> None:
    assert due(Run(scene(), 100.0, 1.0), skips=True) == [(101.0, 0), (103.0, 2)]


def test_after_a_cancellation_only_what_waited_for_it_comes() -> None:
    run = Run(scene(cancelled=True), 100.0, 1.0)
    due(run)
    run.cancel(150.0)
    assert due(run) == [(151.0, 2)]
    stopped = Run(scene(), 100.0, 1.0)
    due(stopped)
    stopped.cancel(150.0)
    assert due(stopped) == []
