"""A connection to the server behind the proxy, on `asyncio.Protocol` and llhttp.

It carries one request at a time, and parses the response. Source of the framing: RFC 9112, 6.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Protocol, cast

import httptools

from mcpspy.core.protocol.http_headers import Headers
from mcpspy.core.recording.encode import JsonText
from mcpspy.core.recording.encode_body import END_OF_CHUNK, LAST_CHUNK, REST
from mcpspy.io.http.body_stream import BodyStream
from mcpspy.io.http.inline_task import Wakeup
from mcpspy.io.http.message_head import MAX_HEAD, KnownHeads, header_text
from mcpspy.io.network.outgoing import reason

HEAD_WAIT = 0.001
"""Seconds that the head of a response waits for the beginning of its body, to be sent in one packet with it."""

CHUNKED = b"Transfer-Encoding: chunked\r\n\r\n"
"""The end of the head of a request without a length."""

CLOSED = "the server closed the connection"

Body = bytes | AsyncIterator[bytes] | None


class UpstreamError(Exception):
    """The server cannot be reached, or did not send a whole response. The text is the reason, redacted."""


class ResponseReceiver(Protocol):
    """An exchange that gets a whole response without a coroutine (`io.http.short_exchange`)."""

    def respond(self, head: ResponseHead, body: bytes) -> bool:
        """Take a response. Return False, before anything, if it is not short."""

    def fall_back(self) -> None:
        """Start a coroutine that awaits `UpstreamConnection.response`."""


class ResponseHead:
    """The head of a response. Equal responses of a connection share it, so it is parsed once."""

    recorded: JsonText | None = None
    """The headers in the recording."""
    is_ordinary = False
    """True if a response with this head is only recorded and forwarded."""

    def __init__(self, status: int, reason: str, headers: Headers) -> None:
        self.status = status
        self.reason = reason
        self.headers = headers
        self.forwarded: dict[object, bytes] = {}
        """The head that is sent to a client, by what it depends on."""
        self.named = {name.lower(): value for name, value in reversed(headers)}
        """The first value of each header, by its name in lower case."""
        kind = self.named.get("content-type", "")
        self.content_type = kind.partition(";")[0].strip().lower()
        """The media type in lower case, without parameters."""
        self.length = self.named.get("content-length")

    @property
    def is_delimited(self) -> bool:
        """Return whether the end of the connection is not the end of the body."""
        return self.length is not None or "transfer-encoding" in self.named


class UpstreamResponse:
    """A response, whose body may still arrive."""

    def __init__(self, connection: UpstreamConnection, head: ResponseHead) -> None:
        self.head = head
        self.status = head.status
        self.headers = head.headers
        self.content_type = head.content_type
        self.body = BodyStream(connection.transport)
        self.keeps_alive = True
        """False if the server has announced that it closes the connection."""
        self._connection = connection

    def header(self, name: str) -> str | None:
        """Return the first value of a header, whose name is given in lower case."""
        return self.head.named.get(name)

    @property
    def is_ok(self) -> bool:
        return self.status < 400

    @property
    def lacks(self) -> str:
        """Return what is missing of the end of the body, if that has not arrived."""
        if self.head.length is not None or not self.head.is_delimited:
            return REST
        return LAST_CHUNK if self._connection.is_between_chunks else END_OF_CHUNK

    def close(self) -> None:
        """Free the connection. What has not arrived of the body is given up."""
        self._connection.release()


class UpstreamConnection(asyncio.Protocol):
    """A connection to the server, or to a proxy in front of it."""

    transport: asyncio.Transport
    takes_short = True
    """True if it can carry short exchanges."""

    def __init__(self, keep: Callable[[UpstreamConnection], None] | None = None) -> None:
        """Prepare a connection. `keep` is called when it can carry another request."""
        self._parser = httptools.HttpResponseParser(self)
        self._method = ""
        self._reason = b""
        self._headers: list[tuple[bytes, bytes]] = []
        self._head_size = 0
        self._response: UpstreamResponse | None = None
        self._known: KnownHeads[ResponseHead] = KnownHeads()
        self._is_between = True
        """True if nothing of the next response has arrived."""
        self.is_between_chunks = False
        """True if nothing of the next chunk of the body has arrived."""
        self._keeps_alive = False
        self._has_more = False
        """True if something follows the response: the connection is not used again."""
        self._error: Exception | None = None
        self._head_arrived: Wakeup | None = None
        self._writable: Wakeup | None = None
        self._early: Callable[[], None] | None = None
        """Called if the response begins before the request has been sent."""
        self._is_sent = True
        self._is_half_closed = False
        """True if nothing is sent after the request, because the client has closed its sending side."""
        self._short: ResponseReceiver | None = None
        """The exchange that gets the response, unless a coroutine waits for it."""
        self._head_packet = b""
        """The head of a response that arrived alone, until the packet after it."""
        self._head_timer: asyncio.TimerHandle | None = None
        self._keep = keep
        self.is_lost = False
        self.idle_since = 0.0

    @property
    def is_stale(self) -> bool:
        """Return whether the server closed the connection on its own, before it began to answer."""
        return self.is_lost and self._head_size == 0 and not self._is_half_closed

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast("asyncio.Transport", transport)

    def connection_lost(self, exc: Exception | None) -> None:
        self.fall_back()
        self.is_lost = True
        if self._response is not None and not self._response.head.is_delimited and exc is None:
            self._response.body.end()
        self._fail(UpstreamError(CLOSED if exc is None else reason(exc)))

    def pause_writing(self) -> None:
        self._writable = Wakeup()

    def resume_writing(self) -> None:
        writable, self._writable = self._writable, None
        if writable is not None:
            writable.set()

    def data_received(self, data: bytes) -> None:
        if self.is_between_chunks and self._has_taken_chunk(data):
            return
        if self._short is not None:
            if self._has_responded(self._short, data):
                return
            self.fall_back()
        if self._head_arrived is None and self._response is None:  # Nothing was asked.
            self.transport.abort()
            return
        was_between = self._is_between
        is_from_head = was_between or bool(self._head_packet)
        packet, self._head_packet = self._head_packet + data, b""
        if was_between and (known := self._known.split(data)) is not None:
            self._take_whole(*known)
            return
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserCallbackError as error:
            raise error.__context__ or error from None
        except (httptools.HttpParserError, httptools.HttpParserUpgrade) as error:
            self._fail(UpstreamError(f"its response is not HTTP/1.1: {_flaw(error)}"))
            self.transport.abort()
            return
        if self._response is None:
            self._head_size += len(data)
            if self._head_size > MAX_HEAD:
                self._fail(UpstreamError(f"the head of its response exceeds {MAX_HEAD} bytes"))
                self.transport.abort()
            return
        if not data.endswith(b"\n"):
            self.is_between_chunks = False
        head = self._response.head
        if was_between and not self._is_between and data.endswith(b"\r\n\r\n"):
            self._head_packet = data
        is_whole = is_from_head and self._is_between and head.length is not None
        if is_whole and self._keeps_alive and self._method == "POST":
            self._known.add(packet, head, int(head.length or 0))
        self._wake()

    def _has_taken_chunk(self, packet: bytes) -> bool:
        """Take a packet that is one chunk, so that nothing is left to parse. Return False for any other."""
        end = packet.find(b"\r\n", 0, 8)
        size = len(packet) - end - 4
        if size <= 0 or packet[:end] != b"%x" % size or not packet.endswith(b"\r\n"):
            return False
        if self._response is None or self._response.body.is_over:
            return False
        self._response.body.pass_on(packet[end + 2 : -2])
        return True

    def _take_whole(self, head: ResponseHead, body: bytes) -> None:
        """Take a response whose head is known, so that nothing is left to parse."""
        response = self._response = UpstreamResponse(self, head)
        response.body.feed(body)
        response.body.end()
        self._keeps_alive = True
        self._wake()

    def on_message_begin(self) -> None:
        self._has_more = self._response is not None
        self._is_between = False
        self._reason, self._headers = b"", []

    def on_status(self, reason: bytes) -> None:
        self._reason += reason

    def on_header(self, name: bytes, value: bytes) -> None:
        self._headers.append((name, value))

    def on_headers_complete(self) -> None:
        status = self._parser.get_status_code()
        if status < 200 or self._has_more:
            return
        headers = [(header_text(name), header_text(value)) for name, value in self._headers]
        self._response = UpstreamResponse(self, ResponseHead(status, header_text(self._reason), headers))
        self._response.keeps_alive = self._parser.should_keep_alive()
        if self._method in ("HEAD", "CONNECT"):  # llhttp expects a body.
            self._response.body.end()

    def on_body(self, piece: bytes) -> None:
        if self._response is not None and not self._response.body.is_over:
            self._response.body.feed(piece)

    def on_chunk_header(self) -> None:
        self.is_between_chunks = False

    def on_chunk_complete(self) -> None:
        self.is_between_chunks = True

    def on_message_complete(self) -> None:
        self.is_between_chunks = False
        self._keeps_alive = self._parser.should_keep_alive()
        self._is_between = True
        if self._response is not None:
            self._response.body.end()

    async def send(
        self, method: str, head: bytes, body: Body, early: Callable[[], None] | None = None
    ) -> UpstreamResponse:
        """Send a request. Return the response when its head has arrived. Raises UpstreamError.

        `early` is called if it arrives before the request has been sent; then `body` must yield something.
        """
        if self.transport.is_closing():
            raise UpstreamError(CLOSED)
        self._method, self._early, self._is_sent = method, early, False
        self._head_arrived, self._head_size = Wakeup(), 0
        try:
            await self._write(head, body)
            self._is_sent = self._is_sent or body is None or isinstance(body, bytes)
            if self._is_half_closed:
                self.half_close()
        except BaseException:
            self.transport.abort()
            raise
        return await self.response()

    def half_close(self) -> None:
        """End the sending side once the request is sent. The connection is not used again."""
        self._is_half_closed, self._keep = True, None
        if self._head_arrived is not None and self._is_sent and not self.transport.is_closing():
            self.transport.write_eof()

    def post(self, request: bytes, short: ResponseReceiver) -> None:
        """Send a whole request. The response is given to the exchange."""
        self._method, self._early, self._head_size, self._short = "POST", None, 0, short
        self.transport.write(request)

    def fall_back(self) -> None:
        """Let a coroutine wait for the response to a short exchange. It gets what has arrived."""
        if self._short is None:
            return
        if self._head_timer is not None:
            self._head_timer.cancel()
        short, self._short, arrived, self._head_packet = self._short, None, self._head_packet, b""
        self._head_arrived = Wakeup()
        short.fall_back()
        if arrived:
            self.data_received(arrived)

    def _has_responded(self, short: ResponseReceiver, data: bytes) -> bool:
        """Give a response to a short exchange. Return False if it is not short; wait a moment for the body."""
        packet = self._head_packet + data
        known = self._known.split(packet)
        if known is not None and short.respond(*known):
            if self._head_timer is not None:
                self._head_timer.cancel()
                self._head_timer = None
            self._short, self._head_packet = None, b""
            if self._keep is not None:
                self._keep(self)
            return True
        if not self._head_packet and self._known.is_head(data):
            self._head_packet = data
            self._head_timer = asyncio.get_running_loop().call_later(HEAD_WAIT, self.fall_back)
            return True
        return False

    async def response(self) -> UpstreamResponse:
        """Return the response when its head has arrived. Raises UpstreamError."""
        assert self._head_arrived is not None
        try:
            await self._head_arrived
        except BaseException:
            self.transport.abort()
            raise
        if self._response is None:
            raise self._error or UpstreamError(CLOSED)
        return self._response

    async def _write(self, head: bytes, body: Body) -> None:
        if isinstance(body, bytes):
            self.transport.write(head + body)
            return
        self.transport.write(head)
        if body is not None:
            await self._send_body(body, is_chunked=head.endswith(CHUNKED))

    async def _send_body(self, body: AsyncIterator[bytes], *, is_chunked: bool) -> None:
        """Send a body until the response begins."""
        async for piece in body:
            if self._response is not None or self.transport.is_closing():
                return
            if piece:
                self.transport.write(b"%x\r\n%b\r\n" % (len(piece), piece) if is_chunked else piece)
            if self._writable is not None:
                await self._writable
        if is_chunked:
            self.transport.write(b"0\r\n\r\n")
        self._is_sent = True

    def release(self) -> None:
        """End the use of the connection for a request."""
        response, self._response, self._head_arrived = self._response, None, None
        if response is None or not response.body.is_over or not self._is_sent:
            self.transport.abort()
        elif (
            self._keep is None
            or self._error is not None
            or self._has_more
            or self._method == "HEAD"
            or response.body.is_paused
            or not self._keeps_alive
        ):
            self.transport.close()
        else:
            self._keep(self)

    def _fail(self, error: Exception) -> None:
        self._error = self._error or error
        if self._response is not None:
            self._response.body.end(self._error)
        self._wake()

    def _wake(self) -> None:
        """Continue with what has arrived."""
        if not self._is_sent:
            self.resume_writing()
            if self._early is not None:
                self._early()
        if self._head_arrived is not None and not self._head_arrived.done():
            self._head_arrived.set()
        elif self._response is not None:
            self._response.body.flush()


_FLAWS = {
    "Missing expected CR": "a line of its head ends in LF alone (RFC 9112, 2.2)",
    "Unexpected whitespace after header value": "a header continues in the next line (RFC 9112, 5.2)",
    "Invalid header value char": "a header continues in the next line (RFC 9112, 5.2), or has a control character",
}
"""The beginning of an error of llhttp → what is wrong, for people."""


def _flaw(error: Exception) -> str:
    """Return what is wrong with a response that the parser refuses."""
    if isinstance(error, httptools.HttpParserUpgrade):
        return "it switches to another protocol (status 101), for which it was not asked"
    text = str(error)
    return next((flaw for beginning, flaw in _FLAWS.items() if text.startswith(beginning)), text)
