"""Tests of drafts: unsent text appears again in the editor."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

from mcpspy.ui.tui.intercept.editor import Drafts


class Opened:
    """A screen that opens editors, and leaves them with a text."""

    def __init__(self) -> None:
        self.messages: list[str] = []
        self.app = SimpleNamespace(push_screen=self._push)
        self.editor: Any = None
        self.leave: Callable[[str | None], None] = lambda text: None

    def flash_message(self, text: str) -> None:
        self.messages.append(text)

    def _push(self, editor: Any, left: Callable[[str | None], None]) -> None:
        self.editor, self.leave = editor, left


def test_an_unsent_text_is_kept_under_its_key_until_sent() -> None:
    screen: Any = Opened()
    drafts = Drafts(screen)

    async def send(text: str) -> None:
        pass

    def edit(key: object) -> str:
        drafts.edit(key, list, "original", lambda text: [], send)
        return str(screen.editor.text)

    assert edit(1) == "original"
    screen.leave("original")
    assert screen.messages == []
    edit(1)
    screen.leave("typed")
    assert screen.messages == ["not sent; the draft is kept"]
    assert (edit(2), edit(1)) == ("original", "typed")
    screen.leave(None)  # It was sent.
    assert edit(1) == "original"
    screen.leave("typed")
    drafts.forget(1)
    assert edit(1) == "original"
