"""The list of sessions.

Owns what a row shows, and that the cursor stays on its session when others
come and go. The words are `words`'.
"""

from __future__ import annotations

from datetime import datetime
from typing import ClassVar

from mcpspy.io.store import Summary
from mcpspy.ui.tui.columns import SESSIONS, Column, Placed
from mcpspy.ui.tui.listing import Listing
from mcpspy.ui.tui.page import Piece
from mcpspy.ui.tui.words import session_row


class SessionList(Listing):
    """Sessions, live ones first, then the newest."""

    COLUMNS: ClassVar[tuple[Column, ...]] = SESSIONS

    def __init__(self, *, id: str | None = None) -> None:  # noqa: A002
        super().__init__(id=id)
        self._sessions: list[Summary] = []

    @property
    def chosen(self) -> Summary | None:
        """The session under the cursor."""
        return self._sessions[self.cursor] if self.cursor < len(self._sessions) else None

    def show(self, sessions: list[Summary]) -> None:
        """Show these; the cursor goes with its session."""
        chosen = self.chosen
        if sessions == self._sessions and self.count:
            return
        self._sessions = sessions
        self.sync(len(sessions))
        if chosen is not None:
            place = next(
                (i for i, summary in enumerate(sessions) if summary.path == chosen.path), self.cursor
            )
            if place != self.cursor:
                self.move_to(place)
        self.refresh()

    def cells(self, index: int, placed: list[Placed]) -> list[Piece]:
        """Return the cells of one session."""
        said = session_row(self._sessions[index], datetime.now().astimezone())
        roles = {"state": said.tone, "exit": said.exit_tone}
        return [(getattr(said, column.name), roles.get(column.name)) for column, _ in placed]
