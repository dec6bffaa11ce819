"""What is held in the session that is shown: which rows it is in, and which the cursor is on.

Owns the marks in the list, and the line that says what is held. How the
session is reached is `reach`'s, what a person makes of it `decisions`'.
"""

from __future__ import annotations

import time

from mcpspy.core.recording.decode import Note
from mcpspy.core.session.columns import RowKind
from mcpspy.core.session.rule_notes import RULE
from mcpspy.ui.tui.detail.layout import Piece
from mcpspy.ui.tui.intercept.connection import HeldMessage, InterceptConnection
from mcpspy.ui.tui.intercept.labels import bar, gives_up
from mcpspy.ui.tui.session.labels import plural
from mcpspy.ui.tui.session.loader import SessionLoader
from mcpspy.ui.tui.session.message_list import MessageList
from mcpspy.ui.tui.session.row_filter import FilteredView
from mcpspy.ui.tui.widgets.base import SplitLine

CLOCK = 0.5
"""Seconds between two words on how much time is left."""


class HeldRows:
    """What is held, as the screen shows it."""

    def __init__(self, feed: SessionLoader, view: FilteredView, listing: MessageList) -> None:
        self._feed = feed
        self._view = view
        self._listing = listing
        self.reach: InterceptConnection | None = None
        """The way into the session; None if it cannot be reached, because it is over or is several."""
        self.bar = SplitLine(id="held")
        self.bar.display = False
        self._said_at = 0.0
        self._stood: object = None

    @property
    def has_news(self) -> bool:
        """Whether there is something to say, by its change or by the clock."""
        if self.reach is None:
            return False
        is_due = bool(self.reach.held) and time.monotonic() > self._said_at + CLOCK
        return is_due or self._stood != self._standing(self.reach)

    @property
    def farewell(self) -> str:
        """What to ask before the screen is left; empty if nothing depends on it."""
        mine = [] if self.reach is None else self.reach.mine
        if not mine:
            return ""
        is_one = len(mine) == 1
        return f"{plural(len(mine), 'message')} {'is' if is_one else 'are'} held here and will go on. Leave?"

    @property
    def all(self) -> list[HeldMessage]:
        return [] if self.reach is None else list(self.reach.held.values())

    @property
    def here(self) -> HeldMessage | None:
        """The held message under the cursor: in its own row, or in the note that says that it is held."""
        row, log = self._listing.row, self._feed.log
        if self.reach is None or not self.reach.held or row is None or row >= len(log):
            return None
        if (held := self._listing.held.get(row)) is not None:
            return self.reach.held.get(held.ticket)
        if log.index.kind(row) is RowKind.NOTE and log.index.texts[log.index.method[row]] == RULE:
            note = log.message(row)
            return self.reach.held.get(note.fields.get("ticket", 0)) if isinstance(note, Note) else None
        return None

    def row_of(self, held: HeldMessage) -> int | None:
        """Return the row that tells of it: that of its request, where each exchange has one row; None if it is to come."""
        index = self._feed.log.index
        row = index.held.get(held.ticket)
        request = None if row is None or not self._view.wish.exchanges else index.request(row)
        return row if request is None else request

    def patience(self, held: HeldMessage) -> Piece | None:
        """Return when the host gives up on it; None if that is not known."""
        index = self._feed.log.index
        return gives_up(index, index.held.get(held.ticket), self._feed.now)

    def show(self) -> bool:
        """Mark the rows, and say what is held; return whether other keys count now."""
        reach, now = self.reach, time.monotonic()
        if reach is None:
            return False
        self._said_at = now
        rows: dict[int, HeldMessage] = {}
        for held in reach.held.values():
            if (row := self.row_of(held)) is not None:
                rows.setdefault(row, held)
        here = self.here
        first = here or next(iter(reach.held.values()), None)
        host = None if first is None else self.patience(first)
        line = bar(reach.query, len(reach.held), first, host, now=now, width=self.bar.screen.size.width - 2)
        self.bar.say(line, [("H goes there", "quiet")] if first is not None and here is None else [])
        self.bar.display = bool(line)
        self._listing.hold(rows)
        if changed := rows.keys() ^ self._view.held:
            self._view.held = rows.keys()
            self._view.reconsider(changed)
        stood, self._stood = self._stood, self._standing(reach)
        return stood != self._stood

    def _standing(self, reach: InterceptConnection) -> object:
        """Return what differs once there is something else to say, or to do."""
        here = self.here
        return reach.query, len(reach.held), next(reversed(reach.held), 0), here and here.ticket
