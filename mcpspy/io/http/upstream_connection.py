"""A connection to the server behind the proxy, on `asyncio.Protocol` and llhttp.

It carries one request at a time, and parses the response. Source of the framing: RFC 9112, 6.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Protocol, cast

import httptools

from mcpspy.core.exchange.heads import MAX_HEAD, KnownHeads, ResponseHead, header_text
from mcpspy.core.exchange.states import ASKING_TRANSITIONS, Asking
from mcpspy.core.recording.encode_body import END_OF_CHUNK, LAST_CHUNK, REST
from mcpspy.io.network.outgoing import reason

HEAD_WAIT = 0.001
"""Seconds that the head of a response waits for the beginning of its body, to be sent in one packet with it."""

CHUNKED = b"Transfer-Encoding: chunked\r\n\r\n"
"""The end of the head of a request without a length."""

CLOSED = "the server closed the connection"

_IDLE, _ASKED, _HEAD, _BODY, _CHUNK, _MORE, _LOST = Asking


class UpstreamError(Exception):
    """The server cannot be reached, or did not send a whole response. The text is the reason, redacted."""


class ResponseReceiver(Protocol):
    """Gets the response to a request as it arrives."""

    def response_begins(self, head: ResponseHead, data: bytes, keeps_alive: bool, is_last: bool) -> None:
        """Take the head, with as much of the body as has arrived. `keeps_alive`: the server reads on after it."""

    def response_data(self, data: bytes, is_last: bool) -> None:
        """Take a part of the body."""

    def server_gone(self, error: UpstreamError) -> None:
        """Take the end of the connection before that of the response."""

    def server_waits(self, *, is_paused: bool) -> None:
        """Send no more of the request until the server has read, or continue."""


class UpstreamConnection(asyncio.Protocol):
    """A connection to the server, or to a proxy in front of it."""

    transport: asyncio.Transport

    def __init__(self, keep: Callable[[UpstreamConnection], None] | None = None) -> None:
        """Prepare a connection. `keep` is called when it can carry another request."""
        self.idle_since = 0.0
        self.lacks = REST
        """The missing end of a body that has broken off."""
        self.has_waited = False
        """True if the head of the response has waited for its body."""
        self._parser = httptools.HttpResponseParser(self)
        self._state: Asking = _IDLE
        self._receiver: ResponseReceiver | None = None
        """The exchange that is asked for, until its response is over."""
        self._head: ResponseHead | None = None
        """The head of the response."""
        self._is_unread = False
        """True while the receiver does not have the head."""
        self._method = ""
        self._is_chunked = False
        """True if the request is sent in chunks."""
        self._is_sent = True
        """True once the whole request was sent."""
        self._is_half_closed = False
        """True if nothing is sent after the request, because the client has closed its sending side."""
        self._keeps_alive = self._is_paused = False
        self._head_size = 0
        self._early = b""
        """The bytes that arrived before the first request."""
        self._head_packet = b""
        """The head of a response that arrived alone, until the packet after it."""
        self._head_timer: asyncio.TimerHandle | None = None
        self._reason = b""
        self._headers: list[tuple[bytes, bytes]] = []
        self._arrived: list[bytes] = []
        """Parts of the body that the receiver does not have yet."""
        self._known: KnownHeads[ResponseHead] = KnownHeads()
        self._keep = keep

    @property
    def is_stale(self) -> bool:
        """Return whether the server closed the connection on its own, before it began to answer."""
        has_begun = self._head is not None or self._head_size > 0
        return self._state is _LOST and not has_begun and not self._is_half_closed

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast("asyncio.Transport", transport)

    def connection_lost(self, exc: Exception | None) -> None:
        self._parse_held()
        state, head = self._state, self._head
        self._lose()
        # The end of the connection is that of a body without another one (RFC 9112, 6.3).
        if head is not None and state is _BODY and not head.is_delimited and exc is None:
            self._deliver(is_last=True)
        self._fail(CLOSED if exc is None else reason(exc))

    def pause_writing(self) -> None:
        if self._receiver is not None:
            self._receiver.server_waits(is_paused=True)

    def resume_writing(self) -> None:
        if self._receiver is not None:
            self._receiver.server_waits(is_paused=False)

    def pause_reading(self, *, is_paused: bool) -> None:
        """Read nothing more from the server, or continue."""
        if is_paused != self._is_paused and not self.transport.is_closing():
            self._is_paused = is_paused
            (self.transport.pause_reading if is_paused else self.transport.resume_reading)()

    def data_received(self, data: bytes) -> None:
        state, receiver = self._state, self._receiver
        if receiver is None:
            if not self._method:  # The first request is about to be sent.
                self._early += data
            else:  # Nothing was asked, or its answer is not read.
                self.transport.abort()
            return
        if state is _CHUNK and self._has_taken_chunk(data, receiver):
            return
        packet = data
        if state is _ASKED:
            packet, self._head_packet = self._head_packet + data, b""
            if self._has_taken_whole(packet, receiver):
                return
            if packet is data and self._known.is_head(data):
                self._head_packet = data
                self._head_timer = asyncio.get_running_loop().call_later(HEAD_WAIT, self._parse_held)
                return
            self._stop_waiting()
        self._parse(packet if state is _ASKED else data, is_from_head=state is _ASKED)

    def _has_taken_whole(self, packet: bytes, receiver: ResponseReceiver) -> bool:
        """Take a whole response whose head is known, so that nothing is left to parse. Return False for any other."""
        known = self._known.split(packet)
        if known is None:
            return False
        if self._head_timer is not None:
            self._stop_waiting()
        head, body = known
        self._head, self._keeps_alive, self._state = head, True, _IDLE
        receiver.response_begins(head, body, True, True)
        self._release()
        return True

    def _has_taken_chunk(self, packet: bytes, receiver: ResponseReceiver) -> bool:
        """Take a packet that is one chunk, so that nothing is left to parse. Return False for any other."""
        end = packet.find(b"\r\n", 0, 8)
        size = len(packet) - end - 4
        if size <= 0 or packet[:end] != b"%x" % size or not packet.endswith(b"\r\n"):
            return False
        receiver.response_data(packet[end + 2 : -2], False)
        return True

    def _parse_held(self) -> None:
        """Parse a head that waits for its body."""
        self._stop_waiting()
        packet, self._head_packet = self._head_packet, b""
        if packet:
            self.has_waited = True
            self._parse(packet, is_from_head=True)

    def _stop_waiting(self) -> None:
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None

    def _parse(self, data: bytes, *, is_from_head: bool) -> None:
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserCallbackError as error:
            raise error.__context__ or error from None
        except (httptools.HttpParserError, httptools.HttpParserUpgrade) as error:
            if self._head is not None and self._state in (
                _IDLE,
                _MORE,
            ):  # It follows the response, which is whole.
                self._state = _MORE
                self._deliver(is_last=True)
                return
            self._break(f"its response is not HTTP/1.1: {_flaw(error)}")
            return
        if self._head is None:
            self._head_size += len(data)
            if self._head_size > MAX_HEAD:
                self._break(f"the head of its response exceeds {MAX_HEAD} bytes")
            return
        if self._state is _CHUNK and not data.endswith(b"\n"):
            self._move("data")
        is_whole, head = self._state is _IDLE, self._head
        if is_whole and is_from_head and head.length and self._keeps_alive and self._method == "POST":
            self._known.add(data, head, int(head.length))
        self._deliver(is_last=is_whole or self._state is _MORE)

    def _move(self, what: str) -> None:
        self._state = ASKING_TRANSITIONS[self._state].get(what, self._state)

    def _lose(self) -> None:
        state, head, self._state = self._state, self._head, _LOST
        if head is not None and head.length is None and head.is_delimited:
            self.lacks = LAST_CHUNK if state is _CHUNK else END_OF_CHUNK

    def on_message_begin(self) -> None:
        self._move("begin")
        self._reason, self._headers = b"", []

    def on_status(self, reason: bytes) -> None:
        self._reason += reason

    def on_header(self, name: bytes, value: bytes) -> None:
        self._headers.append((name, value))

    def on_headers_complete(self) -> None:
        status = self._parser.get_status_code()
        if self._state is _MORE:
            return
        if status < 200:  # RFC 9110, 15.2: the response follows.
            self._move("interim head")
            return
        headers = [(header_text(name), header_text(value)) for name, value in self._headers]
        self._head = ResponseHead(status, header_text(self._reason), headers)
        self._is_unread, self._keeps_alive = True, self._parser.should_keep_alive()
        self._move("head")
        if self._method in ("HEAD", "CONNECT"):  # llhttp expects a body.
            self._move("end")

    def on_body(self, piece: bytes) -> None:
        if self._state is _BODY:
            self._arrived.append(piece)

    def on_chunk_header(self) -> None:
        self._move("data")

    def on_chunk_complete(self) -> None:
        self._move("chunk")

    def on_message_complete(self) -> None:
        if self._state in (_BODY, _CHUNK):
            self._keeps_alive = self._parser.should_keep_alive()
            self._move("end")

    def ask(
        self, receiver: ResponseReceiver, method: str, head: bytes, body: bytes, *, is_last: bool
    ) -> None:
        """Send the head of a request, and its whole body or the beginning of it."""
        self._receiver, self._method, self._head = receiver, method, None
        self._head_size, self.has_waited, self.lacks = 0, False, REST
        if self.transport.is_closing():
            self._lose()
            self._fail(CLOSED)
            return
        self._move("request")
        self._is_sent, self._is_chunked = is_last, not is_last and head.endswith(CHUNKED)
        self.transport.write(head + body)
        if self._early:
            early, self._early = self._early, b""
            self.data_received(early)

    def send(self, data: bytes, *, is_last: bool) -> None:
        """Send a part of the body."""
        if self._is_chunked:
            data = (b"%x\r\n%b\r\n" % (len(data), data) if data else b"") + (b"0\r\n\r\n" if is_last else b"")
        if data:
            self.transport.write(data)
        self._is_sent = is_last
        self._send_eof()

    def half_close(self) -> None:
        """End the sending side once the request is sent. The connection is not used again."""
        self._is_half_closed, self._keep = True, None
        self._send_eof()

    def _send_eof(self) -> None:
        if self._is_half_closed and self._is_sent and not self.transport.is_closing():
            self.transport.write_eof()

    def abandon(self) -> None:
        """Close the connection. What has not arrived of the response is given up."""
        if self._state is not _LOST:
            self._lose()
        self._receiver = None
        self._stop_waiting()
        self.transport.abort()

    def _deliver(self, *, is_last: bool) -> None:
        """Give what has arrived to the receiver."""
        arrived, self._arrived = self._arrived, []
        receiver, head = self._receiver, self._head
        if receiver is None or head is None:
            return
        data = arrived[0] if len(arrived) == 1 else b"".join(arrived)
        if self._is_unread:
            self._is_unread = False
            receiver.response_begins(head, data, self._keeps_alive, is_last)
        elif data or is_last:
            receiver.response_data(data, is_last)
        if is_last:
            self._release()

    def _release(self) -> None:
        """End the use of the connection for a request, whose response is over."""
        if self._receiver is None:
            return
        self._receiver = None
        if self._is_paused:
            self.pause_reading(is_paused=False)
        if self._method == "CONNECT":  # The connection becomes a tunnel.
            return
        if not self._is_sent:
            self.transport.abort()
        elif self._keep is None or self._state is _MORE or self._method == "HEAD" or not self._keeps_alive:
            self.transport.close()
        else:
            self._keep(self)

    def _break(self, why: str) -> None:
        """End the connection because of what has arrived."""
        self._lose()
        self._fail(why)
        self.transport.abort()

    def _fail(self, why: str) -> None:
        self._deliver(is_last=False)
        receiver, self._receiver = self._receiver, None
        if receiver is not None:
            receiver.server_gone(UpstreamError(why))


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
