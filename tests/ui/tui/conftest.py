"""A screen to press keys on, and a session that goes on while it is looked at."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import textual.app
import textual.pilot
import textual.screen
from msgspec.structs import replace
from textual.pilot import Pilot

from mcpspy.core.recording.encode import FrameEncoder
from mcpspy.io.recording.reader import read_header_of, summarize
from mcpspy.io.recording.writer import Writer
from mcpspy.ui.tui.app import McpspyApp
from mcpspy.ui.tui.session import background
from mcpspy.ui.tui.session.screen import SessionScreen

BOUND = 30.0
"""Seconds that anything a test waits for may take, on a busy machine."""

PAUSE = 0.005
"""Seconds without work after which a key has had its effect."""

REQUEST = b'{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"echo"}}'
RESULT = b'{"jsonrpc":"2.0","id":%d,"result":{}}'
ERROR = b'{"jsonrpc":"2.0","id":%d,"error":{"code":-32602,"message":"no"}}'


async def settled(min_sleep: float = PAUSE, max_sleep: float = 1) -> None:
    """Wait until the application has nothing to do, as Textual's `wait_for_idle` does, but in shorter steps.

    That one sleeps for 20 ms at a time, twice for every key: half of what these tests would take. On a busy machine
    little CPU time may also mean that others had it all, so no callback may wait to be run either.
    """
    ready = asyncio.get_running_loop()._ready  # type: ignore[attr-defined]
    begun = time.monotonic()
    while True:
        used = time.process_time()
        await asyncio.sleep(PAUSE)
        elapsed = time.monotonic() - begun
        is_idle = not ready and time.process_time() - used < PAUSE / 10
        if elapsed >= max_sleep or (is_idle and elapsed > min_sleep):
            return


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Wait for keys in short steps, in which the screen is drawn too."""
    monkeypatch.setattr(textual.app, "wait_for_idle", settled)
    monkeypatch.setattr(textual.pilot, "wait_for_idle", settled)
    monkeypatch.setattr(textual.screen, "UPDATE_PERIOD", PAUSE * 0.8)


class Live:
    """A recording whose writer is still there."""

    def __init__(self, folder: Path, name: str = "live") -> None:
        fields: dict[str, Any] = {"transport": "stdio", "command": [name], "name": name}
        self._writer = Writer(str(folder), None, fields, say=pytest.fail)
        self._at = 0.0
        self._is_over = False
        self.path = Path(self._writer.path)

    def say(self, side: str, *lines: bytes) -> None:
        """Let one side send lines."""
        for line in lines:
            self._at += 0.001
            self._writer.write(FrameEncoder(side).feed(self._at, line + b"\n"))

    def calls(self, first: int, last: int) -> None:
        """Send requests and their answers: two messages each."""
        for number in range(first, last + 1):
            self.say("client", REQUEST % number)
            self.say("server", RESULT % number)

    def note(self, kind: str, **fields: Any) -> None:
        """Write what nobody said."""
        self._writer.note(self._at, kind, **fields)

    def end(self, code: int = 0) -> None:
        """End as a session does."""
        self._writer.note(self._at + 1, "exit", code=code, signal=None)
        self.die()

    def die(self) -> None:
        """Stop without a word."""
        if not self._is_over:
            self._is_over = True
            self._writer.close()


class Screen:
    """The application, and what it shows."""

    def __init__(self, app: McpspyApp, pilot: Pilot[None]) -> None:
        self.app = app
        self.pilot = pilot
        self.press = pilot.press

    @property
    def text(self) -> str:
        """All that is on the screen."""
        return "\n".join(self.lines)

    @property
    def lines(self) -> list[str]:
        """Its lines."""
        return [strip.text for strip in self.app.screen._compositor.render_strips()]

    @property
    def session(self) -> SessionScreen:
        """The screen of the open session."""
        assert isinstance(self.app.screen, SessionScreen)
        return self.app.screen

    @property
    def cursor(self) -> int:
        """The row that is selected."""
        return self.session.listing.cursor

    @property
    def count(self) -> int:
        """How many rows there are."""
        return self.session.listing.count

    @property
    def selected(self) -> str:
        """The selected row, without the scrollbar."""
        return next(line[:95] for line in self.lines if line.startswith("▸"))

    @property
    def focused(self) -> str:
        """The kind of the widget that gets the keys."""
        return type(self.app.focused).__name__

    async def until(self, condition: Callable[[], object], what: str = "") -> None:
        """Wait for a condition; fail with the screen if it never comes."""
        deadline = time.monotonic() + BOUND
        while not condition():
            if time.monotonic() > deadline:
                pytest.fail(f"{what or 'the condition'} did not come:\n{self.text}")
            await self.pilot.pause(0.01)

    @property
    def places(self) -> list[str]:
        """What the list shows: the mark, the arrow, the method and the rest of each row, blanks made one."""
        listing = self.session.listing
        width = listing.size.width - 1
        below = self.lines[2 : listing.region.bottom]
        return [" ".join(line[:width].split()) for line in below if line[2:width].strip()]

    async def wire(self) -> None:
        """Show one row a message, as `v` does, without its answer in words."""
        self.session.want(replace(self.session.view.options, exchanges=False))
        await self.processed()

    async def processed(self) -> None:
        """Wait until all rows were looked at, and the list shows them."""
        session = self.session
        await self.until(
            lambda: not session.view.is_behind and session.listing.count == len(session.view),
            "the end of the judging",
        )
        await self.pilot.pause()

    async def shows(self, *texts: str) -> None:
        """Wait until these can be read."""
        for text in texts:
            await self.until(lambda text=text: text in self.text, repr(text))  # type: ignore[misc]


Opened = Callable[..., Any]


@pytest.fixture
def opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Opened:
    """Open the application on a folder, or on one session of it."""

    @asynccontextmanager
    async def open_(
        path: Path | list[Path] | None = None,
        *,
        folder: Path = tmp_path,
        size: tuple[int, int] = (120, 30),
        linted: bool = False,
    ) -> AsyncIterator[Screen]:
        if not linted:  # What most tests send has no handshake: each row would be marked.
            monkeypatch.setattr(background, "LINTED", -1)
        paths = [path] if isinstance(path, Path) else path or []
        summaries = [summarize(one, read_header_of(one)) for one in paths]
        app = McpspyApp(str(folder), summaries)
        async with app.run_test(size=size) as pilot:
            screen = Screen(app, pilot)
            yield screen
            feeds = [below.loader for below in app.screen_stack if isinstance(below, SessionScreen)]
            await screen.until(lambda: all(loader.model.is_over or loader.is_live for loader in feeds))

    return open_


@pytest.fixture
def live(tmp_path: Path) -> Iterator[Live]:
    """Begin a session that is still written to."""
    session = Live(tmp_path)
    yield session
    session.die()
