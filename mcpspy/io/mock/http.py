"""`mcpspy mock --http`: serves a recording in place of its server, over HTTP.

`mcp_server` handles the exchanges; here are the clients with their mock sessions.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext
from typing import Any, TypeAlias
from urllib.parse import urlsplit

from mcpspy.core.mock.clients import ClientRegistry
from mcpspy.core.mock.http_replies import HttpReply
from mcpspy.core.mock.recordings import Recordings
from mcpspy.core.mock.selector import Selector
from mcpspy.core.mock.session import MockSession
from mcpspy.core.mock.steering import MockOptions, Steering
from mcpspy.core.protocol.message import Request, meta_raw
from mcpspy.core.protocol.spec import META
from mcpspy.io.http.server import accepting
from mcpspy.io.network.listener import listening, origin, stop_on_signals
from mcpspy.io.recording.recorder import say
from mcpspy.io.serving.client import ServedClient
from mcpspy.io.serving.live_server import LiveServer
from mcpspy.io.serving.mcp_server import ENDPOINT, LOOPBACK_HOST, SSE, McpServer, ParsedPost

Front: TypeAlias = AbstractAsyncContextManager[str]
"""A proxy in front of the mock; yields its URL for clients."""


class Mock(McpServer):
    def __init__(
        self,
        recordings: Recordings,
        options: MockOptions,
        complain: Callable[[str], None],
        allowed: Sequence[str] = (),
        real: LiveServer | None = None,
        *,
        steering: Steering | None = None,
    ) -> None:
        super().__init__(endpoint(recordings), allowed)
        self.selectors: list[Selector] = []
        self.note: Callable[[Mapping[str, Any]], None] | None = None
        """Takes the fields of notes: what each request got, and what viewers change. Needs steering."""
        self.name = recordings.name
        self._recordings = recordings
        self._options = options
        self._complain = complain
        self._real = real
        self._steering = steering
        self._numbers = 0
        self._registry: ClientRegistry[ServedClient] = ClientRegistry()
        self._is_read = asyncio.Event()

    async def read(self, read_on: Callable[[], bool]) -> None:
        """Read the rest of the recording and answer waiting requests. `read_on` returns False at the end."""
        while read_on():
            for client in self._clients:
                client.resume()
            await asyncio.sleep(0)
        self._is_read.set()

    def steer(self, fields: Mapping[str, Any]) -> dict[str, Any]:
        """Execute the order `mock` of a viewer; return the state. Raise UsageError."""
        assert self._steering is not None
        self._steering.order(fields)
        if self._options != self._steering.options:
            self._options = self._steering.options
            for client in self._clients:
                if isinstance(client.session, MockSession):
                    client.session.change(self._options)
        state = self._steering.state
        if self.note is not None and fields.keys() - {"n", "order"}:
            self.note({"did": "changed", **state})
        return {**state, "clients": len(self._clients)}

    async def close(self) -> None:
        self._is_read.set()
        await super().close()

    @property
    def _is_modern(self) -> bool:
        """True if a request of 2026-07-28 gets a response of the recording, or of the real server in its place."""
        return self._recordings.is_modern or self._options.forwards_all

    @property
    def is_stateless(self) -> bool:
        return self._recordings.is_modern and not self._recordings.handshakes("initialize")

    def _recorded(self, http_method: str, method: str, *, has_session: bool) -> HttpReply | None:
        if self._options.forwards_all:
            return None
        return self._recordings.http_reply(http_method, method, has_session=has_session)

    async def _wait_for_modern(self) -> None:
        if not self._is_modern and not self._recordings.is_whole:
            await self._is_read.wait()  # The recording may contain modern messages only at its end.

    def _sender(self, post: ParsedPost, message: Request) -> ServedClient:
        name = bytes(meta_raw(message.body.meta, META + "clientInfo")).decode("utf-8", "replace")
        name += post.request.headers.get("User-Agent", "")
        is_new = message.method == "server/discover"
        client = self._registry.find(name, message.id, post.request.peer, is_new=is_new)
        if client is None:
            client = self._new()
            for forgotten in self._registry.add(client, name, message.id, post.request.peer):
                self._end(forgotten)
        return client

    def _new(self, *, one_stream: bool = False) -> ServedClient:
        now, self._numbers = asyncio.get_running_loop().time(), self._numbers + 1
        session = MockSession(self._recordings, self._options, now, self._steering)
        if self._steering is None:
            self.selectors.append(session.selector)
        client = ServedClient(session, self._complain, self._real, one_stream=one_stream)
        client.number, client.note = self._numbers, self.note
        self._clients.add(client)
        return client

    def _end(self, client: ServedClient) -> None:
        super()._end(client)
        if self.note is not None:
            self.note({"did": "left", "client": client.number})


def endpoint(recordings: Recordings) -> str:
    """Return the path of the server: the recorded one, if it was recorded over HTTP with one endpoint."""
    path = urlsplit(recordings.upstream or "").path
    return path if path not in ("", "/", SSE) else ENDPOINT


async def serve(
    mock: Mock,
    listener: socket.socket,
    host: str,
    read_on: Callable[[], bool],
    in_front: Callable[[str], Front] | None = None,
) -> None:
    """Serve on a socket until SIGTERM or SIGINT. Raises what `read_on` raises if the recording contains no server.

    `in_front` takes the URL of the mock.
    """
    stop = asyncio.Event()
    stop_on_signals(lambda _: stop.set())
    own = origin(host, listener) + mock.path
    async with (
        accepting(mock.handle, listener),
        nullcontext(own) if in_front is None else in_front(own) as url,
    ):
        say(f"{url} plays {mock.name}")
        reading = asyncio.ensure_future(mock.read(read_on))
        stopping = asyncio.ensure_future(stop.wait())
        try:
            await asyncio.wait((reading, stopping), return_when=asyncio.FIRST_COMPLETED)
            if reading.done():
                await reading
            await stopping
        finally:
            reading.cancel()
            stopping.cancel()
            await mock.close()


@asynccontextmanager
async def serving(mock: Mock) -> AsyncIterator[str]:
    """Serve a mock on a free port of loopback while the context is open. Yield the URL."""
    with listening(LOOPBACK_HOST, 0, "") as listener:
        async with accepting(mock.handle, listener):
            try:
                yield origin(LOOPBACK_HOST, listener) + mock.path
            finally:
                await mock.close()
