"""One section in rows of a given width.

Owns which row of the screen is which stretch of which line, with folds hidden
and wide lines going on in the next row. Measures only the lines that may be too
wide, so a text of many megabytes opens at once. Pure.
"""

from __future__ import annotations

from bisect import bisect_right
from functools import lru_cache

from mcpspy.ui.tui.reader.document import Piece, Section
from mcpspy.ui.tui.reader.highlight import Span, over, pieces, redacted
from mcpspy.ui.tui.reader.search import Query
from mcpspy.ui.tui.text import cut, steady, wrap

MOST = 10_000
"""Wide lines that are measured and wrapped; of JSON with more of them, each is one row, cut."""

NARROW = 8
"""Columns that a wrapped line keeps, however deep it is indented."""

HIT = "hit"
"""Role of what was looked for."""


class Flow:
    """Rows of the lines about a text, then of the text. Lines about it have negative numbers."""

    def __init__(self, section: Section, width: int) -> None:
        self.section = section
        self.width = max(width, 1)
        self.source = section.source.fitted(self.width, MOST)
        self._head: list[tuple[int, list[Piece]]] = []
        for number, (text, role) in enumerate(section.head):
            line = steady(text)
            found = redacted(line, [Span(0, len(line), role)] if role else [])
            for start, end in wrap(line, self.width):
                self._head.append((number - len(section.head), pieces(line, start, end, found)))
        wide = self.source.wider_than(self.width, MOST + 1)
        self.is_wrapped = len(wide) <= MOST
        """Whether wide lines go on in the next row."""
        self._laid = lru_cache(maxsize=64)(self._lay)
        counts = ((line, len(self._laid(line)[1])) for line in wide) if self.is_wrapped else ()
        self._wide = {line: count for line, count in counts if count > 1}
        self.refold()

    def refold(self) -> None:
        """Count the rows anew, after a fold."""
        self._lines: list[int] = []
        self._rows: list[int] = []
        self._counts: list[int] = []
        hidden = self.section.folds.hidden() if self.section.folds else []
        folds, until = dict(hidden), -1
        shift = len(self._head)
        for line in sorted({*self._wide, *folds}):
            if line <= until:
                continue
            if line in folds:
                until = folds[line]
                shift -= until - line
                self._add(until + 1, until + 1 + shift, 1)
            else:
                self._add(line, line + shift, self._wide[line])
                shift += self._wide[line] - 1
        self.rows = len(self.source) + shift
        """How many there are."""

    def at(self, row: int) -> tuple[int, int]:
        """Return the line of a row, and which of its rows it is."""
        if row < len(self._head):
            line = self._head[row][0]
            return line, row - self.row_of(line)
        place = bisect_right(self._rows, row) - 1
        if place < 0:
            return row - len(self._head), 0
        into = row - self._rows[place]
        if into < self._counts[place]:
            return self._lines[place], into
        return self._lines[place] + 1 + into - self._counts[place], 0

    def row_of(self, line: int) -> int:
        """Return the first row of a line that is not hidden."""
        if line < 0:
            return next((row for row, (number, *_) in enumerate(self._head) if number >= line), 0)
        place = bisect_right(self._lines, line) - 1
        if place < 0:
            return line + len(self._head)
        if self._lines[place] == line:
            return self._rows[place]
        return self._rows[place] + self._counts[place] - 1 + line - self._lines[place]

    def height(self, line: int) -> int:
        if line < 0:
            return sum(number == line for number, *_ in self._head)
        return 1 if self.is_folded(line) else self._wide.get(line, 1)

    def is_folded(self, line: int) -> bool:
        """Whether what a line opens is hidden."""
        return self.section.folds is not None and line in self.section.folds

    def draw(self, row: int, query: Query | None = None) -> list[Piece]:
        if row < len(self._head):
            return list(self._head[row][1])
        number, part = self.at(row)
        line, parts, found = self._laid(number)
        if query is not None:
            found = over(found, query.spans(line, HIT))
        if self.section.folds is not None and self.is_folded(number):
            words = self.section.folds.words(number)
            line = cut(line, self.width - len(words))
            return [*pieces(line, 0, len(line), found), (cut(words, self.width), "quiet")]
        if number not in self._wide:
            line = cut(line, self.width)
            return pieces(line, 0, len(line), found)
        start, end = parts[part]
        indent: list[Piece] = [(" " * self._hang(line), None)] if part else []
        return indent + pieces(line, start, end, found)

    def part_of(self, line: int, offset: int, query: Query | None) -> int:
        """Return which row of a line a hit is in."""
        if query is None or line not in self._wide:
            return 0
        start = self.source.start(line)
        before = sum(1 for _ in query.find(self.source.text[start:offset]))
        shown, parts, _ = self._laid(line)
        hits = query.spans(shown, HIT)
        if before >= len(hits):
            return 0
        return sum(end <= hits[before].start for _, end in parts)

    def _add(self, line: int, row: int, count: int) -> None:
        self._lines.append(line)
        self._rows.append(row)
        self._counts.append(count)

    def _lay(self, number: int) -> tuple[str, list[tuple[int, int]], list[Span]]:
        line = steady(self.source[number])
        found = redacted(line, self.source.spans(number, line))
        return line, wrap(line, self.width, self._hang(line)), found

    def _hang(self, line: str) -> int:
        if self.section.folds is None:
            return 0
        return max(min(len(line) - len(line.lstrip(" ")) + 2, self.width - NARROW), 0)
