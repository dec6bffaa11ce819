"""The list of what differs.

Owns that the cursor stays on its change when the lines are made anew, and the
way from one change to the next. The words are `diff_rows`'.
"""

from __future__ import annotations

from collections.abc import Sequence

from rich.cells import cell_len

from mcpspy.ui.tui.columns import Column, Placed, fitted
from mcpspy.ui.tui.diff.diff_rows import DiffRow
from mcpspy.ui.tui.listing import MARGIN, Listing
from mcpspy.ui.tui.reader.page import Piece
from mcpspy.ui.tui.text import cut

BETWEEN = 3
"""Columns between the two titles."""


class DiffList(Listing):
    """Lines of a difference, under the names of the two."""

    HELP_NAME = "in the list of changes"

    def __init__(self) -> None:
        super().__init__(id="diff")
        self.rows: list[DiffRow] = []
        self.titles = ("", "")
        """The old one and the new one; inert."""

    @property
    def room(self) -> int:
        return max(self.scrollable_content_region.width - MARGIN, 1)

    @property
    def selected(self) -> DiffRow | None:
        return self.rows[self.cursor] if self.cursor < len(self.rows) else None

    @property
    def columns(self) -> Sequence[Column]:
        """One, whose head says which is which."""
        old, new = self.titles
        room = max(self.room - BETWEEN - 4, 2)
        half = max(room // 2, room - cell_len(new))
        head = f"- {cut(old, half)}{' ' * BETWEEN}+ {cut(new, room - min(half, cell_len(old)))}"
        return [Column("line", head, 1, 10_000, 0)]

    def line(self, index: int, width: int) -> list[Piece]:
        return fitted(self.rows[index].pieces, width) if index < len(self.rows) else []

    def cells(self, index: int, placed: list[Placed]) -> list[Piece]:
        return [(self.rows[index].text, None)]

    def fill(self, rows: list[DiffRow]) -> None:
        """Show these; the cursor stays with what it is on, if that is among them."""
        held = self.selected
        self.rows = rows
        self.sync(len(rows))
        place = self._place_of(held) if held is not None else None
        # Not on the name of what was compared: on what changed of it.
        self.move_to(place if place is not None else self.following(0, 1) or 0)
        self.refresh()

    def following(self, place: int, step: int) -> int | None:
        """Return the place of the next change, or of the one before."""
        places = range(place + 1, len(self.rows)) if step > 0 else range(place - 1, -1, -1)
        return next((there for there in places if self.rows[there].begins), None)

    def _place_of(self, held: DiffRow) -> int | None:
        same = [
            place
            for place, row in enumerate(self.rows)
            if row.case is held.case and row.change is held.change
        ]
        exact = (place for place in same if self.rows[place].mark == held.mark)
        return next(exact, same[0] if same else None)
