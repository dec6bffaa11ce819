"""One exchange through the proxy: real sockets, with a server and a client played by the test."""

from __future__ import annotations

import asyncio
import errno
import json
import os
import socket
from contextlib import suppress
from typing import TYPE_CHECKING

import pytest

from mcpspy.core.exchange.base import METADATA_LIMIT
from mcpspy.io.http import context as streams_module
from mcpspy.io.http import server
from mcpspy.io.http.upstream_connection import UpstreamConnection
from mcpspy.io.recording import writer
from tests.io.http_spy import EVENTS, JSON, PING, PONG, chunk, closed, event, plain

if TYPE_CHECKING:
    from tests.io.http_spy import Call, Client, Spy, Start

pytestmark = pytest.mark.timeout(60)


def origin_of(server: asyncio.Server) -> str:
    return f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"


async def test_an_event_leaves_when_it_arrives(proxy: Start) -> None:
    async with proxy() as spy:
        client, call = await spy.event_stream()
        for sent in (b": ping\n\n", event(b'{"n":1}'), b"id: 7\ndata:\n\n", event(PONG)):
            await call.send(chunk(sent))
            assert await client.read(len(sent)) == sent
        await call.send(chunk(b""))
        assert await client.body() == b""
        assert spy.said("server") == [b'{"n":1}', PONG]
        assert [note["id"] for note in spy.notes("sse")] == ["7"]
        assert await spy.ended() == [None]


async def test_half_an_event_is_not_held_back(proxy: Start) -> None:
    async with proxy() as spy:
        client, call = await spy.exchange()
        await call.send(EVENTS + chunk(b"data: " + PONG[:9]))
        await client.head()
        assert await client.read(15) == b"data: " + PONG[:9]
        assert spy.said("server") == []
        await call.send(chunk(PONG[9:] + b"\n\n") + chunk(b""))
        assert await client.body() == PONG[9:] + b"\n\n"
        assert spy.said("server") == [PONG]


@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\r"])
async def test_line_ends_of_events_are_unchanged(proxy: Start, end: bytes) -> None:
    stream = b": c" + end * 2 + b"id: 1" + end + event(b'{"a":"\xc3\xa9"}', end) + event(PONG, end)
    async with proxy() as spy:
        client, call = await spy.exchange()
        await call.send(
            EVENTS + b"".join(chunk(stream[at : at + 1]) for at in range(len(stream))) + chunk(b"")
        )
        await client.head()
        assert await client.body() == stream
        assert [(frame.data, frame.event_id) for frame in spy.frames("server")] == [
            (b'{"a":"\xc3\xa9"}', "1"),
            (PONG, None),
        ]


async def test_a_request_has_the_headers_it_came_with_and_asks_for_no_compression(proxy: Start) -> None:
    async with proxy() as spy:
        client = await spy.client()
        own = f"http://{spy.host}"
        await client.post(
            PING,
            "accept: text/event-stream",
            f"Origin: {own}",
            "Accept-Encoding: gzip",
            "Authorization: t0ken",
        )
        call = await spy.server.call()
        assert sorted((name.lower(), value) for name, value in call.headers) == [
            ("accept", "text/event-stream"),
            ("accept-encoding", "identity"),
            ("authorization", "t0ken"),
            ("content-length", str(len(PING))),
            ("content-type", "application/json"),
            ("host", spy.server.origin.removeprefix("http://")),
            ("origin", spy.server.origin),
        ]
        await call.send(plain(PONG, JSON))
        assert await client.answer() == (200, PONG)
        assert b"t0ken" not in spy.recording.read_bytes()


@pytest.mark.parametrize(
    "response",
    [
        b"HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\n\r\n",
        b"HTTP/1.1 202 Accepted\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        b"HTTP/1.1 202 Accepted\r\nContent-Type: application/json\r\nContent-Length: 0\r\n\r\n",
        b"HTTP/1.1 204 No Content\r\n\r\n",
    ],
)
async def test_an_answer_without_a_body_stays_one(proxy: Start, response: bytes) -> None:
    async with proxy() as spy:
        client = await spy.client()
        for _ in range(2):  # The connection can be used again.
            await client.post(b'{"jsonrpc":"2.0","method":"notifications/initialized"}')
            call = await spy.server.call()
            await call.send(response)
            assert await client.stream.readexactly(len(response)) == response
        assert await spy.ended(2) == [None, None]
        assert spy.said("server") == []


@pytest.mark.parametrize(
    ("request_body", "response_body"),
    [
        (b'{\n "id": 1\r\n}\n', b'{\n\t"id":1,\n"result":\n{}}\n'),
        (b'{"\xff":1}', b"\xff\xfe\x00"),
        (b"not json", b"[]"),
        (b'{"id":1}\r', b'{"id":1}\r\n'),
        (b'{"id":1}\n', b'{"id":1}\n\n'),
        (b'\xef\xbb\xbf{"id":1}', b'{"big":123456789012345678901234567890}'),
        (b"{ a: 1 }", b'{"a":NaN,"b":"\\ud800"}'),
        (b"[" * 200 + b"]" * 200, b"[INFO] ready [x]"),
    ],
)
async def test_bodies_pass_and_are_recorded_byte_for_byte(
    proxy: Start, request_body: bytes, response_body: bytes
) -> None:
    async with proxy() as spy:
        client, call = await spy.exchange(request_body)
        assert call.body == request_body
        await call.send(plain(response_body, JSON))
        assert await client.answer() == (200, response_body)
        for side, body in (("client", request_body), ("server", response_body)):
            (frame,) = spy.frames(side)
            (line,) = [
                line
                for line in spy.recording.read_bytes().split(b"\n")
                if f'"from":"{side}"'.encode() in line
            ]
            end = next(
                (end for end in (b"\r\n", b"\n") if b'"eol":' + json.dumps(end.decode()).encode() in line),
                b"",
            )
            assert frame.data + end == body


