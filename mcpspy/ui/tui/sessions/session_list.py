"""The list of sessions.

Owns that the cursor and the marks stay on their sessions when others come, go
or change places, and which sessions are looked at just now. The words are
`session_row`'s.

What a row of the list of sessions says.

Owns the words and tones of its cells. Pure: values and the time in, inert text
out.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import ClassVar, NamedTuple

from textual.binding import Binding, BindingType

from mcpspy.analysis import rows
from mcpspy.core.sanitize import sanitize
from mcpspy.io.recording.catalog import SessionCounts, is_too_large
from mcpspy.io.recording.reader import Summary
from mcpspy.ui.tui.detail.layout import Piece
from mcpspy.ui.tui.session.labels import GLYPHS, TONES, moment
from mcpspy.ui.tui.widgets.cells import pad
from mcpspy.ui.tui.widgets.columns import SESSIONS, Column, PlacedColumn
from mcpspy.ui.tui.widgets.virtual_list import VirtualList

UNKNOWN = "…"
"""Of what is still to be counted."""

NEVER = "?"
"""Of what is not counted: the session is too large."""


class SessionRow(NamedTuple):
    """One session of the list."""

    state: str
    name: str
    server: str
    client: str
    revision: str
    started: str
    messages: str
    errors: str
    pending: str
    exit: str
    tones: dict[str, str | None]
    """Cell → its tone."""


def session_row(summary: Summary, counts: SessionCounts | None, now: datetime) -> SessionRow:
    """Return the cells of one session; `counts` are None until they are known."""
    header, note = summary.header, summary.exit
    messages, errors, pending = _counted(summary, counts)
    return SessionRow(
        state=f"{GLYPHS[summary.state]} {summary.state}",
        name=sanitize(header.name),
        server=sanitize(str(summary.server or "")),
        client=sanitize(str(summary.client or "")),
        revision=sanitize(summary.revision or ""),
        started=moment(header.started, now),
        messages=messages,
        errors=errors,
        pending=pending,
        exit=rows.ending(note),
        tones={
            "state": TONES[summary.state],
            "messages": None if counts else rows.QUIET,
            "errors": rows.BAD if counts and counts.errors else rows.QUIET,
            "pending": rows.OPEN if counts and counts.pending else rows.QUIET,
            "exit": rows.BAD if note is not None and rows.ended_badly(note) else None,
        },
    )


def _counted(summary: Summary, counts: SessionCounts | None) -> tuple[str, str, str]:
    if counts is not None:
        return str(counts.messages), str(counts.errors), str(counts.pending)
    if is_too_large(summary):
        return f"~{summary.entries}", NEVER, NEVER
    return UNKNOWN, UNKNOWN, UNKNOWN


MARKED = "*"

COMPARED = "±"
"""Mark of the session that another is to be compared with."""

_MOVES = [
    replace(binding, key=binding.key.replace(",space", ""))
    for binding in VirtualList.BINDINGS
    if isinstance(binding, Binding)
]


class SessionList(VirtualList, inherit_bindings=False):
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

    def cells(self, index: int, placed: list[PlacedColumn]) -> list[Piece]:
        summary = self._sessions[index]
        said = session_row(summary, self._counts.get(summary.path), datetime.now().astimezone())
        cells: list[Piece] = []
        for column, width in placed:
            text = getattr(said, column.name)
            # The last cell of a row begins on the left; where room is short, that is a number.
            text = pad(text, width, right=True) if column.right else text
            cells.append((text, said.tones.get(column.name)))
        return cells
