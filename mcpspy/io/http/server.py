"""An HTTP/1.1 server on `asyncio.Protocol` and llhttp.

Handles heads, framing, flow control and the end of connections. llhttp is strict: it refuses what two parsers may
read in two ways (a body with two lengths, lines that end in LF alone, continued lines). Requests of one connection
are handled one after the other. A client that hangs up cancels the handler. Sources: RFC 9110 (semantics) and RFC 9112 (messages, 6: bodies, 9: connections).
"""

from __future__ import annotations

import asyncio
import socket
import time
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager
from http import HTTPStatus
from typing import Protocol, cast

import httptools
from multidict import CIMultiDict

from mcpspy.core.recording.encode import JsonText
from mcpspy.io.http.body_stream import BodyStream
from mcpspy.io.http.inline_task import InlineTask
from mcpspy.io.http.message_head import MAX_HEAD, KnownHeads, header_text
from mcpspy.io.network import listener as listeners
from mcpspy.io.recording.recorder import say

LINGER = 1.0
"""Seconds that a client has to read a response that came before the end of its request, until the connection ends."""

_REASONS = {status.value: status.phrase for status in HTTPStatus}


class StartedExchange(Protocol):
    """An exchange whose response is sent without a handler (`io.http.short_exchange`)."""

    def settle(self) -> None:
        """Continue with a handler: call `DownstreamConnection.continue_short`."""


class RequestHead:
    """The head of a request. Equal requests of a connection share it, so it is parsed once."""

    forwarded: bytes | None = None
    """The head that is sent to the server, with a body of this length."""
    recorded: JsonText | None = None
    """The headers in the recording."""
    is_accepted = False
    """True once its Host and Origin were checked."""
    begin: Callable[[DownstreamConnection, bytes], StartedExchange | None] | None = None
    """Begins a short exchange of a request with this head and a body, if it is one."""

    def __init__(
        self, method: str, target: str, headers: CIMultiDict[str], version: str, *, keeps_alive: bool
    ) -> None:
        self.method = method
        self.target = target
        """The target as it was sent; of an absolute one, the host has become the Host (RFC 9112, 3.2.2)."""
        self.headers = headers
        self.version = version
        self.keeps_alive = keeps_alive
        self.is_chunked = "Transfer-Encoding" in headers
        """True if the body has no length."""
        self.length = 0 if self.is_chunked else int(headers.get("Content-Length", 0))
        self.waits = headers.get("Expect", "").lower() == "100-continue"
        """True if the client waits for `100 Continue` before it sends the body."""


class HttpRequest:
    """A request, and the response to it."""

    def __init__(self, connection: DownstreamConnection, head: RequestHead) -> None:
        self.head = head
        self.method = head.method
        self.target = head.target
        self.headers = head.headers
        self.body = BodyStream(connection.transport)
        self.keeps_alive = head.keeps_alive
        self.has_started = False
        """True once there is a response."""
        self._connection = connection
        self._head = b""
        """The head of the response, until it is sent."""
        self._is_chunked = False
        self._has_body = True
        self.half_close: Callable[[], bool] | None = None
        """Passes on that the client sends nothing more. Returns False if the exchange has to end with that."""

    @property
    def peer(self) -> ClientAddress:
        """Return the address of the client."""
        return self._connection.peer

    @property
    def local_host(self) -> str:
        """Return the address of this machine to which the client has connected."""
        return str(self._connection.transport.get_extra_info("sockname")[0])

    @property
    def has_body(self) -> bool:
        """Return whether the request has a body, which may be empty only if it has no length."""
        return self.head.is_chunked or self.head.length > 0

    @property
    def is_writable(self) -> bool:
        """Return whether `write` would neither fail nor wait, because the client has read enough."""
        connection = self._connection
        return connection.is_drained and not connection.transport.is_closing()

    def accept_body(self) -> None:
        """Send `100 Continue` to a client that waits for it."""
        if self.head.waits and not self.body.has_data:
            self._connection.write(b"HTTP/1.1 100 Continue\r\n\r\n")

    def chunks(self) -> AsyncIterator[bytes]:
        """Yield the body as it arrives, after `100 Continue` for a client that waits for it."""
        self.accept_body()
        return self.body.chunks()

    def start(self, status: int, headers: Iterable[tuple[str, str]], body: bytes | None = None) -> None:
        """Send the head of the response, with the whole body if that is given."""
        names = dict(headers)
        if body is not None:
            names["Content-Length"] = str(len(body))
        names["Date"] = time.strftime("%a, %d %b %Y %H:%M:%S GMT", time.gmtime())
        self.prepare(status, _REASONS.get(status, ""), names.items(), has_length=body is not None)
        self.send(body or b"")

    def prepare(
        self, status: int, reason: str, headers: Iterable[tuple[str, str]], *, has_length: bool
    ) -> bytes:
        """Begin the response with these headers and those of this connection. Return its head, which `send` sends."""
        version = self.head.version
        lines = [f"HTTP/1.1 {status} {reason}"]
        lines += [f"{name}: {value}" for name, value in headers]
        self._has_body = self.method != "HEAD" and status >= 200 and status not in (204, 304)
        if self._has_body and not has_length:
            self._is_chunked = version == "1.1"
            if self._is_chunked:
                lines.append("Transfer-Encoding: chunked")
            else:
                self.keeps_alive = False
        if not self.keeps_alive:
            lines.append("Connection: close")
        elif version == "1.0":
            lines.append("Connection: keep-alive")
        lines.append("\r\n")
        self._head = "\r\n".join(lines).encode("utf-8", "surrogateescape")
        self.has_started = True
        return self._head

    def respond(self, head: bytes, body: bytes) -> None:
        """Send a whole response whose head `prepare` made before for an equal one."""
        self.has_started = True
        self._connection.write(head + body)

    def send(self, data: bytes = b"", *, is_last: bool = False) -> None:
        """Send a part of the body in one write, with what is not sent of the head."""
        head, self._head = self._head, b""
        if not self._has_body:
            data = b""
        elif self._is_chunked:
            if data:
                data = b"%x\r\n%b\r\n" % (len(data), data)
            if is_last:
                data += b"0\r\n\r\n"
        if head or data:
            self._connection.write(head + data if head and data else head or data)

    async def write(self, data: bytes) -> None:
        """Send a part of the body. Raises ConnectionResetError if the client has hung up."""
        self.send(data)
        await self._connection.drain()

    def finish(self) -> None:
        """Send the end of the body."""
        self.send(is_last=True)

    def hang_up(self, *, at_once: bool = False) -> None:
        """Close the connection; `at_once` without what is not sent yet."""
        transport = self._connection.transport
        (transport.abort if at_once else transport.close)()


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


