"""Fixtures: a screen that receives keys, and a session that is still being recorded."""

from __future__ import annotations

import asyncio
import math
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
from textual.css.model import RuleSet
from textual.css.stylesheet import Stylesheet
from textual.pilot import Pilot

from mcpspy.core.recording.encode import FrameEncoder
from mcpspy.io.recording.reader import read_header_of, summarize
from mcpspy.io.recording.writer import Writer
from mcpspy.ui.tui.app import McpspyApp
from mcpspy.ui.tui.session import background, labels
from mcpspy.ui.tui.session.screen import SessionScreen

BOUND = 30.0
"""Maximum seconds of any wait in a test, even on a busy machine."""

PAUSE = 0.005
"""Seconds without work after which the effect of a key is complete."""

FLASH = 8.0
"""Seconds that a message stays in the status line: long enough to be seen on a busy machine."""

REQUEST = b'{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"echo"}}'
RESULT = b'{"jsonrpc":"2.0","id":%d,"result":{}}'
ERROR = b'{"jsonrpc":"2.0","id":%d,"error":{"code":-32602,"message":"no"}}'


async def settled(min_sleep: float = PAUSE, max_sleep: float = 1) -> None:
    """Wait until the application is idle, like Textual's `wait_for_idle` but in shorter steps.

    Textual's function sleeps for 20 ms at a time, twice per key, which would be half of the time of these tests. On a
    busy machine other processes may take all CPU time, so this one also checks that no callback is ready to run.
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


_parse_rules = Stylesheet._parse_rules
_parsed: dict[object, list[RuleSet]] = {}


def parsed_once(sheet: Stylesheet, *arguments: Any, **named: Any) -> list[RuleSet]:
    """Parse the CSS of a widget once for all applications, which takes a seventh of the CPU time of these tests.

    Textual has such a cache for each application.
    """
    key = (*sheet._variables.items(), arguments, *named.items())
    if key not in _parsed:
        _parsed[key] = _parse_rules(sheet, *arguments, **named)
    return _parsed[key]


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Wait for keys in short steps, in which the screen is also drawn."""
    monkeypatch.setattr(Stylesheet, "_parse_rules", parsed_once)
    monkeypatch.setattr(textual.app, "wait_for_idle", settled)
    monkeypatch.setattr(textual.pilot, "wait_for_idle", settled)
    monkeypatch.setattr(textual.screen, "UPDATE_PERIOD", PAUSE * 0.8)
    monkeypatch.setattr(labels, "FLASH", FLASH)
    monkeypatch.setenv("COLORTERM", "truecolor")


def _say(line: str) -> None:
    """Fail, except if a test has deleted or truncated the recording, which the writer sees when it closes."""
    if " was deleted; " not in line and " was truncated; " not in line:
        pytest.fail(line)


class Live:
    """A recording whose writer is still open."""

    def __init__(self, folder: Path, name: str = "live") -> None:
        fields: dict[str, Any] = {"transport": "stdio", "command": [name], "name": name}
        self._writer = Writer(str(folder), None, fields, say=_say)
        self._writer._check_at = math.inf  # Tests delete and truncate the file, which is then still written.
        self._at = 0.0
        self._is_over = False
        self.path = Path(self._writer.path)

    def say(self, side: str, *lines: bytes) -> None:
        """Send lines from one side."""
        for line in lines:
            self._at += 0.001
            self._writer.write(FrameEncoder(side).feed(self._at, line + b"\n"))

    def calls(self, first: int, last: int) -> None:
        """Send requests and their responses: two messages each."""
        for number in range(first, last + 1):
            self.say("client", REQUEST % number)
            self.say("server", RESULT % number)

    def note(self, kind: str, **fields: Any) -> None:
        """Write a note."""
        self._writer.note(self._at, kind, **fields)

    def end(self, code: int = 0) -> None:
        """End the session with an exit note."""
        self._writer.note(self._at + 1, "exit", code=code, signal=None)
        self.die()

    def die(self) -> None:
        """Close the recording without an exit note."""
        if not self._is_over:
            self._is_over = True
            self._writer.close()


class Screen:
    """The application and its screen."""

    def __init__(self, app: McpspyApp, pilot: Pilot[None]) -> None:
        self.app = app
        self.pilot = pilot
        self.press = pilot.press

    @property
    def text(self) -> str:
        """The text of the screen."""
        return "\n".join(self.lines)

    @property
    def lines(self) -> list[str]:
        """The lines of the screen."""
        return [strip.text for strip in self.app.screen._compositor.render_strips()]

    @property
    def session(self) -> SessionScreen:
        """The screen of the open session."""
        assert isinstance(self.app.screen, SessionScreen)
        return self.app.screen

    @property
    def cursor(self) -> int:
        """The index of the selected row."""
        return self.session.listing.cursor

    @property
    def count(self) -> int:
        """The number of rows."""
        return self.session.listing.count

    @property
    def selected(self) -> str:
        """The selected row, without the scrollbar."""
        return next(line[:95] for line in self.lines if line.startswith("▸"))

    @property
    def focused(self) -> str:
        """The class name of the focused widget."""
        return type(self.app.focused).__name__

    async def until(self, condition: Callable[[], object], what: str = "") -> None:
        """Wait for a condition; after a timeout, fail and print the screen."""
        deadline = time.monotonic() + BOUND
        while not condition():
            if time.monotonic() > deadline:
                pytest.fail(f"timeout: {what or 'the condition'}\n{self.text}")
            await self.pilot.pause(0.01)

    @property
    def places(self) -> list[str]:
        """The rows of the list: mark, arrow, method and the other columns, separated by single spaces."""
        listing = self.session.listing
        width = listing.size.width - 1
        below = self.lines[2 : listing.region.bottom]
        return [" ".join(line[:width].split()) for line in below if line[2:width].strip()]

    async def wire(self) -> None:
        """Show one row per message like the key `v`, but without its status message."""
        self.session.want(replace(self.session.view.options, exchanges=False))
        await self.processed()

    async def processed(self) -> None:
        """Wait until all rows are filtered and the list shows them."""
        session = self.session
        await self.until(
            lambda: not session.view.is_behind and session.listing.count == len(session.view),
            "the end of filtering",
        )
        await self.pilot.pause()

    async def shows(self, *texts: str) -> None:
        """Wait until these texts are on the screen."""
        for text in texts:
            await self.until(lambda text=text: text in self.text, repr(text))  # type: ignore[misc]


def messages(screen: Screen) -> list[str]:
    """Return the texts of the notifications, which tests do not draw."""
    return [one.message for one in screen.app._notifications]


Opened = Callable[..., Any]


@pytest.fixture
def opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Opened:
    """Open the application with a folder, or with one session of it."""

    @asynccontextmanager
    async def open_(
        path: Path | list[Path] | None = None,
        *,
        folder: Path = tmp_path,
        size: tuple[int, int] = (120, 30),
        linted: bool = False,
    ) -> AsyncIterator[Screen]:
        if not linted:  # Most tests send no handshake, so that every row would get a mark.
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
    """Start a session that is still being recorded."""
    session = Live(tmp_path)
    yield session
    session.die()
