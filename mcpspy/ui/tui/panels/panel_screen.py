"""Base class of the panels over a session.

A panel processes the rows of the session in time slices and checks for new rows
ten times a second.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.screen import ScreenResultType
from textual.widget import Widget

from mcpspy.analysis import rows
from mcpspy.core.sanitize import sanitize
from mcpspy.ui.model.session_model import IncrementalBuild, SessionModel
from mcpspy.ui.tui.bindings import help_key
from mcpspy.ui.tui.session.background import SLICE
from mcpspy.ui.tui.widgets.base import DismissibleScreen, SplitLine
from mcpspy.ui.tui.widgets.columns import Piece
from mcpspy.ui.tui.widgets.footer import KeyFooter
from mcpspy.ui.tui.widgets.virtual_list import VirtualList

TICK = 0.1

NARROW = 60
"""Below this many columns, lines show only their left part."""


def leaving(name: str) -> list[BindingType]:
    return [
        help_key(name),
        Binding("escape,q", "back", "back", tooltip="back to the session", id=f"{name}.back"),
    ]


class PanelScreen(DismissibleScreen[ScreenResultType]):
    """A list built from all rows of a session."""

    NAME = ""

    source: IncrementalBuild

    def __init__(self, model: SessionModel, listing: VirtualList) -> None:
        super().__init__()
        self._model = model
        self.listing = listing
        self._title = SplitLine(id="title")
        self._status = SplitLine(id="status", classes="-soft")
        self._is_catching_up = False

    def compose(self) -> ComposeResult:
        yield self._title
        yield from self.above()
        yield self.listing
        yield self._status
        yield KeyFooter()

    def on_mount(self) -> None:
        self.listing.focus()
        self.set_interval(TICK, self.look)
        self.look()
        self.call_after_refresh(self.look)  # Before the first refresh, widgets have no size.

    def above(self) -> Iterable[Widget]:
        """Return the widgets above the list."""
        return ()

    @property
    def is_behind(self) -> bool:
        return self.source.is_behind

    def advance(self, may_continue: Callable[[], bool]) -> None:
        self.source.advance(may_continue)

    def show(self) -> None:
        raise NotImplementedError

    def action_open(self) -> None:
        raise NotImplementedError

    def look(self) -> None:
        if self.is_behind and not self._is_catching_up:
            self._is_catching_up = not self._slice()
            if self._is_catching_up:
                self.run_worker(self._catch_up())
        self.show()

    def set_lines(self, right: list[Piece], below: list[Piece], beside: list[Piece]) -> None:
        model = self._model
        server = model.header.name if model.is_merged else str(model.index.server or model.header.name)
        name: list[Piece] = [(self.NAME, "title"), (f" · {sanitize(server)}", None)]
        is_narrow = self.size.width < NARROW
        self._title.set_text(name, [] if is_narrow else right)
        self._status.set_text(below, [] if is_narrow else beside)

    def progress(self, processed: int) -> Piece:
        """Return the progress of the model as text; empty if the model is complete."""
        count = len(self._model)
        share = processed * 100 // count if count else 100
        return (f"reading … {share} %", rows.QUIET) if processed < count else ("", None)

    def on_virtual_list_moved(self, event: VirtualList.Moved) -> None:
        event.stop()
        self.show()

    def on_virtual_list_opened(self, event: VirtualList.Opened) -> None:
        event.stop()
        self.action_open()

    def action_back(self) -> None:
        self.dismiss(None)

    async def _catch_up(self) -> None:
        while not self._slice():  # noqa: ASYNC110 - this yields to other tasks, it does not wait.
            await asyncio.sleep(0)
        self._is_catching_up = False
        self.show()

    def _slice(self) -> bool:
        until = time.perf_counter() + SLICE
        self.advance(lambda: time.perf_counter() < until)
        return not self.is_behind
