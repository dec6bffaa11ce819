"""Memory of a proxy under bodies that are far larger than --max-body when decoded."""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import re
import socket
import subprocess
import sys
import zlib
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass
from functools import cache, cached_property
from typing import TYPE_CHECKING, Any

import pytest

from mcpspy.core.recording.capped_body import MAX_LINE_RATIO, MIN_LINES
from tests.compressed import brotli, zstd
from tests.io.http_spy import Reader

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator
    from pathlib import Path

pytestmark = [
    pytest.mark.timeout(120),
    pytest.mark.skipif(sys.platform != "linux", reason="the peak of a process is read from /proc"),
]

MIB = 1 << 20
DECODED = 192 * MIB
ALLOWED = 176 * MIB
HEAD, TAIL = b'{"jsonrpc":"2.0","id":1,"result":{"a":"', b'"}}'
Options = tuple[str, ...]
INTERCEPTION: dict[str, Options] = {"plain": (), "intercepted": ("--rule", "tool:nothing => delay 1s")}


@dataclass(frozen=True)
class Body:
    encoding: str
    pieces: list[bytes]

    @property
    def size(self) -> int:
        return sum(map(len, self.pieces))

    @cached_property
    def sha256(self) -> str:
        found = hashlib.sha256()
        for piece in self.pieces:
            found.update(piece)
        return found.hexdigest()


def packed(encoding: str, plain: Iterator[bytes]) -> Body:
    """Return a body without ever holding its decoded bytes."""
    packer: Any
    compress: Callable[[bytes], bytes]
    finish: Callable[[], bytes]
    if encoding == "br":
        packer = brotli.Compressor(quality=1)
        compress, finish = packer.compress, packer.finish
    elif encoding == "zstd":
        packer = zstd.ZstdCompressor()
        compress, finish = packer.compress, packer.flush
    else:
        packer = zlib.compressobj(1, wbits=31 if encoding == "gzip" else 15)
        compress, finish = packer.compress, packer.flush
    return Body(encoding, [piece for piece in (*map(compress, plain), finish()) if piece])


