"""The screen of one session, as the parts see it that work on it.

Owns what keys, interception and other screens may ask of it, so that none of them imports the screen itself.
"""

from __future__ import annotations

from collections.abc import Awaitable

from textual.screen import Screen

from mcpspy.ui.tui.session.filter_bar import FilterBar
from mcpspy.ui.tui.session.loader import SessionLoader
from mcpspy.ui.tui.session.message_list import MessageList
from mcpspy.ui.tui.session.panes import Panes
from mcpspy.ui.tui.session.row_filter import FilteredView


class SessionBase(Screen[None]):
    """The parts of the screen that others use, and what they may have it do."""

    loader: SessionLoader
    view: FilteredView
    panes: Panes
    listing: MessageList
    filter: FilterBar

    @property
    def accepts_screen(self) -> bool:
        """Whether another screen may come over it unasked."""
        raise NotImplementedError

    def flash_message(self, text: str) -> None:
        """Answer a key."""
        raise NotImplementedError

    def go(self, row: int | None, otherwise: str) -> None:
        """Go to a row of the log; say this if there is none."""
        raise NotImplementedError

    def do(self, work: Awaitable[str]) -> None:
        """Have something done that takes a while, and say what came of it."""
        raise NotImplementedError

    def compare(self, old: int, new: int) -> None:
        """Show what differs between two exchanges."""
        raise NotImplementedError

    def resent(self, row: int | None) -> tuple[int, int] | None:
        """Return the original of what was sent again, and that; None if a row is nothing of the kind."""
        raise NotImplementedError
