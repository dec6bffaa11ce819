"""HTTP/2 to a server that speaks nothing else: Node's own."""

from __future__ import annotations

import asyncio
import json
import subprocess
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import NamedTuple, cast

import pytest
from h2.config import H2Configuration  # type: ignore[import-untyped]
from h2.connection import H2Connection  # type: ignore[import-untyped]
from h2.errors import ErrorCodes  # type: ignore[import-untyped]
from h2.events import RequestReceived  # type: ignore[import-untyped]

from mcpspy.core.exchange.heads import ResponseHead
from mcpspy.io.http import upstream
from mcpspy.io.http.http2_connection import Http2Connection
from mcpspy.io.http.upstream import UpstreamClient
from mcpspy.io.http.upstream_connection import CLOSED, UpstreamConnection, UpstreamError
from mcpspy.io.network.outgoing import trust
from tests.io.forward.conftest import Pki, make_pki
from tests.io.http import asking

pytestmark = pytest.mark.timeout(60)

SERVER = Path(__file__).parents[2] / "http2_server.mjs"


class Http2Server(NamedTuple):
    origin: str
    pki: Pki

    def client(self) -> UpstreamClient:
        return UpstreamClient(self.origin, trust(str(self.pki.authority), insecure=False))


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Http2Server]:
    pki = make_pki(tmp_path_factory.mktemp("pki"))
    command = ["node", str(SERVER), str(pki.key), str(pki.certificate)]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        yield Http2Server(f"https://127.0.0.1:{int(process.stdout.readline())}", pki)
        process.kill()


class Answer(NamedTuple):
    status: int
    headers: dict[str, str]
    body: bytes


async def ask(client: UpstreamClient, target: str, body: asking.Body, method: str = "POST") -> Answer:
    headers = [("Host", "public"), ("Connection", "X-Hop"), ("X-Hop", "1"), ("A", "ü")]
    response = await asking.send(client, method, asking.head_of(client, method, target, headers, body), body)
    try:
        pieces = [piece async for piece in response.body.chunks()]
        return Answer(response.status, dict(response.headers), b"".join(pieces))
    finally:
        response.close()


async def in_pieces(*pieces: bytes) -> AsyncIterator[bytes]:
    for piece in pieces:
        yield piece


