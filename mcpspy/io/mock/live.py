"""A mock that viewers watch and steer: `mcpspy http` in front of it records its clients.

The order `mock` of the control socket goes to the mock; all other orders, such as `hold`, to the proxy in front of it
(docs/control.md). What each request got becomes a note of kind `mock` in the recording (docs/format.md).
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any, NamedTuple

from mcpspy.core.intercept.actions import CommandError
from mcpspy.core.mock.steering import MockOptions, Steering
from mcpspy.core.protocol.http_headers import read_upstream
from mcpspy.core.recording.origin import MOCK as MOCK_ORIGIN
from mcpspy.core.session.mock_notes import MOCK
from mcpspy.errors import CannotStart, McpspyError
from mcpspy.io.http.context import ExchangeContext
from mcpspy.io.http.proxy import HttpOptions, HttpProxy, proxying
from mcpspy.io.http.server import accepting
from mcpspy.io.mock.http import Mock
from mcpspy.io.mock.loader import RecordingsLoader
from mcpspy.io.network.listener import listening, origin
from mcpspy.io.serving.live_server import LiveServer
from mcpspy.io.serving.mcp_server import ENDPOINT, LOOPBACK_HOST, MESSAGES, SSE

HOLD_TIMEOUT = 24 * 3600.0
"""Seconds after which a held request is released: a mock has no server that would wait, only its clients."""

HINT = "use another port, or 0 for a free one"


class LiveMock(NamedTuple):
    """A mock that is serving."""

    url: str
    """For clients."""
    path: str
    """The recording of its clients."""
    reading: asyncio.Future[None]
    """Done when the recordings are read completely; has an error if they contain no server."""


@asynccontextmanager
async def serving_live(
    loader: RecordingsLoader,
    options: MockOptions,
    *,
    port: int = 0,
    folder: str | None = None,
    real: LiveServer | None = None,
    warn: Callable[[str], None] = lambda _: None,
) -> AsyncIterator[LiveMock]:
    """Serve recordings on a port of loopback while the context is open; record the clients to a folder.

    `real` is the server to which misses may be forwarded. Raise UsageError if the recordings contain no server, or
    CannotStart if the port is in use or the folder is not writable.
    """
    steering = Steering(options)
    with listening(LOOPBACK_HOST, 0, HINT) as listener:
        recordings = loader.begin()
        mock = Mock(recordings, options, lambda _: None, (), real, steering=steering)
        async with accepting(mock.handle, listener):
            upstream = read_upstream(origin(LOOPBACK_HOST, listener) + mock.path)
            assert upstream is not None
            front = HttpOptions(upstream, LOOPBACK_HOST, port)
            front.name, front.folder, front.port_hint = f"mock-{recordings.name}", folder, HINT
            front.origin = MOCK_ORIGIN
            front.interception.hold_timeout = HOLD_TIMEOUT
            paths: list[str] = []

            def begun(proxy: HttpProxy[ExchangeContext]) -> None:
                """Give the mock the recording, and the control socket the mock."""
                context = proxy.context
                if context.recorder.path is None:
                    raise CannotStart(f"cannot record to {context.recorder.folder}", "is it writable?")
                paths.append(context.recorder.path)
                for path in (ENDPOINT, SSE, MESSAGES):
                    context.streams.add_endpoint(path)  # Not another server, with its own recording.
                mock.note = lambda fields: context.note_soon(MOCK, fields)
                proxy.interception.orders[MOCK] = lambda _viewer, fields: _ordered(mock, fields)

            try:
                async with proxying(front, begun) as url:
                    reading = asyncio.ensure_future(mock.read(lambda: _read_on(loader, warn)))
                    try:
                        yield LiveMock(url, paths[0], reading)
                    finally:
                        reading.cancel()
                        await asyncio.gather(reading, return_exceptions=True)
                        mock.note = None
            finally:
                await mock.close()


def _read_on(loader: RecordingsLoader, warn: Callable[[str], None]) -> bool:
    is_more = loader.read_on()
    for line in loader.take_warnings():
        warn(line)
    return is_more


def _ordered(mock: Mock, fields: Mapping[str, Any]) -> dict[str, Any]:
    """Execute the order `mock` of a viewer. Raise CommandError."""
    try:
        return mock.steer(fields)
    except McpspyError as error:
        raise CommandError(str(error)) from None