Handler = Callable[[HttpRequest], Awaitable[Response | None]]
"""Returns a response, or None after it has sent one itself, from `HttpRequest.start` to its end."""


class ClientAddress(tuple[object, ...]):
    """The address of one connection. It equals no other: another client may connect from the same port later."""

    __slots__ = ()
    __eq__ = object.__eq__
    __ne__ = object.__ne__
    __hash__ = object.__hash__


class DownstreamConnection(asyncio.Protocol):
    """A connection of a client, and the requests on it that have no response yet."""

    transport: asyncio.Transport

    def __init__(self, handler: Handler, open_ones: set[DownstreamConnection]) -> None:
        self._handler = handler
        self._open_ones = open_ones
        self._parser = httptools.HttpRequestParser(self)
        self._known: KnownHeads[RequestHead] = KnownHeads()
        self._target = b""
        self._headers: list[tuple[bytes, bytes]] = []
        self._head_size = 0
        self._is_in_head = self._is_in_message = False
        self._requests: deque[HttpRequest] = deque()
        self._receiving: HttpRequest | None = None
        self.task: InlineTask[None] | None = None
        """The handling of the first request."""
        self._is_due = False
        """True if a request has arrived whose handling has not started."""
        self.short: StartedExchange | None = None
        """The exchange in progress, if it is a short one."""
        self._writable: asyncio.Future[None] | None = None
        self.is_drained = True
        """False while the client has to read before more is sent."""
        self._is_refusing = False
        self._is_lost = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast("asyncio.Transport", transport)
        self.peer = ClientAddress(transport.get_extra_info("peername") or ())
        self._open_ones.add(self)

    def connection_lost(self, exc: Exception | None) -> None:
        self.settle()
        self._is_lost = True
        self._open_ones.discard(self)
        self.resume_writing()
        for request in self._requests:
            request.body.end(ConnectionResetError("the client hung up"))
        if self.task is not None:
            self.task.cancel()
        # Otherwise the connection is freed only by the cycle collector, after hundreds of others.
        self._receiving = None
        del self._parser
        for head in self._known.heads():
            head.begin = None

    def pause_writing(self) -> None:
        self.is_drained = False
        self._writable = asyncio.get_running_loop().create_future()

    def resume_writing(self) -> None:
        self.is_drained = True
        if self._writable is not None and not self._writable.done():
            self._writable.set_result(None)
        self._writable = None

    async def drain(self) -> None:
        """Wait until the client has read enough. Raises ConnectionResetError if it has hung up."""
        if self._writable is not None:
            await asyncio.shield(self._writable)
        if self._is_lost or self.transport.is_closing():
            raise ConnectionResetError("the client hung up")

    def write(self, data: bytes) -> None:
        """Send bytes. Raises ConnectionResetError if the client has hung up."""
        if self._is_lost or self.transport.is_closing():
            raise ConnectionResetError("the client hung up")
        self.transport.write(data)

    def data_received(self, data: bytes) -> None:
        if self._is_refusing:
            return
        self.settle()
        is_between = not self._requests and not self._is_in_message
        if is_between and (known := self._known.split(data)) is not None:
            self._take_whole(*known)
            return
        packet = data
        try:
            while data:
                try:
                    self._parser.feed_data(data)
                    break
                except httptools.HttpParserUpgrade as upgrade:
                    data = b"" if self._is_refusing else self._without_upgrade() + data[upgrade.args[0] :]
        except httptools.HttpParserCallbackError as error:
            raise error.__context__ or error from None
        except httptools.HttpParserError as error:
            self._refuse(400, f"not HTTP/1.1: {error}")
            return
        if is_between and not self._is_in_message and len(self._requests) == 1:
            head = self._requests[0].head
            if not (head.is_chunked or head.waits):
                self._known.add(packet, head, head.length)
        if self._is_due:
            self._start()
        elif self._requests:
            self._requests[0].body.flush()
        if self._is_in_head:  # A part of a line is in no header yet.
            self._head_size += len(data)
            if self._head_size > 4 * MAX_HEAD:
                self._refuse_long_head()

    def _take_whole(self, head: RequestHead, body: bytes) -> None:
        """Take a request whose head is known, so that nothing is left to parse."""
        if head.begin is not None and not self.transport.is_closing():
            self.short = head.begin(self, body)
            if self.short is not None:
                return
        request = self._receiving = HttpRequest(self, head)
        if body:
            request.body.feed(body)
        request.body.end()
        self._requests.append(request)
        self._start()

    def eof_received(self) -> bool:
        """Keep the connection for the response if the server gets the same end of the client's sending side.

        Only the server can tell whether the client has hung up, or waits for the response.
        """
        self.settle()
        if len(self._requests) != 1 or self._is_in_message or self.transport.get_extra_info("ssl_object"):
            return False
        request = self._requests[0]
        if request.half_close is None or not request.half_close():
            return False
        request.keeps_alive = False
        return True

    def settle(self) -> None:
        """Continue a short exchange as any other one, because more than its response is to be handled."""
        if self.short is not None:
            self.short.settle()

    def end_short(self, response: bytes) -> None:
        """Send the response that ends a short exchange."""
        self.short = None
        if not self.transport.is_closing():
            self.transport.write(response)

    def continue_short(self, head: RequestHead, handler: Handler) -> None:
        """Continue a short exchange, whose request was sent, with a handler."""
        self.short = None
        request = HttpRequest(self, head)
        request.body.end()
        self._requests.append(request)
        task = InlineTask(self._handle(request, handler))
        self.task = None if task.done() else task

    def on_message_begin(self) -> None:
        self._target, self._headers, self._head_size = b"", [], 0
        self._receiving, self._is_in_head, self._is_in_message = None, True, True

    def on_url(self, url: bytes) -> None:
        self._target += url

    def on_header(self, name: bytes, value: bytes) -> None:
        self._headers.append((name, value))
        self._head_size += len(name) + len(value)

    def on_headers_complete(self) -> None:
        if self._is_refusing:
            return
        self._is_in_head = False
        if self._head_size + len(self._target) > MAX_HEAD:
            self._refuse_long_head()
            return
        if self._parser.should_upgrade() and self._parser.get_method() != b"CONNECT":
            return
        headers = CIMultiDict((header_text(name), header_text(value)) for name, value in self._headers)
        method, target = self._parser.get_method().decode(), header_text(self._target)
        if method == "CONNECT":
            self._refuse(405, "CONNECT is for forward proxies")
            return
        if self._parser.get_http_version() == "0.9":  # To llhttp, LF ends a target, and a header follows.
            self._refuse(400, "the request line has no version")
            return
        if len(headers.getall("Host", ())) > 1:
            self._refuse(400, "there is more than one Host")
            return
        if not target.startswith(("/", "*")):
            headers["Host"], _, path = target.partition("://")[2].partition("/")
            target = "/" + path
        head = RequestHead(
            method,
            target,
            headers,
            self._parser.get_http_version(),
            keeps_alive=self._parser.should_keep_alive(),
        )
        request = self._receiving = HttpRequest(self, head)
        self._requests.append(request)
        if len(self._requests) == 1:
            self._is_due = True  # Starts with as much of the body as has arrived.
        else:
            self.transport.pause_reading()

    def on_body(self, piece: bytes) -> None:
        if self._receiving is not None and self._receiving in self._requests:
            self._receiving.body.feed(piece)

    def on_message_complete(self) -> None:
        self._is_in_message = False
        if self._receiving is not None:
            self._receiving.body.end()
            if self._receiving not in self._requests and not self._receiving.keeps_alive:
                self.transport.close()

    def _without_upgrade(self) -> bytes:
        """Return the head again without its offer to upgrade, which a server may ignore (RFC 9110, 7.8)."""
        lines = [b"%b %b HTTP/1.1" % (self._parser.get_method(), self._target)]
        lines += [b"%b: %b" % header for header in self._headers if header[0].lower() != b"upgrade"]
        self._parser = httptools.HttpRequestParser(self)
        return b"\r\n".join((*lines, b"", b""))

    def _start(self) -> None:
        self._is_due = False
        if not self._is_lost:
            task = InlineTask(self._handle(self._requests[0], self._handler))
            self.task = None if task.done() else task

    async def _handle(self, request: HttpRequest, handler: Handler) -> None:
        try:
            response = await handler(request)
            if response is not None:
                request.start(response.status, response.headers.items(), response.body)
        except ConnectionError:  # The client hung up, or its request is refused.
            (self.transport.close if self._is_refusing else self.transport.abort)()
        except Exception as error:
            say(f"a bug in mcpspy: {type(error).__name__}: {str(error)!a}")
            if request.has_started:
                self.transport.abort()
            else:
                request.start(500, (), b"")
        except asyncio.CancelledError:
            self.transport.abort()
            self._requests.clear()
            raise
        self.task = None
        self._requests.popleft()
        if not request.body.is_over:
            self._discard_rest(request)
        elif not request.keeps_alive:
            self.transport.close()
        elif self._requests and not self._is_lost and not self.transport.is_closing():
            asyncio.get_running_loop().call_soon(self._start)
            if len(self._requests) == 1:
                self.transport.resume_reading()

    def _discard_rest(self, request: HttpRequest) -> None:
        """Read and drop the rest of a body after the response, only a moment if the connection ends with it.

        If it were closed at once, the client could lose the response (RFC 9112, 9.6).
        """
        request.body.discard()
        if not (request.keeps_alive or self.transport.is_closing()):
            if not self.transport.get_extra_info("ssl_object"):
                self.transport.write_eof()
            asyncio.get_running_loop().call_later(LINGER, self.transport.close)

    def _refuse_long_head(self) -> None:
        self._refuse(431, f"the head of the request exceeds {MAX_HEAD} bytes")

    def _refuse(self, status: int, why: str) -> None:
        """Refuse a request that cannot be read, and those after it."""
        self._is_refusing = True
        requests = self._requests
        if requests and (len(requests) > 1 or requests[0] is not self._receiving or requests[0].has_started):
            self.transport.abort()  # A response to this one would be taken for that of an earlier request.
        else:
            self._send_refusal(status, why)
        for request in requests:
            request.body.end(ConnectionResetError(why))
        if self._is_due:
            self._start()
        elif requests:
            requests[0].body.flush()

    def _send_refusal(self, status: int, why: str) -> None:
        body = f"{status} {_REASONS[status]}: {why}\n".encode()
        head = f"HTTP/1.1 {status} {_REASONS[status]}\r\nContent-Type: text/plain; charset=utf-8\r\n"
        head += f"Content-Length: {len(body)}\r\nConnection: close\r\n\r\n"
        self.transport.write(head.encode() + body)
        self.transport.close()


