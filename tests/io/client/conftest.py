"""Servers for a client: sample servers on stdio, and an HTTP server that a test writes as a function."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from aiohttp import web

from mcpspy.core.session.session import Session
from mcpspy.io.client import ConnectionEnded, InboundEvent, ServerCommand, ServerConnection
from mcpspy.io.recording.reader import Recording
from mcpspy.io.recording.recorder import Recorder, RecordingTarget

if TYPE_CHECKING:
    from contextlib import AbstractAsyncContextManager

SERVERS = Path(__file__).parents[2] / "servers"

BOUND = 30.0
"""Seconds after which a wait counts as a failure."""

Handler = Callable[[Any], Awaitable[web.StreamResponse]]
"""Handles a `web.BaseRequest`."""


class Kept:
    """A recording in progress, and its session."""

    def __init__(self, path: Path) -> None:
        where = RecordingTarget()
        where.record = str(path)
        self.recorder = Recorder(where, {"transport": "http", "name": "kept"})
        self._path = path

    def session(self) -> Session:
        """End the recording and read it."""
        self.recorder.finish(0, None)
        recording = Recording(self._path)
        return Session(recording.header).add_all(recording)


@pytest.fixture
def kept(tmp_path: Path) -> Kept:
    return Kept(tmp_path / "kept.jsonl")


def sample(name: str, *arguments: object) -> ServerCommand:
    """Return the command of a sample server."""
    return ServerCommand([sys.executable, "-I", "-S", str(SERVERS / name), *map(str, arguments)])


async def next_of(connection: ServerConnection, *kinds: type[InboundEvent]) -> Any:
    """Return the next event, optionally of these kinds."""
    async with asyncio.timeout(BOUND):
        while True:
            event = await connection.hear()
            if not kinds or isinstance(event, kinds):
                return event


async def rest_of(connection: ServerConnection) -> list[InboundEvent]:
    """Return all remaining events."""
    async with asyncio.timeout(BOUND):
        return [event async for event in connection]


def is_last(events: list[InboundEvent]) -> bool:
    """Return whether the last event is the end, and the only one."""
    return [isinstance(event, ConnectionEnded) for event in events] == [False] * (len(events) - 1) + [True]


@pytest.fixture
def site() -> Callable[[Handler], AbstractAsyncContextManager[str]]:
    """Serve a function on loopback. The context yields the origin."""

    @asynccontextmanager
    async def serve(handler: Handler) -> AsyncIterator[str]:
        runner = web.ServerRunner(web.Server(handler, handler_cancellation=True), shutdown_timeout=0.1)
        await runner.setup()
        try:
            await web.TCPSite(runner, "127.0.0.1", 0).start()
            yield f"http://127.0.0.1:{runner.addresses[0][1]}"
        finally:
            await runner.cleanup()

    return serve


async def stream(
    request: web.BaseRequest, *events: str, headers: Iterable[tuple[str, str]] = ()
) -> web.StreamResponse:
    """Start an event stream with these events."""
    response = web.StreamResponse(headers={"Content-Type": "text/event-stream", **dict(headers)})
    await response.prepare(request)
    for event in events:
        await response.write(event.encode())
    return response
