"""Tests of the text prompt."""

from __future__ import annotations

import pytest
from textual.app import App

from mcpspy.ui.tui.widgets.prompts import TextPrompt


@pytest.mark.parametrize(
    ("keys", "answer"),
    [
        (["enter"], "name.md"),
        ([*"2", "enter"], "name.md2"),
        (["home", *"a/", "enter"], "a/name.md"),
        (["escape"], None),
        (["ctrl+u", "enter"], ""),
    ],
)
async def test_a_text_prompt_returns_the_text_or_none(keys: list[str], answer: str | None) -> None:
    app: App[None] = App()
    results: list[str | None] = []
    async with app.run_test() as pilot:
        await app.push_screen(TextPrompt("A name [for it]:", "name.md"), results.append)
        await pilot.pause()
        await pilot.press(*keys)
        await pilot.pause()
    assert results == [answer]
