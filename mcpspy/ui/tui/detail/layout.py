"""Sections of text in rows of a given width: one column of the detail pane.

Screen rows map to lines, with folds hidden and wide lines wrapped. Only lines
that may be too wide are measured, so that a text of many megabytes opens at
once. Lines of any length are split between characters. Pure.
"""

from __future__ import annotations

import re
import sys
from array import array
from bisect import bisect_right
from collections.abc import Callable, Sequence
from functools import lru_cache
from itertools import accumulate, islice, pairwise
from typing import NamedTuple

from mcpspy.core.sanitize import sanitize_bytes
from mcpspy.ui.model.body import GROWTH, is_plain
from mcpspy.ui.text.width import cut, steady, wrap
from mcpspy.ui.tui.detail.document import Section, StyledSpan, over, pieces, redacted
from mcpspy.ui.tui.detail.search import Search
from mcpspy.ui.tui.widgets.columns import Piece

MOST = 10_000
"""Maximum wide lines to measure and wrap; if JSON has more, each is cut to one row."""

NARROW = 8
HIT = "hit"


class RowLayout:
    """The rows of the header lines, which have negative numbers, and of the text lines."""

    def __init__(self, section: Section, width: int) -> None:
        self.section = section
        self.width = max(width, 1)
        self.source = section.source.fitted(self.width, MOST)
        self._head: list[tuple[int, list[Piece]]] = []
        for number, (text, role) in enumerate(section.head):
            line = steady(text)
            found = redacted(line, [StyledSpan(0, len(line), role)] if role else [])
            for start, end in wrap(line, self.width):
                self._head.append((number - len(section.head), pieces(line, start, end, found)))
        wide = self.source.wider_than(self.width, MOST + 1)
        self.is_wrapped = len(wide) <= MOST
        """True if wide lines continue in the next row."""
        self._laid = lru_cache(maxsize=64)(self._lay)
        counts = ((line, len(self._laid(line)[1])) for line in wide) if self.is_wrapped else ()
        self._wide = {line: count for line, count in counts if count > 1}
        self.refold()

    def refold(self) -> None:
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

    def at(self, row: int) -> tuple[int, int]:
        """Return the line of a row, and the number of the row within it."""
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
        return self.section.folds is not None and line in self.section.folds

    def draw(self, row: int, query: Search | None = None) -> list[Piece]:
        if row < len(self._head):
            return list(self._head[row][1])
        number, part = self.at(row)
        line, parts, found = self._laid(number)
        if query is not None:
            found = over(found, query.of(self.section).spans(line, HIT, self.source.start(number)))
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

    def part_of(self, line: int, offset: int, query: Search | None) -> int:
        """Return the row of a hit within its line."""
        if query is None or line not in self._wide:
            return 0
        start, search = self.source.start(line), query.of(self.section)
        before = sum(1 for _ in search.find(self.source.text[:offset], start))
        shown, parts, _ = self._laid(line)
        hits = search.spans(shown, HIT, start)
        if before >= len(hits):
            return 0
        return sum(end <= hits[before].start for _, end in parts)

    def _add(self, line: int, row: int, count: int) -> None:
        self._lines.append(line)
        self._rows.append(row)
        self._counts.append(count)

    def _lay(self, number: int) -> tuple[str, list[tuple[int, int]], list[StyledSpan]]:
        line = steady(self.source[number])
        found = self.source.spans(number, line)
        if (role := self.section.marks.get(number)) is not None:
            found = over(found, [StyledSpan(len(line) - len(line.lstrip(" ")), len(line), role)])
        found = redacted(line, found)
        return line, wrap(line, self.width, self._hang(line)), found

    def _hang(self, line: str) -> int:
        if self.section.folds is None:
            return 0
        return max(min(len(line) - len(line.lstrip(" ")) + 2, self.width - NARROW), 0)


OPEN, FOLDED, MARKED = "▾", "▸", "!"
"""Marks of a foldable and of a folded line, and of a value that differs."""


class PagePosition(NamedTuple):
    """A line of a page; header lines have negative numbers."""

    section: int
    line: int


