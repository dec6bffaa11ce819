"""What the screens that are put over a session have in common.

Owns catching up with the log in slices of time, looking at it ten times a
second, and leaving. What is computed and shown is a subclass's.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.screen import Screen, ScreenResultType
from textual.widgets import Footer

from mcpspy.analysis import rows
from mcpspy.core.sanitize import sanitize
from mcpspy.ui.tui.asides.portions import Portions
from mcpspy.ui.tui.line import Line
from mcpspy.ui.tui.listing import Listing
from mcpspy.ui.tui.reader.page import Piece
from mcpspy.ui.tui.session.log import Log
from mcpspy.ui.tui.session.session_keys import help_key

TICK = 0.1
"""Seconds between two looks at the log."""

SLICE = 0.004
"""Seconds of catching up at a time: a key waits so long, at most."""

NARROW = 60
"""Columns below which lines say only what is on their left."""


def leaving(name: str) -> list[BindingType]:
    """Return the keys that each of these screens has."""
    return [
        help_key(name),
        Binding("escape,q", "back", "back", tooltip="back to the session", id=f"{name}.back"),
    ]


class AsideScreen(Screen[ScreenResultType]):
    """A list that is made from all rows of a session."""

    NAME = ""

    source: Portions
    """What is made of the rows, a portion at a time."""

    def __init__(self, log: Log, listing: Listing) -> None:
        super().__init__()
        self._log = log
        self.listing = listing
        self._title = Line(id="title")
        self._status = Line(id="status", classes="-soft")
        self._is_catching_up = False

    def compose(self) -> ComposeResult:
        yield self._title
        yield self.listing
        yield self._status
        yield Footer(compact=True)

    def on_mount(self) -> None:
        self.listing.focus()
        self.set_interval(TICK, self.look)
        self.look()
        self.call_after_refresh(self.look)  # Before that, nothing has a size.

    @property
    def is_behind(self) -> bool:
        return self.source.is_behind

    def judge(self, goes_on: Callable[[], bool]) -> None:
        self.source.judge(goes_on)

    def show(self) -> None:
        raise NotImplementedError

    def opened(self) -> None:
        raise NotImplementedError

    def look(self) -> None:
        if self.is_behind and not self._is_catching_up:
            self._is_catching_up = not self._slice()
            if self._is_catching_up:
                self.run_worker(self._catch_up())
        self.show()

    def say(self, right: list[Piece], below: list[Piece], beside: list[Piece]) -> None:
        server = str(self._log.index.server or self._log.header.name)
        name: list[Piece] = [(self.NAME, "title"), (f" · {sanitize(server)}", None)]
        is_narrow = self.size.width < NARROW
        self._title.say(name, [] if is_narrow else right)
        self._status.say(below, [] if is_narrow else beside)

    def progress(self, judged: int) -> Piece:
        """Return how far the computing is, if it is not done."""
        count = len(self._log)
        share = judged * 100 // count if count else 100
        return (f"reading … {share} %", rows.QUIET) if judged < count else ("", None)

    def on_listing_moved(self, event: Listing.Moved) -> None:
        event.stop()
        self.show()

    def on_listing_opened(self, event: Listing.Opened) -> None:
        event.stop()
        self.opened()

    def action_open(self) -> None:
        self.opened()

    def action_back(self) -> None:
        self.dismiss(None)

    async def _catch_up(self) -> None:
        while not self._slice():  # noqa: ASYNC110 - nothing is waited for: others get their turn.
            await asyncio.sleep(0)
        self._is_catching_up = False
        self.show()

    def _slice(self) -> bool:
        """Compute for a moment; return whether all is done."""
        until = time.perf_counter() + SLICE
        self.judge(lambda: time.perf_counter() < until)
        return not self.is_behind
