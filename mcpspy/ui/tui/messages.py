"""The list of a session's messages.

Owns what a row shows and at which width. The words are `ui.rows`'.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from mcpspy.core.message import Request
from mcpspy.ui import rows
from mcpspy.ui.tui.columns import MESSAGES, Column, Placed
from mcpspy.ui.tui.listing import Listing
from mcpspy.ui.tui.log import Log
from mcpspy.ui.tui.page import Piece
from mcpspy.ui.tui.text import cut_middle

OTHER = "▹"
"""Mark of the request, or the answer, of what is under the cursor."""

KEPT = 2000
"""Rows whose text is kept: a few screens."""

LONG = 1000
"""Characters of a cell that are looked at: no screen is wider."""


class MessageList(Listing):
    """Messages and notes, in the order of the wire."""

    COLUMNS: ClassVar[tuple[Column, ...]] = MESSAGES

    def __init__(self, log: Log, *, id: str | None = None) -> None:  # noqa: A002
        super().__init__(id=id)
        self._log = log
        self._said: dict[tuple[int, int, str], rows.Row] = {}

    @property
    def columns(self) -> Sequence[Column]:
        """The columns; the time is as wide as the latest one."""
        time, *others = self.COLUMNS
        wide = max(time.least, len(rows.moment(self._log.session.last_at)))
        return (time._replace(least=wide, most=wide), *others)

    def cells(self, index: int, placed: list[Placed]) -> list[Piece]:
        """Return the cells of one message; what nobody said has the rest of the line for its text."""
        if index >= len(self._log):  # The file was cut a moment ago, and the rows are still to go.
            return [("", None)]
        said = self._said_of(index)
        cells: list[Piece] = []
        for column, width in placed:
            if said.arrow == rows.ASIDE and column.name == "subject":
                return [*cells, (f"{said.subject}  {said.status}".rstrip(), said.tone)]
            text: str = getattr(said, column.name)
            cells.append(
                (cut_middle(text, width) if column.name == "method" else text, _role(column.name, said))
            )
        return cells

    def mark(self, index: int) -> str:
        """Mark the row under the cursor, and the one it belongs to."""
        return OTHER if self._log.other(self.cursor) == index else super().mark(index)

    def _repaint(self, index: int) -> None:
        super()._repaint(index)
        if (other := self._log.other(index)) is not None:
            super()._repaint(other)

    def _said_of(self, index: int) -> rows.Row:
        """Return what a row says. Only a request's changes, with its state."""
        change = self._log[index]
        state = str(change.exchange.state) if change.exchange and isinstance(change.what, Request) else ""
        key = (self._log.generation, index, state)
        said = self._said.get(key)
        if said is None:
            if len(self._said) > KEPT:
                self._said.clear()
            said = rows.Row(*(cell[:LONG] for cell in rows.row(change)))
            self._said[key] = said
        return said


def _role(column: str, said: rows.Row) -> str | None:
    if column == "status":
        return said.tone
    return rows.QUIET if said.tone == rows.QUIET or column in ("time", "id", "size") else None
