"""The command palette finds every action."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

Make = Callable[..., Path]


async def test_an_action_is_found_and_run(opened: Any, make_recording: Make) -> None:
    path = make_recording()
    async with opened(path) as screen:
        await screen.until(lambda: screen.count)
        session = screen.session
        await screen.press("colon")
        await screen.shows("switch between list and message")
        await screen.press(*"wire")
        await screen.shows("switch between exchanges and messages")
        await screen.press("enter")
        await screen.press("enter")
        await screen.until(lambda: not session.view.options.exchanges)


async def test_the_palette_lists_each_action_once(opened: Any, make_recording: Make) -> None:
    path = make_recording()
    async with opened(path) as screen:
        await screen.until(lambda: screen.count)
        await screen.press("ctrl+p")
        await screen.press(*"filter r")
        await screen.shows("filter rows")
        assert sum("filter rows" in line for line in screen.lines) == 1
