"""Requests that are framed in every valid way get a response; others are refused, and the connection is closed."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

import pytest

from mcpspy.core.exchange.heads import MAX_HEAD
from mcpspy.io.http.request import BUFFERED, HttpRequest, Response
from mcpspy.io.http.server import accepting
from mcpspy.io.network.listener import listening

pytestmark = pytest.mark.timeout(60)

HEAD = b"HTTP/1.1\r\nHost: localhost\r\n"


@asynccontextmanager
async def connected(
    handler: object = None,
) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    """Yield a connection to a server that answers with the method, the target and the body."""

    async def echo(request: HttpRequest) -> Response:
        body = b"".join([piece async for piece in request.chunks()])
        return Response(body=f"{request.method} {request.target} ".encode() + body)

    with listening("127.0.0.1", 0, "-") as listener:
        async with accepting(handler or echo, listener):  # type: ignore[arg-type]  # Handlers of these tests.
            reader, writer = await asyncio.open_connection(*listener.getsockname())
            async with asyncio.timeout(30):
                yield reader, writer
            writer.close()
            with suppress(ConnectionResetError):
                await writer.wait_closed()


async def answer(reader: asyncio.StreamReader) -> tuple[int, bytes]:
    """Return the status and the body of a response with a length."""
    head = await reader.readuntil(b"\r\n\r\n")
    length = int(head.lower().partition(b"content-length: ")[2].split(b"\r\n")[0])
    return int(head.split(b" ")[1]), await reader.readexactly(length)


async def test_requests_that_are_sent_together_are_answered_in_order() -> None:
    async with connected() as (reader, writer):
        writer.write(b"".join(b"GET /%d " % n + HEAD + b"\r\n" for n in range(20)))
        assert [await answer(reader) for _ in range(20)] == [(200, b"GET /%d " % n) for n in range(20)]


async def test_a_request_can_arrive_byte_by_byte() -> None:
    async with connected() as (reader, writer):
        for byte in b"POST /x " + HEAD + b"Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\nA: b\r\n\r\n":
            writer.write(bytes([byte]))
            await asyncio.sleep(0)
        assert await answer(reader) == (200, b"POST /x abc")


async def test_a_long_body_arrives_whole_though_its_sender_is_paused() -> None:
    body = b"x" * (20 * BUFFERED)
    async with connected() as (reader, writer):
        writer.write(b"POST / " + HEAD + b"Content-Length: %d\r\n\r\n" % len(body) + body)
        assert await answer(reader) == (200, b"POST / " + body)


async def test_a_client_that_waits_for_100_continue_gets_it() -> None:
    async with connected() as (reader, writer):
        writer.write(b"POST / " + HEAD + b"Content-Length: 1\r\nExpect: 100-continue\r\n\r\n")
        assert await reader.readuntil(b"\r\n\r\n") == b"HTTP/1.1 100 Continue\r\n\r\n"
        writer.write(b"x")
        assert await answer(reader) == (200, b"POST / x")


async def test_an_offer_to_upgrade_is_ignored() -> None:
    async with connected() as (reader, writer):
        offer = b"Connection: Upgrade\r\nUpgrade: h2c\r\n"
        writer.write(b"POST / " + HEAD + offer + b"Content-Length: 1\r\n\r\nx" + b"GET /2 " + HEAD + b"\r\n")
        assert await answer(reader) == (200, b"POST / x")
        assert await answer(reader) == (200, b"GET /2 ")


@pytest.mark.parametrize(
    ("target", "seen"), [(b"http://a.example/x?y", "/x?y"), (b"*", "*"), (b"/%2F", "/%2F")]
)
async def test_a_target_has_no_origin(target: bytes, seen: str) -> None:
    async with connected() as (reader, writer):
        writer.write(b"OPTIONS " + target + b" " + HEAD + b"\r\n")
        assert await answer(reader) == (200, f"OPTIONS {seen} ".encode())


@pytest.mark.parametrize(
    ("request_head", "status"),
    [
        (b"hello\r\n\r\n", 400),
        (b"POST / " + HEAD + b"Content-Length: 1\r\nContent-Length: 1\r\n\r\nx", 400),
        (b"POST / " + HEAD + b"Content-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400),
        (b"POST / " + HEAD + b"Transfer-Encoding: chunked, x\r\n\r\n0\r\n\r\n", 400),
        (b"POST / " + HEAD + b"Content-Length: +1\r\n\r\nx", 400),
        (b"GET / " + HEAD + b" folded: x\r\n\r\n", 400),
        (b"GET / " + HEAD + b"a: \0\r\n\r\n", 400),
        (b"GET / " + HEAD + b"a : b\r\n\r\n", 400),
        (b"GET / " + HEAD + b"Host: other\r\n\r\n", 400),
        (b"GET / HTTP/1.1\nHost: localhost\n\n", 400),
        (b"GET /mcp?\nX: y " + HEAD + b"\r\n", 400),
        (b"GET /mcp?\nX: y\r\nHost: localhost\r\n\r\n", 400),
        (b"GET http://localhost/mcp?\nX: y " + HEAD + b"\r\n", 400),
        (b"GET /mcp\r\nHost: localhost\r\n\r\n", 400),
        *((b"GET /mcp?" + bytes([byte]) + b"b " + HEAD + b"\r\n", 400) for byte in (0, 9, 12, 13, 31, 127)),
        (b"POST / " + HEAD + b"Transfer-Encoding: chunked\r\n\r\nzz\r\n{}\r\n0\r\n\r\n", 400),
        (b"POST / " + HEAD + b"Transfer-Encoding: chunked\r\n\r\n2\r\n{}zz\r\n0\r\n\r\n", 400),
        (b"CONNECT localhost:1 " + HEAD + b"\r\n", 405),
        (b"GET / " + HEAD + b"a: " + b"x" * MAX_HEAD + b"\r\n\r\n", 431),
    ],
)
async def test_a_request_that_can_be_misread_is_refused_and_the_connection_closed(
    request_head: bytes, status: int
) -> None:
    async with connected() as (reader, writer):
        writer.write(request_head)
        assert (await answer(reader))[0] == status
        assert await reader.read() == b""


async def test_a_malformed_chunk_in_a_later_packet_is_refused_and_ends_the_body() -> None:
    ended: asyncio.Future[BaseException] = asyncio.get_running_loop().create_future()
    began = asyncio.Event()

    async def read(request: HttpRequest) -> Response:
        try:
            async for _ in request.chunks():
                began.set()
        except BaseException as error:
            ended.set_result(error)
            raise
        return Response()

    async with connected(read) as (reader, writer):
        writer.write(b"POST / " + HEAD + b"Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n")
        await began.wait()
        writer.write(b"zzz\r\n")
        assert isinstance(await ended, ConnectionError | asyncio.CancelledError)
        assert (await answer(reader))[0] == 400
        assert await reader.read() == b""


async def test_a_malformed_chunk_after_the_start_of_the_response_hangs_up() -> None:
    async def respond(request: HttpRequest) -> None:
        request.start(200, ())
        await request.write(b"first")
        async for _ in request.chunks():
            pass

    async with connected(respond) as (reader, writer):
        writer.write(b"POST / " + HEAD + b"Transfer-Encoding: chunked\r\n\r\n")
        assert (await reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 200 ")
        writer.write(b"zzz\r\n")
        with suppress(ConnectionResetError):
            assert b"HTTP/1.1" not in await reader.read()


async def test_a_request_after_a_refused_one_is_not_answered() -> None:
    async with connected() as (reader, writer):
        twice = b"GET / " + HEAD + b"Host: other\r\n\r\n"
        writer.write(twice + b"GET /2 " + HEAD + b"\r\n" + twice)
        assert (await answer(reader))[0] == 400
        assert await reader.read() == b""


async def test_a_connection_that_ends_with_its_request_is_closed_after_the_whole_request() -> None:
    async def early(_: HttpRequest) -> Response:
        return Response(body=b"early")

    async with connected(early) as (reader, writer):
        writer.write(b"POST / " + HEAD + b"Connection: close\r\nContent-Length: 6\r\n\r\nabc")
        assert await answer(reader) == (200, b"early")
        writer.write(b"def")
        assert await reader.read() == b""


async def test_an_old_client_gets_a_stream_that_ends_with_the_connection() -> None:
    async def stream(request: HttpRequest) -> None:
        request.start(200, [("Content-Type", "text/plain")])
        await request.write(b"one")
        request.send_end()

    async with connected(stream) as (reader, writer):
        writer.write(b"GET / HTTP/1.0\r\n\r\n")
        head, _, body = (await reader.read()).partition(b"\r\n\r\n")
        assert body == b"one"
        assert b"Transfer-Encoding" not in head


async def test_a_bug_in_a_handler_is_one_line_and_a_500(capfd: pytest.CaptureFixture[str]) -> None:
    async def bug(_request: HttpRequest) -> Response:
        raise LookupError("nothing")

    async with connected(bug) as (reader, writer):
        writer.write(b"GET / " + HEAD + b"\r\n")
        assert await answer(reader) == (500, b"")
    assert capfd.readouterr().err == "mcpspy: a bug in mcpspy: LookupError: 'nothing'\n"
