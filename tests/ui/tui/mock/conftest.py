"""Fixtures: a mock that the terminal UI serves, with its engine, and a client of it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from textual.widgets import Input

from mcpspy.ui.tui.mock.screen import MockScreen
from tests.io.mock.speaking import Spoken
from tests.io.mock.test_stdio import HEADER, frame, handshake
from tests.ui.tui.conftest import Opened, Screen


def call(number: int, tool: str = "echo", said: str = "yes", **arguments: Any) -> bytes:
    params = {"name": tool, "arguments": arguments}
    asked = frame(number, "client", id=number, method="tools/call", params=params)
    return asked + frame(number + 0.01, "server", id=number, result={"said": said})


@pytest.fixture
def recording(tmp_path: Path) -> Path:
    """Two equal calls and another one, after a handshake: requests 1 to 3."""
    path = tmp_path / "r.jsonl"
    calls = call(1, said="first") + call(2, said="second") + call(3, "add", "3", a=1)
    end = b'{"t":9.0,"note":"exit","code":0,"signal":null}\n'
    path.write_bytes(HEADER % b"no-such-server" + handshake("server") + calls + end)
    return path


class Mocked(Screen):
    """The mock screen, and a client of the mock."""

    client: Spoken

    @property
    def mock(self) -> MockScreen:
        (found,) = (each for each in self.app.screen_stack if isinstance(each, MockScreen))
        return found

    @property
    def got(self) -> list[str]:
        """The outcome of each request, as the list shows it."""
        requests = self.mock.requests
        return [requests.got(place)[0] for place in range(requests.count)]

    async def gets(self, *words: str) -> None:
        """Wait until the last requests got this."""
        await self.until(lambda: self.got[-len(words) :] == [*words], f"{words}, not {self.got}")

    async def call(self, id: int, tool: str = "echo", **arguments: Any) -> Any:  # noqa: A002
        """Return the text of a result, or the code of an error."""
        return await self.client.call(id, tool, **arguments)


Mocking = Callable[..., AbstractAsyncContextManager[Mocked]]


@pytest.fixture
def mocking(opened: Opened, recording: Path) -> Mocking:
    @asynccontextmanager
    async def open_(size: tuple[int, int] = (120, 32), server: str = "") -> AsyncIterator[Mocked]:
        async with opened(size=size) as screen, aiohttp.ClientSession() as client:
            await screen.shows("1 session")
            await screen.press("<")
            await screen.shows("place of its server")
            screen.app.screen.query_one("#server", Input).value = server
            await screen.press("enter")
            await screen.until(lambda: isinstance(screen.app.screen, MockScreen), "the mock screen")
            await screen.shows("match exact")
            mocked = Mocked(screen.app, screen.pilot)
            await screen.until(lambda: mocked.mock.recorded is not None, "the recorded interactions")
            mocked.client = Spoken(None, client, mocked.mock.mock.url.removesuffix("/mcp"))  # type: ignore[arg-type]
            yield mocked

    return open_
