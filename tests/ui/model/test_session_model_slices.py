"""Tests of incremental builds: they stop in time, resume, and restart with the session."""

from __future__ import annotations

from mcpspy.ui.model.session_model import PORTION, IncrementalBuild
from tests.ui.tui.panels.panels import HEADER, Lines


class Seen(IncrementalBuild):
    """A model of the processed rows."""

    def _begin(self) -> None:
        self.rows: list[int] = []

    def _take(self, begin: int, end: int) -> None:
        self.rows += range(begin, end)


def filled(calls: int) -> Lines:
    lines = Lines()
    for number in range(calls):
        lines.call(number, number / 1000)
    return lines


def test_every_row_is_taken_once_in_order() -> None:
    lines = filled(PORTION + 10)
    seen = Seen(lines.log)
    assert seen.is_behind
    seen.advance(lambda: True)
    assert (seen.rows, seen.is_behind) == (list(range(PORTION + 10)), False)

    lines.call(9999, 9.0)
    assert seen.is_behind
    seen.advance(lambda: True)
    assert seen.rows == list(range(PORTION + 11))


def test_it_stops_after_a_portion_when_time_is_up() -> None:
    seen = Seen(filled(PORTION + 10).log)
    seen.advance(lambda: False)

    assert (seen.processed, len(seen.rows), seen.is_behind) == (PORTION, PORTION, True)


def test_it_restarts_with_the_session() -> None:
    lines = filled(20)
    seen = Seen(lines.log)
    seen.advance(lambda: True)
    lines.log.begin_again(HEADER)
    assert (seen.is_replaced, seen.is_behind) == (True, True)

    lines.call(1, 0.1)
    seen.advance(lambda: True)
    assert (seen.rows, seen.is_replaced, seen.generation) == ([0], False, 2)
