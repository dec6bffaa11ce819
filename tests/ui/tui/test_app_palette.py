"""Every action is found by its words."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

Make = Callable[..., Path]


async def test_an_action_is_found_by_its_words_and_done(opened: Any, make_recording: Make) -> None:
    path = make_recording()
    async with opened(path) as screen:
        await screen.until(lambda: screen.count)
        session = screen.session
        await screen.press("colon")
        await screen.shows("from the list to the message")
        await screen.press(*"wire")
        await screen.shows("one row an exchange, or one row a message")
        await screen.press("enter")
        await screen.press("enter")
        await screen.until(lambda: not session.view.options.exchanges)


async def test_the_palette_names_each_action_once_with_its_key(opened: Any, make_recording: Make) -> None:
    path = make_recording()
    async with opened(path) as screen:
        await screen.until(lambda: screen.count)
        await screen.press("ctrl+p")
        await screen.press(*"filter the")
        await screen.shows("filter the rows")
        assert sum("filter the rows" in line for line in screen.lines) == 1
