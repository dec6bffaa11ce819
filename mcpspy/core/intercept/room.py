"""What is held or delayed, within limits.

Owns how much memory messages on their way may take, and in which order they
came.
"""

from __future__ import annotations

from collections.abc import Iterator

from mcpspy.core.intercept.letter import Letter

MOST_BYTES = 64 << 20
MOST_LETTERS = 10_000


class Room:
    """Letters by their ticket, in the order in which they came."""

    def __init__(self) -> None:
        self._letters: dict[int, Letter] = {}
        self.bytes = 0
        """What they take in memory."""

    def __len__(self) -> int:
        return len(self._letters)

    def __iter__(self) -> Iterator[Letter]:
        return iter(sorted(self._letters.values(), key=lambda letter: letter.ticket))

    def get(self, ticket: int) -> Letter | None:
        """Return the letter of this ticket."""
        return self._letters.get(ticket)

    def take_in(self, letter: Letter) -> bool:
        """Take a letter in, if there is room; say whether there was."""
        if len(self._letters) >= MOST_LETTERS or self.bytes + letter.size > MOST_BYTES:
            return False
        self._letters[letter.ticket] = letter
        self.bytes += letter.size
        return True

    def let_out(self, letter: Letter) -> None:
        """Let a letter go; it is not changed before."""
        if self._letters.pop(letter.ticket, None) is not None:
            self.bytes -= letter.size
