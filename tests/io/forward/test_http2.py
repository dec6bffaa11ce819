"""HTTP/2 of a client, of a server, and of both."""

from __future__ import annotations

import asyncio
import socket
import ssl
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

import httpx
import orjson
import pytest
from h2.connection import H2Connection  # type: ignore[import-untyped]  # It has no types.
from h2.errors import ErrorCodes  # type: ignore[import-untyped]
from h2.events import DataReceived, StreamEnded  # type: ignore[import-untyped]
from hypercorn.asyncio import serve
from hypercorn.config import Config

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from contextlib import AbstractAsyncContextManager

    from mcpspy.io.forward.ca import CertificateAuthority
    from tests.io.forward.conftest import Pki, Spy

    Spying = Callable[..., AbstractAsyncContextManager[Spy]]

pytestmark = pytest.mark.timeout(60)

PING = b'{"jsonrpc":"2.0","id":1,"method":"ping"}'
PONG = b'{"jsonrpc":"2.0","id":1,"result":{}}'
JSON = {"content-type": "application/json", "accept": "application/json, text/event-stream"}


MAX_CONNECTIONS = 8
"""Number of concurrent streams. mitmproxy by itself limits an HTTP/2 client to 5 connections to an HTTP/1.1 server."""


class Server:
    """Responds to a POST to /mcp with JSON, to a GET with events, the second one on request, and else with the body."""

    def __init__(self) -> None:
        self.versions: list[str] = []
        self.go_on = asyncio.Event()
        self.left = asyncio.Event()
        self.over = asyncio.Event()
        self.url = ""

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "lifespan":
            return
        self.versions.append(scope["http_version"])
        kind = b"text/event-stream" if scope["method"] == "GET" else b"application/json"
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-type", kind)]})
        if scope["method"] == "GET":
            await self._stream(receive, send)
            return
        body = b""
        while (message := await receive())["type"] == "http.request":
            body += message["body"]
            if not message["more_body"]:
                break
        await send({"type": "http.response.body", "body": PONG if scope["path"] == "/mcp" else body})

    async def _stream(self, receive: Any, send: Any) -> None:
        event = b"data: %s\n\n" % PONG
        await send({"type": "http.response.body", "body": event, "more_body": True})
        waiting = asyncio.ensure_future(self.go_on.wait())
        while not waiting.done():
            draining = asyncio.ensure_future(receive())
            await asyncio.wait([waiting, draining], return_when=asyncio.FIRST_COMPLETED)
            if draining.done() and draining.result()["type"] == "http.disconnect":
                waiting.cancel()
                self.left.set()
                return
            draining.cancel()
        await send({"type": "http.response.body", "body": event})


@asynccontextmanager
async def serving(pki: Pki, *protocols: str) -> AsyncIterator[Server]:
    """Serve on loopback over TLS with these ALPN protocols."""
    listener = socket.create_server(("127.0.0.1", 0))
    server = Server()
    server.url = f"https://127.0.0.1:{listener.getsockname()[1]}"
    config = Config()
    config.bind = [f"fd://{listener.detach()}"]
    config.certfile, config.keyfile = str(pki.certificate), str(pki.key)
    config.alpn_protocols = list(protocols)
    config.accesslog = config.errorlog = None
    config.graceful_timeout = config.shutdown_timeout = 0.1
    running = asyncio.create_task(serve(server, config, shutdown_trigger=server.over.wait))
    try:
        yield server
    finally:
        server.go_on.set()
        server.over.set()
        await running


def client(spy: Spy, ca: CertificateAuthority, http2: bool = True) -> httpx.AsyncClient:
    trust = ssl.create_default_context(cafile=str(ca.certificate))
    return httpx.AsyncClient(http2=http2, proxy=spy.url, verify=trust, headers=JSON, timeout=None)


def said(spy: Spy) -> list[Any]:
    return [entry["msg"] for entries in spy.recorded().values() for entry in entries if "msg" in entry]


class Ends(NamedTuple):
    """The protocols of a client and a server, and the protocol that the server then receives."""

    http2: bool
    protocols: tuple[str, ...]
    served: str


@pytest.mark.parametrize(
    "ends",
    [
        pytest.param(Ends(True, ("h2",), "2"), id="a server of HTTP 2 alone"),
        pytest.param(Ends(True, ("h2", "http/1.1"), "2"), id="both have it"),
        pytest.param(Ends(True, ("http/1.1",), "1.1"), id="the client alone"),
        pytest.param(Ends(False, ("h2", "http/1.1"), "1.1"), id="the server alone"),
    ],
)
async def test_mcp_is_forwarded_between_any_http_versions(
    ends: Ends, spying: Spying, pki: Pki, ca: CertificateAuthority
) -> None:
    async with (
        serving(pki, *ends.protocols) as server,
        spying() as spy,
        client(spy, ca, ends.http2) as http,
    ):
        for _ in range(3):
            answer = await http.post(f"{server.url}/mcp?a=1", content=PING)
            assert (answer.http_version, answer.content) == ("HTTP/2" if ends.http2 else "HTTP/1.1", PONG)
    assert server.versions == [ends.served] * 3
    ((upstream, entries),) = spy.recorded().items()
    assert upstream == f"{server.url}/mcp"
    assert said(spy) == [orjson.loads(PING), orjson.loads(PONG)] * 3
    (head, *_) = [entry for entry in entries if entry.get("note") == "http"]
    assert (head["path"], head["request"]["host"]) == ("/mcp?a=1", server.url.removeprefix("https://"))
    assert "mcpspy" not in orjson.dumps(entries).decode()


