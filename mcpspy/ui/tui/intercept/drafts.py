"""Texts that are edited, and what was typed and not sent.

Owns opening the editor with what was typed there before.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Hashable, Sequence

from mcpspy.ui.tui.intercept.checks import Trouble
from mcpspy.ui.tui.reader.page import Piece
from mcpspy.ui.tui.session.base import SessionBase


class Drafts:
    """What was typed, by what it was to become."""

    def __init__(self, screen: SessionBase) -> None:
        self._screen = screen
        self._kept: dict[Hashable, str] = {}

    def edit(
        self,
        key: Hashable,
        heading: Callable[[], list[Piece]],
        original: str,
        check: Callable[[str], Sequence[Trouble]],
        send: Callable[[str], Awaitable[None]],
    ) -> None:
        """Have a text edited; see `EditorScreen`. What is not sent is there again under the same key."""
        from mcpspy.ui.tui.intercept.editor import EditorScreen

        def left(text: str | None) -> None:
            self.forget(key)
            if text is not None and text != original:
                self._kept[key] = text
                self._screen.tell("nothing was sent; what you typed is still there")

        self._screen.app.push_screen(EditorScreen(heading, original, check, send, self._kept.get(key)), left)

    def forget(self, key: Hashable) -> None:
        self._kept.pop(key, None)
