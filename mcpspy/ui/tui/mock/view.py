"""The view of a live mock: requests, recorded interactions, clients, and the message under the cursor.

`MockView` shows what the mock notes; `screen` adds the actions of the keys.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable
from contextlib import suppress
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Container
from textual.widgets import Input
from textual.worker import WorkerError

from mcpspy.analysis import rows
from mcpspy.core.counted import counted
from mcpspy.core.sanitize import sanitize
from mcpspy.core.session import mock_notes
from mcpspy.errors import McpspyError
from mcpspy.io.hosts.temporary import TemporaryEntry
from mcpspy.io.recording.reader import Summary
from mcpspy.ui.model.intercept_connection import HeldMessage
from mcpspy.ui.model.mock_control import MockConnection, RunningMock
from mcpspy.ui.model.mock_model import MockModel, RecordedInteractions, load
from mcpspy.ui.model.session_loader import SessionLoader
from mcpspy.ui.tui.bindings import MOCK_KEYS
from mcpspy.ui.tui.detail.document import Document, DocumentPart
from mcpspy.ui.tui.detail.pane import DetailPane
from mcpspy.ui.tui.intercept.labels import short_name
from mcpspy.ui.tui.mock.lists import ClientList, InteractionList, RequestList, tone
from mcpspy.ui.tui.session.background import SLICE
from mcpspy.ui.tui.session.labels import BETWEEN, StatusBar
from mcpspy.ui.tui.session.panes import NOTHING, document
from mcpspy.ui.tui.widgets.base import DismissibleScreen, SplitLine
from mcpspy.ui.tui.widgets.columns import Piece
from mcpspy.ui.tui.widgets.footer import KeyFooter
from mcpspy.ui.tui.widgets.virtual_list import VirtualList

WIDE = 110
TICK = 0.2
"""Seconds between two updates of the lists. Keys update them at once."""

CLOCK = 0.5
"""Seconds between two updates of the times of waiting requests, and of the message of a list that follows."""

READY = 20.0
"""Maximum seconds until the control socket accepts orders."""


class MockView(DismissibleScreen[None]):
    """A mock that serves until this screen closes."""

    HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (WIDE, "-wide")]  # noqa: RUF012 - Screen declares its type.

    DEFAULT_CSS = """
    MockView #mock { height: 1fr; layout: vertical; }
    MockView #lists { height: 1fr; layout: vertical; }
    MockView #lists > VirtualList { height: 1fr; display: none; }
    MockView #lists > VirtualList.-shown { display: block; }
    MockView DetailPane { height: 1fr; border-top: solid $panel; }
    MockView DetailPane:focus-within { border-top: heavy $primary; }
    MockView.-wide #mock { layout: horizontal; }
    MockView.-wide #lists { width: 16fr; height: 1fr; }
    MockView.-wide #lists > VirtualList { display: block; }
    MockView.-wide #requests { height: 3fr; }
    MockView.-wide #interactions { height: 2fr; }
    MockView.-wide #clients { height: 5; }
    MockView.-wide DetailPane { width: 9fr; height: 1fr; border-top: none; border-left: solid $panel; }
    MockView.-wide DetailPane:focus-within { border-top: none; border-left: heavy $primary; }
    """

    BINDINGS: ClassVar[list[BindingType]] = MOCK_KEYS

    HELP_NAME = "mock"

    def __init__(self, running: RunningMock, summary: Summary, recorded_by: Summary) -> None:
        """Show a mock of the session `summary`; `recorded_by` is the session that it records."""
        super().__init__()
        self.mock = running
        self.summary = summary
        self.loader = SessionLoader(recorded_by)
        self.model = MockModel(self.loader.model)
        self.requests = RequestList(self.loader.model, self.model)
        self.interactions = InteractionList(self.model)
        self.clients = ClientList(self.model)
        self.detail = DetailPane(id="detail")
        self.connection = MockConnection(recorded_by.path, self._released)
        self.recorded: RecordedInteractions | None = None
        self.entries: list[TemporaryEntry] = []
        """The entries of this mock in configurations of hosts."""
        self.session_path = recorded_by.path
        self.lists: list[VirtualList] = [self.requests, self.interactions, self.clients]
        self._title = SplitLine(id="title")
        self._mode = SplitLine(id="mode", classes="-soft")
        self._status = StatusBar()
        self._keys = KeyFooter()
        self._shown: object = None
        self._seen: object = None
        self._waited = self._detailed = 0.0
        self._is_catching_up = False

    def compose(self) -> ComposeResult:
        self.set_class(self.app.size.width >= WIDE, "-wide")  # The breakpoints apply after the first frame.
        yield self._title
        yield self._mode
        with Container(id="mock"):
            with Container(id="lists"):
                yield from self.lists
            yield self.detail
        yield self._status
        yield self._keys

    def on_mount(self) -> None:
        self.requests.add_class("-shown")
        self.requests.focus()
        self._reading = self.run_worker(self.loader.read())
        self.run_worker(self.connection.keep(lambda: not self.mock.trouble))
        self.run_worker(self._load())
        self.run_worker(self._greet())
        self.set_interval(TICK, self._tick)
        self.look()

    async def on_unmount(self) -> None:
        """Remove the entries in configurations, and stop the mock."""
        for entry in self.entries:
            with suppress(McpspyError):  # The next `mcpspy tui` tries again, and reports why it cannot.
                await asyncio.to_thread(entry.remove)
        if not self._reading.is_cancelled:
            self._reading.cancel()
        with suppress(WorkerError):
            await self._reading.wait()
        self.loader.close()
        await self.mock.stop()

    # The interface for the actions.

    @property
    def leave_question(self) -> str:
        """The question before the mock stops; empty if no client would notice."""
        connected = 0 if self.mock.trouble else len(self.model.connected)
        return f"Stop the mock? {counted(connected, 'client')} may still use it." if connected else ""

    @property
    def footer(self) -> tuple[str, ...]:
        return ("mock-waiting", "mock") if self.waiting is not None else ("mock",)

    @property
    def waiting(self) -> HeldMessage | None:
        """The waiting request that is selected; else the first one, unless another list is in use."""
        if self.interactions.has_focus or self.clients.has_focus:
            return None
        return self.requests.held_here or next(iter(self.connection.requests), None)

    def flash_message(self, text: str) -> None:
        self._status.flash(text)
        self.look()

    def do(self, work: Awaitable[str]) -> None:
        """Await work in a worker and show its result, or the reason why it failed."""

        async def done() -> None:
            try:
                self.flash_message(await work)
            except McpspyError as error:
                self.flash_message(sanitize(str(error)))

        self.run_worker(done())

    def show_list(self, listing: VirtualList) -> None:
        """Show a list where there is room for one, and focus it."""
        for each in self.lists:
            each.set_class(each is listing, "-shown")
        listing.focus()
        self.look()

    # Updates.

    def _tick(self) -> None:
        self.look(is_tick=True)

    def look(self, *, is_tick: bool = False) -> None:
        """Update everything that has changed; at a tick, the message only now and then."""
        if self.model.is_behind and not self._is_catching_up:
            self._is_catching_up = not self._slice()
            if self._is_catching_up:
                self.run_worker(self._catch_up())
        model, connection = self.model, self.connection
        index = self.loader.model.index
        held = {row: each for each in connection.requests if (row := index.held.get(each.ticket)) is not None}
        seen = (
            model.generation,
            model.processed,
            model.options,
            connection.state,
            held.keys(),
            self.recorded,
        )
        now = time.monotonic()
        if seen != self._seen or (held and now > self._waited + CLOCK):
            self._seen, self._waited = seen, now
            self.interactions.given = self._given()
            self.requests.sync(len(model.requests))
            self.requests.hold(held)
            self.requests.refresh()
            self.interactions.refresh()
            self.clients.show_clients()
        self._show_lines()
        # A thousand requests a second: to build the message of each last one would keep keys waiting.
        if not is_tick or now > self._detailed + CLOCK:
            self._detailed = now
            self._show_detail()
        if self._keys.is_attached:
            self._keys.show_state()

    def on_virtual_list_moved(self, event: VirtualList.Moved) -> None:
        event.stop()
        self.look()

    def on_virtual_list_opened(self, event: VirtualList.Opened) -> None:
        event.stop()
        self.detail.focus()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Leave keys to a text field, and those for waiting requests to times when there are some."""
        if isinstance(self.focused, Input):
            return False
        return action not in ("release", "release_all") or bool(self.connection.requests)

    async def _load(self) -> None:
        """Read the interactions, in a thread."""
        try:
            self.recorded = await asyncio.to_thread(load, self.summary.path)
        except McpspyError as error:
            self.interactions.empty = [(sanitize(str(error)), rows.BAD)]
            self.interactions.refresh()
        else:
            self.interactions.fill(self.recorded)

    async def _greet(self) -> None:
        """Read the state of the mock once it can be reached, and show how clients connect."""
        with suppress(McpspyError, TimeoutError):
            async with asyncio.timeout(READY):
                await self.connection.steer()
        self.look()

    async def _catch_up(self) -> None:
        while not self._slice():  # noqa: ASYNC110 - this yields to other tasks, it does not wait.
            await asyncio.sleep(0)
        self._is_catching_up = False

    def _slice(self) -> bool:
        until = time.perf_counter() + SLICE
        self.model.advance(lambda: time.perf_counter() < until)
        return not self.model.is_behind

    def _given(self) -> dict[int, str]:
        """Return the answers that the user has set, in words, by the number of the interaction."""
        answers = self.connection.state.get("answers", ())
        return {
            each["interaction"]: mock_notes.given_words(each).partition(": ")[2]
            for each in answers
            if isinstance(each.get("interaction"), int)
        }

    def _show_lines(self) -> None:
        mock, model, connection = self.mock, self.model, self.connection
        name = f"{BETWEEN}{sanitize(self.summary.header.name)}" if self.has_class("-wide") else ""
        left: list[Piece] = [("Mock", "title"), (f"{name}{BETWEEN}", None)]
        left.append((mock.url, rows.OK) if not mock.trouble else ("stopped", rows.BAD))
        count = f"{counted(len(model.requests), 'request')}{BETWEEN}{model.misses:,} not recorded"
        self._title.set_text(left, [(f"{count}{BETWEEN}{counted(len(model.connected), 'client')}", None)])
        state = connection.state
        waiting = len(connection.requests)
        line: list[Piece] = []
        if connection.is_paused or waiting:
            line += [(f"PAUSED, {waiting} waiting", rows.OPEN), (BETWEEN, rows.QUIET)]
        if state:
            speed = "at once" if not state["speed"] else f"speed {state['speed']:g}"
            parts = [
                f"match {state['match']}",
                speed,
                f"misses: {MISS_WORDS.get(state['misses'], state['misses'])}",
            ]
            line.append((BETWEEN.join(parts), None))
            for each in state["answers"]:
                line.append((f"{BETWEEN}{mock_notes.given_words(each)}", rows.ISSUE))
        self._mode.set_text(line or [("connecting …", rows.QUIET)])
        trouble = mock.trouble or self.loader.trouble
        sentence: Piece = (sanitize(trouble), rows.BAD) if trouble else self._sentence()
        self._status.show_status(sentence, [])

    def _sentence(self) -> Piece:
        if self.entries:
            where = ", ".join(f"{each.server} in {each.path}" for each in self.entries)
            return sanitize(f"entered: {where}"), rows.QUIET
        return sanitize(f"recording to {self.session_path.name}"), rows.QUIET

    def _show_detail(self) -> None:
        if self.interactions.has_focus and self.recorded is not None:
            number = self.interactions.number
            if (which := ("interaction", number)) != self._shown and number is not None:
                self._shown = which
                self.detail.show(recorded_document(self.recorded, number), which)
            return
        row, place = self.requests.row, self.requests.cursor
        if row is None:
            if self._shown is not None:
                self._shown = None
                self.detail.show(NOTHING, None)
            return
        index = self.loader.model.index
        key = (self.loader.model.generation, row)
        state = (
            key,
            self.model.note_row(place),
            index.state(row),
            index.pair(row),
            row in self.requests.held,
        )
        if state != self._shown:
            self._shown = state
            self.detail.show(self._document(place, row), key)

    def _document(self, place: int, row: int) -> Document:
        """Return what a request got, the request, and its response."""
        found = document(self.loader.model, row, exchanges=True)
        fields = dict(self.model.note(place))
        if not fields:
            text, role = self.requests.got(place)
            lines: list[Piece] = [(text, role)]
        else:
            outcome, *more = mock_notes.lines(fields)
            lines = [(sanitize(outcome), tone(fields)), *((sanitize(line), None) for line in more)]
        return Document([DocumentPart("note", [*lines, ("", None)], b""), *found.parts], found.headers)

    def _released(self, held: HeldMessage, why: str) -> None:
        self.flash_message(f"{short_name(held)}: {why}")


MISS_WORDS = {
    "error": "error",
    "method-not-found": "error -32601",
    "nearest": "the nearest",
    "forward": "the real server",
}
"""`misses` of the mock → the same in words."""


def recorded_document(recorded: RecordedInteractions, number: int) -> Document:
    """Return a recorded request and its response."""
    interaction = recorded.numbered(number)
    cause, answer = (None, None) if interaction is None else (interaction.cause, interaction.answer)
    parts = []
    if cause is not None:
        parts.append(DocumentPart("request", [(f"recorded request {number}", "title")], cause.data))
    if answer is not None:
        parts.append(DocumentPart("response", [("recorded response", "title")], answer.data))
    return Document(parts) if parts else NOTHING