def filled(head: bytes, tail: bytes, size: int) -> Iterator[bytes]:
    yield head
    block = b"0" * MIB
    for _ in range(size // MIB):
        yield block
    yield tail


@cache
def bomb(encoding: str, head: bytes = HEAD, tail: bytes = TAIL) -> Body:
    """Return a message of 192 MiB, which is more than a proxy may use. Compressing it takes a second."""
    if encoding == "identity":
        return Body(encoding, list(filled(head, tail, DECODED)))
    return packed(encoding, filled(head, tail, DECODED))


class Running:
    """A proxy in a child process, a server behind it, and what the server received.

    Tests whose exchanges end use one proxy: its start takes half a second of CPU time. What one of them leaves in its
    memory counts for those after it.
    """

    def __init__(
        self, pid: int, port: int, recording: Path, upstream: socket.socket, options: Options
    ) -> None:
        self.pid = pid
        self.port = port
        self.upstream = upstream
        self.options = options
        self._recording = recording
        self._before = self._memory("VmRSS")
        self._begin()

    @asynccontextmanager
    async def serving(self) -> AsyncIterator[Running]:
        """Run the server in this loop. The peak of the proxy, and what it records, count from here."""
        self._begin()
        async with await asyncio.start_server(self.serve, sock=self.upstream.dup(), limit=MIB):
            yield self
            await self._ended()

    def _begin(self) -> None:
        self.response = Body("identity", [b"{}"])
        self.media_type = "application/json"
        self.received = ""
        self._begun = self._recording.stat().st_size
        with open(f"/proc/{self.pid}/clear_refs", "w", encoding="ascii") as file:
            file.write("5")  # Resets the peak.

    async def _ended(self) -> None:
        """Wait for the end of the exchange."""
        while b'"http-end"' not in self.recorded():  # noqa: ASYNC110 - a file sets no event.
            await asyncio.sleep(0.01)

    def growth(self) -> int:
        """Return the bytes by which the peak exceeds the memory of the proxy at its start."""
        return self._memory("VmHWM") - self._before

    def recorded(self) -> bytes:
        with self._recording.open("rb") as file:
            file.seek(self._begun)
            return file.read()

    def _memory(self, name: str) -> int:
        with open(f"/proc/{self.pid}/status", encoding="ascii") as file:
            found = re.search(rf"{name}:\s+(\d+) kB", file.read())
        assert found is not None
        return int(found[1]) * 1024

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            with suppress(asyncio.IncompleteReadError, ConnectionError):
                while True:
                    _, headers = await (stream := Reader(reader)).head()
                    self.received = await digest(stream, dict(headers))
                    head = [
                        "HTTP/1.1 200 OK",
                        f"Content-Type: {self.media_type}",
                        f"Content-Encoding: {self.response.encoding}",
                        "Transfer-Encoding: chunked",
                    ]
                    if self.response.encoding == "identity":
                        del head[2]
                    writer.write("\r\n".join([*head, "", ""]).encode())
                    await send_chunks(writer, self.response)
        finally:
            writer.close()

    async def post(self, body: Body) -> str:
        """Post a body. Return the digest of the response."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        head = [
            "POST /mcp HTTP/1.1",
            f"Host: 127.0.0.1:{self.port}",
            "Content-Type: application/json",
            *((f"Content-Encoding: {body.encoding}",) if body.encoding != "identity" else ()),
            "Transfer-Encoding: chunked",
        ]
        writer.write("\r\n".join([*head, "", ""]).encode())
        try:
            await send_chunks(writer, body)
            stream = Reader(reader)
            first, headers = await stream.head()
            assert first.startswith("HTTP/1.1 200")
            return await digest(stream, dict(headers))
        finally:
            writer.close()

    async def notes(self, kind: str) -> list[dict[str, Any]]:
        """Return the notes of the exchange, after its end."""
        await self._ended()
        notes = map(json.loads, self.recorded().splitlines())
        return [note for note in notes if note.get("note") == kind]


async def send_chunks(writer: asyncio.StreamWriter, body: Body) -> None:
    for piece in body.pieces:
        writer.write(b"%x\r\n%b\r\n" % (len(piece), piece))
        await writer.drain()
    writer.write(b"0\r\n\r\n")
    await writer.drain()


async def digest(stream: Reader, headers: dict[str, str]) -> str:
    found = hashlib.sha256()
    if headers.get("Transfer-Encoding") != "chunked":
        found.update(await stream.body())
        return found.hexdigest()
    while data := await stream.some():
        found.update(data)
    return found.hexdigest()


@contextmanager
def started(folder: Path, options: Options) -> Iterator[Running]:
    recording = folder / "recording.jsonl"
    with socket.create_server(("127.0.0.1", 0)) as upstream:
        command = [
            *(sys.executable, "-m", "mcpspy", "http", "--listen", ":0", "--record", str(recording), *options),
            *("--upstream", f"http://127.0.0.1:{upstream.getsockname()[1]}/mcp"),
        ]
        environment = {**os.environ, "MCPSPY_DIR": str(folder), "XDG_CONFIG_HOME": str(folder)}
        with subprocess.Popen(command, stderr=subprocess.PIPE, env=environment) as child:
            assert child.stderr is not None
            found = re.search(rb"http://127\.0\.0\.1:(\d+)/", child.stderr.readline())
            assert found is not None
            yield Running(child.pid, int(found[1]), recording, upstream, options)
            child.terminate()


@pytest.fixture(scope="module", params=INTERCEPTION.values(), ids=[*INTERCEPTION])
def shared(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    with started(tmp_path_factory.mktemp("shared"), request.param) as running:
        yield running


@pytest.fixture(params=INTERCEPTION.values(), ids=[*INTERCEPTION])
def alone(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Running]:
    with started(tmp_path, request.param) as running:
        yield running


ENCODINGS = ("gzip", "deflate", "br", "zstd", "identity")


@pytest.mark.parametrize("encoding", ENCODINGS)
async def test_a_response_above_the_limit_is_forwarded_unchanged_in_little_memory(
    shared: Running, encoding: str
) -> None:
    body = bomb(encoding)
    async with shared.serving() as running:
        running.response = body
        assert (
            await running.post(Body("identity", [b'{"jsonrpc":"2.0","id":1,"method":"ping"}'])) == body.sha256
        )
        assert running.growth() < ALLOWED
        (note,) = await running.notes("oversized")
        assert (note["from"], note["size"], note["sha256"]) == ("server", body.size, body.sha256)
        assert note.get("encoding", "identity") == encoding
    assert len(running.recorded()) < 10_000


@pytest.mark.parametrize("encoding", ENCODINGS)
async def test_a_request_above_the_limit_is_forwarded_unchanged_in_little_memory(
    shared: Running, encoding: str
) -> None:
    body = bomb(encoding)
    async with shared.serving() as running:
        await running.post(body)
        assert running.received == body.sha256
        assert running.growth() < ALLOWED
        (note,) = await running.notes("oversized")
        assert (note["from"], note["size"], note["sha256"]) == ("client", body.size, body.sha256)
    assert len(running.recorded()) < 10_000


@pytest.mark.parametrize(
    ("encoding", "head"),
    [
        *((each, b"event: message\ndata: ") for each in ENCODINGS),
        ("identity", b": a comment "),
        ("gzip", b"id: 1\nunknown: "),
    ],
)
async def test_events_without_an_end_are_forwarded_in_little_memory(
    alone: Running, encoding: str, head: bytes
) -> None:
    body = bomb(encoding, head, b"")
    async with alone.serving() as running:
        running.response = body
        running.media_type = "text/event-stream"
        ping = Body("identity", [b'{"jsonrpc":"2.0","id":1,"method":"ping"}'])
        if alone.options and encoding != "identity":  # The rest of the stream is not decoded.
            with pytest.raises(asyncio.IncompleteReadError):
                await running.post(ping)
        else:
            forwarded = await running.post(ping)
            assert alone.options or forwarded == body.sha256
        assert running.growth() < ALLOWED
    assert len(running.recorded()) < 10_000


@pytest.mark.parametrize("encoding", ["gzip", "deflate", "br", "zstd"])
async def test_small_events_of_a_high_compression_ratio_are_recorded_up_to_a_bound(
    alone: Running, encoding: str
) -> None:
    event = b'data: {"jsonrpc":"2.0","method":"a"}\n\n'
    body = packed(encoding, iter([event * (MIB // len(event))] * 3))
    async with alone.serving() as running:
        running.response = body
        running.media_type = "text/event-stream"
        ping = Body("identity", [b'{"jsonrpc":"2.0","id":1,"method":"ping"}'])
        if alone.options:  # Events are decoded for the client, up to the same bound.
            with pytest.raises(asyncio.IncompleteReadError):
                await running.post(ping)
        else:
            assert await running.post(ping) == body.sha256
        assert running.growth() < ALLOWED
        (note,) = await running.notes("oversized")
        assert (note["from"], note["encoding"]) == ("server", encoding)
    events = max(MIN_LINES, MAX_LINE_RATIO * body.size) / 2
    assert len(running.recorded()) < 100 * events + 10_000
