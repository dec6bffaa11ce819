"""Fuzz targets of what the HTTP proxy knows from before: with it, the same is forwarded and recorded as without.

No parser reads a message whose head is known, nor a packet that is one chunk, and an event like the one before it gets
its line without one. An exchange is played twice, with this knowledge and without, on transports without sockets. Time
passes only while nothing is due.
"""

from __future__ import annotations

import asyncio
import json
import math
import re
import ssl
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from typing import Any, cast

from msgspec import structs

from fuzz.http_messages import ORIGIN, UPSTREAM, Transport
from fuzz.virtual_time import virtual_loop
from mcpspy.core.exchange.events import ForwardedEvents
from mcpspy.core.exchange.heads import KnownHeads
from mcpspy.core.intercept.interceptor import Interceptor
from mcpspy.core.recording.decode import Damaged, Frame, read_entry
from mcpspy.core.recording.encode import json_object, splice
from mcpspy.core.recording.encode_body import SseEncoder, body_line
from mcpspy.core.rules.model import Rules
from mcpspy.io.http import context as context_module
from mcpspy.io.http import interception as interception_module
from mcpspy.io.http import server as server_module
from mcpspy.io.http.context import ExchangeContext
from mcpspy.io.http.proxy import HttpOptions, HttpProxy
from mcpspy.io.http.request import Handler, HttpRequest, Response
from mcpspy.io.http.server import DownstreamConnection
from mcpspy.io.http.upstream import UpstreamClient
from mcpspy.io.http.upstream_connection import UpstreamConnection
from mcpspy.io.intercept.interception import InterceptionOptions
from mcpspy.io.recording.recorder import Recorder

SEPARATOR = b"\n--\n"
"""Bytes between two steps of an input."""

MOST_STEPS = 10

RULES = (
    "tool:drop => drop",
    "tool:fail => error -32000 no",
    "tool:name => replace /params/name = other",
    'kind:result tool:result => replace /result = {"a":1}',
    "kind:result tool:lose => drop",
)

DATE = re.compile(rb"^Date: .*\r\n", re.MULTILINE)

FIELDS: dict[str, str | int] = {"stream": "s", "http": 1}


def encoders(chunks: list[bytes]) -> None:
    """A known event gets the line that any event gets, and a body the line that `splice` makes."""
    short, long = SseEncoder("server", FIELDS, 1000), SseEncoder("server", FIELDS, 1000)
    for chunk in chunks:
        known = short.known_line(1.0, chunk)
        line = b"".join(short.feed(1.0, chunk)[1]) if known is None else known
        assert line == b"".join(long.feed(1.0, chunk)[1]), (chunk, known)
        assert (short.is_inside_event, short.is_oversized) == (long.is_inside_event, long.is_oversized)
        if chunk:
            members = json_object(FIELDS)[1:-1]
            prefix = b'{"t":1.000000,"from":"server",%b,' % members
            line = body_line(b"1.000000", "server", members, chunk)
            assert line == b"".join(splice(prefix, [chunk], body=True))
    assert b"".join(short.close(1.0)) == b"".join(long.close(1.0))


def exchanges(data: bytes) -> None:
    """Both peers get the same bytes, and the recording the same entries, in the same order."""
    kind, *steps = data.split(SEPARATOR)[: MOST_STEPS + 1]
    has_rules, has_session = b"r" in kind, b"s" in kind
    short = _played(steps, has_rules=has_rules, has_session=has_session)
    with _without_knowledge():
        long = _played(steps, has_rules=has_rules, has_session=has_session)
    assert short == long, "\n".join(f"{a!r}\n{b!r}\n" for a, b in _differences(short, long))


@dataclass
class Log:
    """The bytes that were sent and recorded, in order; neighbours of one kind are joined."""

    entries: list[tuple[str, bytes]] = field(default_factory=list)

    def add(self, where: str, data: bytes) -> None:
        if self.entries and self.entries[-1][0] == where:
            data = self.entries.pop()[1] + data
        self.entries.append((where, data))

    def read(self) -> list[tuple[str, object]]:
        """Return the entries, with those of the recording decoded."""
        return [
            (where, [*map(_entry, data.split(b"\n")[:-1])] if where == "file" else DATE.sub(b"", data))
            for where, data in self.entries
        ]


