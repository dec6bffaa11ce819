"""The screen of one session.

Owns how the list, the message and the two lines work together, live. Reading
is `feed`'s, what there is to say is `log`'s, `facts`' and `words`'.
"""

from __future__ import annotations

import time
from contextlib import suppress
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.screen import Screen
from textual.widgets import Footer
from textual.worker import WorkerError

from mcpspy.core.message import Request
from mcpspy.io.store import Summary
from mcpspy.ui.tui.facts import clipping
from mcpspy.ui.tui.feed import Feed
from mcpspy.ui.tui.line import Line
from mcpspy.ui.tui.listing import Listing
from mcpspy.ui.tui.panes import Panes
from mcpspy.ui.tui.words import position, sentence, title

WIDE = 110
"""Columns from which the message stands beside the list."""

TICK = 0.1
"""Seconds between two looks at the log: more often than an eye can use costs a core."""

PAUSED = 0.5
"""Seconds between two growths of a list whose end is not in view."""

FLASH = 2.5
"""Seconds that the answer to a key is read."""


class SessionScreen(Screen[None]):
    """One session, from its file."""

    HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (WIDE, "-wide")]  # noqa: RUF012 - typed so by Screen.

    CSS = """
    SessionScreen.-wide Panes { layout: horizontal; }
    SessionScreen.-wide Panes > Listing { width: 3fr; }
    SessionScreen.-wide Panes > Detail { width: 2fr; border-top: none; border-left: solid $panel; }
    SessionScreen.-wide Panes > Detail:focus { border-top: none; border-left: heavy $primary; }
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("tab,shift+tab,enter", "swap", "pane", tooltip="from the list to the message, and back"),
        Binding("f", "follow", "follow", tooltip="go to the end, and follow what comes"),
        Binding("e", "wrong(1)", "error", tooltip="next error, or odd message"),
        Binding("E", "wrong(-1)", "previous error", tooltip="previous one", show=False),
        Binding("p", "other", "pair", tooltip="from a request to its answer, and back"),
        Binding("y", "copy", "copy", tooltip="copy the message"),
        Binding("z", "zoom", "zoom", tooltip="give this pane all the room, or share it again"),
        Binding("question_mark", "app.help", "help", key_display="?", tooltip="this page"),
        Binding("escape", "leave", "out", tooltip="leave the zoom, the message, the session", show=False),
        Binding("q", "back", "back", tooltip="back to the sessions"),
    ]

    HELP_NAME = "the session"

    def __init__(self, summary: Summary) -> None:
        super().__init__()
        self.feed = Feed(summary)
        self.panes = Panes(self.feed.log)
        self.listing = self.panes.listing
        self._title = Line(id="title")
        self._status = Line(id="status", classes="-soft")
        self._seen = 0
        self._synced = 0.0
        self._generation = 0
        self._flash = ""
        self._flash_until = 0.0

    def compose(self) -> ComposeResult:
        """Put the panes and the lines in place."""
        self.set_class(self.app.size.width >= WIDE, "-wide")  # The breakpoints come after the first frame.
        yield self._title
        yield self.panes
        yield self._status
        yield Footer(compact=True)

    def on_mount(self) -> None:
        """Begin to read."""
        self.listing.can_follow = self.listing.follow = self.feed.is_live
        self.listing.focus()
        self._reading = self.run_worker(self.feed.read())
        self.run_worker(self.feed.watch_name())
        self.set_interval(TICK, self._tick)
        self._tick()

    async def on_unmount(self) -> None:
        """Stop reading, and wait until the file is closed."""
        if not self._reading.is_cancelled:  # A second time would interrupt the closing.
            self._reading.cancel()
        with suppress(WorkerError):
            await self._reading.wait()

    def on_listing_moved(self, event: Listing.Moved) -> None:
        """Say where the cursor is."""
        event.stop()
        self._tick()

    def action_swap(self) -> None:
        """Move between the list and the message."""
        self.panes.swap()

    def action_follow(self) -> None:
        """Go to the end, and stay there."""
        self.listing.action_last()

    def action_wrong(self, step: int) -> None:
        """Go to the next error, or the one before."""
        self._go(
            self.feed.log.next_wrong(self.listing.cursor, step),
            f"no error {'below' if step > 0 else 'above'}",
        )

    def action_other(self) -> None:
        """Go from a request to its answer, and back."""
        change = self.feed.log.get(self.listing.cursor)
        if change is not None:
            has_none = "it has no answer" if isinstance(change.what, Request) else "it belongs to no request"
            self._go(self.feed.log.other(change.number), has_none)

    def action_copy(self) -> None:
        """Put the message on the clipboard (OSC 52)."""
        change = self.feed.log.get(self.listing.cursor)
        if change is None:
            return
        text, said = clipping(change)
        if text is not None:
            self.app.copy_to_clipboard(text)
        self._tell(said)

    def action_zoom(self) -> None:
        """Give one pane all the room, or share it again."""
        self.panes.zoom(on=not self.panes.is_zoomed)

    def action_leave(self) -> None:
        """Step out of the zoom, then of the message, then of the session."""
        if self.panes.is_zoomed:
            self.panes.zoom(on=False)
        elif self.panes.detail.has_focus:
            self.listing.focus()
        else:
            self.action_back()

    def action_back(self) -> None:
        """Go to the list of sessions."""
        self.app.pop_screen()

    def _go(self, place: int | None, else_say: str) -> None:
        if place is None:
            self._tell(else_say)
            return
        self.listing.follow = False
        self._sync(at_once=True)
        self.listing.move_to(place)

    def _tell(self, text: str) -> None:
        self._flash, self._flash_until = text, time.monotonic() + FLASH
        self._tick()

    def _tick(self) -> None:
        self._sync()
        if self._flash and time.monotonic() > self._flash_until:
            self._flash = ""
        self._say()
        self.panes.look()

    def _sync(self, *, at_once: bool = False) -> None:
        """Give the list the rows that arrived."""
        log, listing = self.feed.log, self.listing
        listing.can_follow = self.feed.is_live
        listing.follow &= listing.can_follow
        if log.generation != self._generation:
            self._generation = log.generation
            listing.sync(0)
        # Rows that arrive below what is seen, while paused, may wait: each new height is a new layout.
        at_once |= listing.follow or listing.has_room or time.monotonic() > self._synced
        if len(log) != listing.count and at_once:
            self._synced = time.monotonic() + PAUSED
            listing.sync(len(log))
        if listing.follow or not self.feed.is_live:
            self._seen = len(log)

    def _say(self) -> None:
        feed, listing = self.feed, self.listing
        self._title.say(*title(feed, self.size.width - 2))
        new = max(len(feed.log) - self._seen, 0)
        where = position(feed, listing.cursor, follows=listing.follow, new=new)
        self._status.say([(self._flash, None)] if self._flash else [sentence(feed)], where)
