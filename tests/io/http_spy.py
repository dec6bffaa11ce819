"""A proxy in this process, with a server and clients played by a test, on real sockets."""

from __future__ import annotations

import asyncio
import signal
from contextlib import asynccontextmanager, suppress
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias

import pytest

from mcpspy.core.protocol.http_headers import read_upstream
from mcpspy.core.recording.decode import Frame, Note, read_entry
from mcpspy.io.http import proxy
from mcpspy.io.http.proxy import HttpOptions, _serve
from mcpspy.io.intercept.interception import InterceptionOptions
from mcpspy.io.network import listener as listener_module
from tests.strict import strict_json

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from contextlib import AbstractAsyncContextManager
    from pathlib import Path

Pairs: TypeAlias = list[tuple[str, str]]

PING = b'{"jsonrpc":"2.0","id":1,"method":"ping"}'
PONG = b'{"jsonrpc":"2.0","id":1,"result":{}}'
JSON = "Content-Type: application/json"
EVENTS = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"


def chunk(data: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(data), data)


def plain(body: bytes, *headers: str, status: str = "200 OK") -> bytes:
    """Return a complete response with a length."""
    lines = [f"HTTP/1.1 {status}", *headers, f"Content-Length: {len(body)}", "", ""]
    return "\r\n".join(lines).encode() + body


def event(message: bytes, end: bytes = b"\n") -> bytes:
    return b"event: message" + end + b"data: " + message + end * 2


async def closed(writer: asyncio.StreamWriter) -> None:
    writer.close()
    with suppress(ConnectionError):
        await writer.wait_closed()


