"""Tests of scrolling: visible lines are moved instead of drawn again, and the scrollbar follows."""

from __future__ import annotations

from collections import Counter

import pytest
from textual.app import App, ComposeResult
from textual.strip import Strip

from mcpspy.ui.tui.widgets.base import LineScrollView


class Numbers(LineScrollView):
    """A heading, and one number per line."""

    HEADS = 1

    def __init__(self) -> None:
        super().__init__()
        self.drawn: Counter[int] = Counter()

    def render_line(self, y: int) -> Strip:
        number = y - 1 + self.scroll_offset.y if y else -1
        self.drawn[number] += 1
        return Strip(self.paint([("head" if number < 0 else str(number), None)], self.outer_size.width))


class Page(App[None]):
    def __init__(self) -> None:
        super().__init__()
        self.numbers = Numbers()

    def compose(self) -> ComposeResult:
        yield self.numbers

    @property
    def lines(self) -> list[str]:
        return [strip.text for strip in self.screen._compositor.render_strips()]


@pytest.mark.parametrize("steps", [(1,), (3, 2), (90,), (5, 0), (7, 3, 8)])
async def test_lines_that_stay_in_view_are_drawn_once(steps: tuple[int, ...]) -> None:
    async with (app := Page()).run_test(size=(10, 6)) as pilot:
        app.numbers.extend(101)
        await pilot.pause()
        seen: set[int] = set()
        for top in (0, *steps):
            app.numbers.drawn.clear()
            app.numbers.jump(top)
            await pilot.pause()
            assert [line[:9].strip() for line in app.lines] == ["head", *map(str, range(top, top + 5))]
            if top:
                assert not set(app.numbers.drawn) & seen
            seen = {-1, *range(top, top + 5)}


async def test_the_scrollbar_moves_if_visible_and_reaches_both_ends() -> None:
    async with (app := Page()).run_test(size=(10, 6)) as pilot:
        numbers, bar = app.numbers, app.numbers.vertical_scrollbar
        numbers.extend(1_000_001)
        await pilot.pause()
        numbers.jump(1)
        first = bar.position
        numbers.jump(2)
        assert bar.position == first, "the change is not visible"
        numbers.jump(500_000)
        assert bar.position == 500_000
        numbers.jump(2_000_000)
        assert numbers.scroll_y == numbers.max_scroll_y == bar.position
        numbers.jump(0)
        assert bar.position == 0


async def test_fewer_lines_bring_the_end_back_into_view() -> None:
    async with (app := Page()).run_test(size=(10, 6)) as pilot:
        app.numbers.extend(101)
        app.numbers.jump(90)
        app.numbers.extend(11)
        await pilot.pause()
        assert app.numbers.scroll_y == app.numbers.max_scroll_y
        assert "9" in app.lines[-1]
