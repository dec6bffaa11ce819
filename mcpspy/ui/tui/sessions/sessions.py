"""The list of sessions.

Owns that the cursor and the marks stay on their sessions when others come, go
or change places, and which sessions are looked at just now. The words are
`session_row`'s.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import ClassVar

from textual.binding import Binding, BindingType

from mcpspy.io.recording.catalog import SessionCounts
from mcpspy.io.recording.reader import Summary
from mcpspy.ui.tui.columns import SESSIONS, Column, Placed
from mcpspy.ui.tui.listing import Listing
from mcpspy.ui.tui.reader.page import Piece
from mcpspy.ui.tui.sessions.session_row import session_row
from mcpspy.ui.tui.text import pad

MARKED = "*"

COMPARED = "±"
"""Mark of the session that another is to be compared with."""

_MOVES = [
    replace(binding, key=binding.key.replace(",space", ""))
    for binding in Listing.BINDINGS
    if isinstance(binding, Binding)
]


class SessionList(Listing, inherit_bindings=False):
    """Sessions, live ones first, then the newest."""

    BINDINGS: ClassVar[list[BindingType]] = [
        *_MOVES,
        Binding("space", "mark", "mark, for enter, d and delete", show=False, id="sessions.mark"),
    ]

    COLUMNS: ClassVar[tuple[Column, ...]] = SESSIONS

    def __init__(self, counts: Mapping[Path, SessionCounts], *, id: str | None = None) -> None:  # noqa: A002
        super().__init__(id=id)
        self._counts = counts
        self._sessions: list[Summary] = []
        self._marks: set[Path] = set()
        self.compared: Path | None = None
        """The session that another is to be compared with."""

    @property
    def chosen(self) -> Summary | None:
        return self._sessions[self.cursor] if self.cursor < len(self._sessions) else None

    @property
    def marked(self) -> list[Summary]:
        """The sessions that are marked, as far as they are shown."""
        return [summary for summary in self._sessions if summary.path in self._marks]

    @property
    def wanted(self) -> list[Summary]:
        """Those that are marked, else the one under the cursor."""
        return self.marked or ([self.chosen] if self.chosen else [])

    def by_interest(self) -> list[Summary]:
        """Return the sessions shown: the one under the cursor, those in view, the others."""
        top = self.scroll_offset.y
        view = self._sessions[top : top + self.size.height]
        ordered = [*([self.chosen] if self.chosen else []), *view, *self._sessions]
        return list({summary.path: summary for summary in ordered}.values())

    def show(self, sessions: list[Summary]) -> None:
        """Show these; the cursor goes with its session."""
        chosen, is_new = self.chosen, sessions != self._sessions
        self._sessions = sessions
        self.sync(len(sessions))
        if chosen is not None:
            place = next(
                (i for i, summary in enumerate(sessions) if summary.path == chosen.path), self.cursor
            )
            if place != self.cursor:
                self.move_to(place)
        if is_new:
            self.refresh()
        self.post_message(self.Moved())

    def forget_all_but(self, sessions: list[Summary]) -> None:
        """Drop the marks of sessions that are gone."""
        paths = {summary.path for summary in sessions}
        self._marks &= paths
        if self.compared not in paths:
            self.compared = None

    def unmark(self) -> None:
        self._marks.clear()
        self.refresh()
        self.post_message(self.Moved())

    def action_mark(self) -> None:
        if self.chosen is None:
            return
        self._marks ^= {self.chosen.path}
        self.refresh()
        self.action_move(1)
        self.post_message(self.Moved())

    def mark(self, index: int) -> str:
        """Mark the row under the cursor, and those a person marked."""
        path = self._sessions[index].path
        own = COMPARED if path == self.compared else MARKED if path in self._marks else " "
        return super().mark(index) + own

    def cells(self, index: int, placed: list[Placed]) -> list[Piece]:
        summary = self._sessions[index]
        said = session_row(summary, self._counts.get(summary.path), datetime.now().astimezone())
        cells: list[Piece] = []
        for column, width in placed:
            text = getattr(said, column.name)
            # The last cell of a row begins on the left; where room is short, that is a number.
            text = pad(text, width, right=True) if column.right else text
            cells.append((text, said.tones.get(column.name)))
        return cells
