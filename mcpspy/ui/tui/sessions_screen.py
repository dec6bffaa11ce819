"""The screen of all sessions.

Owns looking at the folder, about every second and in a thread, and what is
said when there is nothing to list.
"""

from __future__ import annotations

import asyncio
import time
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.screen import Screen
from textual.widgets import Footer

from mcpspy.io.store import State, Summary
from mcpspy.ui import rows
from mcpspy.ui.inert import inert
from mcpspy.ui.tui.catalog import Catalog
from mcpspy.ui.tui.line import Line
from mcpspy.ui.tui.listing import Listing
from mcpspy.ui.tui.page import Piece
from mcpspy.ui.tui.session_screen import SessionScreen
from mcpspy.ui.tui.sessions import SessionList
from mcpspy.ui.tui.words import plural

EVERY = 1.0
"""Seconds between two looks at the folder."""

EMPTY: list[Piece] = [
    ("No session yet. Put mcpspy in front of a server, in your host's config or a shell:", None),
    ("", None),
    ("    mcpspy run -- npx -y @modelcontextprotocol/server-memory", "title"),
    ("", None),
    ("and it appears here by itself. Or see how it looks first:", None),
    ("", None),
    ("    mcpspy demo", "title"),
]


class SessionsScreen(Screen[None]):
    """Every session of a folder."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "open", "open", tooltip="look into the session"),
        Binding("question_mark", "app.help", "help", key_display="?", tooltip="this page"),
        Binding("q", "app.quit", "quit"),
    ]

    HELP_NAME = "the sessions"

    def __init__(self, catalog: Catalog) -> None:
        super().__init__()
        self._catalog = catalog
        self._wanted = asyncio.Event()
        self._title = Line(id="title")
        self._list = SessionList(id="list")
        self._status = Line(id="status", classes="-soft")

    def compose(self) -> ComposeResult:
        """Put the lines and the list in place."""
        yield self._title
        yield self._list
        yield self._status
        yield Footer(compact=True)

    def on_mount(self) -> None:
        """Begin to look."""
        self._say([])
        self.run_worker(self._look())

    def on_screen_resume(self) -> None:
        """Look at once when the screen is shown again."""
        self._wanted.set()

    def action_open(self) -> None:
        """Open the session under the cursor."""
        chosen = self._list.chosen
        if chosen is not None:
            self.app.push_screen(SessionScreen(chosen))

    def on_listing_opened(self, event: Listing.Opened) -> None:
        """Open what was clicked twice."""
        event.stop()
        self.action_open()

    async def _look(self) -> None:
        while True:
            if self.is_current:
                began = time.monotonic()
                self._show(await asyncio.to_thread(self._catalog.look))
                rest = max(EVERY, 10 * (time.monotonic() - began))
            else:
                rest = EVERY
            self._wanted.clear()
            try:
                await asyncio.wait_for(self._wanted.wait(), rest)
            except TimeoutError:
                continue

    def _show(self, sessions: list[Summary]) -> None:
        self._list.empty = [] if sessions or self._catalog.trouble else EMPTY
        self._list.show(sessions)
        self._say(sessions)

    def _say(self, sessions: list[Summary]) -> None:
        live = sum(summary.state is State.LIVE for summary in sessions)
        counts: list[Piece] = [(plural(len(sessions), "session"), None)]
        if live:
            counts += [(" · ", rows.QUIET), (f"{live} live", rows.OK)]
        self._title.say([("mcpspy", "title"), (" · sessions", None)], counts)
        trouble = self._catalog.trouble
        watched: Piece = (inert(f"watching {self._catalog.folder}"), rows.QUIET)
        self._status.say([(inert(trouble), rows.BAD) if trouble else watched])
