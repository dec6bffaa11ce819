"""The causes of a failure: that of a row in one line, and all causes of a session in a window.

`mcpspy explain` reads the whole recording, in a thread that stops when its screen is closed.
"""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path
from typing import ClassVar

from rich.text import Text
from textual import events
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import VerticalScroll
from textual.widgets import Static

from mcpspy.analysis import rows
from mcpspy.analysis.explain import Diagnosis
from mcpspy.analysis.lint import EntryPosition
from mcpspy.core.sanitize import sanitize
from mcpspy.errors import CannotStart, McpspyError, UsageError
from mcpspy.io.recording.reader import read_header_of, summarize
from mcpspy.ui.report.explanation import explain, explanation_lines, places_of
from mcpspy.ui.report.last_good import compared_with_last_good
from mcpspy.ui.tui.panels.panel_screen import leaving
from mcpspy.ui.tui.widgets.base import DismissibleModal

LARGEST = 16 << 20
"""Maximum size, in bytes, of a session that is explained here: that takes about 15 seconds."""

EDGE = 7
"""Columns of the box around the text: border, padding, scrollbar."""


async def explained(path: Path, row: int | None = None) -> Diagnosis:
    """Return the diagnosis of a session with what changed since its last good one, or of what is on a row of it.

    Raise UsageError or CannotStart.
    """
    is_over = threading.Event()

    def may_continue() -> bool:
        return not is_over.is_set()

    def read() -> Diagnosis:
        size = summarize(path, read_header_of(path), counts=False).size
        if size > LARGEST:
            why = f"{rows.size(size)}B, too large to explain here"
            raise CannotStart(why, f"use mcpspy explain {path}")
        if row is not None:
            place = _place_of(path, row)
            return explain(path, line=place.line, part=place.part, may_continue=may_continue)
        return compared_with_last_good(explain(path, may_continue=may_continue), path, may_continue)

    try:
        return await asyncio.to_thread(read)
    finally:
        is_over.set()


async def cause_of_row(path: Path, row: int) -> str:
    """Return the first cause of what is on a row, in one line. Raise UsageError or CannotStart."""
    return (await explained(path, row)).summary


def _place_of(path: Path, row: int) -> EntryPosition:
    places = places_of(path)
    if row >= len(places):
        raise UsageError(f"row {row + 1:,}: the session has only {len(places):,} rows", "explain the session")
    return places[row]


class ExplanationScreen(DismissibleModal[None]):
    CSS = """
    ExplanationScreen { align: center middle; background: $background 60%; }
    ExplanationScreen #explanation { width: 100%; max-width: 110; height: auto; max-height: 100%; padding: 0 2;
                                     background: $surface; border: solid $primary; scrollbar-size-vertical: 1; }
    """

    BINDINGS: ClassVar[list[BindingType]] = leaving("explanation")

    HELP_NAME = "explanation"

    def __init__(self, path: Path, name: str) -> None:
        super().__init__()
        self._path = path
        self._session_name = name
        self._page = Static("explaining …")
        self._box = VerticalScroll(id="explanation")
        self._diagnosis: Diagnosis | None = None

    def compose(self) -> ComposeResult:
        self._box.border_title = Text(f"Explanation of {sanitize(self._session_name)}")
        self._box.border_subtitle = "esc: close · ↑↓: scroll"
        with self._box:
            yield self._page

    def on_mount(self) -> None:
        self.run_worker(self._explain())

    def on_resize(self, event: events.Resize) -> None:
        self._lay_out()

    def action_back(self) -> None:
        self.dismiss(None)

    async def _explain(self) -> None:
        try:
            self._diagnosis = await explained(self._path)
        except (OSError, McpspyError) as error:
            self._page.update(Text(sanitize(str(error))))
        self._lay_out()

    def _lay_out(self) -> None:
        if self._diagnosis is None:
            return
        width = min(self.app.size.width, 110) - EDGE
        text = Text()
        for line, tone in explanation_lines(self._diagnosis, max(width, 20)):
            style = self.app.get_component_styles(f"role--{tone}").partial_rich_style if tone else ""
            text.append(f"{line}\n", style)
        text.rstrip()
        self._page.update(text)