async def test_a_recording_that_is_deleted_continues_in_a_part(
    proxy: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writer, "CHECK", 0.0)
    async with proxy() as spy:
        client = await spy.client()
        for number in range(2):
            await client.post(b'{"jsonrpc":"2.0","id":%d,"method":"ping"}' % number)
            call = await spy.server.call()
            await call.send(plain(b'{"jsonrpc":"2.0","id":%d,"result":{}}' % number, JSON))
            await client.answer()
            if number == 0:
                await spy.ended()
                spy.recording.unlink()
        spy.recording = spy.recording.with_name("recording.part2.jsonl")
        await spy.ended()
        assert spy.said("client")[-1] == b'{"jsonrpc":"2.0","id":1,"method":"ping"}'
        assert spy.said("server")[-1] == b'{"jsonrpc":"2.0","id":1,"result":{}}'


async def test_a_chunked_request_arrives_whole(proxy: Start) -> None:
    async with proxy() as spy:
        client = await spy.client()
        client.writer.write(
            f"POST /mcp HTTP/1.1\r\nHost: {spy.host}\r\nTransfer-Encoding: chunked\r\n\r\n".encode()
            + chunk(PING[:9])
            + chunk(PING[9:])
            + chunk(b"")
        )
        call = await spy.server.call()
        assert call.body == PING
        assert spy.said("client") == [PING]


@pytest.mark.parametrize(
    ("method", "status", "body"),
    [
        ("GET", "405 Method Not Allowed", b"no stream here"),
        ("DELETE", "200 OK", b""),
        ("DELETE", "405 Method Not Allowed", b""),
        ("OPTIONS", "204 No Content", None),
        ("POST", "404 Not Found", b'{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"x"}}'),
        ("POST", "406 Not Acceptable", b"{}"),
        ("PUT", "500 Oops", b"<html>"),
    ],
)
async def test_every_method_and_status_passes(
    proxy: Start, method: str, status: str, body: bytes | None
) -> None:
    response = plain(body, "Allow: POST") if body is not None else b"HTTP/1.1 200 OK\r\nAllow: POST\r\n\r\n"
    response = response.replace(b"200 OK", status.encode())
    async with proxy() as spy:
        client = await spy.client()
        await client.ask(method, "/mcp?a=%2F&b=%20+", PING if method == "POST" else None)
        call = await spy.server.call()
        assert (call.method, call.target) == (method, "/mcp?a=%2F&b=%20+")
        await call.send(response)
        assert await client.stream.readexactly(len(response)) == response
        (note,) = spy.notes("http")
        assert (note["method"], note["status"]) == (method, int(status[:3]))
        assert note["response"]["allow"] == "POST"


async def test_head_passes_with_the_length_of_what_is_not_sent(proxy: Start) -> None:
    response = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 55\r\n\r\n"
    async with proxy() as spy:
        client = await spy.client()
        for _ in range(2):
            await client.ask("HEAD", "/mcp")
            await (await spy.server.call()).send(response)
            assert await client.stream.readexactly(len(response)) == response


async def test_another_path_passes_unrecorded_but_noted(proxy: Start) -> None:
    async with proxy() as spy:
        client = await spy.client()
        await client.ask("POST", "/token", b"grant_type=x&code=s3cret")
        call = await spy.server.call()
        assert call.body == b"grant_type=x&code=s3cret"
        await call.send(plain(b'{"access_token":"s3cret"}', JSON))
        assert await client.answer() == (200, b'{"access_token":"s3cret"}')
        assert [note["path"] for note in spy.notes("http")] == ["/token"]
        assert b"s3cret" not in spy.recording.read_bytes()


async def test_the_server_has_a_message_after_the_file_has_it(proxy: Start) -> None:
    async with proxy() as spy:
        client, call = await spy.exchange()
        assert spy.said("client") == [PING]
        await call.send(plain(PONG, JSON)[:-1])
        await client.head()
        assert spy.said("server") == []
        await call.send(PONG[-1:])
        assert await client.body() == PONG
        assert spy.said("server") == [PONG]


async def test_a_client_that_leaves_is_gone_upstream_at_once(proxy: Start) -> None:
    async with proxy() as spy:
        client, call = await spy.exchange()
        await call.send(EVENTS + chunk(event(b'{"n":1}')))
        await client.head()
        await client.some()
        client.writer.close()
        await asyncio.wait_for(call.gone.wait(), 20)
        assert await spy.ended() == ["client"]


async def test_a_client_that_leaves_before_the_answer_is_gone_upstream_at_once(proxy: Start) -> None:
    async with proxy() as spy:
        client, call = await spy.exchange()
        client.writer.close()
        await asyncio.wait_for(call.gone.wait(), 20)
        assert await spy.ended() == ["client"]
        (note,) = spy.notes("http")
        assert (note["method"], note["status"], note["response"]) == ("POST", None, {})


@pytest.mark.parametrize("sent", [b"", b'{"id"'])
async def test_a_client_that_leaves_amid_its_request_is_noted(proxy: Start, sent: bytes) -> None:
    async with proxy() as spy:
        client = await spy.client()
        client.writer.write(
            f"POST /mcp HTTP/1.1\r\nHost: {spy.host}\r\nContent-Length: 99\r\n\r\n".encode() + sent
        )
        await client.writer.drain()
        client.writer.close()
        assert await spy.ended() == ["client"]
        assert spy.server.calls.empty()
        assert [(frame.data, frame.eol) for frame in spy.frames("client")] == ([(sent, "")] if sent else [])
        assert [note["status"] for note in spy.notes("http")] == [None]


