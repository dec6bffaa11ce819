"""Helpers for tests of panels, which run here without a session screen below them."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, ClassVar

import pytest
from textual.app import App
from textual.pilot import Pilot
from textual.screen import Screen

from mcpspy.core.recording.decode import Header, read_entry, read_header
from mcpspy.core.recording.encode import FrameEncoder
from mcpspy.ui.model.session_model import SessionModel
from mcpspy.ui.tui.theme import COMPONENTS, CSS, DARK

BOUND = 30.0
"""Maximum seconds to wait for a condition, on a busy machine."""

RECORDINGS = Path(__file__).resolve().parents[4] / "recordings"

HEADER = Header(mcpspy=1, id="ab12cd34", started="2026-01-01T00:00:00.000Z", name="tested")


class Lines:
    """The lines of a recording, and the session model built from them."""

    def __init__(self, header: Header = HEADER) -> None:
        self.data = bytearray()
        self.log = SessionModel(header, self._read)
        self.log.begin_part()

    def add(self, line: bytes) -> None:
        """Append a line, given without its LF."""
        offset = len(self.data)
        self.data += line + b"\n"
        self.log.add(read_entry(line), offset, len(line))

    def say(self, at: float, side: str, message: bytes) -> None:
        """Record a message from one side."""
        fed = FrameEncoder(side).feed(at, message + b"\n")
        self.add((fed if isinstance(fed, bytes) else b"".join(fed)).rstrip(b"\n"))

    def call(
        self, number: int, begin: float, end: float | None = None, *, name: str = "echo", error: bool = False
    ) -> None:
        """Record a tool call, and its response unless `end` is None."""
        request = b'{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"%b"}}'
        self.say(begin, "client", request % (number, name.encode()))
        if end is not None:
            self.answer(number, end, error=error)

    def answer(self, number: int, at: float, *, error: bool = False) -> None:
        """Record a response of the server."""
        outcome = b'"error":{"code":-32602,"message":"no"}' if error else b'"result":{}'
        self.say(at, "server", b'{"jsonrpc":"2.0","id":%d,%b}' % (number, outcome))

    def end(self) -> None:
        """End the session."""
        self.log.end()

    def _read(self, part: int, offset: int, length: int) -> bytes:
        return bytes(self.data[offset : offset + length]) if part == 0 else b""


def recorded(data: bytes) -> Lines:
    """Return the lines of a complete recording."""
    header, *lines = data.split(b"\n")[:-1]
    read = Lines(read_header(header))
    for line in lines:
        read.add(line)
    read.end()
    return read


def every_recording() -> Iterable[Path]:
    """Return the paths of the real sessions."""
    return sorted(RECORDINGS.glob("*.jsonl"))


class Alone(App[None]):
    """An application with a single screen."""

    CSS = CSS
    COMPONENT_CLASSES: ClassVar[set[str]] = COMPONENTS
    ENABLE_COMMAND_PALETTE = False

    def __init__(self, aside: Screen[Any]) -> None:
        super().__init__()
        self.register_theme(DARK)
        self.theme = DARK.name
        self.aside = aside
        self.results: list[Any] = []
        """The results that the screen was dismissed with."""
        self.copied: list[str] = []

    def on_mount(self) -> None:
        """Show the screen."""
        self.push_screen(self.aside, self.results.append)

    def copy_to_clipboard(self, text: str) -> None:
        """Store the text."""
        self.copied.append(text)


class Shown:
    """The visible content of an application."""

    def __init__(self, app: Alone, pilot: Pilot[None]) -> None:
        self.app = app
        self.press = pilot.press
        self.pilot = pilot

    @property
    def lines(self) -> list[str]:
        """The lines of the screen."""
        return [strip.text for strip in self.app.screen._compositor.render_strips()]

    @property
    def text(self) -> str:
        """The text of the screen."""
        return "\n".join(self.lines)

    @property
    def selected(self) -> str:
        """The line under the cursor."""
        return next(line for line in self.lines if line.startswith("▸"))

    async def until(self, condition: Callable[[], object], what: str = "") -> None:
        """Wait for a condition; on timeout, fail and print the screen."""
        deadline = time.monotonic() + BOUND
        while not condition():
            if time.monotonic() > deadline:
                pytest.fail(f"timeout waiting for {what or 'the condition'}:\n{self.text}")
            await self.pilot.pause(0.01)

    async def shows(self, *texts: str) -> None:
        """Wait until these texts are on the screen."""
        for text in texts:
            await self.until(lambda text=text: text in self.text, repr(text))  # type: ignore[misc]


@asynccontextmanager
async def alone(aside: Screen[Any], size: tuple[int, int] = (100, 24)) -> AsyncIterator[Shown]:
    """Run an application with this screen."""
    app = Alone(aside)
    async with app.run_test(size=size) as pilot:
        shown = Shown(app, pilot)
        await shown.until(lambda: app.screen is aside)
        yield shown