async def test_requests_of_every_size_go_over_one_connection_in_both_directions(server: Http2Server) -> None:
    client = server.client()
    for size in (0, 1, 16_384, 3_000_000):
        assert (await ask(client, "/mcp", b"x" * size)).body == b"x" * size
        pieces = in_pieces(b"x" * (size // 2), b"", b"x" * (size - size // 2))
        assert (await ask(client, "/size", pieces)).body == b"%d" % size
    assert len(client._idle) == 1
    await client.close()


async def test_headers_are_those_of_http2(server: Http2Server) -> None:
    client = server.client()
    answer = await ask(client, "/mcp?a=b", in_pieces(b"{", b"}"))
    seen = json.loads(answer.headers["x-seen"])
    assert {name: seen[name] for name in (":method", ":scheme", ":authority", ":path", "a")} == {
        ":method": "POST",
        ":scheme": "https",
        ":authority": "public",
        ":path": "/mcp?a=b",
        "a": "ü",
    }
    assert not {"host", "connection", "x-hop", "transfer-encoding"} & set(seen)
    assert not any(name.startswith(":") for name in answer.headers)
    await client.close()


async def test_events_arrive_while_the_request_is_still_sent(server: Http2Server) -> None:
    client, goes_on = server.client(), asyncio.Event()

    async def body() -> AsyncIterator[bytes]:
        yield b"data: 2\n\n"
        await goes_on.wait()

    sent = body()
    head = asking.head_of(client, "POST", "/events", [("Host", "public")], sent)
    response = await asking.send(client, "POST", head, sent, early=goes_on.set)
    first = b""
    while first != b"data: 1\n\ndata: 2\n\n":
        first += await response.body.next() or b""
    response.close()
    await client.close()


async def test_a_reset_stream_is_an_error_with_its_name(server: Http2Server) -> None:
    client = server.client()
    with pytest.raises(UpstreamError, match="the server reset the stream: ENHANCE_YOUR_CALM"):
        await ask(client, "/reset", b"{}")
    assert (await ask(client, "/mcp", b"{}")).body == b"{}"
    await client.close()


async def test_a_response_that_begins_before_the_end_of_the_request_is_received(server: Http2Server) -> None:
    client = server.client()
    answer = await ask(client, "/refuse", in_pieces(*[b"x" * 100_000] * 40))
    assert (answer.status, answer.body) == (413, b"too large")
    assert (await ask(client, "/mcp", b"{}")).body == b"{}"
    await client.close()


async def test_a_connection_that_the_server_ends_is_not_used_again(server: Http2Server) -> None:
    client = server.client()
    for _ in range(2):
        assert (await ask(client, "/last", b"{}")).status == 200
        assert (await ask(client, "/mcp", None, "GET")).status == 200
    await client.close()


async def test_without_the_extra_the_error_names_it(
    server: Http2Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(upstream, "find_spec", lambda _: None)
    with pytest.raises(UpstreamError, match=r"it speaks only HTTP/2, which needs h2: .*\[http2\]"):
        await ask(server.client(), "/mcp", b"{}")


class WatchedConnection(Http2Connection):
    def __init__(self) -> None:
        super().__init__()
        self.lost = asyncio.Event()

    def connection_lost(self, error: Exception | None) -> None:
        super().connection_lost(error)
        self.lost.set()


@asynccontextmanager
async def connected(first: bytes, after_request: bytes) -> AsyncIterator[WatchedConnection]:
    """Yield a connection to a server that sends these frames with its settings, and after each request."""
    served = asyncio.Event()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        http2 = H2Connection(H2Configuration(client_side=False))
        http2.initiate_connection()
        writer.write(http2.data_to_send() + first)
        with suppress(ConnectionError):
            while data := await reader.read(65_536):
                if any(isinstance(event, RequestReceived) for event in http2.receive_data(data)):
                    writer.write(after_request)
                writer.write(http2.data_to_send())
        writer.transport.abort()
        served.set()

    async with await asyncio.start_server(serve, "127.0.0.1", 0) as listening, asyncio.timeout(30):
        host, port = listening.sockets[0].getsockname()
        _, connection = await asyncio.get_running_loop().create_connection(WatchedConnection, host, port)
        try:
            yield connection
        finally:
            connection.transport.abort()
            await served.wait()
            await connection.lost.wait()


ASK = b"POST /mcp HTTP/1.1\r\nHost: here\r\n\r\n"
GO_AWAY = b"\0\0\x08\x07" + bytes(9)
"""A frame that ends the connection before any stream; the code of the error follows."""


@pytest.mark.parametrize(
    ("frames", "why"),
    [
        (b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}" + bytes(5_000_000), "its response is not HTTP/2"),
        (b"\0\0\x01\x08\0\0\0\0\x01\0", "its response is not HTTP/2"),
        (GO_AWAY + b"\0\0\0\x02", "INTERNAL_ERROR"),
        (GO_AWAY + b"\0\0\0\x00", "NO_ERROR"),
        (GO_AWAY + b"\0\0\1\0", "error 256"),
    ],
    ids=["not HTTP/2", "a window update of one byte", "an error", "before the stream", "an unknown error"],
)
async def test_frames_in_place_of_a_response_are_an_error_with_its_name(frames: bytes, why: str) -> None:
    async with connected(b"", frames) as connection:
        with pytest.raises(UpstreamError, match=why):
            await asking.ask(connection, "POST", ASK, b"{}")
        assert connection.transport.is_closing()


async def test_a_connection_that_the_server_ends_while_nothing_is_asked_is_closed() -> None:
    async with connected(GO_AWAY + bytes(4), b"") as connection:
        await connection.lost.wait()
        with pytest.raises(UpstreamError, match=CLOSED):
            await asking.ask(connection, "POST", ASK, b"{}")


async def test_a_request_that_http2_does_not_allow_is_an_error_and_not_sent() -> None:
    async with connected(b"", b"") as connection:
        with pytest.raises(UpstreamError, match="the request cannot be sent over HTTP/2"):
            await asking.ask(connection, "POST", ASK[:-2] + b":path: /x\r\n\r\n", b"{}")


class Transport:
    """Keeps what the connection sends."""

    is_closed = False

    def __init__(self) -> None:
        self.sent = b""

    def write(self, data: bytes) -> None:
        self.sent += data

    def is_closing(self) -> bool:
        return self.is_closed

    def abort(self) -> None:
        self.is_closed = True

    close = abort


class Asked:
    """A connection that has sent a request, and its server, which sends when a test says so."""

    def __init__(self, method: str = "POST") -> None:
        self.kept: list[UpstreamConnection] = []
        self.got: list[tuple[bytes, bool]] = []
        """The parts of the body, each with whether it is the last one."""
        self.error = ""
        self.transport = Transport()
        self.connection = Http2Connection(self.kept.append)
        self.connection.connection_made(cast("asyncio.Transport", self.transport))
        self.server = H2Connection(H2Configuration(client_side=False))
        self.server.initiate_connection()
        self.ask(method)

    def ask(self, method: str) -> None:
        self.got = []
        request = ASK.replace(b"POST", method.encode())
        self.connection.ask(self, method, request, b"{}" if method == "POST" else b"", is_last=True)
        sent, self.transport.sent = self.transport.sent, b""
        (asked,) = (e for e in self.server.receive_data(sent) if isinstance(e, RequestReceived))
        self.stream: int = asked.stream_id

    def head(self, status: int = 200, length: int | None = None) -> None:
        lengths = [] if length is None else [("content-length", str(length))]
        self.server.send_headers(self.stream, [(":status", str(status)), *lengths])
        self.flush()

    def data(self, data: bytes, *, is_last: bool = False) -> None:
        self.server.send_data(self.stream, data, end_stream=is_last)
        self.flush()

    def reset(self) -> None:
        self.server.reset_stream(self.stream)
        self.flush()

    def hang_up(self) -> None:
        self.transport.is_closed = True
        self.connection.connection_lost(None)

    def flush(self) -> None:
        self.connection.data_received(self.server.data_to_send())

    def response_begins(self, head: ResponseHead, data: bytes, keeps_alive: bool, is_last: bool) -> None:
        self.response_data(data, is_last)

    def response_data(self, data: bytes, is_last: bool) -> None:
        self.got.append((data, is_last))

    def server_gone(self, error: UpstreamError) -> None:
        self.error = str(error)

    def server_waits(self, *, is_paused: bool) -> None: ...


async def test_the_end_of_a_body_of_known_length_is_given_with_the_end_of_its_stream() -> None:
    """Else the client, whose body ends with its length, could hang up before the message was recorded as whole."""
    asked = Asked()
    for _ in range(2):
        asked.head(length=4)
        asked.data(b"12")
        asked.data(b"34")
        assert asked.got == [(b"", False), (b"12", False)]
        asked.data(b"", is_last=True)
        assert asked.got == [(b"", False), (b"12", False), (b"34", True)]
        assert asked.kept.pop() is asked.connection
        asked.ask("POST")


@pytest.mark.parametrize(
    ("method", "status", "length"), [("POST", 202, 0), ("POST", 204, None), ("GET", 304, 5), ("HEAD", 200, 5)]
)
async def test_a_head_without_a_body_is_given_with_the_end_of_its_stream(
    method: str, status: int, length: int | None
) -> None:
    asked = Asked(method)
    asked.head(status, length)
    assert asked.got == []
    asked.data(b"", is_last=True)
    assert asked.got == [(b"", True)]
    assert asked.error == ""


@pytest.mark.parametrize("end", [Asked.reset, Asked.hang_up])
async def test_a_body_that_has_its_length_is_whole_though_its_stream_does_not_end(
    end: Callable[[Asked], None],
) -> None:
    asked = Asked()
    asked.head(length=2)
    asked.data(b"{}")
    end(asked)
    assert asked.got == [(b"", False), (b"{}", True)]
    assert (asked.error, asked.kept) == ("", [])
    assert asked.transport.is_closed


@pytest.mark.parametrize("length", [None, 3])
@pytest.mark.parametrize("end", [Asked.reset, Asked.hang_up])
async def test_a_body_without_the_end_of_its_stream_or_its_length_is_not_whole(
    end: Callable[[Asked], None], length: int | None
) -> None:
    """The end of a connection of HTTP/2 is not that of a body (RFC 9113, 8.1)."""
    asked = Asked()
    asked.head(length=length)
    asked.data(b"{}")
    end(asked)
    assert asked.got == [(b"", False), (b"{}", False)]
    assert asked.error != ""


async def test_a_whole_response_with_an_error_of_the_connection_behind_it_is_whole() -> None:
    asked = Asked()
    asked.server.send_headers(asked.stream, [(":status", "200")])
    asked.server.send_data(asked.stream, b"{}", end_stream=True)
    asked.server.close_connection(ErrorCodes.ENHANCE_YOUR_CALM)
    asked.flush()
    assert (asked.got, asked.error, asked.kept) == ([(b"{}", True)], "", [])
    assert asked.transport.is_closed
