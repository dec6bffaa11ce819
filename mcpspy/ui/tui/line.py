"""One line of text across the screen: a title, a status.

Owns the cutting: what is on the left gives way to what is on the right.
"""

from __future__ import annotations

from rich.cells import cell_len
from textual.strip import Strip

from mcpspy.ui.tui.columns import fitted
from mcpspy.ui.tui.painted import Painted
from mcpspy.ui.tui.reader.page import Piece


class Line(Painted):
    """A line that says one thing on the left and one on the right."""

    DEFAULT_CSS = """
    Line { height: 1; background: $panel; }
    Line.-soft { background: $background; }
    """

    def __init__(self, *, id: str | None = None, classes: str | None = None) -> None:  # noqa: A002
        super().__init__(id=id, classes=classes)
        self._left: list[Piece] = []
        self._right: list[Piece] = []

    def say(self, left: list[Piece], right: list[Piece] | None = None) -> None:
        if (left, right or []) != (self._left, self._right):
            self._left, self._right = left, right or []
            self.refresh()

    @property
    def text(self) -> str:
        return "  ".join("".join(text for text, _ in side) for side in (self._left, self._right) if side)

    def render_line(self, y: int) -> Strip:
        width = self.outer_size.width - 2
        right = fitted(self._right, width)
        left = fitted(self._left, width - _cells(right) - (2 if right else 0))
        room: Piece = (" " * (width - _cells(left) - _cells(right)), None)
        return Strip(
            self.paint([(" ", None), *left, room, *right], self.outer_size.width), self.outer_size.width
        )


def _cells(pieces: list[Piece]) -> int:
    return sum(cell_len(text) for text, _ in pieces)