class Raw:
    """A low-level HTTP/2 client: httpx never resets a stream, and reads one late while others are silent."""

    def __init__(self, spy: Spy, ca: CertificateAuthority, url: str) -> None:
        self._spy, self._ours, self._where = spy, ca, url.removeprefix("https://")
        self._connection = H2Connection()
        self.received: dict[int, bytes] = {}
        self.ended: set[int] = set()

    async def open(self) -> None:
        self._reader, self._writer = await asyncio.open_connection(*self._spy.url[7:].split(":"))
        self._writer.write(f"CONNECT {self._where} HTTP/1.1\r\nHost: {self._where}\r\n\r\n".encode())
        assert (await self._reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 200")
        trust = ssl.create_default_context(cafile=str(self._ours.certificate))
        trust.set_alpn_protocols(["h2"])
        await self._writer.start_tls(trust, server_hostname="127.0.0.1")
        self._connection.initiate_connection()

    def ask(self, stream: int, body: bytes | None = None) -> None:
        """POST this to /mcp, or GET it."""
        head = {":method": "GET" if body is None else "POST", ":scheme": "https", ":authority": self._where}
        kind = {"accept": "text/event-stream"} if body is None else JSON
        self._connection.send_headers(
            stream, [*(head | {":path": "/mcp"} | kind).items()], end_stream=body is None
        )
        if body is not None:
            self._connection.send_data(stream, body, end_stream=True)
        self._writer.write(self._connection.data_to_send())

    def reset(self, stream: int) -> None:
        self._connection.reset_stream(stream, ErrorCodes.CANCEL)
        self._writer.write(self._connection.data_to_send())

    async def until(self, condition: Callable[[], bool]) -> None:
        while not condition():
            for event in self._connection.receive_data(await self._reader.read(1 << 16)):
                if isinstance(event, DataReceived):
                    self.received[event.stream_id] = self.received.get(event.stream_id, b"") + event.data
                elif isinstance(event, StreamEnded):
                    self.ended.add(event.stream_id)
            self._writer.write(self._connection.data_to_send())

    def close(self) -> None:
        self._writer.close()


async def test_an_event_is_passed_on_when_it_comes_and_many_streams_at_once(
    spying: Spying, pki: Pki, ca: CertificateAuthority
) -> None:
    event = b"data: %s\n\n" % PONG
    streams = range(3, 3 + 2 * MAX_CONNECTIONS, 2)
    async with serving(pki, "h2") as server, spying() as spy:
        raw = Raw(spy, ca, server.url)
        await raw.open()
        raw.ask(1, PING)
        await raw.until(lambda: 1 in raw.ended)
        for stream in streams:
            raw.ask(stream)
        await raw.until(lambda: all(raw.received.get(stream) == event for stream in streams))
        raw.ask(101, PING)
        await raw.until(lambda: 101 in raw.ended)
        server.go_on.set()
        await raw.until(lambda: raw.ended.issuperset(streams))
        assert [raw.received[stream] for stream in streams] == [event * 2] * MAX_CONNECTIONS
        raw.close()
    assert server.versions == ["2"] * (MAX_CONNECTIONS + 2)
    assert len(said(spy)) == 4 + 2 * MAX_CONNECTIONS


@pytest.mark.parametrize("how", ["stream", "connection"])
async def test_a_client_that_leaves_a_stream_is_seen_upstream(
    how: str, spying: Spying, pki: Pki, ca: CertificateAuthority
) -> None:
    async with serving(pki, "h2") as server, spying() as spy:
        raw = Raw(spy, ca, server.url)
        await raw.open()
        raw.ask(1, PING)
        await raw.until(lambda: 1 in raw.ended)
        raw.ask(3)
        await raw.until(lambda: 3 in raw.received)
        if how == "stream":
            raw.reset(3)
            await server.left.wait()
            raw.ask(5, PING)
            await raw.until(lambda: 5 in raw.ended)
        raw.close()
        await server.left.wait()
    ends = [
        e["hung_up"] for entries in spy.recorded().values() for e in entries if e.get("note") == "http-end"
    ]
    assert ends == [None, "client", *([None] if how == "stream" else [])]


async def test_traffic_that_is_not_mcp_is_forwarded_in_http2(
    spying: Spying, pki: Pki, ca: CertificateAuthority
) -> None:
    async with serving(pki, "h2") as server, spying() as spy, client(spy, ca) as http:
        for body in (b"x" * 3_000_000, b'{"method":"ping"}', b""):
            answer = await http.post(f"{server.url}/upload", content=body)
            assert (answer.http_version, answer.content) == ("HTTP/2", body)
    assert server.versions == ["2"] * 3
    assert spy.recorded() == {}


async def test_an_unreachable_or_untrusted_server_is_a_502_in_the_protocol_of_the_client(
    spying: Spying, pki: Pki, ca: CertificateAuthority, capfd: pytest.CaptureFixture[str]
) -> None:
    async with serving(pki, "h2") as server, spying(cacert=None) as spy, client(spy, ca) as http:
        for url, why in (
            ("https://127.0.0.1:1", "Connection refused"),
            (server.url, "ertificate verify failed"),
        ):
            answer = await http.post(f"{url}/mcp", content=PING)
            assert answer.status_code == 502
            error = answer.json()
            assert (error["id"], why in error["error"]["message"]) == (1, True), error
    *_, complaint = capfd.readouterr().err.splitlines()
    assert "its certificate is not trusted: " in complaint
    assert complaint.endswith("(trust its CA with --cacert FILE)")
