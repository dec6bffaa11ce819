"""The interface of the session screen for its parts, which must not import the screen itself."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path

from textual.screen import Screen

from mcpspy.core.recording.decode import Header
from mcpspy.ui.model.row_filter import FilteredView
from mcpspy.ui.model.session_loader import SessionLoader
from mcpspy.ui.tui.session.filter_bar import FilterBar
from mcpspy.ui.tui.session.message_list import MessageList
from mcpspy.ui.tui.session.panes import Panes

RunOpener = Callable[[Path], Awaitable[str]]
"""Opens the run of a recording, or serves it; returns the reason if it cannot. The application has `open_run`, `serve`."""

ServerCaller = Callable[[Header | None], Awaitable[None]]
"""Calls a tool in a new session of a server. The application has `call_server`."""


class SessionBase(Screen[None]):
    loader: SessionLoader
    view: FilteredView
    panes: Panes
    listing: MessageList
    filter: FilterBar

    @property
    def accepts_screen(self) -> bool:
        """True if another screen may open without a key press."""
        raise NotImplementedError

    def flash_message(self, text: str) -> None:
        raise NotImplementedError

    def go(self, row: int | None, otherwise: str) -> None:
        """Go to a row of the model; show `otherwise` if it is None."""
        raise NotImplementedError

    def do(self, work: Awaitable[str]) -> None:
        """Await work in a worker and show its result."""
        raise NotImplementedError

    def action_change_view(self, what: str) -> None:
        """Toggle a kind of rows, or change their order."""
        raise NotImplementedError

    def compare(self, old: int, new: int) -> None:
        raise NotImplementedError

    def resent(self, row: int | None) -> tuple[int, int] | None:
        """Return the rows of the original and the resent request; None for other rows."""
        raise NotImplementedError
