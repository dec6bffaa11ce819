"""What was typed and not sent is there again."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

from mcpspy.ui.tui.intercept.editor import Drafts


class Opened:
    """A screen on which editors are opened, and left with a text."""

    def __init__(self) -> None:
        self.said: list[str] = []
        self.app = SimpleNamespace(push_screen=self._push)
        self.editor: Any = None
        self.leave: Callable[[str | None], None] = lambda text: None

    def flash_message(self, text: str) -> None:
        self.said.append(text)

    def _push(self, editor: Any, left: Callable[[str | None], None]) -> None:
        self.editor, self.leave = editor, left


def test_a_text_that_was_not_sent_is_kept_under_its_key_and_gone_once_sent() -> None:
    screen: Any = Opened()
    drafts = Drafts(screen)

    async def send(text: str) -> None:
        pass

    def edit(key: object) -> str:
        drafts.edit(key, list, "original", lambda text: [], send)
        return str(screen.editor.text)

    assert edit(1) == "original"
    screen.leave("original")
    assert screen.said == []
    edit(1)
    screen.leave("typed")
    assert screen.said == ["nothing was sent; what you typed is still there"]
    assert (edit(2), edit(1)) == ("original", "typed")
    screen.leave(None)  # It was sent.
    assert edit(1) == "original"
    screen.leave("typed")
    drafts.forget(1)
    assert edit(1) == "original"