class TextPage:
    def __init__(self, sections: Sequence[Section], width: int) -> None:
        self.width = max(width, 1)
        self.sections = sections
        self.layouts = [RowLayout(section, self.width) for section in sections]
        self.refold()

    def refold(self, section: int | None = None) -> None:
        if section is not None:
            self.layouts[section].refold()
        self._tops = [0, *accumulate(layout.rows for layout in self.layouts)]
        self.rows = self._tops[-1]

    def at(self, row: int) -> tuple[PagePosition, int]:
        section = self._section(row)
        line, part = self.layouts[section].at(row - self._tops[section])
        return PagePosition(section, line), part

    def row_of(self, place: PagePosition) -> int:
        """Return the first row of a line; of a hidden line, the row of its fold."""
        layout = self.layouts[place.section]
        line = place.line
        if line >= 0 and layout.section.folds is not None:
            line = layout.section.folds.shown(line)
        return self._tops[place.section] + layout.row_of(line)

    def height(self, place: PagePosition) -> int:
        return self.layouts[place.section].height(place.line)

    def draw(self, row: int, query: Search | None = None) -> list[Piece]:
        section = self._section(row)
        return self.layouts[section].draw(row - self._tops[section], query)

    def mark(self, row: int) -> str:
        place, part = self.at(row)
        section = self.sections[place.section]
        if not part and place.line in section.marks:
            return MARKED
        folds = section.folds
        if folds is None or part or place.line < 0 or not folds.opens(place.line):
            return " "
        return FOLDED if place.line in folds else OPEN

    def offset(self, place: PagePosition) -> int:
        """Return the offset of a place in its text; negative in the header."""
        layout = self.layouts[place.section]
        return layout.source.start(place.line) if 0 <= place.line < len(layout.source) else place.line

    def place(self, section: int, offset: int) -> PagePosition:
        """Return the place at an offset, or the nearest one."""
        if section >= len(self.layouts):
            section, offset = len(self.layouts) - 1, 0
        layout = self.layouts[section]
        heads = len(layout.section.head)
        if offset < 0 or not len(layout.source):
            return PagePosition(section, max(min(offset, -1), -heads) if heads else 0)
        return PagePosition(section, min(layout.source.line_at(offset), len(layout.source) - 1))

    def _section(self, row: int) -> int:
        return min(bisect_right(self._tops, row) - 1, len(self.layouts) - 1)


LONG = 3000
"""Maximum bytes of a line, unless the screen needs shorter lines."""

LARGE = 1_000_000
"""Bytes of a text from which lines are cut to the width at once, as measuring them would be slow."""


class LineSplit:
    """Bytes as lines of bounded length."""

    def __init__(
        self, data: bytes, *, bound: int = LONG, marks: Callable[[int, str], list[StyledSpan]] | None = None
    ) -> None:
        self.text = data
        self._bound = bound
        self._marks = marks
        self._is_plain: bool | None = None
        # Cut between characters if possible; a run of invalid bytes is cut anywhere.
        line = re.compile(rb"[^\n]{1,%d}(?![\x80-\xbf])\n?|[^\n]{1,%d}\n?|\n" % (bound, bound))
        self._starts = array("Q", (match.start() for match in line.finditer(data)))

    def __len__(self) -> int:
        return len(self._starts)

    def __getitem__(self, line: int) -> str:
        return sanitize_bytes(self.text[self.start(line) : self.end(line)])

    def start(self, line: int) -> int:
        return self._starts[line]

    def end(self, line: int) -> int:
        end = self._starts[line + 1] if line + 1 < len(self) else len(self.text)
        return end - 1 if self.text[end - 1 : end] == b"\n" else end

    def line_at(self, offset: int) -> int:
        return max(bisect_right(self._starts, offset) - 1, 0)

    def spans(self, line: int, shown: str) -> list[StyledSpan]:
        return self._marks(self.start(line), shown) if self._marks else []

    def wider_than(self, columns: int, most: int = sys.maxsize) -> list[int]:
        """Return the lines that may take more than `columns`, at most `most` of them."""
        if self._is_plain is None:
            self._is_plain = is_plain(self.text)
        least = columns if self._is_plain else columns // GROWTH
        if self._bound <= least:
            return []
        edges = [*self._starts, len(self.text)]
        wide = (line for line, (start, end) in enumerate(pairwise(edges)) if end - start > least)
        return list(islice(wide, most))

    def fitted(self, width: int, most: int) -> LineSplit:
        """Return the same text in lines for a width, no more than `most` of which need measuring."""
        if len(self.text) < LARGE or not self.wider_than(width, 1):
            return self
        narrow = LineSplit(self.text, bound=width, marks=self._marks)
        if len(narrow.wider_than(width, most + 1)) <= most:
            return narrow
        return LineSplit(self.text, bound=max(width // GROWTH, 1), marks=self._marks)