async def test_a_client_that_leaves_during_a_body_that_is_not_a_message_is_noted(proxy: Start) -> None:
    reached, over = asyncio.Event(), asyncio.Event()

    async def take(stream: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await stream.readuntil(b"grant")
        reached.set()
        with suppress(ConnectionError):
            await stream.read()
        await closed(writer)
        over.set()

    taking = await asyncio.start_server(take, "127.0.0.1", 0)
    async with proxy(origin=origin_of(taking)) as spy:
        client = await spy.client()
        client.writer.write(
            f"POST /token HTTP/1.1\r\nHost: {spy.host}\r\nContent-Length: 99\r\n\r\ngrant".encode()
        )
        await reached.wait()
        client.writer.transport.abort()
        assert await spy.ended() == ["client"]
        assert [(note["path"], note["status"]) for note in spy.notes("http")] == [("/token", None)]
        taking.close()
        await over.wait()


@pytest.mark.parametrize("method", ["POST", "GET"])
async def test_an_end_by_mcpspy_is_not_the_client_s(proxy: Start, method: str) -> None:
    async with proxy() as spy:
        answered, waiting = await spy.client(), await spy.client()
        for client in (answered, waiting):
            await client.ask(method, "/mcp", PING if method == "POST" else None)
            call = await spy.server.call()
            if client is answered:
                await call.send(EVENTS)
                await client.head()
        spy.stop()
        assert await spy.ended(2) == ["mcpspy", "mcpspy"]
        assert sorted(str(note["status"]) for note in spy.notes("http")) == ["200", "None"]


async def test_a_kept_connection_that_the_server_closes_unanswered_is_asked_once(proxy: Start) -> None:
    """A direct client sees its connection close and may not retry, because it cannot know what the server did."""
    async with proxy() as spy:
        client = await spy.client()
        await client.post(PING)
        first = await spy.server.call()
        await first.send(plain(PONG, JSON))
        await client.answer()
        await client.post(PING)
        second = await spy.server.call()
        assert second.writer is first.writer
        second.writer.close()
        assert (await client.answer())[0] == 502
        await client.post(PING)
        third = await spy.server.call()
        assert third.writer is not first.writer
        await third.send(plain(PONG, JSON))
        assert await client.answer() == (200, PONG)
        assert spy.server.calls.empty()


async def test_a_connection_that_the_server_closed_while_idle_is_not_used(proxy: Start) -> None:
    async with proxy() as spy:
        client = await spy.client()
        for _ in range(50):
            await client.post(PING)
            call = await spy.server.call()
            await call.send(plain(PONG, JSON))
            call.writer.close()
            assert await client.answer() == (200, PONG)
            await call.gone.wait()


@pytest.mark.parametrize(
    ("response", "passed"),
    [
        (EVENTS + chunk(event(PONG)), event(PONG)),
        (EVENTS + chunk(b"data: {"), b"data: {"),
        (plain(PONG, JSON)[:-5], None),
        (plain(PONG, "Content-Type: text/plain")[:-5], None),
    ],
)
@pytest.mark.parametrize("harshly", [False, True])
async def test_a_server_that_dies_midway_leaves_a_broken_body(
    proxy: Start, response: bytes, passed: bytes | None, harshly: bool
) -> None:
    async with proxy() as spy:
        client, call = await spy.exchange()
        await call.send(response)
        await client.head()
        if passed is not None:
            assert await client.read(len(passed)) == passed
        if harshly:
            call.writer.transport.abort()
        else:
            call.writer.close()
        with pytest.raises(asyncio.IncompleteReadError):
            await client.body()
        assert await spy.ended() == ["server"]


async def test_the_last_bytes_of_a_dying_server_are_recorded_as_incomplete(proxy: Start) -> None:
    async with proxy() as spy:
        client, call = await spy.exchange()
        await call.send(EVENTS + chunk(b"data: " + PONG))
        await client.head()
        await client.read(6 + len(PONG))
        call.writer.close()
        await spy.ended()
        (frame,) = spy.frames("server")
        assert (frame.data, frame.eol) == (PONG, "")


@pytest.mark.parametrize(
    ("body", "asked"),
    [
        (b'{"jsonrpc":"2.0","id":1,"method":"ping"}', b"1"),
        (b'{"jsonrpc":"2.0","id":"a","method":"ping"}', b'"a"'),
        (
            b'{"jsonrpc":"2.0","id":123456789012345678901234567890,"method":"x"}',
            b"123456789012345678901234567890",
        ),
        (b'{"jsonrpc":"2.0","method":"notifications/initialized"}', b"null"),
        (b'{"jsonrpc":"2.0","id":1,"result":{}}', b"null"),
        (b'[{"jsonrpc":"2.0","id":1,"method":"a"},{"jsonrpc":"2.0","id":2,"method":"b"}]', b"null"),
        (b"nonsense", b"null"),
        (b"", b"null"),
    ],
)
async def test_a_server_that_is_down_is_a_502_by_name_with_the_id(
    proxy: Start, refusing_port: int, body: bytes, asked: bytes
) -> None:
    down = f"http://127.0.0.1:{refusing_port}"
    async with proxy(origin=down) as spy:
        client = await spy.client()
        await client.post(body)
        status, answer = await client.answer()
        assert status == 502
        assert b'"id":' + asked + b"," in answer
        error = json.loads(answer)["error"]
        assert error["message"].startswith(f"mcpspy: cannot reach {down}/mcp: ")
        assert error["message"].endswith(os.strerror(errno.ECONNREFUSED))
        (note,) = spy.notes("http")
        assert (note["status"], note["error"]) == (502, error["message"])


async def test_a_server_that_hangs_up_unasked_is_a_502(proxy: Start) -> None:
    async with proxy() as spy:
        client = await spy.client()
        await client.post(PING)
        (await spy.server.call()).writer.close()
        status, answer = await client.answer()
        assert (status, json.loads(answer)["id"]) == (502, 1)
        assert await spy.ended() == [None]


async def test_a_reset_by_the_server_is_not_the_client_s(proxy: Start) -> None:
    async with proxy() as spy:
        client = await spy.client()
        await client.post(PING)
        (await spy.server.call()).writer.transport.abort()
        assert (await client.answer())[0] == 502
        assert await spy.ended() == [None]


async def test_a_server_that_hangs_up_amid_the_request_is_a_502(proxy: Start) -> None:
    left = asyncio.Event()

    async def leave(stream: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await stream.readexactly(1000)
        writer.transport.abort()
        await closed(writer)
        left.set()

    leaving = await asyncio.start_server(leave, "127.0.0.1", 0)
    async with proxy(origin=origin_of(leaving)) as spy:
        client = await spy.client()
        await client.post(b"[" + b" " * 5_000_000 + b"]")
        status, _ = await client.answer()
        assert status == 502
        leaving.close()
        await left.wait()


async def test_a_slow_answer_is_waited_for_and_delays_no_one(proxy: Start) -> None:
    async with proxy() as spy:
        slow, quick = await spy.client(), await spy.client()
        await slow.post(PING)
        call = await spy.server.call()
        for _ in range(50):
            await quick.post(PING)
            await (await spy.server.call()).send(plain(b"{}", JSON))
            assert await quick.answer() == (200, b"{}")
        await call.send(plain(PONG, JSON))
        assert await slow.answer() == (200, PONG)


async def test_an_answer_before_the_whole_request_was_read_arrives(proxy: Start) -> None:
    over, shut = asyncio.Event(), asyncio.Event()

    async def refuse(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(plain(b"{}", JSON, "Connection: close", status="413 Too Large"))
        await writer.drain()
        await over.wait()
        await closed(writer)
        shut.set()

    refusing = await asyncio.start_server(refuse, "127.0.0.1", 0)
    async with proxy(origin=origin_of(refusing)) as spy:
        client = await spy.client()
        await client.post(b"[" + b" " * 5_000_000 + b"]")
        status, _ = await client.answer()
        assert status == 413
        refusing.close()
        over.set()
        await shut.wait()


async def test_two_clients_with_the_same_id_are_distinguished_by_stream(proxy: Start) -> None:
    async with proxy() as spy:
        sessions = {}
        for name in ("one", "two"):
            client = await spy.client()
            await client.post(PING)
            await (await spy.server.call()).send(plain(PONG, JSON, f"Mcp-Session-Id: {name}"))
            await client.answer()
            sessions[name] = client
        calls = []
        for name, client in sessions.items():
            await client.post(PING, f"Mcp-Session-Id: {name}")
            calls.append(await spy.server.call())
        for call in reversed(calls):
            name = call.header("mcp-session-id") or ""
            await call.send(plain(PONG.replace(b"{}", b'{"x":"%b"}' % name.encode()), JSON))
        for client in sessions.values():
            await client.answer()
        asked = spy.frames("client")
        streams = [frame.stream for frame in asked]
        assert streams[:2] == streams[2:]
        assert len({*streams}) == 2
        for name, stream in zip(sessions, streams, strict=False):
            last = [frame.data for frame in spy.frames("server") if frame.stream == stream][-1]
            assert json.loads(last)["result"] == {"x": name}


async def test_each_post_without_a_session_has_a_separate_stream(proxy: Start) -> None:
    async with proxy() as spy:
        client = await spy.client()
        for _ in range(3):
            await client.post(PING)
            await (await spy.server.call()).send(plain(PONG, JSON))
            await client.answer()
        pairs = [(frame.stream, frame.http) for frame in spy.frames("client")]
        assert pairs == [(frame.stream, frame.http) for frame in spy.frames("server")]
        assert len({*pairs}) == 3


async def test_a_session_named_by_a_refusal_is_none(proxy: Start) -> None:
    async with proxy() as spy:
        client = await spy.client()
        for status in ("400 Bad Request", "200 OK"):
            await client.post(PING)
            await (await spy.server.call()).send(plain(PONG, JSON, "Mcp-Session-Id: s", status=status))
            await client.answer()
        await client.post(PING, "Mcp-Session-Id: s")
        await spy.server.call()
        streams = [frame.stream for frame in spy.frames("client")]
        assert streams[2] == streams[1] != streams[0]


@pytest.mark.parametrize(
    ("method", "status"), [("DELETE", "200 OK"), ("POST", "404 Not Found")], ids=["deleted", "dead"]
)
async def test_a_session_that_is_over_is_let_go_but_not_at_once(
    proxy: Start, monkeypatch: pytest.MonkeyPatch, method: str, status: str
) -> None:
    monkeypatch.setattr(streams_module, "MAX_ENDED", 1)
    async with proxy() as spy:
        client = await spy.client()

        async def stream_of(session: str, method: str = "POST", status: str = "202 Accepted") -> object:
            await client.ask(method, "/mcp", PING, f"Mcp-Session-Id: {session}")
            await (await spy.server.call()).send(plain(b"", status=status))
            await client.answer()
            return spy.notes("http")[-1]["stream"]

        one = await stream_of("one")
        for _ in range(3):  # The exchange ends only once, however often that is reported.
            await stream_of("one", method, status)
        assert await stream_of("one") == one
        two = await stream_of("two")
        await stream_of("two", method, status)
        assert await stream_of("two") == two
        assert await stream_of("one") != one


async def test_an_address_is_let_go_when_its_stream_is_over(
    proxy: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(streams_module, "MAX_ENDED", 1)
    async with proxy("/sse") as spy:
        client = await spy.client()
        streams = []
        for number in range(2):
            await client.ask("GET", "/sse")
            call = await spy.server.call()
            await call.send(EVENTS + chunk(b"event: endpoint\ndata: /m?%d\n\n" % number) + chunk(b""))
            await client.head()
            await client.body()
            streams.append(spy.notes("http")[-1]["stream"])
        on_ticket = []
        for number in range(2):
            await client.ask("POST", f"/m?{number}", PING, JSON)
            await (await spy.server.call()).send(plain(b"", status="202 Accepted"))
            await client.answer()
            on_ticket.append(spy.notes("http")[-1]["stream"] == streams[number])
        assert on_ticket == [False, True]
        assert len(spy.said("client")) == 1


@pytest.mark.parametrize("is_absolute", [False, True])
@pytest.mark.parametrize("end", [b"\n", b"\r\n"])
@pytest.mark.parametrize("size", [1, 1000])
async def test_messages_of_http_and_sse_are_sent_through_mcpspy(
    proxy: Start, is_absolute: bool, end: bytes, size: int
) -> None:
    path = "/message?sessionId=0b1-2"
    async with proxy("/sse") as spy:
        stream = await spy.client()
        await stream.ask("GET", "/sse", None, "Accept: text/event-stream")
        call = await spy.server.call()
        address = spy.server.origin + path if is_absolute else path
        opening = f"event: endpoint\ndata: {address}\n\n".encode().replace(b"\n", end)
        await call.send(EVENTS)
        await stream.head()
        for at in range(0, len(opening), size):
            await call.send(chunk(opening[at : at + size]))
        expected = opening.replace(spy.server.origin.encode(), f"http://{spy.host}".encode())
        assert await stream.read(len(expected)) == expected

        poster = await spy.client()
        await poster.ask("POST", path, PING, JSON)
        post = await spy.server.call()
        assert (post.target, post.body) == (path, PING)
        await post.send(plain(b"Accepted", status="202 Accepted"))
        assert await poster.answer() == (202, b"Accepted")
        await call.send(chunk(event(PONG, end)))
        assert await stream.read(len(event(PONG, end))) == event(PONG, end)
        (asked,), (answered,) = spy.frames("client"), spy.frames("server")
        assert (asked.data, answered.data) == (PING, PONG)
        assert asked.stream == answered.stream
        assert asked.http != answered.http


@pytest.mark.parametrize("address", [b"\xff\xfe", b"http://[", b"http://elsewhere.example/m", b""])
async def test_an_unusual_endpoint_is_forwarded_unchanged(proxy: Start, address: bytes) -> None:
    opening = b"event: endpoint\ndata: " + address + b"\n\n"
    async with proxy("/sse") as spy:
        client = await spy.client()
        await client.ask("GET", "/sse")
        call = await spy.server.call()
        await call.send(EVENTS + chunk(opening + event(PONG)) + chunk(b""))
        await client.head()
        assert await client.body() == opening + event(PONG)


async def test_a_stream_that_opens_with_a_heartbeat_is_not_held_back(proxy: Start) -> None:
    async with proxy() as spy:
        client = await spy.client()
        await client.ask("GET", "/mcp", None, "Last-Event-ID: 31")
        call = await spy.server.call()
        assert call.header("last-event-id") == "31"
        await call.send(EVENTS + chunk(b":k\n\n"))
        await client.head()
        assert await client.read(4) == b":k\n\n"
        assert spy.notes("http")[0]["request"]["last-event-id"] == "31"


@pytest.mark.parametrize(
    ("host", "origin", "what"),
    [
        ("evil.example", None, "Host evil.example"),
        ("evil.example:80", None, "Host evil.example:80"),
        ("127.0.0.1.evil.example", None, "Host"),
        (None, "https://evil.example", "Origin https://evil.example"),
        (None, "null", "Origin null"),
    ],
)
async def test_a_request_of_a_page_from_another_origin_is_refused(
    proxy: Start, host: str | None, origin: str | None, what: str
) -> None:
    async with proxy() as spy:
        client = await spy.client()
        client.host = host or spy.host
        await client.post(PING, *([f"Origin: {origin}"] if origin else []))
        status, answer = await client.answer()
        assert status == 403
        message = json.loads(answer)["error"]["message"]
        assert what in message
        assert "--allow-host" in message
        (note,) = spy.notes("http")
        assert (note["status"], note["error"]) == (403, message)
        assert spy.server.calls.empty()
        assert spy.said("client") == []


async def test_a_host_that_is_not_utf8_is_refused_too(proxy: Start) -> None:
    async with proxy() as spy:
        client = await spy.client()
        client.writer.write(b"POST /mcp HTTP/1.1\r\nHost: evil\xff\r\nContent-Length: 2\r\n\r\n{}")
        status, answer = await client.answer()
        assert (status, r"Host evil\udcff" in json.loads(answer)["error"]["message"]) == (403, True)
        assert spy.notes("http")[0]["status"] == 403


@pytest.mark.parametrize(
    ("host", "origin"),
    [
        ("localhost:1", "http://localhost:5173"),
        ("[::1]:1", "http://[::1]"),
        ("127.0.0.1", "https://127.0.0.1:8"),
        ("box.example:8808", "https://BOX.example"),
    ],
)
async def test_names_of_this_machine_and_allowed_ones_pass(proxy: Start, host: str, origin: str) -> None:
    async with proxy(allowed=("Box.example",)) as spy:
        client = await spy.client()
        client.host = host
        await client.post(PING, f"Origin: {origin}")
        call = await spy.server.call()
        assert call.header("origin") == origin
        await call.send(plain(PONG, JSON))
        assert await client.answer() == (200, PONG)


MOVED = "307 Temporary Redirect"


@pytest.mark.parametrize(
    ("location", "expected"),
    [
        ("http://127.0.0.1:{port}/mcp/", "http://{proxy}/mcp/"),
        ("HTTP://localhost:{port}/mcp/", "http://{proxy}/mcp/"),
        ("//127.0.0.1:{port}/mcp/", "http://{proxy}/mcp/"),
        ("http://{proxy}/mcp/", "http://{proxy}/mcp/"),
        ("/mcp/", "/mcp/"),
    ],
)
async def test_a_redirect_within_the_server_stays_within_the_proxy_and_leads_to_the_same_endpoint(
    proxy: Start, location: str, expected: str, capfd: pytest.CaptureFixture[str]
) -> None:
    async with proxy() as spy:
        port = spy.server.origin.rpartition(":")[2]
        client, call = await spy.exchange()
        await call.send(plain(b"", f"Location: {location.format(port=port, proxy=spy.host)}", status=MOVED))
        first, headers = await client.head()
        assert first.startswith("HTTP/1.1 307")
        assert ("Location", expected.format(proxy=spy.host)) in headers
        assert spy.notes("redirect") == []
        await client.ask("POST", "/mcp/", PING, JSON)
        await (await spy.server.call()).send(plain(PONG, JSON))
        assert await client.answer() == (200, PONG)
        assert spy.said("client") == [PING, PING]
    assert "past mcpspy" not in capfd.readouterr().err


async def test_a_redirect_past_the_proxy_is_forwarded_noted_each_time_and_reported_once(
    proxy: Start, capfd: pytest.CaptureFixture[str]
) -> None:
    there = "https://other.example/mcp?key=s3cret"
    async with proxy() as spy:
        client = await spy.client()
        for location in (there, there, "//else.example/x"):
            await client.post(PING)
            await (await spy.server.call()).send(plain(b"", f"Location: {location}", status=MOVED))
            forwarded = location if location == there else f"http:{location}"
            assert ("Location", forwarded) in (await client.head())[1]
        await spy.ended(3)
        assert [(note["http"], note["to"], note["location"]) for note in spy.notes("redirect")] == [
            (1, "https://other.example", "https://other.example/mcp?key=[redacted]"),
            (2, "https://other.example", "https://other.example/mcp?key=[redacted]"),
            (3, "http://else.example", "http://else.example/x"),
        ]
    said = capfd.readouterr().err
    shown = "https://other.example/mcp?key=[redacted]"
    assert said.count(f"redirects past mcpspy to {shown}; to record that: --upstream {shown}") == 1
    assert said.count("redirects past mcpspy to http://else.example/x; to record that") == 1
    assert "s3cret" not in said


@pytest.mark.parametrize(
    ("status", "target"), [("302 Found", "/mcp"), ("201 Created", "/mcp"), (MOVED, "/x")]
)
async def test_only_a_redirect_of_the_endpoint_that_repeats_the_message_gets_the_hint_to_record_its_target(
    proxy: Start, status: str, target: str, capfd: pytest.CaptureFixture[str]
) -> None:
    async with proxy() as spy:
        client = await spy.client()
        await client.ask("GET", target)
        await (await spy.server.call()).send(plain(b"", "Location: http://login.example/", status=status))
        assert ("Location", "http://login.example/") in (await client.head())[1]
        assert len(spy.notes("redirect")) == (status == "302 Found")
    said = capfd.readouterr().err
    assert said.count("past mcpspy to http://login.example/\n") == (status == "302 Found")


async def test_the_servers_metadata_names_the_url_of_mcpspy(proxy: Start) -> None:
    path = "/.well-known/oauth-protected-resource/mcp"
    async with proxy() as spy:
        client = await spy.client()
        await client.ask("GET", path)
        call = await spy.server.call()
        assert call.target == path
        await call.send(plain(b'{"resource":"%s/mcp"}' % spy.server.origin.encode()))
        assert await client.answer() == (200, b'{"resource":"http://%s/mcp"}' % spy.host.encode())


async def test_metadata_above_the_limit_is_forwarded_unchanged(proxy: Start) -> None:
    body = b'{"resource":"%s","padding":"' + b"x" * (METADATA_LIMIT + 100_000) + b'"}'
    async with proxy() as spy:
        body = body.replace(b"%s", spy.server.origin.encode() + b"/mcp")
        client = await spy.client()
        await client.ask("GET", "/.well-known/oauth-protected-resource/mcp")
        call = await spy.server.call()
        whole = plain(body)
        call.writer.write(whole[:-1])
        await client.head()
        assert await client.stream.readexactly(len(body) - 1) == body[:-1]
        await call.send(whole[-1:])
        assert await client.stream.readexactly(1) == body[-1:]


async def test_a_client_that_waits_for_continue_gets_it(proxy: Start) -> None:
    async with proxy() as spy:
        client = await spy.client()
        head = f"POST /mcp HTTP/1.1\r\nHost: {spy.host}\r\nExpect: 100-continue\r\nContent-Length: {len(PING)}\r\n"
        client.writer.write(head.encode() + b"\r\n")
        assert await client.stream.readuntil(b"\r\n\r\n") == b"HTTP/1.1 100 Continue\r\n\r\n"
        client.writer.write(PING)
        call = await spy.server.call()
        assert call.body == PING
        assert call.header("expect") is None
        await call.send(plain(PONG, JSON))
        assert await client.answer() == (200, PONG)


async def test_a_first_event_that_never_ends_continues_as_far_as_it_came(proxy: Start) -> None:
    async with proxy() as spy:
        client = await spy.client()
        await client.ask("GET", "/mcp", None, "Accept: text/event-stream")
        await (await spy.server.call()).send(EVENTS + chunk(b"event: endp") + chunk(b""))

        assert await client.answer() == (200, b"event: endp")
        assert [note["torn"] for note in spy.notes("sse")] == [True]


CHUNKED_JSON = EVENTS.replace(b"text/event-stream", b"application/json")


@pytest.mark.parametrize(
    ("response", "lacks", "size"),
    [
        (EVENTS + chunk(b"event: message\ndata: " + PONG + b"\n") + chunk(b""), "blank line", len(PONG)),
        (EVENTS + chunk(b"data: " + PONG) + chunk(b""), "newline", len(PONG)),
        (EVENTS + chunk(b"data: " + PONG + b"\n\n")[:-5], "newline", len(PONG) - 1),
        (EVENTS + chunk(b"data: " + PONG + b"\n"), "blank line", len(PONG)),
        (CHUNKED_JSON + chunk(PONG)[:-5], "end of chunk", len(PONG) - 3),
        (CHUNKED_JSON + chunk(PONG), "last chunk", len(PONG)),
        (CHUNKED_JSON + chunk(PONG[:9]) + b"1b", "end of chunk", 9),
        (plain(PONG, JSON)[:-5], "rest of body", len(PONG) - 5),
    ],
)
async def test_the_missing_end_of_a_response_is_named_beside_the_part_that_came(
    proxy: Start, response: bytes, lacks: str, size: int
) -> None:
    async with proxy() as spy:
        client, call = await spy.exchange()
        await call.send(response)
        call.writer.close()
        await client.head()
        with suppress(asyncio.IncompleteReadError):
            await client.body()
        await spy.ended()
        (frame,) = spy.frames("server")
        assert (frame.data, frame.eol) == (PONG[:size], "")
        assert (frame.lacks, frame.size) == (lacks, size)


async def test_an_event_without_its_blank_line_is_recorded_when_the_client_gives_up(proxy: Start) -> None:
    async with proxy() as spy:
        client, call = await spy.event_stream()
        await call.send(chunk(b"data: " + PONG + b"\n"))
        assert await client.read(len(PONG) + 7) == b"data: " + PONG + b"\n"
        client.writer.close()
        assert await spy.ended() == ["client"]
        (frame,) = spy.frames("server")
        assert (frame.data, frame.eol, frame.lacks, frame.size) == (PONG, "", "blank line", len(PONG))


@pytest.mark.parametrize("rules", [(), ("tools/call => delay 1s",)])
@pytest.mark.parametrize(
    ("response", "lacks"),
    [
        (EVENTS + chunk(b"data: " + PONG + b"\n"), "blank line"),
        (plain(PONG + b" ", JSON)[:-1], "rest of body"),
    ],
)
async def test_an_incomplete_response_is_recorded_as_such_with_rules_too(
    proxy: Start, rules: tuple[str, ...], response: bytes, lacks: str
) -> None:
    async with proxy("/mcp", *rules) as spy:
        client, call = await spy.exchange()
        await call.send(response)
        call.writer.close()
        await client.stream.read()
        await spy.ended()
        (frame,) = spy.frames("server")
        assert (frame.data, frame.eol, frame.lacks, frame.size) == (PONG, "", lacks, len(PONG))


@pytest.mark.parametrize(
    ("framing", "lacks"),
    [(f"Content-Length: {len(PING)}", "rest of body"), ("Transfer-Encoding: chunked", "last chunk")],
)
async def test_the_missing_end_of_a_request_is_named_beside_the_part_that_came(
    proxy: Start, framing: str, lacks: str
) -> None:
    async with proxy() as spy:
        client = await spy.client()
        head = f"POST /mcp HTTP/1.1\r\nHost: {spy.host}\r\n{JSON}\r\n{framing}\r\n\r\n".encode()
        client.writer.write(head + (chunk(PING[:9]) if "chunked" in framing else PING[:9]))
        client.writer.close()
        assert await spy.ended() == ["client"]
        (frame,) = spy.frames("client")
        assert (frame.data, frame.eol, frame.lacks, frame.size) == (PING[:9], "", lacks, 9)


async def test_a_websocket_is_refused_with_what_to_do_on_stderr_once(
    proxy: Start, capfd: pytest.CaptureFixture[str]
) -> None:
    upgrade = (
        "Connection: Upgrade",
        "Upgrade: websocket",
        "Sec-WebSocket-Version: 13",
        "Sec-WebSocket-Key: eA==",
    )
    async with proxy() as spy:
        client = await spy.client()
        for _ in range(2):
            await client.ask("GET", "/mcp", None, *upgrade)
            status, answer = await client.answer()
            message = json.loads(answer)["error"]["message"]
            assert status == 501
            assert "use the http(s) URL of the endpoint" in message
        assert [(note["status"], note["error"]) for note in spy.notes("http")] == [(501, message)] * 2
        await client.ask("GET", "/mcp", None, *upgrade[:2])  # An offer that the server may ignore.
        call = await spy.server.call()
        assert call.header("upgrade") is None
        await call.send(plain(b"", status="405 Method Not Allowed"))
        assert (await client.answer())[0] == 405
    assert capfd.readouterr().err.count("mcpspy: refused a WebSocket at /mcp: ") == 1


LAST = PING.replace(b"1,", b"9,")


@pytest.mark.parametrize("earlier", [0, 3])
async def test_a_half_closed_client_gets_the_response_of_a_server_that_gives_one(
    proxy: Start, earlier: int
) -> None:
    async def respond(stream: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        body = b""
        while body != LAST:
            with suppress(asyncio.IncompleteReadError):
                await stream.readuntil(b"\r\n\r\n")
            body = await stream.read(len(PING))
            if body == LAST:
                assert await stream.read() == b""  # The server gets the end of the client's side.
            writer.write(plain(PONG, JSON))
            await writer.drain()
        await closed(writer)

    upstream = await asyncio.start_server(respond, "127.0.0.1", 0)
    async with upstream, proxy(origin=origin_of(upstream)) as spy:
        client = await spy.client()
        for _ in range(earlier):
            await client.post(PING)
            assert await client.answer() == (200, PONG)
        await client.post(LAST)
        client.writer.write_eof()
        assert await client.answer() == (200, PONG)
        assert await client.stream.read() == b""
        assert (await spy.ended(earlier + 1))[-1] == "client"
        assert spy.notes("http-end")[-1]["half_closed"] >= spy.frames("client")[-1].at


async def test_a_half_close_is_a_hang_up_while_the_message_is_held(proxy: Start) -> None:
    async with proxy("/mcp", "ping => delay 30s") as spy:
        client = await spy.client()
        await client.post(PING)
        client.writer.write_eof()
        assert await client.stream.read() == b""
        assert await spy.ended() == ["client"]
        assert spy.server.calls.empty()


async def test_a_half_closed_client_learns_that_the_server_cannot_be_reached(proxy: Start) -> None:
    with socket.create_server(("127.0.0.1", 0)) as unused:
        port = unused.getsockname()[1]
    async with proxy(origin=f"http://127.0.0.1:{port}") as spy:
        client = await spy.client()
        await client.post(PING)
        client.writer.write_eof()
        assert (await client.answer())[0] == 502


async def test_a_half_closed_client_is_disconnected_when_the_server_takes_that_for_the_end(
    proxy: Start,
) -> None:
    async with proxy() as spy:
        client, call = await spy.exchange()
        client.writer.write_eof()
        await call.gone.wait()
        call.writer.close()
        assert await client.stream.read() == b""
        assert await spy.ended() == ["client"]
        assert spy.notes("http")[0]["status"] is None


async def test_a_half_closed_get_is_not_repeated(proxy: Start) -> None:
    async with proxy() as spy:
        client, call = await spy.exchange()
        await call.send(plain(PONG, JSON))
        await client.answer()
        await client.ask("GET", "/mcp")
        call = await spy.server.call()
        client.writer.write_eof()
        await call.gone.wait()
        call.writer.close()
        assert await client.stream.read() == b""
        assert await spy.ended(2) == [None, "client"]
        assert spy.server.calls.empty()


async def test_a_client_that_leaves_a_stream_of_events_ends_it(proxy: Start) -> None:
    async with proxy() as spy:
        client, call = await spy.event_stream()
        client.writer.write_eof()
        await call.gone.wait()
        assert await spy.ended() == ["client"]


@pytest.mark.parametrize("closing", [True, False])
async def test_an_early_response_stops_the_upload_if_the_server_reads_no_more_of_it(
    closing: bool, monkeypatch: pytest.MonkeyPatch, proxy: Start
) -> None:
    monkeypatch.setattr(server, "LINGER", 0.2)
    refusal = plain(b"{}", *(["Connection: close"] if closing else []), status="413 Content Too Large")
    piece = b"x" * (1 << 20)

    async def refuse(stream: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await stream.readuntil(b"\r\n\r\n")
        writer.write(refusal)
        if closing:
            writer.write_eof()
        with suppress(ConnectionError):
            while await stream.read(
                1 << 20
            ):  # As a server that lingers: otherwise a reset takes the response.
                pass
        await closed(writer)

    upstream = await asyncio.start_server(refuse, "127.0.0.1", 0)
    async with upstream, proxy(origin=origin_of(upstream)) as spy:
        client = await spy.client()
        pieces = 1 << 20 if closing else 64
        head = f"POST /mcp HTTP/1.1\r\nHost: {spy.host}\r\n{JSON}\r\nContent-Length: {pieces * len(piece)}\r\n\r\n"
        client.writer.write(head.encode() + piece)
        first, headers = await client.head()
        assert first.startswith("HTTP/1.1 413")
        assert (("Connection", "close") in headers) == closing
        assert await client.body() == b"{}"
        if closing:
            assert await client.stream.read() == b""
        error = await uploaded(client, piece, pieces - 1)
        assert (error is not None) == closing
        if not closing:
            await client.ask("GET", "/mcp")
            assert (await client.answer())[0] == 413


async def uploaded(client: Client, piece: bytes, count: int) -> ConnectionError | None:
    """Send a piece `count` times. Return the error that ended the upload."""
    try:
        async with asyncio.timeout(30):
            for _ in range(count):
                client.writer.write(piece)
                await client.writer.drain()
    except ConnectionError as error:
        return error
    return None


async def get_on_a_used_connection(spy: Spy, client: Client) -> Call:
    """Return the GET of a client that comes to the server on the connection of an answered POST."""
    await client.post(PING)
    first = await spy.server.call()
    await first.send(plain(PONG, JSON))
    await client.answer()
    await client.ask("GET", "/mcp")
    second = await spy.server.call()
    assert second.writer is first.writer
    return second


async def test_only_a_request_without_a_body_and_an_effect_is_sent_again(proxy: Start) -> None:
    """The server closes an idle connection while the request is on its way (RFC 9110, 9.2.2)."""
    async with proxy() as spy:
        client = await spy.client()
        second = await get_on_a_used_connection(spy, client)
        second.writer.close()
        third = await spy.server.call()
        await third.send(plain(b"", status="405 Method Not Allowed"))
        assert (await client.answer())[0] == 405
        assert await spy.ended(2) == [None, None]


async def test_a_stream_that_the_server_breaks_off_is_not_asked_for_again(proxy: Start) -> None:
    """The connection had been used before, and the response had begun: what the client has of it cannot be continued."""
    async with proxy() as spy:
        client = await spy.client()
        second = await get_on_a_used_connection(spy, client)
        await second.send(EVENTS)
        assert (await client.head())[0] == "HTTP/1.1 200 OK"
        second.writer.close()
        with pytest.raises(asyncio.IncompleteReadError):
            await client.body()
        assert await spy.ended(2) == [None, "server"]
        assert spy.server.calls.empty()


async def test_a_client_that_waits_for_a_slow_server_is_read_again_after_the_response(
    proxy: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[UpstreamConnection] = []
    connection_made = UpstreamConnection.connection_made

    def remember(connection: UpstreamConnection, transport: asyncio.BaseTransport) -> None:
        made.append(connection)
        connection_made(connection, transport)

    monkeypatch.setattr(UpstreamConnection, "connection_made", remember)
    async with proxy() as spy:
        client, call = await spy.exchange()
        made[0].pause_writing()  # As the transport does while the server does not read.
        await call.send(plain(PONG, JSON))
        assert await client.answer() == (200, PONG)
        await client.ask("POST", "/mcp", PING)
        await (await asyncio.wait_for(spy.server.call(), 20)).send(plain(PONG, JSON))
        assert await client.answer() == (200, PONG)
