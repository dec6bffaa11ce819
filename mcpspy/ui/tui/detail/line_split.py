"""A text in lines of a bounded length, of which no byte is left out.

Owns the cutting of lines of any length, in bytes, between characters. Each line
is inert when it is asked for. What it means that a line begins is the reader's.
"""

from __future__ import annotations

import re
import sys
from array import array
from bisect import bisect_right
from collections.abc import Callable
from itertools import islice, pairwise

from mcpspy.core.sanitize import sanitize_bytes
from mcpspy.ui.body import GROWTH, is_plain
from mcpspy.ui.tui.detail.json_view import StyledSpan

LONG = 3000
"""Bytes of a line, unless the screen wants less."""

LARGE = 1_000_000
"""Bytes from which lines are cut to the width at once, since measuring them takes time."""


class LineSplit:
    """Bytes as lines that are not too long."""

    def __init__(
        self, data: bytes, *, bound: int = LONG, marks: Callable[[int, str], list[StyledSpan]] | None = None
    ) -> None:
        self.text = data
        self._bound = bound
        self._marks = marks
        self._is_plain: bool | None = None
        # Between characters if that can be; a run of broken ones is cut anywhere.
        line = re.compile(rb"[^\n]{1,%d}(?![\x80-\xbf])\n?|[^\n]{1,%d}\n?|\n" % (bound, bound))
        self._starts = array("Q", (match.start() for match in line.finditer(data)))

    def __len__(self) -> int:
        return len(self._starts)

    def __getitem__(self, line: int) -> str:
        return sanitize_bytes(self.text[self.start(line) : self.end(line)])

    def start(self, line: int) -> int:
        return self._starts[line]

    def end(self, line: int) -> int:
        """Return where a line ends, its newline not included."""
        end = self._starts[line + 1] if line + 1 < len(self) else len(self.text)
        return end - 1 if self.text[end - 1 : end] == b"\n" else end

    def line_at(self, offset: int) -> int:
        """Return the line that a place in the text belongs to."""
        return max(bisect_right(self._starts, offset) - 1, 0)

    def spans(self, line: int, shown: str) -> list[StyledSpan]:
        return self._marks(self.start(line), shown) if self._marks else []

    def wider_than(self, columns: int, most: int = sys.maxsize) -> list[int]:
        """Return the lines that may take more than so many columns; of more than `most`, only some."""
        if self._is_plain is None:
            self._is_plain = is_plain(self.text)
        least = columns if self._is_plain else columns // GROWTH
        if self._bound <= least:
            return []
        edges = [*self._starts, len(self.text)]
        wide = (line for line, (start, end) in enumerate(pairwise(edges)) if end - start > least)
        return list(islice(wide, most))

    def fitted(self, width: int, most: int) -> LineSplit:
        """Return the same text in lines that can be shown at a width with no more than `most` measured."""
        if len(self.text) < LARGE or not self.wider_than(width, 1):
            return self
        narrow = LineSplit(self.text, bound=width, marks=self._marks)
        if len(narrow.wider_than(width, most + 1)) <= most:
            return narrow
        return LineSplit(self.text, bound=max(width // GROWTH, 1), marks=self._marks)
