"""A text in rows of a given width: what the detail pane shows.

Owns which row of the screen is which stretch of which line. Measures only the
lines that may be too wide, and draws only the rows it is asked for, so a
message of many megabytes opens at once. Pure; refuses to know where the text
comes from.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence

from mcpspy.ui.body import Body
from mcpspy.ui.tui.highlight import pieces, spans
from mcpspy.ui.tui.text import cut, steady, wrap

Piece = tuple[str, str | None]
"""Text, and the role that colours it."""

MOST = 10_000
"""Wide lines that are measured and wrapped; of a text with more of them, each is one row, cut."""

NARROW = 8
"""Columns that a wrapped line keeps, however deep it is indented."""


class Page:
    """Lines about a message, then its body."""

    def __init__(self, head: Sequence[Piece], body: Body, width: int) -> None:
        self.width = max(width, 1)
        self._body = body
        self._head: list[Piece] = []
        for text, role in head:
            line = steady(text)
            self._head += [(line[start:end], role) for start, end in wrap(line, self.width)]
        wide = body.wider_than(self.width)
        self.is_wrapped = len(wide) <= MOST
        """Whether wide lines go on in the next row."""
        self._lines: list[int] = []
        self._rows: list[int] = []
        self._counts: list[int] = []
        more = 0
        for line_number in wide if self.is_wrapped else ():
            count = len(self._wrap(steady(body[line_number])))
            if count > 1:
                self._lines.append(line_number)
                self._rows.append(line_number + more)
                self._counts.append(count)
                more += count - 1
        self.rows = len(self._head) + len(body) + more
        """How many there are."""

    def row(self, index: int) -> list[Piece]:
        """Return one row."""
        if index < len(self._head):
            return [self._head[index]]
        number, part = self._find(index - len(self._head))
        line = steady(self._body[number])
        if not self.is_wrapped:
            line = cut(line, self.width)
        found = spans(line) if self._body.is_json else []
        if (parts := self._wrap(line))[0][1] == len(line):
            return pieces(line, 0, len(line), found)
        start, end = parts[part]
        indent: list[Piece] = [(" " * self._hang(line), None)] if part else []
        return indent + pieces(line, start, end, found)

    def _find(self, row: int) -> tuple[int, int]:
        """Return the line of a row of the body, and which of its rows it is."""
        place = bisect_right(self._rows, row) - 1
        if place < 0:
            return row, 0
        into = row - self._rows[place]
        if into < self._counts[place]:
            return self._lines[place], into
        return self._lines[place] + 1 + into - self._counts[place], 0

    def _wrap(self, line: str) -> list[tuple[int, int]]:
        return wrap(line, self.width, self._hang(line)) if self.is_wrapped else [(0, len(line))]

    def _hang(self, line: str) -> int:
        return max(min(len(line) - len(line.lstrip(" ")) + 2, self.width - NARROW), 0)
