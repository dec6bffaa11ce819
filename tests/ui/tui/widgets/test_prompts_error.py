"""Tests of the prompt for an error response."""

from __future__ import annotations

from textual.app import App

from mcpspy.ui.tui.widgets.prompts import ErrorPrompt
from tests.ui.tui.conftest import Screen


async def test_enter_accepts_the_defaults_and_escape_cancels() -> None:
    app = App[None]()
    left: list[tuple[int, str] | None] = []
    async with app.run_test(size=(60, 16)) as pilot:
        screen = Screen(app, pilot)  # type: ignore[arg-type]
        app.push_screen(ErrorPrompt("tools/call [b]x"), left.append)
        await screen.shows("Answer tools/call [b]x with an error")
        await screen.press("enter", "enter")
        await screen.until(lambda: left == [(-32603, "Internal error")])
        app.push_screen(ErrorPrompt("ping"), left.append)
        await screen.shows("Answer ping")
        await screen.press("escape")
        await screen.until(lambda: left[1:] == [None])
