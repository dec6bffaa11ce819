"""The server's stderr and the warnings of a replay."""

from __future__ import annotations

from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.widgets import Static

from mcpspy.ui.model.replay_run import ReplayModel
from mcpspy.ui.tui.panels.panel_screen import leaving
from mcpspy.ui.tui.widgets.base import DismissibleModal

EVERY = 0.1
"""Seconds between two updates."""


class OutputScreen(DismissibleModal[None]):
    """The server's stderr and the warnings of the replay."""

    CSS = """
    OutputScreen { align: center middle; background: $background 60%; }
    OutputScreen #output { width: 100%; max-width: 120; height: auto; max-height: 100%; padding: 0 2;
                           background: $surface; border: solid $primary; scrollbar-size-vertical: 1; }
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        *leaving("replay-output"),
        Binding("L", "back", "close", show=False, id="replay-output.close"),
    ]

    HELP_NAME = "stderr"

    def __init__(self, model: ReplayModel) -> None:
        super().__init__()
        self._model = model
        self._page = Static(markup=False)

    def compose(self) -> ComposeResult:
        box = VerticalScroll(id="output")
        box.border_title = "stderr of the server"
        box.border_subtitle = "esc: close"
        with box:
            yield self._page

    def on_mount(self) -> None:
        self._show()
        self.set_interval(EVERY, self._show)

    def action_back(self) -> None:
        self.dismiss(None)

    def _show(self) -> None:
        model = self._model
        lines = [*model.stderr] or ["(nothing)"]
        if model.warnings:
            lines += ["", "warnings:", *model.warnings]
        self._page.update("\n".join(lines))
