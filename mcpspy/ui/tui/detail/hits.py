"""Going from hit to hit through the sections of a message.

Owns the order of hits over sections, and their number. Looks a text through
once, when it is first asked about. Pure.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from mcpspy.core.sanitize import sanitize
from mcpspy.ui.tui.detail.document import Piece, Section
from mcpspy.ui.tui.detail.search import SearchHits, SearchQuery


class HitPosition(NamedTuple):
    """Where a hit is: column, section, offset."""

    column: int
    section: int
    offset: int


class HitFinder:
    """The hits of one query in all that a view shows."""

    def __init__(self, query: SearchQuery, columns: Sequence[Sequence[Section]]) -> None:
        self.query = query
        self._hits = {
            (column, number): SearchHits(query, section.source.text)
            for column, sections in enumerate(columns)
            for number, section in enumerate(sections)
        }

    def after(self, spot: HitPosition) -> tuple[HitPosition, bool] | None:
        """Return the first hit at or behind a spot, and whether it was found from the start on."""
        texts = sorted(self._hits)
        for key in (text for text in texts if text >= spot[:2]):
            hit = self._hits[key].after(max(spot.offset, 0) if key == spot[:2] else 0)
            if hit is not None:
                return HitPosition(*key, hit), False
        for key in texts:
            hit = self._hits[key].after(0)
            if hit is not None:
                return HitPosition(*key, hit), True
        return None

    def before(self, spot: HitPosition) -> tuple[HitPosition, bool] | None:
        """Return the last hit before a spot, and whether it was found from the end on."""
        texts = sorted(self._hits, reverse=True)
        for key in (text for text in texts if text <= spot[:2]):
            hits = self._hits[key]
            hit = hits.before(max(spot.offset, 0) if key == spot[:2] else hits.length)
            if hit is not None:
                return HitPosition(*key, hit), False
        for key in texts:
            hit = self._hits[key].before(self._hits[key].length)
            if hit is not None:
                return HitPosition(*key, hit), True
        return None

    def count(self, spot: HitPosition | None) -> str:
        """Return which hit that is, of how many: `3/17`, `3/9,999+`."""
        total = sum(len(hits) for hits in self._hits.values())
        more = "+" if any(hits.is_more for hits in self._hits.values()) else ""
        number = 0
        if spot is not None:
            number = self._hits[spot[:2]].number(spot.offset)
            if number:
                number += sum(len(hits) for key, hits in self._hits.items() if key < spot[:2])
        return f"{f'{number:,}' if number else '?' if spot else '0'}/{total:,}{more}"


class SearchState:
    """A query, and which of its hits is at hand."""

    def __init__(self, query: SearchQuery | None = None) -> None:
        self.query = query
        self._finder: HitFinder | None = None
        self._spot: HitPosition | None = None

    def forget(self) -> None:
        """Look anew: what is shown is another text."""
        self._finder = self._spot = None

    def go(
        self,
        step: int,
        here: HitPosition,
        line_of: Callable[[HitPosition], HitPosition],
        columns: Sequence[Sequence[Section]],
    ) -> tuple[HitPosition, bool] | None:
        """Return the next hit or the one before, and whether it was found from the other end."""
        if self.query is None:
            return None
        self._finder = self._finder or HitFinder(self.query, columns)
        if self._spot is not None and line_of(self._spot) == here:
            here = self._spot._replace(offset=self._spot.offset + (step > 0))
        found = self._finder.after(here) if step > 0 else self._finder.before(here)
        self._spot = found[0] if found else None
        return found

    def words(self) -> list[Piece]:
        """Return what is looked for, and how many there are."""
        if self.query is None:
            return []
        counted = f" {self._finder.count(self._spot)}" if self._finder else ""
        return [(f"{sanitize(self.query.words)}{counted}", "open")]