class Reader:
    """Reads HTTP/1.1 heads and bodies byte by byte, without interpretation."""

    def __init__(self, reader: asyncio.StreamReader) -> None:
        self.stream = reader
        self._chunked = False
        self._length = 0
        self._held = b""

    async def head(self) -> tuple[str, Pairs]:
        """Return the first line and the headers unchanged."""
        first, *lines = (await self.stream.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")[:-2]
        pairs = [(name, value.strip()) for name, _, value in (line.partition(":") for line in lines)]
        known = {name.lower(): value for name, value in pairs}
        self._chunked = known.get("transfer-encoding") == "chunked"
        self._length = int(known.get("content-length", 0))
        return first, pairs

    async def some(self) -> bytes:
        """Return the next chunk of a chunked body; empty at its regular end."""
        size = int(await self.stream.readuntil(b"\r\n"), 16)
        return (await self.stream.readexactly(size + 2))[:-2]

    async def read(self, size: int) -> bytes:
        """Return N bytes of a chunked body."""
        while len(self._held) < size:
            data = await self.some()
            assert data, "the body has ended"
            self._held += data
        data, self._held = self._held[:size], self._held[size:]
        return data

    async def body(self) -> bytes:
        """Return the rest of a body. Raise IncompleteReadError if it breaks off."""
        if not self._chunked:
            return await self.stream.readexactly(self._length)
        pieces, self._held = [self._held], b""
        while data := await self.some():
            pieces.append(data)
        return b"".join(pieces)


class Call:
    """A request that has reached the server."""

    def __init__(self, first: str, headers: Pairs, body: bytes, writer: asyncio.StreamWriter) -> None:
        self.method, self.target, _ = first.split(" ")
        self.headers = headers
        self.body = body
        self.writer = writer
        self.gone = asyncio.Event()

    async def send(self, data: bytes) -> None:
        self.writer.write(data)
        await self.writer.drain()

    def header(self, name: str) -> str | None:
        return next((value for key, value in self.headers if key.lower() == name.lower()), None)


class Server:
    """The server behind the proxy: its requests wait until the test responds."""

    def __init__(self) -> None:
        self.calls: asyncio.Queue[Call] = asyncio.Queue()
        self.tasks: list[asyncio.Task[None]] = []
        self.origin = ""

    async def connected(self, stream: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self.tasks.append(task)
        reader = Reader(stream)
        calls: list[Call] = []
        try:
            while True:
                call = Call(*(await reader.head()), await reader.body(), writer)
                calls.append(call)
                self.calls.put_nowait(call)
        except (asyncio.IncompleteReadError, ConnectionError):
            for call in calls:
                call.gone.set()
        finally:
            await closed(writer)

    async def call(self) -> Call:
        return await self.calls.get()


class Client(Reader):
    """A connection to the proxy."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, host: str) -> None:
        super().__init__(reader)
        self.writer = writer
        self.host = host

    async def ask(self, method: str, target: str, body: bytes | None = None, *headers: str) -> None:
        lines = [f"{method} {target} HTTP/1.1", f"Host: {self.host}", *headers]
        if body is not None:
            lines.append(f"Content-Length: {len(body)}")
        self.writer.write("\r\n".join([*lines, "", ""]).encode() + (body or b""))
        await self.writer.drain()

    async def post(self, body: bytes, *headers: str) -> None:
        await self.ask("POST", "/mcp", body, JSON, *headers)

    async def answer(self) -> tuple[int, bytes]:
        first, _ = await self.head()
        return int(first.split(" ")[1]), await self.body()


class Spy:
    """A proxy in this process, and the server behind it."""

    def __init__(self, server: Server, recording: Path) -> None:
        self.server = server
        self.recording = recording
        self.host = ""
        self.clients: list[Client] = []
        self.stop: Callable[[], None] = lambda: None
        self.lines: asyncio.Queue[str] = asyncio.Queue()
        """Lines about endpoints for the user."""

    async def client(self) -> Client:
        name, _, port = self.host.rpartition(":")
        client = Client(*(await asyncio.open_connection(name, int(port))), self.host)
        self.clients.append(client)
        return client

    async def exchange(self, body: bytes = PING, *headers: str) -> tuple[Client, Call]:
        """Post a message on a new connection. Return both ends of the exchange once it has reached the server."""
        client = await self.client()
        await client.post(body, *headers)
        return client, await self.server.call()

    async def event_stream(self) -> tuple[Client, Call]:
        """Return both ends of an exchange whose response is a stream of events that has begun."""
        client, call = await self.exchange()
        await call.send(EVENTS)
        await client.head()
        return client, call

    def entries(self) -> list[Any]:
        lines = self.recording.read_bytes().split(b"\n")[1:-1]
        for line in lines:
            strict_json(line)
        return [read_entry(line) for line in lines]

    def frames(self, side: str) -> list[Frame]:
        return [entry for entry in self.entries() if isinstance(entry, Frame) and entry.side == side]

    def said(self, side: str) -> list[bytes]:
        return [frame.data for frame in self.frames(side)]

    def notes(self, kind: str) -> list[dict[str, Any]]:
        found = [entry for entry in self.entries() if isinstance(entry, Note) and entry.kind == kind]
        return [note.fields for note in found]

    async def ended(self, count: int = 1) -> list[Any]:
        """Wait until N exchanges have their end in the recording. Return the sides that hung up."""
        while len(ends := self.notes("http-end")) < count:  # noqa: ASYNC110 - a file sets no event.
            await asyncio.sleep(0.005)
        return [end["hung_up"] for end in ends]


Start: TypeAlias = "Callable[..., AbstractAsyncContextManager[Spy]]"


@pytest.fixture(name="proxy")
def proxy_fixture(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, runtime: Path) -> Start:
    """Start a proxy and a server. Both end with the block. `origin` is that of another server for the proxy."""
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)

    @asynccontextmanager
    async def started(
        path: str = "/mcp",
        *rules: str,
        allowed: tuple[str, ...] = (),
        recording: bool = True,
        origin: str | None = None,
        **interception: Any,
    ) -> AsyncIterator[Spy]:
        server = Server()
        listener = await asyncio.start_server(server.connected, "127.0.0.1", 0)
        server.origin = f"http://127.0.0.1:{listener.sockets[0].getsockname()[1]}"
        upstream = read_upstream((origin or server.origin) + path)
        assert upstream is not None
        options = HttpOptions(upstream, "127.0.0.1", 0)
        options.record = str(tmp_path / "recording.jsonl")
        options.recording = recording
        options.allowed_hosts = list(allowed)
        options.interception = InterceptionOptions()
        options.interception.flags = list(rules)
        for name, value in interception.items():
            setattr(options.interception, name, value)
        said: asyncio.Queue[str] = asyncio.Queue()
        stops: list[Callable[[int], None]] = []
        monkeypatch.setattr(proxy, "say", said.put_nowait)
        monkeypatch.setattr(listener_module, "GRACE", 0.05)
        monkeypatch.setattr(proxy, "stop_on_signals", stops.append)
        task = asyncio.create_task(_serve(options))
        spy = Spy(server, tmp_path / "recording.jsonl")
        spy.host, spy.lines = (await said.get()).split("/")[2], said
        spy.stop = partial(stops[0], signal.SIGTERM)
        try:
            yield spy
        finally:
            for client in spy.clients:
                await closed(client.writer)
            spy.stop()
            assert await task == 0
            listener.close()
            await asyncio.gather(*server.tasks)

    return started
