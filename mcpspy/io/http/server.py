"""An HTTP/1.1 server on `asyncio.Protocol` and llhttp.

Handles heads, framing, flow control and the end of connections. llhttp is strict: it refuses what two parsers may
read in two ways (a body with two lengths, lines that end in LF alone, continued lines). Requests of one connection
are handled one after the other (`io.http.request`). A client that hangs up ends the handling. Sources: RFC 9110
(semantics) and RFC 9112 (messages, 6: bodies, 9: connections).
"""

from __future__ import annotations

import asyncio
import socket
import sys
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterable
from contextlib import asynccontextmanager
from typing import Any, cast

import httptools
from multidict import CIMultiDict

from mcpspy.core.exchange.heads import MAX_HEAD, MAX_KNOWN, REASONS, KnownHeads, RequestHead, header_text
from mcpspy.core.exchange.states import Reading, read_on
from mcpspy.io.http.request import ClientAddress, ClientConnection, Handler, HttpRequest, Response
from mcpspy.io.network import listener as listeners
from mcpspy.io.recording.recorder import say

LINGER = 1.0
"""Seconds that a client has to read a response that came before the end of its request, until the connection ends."""


_BETWEEN = Reading.BETWEEN


class DownstreamConnection(asyncio.Protocol):
    """A connection of a client, and the requests on it that have no response yet."""

    transport: asyncio.Transport
    task: asyncio.Task[None] | None = None
    """The coroutine that handles the first request."""

    def __init__(self, handler: Handler, open_ones: set[DownstreamConnection]) -> None:
        self._handler = handler
        self._open_ones = open_ones
        self._parser = httptools.HttpRequestParser(self)
        self._reading = Reading.BETWEEN
        self._known: KnownHeads[RequestHead] = KnownHeads()
        self._callbacks: dict[RequestHead, Callable[[ClientConnection], HttpRequest]] = {}
        """The functions that make requests with a known head, which take callbacks, in place of the handler."""
        self._target = b""
        self._headers: list[tuple[bytes, bytes]] = []
        self._head_size = 0
        self._requests: deque[HttpRequest] = deque()
        self._receiving: HttpRequest | None = None
        self._is_due = False
        """True if a request has arrived whose handling has not started."""
        self._writable: asyncio.Future[None] | None = None
        """Done when the client has read enough; None while it has."""
        self._idle: asyncio.Future[None] | None = None
        """Done when the last request was handled, if someone waits for that."""

    def remember(self, head: RequestHead, make: Callable[[ClientConnection], HttpRequest]) -> None:
        """Let the next requests with an equal head be made by this function."""
        if len(self._callbacks) == MAX_KNOWN:
            self._callbacks.clear()
        self._callbacks[head] = make

    def hand_over(self, request: HttpRequest, other: HttpRequest) -> None:
        """Let another object take the place of the first request. It gets what has arrived, even if that is nothing."""
        other.is_over, other.keeps_alive = request.is_over, request.keeps_alive
        if self._requests and self._requests[0] is request:
            self._requests[0] = other
        if self._receiving is request:
            self._receiving = other
        other.request_data(request.body.discard(), request.is_over)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast("asyncio.Transport", transport)
        self.peer = ClientAddress(transport.get_extra_info("peername") or ())
        self._open_ones.add(self)

    def connection_lost(self, exc: Exception | None) -> None:
        self._reading = Reading.LOST
        self._open_ones.discard(self)
        self.resume_writing()
        self.cancel()
        self._requests.clear()
        self._settle()
        # Otherwise the connection is freed only by the cycle collector, after hundreds of others.
        self._receiving = None
        del self._parser

    def cancel(self) -> None:
        """End the handling of the first request."""
        if self._requests:
            self._requests[0].client_gone()
        elif self.task is not None:
            self.task.cancel()

    def give_up(self) -> None:
        """Close the connection of a client that is lost; one whose request is refused may read the refusal."""
        (self.transport.close if self._is_refusing else self.transport.abort)()

    @property
    def _is_refusing(self) -> bool:
        return self._reading is Reading.REFUSED

    @property
    def is_idle(self) -> bool:
        return not self._requests and self.task is None

    def when_idle(self) -> asyncio.Future[None]:
        """Return a future that is done when no request is handled."""
        if self._idle is None:
            self._idle = asyncio.get_running_loop().create_future()
            self._settle()
        return self._idle

    def _settle(self) -> None:
        if self._idle is not None and self.is_idle and not self._idle.done():
            self._idle.set_result(None)

    def pause_writing(self) -> None:
        self._writable = asyncio.get_running_loop().create_future()
        self._let_wait(is_paused=True)

    def resume_writing(self) -> None:
        writable, self._writable = self._writable, None
        if writable is not None and not writable.done():
            writable.set_result(None)
            self._let_wait(is_paused=False)

    def _let_wait(self, *, is_paused: bool) -> None:
        if self._requests:
            self._requests[0].client_waits(is_paused=is_paused)

    def pause_reading(self, *, is_paused: bool) -> None:
        """Read nothing more from the client, or continue, unless a second request waits."""
        if self.transport.is_closing():
            return
        if is_paused:
            self.transport.pause_reading()
        elif len(self._requests) <= 1:
            self.transport.resume_reading()

    async def drain(self) -> None:
        """Wait until the client has read enough. Raises ConnectionResetError if it has hung up."""
        if self._writable is not None:
            await asyncio.shield(self._writable)
        if self._reading is Reading.LOST or self.transport.is_closing():
            raise ConnectionResetError("the client hung up")

    def write(self, data: bytes) -> None:
        """Send bytes. Raises ConnectionResetError if the client has hung up."""
        if self._reading is Reading.LOST or self.transport.is_closing():
            raise ConnectionResetError("the client hung up")
        self.transport.write(data)

    def data_received(self, data: bytes) -> None:
        is_between = self._reading is _BETWEEN and not self._requests
        if is_between and (known := self._known.split(data)) is not None:
            head, body = known
            self._take_whole(head, body)
            return
        if self._is_refusing:
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
        if is_between and self._reading is Reading.BETWEEN and len(self._requests) == 1:
            head = self._requests[0].head
            if not (head.is_chunked or head.waits):
                self._known.add(packet, head, head.length)
        if self._is_due:
            self._start()
        elif self._requests and self._requests[0] is self._receiving:
            self._flush(self._requests[0])
        if self._reading is Reading.HEAD:  # A part of a line is in no header yet.
            self._head_size += len(data)
            if self._head_size > 4 * MAX_HEAD:
                self._refuse_long_head()

    def _take_whole(self, head: RequestHead, body: bytes) -> None:
        """Take a request whose head is known, so that nothing is left to parse."""
        make = self._callbacks.get(head)
        request = HttpRequest(self, head) if make is None else make(self)
        request.is_over = True
        self._requests.append(request)
        if make is not None:
            request.request_data(body, True)
        else:
            request.arrived.append(body)
            self._begin(request)

    def _flush(self, request: HttpRequest) -> None:
        """Give what has arrived to the request, which is the first one."""
        arrived, request.arrived = request.arrived, []
        if arrived or request.is_over:
            request.request_data(arrived[0] if len(arrived) == 1 else b"".join(arrived), request.is_over)

    def eof_received(self) -> bool:
        """Keep the connection for the response if the server gets the same end of the client's sending side.

        Only the server can tell whether the client has hung up, or waits for the response.
        """
        is_between = self._reading is Reading.BETWEEN
        if len(self._requests) != 1 or not is_between or self.transport.get_extra_info("ssl_object"):
            return False
        return self._requests[0].half_close()

    def on_message_begin(self) -> None:
        self._target, self._headers, self._head_size = b"", [], 0
        self._receiving = None
        self._reading = read_on(self._reading, "begin")

    def on_url(self, url: bytes) -> None:
        self._target += url

    def on_header(self, name: bytes, value: bytes) -> None:
        self._headers.append((name, value))
        self._head_size += len(name) + len(value)

    def on_headers_complete(self) -> None:
        if self._reading is Reading.REFUSED:
            return
        self._reading = read_on(self._reading, "head")
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
            self._receiving.arrived.append(piece)

    def on_message_complete(self) -> None:
        self._reading = read_on(self._reading, "end")
        if self._receiving is not None:
            self._receiving.is_over = True
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
        if self._reading is not Reading.LOST and self._requests:
            self._begin(self._requests[0])

    def _begin(self, request: HttpRequest) -> None:
        self._flush(request)
        try:
            result = self._handler(request)
        except Exception as error:
            self._fail(request, error)
            return
        if isinstance(result, Response):
            self.respond(request, result)
        elif result is not None:
            self.task = _task(self._handle(request, result))
            if self.task.done():
                self.task = None

    async def _handle(self, request: HttpRequest, work: Awaitable[Response | None]) -> None:
        try:
            response = await work
        except ConnectionError:  # The client hung up, or its request is refused.
            self.give_up()
        except Exception as error:
            self._fail(request, error)
            return
        except asyncio.CancelledError:
            self.transport.abort()
            self._requests.clear()
            raise
        else:
            if response is not None:
                self.respond(request, response)
                return
        finally:
            self.task = None
            self._settle()
        self.end(request)

    def respond(self, request: HttpRequest, response: Response) -> None:
        """Send a response, the last of what is sent for a request."""
        if not self.transport.is_closing():
            request.start(response.status, response.headers.items(), response.body)
        self.end(request)

    def _fail(self, request: HttpRequest, error: Exception) -> None:
        """Handle a bug in what handles a request."""
        say(f"a bug in mcpspy: {type(error).__name__}: {str(error)!a}")
        if request.has_started or self.transport.is_closing():
            self.transport.abort()
            self.end(request)
        else:
            self.respond(request, Response(500))

    def end(self, request: HttpRequest) -> None:
        """Handle the end of a request's handling, which is the first one."""
        if (
            not self._requests or self._requests[0] is not request
        ):  # The connection is lost, or another has its place.
            return
        self._requests.popleft()
        if request.is_over and self._receiving is request:  # An idle connection keeps nothing of an exchange.
            self._receiving = None
        if self._idle is not None:
            self._settle()
        if not request.is_over:
            self._discard_rest(request)
        elif not request.keeps_alive:
            self.transport.close()
        elif self._requests and not self.transport.is_closing():
            asyncio.get_running_loop().call_soon(self._start)
            if len(self._requests) == 1:
                self.transport.resume_reading()

    def _discard_rest(self, request: HttpRequest) -> None:
        """Read and drop the rest of a body after the response, only a moment if the connection ends with it.

        If it were closed at once, the client could lose the response (RFC 9112, 9.6).
        """
        request.arrived.clear()
        if self.transport.is_closing():
            return
        self.transport.resume_reading()
        if not request.keeps_alive:
            if not self.transport.get_extra_info("ssl_object"):
                self.transport.write_eof()
            asyncio.get_running_loop().call_later(LINGER, self.transport.close)

    def _refuse_long_head(self) -> None:
        self._refuse(431, f"the head of the request exceeds {MAX_HEAD} bytes")

    def _refuse(self, status: int, why: str) -> None:
        """Refuse a request that cannot be read, and those after it."""
        self._reading = Reading.REFUSED
        requests = self._requests
        if requests and (len(requests) > 1 or requests[0] is not self._receiving or requests[0].has_started):
            self.transport.abort()  # A response to this one would be taken for that of an earlier request.
        else:
            self._send_refusal(status, why)
        if not requests or self._is_due:
            return
        requests[0].break_off(why)

    def _send_refusal(self, status: int, why: str) -> None:
        body = f"{status} {REASONS[status]}: {why}\n".encode()
        head = f"HTTP/1.1 {status} {REASONS[status]}\r\nContent-Type: text/plain; charset=utf-8\r\n"
        head += f"Content-Length: {len(body)}\r\nConnection: close\r\n\r\n"
        self.transport.write(head.encode() + body)
        self.transport.close()


