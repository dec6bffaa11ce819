"""Tests of the list of changes: the cursor stays on its change, and both titles share the first line."""

from __future__ import annotations

import pytest
from rich.cells import cell_len

from mcpspy.ui.tui.diff.rows import DiffList, diff_rows
from tests.ui.tui.diff.test_rows import DIFFERENCE
from tests.ui.tui.diff.test_screen import Fixed, shown_of
from tests.ui.tui.panels.panels import alone


async def test_the_cursor_moves_by_change_and_stays_when_others_are_filtered() -> None:
    screen = shown_of(Fixed(DIFFERENCE))
    async with alone(screen, (80, 24)) as shown:
        await shown.shows("▸   result        /result/wind")
        listing = screen.query_one(DiffList)

        def following() -> list[int | None]:
            return [listing.following(place, 1) for place in (0, 1, 4, 99)]

        await shown.until(lambda: following() == [1, 2, 9, None], "the rows at this width")
        assert [listing.following(place, -1) for place in (0, 1, 2, 9)] == [None, None, 1, 4]
        listing.move_to(7)
        held = listing.selected
        listing.fill(diff_rows(DIFFERENCE, 200, "text"))
        assert listing.selected is not None
        assert held is not None
        assert (listing.selected.text, listing.selected.change) == (held.text, held.change)
        listing.fill(diff_rows(DIFFERENCE, 200, "wind"))
        assert "/result/wind" in listing.rows[listing.cursor].text, "the first that is left"


@pytest.mark.parametrize("width", [30, 60, 80, 200])
async def test_both_titles_are_visible_at_every_width(width: int) -> None:
    screen = shown_of(Fixed(DIFFERENCE, titles=("old " * 20, "new " * 20)))
    async with alone(screen, (width, 24)) as shown:
        await shown.shows("breaking")
        heading = shown.lines[1]
        assert heading.startswith("  - old")
        assert "+ new" in heading
        assert cell_len(heading) == width
        assert heading.count("…") == (2 if width < 200 else 0)
