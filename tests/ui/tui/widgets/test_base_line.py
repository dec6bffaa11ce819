"""Tests of the split line, which truncates its left part first."""

from __future__ import annotations

from typing import ClassVar

import pytest
from rich.cells import cell_len
from textual.app import App, ComposeResult

from mcpspy.ui.tui.theme import COMPONENTS, CSS, DARK
from mcpspy.ui.tui.widgets.base import SplitLine


class OneLine(App[None]):
    CSS = CSS
    COMPONENT_CLASSES: ClassVar[set[str]] = COMPONENTS

    def __init__(self) -> None:
        super().__init__()
        self.register_theme(DARK)
        self.theme = DARK.name

    def compose(self) -> ComposeResult:
        yield SplitLine()


@pytest.mark.parametrize(
    ("width", "shown"),
    [
        (40, " 漢字 · a sentence              1/2 paused "),
        (26, " 漢字 · a se…  1/2 paused "),
        (20, " 漢字 …  1/2 paused "),
        (8, " 1/2 p… "),
    ],
)
async def test_the_right_part_is_kept(width: int, shown: str) -> None:
    app = OneLine()
    async with app.run_test(size=(width, 1)) as pilot:
        app.query_one(SplitLine).set_text(
            [("漢字", "title"), (" · a sentence", None)], [("1/2", "quiet"), (" paused", "open")]
        )
        await pilot.pause()
        text = app.screen._compositor.render_strips()[0].text
        assert cell_len(text) == width
        assert text.replace(" ", "") == shown.replace(" ", "")
