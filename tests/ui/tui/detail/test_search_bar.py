"""The search line opens and closes."""

from __future__ import annotations

from mcpspy.ui.tui.detail.search import SearchBox
from tests.ui.tui.detail.test_pane import reading


async def test_it_opens_with_the_last_query_and_closes() -> None:
    async with reading() as screen:
        box = screen.detail.query_one(SearchBox)
        assert not box.display
        await screen.press("ctrl+f", *"tools", "enter")
        await screen.until(lambda: not box.display and screen.detail.has_focus)
        await screen.press("ctrl+f")
        assert (box.display, box.value, box.selected_text) == (True, "tools", "tools")
        for key in ("escape", "tab", "shift+tab"):
            await screen.press("ctrl+f", key)
            await screen.until(lambda: not box.display and screen.detail.has_focus)


async def test_an_empty_query_ends_the_search() -> None:
    async with reading() as screen:
        await screen.press("ctrl+f", *"tools", "enter")
        await screen.shows("tools 1/1")
        await screen.press("ctrl+f", "delete", "enter")
        await screen.until(lambda: "1/1" not in screen.text)
