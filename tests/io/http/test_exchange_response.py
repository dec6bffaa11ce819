"""The head of a forwarded response, and its body in the recording."""

from __future__ import annotations

import gzip
import zlib
from typing import TYPE_CHECKING

import pytest

from mcpspy.core import compression
from tests.compressed import COMPRESS
from tests.io.http_spy import EVENTS, JSON, PING, PONG, chunk, event, plain

if TYPE_CHECKING:
    from tests.compressed import COMPRESS
from tests.io.http_spy import Start

pytestmark = pytest.mark.timeout(60)


async def test_a_response_has_the_headers_it_came_with_and_no_others(proxy: Start) -> None:
    given = ["X-One: 1", "x-TWO:  two", "Set-Cookie: a=1", "Set-Cookie: b=2", "Mcp-Session-Id: s"]
    async with proxy() as spy:
        client, call = await spy.exchange()
        await call.send(plain(PONG, *given, status="200 Fine by me"))
        first, headers = await client.head()
        assert first == "HTTP/1.1 200 Fine by me"
        assert headers == [
            ("X-One", "1"),
            ("x-TWO", "two"),
            ("Set-Cookie", "a=1"),
            ("Set-Cookie", "b=2"),
            ("Mcp-Session-Id", "s"),
            ("Content-Length", str(len(PONG))),
        ]
        assert b"a=1" not in spy.recording.read_bytes()


@pytest.mark.parametrize(
    ("encoding", "packed"),
    [
        ("gzip", gzip.compress(PONG, mtime=0)),
        ("deflate", zlib.compress(PONG)),
        ("deflate", zlib.compress(PONG, wbits=-15)),
        ("gzip", gzip.compress(PONG[:9], mtime=0) + gzip.compress(PONG[9:], mtime=0)),
        ("br", COMPRESS["br"](PONG)),
        ("zstd", COMPRESS["zstd"](PONG)),
        ("gzip", b"this is not gzip"),
        ("br", b"\xff\xffabc"),
        ("zstd", b"this is not zstd"),
        ("compress", b"\x1f\x9dabc"),
    ],
)
async def test_a_compressed_answer_continues_as_it_is_and_is_recorded_readable(
    proxy: Start, encoding: str, packed: bytes
) -> None:
    async with proxy() as spy:
        client, call = await spy.exchange()
        await call.send(plain(packed, JSON, f"Content-Encoding: {encoding}"))
        assert await client.answer() == (200, packed)
        is_damaged = packed.endswith((b"abc", b"this is not gzip", b"this is not zstd"))
        assert spy.said("server") == [packed if is_damaged else PONG]


async def test_compressed_events_are_recorded_one_by_one(proxy: Start) -> None:
    packer = zlib.compressobj(wbits=31)
    async with proxy() as spy:
        client, call = await spy.exchange()
        await call.send(EVENTS.replace(b"\r\n\r\n", b"\r\nContent-Encoding: gzip\r\n\r\n"))
        await client.head()
        for number in range(3):
            message = b'{"n":%d}' % number
            packed = packer.compress(event(message)) + packer.flush(zlib.Z_SYNC_FLUSH)
            await call.send(chunk(packed))
            assert await client.read(len(packed)) == packed
            assert spy.said("server")[-1] == message


async def test_a_missing_package_for_an_encoding_is_reported_once(
    proxy: Start, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(compression._PACKAGES, "br", "no_such_package")
    async with proxy() as spy:
        client = await spy.client()
        for _ in range(2):
            await client.post(PING)
            await (await spy.server.call()).send(plain(b"\x0b\x02\x80", JSON, "Content-Encoding: br"))
            assert await client.answer() == (200, b"\x0b\x02\x80")
    line = "bodies compressed by br are recorded as they are sent, without no_such_package: "
    assert capfd.readouterr().err.count(line) == 1
