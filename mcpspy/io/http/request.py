"""A request of a client, and the response to it.

`HttpRequest` is handled by a coroutine; a subclass takes what arrives in callbacks. Sources: RFC 9110 (semantics) and
RFC 9112 (messages).
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from typing import Protocol, TypeAlias, cast

from multidict import CIMultiDict

from mcpspy.core.exchange.heads import REASONS, ClientHead, RequestHead, client_head

BUFFERED = 1 << 18
"""Bytes of a body that wait for their reader, above which the sender is paused."""


class BodyStream:
    """The pieces of a body, for one reader. The connection calls `feed` and `end`, then `flush`."""

    def __init__(self, transport: asyncio.Transport) -> None:
        self._transport = transport
        self._pieces: list[bytes] = []
        self.size = 0
        """Bytes that wait for the reader."""
        self.is_paused = False
        self._error: Exception | None = None
        self._waiting: asyncio.Future[None] | None = None
        self.is_over = False
        """True once the last byte has arrived, or the sender has hung up."""

    @property
    def has_data(self) -> bool:
        """Return whether `next` would return at once."""
        return self.is_over or bool(self._pieces)

    def feed(self, piece: bytes) -> None:
        self._pieces.append(piece)
        self.size += len(piece)
        if self.size > BUFFERED and not self.is_paused:
            self.is_paused = True
            self._transport.pause_reading()

    def end(self, error: Exception | None = None) -> None:
        """Take the end; with an error if the sender hung up before it."""
        if not self.is_over:
            self.is_over, self._error = True, error

    def flush(self) -> None:
        """Wake the reader if there is something to read."""
        if self._waiting is not None and self.has_data:
            if not self._waiting.done():
                self._waiting.set_result(None)
            self._waiting = None

    async def _wait(self) -> None:
        self._waiting = asyncio.get_running_loop().create_future()
        await self._waiting

    async def preview(self, limit: int) -> bytes:
        """Return the body, or what has arrived of it above the limit, and leave it to be read."""
        while not self.is_over and self.size <= limit:
            await self._wait()
        return b"".join(self._pieces)

    async def next(self) -> bytes | None:
        """Return what has arrived; None at the end. Raises the error that ended the body."""
        if not self.has_data:
            await self._wait()
        if self._pieces:
            return self.discard()
        if self._error is not None:
            raise self._error
        return None

    def discard(self) -> bytes:
        """Return what has arrived, and let the sender continue."""
        pieces, self._pieces, self.size = self._pieces, [], 0
        if self.is_paused:
            self.is_paused = False
            if not self._transport.is_closing():
                self._transport.resume_reading()
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)

    async def chunks(self) -> AsyncIterator[bytes]:
        """Yield the pieces that have arrived. Raises the error that ended the body."""
        while (piece := await self.next()) is not None:
            yield piece


class ClientAddress(tuple[object, ...]):
    """The address of one connection. It equals no other: another client may connect from the same port later."""

    __slots__ = ()
    __eq__ = object.__eq__
    __ne__ = object.__ne__
    __hash__ = object.__hash__


class ClientConnection(Protocol):
    """The connection of a client, as its requests use it."""

    transport: asyncio.Transport
    peer: ClientAddress
    task: asyncio.Task[None] | None
    """The coroutine that handles the first request."""

    def write(self, data: bytes) -> None: ...
    async def drain(self) -> None: ...
    def remember(self, head: RequestHead, make: Callable[[ClientConnection], HttpRequest]) -> None: ...
    def hand_over(self, request: HttpRequest, other: HttpRequest) -> None: ...
    def pause_reading(self, *, is_paused: bool) -> None: ...
    def respond(self, request: HttpRequest, response: Response) -> None: ...
    def end(self, request: HttpRequest) -> None: ...
    def give_up(self) -> None: ...


class HttpRequest:
    """A request that a coroutine handles, and the response to it."""

    _client_head = ClientHead(b"", False, True, True)
    _unsent = b""
    """The head of the response, until it is sent."""

    def __init__(self, connection: ClientConnection, head: RequestHead) -> None:
        self.connection = connection
        self.head = head
        self.target = head.target
        self.keeps_alive = head.keeps_alive
        self.has_started = False
        """True once there is a response."""
        self.is_over = False
        """True once the whole request has arrived."""
        self.arrived: list[bytes] = []
        """Parts of the body for the next `request_data`."""
        self.body = BodyStream(connection.transport)
        """The body, for a coroutine."""

    @property
    def method(self) -> str:
        return self.head.method

    @property
    def headers(self) -> CIMultiDict[str]:
        return cast("CIMultiDict[str]", self.head.headers)

    @property
    def peer(self) -> ClientAddress:
        """Return the address of the client."""
        return self.connection.peer

    @property
    def local_host(self) -> str:
        """Return the address of this machine to which the client has connected."""
        return str(self.connection.transport.get_extra_info("sockname")[0])

    # Calls of the connection.

    def request_data(self, data: bytes, is_last: bool) -> None:
        """Take a part of the body."""
        if data:
            self.body.feed(data)
        if is_last:
            self.body.end()
        self.body.flush()

    def client_gone(self) -> None:
        """Take the loss of the client, or the end of the server."""
        self.body.end(ConnectionResetError("the client hung up"))
        if self.connection.task is not None:
            self.connection.task.cancel()

    def break_off(self, why: str) -> None:
        """Take that the rest of the request cannot be read."""
        self.body.end(ConnectionResetError(why))
        self.body.flush()

    def half_close(self) -> bool:
        """Pass on that the client sends nothing more. Return False if the exchange has to end with that."""
        return False

    def client_waits(self, *, is_paused: bool) -> None:
        """Send no more until the client has read, or continue; a coroutine waits in `write`."""

    # Calls of a coroutine.

    def accept_body(self) -> None:
        """Send `100 Continue` to a client that waits for it."""
        if self.head.waits and not self.body.has_data:
            self.send_continue()

    def send_continue(self) -> None:
        self.connection.write(b"HTTP/1.1 100 Continue\r\n\r\n")

    def chunks(self) -> AsyncIterator[bytes]:
        """Yield the body as it arrives, after `100 Continue` for a client that waits for it."""
        self.accept_body()
        return self.body.chunks()

    def start(self, status: int, headers: Iterable[tuple[str, str]], body: bytes | None = None) -> None:
        """Send the head of the response, with the whole body if that is given."""
        names = dict(headers)
        if body is not None and status != 204:  # It has no body, and may not state a length (RFC 9110, 8.6).
            names["Content-Length"] = str(len(body))
        names["Date"] = time.strftime("%a, %d %b %Y %H:%M:%S GMT", time.gmtime())
        self._client_head = client_head(
            self.head, status, REASONS.get(status, ""), names.items(),
            has_length=body is not None, keeps_alive=self.keeps_alive,
        )  # fmt: skip
        self._unsent, self.keeps_alive = self._client_head.data, self._client_head.keeps_alive
        self.has_started = True
        self._send(body or b"")

    def _send(self, data: bytes = b"", *, is_last: bool = False) -> None:
        """Send a part of the body in one write, with what is not sent of the head."""
        unsent, self._unsent = self._unsent, b""
        if data := unsent + self._client_head.framed(data, is_last=is_last):
            self.connection.write(data)

    async def write(self, data: bytes) -> None:
        """Send a part of the body. Raises ConnectionResetError if the client has hung up."""
        self._send(data)
        await self.connection.drain()

    def send_end(self) -> None:
        """Send the end of the body."""
        self._send(is_last=True)


class Response:
    """A response whose body is known."""

    def __init__(
        self,
        status: int = 200,
        body: bytes = b"",
        content_type: str | None = None,
        headers: dict[str, str] | None = None,
    ) -> None:
        self.status = status
        self.body = body
        self.headers = dict(headers or {})
        if content_type is not None:
            self.headers["Content-Type"] = content_type


Handler: TypeAlias = Callable[[HttpRequest], Awaitable[Response | None] | Response | None]
"""Returns a response, or None after another request has taken its place (`DownstreamConnection.hand_over`).

A coroutine may also return None after it has sent a response itself, from `HttpRequest.start` to its end.
"""
