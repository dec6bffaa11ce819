"""Tests of the editor: invalid text, long text, and the external editor."""

from __future__ import annotations

import json
from typing import Any, ClassVar

import pytest
from textual.app import App

from mcpspy.errors import CannotStart
from mcpspy.ui.tui.intercept import editor
from mcpspy.ui.tui.intercept.assistance import problems
from mcpspy.ui.tui.intercept.editor import LARGEST, EditorScreen
from mcpspy.ui.tui.theme import COMPONENTS
from tests.ui.tui.conftest import Screen
from tests.ui.tui.intercept.conftest import call


class Alone(App[None]):
    """An application with only the editor."""

    COMPONENT_CLASSES: ClassVar[set[str]] = COMPONENTS

    def __init__(self, original: str) -> None:
        super().__init__()
        self.original = original
        self.sent: list[str] = []
        self.left: list[str | None] = []
        self.refuses = False

    def on_mount(self) -> None:
        async def send(text: str) -> None:
            if self.refuses:
                raise CannotStart("no message is held under ticket 7")
            self.sent.append(text)

        def check(text: str) -> Any:
            return problems(text, "client", self.original.encode())

        self.push_screen(
            EditorScreen(lambda: [("a call", None)], self.original, check, send), self.left.append
        )


async def test_invalid_json_is_sent_after_a_second_ctrl_s() -> None:
    app = Alone(json.dumps(json.loads(call(1)), indent=2))
    async with app.run_test(size=(70, 20)) as pilot:
        screen = Screen(app, pilot)  # type: ignore[arg-type]
        await screen.shows("a call", "unchanged; ctrl-s sends")
        await screen.press("Q", "ctrl+s")
        await screen.shows("invalid JSON: line 7, column 19: Expecting property name", "press ctrl-s again")
        assert app.sent == []
        await screen.press("x", "ctrl+s")
        assert app.sent == [], "the text has changed"
        app.refuses = True
        await screen.press("ctrl+s")
        await screen.shows("no message is held under ticket 7")
        app.refuses = False
        await screen.press("ctrl+s")
        await screen.until(lambda: app.left == [None])
        assert app.sent == [app.original.replace("{}", "{Qx}")]


async def test_a_long_text_is_edited_externally(monkeypatch: pytest.MonkeyPatch) -> None:
    original = json.dumps(json.loads(call(1, text="x" * LARGEST)), indent=2)
    app = Alone(original)
    monkeypatch.setattr(editor, "editor", lambda: "")
    async with app.run_test(size=(70, 20)) as pilot:
        screen = Screen(app, pilot)  # type: ignore[arg-type]
        await screen.shows("characters: too long to edit here; set EDITOR")
        await screen.press("ctrl+o")
        await screen.shows("no editor: set EDITOR")
        monkeypatch.setattr(editor, "editor", lambda: "vi")
        await screen.press("ctrl+o")
        await screen.shows("cannot run an editor: this terminal")  # The test has no terminal.
        monkeypatch.setattr(
            editor, "edit_outside", lambda _command, text, _suspended: text.replace("xx", "") + "\n"
        )
        await screen.press("ctrl+o")
        await screen.shows("The text was edited")
        await screen.press("ctrl+r")
        await screen.until(lambda: "The text was edited" not in screen.text)
        await screen.press("ctrl+o", "ctrl+s")
        await screen.until(lambda: app.sent)
        assert app.sent == [original.replace("xx", "")]


async def test_a_failure_of_the_editor_leaves_the_text_and_ctrl_r_restores_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    app = Alone(call(1).decode())

    def fails(_command: str, _text: str, _suspended: Any) -> str:
        raise CannotStart("vi ended with exit code 1", "the text is unchanged")

    monkeypatch.setattr(editor, "editor", lambda: "vi")
    monkeypatch.setattr(editor, "edit_outside", fails)
    async with app.run_test(size=(90, 20)) as pilot:
        screen = Screen(app, pilot)  # type: ignore[arg-type]
        await screen.shows("unchanged")
        await screen.press("Q")
        await screen.press("ctrl+o")
        await screen.shows("vi ended with exit code 1 (the text is unchanged)")
        area = app.screen.query_one("TextArea")
        assert area.text == app.original.replace("{}", "{Q}")  # type: ignore[attr-defined]
        await screen.press("ctrl+r")
        await screen.shows("unchanged")
        assert area.text == app.original  # type: ignore[attr-defined]
