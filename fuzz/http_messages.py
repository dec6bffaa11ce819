"""Fuzz targets of the HTTP proxy: what either side reads and writes does not depend on packets, and h11 reads the same.

Two parsers that read one message differently are what request smuggling needs (RFC 9112, 11.2). The connections run
without sockets, and h11 is the second parser.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Iterable
from contextlib import suppress
from typing import TypeAlias

import h11

from mcpspy.core.exchange.heads import ResponseHead, client_head, header_text
from mcpspy.core.protocol.http_headers import read_upstream, request_headers, response_headers
from mcpspy.io.http.request import HttpRequest, Response
from mcpspy.io.http.server import DownstreamConnection
from mcpspy.io.http.upstream import UpstreamClient
from mcpspy.io.http.upstream_connection import UpstreamConnection, UpstreamError

Message: TypeAlias = tuple[str, str, list[tuple[str, str]], bytes]
"""Method and target, or status and reason; headers with names in lower case; body."""

ORIGIN = "http://127.0.0.1:3000"
_UPSTREAM = read_upstream(ORIGIN + "/mcp")
assert _UPSTREAM is not None
UPSTREAM = _UPSTREAM

CLIENT = UpstreamClient(ORIGIN, ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT))

IDLE = 3
"""Iterations of the event loop without progress after which a connection waits for more."""


class Transport(asyncio.Transport):
    """A transport that keeps what is written."""

    def __init__(self) -> None:
        super().__init__()
        self.written = b""
        self._is_closing = False
        self.is_reading_paused = False

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self.written += bytes(data)

    def close(self) -> None:
        self._is_closing = True

    abort = close

    def is_closing(self) -> bool:
        return self._is_closing

    def pause_reading(self) -> None:
        self.is_reading_paused = True

    def resume_reading(self) -> None:
        self.is_reading_paused = False


def requests(chunks: list[bytes]) -> None:
    """A request is read the same in any packets, and h11 reads the same in what is forwarded of it."""
    taken = asyncio.run(_taken(chunks))
    whole = asyncio.run(_taken([b"".join(chunks)]))
    # A refusal ends a connection, before or after the response to an earlier request.
    common = min(len(taken), len(whole))
    assert taken[:common] == whole[:common]
    for method, target, headers, body in taken:
        sent = [
            pair for pair in request_headers(headers, UPSTREAM, "") if pair[0].lower() != "content-length"
        ]
        (read,) = _read(h11.SERVER, CLIENT.head(method, target, sent, body, has_body=True) + body)
        assert read == (method, target, [*_comparable(sent), ("content-length", str(len(body)))], body)


def responses(chunks: list[bytes]) -> None:
    """A response is read the same in any packets, and h11 reads the same in it and in what the client gets of it."""
    stream = b"".join(chunks)
    response, is_whole = asyncio.run(_response(chunks))
    assert (response, is_whole) == asyncio.run(_response([stream]))
    if response is None or not is_whole:
        return
    status, reason, headers, body = response
    read = _read(h11.CLIENT, stream)
    if not read:  # h11 refuses a NUL in the reason, for example; it is forwarded as it is.
        return
    assert (read[0][0], _comparable(read[0][2]), read[0][3]) == (status, _comparable(headers), body)
    for has_length in (True, False):
        sent = response_headers(headers, UPSTREAM, "http://127.0.0.1:8808")
        sent = [pair for pair in sent if pair[0].lower() != "content-length"]
        if has_length:
            sent.append(("Content-Length", str(len(body))))
        answered = asyncio.run(_answered((status, reason, sent, body), has_length=has_length))
        (forwarded,) = _read(h11.CLIENT, answered)
        assert (forwarded[0], forwarded[3]) == (status, b"" if int(status) in (204, 304) else body)


async def _taken(chunks: Iterable[bytes]) -> list[Message]:
    """Return the requests that are complete in the chunks of a client."""
    taken: list[Message] = []

    async def handle(request: HttpRequest) -> Response:
        body = b"".join([piece async for piece in request.chunks()])
        taken.append((request.method, request.target, list(request.headers.items()), body))
        return Response()

    connection, transport = DownstreamConnection(handle, set()), Transport()
    connection.connection_made(transport)
    for chunk in (*chunks, b""):
        idle, known = 0, -1
        while idle < IDLE:
            idle = idle + 1 if known == len(taken) else 0
            known = len(taken)
            await asyncio.sleep(0)
        if transport.is_closing():
            break
        if chunk:
            connection.data_received(chunk)
    connection.connection_lost(None)
    await asyncio.sleep(0)
    assert b"HTTP/1.1 500" not in transport.written
    return taken


async def _response(chunks: Iterable[bytes]) -> tuple[Message | None, bool]:
    """Return the response in the chunks of a server as far as it arrives, and whether it is whole."""
    connection, transport = UpstreamConnection(), Transport()
    connection.connection_made(transport)
    received = Received()
    connection.ask(received, "POST", b"", b"", is_last=True)
    for chunk in chunks:
        if chunk and not transport.is_closing():
            connection.data_received(chunk)
            await asyncio.sleep(0)
    connection.connection_lost(None)
    head = received.head
    if head is None:
        return None, False
    return (str(head.status), head.reason, head.headers, received.body), received.is_whole


class Received:
    """The parts of a response that arrive."""

    head: ResponseHead | None = None
    body = b""
    is_whole = False

    def response_begins(self, head: ResponseHead, data: bytes, keeps_alive: bool, is_last: bool) -> None:
        self.head = head
        self.response_data(data, is_last)

    def response_data(self, data: bytes, is_last: bool) -> None:
        self.body += data
        self.is_whole = is_last

    def server_gone(self, error: UpstreamError) -> None:
        assert not self.is_whole

    def server_waits(self, *, is_paused: bool) -> None: ...


async def _answered(response: Message, *, has_length: bool) -> bytes:
    """Return the bytes that a client gets for a response."""
    status, reason, headers, body = response

    async def handle(request: HttpRequest) -> None:
        head = client_head(
            request.head, int(status), reason, headers, has_length=has_length, keeps_alive=request.keeps_alive
        )
        request.keeps_alive = head.keeps_alive
        request.connection.write(head.data + head.framed(body) + head.framed(b"", is_last=True))

    connection, transport = DownstreamConnection(handle, set()), Transport()
    connection.connection_made(transport)
    connection.data_received(b"POST /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
    await asyncio.sleep(0)
    return transport.written


def _read(role: type[h11.CLIENT] | type[h11.SERVER], data: bytes) -> list[Message]:
    """Return the complete messages that h11 reads as that side, up to the first that it refuses."""
    connection = h11.Connection(role)
    if role is h11.CLIENT:
        connection.send(h11.Request(method="POST", target="/mcp", headers=[("Host", "127.0.0.1")]))
        connection.send(h11.EndOfMessage())
    connection.receive_data(data)
    connection.receive_data(b"")
    read: list[Message] = []
    body = b""
    head: h11.Request | h11.Response | None = None
    with suppress(h11.RemoteProtocolError):
        while (event := connection.next_event()) not in (h11.NEED_DATA, h11.PAUSED):
            if isinstance(event, h11.Request | h11.Response):
                head, body = event, b""
            elif isinstance(event, h11.Data):
                body += event.data
            elif isinstance(event, h11.EndOfMessage) and head is not None:
                first = (
                    (head.method, head.target)
                    if isinstance(head, h11.Request)
                    else (b"%d" % head.status_code, head.reason)
                )
                pairs = [(header_text(name), header_text(value)) for name, value in head.headers]
                read.append((header_text(first[0]), header_text(first[1]), pairs, body))
            elif isinstance(event, h11.ConnectionClosed):
                break
    return read


def _comparable(headers: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
    """Return headers as h11 returns them."""
    found = [(name.lower(), value.strip(" \t")) for name, value in headers]
    return [(name, value.lower() if name == "transfer-encoding" else value) for name, value in found]