class LoggedTransport(Transport):
    """A transport whose peer is played."""

    def __init__(self, log: Log, name: str, connection: asyncio.Protocol) -> None:
        super().__init__()
        self._log, self._name, self._connection = log, name, connection
        self._is_lost = False
        self.written_at = 0
        """Position in the log after the last write."""
        self.is_full = False
        """True while the connection is asked to write nothing."""

    def write(self, data: bytes | bytearray | memoryview) -> None:
        if not self.is_closing():
            self._log.add(self._name, bytes(data))
            self.written_at = len(self._log.entries)

    def close(self) -> None:
        if not self.is_closing():
            self._log.add(self._name + " closed", b"")
            super().close()
            self.call(self._lose)

    abort = close

    def lose(self) -> None:
        """End the connection, as its peer does."""
        self.call(self._lose)

    def receive(self, data: bytes) -> None:
        self.call(self._receive, data)

    def call(self, function: Callable[..., None], *arguments: object) -> None:
        """Call the protocol as a loop does: outside of tasks."""
        asyncio.get_running_loop().call_soon(function, *arguments)

    def _lose(self) -> None:
        if not self._is_lost:
            self._is_lost = self._is_closing = True
            self._connection.connection_lost(None)

    def _receive(self, data: bytes) -> None:
        if data and not self.is_closing():
            self._connection.data_received(data)


class Client(UpstreamClient):
    """Connections to a server that is played."""

    def __init__(self, log: Log) -> None:
        super().__init__(ORIGIN, _trusted())
        self._log = log
        self.transports: list[LoggedTransport] = []

    async def _open(self) -> UpstreamConnection:
        connection = UpstreamConnection(self._keep)
        transport = LoggedTransport(self._log, "server", connection)
        self.transports.append(transport)
        connection.connection_made(transport)
        return connection

    def _keep(self, connection: UpstreamConnection) -> None:
        super()._keep(connection)
        connection.idle_since = math.inf  # However long this machine stops.


class MemoryRecorder(Recorder):
    """A recorder whose file is a log, at a time that does not pass."""

    def __init__(self, log: Log, options: HttpOptions) -> None:
        super().__init__(options, {})
        self._log = log

    def write(self, lines: bytes | Iterable[bytes | bytearray]) -> None:
        self._log.add("file", lines if isinstance(lines, bytes) else b"".join(lines))


class SeededOptions(InterceptionOptions):
    """Rules whose notes do not differ from run to run."""

    def interceptor(self) -> Interceptor:
        return Interceptor(Rules(self.rules().rules, 0), prefix="mcpspy-")


@cache
def _trusted() -> ssl.SSLContext:
    return ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)


@contextmanager
def _without_knowledge() -> Iterator[None]:
    ways: list[tuple[Any, str]] = [
        (KnownHeads, "split"),
        (KnownHeads, "is_head"),
        (ForwardedEvents, "known"),
        (UpstreamConnection, "_has_taken_chunk"),
    ]
    before = [vars(owner)[name] for owner, name in ways]
    for owner, name in ways:
        setattr(owner, name, staticmethod(lambda *_: None))
    try:
        yield
    finally:
        for (owner, name), way in zip(ways, before, strict=True):
            setattr(owner, name, way)


def _played(steps: list[bytes], *, has_rules: bool, has_session: bool) -> list[tuple[str, object]]:
    log, errors = Log(), list[object]()
    loop = virtual_loop()
    loop.set_exception_handler(lambda _, context: errors.append(context))
    said = {module: module.say for module in (context_module, interception_module, server_module)}
    for module in said:
        module.say = lambda line: log.add("stderr", line.encode() + b"\n")  # type: ignore[attr-defined]
    try:
        loop.run_until_complete(_play(log, steps, RULES if has_rules else (), has_session=has_session))
    finally:
        for module, say in said.items():
            module.say = say  # type: ignore[attr-defined]
    assert not errors, errors
    assert not any(where == "stderr" and b"bug" in data for where, data in log.entries), log.entries
    return log.read()


async def _play(log: Log, steps: list[bytes], rules: Iterable[str], *, has_session: bool) -> None:
    options = HttpOptions(UPSTREAM, "127.0.0.1", 8808)
    options.recording = False
    options.interception = SeededOptions()
    options.interception.flags = [*rules]
    server = Client(log)
    context = ExchangeContext(UPSTREAM, MemoryRecorder(log, options), server)
    context.is_reachable = False  # No viewers.
    proxy = HttpProxy(context, options)

    def handle(request: HttpRequest) -> Response | None:
        refusal = proxy.refusal(request)
        if refusal is None:
            proxy.forward(request)
        return refusal

    async with proxy.interception.serving_viewers():
        peers = Peers(log, server, handle, has_session=has_session)
        await peers.learn(steps)
        for step in steps:
            await peers.step(step[:1], step[1:])
        await asyncio.sleep(0.01)
        proxy.stop()
        peers.client().lose()
        for transport in server.transports:
            transport.lose()
        await asyncio.sleep(0.01)


