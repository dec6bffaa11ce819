"""Tests of the confirmation: only y confirms."""

from __future__ import annotations

from typing import Any

import pytest
from textual.app import App

from mcpspy.ui.tui.widgets.prompts import ConfirmPrompt


@pytest.mark.parametrize(("key", "answer"), [("y", True), ("n", False), ("escape", False), ("q", False)])
async def test_a_confirmation_returns_true_only_for_y(key: str, answer: bool) -> None:
    answers: list[bool | None] = []
    app: App[None] = App()
    async with app.run_test() as pilot:
        app.push_screen(ConfirmPrompt("Delete [red]x[/b]?"), answers.append)
        await pilot.pause()
        await pilot.press("enter", "d", "space")
        assert answers == []
        shown: Any = app.screen.query_one("#question").render()
        assert "Delete [red]x[/b]?\ny: yes   n or esc: no" in str(shown)
        await pilot.press(key)
        await pilot.pause()
    assert answers == [answer]
