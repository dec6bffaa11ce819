"""Tests of the base screen of panels: it catches up in slices, polls, and can be left."""

from __future__ import annotations

from collections.abc import Callable

from mcpspy.ui.tui.panels.panel_screen import PanelScreen, leaving
from mcpspy.ui.tui.widgets.virtual_list import VirtualList
from tests.ui.tui.panels.panels import Lines, alone


class Counting(PanelScreen[int | None]):
    """A panel that counts one row per slice."""

    NAME = "counting"
    BINDINGS = [*leaving("counting")]  # noqa: RUF012 - typed so by Screen.

    def __init__(self, lines: Lines) -> None:
        super().__init__(lines.log, VirtualList())
        self.counted = 0
        self.slices = 0

    @property
    def is_behind(self) -> bool:
        return self.counted < len(self._model)

    def advance(self, may_continue: Callable[[], bool]) -> None:
        assert may_continue()
        self.counted += 1
        self.slices += 1

    def show(self) -> None:
        self.set_lines([self.progress(self.counted)], [(f"counted {self.counted}", None)], [])

    def action_open(self) -> None:
        self.dismiss(self.counted)


async def test_rows_are_processed_in_slices_including_new_ones() -> None:
    lines = Lines()
    for number in range(5):
        lines.call(number, number, number + 0.5)
    async with alone(Counting(lines)) as screen:
        await screen.shows("counting · tested", "counted 10")
        assert isinstance(counting := screen.app.screen, Counting)
        assert counting.slices == 10
        lines.call(9, 9.0)
        await screen.shows("counted 11")


async def test_q_and_escape_leave_without_a_result() -> None:
    for key in ("q", "escape"):
        async with alone(Counting(Lines())) as screen:
            await screen.shows("counted 0")
            await screen.press(key)
            await screen.until(lambda: screen.app.results)
            assert screen.app.results == [None]