class Peers:
    """A client on one connection at a time, and the server. Both know how to send a message with a usual head."""

    def __init__(self, log: Log, server: Client, handle: Handler, *, has_session: bool) -> None:
        self._log, self._server, self._handle = log, server, handle
        self._session = b"Mcp-Session-Id: s\r\n" if has_session else b""
        self._clients: list[tuple[LoggedTransport, DownstreamConnection]] = []

    def client(self) -> LoggedTransport:
        return self._client()[0]

    def _client(self) -> tuple[LoggedTransport, DownstreamConnection]:
        if not self._clients or self._clients[-1][0].is_closing():
            connection = DownstreamConnection(self._handle, set())
            transport = LoggedTransport(self._log, f"client {len(self._clients)}", connection)
            connection.connection_made(transport)
            self._clients.append((transport, connection))
        return self._clients[-1]

    def _request_head(self, length: int) -> bytes:
        return (
            b"POST /mcp HTTP/1.1\r\nHost: 127.0.0.1:8808\r\nContent-Type: application/json\r\n"
            b"%bContent-Length: %d\r\n\r\n" % (self._session, length)
        )

    def _response_head(self, length: int) -> bytes:
        return b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n%bContent-Length: %d\r\n\r\n" % (
            self._session,
            length,
        )

    async def learn(self, steps: list[bytes]) -> None:
        """Exchange messages of the lengths that are to come, so that their heads are known."""
        requests = [len(step) - 1 for step in steps if step[:1] == b"Q"] or [1]
        responses = [len(step) - 1 for step in steps if step[:1] in (b"A", b"H", b"h")] or [1]
        for number in range(max(len(requests), len(responses))):
            await self.step(b"Q", b"0" * requests[number % len(requests)])
            await self.step(b"A", b"0" * responses[number % len(responses)])

    async def step(self, kind: bytes, data: bytes) -> None:
        """Let one of the peers do one thing, and everything happen that follows from it at once."""
        transport, client = self._client()
        # Which connection carries a request is not compared, so the server answers where it was asked last.
        server = max(self._server.transports, key=lambda each: each.written_at, default=None)
        match kind:
            case b"Q":
                transport.receive(self._request_head(len(data)) + data)
            case b"q":
                transport.receive(data)
            case b"x":
                transport.lose()
            case b"p" if not transport.is_full:
                transport.is_full = True
                transport.call(client.pause_writing)
            case b"c":
                transport.is_full = False
                transport.call(client.resume_writing)
            case _ if server is not None:
                await self._server_step(server, kind, data)
        await asyncio.sleep(0.0001)

    async def _server_step(self, server: LoggedTransport, kind: bytes, data: bytes) -> None:
        match kind:
            case b"A":
                server.receive(self._response_head(len(data)) + data)
            case b"H" | b"h":
                server.receive(self._response_head(len(data)))
                await asyncio.sleep(0.0001 if kind == b"H" else 0.01)
                server.receive(data)
            case b"a":
                server.receive(data)
            case b"E":
                server.receive(
                    b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n%bTransfer-Encoding: chunked\r\n\r\n"
                    % self._session
                )
            case b"e":
                server.receive(b"%x\r\n%b\r\n" % (len(data), data))
            case b"X":
                server.lose()


def _entry(line: bytes) -> object:
    """Return an entry of the recording: a message byte for byte, a note without its time."""
    entry = read_entry(line)
    assert not isinstance(entry, Damaged), line
    if isinstance(entry, Frame):
        return structs.replace(entry, at=0.0)
    fields = cast("Mapping[str, Any]", json.loads(line))
    return {name: value for name, value in fields.items() if name not in ("t", "asked_at")}


def _differences(
    short: list[tuple[str, object]], long: list[tuple[str, object]]
) -> Iterator[tuple[object, object]]:
    missing = [("nothing", b"")] * abs(len(short) - len(long))
    for pair in zip([*short, *missing], [*long, *missing], strict=False):
        if pair[0] != pair[1]:
            yield pair