def _task(work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
    """Return a task that has started, where Python can do that."""
    loop = asyncio.get_running_loop()
    if sys.version_info >= (3, 12):
        return asyncio.Task(work, loop=loop, eager_start=True)
    return loop.create_task(work)


@asynccontextmanager
async def accepting(handler: Handler, listener: socket.socket) -> AsyncIterator[None]:
    """Serve requests with a handler while the context is open. A client that hangs up ends the handling."""
    open_ones: set[DownstreamConnection] = set()
    loop = asyncio.get_running_loop()
    is_unix = listener.family == getattr(socket, "AF_UNIX", None)
    create = loop.create_unix_server if is_unix else loop.create_server
    server = await create(lambda: DownstreamConnection(handler, open_ones), sock=listener, backlog=1024)
    try:
        yield
    finally:
        server.close()
        await _wait(open_ones)
        for connection in tuple(open_ones):
            connection.cancel()
        await _wait(open_ones)
        for connection in tuple(open_ones):
            connection.transport.abort()
        await asyncio.sleep(0)  # The transports close in the next iteration of the loop.


async def _wait(connections: Iterable[DownstreamConnection]) -> None:
    """Wait for the requests in progress, not longer than the grace period."""
    ends = [connection.when_idle() for connection in connections if not connection.is_idle]
    if ends:
        await asyncio.wait(ends, timeout=listeners.GRACE)
