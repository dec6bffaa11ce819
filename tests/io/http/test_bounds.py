"""Memory of a proxy under bodies that are far larger than --max-body when decoded."""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import re
import signal
import sys
import zlib
from contextlib import asynccontextmanager, suppress
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
DECODED = 256 * MIB
ALLOWED = 160 * MIB
HEAD, TAIL = b'{"jsonrpc":"2.0","id":1,"result":{"a":"', b'"}}'
RULE = ("--rule", "tool:nothing => delay 1s")


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
    """Return a message of 256 MiB, which is more than a proxy may use. Compressing it takes a second."""
    if encoding == "identity":
        return Body(encoding, list(filled(head, tail, DECODED)))
    return packed(encoding, filled(head, tail, DECODED))


class Running:
    """A proxy in a child process, a server behind it, and what the server received."""

    def __init__(self, pid: int, port: int, recording: Path) -> None:
        self.pid = pid
        self.port = port
        self.recording = recording
        self.response = Body("identity", [b"{}"])
        self.media_type = "application/json"
        self.received = ""
        self._before = 0

    def begin(self) -> None:
        with open(f"/proc/{self.pid}/clear_refs", "w", encoding="ascii") as file:
            file.write("5")  # Resets the peak.
        self._before = self._memory("VmRSS")

    def growth(self) -> int:
        return self._memory("VmHWM") - self._before

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
        """Return the notes of the last exchange, after its end."""
        while b'"http-end"' not in (lines := self.recording.read_bytes()):  # noqa: ASYNC110 - a file sets no event.
            await asyncio.sleep(0.01)
        return [note for line in lines.splitlines() if (note := json.loads(line)).get("note") == kind]


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


@asynccontextmanager
async def proxy(tmp_path: Path, *options: str) -> AsyncIterator[Running]:
    running: list[Running] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await running[0].serve(reader, writer)

    server = await asyncio.start_server(serve, "127.0.0.1", 0, limit=MIB)
    port = server.sockets[0].getsockname()[1]
    recording = tmp_path / "recording.jsonl"
    child = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "mcpspy", "http", "--upstream", f"http://127.0.0.1:{port}/mcp"),
        *("--listen", ":0", "--record", str(recording), *options),
        stderr=asyncio.subprocess.PIPE,
        env={**os.environ, "MCPSPY_DIR": str(tmp_path), "XDG_CONFIG_HOME": str(tmp_path)},
    )
    try:
        assert child.stderr is not None
        found = re.search(rb"http://127\.0\.0\.1:(\d+)/", await child.stderr.readline())
        assert found is not None
        running.append(Running(child.pid, int(found[1]), recording))
        yield running[0]
    finally:
        child.send_signal(signal.SIGTERM)
        await child.wait()
        server.close()


ENCODINGS = ("gzip", "deflate", "br", "zstd", "identity")
INTERCEPTION = pytest.mark.parametrize("options", [(), RULE], ids=["plain", "intercepted"])


@INTERCEPTION
@pytest.mark.parametrize("encoding", ENCODINGS)
async def test_a_response_above_the_limit_is_forwarded_unchanged_in_little_memory(
    tmp_path: Path, encoding: str, options: tuple[str, ...]
) -> None:
    body = bomb(encoding)
    async with proxy(tmp_path, *options) as running:
        running.response = body
        running.begin()
        assert (
            await running.post(Body("identity", [b'{"jsonrpc":"2.0","id":1,"method":"ping"}'])) == body.sha256
        )
        assert running.growth() < ALLOWED
        (note,) = await running.notes("oversized")
        assert (note["from"], note["size"], note["sha256"]) == ("server", body.size, body.sha256)
        assert note.get("encoding", "identity") == encoding
    assert running.recording.stat().st_size < 10_000


@INTERCEPTION
@pytest.mark.parametrize("encoding", ENCODINGS)
async def test_a_request_above_the_limit_is_forwarded_unchanged_in_little_memory(
    tmp_path: Path, encoding: str, options: tuple[str, ...]
) -> None:
    body = bomb(encoding)
    async with proxy(tmp_path, *options) as running:
        running.begin()
        await running.post(body)
        assert running.received == body.sha256
        assert running.growth() < ALLOWED
        (note,) = await running.notes("oversized")
        assert (note["from"], note["size"], note["sha256"]) == ("client", body.size, body.sha256)
    assert running.recording.stat().st_size < 10_000


@INTERCEPTION
@pytest.mark.parametrize(
    ("encoding", "head"),
    [
        *((each, b"event: message\ndata: ") for each in ENCODINGS),
        ("identity", b": a comment "),
        ("gzip", b"id: 1\nunknown: "),
    ],
)
async def test_events_without_an_end_are_forwarded_in_little_memory(
    tmp_path: Path, encoding: str, options: tuple[str, ...], head: bytes
) -> None:
    body = bomb(encoding, head, b"")
    async with proxy(tmp_path, *options) as running:
        running.response = body
        running.media_type = "text/event-stream"
        running.begin()
        ping = Body("identity", [b'{"jsonrpc":"2.0","id":1,"method":"ping"}'])
        if options and encoding != "identity":  # The stream ends where it is no longer decoded.
            with pytest.raises(asyncio.IncompleteReadError):
                await running.post(ping)
        else:
            forwarded = await running.post(ping)
            assert options or forwarded == body.sha256
        assert running.growth() < ALLOWED
    assert running.recording.stat().st_size < 10_000


@INTERCEPTION
@pytest.mark.parametrize("encoding", ["gzip", "deflate", "br", "zstd"])
async def test_small_events_of_a_high_compression_ratio_are_recorded_up_to_a_bound(
    tmp_path: Path, encoding: str, options: tuple[str, ...]
) -> None:
    event = b'data: {"jsonrpc":"2.0","method":"a"}\n\n'
    body = packed(encoding, iter([event * (MIB // len(event))] * 3))
    async with proxy(tmp_path, *options) as running:
        running.response = body
        running.media_type = "text/event-stream"
        running.begin()
        ping = Body("identity", [b'{"jsonrpc":"2.0","id":1,"method":"ping"}'])
        if options:  # Events are decoded for the client, up to the same bound.
            with pytest.raises(asyncio.IncompleteReadError):
                await running.post(ping)
        else:
            assert await running.post(ping) == body.sha256
        assert running.growth() < ALLOWED
        (note,) = await running.notes("oversized")
        assert (note["from"], note["encoding"]) == ("server", encoding)
    events = max(MIN_LINES, MAX_LINE_RATIO * body.size) / 2
    assert running.recording.stat().st_size < 100 * events + 10_000
