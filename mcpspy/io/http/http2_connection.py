"""A connection to a server that speaks HTTP/2 (RFC 9113), with the interface of one over HTTP/1.1.

Like it, it carries one request at a time, so an exchange and its recording are the same in both versions. The frames
are read and written by the package h2 (extra `http2`).

A response ends with its stream (RFC 9113, 8.1), which may be a frame after the last byte of the body. The client reads
HTTP/1.1, in which a body ends with its length. So the last part of such a body waits for the end of the stream:
otherwise the client could have it whole, and hang up, before the message was recorded as whole.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from h2.config import H2Configuration  # type: ignore[import-untyped]  # It has no types.
from h2.connection import ConnectionState, H2Connection  # type: ignore[import-untyped]
from h2.errors import ErrorCodes  # type: ignore[import-untyped]
from h2.events import (  # type: ignore[import-untyped]
    ConnectionTerminated,
    DataReceived,
    RemoteSettingsChanged,
    ResponseReceived,
    StreamEnded,
    StreamReset,
    WindowUpdated,
)
from h2.exceptions import ProtocolError  # type: ignore[import-untyped]
from h2.settings import SettingCodes  # type: ignore[import-untyped]

from mcpspy.core.exchange.heads import ResponseHead, header_text
from mcpspy.core.exchange.states import Asking
from mcpspy.io.http.upstream_connection import CLOSED, UpstreamConnection
from mcpspy.io.network.outgoing import reason

if TYPE_CHECKING:
    from mcpspy.io.http.upstream_connection import ResponseReceiver

WINDOW = 1 << 20
"""Bytes that the server may send before they are acknowledged."""

FRAME_HEADER = 9
"""Bytes in front of each frame, which begin with the length of the rest (RFC 9113, 4.1)."""

NOT_IN_HTTP2 = frozenset(
    (b"connection", b"host", b"keep-alive", b"proxy-connection", b"te", b"transfer-encoding", b"upgrade")
)
"""Headers of a connection of HTTP/1.1 (RFC 9113, 8.2.2), and the one that `:authority` replaces."""


class Http2Connection(UpstreamConnection):
    """A connection over HTTP/2."""

    def __init__(self, keep: Callable[[UpstreamConnection], None] | None = None) -> None:
        super().__init__(keep)
        self._http2: Any = H2Connection(H2Configuration(client_side=True, header_encoding=None))
        self._stream = 0
        self._beginning = b""
        """The beginning of a frame."""
        self._unsent = b""
        """The part of the body for which the server has no room yet."""
        self._ends = False
        """True if the body ends with what is unsent."""
        self._is_full = False
        """True while the transport takes nothing more."""
        self._is_terminated = False
        self._missing: int | None = None
        """The bytes of the body that have not arrived; None while its length is unknown."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        self._http2.initiate_connection()
        self._http2.update_settings({SettingCodes.INITIAL_WINDOW_SIZE: WINDOW, SettingCodes.ENABLE_PUSH: 0})
        self._http2.increment_flow_control_window(WINDOW)
        self._flush()

    def connection_lost(self, exc: Exception | None) -> None:
        self._lose()
        self._fail(CLOSED if exc is None else reason(exc))

    def pause_writing(self) -> None:
        self._is_full = True

    def resume_writing(self) -> None:
        self._is_full = False
        self._send_unsent()

    def data_received(self, data: bytes) -> None:
        try:
            for frame in self._frames(data):
                for event in self._http2.receive_data(frame):
                    self._take(event)
        except ProtocolError as error:
            self._break(f"its response is not HTTP/2: {error}")
            return
        self._flush()
        is_last = self._state is Asking.IDLE
        if self._head is not None and self._receiver is not None and (is_last or self._missing != 0):
            self._deliver(is_last=is_last)
        if self._is_terminated and self._receiver is None:
            self.transport.close()

    def _frames(self, data: bytes) -> Iterator[bytes]:
        """Yield the frames that are complete; h2 would raise an error before it returned those in front of it."""
        data = self._beginning + data
        while len(data) >= FRAME_HEADER and len(data) >= (
            end := FRAME_HEADER + int.from_bytes(data[:3], "big")
        ):
            frame, data = data[:end], data[end:]
            yield frame
        self._beginning = data

    def _take(self, event: object) -> None:
        if isinstance(event, WindowUpdated | RemoteSettingsChanged):
            self._send_unsent()
        elif isinstance(event, ResponseReceived):
            self._head_size = 1
            status, *headers = event.headers
            pairs = [(header_text(name), header_text(value)) for name, value in headers]
            head = self._head = ResponseHead(int(status[1]), "", pairs)
            self._is_unread = True
            if self._method == "HEAD" or head.status in (204, 304):
                self._missing = 0
            elif head.length is not None:
                self._missing = int(head.length)
            self._keeps_alive = not self._is_terminated
            self._move("begin")
            self._move("head")
        elif isinstance(event, DataReceived):
            self._http2.acknowledge_received_data(event.flow_controlled_length, event.stream_id)
            if self._missing is not None:
                self._missing -= len(event.data)
            self.on_body(event.data)
        elif isinstance(event, StreamEnded):
            self._keeps_alive, self._missing = not self._is_terminated, 0
            self._move("end")
            self._is_sent = self._is_sent and not self._unsent
        elif isinstance(event, StreamReset):
            if self._head is not None and self._state is Asking.IDLE:  # It needs no more of the request.
                self._is_sent, self._unsent = False, b""
                return
            self._break(f"the server reset the stream: {_name(event.error_code)}")
        elif isinstance(event, ConnectionTerminated):
            self._is_terminated, self._keeps_alive = True, False
            # The server completes the open stream (RFC 9113, 6.8), of which h2 would take no frame any more.
            self._http2.state_machine.state = ConnectionState.CLIENT_OPEN
            if event.error_code or (event.last_stream_id or 0) < self._stream:
                self._break(f"{CLOSED}: {_name(event.error_code)}")

    def ask(
        self, receiver: ResponseReceiver, method: str, head: bytes, body: bytes, *, is_last: bool
    ) -> None:
        self._receiver, self._method, self._head = receiver, method, None
        self._head_size, self._is_sent, self._unsent, self._missing = 0, is_last, b"", None
        if self.transport.is_closing():
            self._lose()
            self._fail(CLOSED)
            return
        self._move("request")
        first, *lines = head.rstrip(b"\r\n").split(b"\r\n")
        _, target, _ = first.split(b" ")
        headers = [(name.lower(), value) for name, _, value in (line.partition(b": ") for line in lines)]
        given = dict(headers)
        left_out = NOT_IN_HTTP2 | {name.strip().lower() for name in given.get(b"connection", b"").split(b",")}
        pseudo = [
            (b":method", method.encode()),
            (b":scheme", b"https"),
            (b":authority", given.get(b"host", b"")),
            (b":path", target),
        ]
        fields = [pair for pair in headers if pair[0] not in left_out]
        try:
            self._stream = self._http2.get_next_available_stream_id()
            self._http2.send_headers(self._stream, pseudo + fields, end_stream=is_last and not body)
        except ProtocolError as error:
            self._break(f"the request cannot be sent over HTTP/2: {error}")
            return
        self._flush()
        if body:
            self._send_part(body, is_last=is_last)

    def send(self, data: bytes, *, is_last: bool) -> None:
        self._is_sent = is_last
        self._send_part(data, is_last=is_last)

    def _send_part(self, data: bytes, *, is_last: bool) -> None:
        try:
            if is_last and not data and not self._unsent:
                self._http2.end_stream(self._stream)
                self._flush()
                return
            was_waiting = bool(self._unsent)
            self._unsent, self._ends = self._unsent + data, is_last
            self._send_unsent()
        except ProtocolError as error:
            self._break(f"the request cannot be sent over HTTP/2: {error}")
            return
        if self._unsent and not was_waiting and self._receiver is not None:
            self._receiver.server_waits(is_paused=True)

    def _send_unsent(self) -> None:
        """Send as much as the server has room for (RFC 9113, 5.2)."""
        was_waiting = bool(self._unsent)
        while self._unsent and not self._is_full and self._receiver is not None:
            room = self._http2.local_flow_control_window(self._stream)
            size = min(room, self._http2.max_outbound_frame_size)
            if size <= 0:
                break
            piece, self._unsent = self._unsent[:size], self._unsent[size:]
            self._http2.send_data(self._stream, piece, end_stream=self._ends and not self._unsent)
            self._flush()
        if was_waiting and not self._unsent and self._receiver is not None:
            self._receiver.server_waits(is_paused=False)

    def _fail(self, why: str) -> None:
        if self._missing == 0:  # The client gets the whole body.
            self._keeps_alive = False
            self._deliver(is_last=True)
        super()._fail(why)

    def _flush(self) -> None:
        if (data := self._http2.data_to_send()) and not self.transport.is_closing():
            self.transport.write(data)


def _name(code: int) -> str:
    """Return the name of an error code (RFC 9113, 7)."""
    return ErrorCodes(code).name if code in list(ErrorCodes) else f"error {code}"
