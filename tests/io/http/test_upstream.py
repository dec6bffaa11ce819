"""Connections to the server: used again when that is safe, and through the proxies of the environment."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from yarl import URL

from mcpspy.core.exchange.heads import MAX_HEAD
from mcpspy.io.http.upstream import UpstreamClient
from mcpspy.io.http.upstream_connection import UpstreamError
from mcpspy.io.network.outgoing import trust
from tests.io.forward.conftest import make_pki
from tests.io.http import asking
from tests.io.http_spy import PING, PONG, Call, Reader, chunk, closed, plain

pytestmark = pytest.mark.timeout(60)

Answer = Callable[[Call], Awaitable[None]]


class Server:
    """A server that counts its connections and keeps its requests."""

    def __init__(self, answer: Answer) -> None:
        self.answer = answer
        self.connections = 0
        self.calls: list[Call] = []
        self.origin = ""

    async def connected(self, stream: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        reader = Reader(stream)
        try:
            while not writer.is_closing():
                self.calls.append(Call(*(await reader.head()), await reader.body(), writer))
                await self.answer(self.calls[-1])
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            await closed(writer)


@asynccontextmanager
async def serving(answer: Answer, tls: ssl.SSLContext | None = None) -> AsyncIterator[Server]:
    server = Server(answer)
    listener = await asyncio.start_server(server.connected, "127.0.0.1", 0, ssl=tls)
    scheme = "http" if tls is None else "https"
    server.origin = f"{scheme}://127.0.0.1:{listener.sockets[0].getsockname()[1]}"
    try:
        yield server
    finally:
        listener.close()


def responds(*packets: bytes) -> Answer:
    async def answer(call: Call) -> None:
        for packet in packets:
            await call.send(packet)

    return answer


async def asked(client: UpstreamClient, method: str = "POST", body: bytes | None = PING) -> tuple[int, bytes]:
    """Return the status and the body of a response."""
    head = asking.head_of(client, method, "/mcp", [("Host", "server")], body)
    response = await asking.send(client, method, head, body)
    try:
        return response.status, b"".join([piece async for piece in response.body.chunks()])
    finally:
        response.close()


def client_of(server: Server, proxy: URL | None = None) -> UpstreamClient:
    return UpstreamClient(server.origin, trust(None, insecure=True), proxy)


@pytest.mark.parametrize(
    ("packets", "connections"),
    [
        ((plain(PONG),), 1),
        ((plain(PONG)[:9], plain(PONG)[9:]), 1),
        ((b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + chunk(PONG), b"0\r\nA: b\r\n\r\n"), 1),
        ((b"HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n", plain(PONG)), 1),
        ((plain(PONG, "Connection: close"),), 3),
        ((plain(PONG) + plain(b"not asked for"),), 3),
    ],
    ids=["length", "two packets", "chunks", "informational", "close", "a second response"],
)
async def test_a_connection_is_used_again_unless_the_response_forbids_it(
    packets: tuple[bytes, ...], connections: int
) -> None:
    async with serving(responds(*packets)) as server:
        client = client_of(server)
        for _ in range(3):
            assert await asked(client) == (200, PONG)
        assert server.connections == connections
        await client.close()


async def test_a_response_to_head_has_no_body() -> None:
    async with serving(responds(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n")) as server:
        client = client_of(server)
        assert [await asked(client, "HEAD", None) for _ in range(2)] == [(200, b"")] * 2
        await client.close()


@pytest.mark.parametrize(
    ("response", "why"),
    [
        (
            b"HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n",
            "another protocol",
        ),
        (b"HTTP/1.1 200 OK\nContent-Length: 0\n\n", "a line of its head ends in LF alone"),
        (b"HTTP/1.1 200 OK\r\nX: a\nContent-Length: 0\r\n\r\n", "a line of its head ends in LF alone"),
        (b"HTTP/1.1 200 OK\r\nX: a\r\n b\r\n\r\n", "a header continues in the next line"),
        (b"HTTP/1.1 200 OK\r\nX:\r\n b\r\n\r\n", "a header continues in the next line"),
        (b"nonsense\r\n\r\n", "not HTTP/1.1"),
        (b"HTTP/1.1 200 OK\r\nX: " + b"x" * (MAX_HEAD + 1), f"exceeds {MAX_HEAD} bytes"),
    ],
    ids=["upgrade", "LF", "LF in one header", "folded", "folded before its value", "nonsense", "long head"],
)
async def test_a_response_that_cannot_be_read_is_an_error(response: bytes, why: str) -> None:
    async with serving(responds(response)) as server:
        client = client_of(server)
        with pytest.raises(UpstreamError, match=why):
            await asked(client)
        await client.close()


async def test_a_body_that_ends_with_the_connection_is_whole_and_a_shorter_one_is_not() -> None:
    async def answer(call: Call) -> None:
        length = b"" if call.method == "GET" else b"Content-Length: 99\r\n"
        await call.send(b"HTTP/1.1 200 OK\r\n" + length + b"\r\n" + PONG)
        call.writer.close()

    async with serving(answer) as server:
        client = client_of(server)
        assert await asked(client, "GET", None) == (200, PONG)
        with pytest.raises(UpstreamError, match="closed the connection"):
            await asked(client)
        await client.close()


async def test_a_proxy_gets_the_whole_url_and_its_password() -> None:
    async with serving(responds(plain(PONG))) as proxy:
        url = URL(proxy.origin).with_user("me").with_password("p@ss")
        client = UpstreamClient("http://server.example:8080", trust(None, insecure=True), url)
        assert await asked(client) == (200, PONG)
        assert proxy.calls[0].target == "http://server.example:8080/mcp"
        assert proxy.calls[0].header("proxy-authorization") == "Basic bWU6cEBzcw=="
        await client.close()


async def test_tls_goes_through_a_tunnel_of_the_proxy(tmp_path: Path) -> None:
    pki = make_pki(tmp_path)
    named: list[str] = []
    pipes: list[asyncio.Task[None]] = []

    async def pipe(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(1 << 16):
            writer.write(data)
        await closed(writer)

    async def tunnel(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        named.extend(head.split("\r\n"))
        if "Proxy-Authorization" not in head:
            writer.write(b"HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 0\r\n\r\n")
            await closed(writer)
            return
        port = int(head.split(" ")[1].rpartition(":")[2])
        inner = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
        pipes.append(asyncio.ensure_future(pipe(reader, inner[1])))
        pipes.append(asyncio.ensure_future(pipe(inner[0], writer)))

    async with serving(responds(plain(PONG)), pki.server()) as server:
        listener = await asyncio.start_server(tunnel, "127.0.0.1", 0)
        proxy = URL(f"http://me:secret@127.0.0.1:{listener.sockets[0].getsockname()[1]}")
        trusted = trust(str(pki.authority), insecure=False)
        client = UpstreamClient(server.origin, trusted, proxy)
        assert [await asked(client) for _ in range(2)] == [(200, PONG)] * 2
        assert server.connections == 1
        address = server.origin.removeprefix("https://")
        assert named[:2] == [f"CONNECT {address} HTTP/1.1", f"Host: {address}"]
        await client.close()
        with pytest.raises(UpstreamError, match="the proxy answered 407"):
            await asked(UpstreamClient(server.origin, trusted, proxy.with_user(None)))
        with pytest.raises(UpstreamError, match="--cacert FILE"):
            await asked(UpstreamClient(server.origin, trust(None, insecure=False)))
        with pytest.raises(UpstreamError, match="--cacert FILE"):
            await asked(UpstreamClient(server.origin, trust(None, insecure=False), proxy))
        listener.close()
        await asyncio.gather(*pipes)
