"""The line at the end of a session's screen: how it stands, or the answer to a key."""

from __future__ import annotations

import time

from mcpspy.ui.tui.line import Line
from mcpspy.ui.tui.reader.page import Piece

FLASH = 2.5
"""Seconds that the answer to a key is read."""


class Status(Line):
    """A line that is lent to answers."""

    def __init__(self) -> None:
        super().__init__(id="status", classes="-soft")
        self._flash = ""
        self._until = 0.0

    @property
    def is_lent(self) -> bool:
        """Whether there is an answer on it, which has to go in time."""
        return bool(self._flash)

    def lend(self, text: str) -> None:
        """Have an answer said with the next words, and for a while."""
        self._flash, self._until = text, time.monotonic() + FLASH

    def stand(self, sentence: Piece, where: list[Piece]) -> None:
        """Say how things stand, if no answer is being read, and where the cursor is."""
        if time.monotonic() > self._until:
            self._flash = ""
        self.say([(self._flash, None)] if self._flash else [sentence], where)