@asynccontextmanager
async def accepting(handler: Handler, listener: socket.socket) -> AsyncIterator[None]:
    """Serve requests with a handler while the context is open. A client that hangs up cancels the handler."""
    open_ones: set[DownstreamConnection] = set()
    loop = asyncio.get_running_loop()
    is_unix = listener.family == getattr(socket, "AF_UNIX", None)
    create = loop.create_unix_server if is_unix else loop.create_server
    server = await create(lambda: DownstreamConnection(handler, open_ones), sock=listener, backlog=1024)
    try:
        yield
    finally:
        server.close()
        for connection in open_ones:
            loop.call_soon(connection.settle)  # Not in this task, or it would only start later.
        await asyncio.sleep(0)
        await _wait(open_ones)
        for connection in open_ones:
            if connection.task is not None:
                connection.task.cancel()
        await _wait(open_ones)
        for connection in tuple(open_ones):
            connection.transport.abort()
        await asyncio.sleep(0)  # The transports close in the next iteration of the loop.


async def _wait(connections: Iterable[DownstreamConnection]) -> None:
    """Wait for the current handlers, not longer than the grace period."""
    tasks = [connection.task for connection in connections if connection.task is not None]
    if tasks:
        await asyncio.wait(tasks, timeout=listeners.GRACE)
