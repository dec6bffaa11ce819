"""A coroutine that asks over a connection to a server, and reads the response while it arrives."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import TypeAlias

from mcpspy.core.exchange.heads import ResponseHead
from mcpspy.io.http.request import BodyStream
from mcpspy.io.http.upstream import UpstreamClient
from mcpspy.io.http.upstream_connection import UpstreamConnection, UpstreamError

Body: TypeAlias = bytes | AsyncIterator[bytes] | None


class Response:
    """A response whose head has arrived. It is also what the connection gives it to."""

    def __init__(self, connection: UpstreamConnection, early: Callable[[], None] | None) -> None:
        self._connection = connection
        self._early = early
        self._arrived: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._drained = asyncio.Event()
        self._drained.set()
        self.body = BodyStream(connection.transport)
        self.is_paused = False

    @property
    def status(self) -> int:
        return self.head.status

    @property
    def headers(self) -> list[tuple[str, str]]:
        return self.head.headers

    async def sent(self, method: str, head: bytes, body: Body) -> Response:
        """Send a request. Return when the head of the response has arrived. Raises UpstreamError."""
        is_whole = body is None or isinstance(body, bytes)
        first = body if isinstance(body, bytes) else b""
        self._connection.ask(self, method, head, first, is_last=is_whole)
        if body is not None and not isinstance(body, bytes):
            async for piece in body:
                if self._arrived.done():
                    break
                self._connection.send(piece, is_last=False)
                await self._drained.wait()
            else:
                if not self._arrived.done():
                    self._connection.send(b"", is_last=True)
        await self._arrived
        return self

    def close(self) -> None:
        """Give up what has not arrived."""
        if not self.body.is_over:
            self._connection.abandon()

    def response_begins(self, head: ResponseHead, data: bytes, keeps_alive: bool, is_last: bool) -> None:
        self.head = head
        if not self._arrived.done():
            self._arrived.set_result(None)
        self._drained.set()
        if self._early is not None:
            self._early()
        self.response_data(data, is_last)

    def response_data(self, data: bytes, is_last: bool) -> None:
        if data:
            self.body.feed(data)
        if is_last:
            self.body.end()
        self.body.flush()

    def server_gone(self, error: UpstreamError) -> None:
        if not self._arrived.done():
            self._arrived.set_exception(error)
        self._drained.set()
        self.body.end(error)
        self.body.flush()

    def server_waits(self, *, is_paused: bool) -> None:
        (self._drained.clear if is_paused else self._drained.set)()


async def ask(
    connection: UpstreamConnection,
    method: str,
    head: bytes,
    body: Body,
    early: Callable[[], None] | None = None,
) -> Response:
    """Return the response to a request. `early` is called when it begins. Raises UpstreamError."""
    return await Response(connection, early).sent(method, head, body)


async def send(
    client: UpstreamClient, method: str, head: bytes, body: Body, early: Callable[[], None] | None = None
) -> Response:
    """Ask over an idle connection of a client, or a new one."""
    return await ask(client.take() or await client.connect(), method, head, body, early)


def head_of(
    client: UpstreamClient, method: str, target: str, headers: list[tuple[str, str]], body: Body
) -> bytes:
    """Return the head of a request with this body."""
    known = body if isinstance(body, bytes) else None
    return client.head(method, target, headers, known, has_body=body is not None)
