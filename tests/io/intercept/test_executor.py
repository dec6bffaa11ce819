"""Steps of the interception engine, planned and carried out on a transport that keeps a log."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from mcpspy.core.intercept.actions import (
    AbortUpstream,
    AddNote,
    Disconnect,
    Dropped,
    Forward,
    HeadDecided,
    Inject,
    Notify,
    Step,
    Substitute,
)
from mcpspy.io.intercept.executor import plan
from tests.core.intercept.interceptors import FakeExchange

if TYPE_CHECKING:
    from mcpspy.io.intercept.executor import Effect


class Log:
    """A carrier that logs what it is to do. Its server has disconnected."""

    def __init__(self) -> None:
        self.got: list[object] = []

    def forward(self, step: Forward) -> None:
        self.got.append(step)

    def substitute(self, step: Substitute) -> None:
        self.got.append(step)

    def drop(self, step: Dropped) -> None:
        self.got.append(step)

    def disconnect(self, step: Disconnect) -> None:
        self.got.append(step)

    def injection(self, at: float, step: Inject) -> tuple[list[bytes], Effect] | None:
        if step.side == "client":
            return None
        return [b"%.1f " % at, step.data + b"\n"], lambda: self.got.append(step)

    def undeliverable(self, at: float, id: str) -> list[Step]:  # noqa: A002
        assert at == 1.5
        return [AddNote("rule", {"id": id}), Notify("tui", {"event": "answer"})]

    def notify(self, viewer: str | None, event: dict[str, Any]) -> None:
        self.got.append((viewer, event))


MESSAGES: list[Step] = [
    Forward("client", b"a", None, 1),
    Substitute("client", b"b", None, 2),
    Inject("server", b"c"),
    Dropped("client", None, 3),
    Disconnect(None),
]


def test_nothing_is_carried_out_before_it_is_recorded_and_then_everything_in_order() -> None:
    log = Log()
    lines, effects = plan(log, 1.5, MESSAGES)
    assert (b"".join(lines), log.got) == (b"1.5 c\n", [])
    for effect in effects:
        effect()
    assert log.got == MESSAGES


def test_a_note_is_recorded_with_the_http_exchange_of_its_message() -> None:
    lines, effects = plan(
        Log(), 1.5, [AddNote("rule", {"a": 1}), AddNote("rule", {"b": 2}, FakeExchange("s"))]
    )
    assert [line for line in lines if b'"http":7' in line] == lines[1:]
    assert effects == []


def test_an_injected_request_without_a_receiver_is_reported_to_its_viewer_in_place() -> None:
    log, before, after = Log(), Notify(None, {"n": 1}), Notify(None, {"n": 2})
    gone = [Inject("client", b"notification"), Inject("client", b"request", id='"m-1"')]
    lines, effects = plan(log, 1.5, [before, *gone, after])
    for effect in effects:
        effect()
    assert len(lines) == 1
    assert log.got == [(None, {"n": 1}), ("tui", {"event": "answer"}), (None, {"n": 2})]


def test_steps_that_only_http_has_are_executed_by_their_exchange() -> None:
    exchange = FakeExchange("s")
    steps: list[Step] = [AbortUpstream(exchange), HeadDecided([], exchange)]
    for effect in plan(Log(), 1.5, steps).effects:
        effect()
    assert exchange.delivered == steps


def test_a_step_of_an_unknown_kind_is_a_bug_and_not_ignored() -> None:
    with pytest.raises(AssertionError):
        plan(Log(), 1.5, [object()])  # type: ignore[list-item]
