"""The list and the message beside it, or below.

Owns how the two share the room, which of them has the focus, and when the
message under the cursor is laid out: once the cursor rests.
"""

from __future__ import annotations

from textual.app import ComposeResult
from textual.containers import Container
from textual.timer import Timer

from mcpspy.ui.body import Body
from mcpspy.ui.tui.detail import Detail
from mcpspy.ui.tui.facts import content, facts
from mcpspy.ui.tui.listing import Listing
from mcpspy.ui.tui.log import Log
from mcpspy.ui.tui.messages import MessageList

SETTLE = 0.06
"""Seconds the cursor rests before its message is laid out: a held key must not open them all."""

SETTLE_LIVE = 0.3
"""The same while the cursor follows the end."""


class Panes(Container):
    """Two panes, one log."""

    DEFAULT_CSS = """
    Panes { height: 1fr; layout: vertical; }
    Panes > * { height: 1fr; width: 1fr; }
    Panes > Detail { border-top: solid $panel; }
    Panes > Detail:focus { border-top: heavy $primary; }
    Panes.-list > Detail, Panes.-detail > Listing { display: none; }
    """

    def __init__(self, log: Log) -> None:
        super().__init__()
        self._log = log
        self.listing = MessageList(log, id="list")
        self.detail = Detail(id="detail")
        self._settling: Timer | None = None
        self._shown: tuple[int, int, str] | None = None
        self._body = Body(b"")

    def compose(self) -> ComposeResult:
        """Put both in place."""
        yield self.listing
        yield self.detail

    @property
    def is_zoomed(self) -> bool:
        """Whether one pane has all the room."""
        return self.has_class("-list") or self.has_class("-detail")

    def zoom(self, *, on: bool) -> None:
        """Give the pane with the focus all the room, or share it again."""
        detail = self.detail.has_focus
        self.set_class(on and detail, "-detail")
        self.set_class(on and not detail, "-list")

    def swap(self) -> None:
        """Move the focus to the other pane; a zoom goes with it."""
        zoomed = self.is_zoomed
        self.zoom(on=False)
        (self.detail if self.listing.has_focus else self.listing).focus()
        if zoomed:
            self.call_after_refresh(self.zoom, on=True)

    def on_listing_moved(self) -> None:
        """Show the message under the cursor once the cursor rests."""
        if self._settling is None:
            self._settling = self.set_timer(SETTLE_LIVE if self.listing.follow else SETTLE, self._settled)

    def on_listing_opened(self, event: Listing.Opened) -> None:
        """Read what was clicked twice."""
        event.stop()
        self.detail.focus()

    def look(self) -> None:
        """See whether the message that is shown has changed, by its answer for one."""
        if self._settling is None:
            self._show()

    def _settled(self) -> None:
        self._settling = None
        self._show()

    def _show(self) -> None:
        log, number = self._log, self.listing.cursor
        change = log.get(number)
        if change is None:
            return
        key = (log.generation, number, str(change.exchange.state) if change.exchange else "")
        if key == self._shown:
            return
        if self._shown is None or self._shown[:2] != key[:2]:
            self._body = Body(content(change))
        self._shown = key
        self.detail.show(facts(change), self._body)
