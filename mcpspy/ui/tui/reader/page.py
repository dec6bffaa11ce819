"""Sections under each other in rows of a given width: one column of the detail pane.

Owns which row belongs to which section, and moving between places. Pure;
refuses to know where the texts come from.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from itertools import accumulate
from typing import NamedTuple

from mcpspy.ui.tui.reader.document import Piece, Section
from mcpspy.ui.tui.reader.flow import Flow
from mcpspy.ui.tui.reader.search import Query

__all__ = ["FOLDED", "OPEN", "Page", "Piece", "Place"]

OPEN, FOLDED = "▾", "▸"
"""Marks of a line that can be folded, and of one that is."""


class Place(NamedTuple):
    """A line of a page; the lines about a text have negative numbers."""

    section: int
    line: int


class Page:
    """What is read from top to bottom."""

    def __init__(self, sections: Sequence[Section], width: int) -> None:
        self.width = max(width, 1)
        self.sections = sections
        self.flows = [Flow(section, self.width) for section in sections]
        self.refold()

    def refold(self, section: int | None = None) -> None:
        """Count the rows anew, after a fold."""
        if section is not None:
            self.flows[section].refold()
        self._tops = [0, *accumulate(flow.rows for flow in self.flows)]
        self.rows = self._tops[-1]
        """How many there are."""

    def at(self, row: int) -> tuple[Place, int]:
        """Return the line of a row, and which of its rows it is."""
        section = self._section(row)
        line, part = self.flows[section].at(row - self._tops[section])
        return Place(section, line), part

    def row_of(self, place: Place) -> int:
        """Return the first row of a line; of a hidden one, that of the fold it is in."""
        flow = self.flows[place.section]
        line = place.line
        if line >= 0 and flow.section.folds is not None:
            line = flow.section.folds.shown(line)
        return self._tops[place.section] + flow.row_of(line)

    def height(self, place: Place) -> int:
        return self.flows[place.section].height(place.line)

    def draw(self, row: int, query: Query | None = None) -> list[Piece]:
        section = self._section(row)
        return self.flows[section].draw(row - self._tops[section], query)

    def mark(self, row: int) -> str:
        """Return the one character before a row."""
        place, part = self.at(row)
        folds = self.sections[place.section].folds
        if folds is None or part or place.line < 0 or not folds.opens(place.line):
            return " "
        return FOLDED if place.line in folds else OPEN

    def offset(self, place: Place) -> int:
        """Return where in its text a place is; before the text it is negative."""
        flow = self.flows[place.section]
        return flow.source.start(place.line) if 0 <= place.line < len(flow.source) else place.line

    def place(self, section: int, offset: int) -> Place:
        """Return the place of an offset, or the nearest there is."""
        if section >= len(self.flows):
            section, offset = len(self.flows) - 1, 0
        flow = self.flows[section]
        heads = len(flow.section.head)
        if offset < 0 or not len(flow.source):
            return Place(section, max(min(offset, -1), -heads) if heads else 0)
        return Place(section, min(flow.source.line_at(offset), len(flow.source) - 1))

    def _section(self, row: int) -> int:
        return min(bisect_right(self._tops, row) - 1, len(self.flows) - 1)
