"""HTTP/2 to a server that speaks nothing else: Node's own."""

from __future__ import annotations

import asyncio
import json
import subprocess
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import NamedTuple

import pytest
from h2.config import H2Configuration  # type: ignore[import-untyped]
from h2.connection import H2Connection  # type: ignore[import-untyped]
from h2.events import RequestReceived  # type: ignore[import-untyped]

from mcpspy.io.http import upstream
from mcpspy.io.http.http2_connection import Http2Connection
from mcpspy.io.http.upstream import UpstreamClient
from mcpspy.io.http.upstream_connection import CLOSED, UpstreamError
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
