"""A server over HTTP, in every era: sent messages, received messages, and cleanup."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any

import pytest
from aiohttp import web

from mcpspy.core.protocol.message import Notification
from mcpspy.core.recording.decode import Note
from mcpspy.core.session.exchange import State
from mcpspy.errors import CannotStart
from mcpspy.io.client import (
    ConnectionEnded,
    ExchangeLost,
    ExchangeRefused,
    ReceivedMessage,
    ServerAddress,
    connect,
)
from mcpspy.io.client import http as module
from mcpspy.io.client.http import open_http
from tests.compressed import COMPRESS
from tests.io.client.conftest import BOUND, next_of, rest_of, stream

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractAsyncContextManager

    from mcpspy.io.client import ServerConnection
    from tests.io.client.conftest import Handler, Kept

    Site = Callable[[Handler], AbstractAsyncContextManager[str]]

VERSION = "2025-11-25"
META = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {},
}


async def say(connection: ServerConnection, **members: Any) -> None:
    await connection.send(json.dumps({"jsonrpc": "2.0", **members}).encode())


def event(place: str | None = None, **members: Any) -> str:
    line = f"id: {place}\n" if place is not None else ""
    return line + f"event: message\ndata: {json.dumps({'jsonrpc': '2.0', **members})}\n\n"


class Server:
    """Streamable HTTP with sessions, as far as tests need it. `log` contains its requests."""

    def __init__(self) -> None:
        self.log: list[tuple[str, dict[str, str], Any]] = []
        self.sessions = 0
        self.alive: set[str] = set()
        self.more: dict[str, Handler] = {}
        """Replace the handling of a JSON-RPC method or of an HTTP method."""
        self.unasked: asyncio.Queue[str] = asyncio.Queue()
        self.hung_up = asyncio.Event()

    async def __call__(self, request: web.Request) -> web.StreamResponse:
        message = json.loads(await request.read() or b"null")
        headers = {name.lower(): value for name, value in request.headers.items()}
        self.log.append((request.method, headers, message))
        method = message.get("method", "answer") if isinstance(message, dict) else request.method
        session = headers.get("mcp-session-id")
        if session is not None and session not in self.alive:
            return web.Response(status=404, text="no such session")
        if method in self.more:
            return await self.more[method](request)
        if method == "initialize":
            self.sessions += 1
            self.alive.add(f"s{self.sessions}")
            return web.json_response(
                {"jsonrpc": "2.0", "id": message["id"], "result": {"protocolVersion": VERSION}},
                headers={"Mcp-Session-Id": f"s{self.sessions}"},
            )
        if method == "GET":
            response = await stream(request)
            try:
                while True:
                    await response.write((await self.unasked.get()).encode())
            finally:
                self.hung_up.set()
        if isinstance(message, dict) and "id" in message and "method" in message:
            return web.json_response({"jsonrpc": "2.0", "id": message["id"], "result": {"said": method}})
        return web.Response(status=200 if request.method == "DELETE" else 202)

    def requests(self, method: str) -> list[dict[str, str]]:
        """Return the headers of requests with an HTTP or JSON-RPC method."""
        return [
            headers
            for verb, headers, message in self.log
            if method in (verb, message.get("method") if isinstance(message, dict) else None)
        ]


@pytest.fixture
def server() -> Server:
    return Server()


async def handshake(connection: ServerConnection) -> None:
    await say(connection, id=0, method="initialize", params={"protocolVersion": VERSION})
    assert (await next_of(connection, ReceivedMessage)).request == "0"
    await say(connection, method="notifications/initialized")


async def test_a_session_is_begun_listened_to_and_ended(site: Site, server: Server, kept: Kept) -> None:
    async with site(server) as origin:
        target = ServerAddress(f"{origin}/mcp", headers=(("Authorization", "Bearer x"),))
        async with await connect(target, kept.recorder) as connection:
            await handshake(connection)
            await say(connection, id=1, method="ping")
            pong = await next_of(connection)
            server.unasked.put_nowait(event(id=7, method="roots/list"))
            asked = await next_of(connection)
            await say(connection, id=7, result={"roots": []})
        events = await rest_of(connection)

    assert (pong.request, json.loads(pong.data)["result"]) == ("1", {"said": "ping"})
    assert (asked.request, json.loads(asked.data)["method"]) == (None, "roots/list")
    assert [type(each) for each in events] == [ConnectionEnded]
    first, *others = server.log
    assert ("mcp-session-id" in first[1], "mcp-protocol-version" in first[1]) == (False, False)
    assert first[1]["accept"] == "application/json, text/event-stream"
    for _, headers, _ in others:
        assert (headers["mcp-session-id"], headers["mcp-protocol-version"]) == ("s1", VERSION)
        assert headers["authorization"] == "Bearer x"
    assert [verb for verb, _, _ in server.log] == ["POST", "POST", "GET", "POST", "POST", "DELETE"]
    await asyncio.wait_for(server.hung_up.wait(), BOUND)
    session = kept.session()
    assert [exchange.state for exchange in session.exchanges] == [State.OK] * 3
    assert {exchange.request.frame.stream for exchange in session.exchanges} == {"1"}
    assert not [change.flaw for change in session.changes if change.flaw]


async def test_a_lost_session_is_reported_and_the_next_handshake_begins_a_new_one(
    site: Site, server: Server
) -> None:
    async with site(server) as origin, await connect(ServerAddress(origin)) as connection:
        await handshake(connection)
        server.alive.clear()
        await say(connection, id=1, method="ping")
        refused = await next_of(connection, ExchangeRefused)
        await handshake(connection)
        await say(connection, id=2, method="ping")
        received = await next_of(connection, ReceivedMessage)

    assert (refused.request, refused.status, refused.is_session_lost) == ("1", 404, True)
    assert refused.why == "HTTP 404 Not Found: no such session"
    assert received.request == "2"
    assert server.requests("ping")[-1]["mcp-session-id"] == "s2"
    assert "mcp-session-id" not in server.requests("initialize")[-1]


async def test_an_error_status_answers_the_request_with_or_without_a_message(
    site: Site, server: Server
) -> None:
    async def null(_: web.Request) -> web.StreamResponse:
        error = {"code": -32000, "message": "not initialized"}
        return web.json_response({"jsonrpc": "2.0", "id": None, "error": error}, status=400)

    async def page(_: web.Request) -> web.StreamResponse:
        return web.Response(status=401, text="<html>\nwho are you?", content_type="text/html")

    async def line(_: web.BaseRequest) -> web.StreamResponse:
        return web.Response(status=429, text="not so\nfast")

    server.more |= {"null": null, "page": page, "notifications/line": line}
    async with site(server) as origin, await connect(ServerAddress(origin)) as connection:
        await say(connection, id="a", method="null")
        received = await next_of(connection)
        await say(connection, id=2, method="page")
        refused = await next_of(connection)
        await say(connection, method="notifications/line")
        unasked = await next_of(connection)

    assert (type(received), received.request, received.status) == (ReceivedMessage, '"a"', 400)
    assert (type(refused), refused.request, refused.is_session_lost) == (ExchangeRefused, "2", False)
    assert refused.why == "HTTP 401 Unauthorized"
    assert (type(unasked), unasked.request) == (ExchangeRefused, None)
    assert unasked.why == "HTTP 429 Too Many Requests: not so fast"


async def test_a_stream_that_ends_before_its_response_is_resumed(
    site: Site, server: Server, kept: Kept
) -> None:
    async def slow(request: web.Request) -> web.StreamResponse:
        return await stream(request, "id: e1\nretry: 1\ndata:\n\n")

    async def resumed(request: web.Request) -> web.StreamResponse:
        if request.headers["Last-Event-ID"] == "e1":
            return await stream(request, event("e2", method="notifications/message", params={}))
        return await stream(request, event("e3", id=1, result={}))

    server.more |= {"slow": slow, "GET": resumed}
    async with site(server) as origin, await connect(ServerAddress(origin), kept.recorder) as connection:
        await say(connection, id=1, method="slow")
        received = [await next_of(connection) for _ in range(2)]

    assert [each.request for each in received] == ["1", "1"]
    assert json.loads(received[1].data)["result"] == {}
    assert [headers["last-event-id"] for headers in server.requests("GET")] == ["e1", "e2"]
    (exchange,) = kept.session().exchanges
    assert (exchange.state, exchange.flaws) == (State.OK, [])


async def test_events_that_a_resumed_stream_repeats_are_received_once(site: Site, server: Server) -> None:
    said = [
        event(f"e{number}", method="notifications/message", params={"data": number}) for number in range(3)
    ]

    async def slow(request: web.Request) -> web.StreamResponse:
        return await stream(request, "retry: 1\n" + said[0] + said[1])

    async def resumed(request: web.Request) -> web.StreamResponse:
        same_id = event("e1", method="notifications/message", params={"data": "another"})
        return await stream(request, said[0] + said[1] + same_id + said[2] + event("e3", id=1, result={}))

    server.more |= {"slow": slow, "GET": resumed}
    async with site(server) as origin, await connect(ServerAddress(origin)) as connection:
        await say(connection, id=1, method="slow")
        received = [json.loads((await next_of(connection)).data) for _ in range(5)]

    assert [each.get("params", {}).get("data") for each in received] == [0, 1, "another", 2, None]
    assert received[-1]["result"] == {}


async def test_the_body_of_an_error_is_a_reason_unless_it_is_a_message(site: Site, server: Server) -> None:
    async def locked(_: web.Request) -> web.StreamResponse:
        return web.json_response({"error": "invalid_token", "error_description": "expired"}, status=401)

    server.more |= {"locked": locked}
    async with site(server) as origin, await connect(ServerAddress(origin)) as connection:
        await say(connection, id=1, method="locked")
        refused = await next_of(connection)

    assert (type(refused), refused.request, refused.status) == (ExchangeRefused, "1", 401)
    assert refused.why.startswith('HTTP 401 Unauthorized: {"error": "invalid_token"')


async def test_a_stream_that_cannot_be_resumed_is_lost(site: Site, server: Server) -> None:
    async def ends(request: web.Request) -> web.StreamResponse:
        return await stream(request, event(method="notifications/message"))

    async def primes(request: web.Request) -> web.StreamResponse:
        return await stream(request, "id: e1\nretry: 1\ndata:\n\n")

    async def accepted(_: web.Request) -> web.StreamResponse:
        return web.Response(status=202)

    async def breaks(request: web.Request) -> web.StreamResponse:
        response = await stream(request, ": hello\n\n")
        assert request.transport is not None
        request.transport.close()
        return response

    server.more |= {"ends": ends, "primes": primes, "accepted": accepted, "breaks": breaks, "GET": primes}
    found = {}
    async with site(server) as origin, await connect(ServerAddress(origin)) as connection:
        for method in ("ends", "primes", "accepted", "breaks"):
            await say(connection, id=method, method=method)
            lost = await next_of(connection, ExchangeLost)
            assert lost.request == f'"{method}"'
            found[method] = lost.why

    assert found["ends"] == found["primes"] == "the stream ended without a response"
    assert found["accepted"] == "HTTP 202 without a response"
    assert found["breaks"].startswith("the stream broke off: ")
    assert len(server.requests("GET")) == 2  # Two consecutive attempts without a new event are enough.


async def hang_up(request: web.Request, *events: str) -> web.StreamResponse:
    """Disconnect in the middle of a stream."""
    response = await stream(request, ": hello\n\n", *events)
    assert request.transport is not None
    request.transport.close()
    return response


@pytest.mark.parametrize(
    ("problem", "why"),
    [
        ("no stream", "the stream ended without a response"),
        ("no session", "the server has ended the session"),
        ("too large", "the response is larger than 1000 bytes (--max-body)"),
        ("breaks", "the stream ended without a response"),
    ],
)
async def test_a_response_that_a_resumed_stream_does_not_bring_is_reported_once(
    problem: str, why: str, site: Site, server: Server
) -> None:
    async def slow(request: web.Request) -> web.StreamResponse:
        return await stream(request, "id: e1\nretry: 1\ndata:\n\n")

    async def resumed(request: web.Request) -> web.StreamResponse:
        if "Last-Event-ID" not in request.headers or problem == "no stream":
            return web.Response(status=405)
        if problem == "no session":
            return web.Response(status=404)
        if problem == "breaks":
            return await hang_up(request)
        return await stream(request, event("e2", id=1, result="0" * 2000))

    server.more |= {"slow": slow, "GET": resumed}
    async with site(server) as origin, await connect(ServerAddress(origin, max_body=1000)) as connection:
        await handshake(connection)
        await say(connection, id=1, method="slow")
        lost = await next_of(connection)
        await say(connection, id=2, method="ping")
        received = await next_of(connection)

    assert (type(lost), lost.request, lost.why) == (ExchangeLost, "1", why)
    assert (type(received), received.request) == (ReceivedMessage, "2")
    assert len(server.requests("slow")) == 1


async def test_each_request_of_a_refused_batch_is_reported(site: Site, server: Server) -> None:
    async def refuse(_: web.Request) -> web.StreamResponse:
        error = {"code": -32600, "message": "no batches"}
        return web.json_response({"jsonrpc": "2.0", "id": None, "error": error}, status=400)

    server.more["POST"] = refuse
    async with site(server) as origin, await connect(ServerAddress(origin)) as connection:
        batch = [{"jsonrpc": "2.0", "id": number, "method": "ping"} for number in (1, 2)]
        await connection.send(json.dumps(batch).encode())
        received, *refused = [await next_of(connection) for _ in range(3)]

    assert (type(received), received.request, received.status) == (ReceivedMessage, None, 400)
    assert [(type(each), each.request) for each in refused] == [
        (ExchangeRefused, "1"),
        (ExchangeRefused, "2"),
    ]
    assert refused[0].why.startswith('HTTP 400 Bad Request: {"jsonrpc"')


async def test_the_stream_for_the_servers_own_messages_is_reopened_until_that_fails(
    site: Site, server: Server
) -> None:
    opened: list[str | None] = []

    async def listen(request: web.Request) -> web.StreamResponse:
        opened.append(request.headers.get("Last-Event-ID"))
        if len(opened) == 1:
            return await stream(request, "id: e1\nretry: 1\ndata:\n\n")
        if len(opened) == 2:
            return await hang_up(request, event("e2", id=7, method="roots/list"))
        return await hang_up(request)

    server.more["GET"] = listen
    async with site(server) as origin, await connect(ServerAddress(origin)) as connection:
        await handshake(connection)
        asked, lost = await next_of(connection), await next_of(connection)

    assert (type(asked), asked.request) == (ReceivedMessage, None)
    assert (type(lost), lost.request) == (ExchangeLost, None)
    assert lost.why == "the stream for the server's own messages was lost"
    assert opened == [None, "e1", "e2"]


async def test_a_receiver_that_records_gets_no_repeated_event_but_the_recording_has_it(
    site: Site, server: Server, kept: Kept
) -> None:
    said = event("e1", method="notifications/message", params={"data": 1})

    async def slow(request: web.Request) -> web.StreamResponse:
        return await stream(request, "retry: 1\n" + said)

    async def resumed(request: web.Request) -> web.StreamResponse:
        return await stream(request, said + event("e2", id=1, result={}))

    received: list[ReceivedMessage] = []
    answered = asyncio.Event()

    async def receive(message: ReceivedMessage) -> None:
        received.append(message)
        if b"result" in message.data:
            answered.set()

    server.more |= {"slow": slow, "GET": resumed}
    async with site(server) as origin:
        connection = await open_http(ServerAddress(origin), kept.recorder, receive=receive)
        async with connection:
            await say(connection, id=1, method="slow")
            await asyncio.wait_for(answered.wait(), BOUND)

    assert [json.loads(each.data).get("method") for each in received] == ["notifications/message", None]
    frames = [change.what.frame for change in kept.session().changes if isinstance(change.what, Notification)]
    assert [frame.side for frame in frames] == ["server"]  # The receiver records the others.


async def test_a_session_that_the_server_does_not_end_is_recorded_with_the_reason(
    site: Site, server: Server, kept: Kept
) -> None:
    async def hang_up_at_once(request: web.Request) -> web.StreamResponse:
        assert request.transport is not None
        request.transport.close()
        return web.Response()

    server.more["DELETE"] = hang_up_at_once
    async with site(server) as origin, await connect(ServerAddress(origin), kept.recorder) as connection:
        await handshake(connection)

    notes = [change.what for change in kept.session().changes if isinstance(change.what, Note)]
    (ending,) = [note for note in notes if note.kind == "http" and note.fields["method"] == "DELETE"]
    assert ending.fields["status"] is None
    assert ending.fields["error"] == "the server closed the connection"


async def test_a_request_of_2026_07_28_has_descriptive_headers_and_no_session(
    site: Site, server: Server, kept: Kept
) -> None:
    async def listed(_: web.Request) -> web.StreamResponse:
        schema = {"properties": {"city": {"type": "string", "x-mcp-header": "City"}}}
        tools = [{"name": "forecast", "inputSchema": schema}]
        return web.json_response({"jsonrpc": "2.0", "id": 1, "result": {"tools": tools}})

    server.more["tools/list"] = listed
    async with site(server) as origin, await connect(ServerAddress(origin), kept.recorder) as connection:
        await say(connection, id=1, method="tools/list", params={"_meta": META})
        await next_of(connection, ReceivedMessage)
        params = {"name": "forecast", "arguments": {"city": "Köln"}, "_meta": META}
        await say(connection, id=2, method="tools/call", params=params)
        await next_of(connection, ReceivedMessage)

    headers = server.requests("tools/call")[0]
    assert {name: value for name, value in headers.items() if name.startswith("mcp-")} == {
        "mcp-protocol-version": "2026-07-28",
        "mcp-method": "tools/call",
        "mcp-name": "forecast",
        "mcp-param-city": "=?base64?S8O2bG4=?=",
    }
    assert not server.requests("GET")
    assert not server.requests("DELETE")
    assert [each.request.frame.stream for each in kept.session().exchanges] == ["1", "2"]


async def test_a_request_of_2026_07_28_is_cancelled_by_disconnecting(
    site: Site, server: Server, kept: Kept
) -> None:
    gone = asyncio.Event()

    async def hangs(request: web.Request) -> web.StreamResponse:
        try:
            response = await stream(request, event(method="notifications/progress", params={}))
            await asyncio.sleep(BOUND)
        finally:
            gone.set()
        return response

    server.more["hang"] = hangs
    async with site(server) as origin, await connect(ServerAddress(origin), kept.recorder) as connection:
        await say(connection, id=1, method="hang", params={"_meta": META})
        await next_of(connection, ReceivedMessage)
        await say(connection, method="notifications/cancelled", params={"requestId": 1})
        await asyncio.wait_for(gone.wait(), BOUND)
        await say(connection, id=2, method="ping", params={"_meta": META})
        assert (await next_of(connection)).request == "2"

    assert not server.requests("notifications/cancelled")
    assert [each.state for each in kept.session().exchanges] == [State.CANCELLED, State.OK]


async def test_a_request_of_an_earlier_revision_is_cancelled_by_a_notification(
    site: Site, server: Server
) -> None:
    async with site(server) as origin, await connect(ServerAddress(origin)) as connection:
        await handshake(connection)
        await say(connection, method="notifications/cancelled", params={"requestId": 9})

    assert len(server.requests("notifications/cancelled")) == 1


async def test_requests_are_lost_if_the_server_disconnects(site: Site, server: Server) -> None:
    async with site(server) as origin:
        connection = await connect(ServerAddress(origin))
    await say(connection, id=1, method="ping")
    lost = await next_of(connection)
    await connection.close()
    await connection.close()

    assert (type(lost), lost.request) == (ExchangeLost, "1")
    assert lost.why == f"cannot reach {origin}: Connection refused"


class OldServer:
    """HTTP+SSE (2024-11-05): one stream, and an address for messages."""

    def __init__(self, endpoint: str = "/messages?session=1") -> None:
        self.endpoint = endpoint
        self.queue: asyncio.Queue[str | None] = asyncio.Queue()

    async def __call__(self, request: web.Request) -> web.StreamResponse:
        if request.method == "POST":
            assert request.path_qs == "/messages?session=1"
            message = json.loads(await request.read())
            if message.get("method") == "refuse":
                return web.Response(status=500, text="no")
            self.queue.put_nowait(event(id=message["id"], result={}) if "id" in message else None)
            return web.Response(status=202, text="Accepted")
        response = await stream(request, f"event: endpoint\ndata: {self.endpoint}\n\n")
        while (said := await self.queue.get()) is not None:
            await response.write(said.encode())
        return response


async def test_http_with_sse_has_one_stream_for_all_answers(site: Site, kept: Kept) -> None:
    async with (
        site(OldServer()) as origin,
        await connect(ServerAddress(f"{origin}/sse"), kept.recorder) as connection,
    ):
        await say(connection, id=1, method="initialize", params={})
        received = await next_of(connection)
        await say(connection, id=2, method="refuse")
        refused = await next_of(connection)
        await say(connection, method="notifications/initialized")
        ended = await next_of(connection)

    assert (type(received), received.request, received.http) == (ReceivedMessage, None, 1)
    assert (type(refused), refused.request, refused.why) == (
        ExchangeRefused,
        "2",
        "HTTP 500 Internal Server Error: no",
    )
    assert (type(ended), ended.why) == (ConnectionEnded, "the server ended the stream")
    assert [each.state for each in kept.session().exchanges] == [State.OK, State.REFUSED]


async def test_a_request_of_2026_07_28_over_http_with_sse_is_cancelled_by_a_notification(site: Site) -> None:
    async with site(OldServer()) as origin, await connect(ServerAddress(f"{origin}/sse")) as connection:
        await say(connection, id=1, method="ping", params={"_meta": META})
        await next_of(connection, ReceivedMessage)
        await say(connection, method="notifications/cancelled", params={"requestId": 1})
        ended = await next_of(connection)

    assert (type(ended), ended.why) == (ConnectionEnded, "the server ended the stream"), (
        "it got a notification"
    )


@pytest.mark.parametrize(
    ("endpoint", "why"),
    [("http://127.0.0.1:1/steal", "at another origin"), (None, "is not an HTTP.SSE server: HTTP 405")],
)
async def test_a_server_that_does_not_speak_http_with_sse_is_reported(
    endpoint: str | None, why: str, site: Site
) -> None:
    async def serve(request: web.Request) -> web.StreamResponse:
        return await OldServer(endpoint)(request) if endpoint is not None else web.Response(status=405)

    async with site(serve) as origin:
        with pytest.raises(CannotStart, match=why):
            await connect(ServerAddress(f"{origin}/events", is_sse=True))


@pytest.mark.parametrize("is_stream", [False, True], ids=["body", "event"])
async def test_a_response_above_the_limit_is_lost_and_the_reason_is_given(
    site: Site, server: Server, kept: Kept, *, is_stream: bool
) -> None:
    async def respond(request: web.Request) -> web.StreamResponse:
        if not is_stream:
            return web.json_response({"jsonrpc": "2.0", "id": 1, "result": "0" * 200_000})
        response = await stream(request)
        await response.write(event("5", id=1, result="0" * 200_000).encode())
        return response

    server.more["big"] = respond
    async with site(server) as origin:
        address = ServerAddress(origin, max_body=100_000)
        async with await connect(address, kept.recorder) as connection:
            await say(connection, id=1, method="big")
            lost = await next_of(connection, ExchangeLost)
            await say(connection, id=2, method="ping")
            assert (await next_of(connection, ReceivedMessage)).request == "2"
    assert (lost.request, lost.why) == ("1", "the response is larger than 100000 bytes (--max-body)")
    notes = [entry for change in kept.session().changes if isinstance(entry := change.what, Note)]
    assert "oversized" in [note.kind for note in notes]


@pytest.mark.parametrize("encoding", COMPRESS)
@pytest.mark.parametrize("is_stream", [True, False])
async def test_a_compressed_response_is_received_up_to_the_limit(
    site: Site, server: Server, kept: Kept, *, encoding: str, is_stream: bool
) -> None:
    async def respond(number: int, result: str) -> web.StreamResponse:
        text = (
            event("5", id=number, result=result)
            if is_stream
            else json.dumps({"jsonrpc": "2.0", "id": number, "result": result})
        )
        body = COMPRESS[encoding](text.encode())
        media_type = "text/event-stream" if is_stream else "application/json"
        return web.Response(body=body, content_type=media_type, headers={"Content-Encoding": encoding})

    async def small(_: web.Request) -> web.StreamResponse:
        return await respond(1, "small")

    async def large(_: web.Request) -> web.StreamResponse:
        return await respond(2, "0" * 200_000)

    server.more |= {"small": small, "large": large}
    async with site(server) as origin:
        address = ServerAddress(origin, max_body=100_000)
        async with await connect(address, kept.recorder) as connection:
            await say(connection, id=1, method="small")
            received = await next_of(connection, ReceivedMessage)
            await say(connection, id=2, method="large")
            lost = await next_of(connection, ExchangeLost)
    assert json.loads(received.data)["result"] == "small"
    assert lost.why == "the response is larger than 100000 bytes (--max-body)"


@pytest.mark.parametrize("is_large", [True, False], ids=["too large", "breaks"])
async def test_the_end_of_the_stream_of_http_with_sse_ends_the_connection_with_its_reason(
    site: Site, *, is_large: bool
) -> None:
    posts = list[str]()

    async def serve(request: web.Request) -> web.StreamResponse:
        if request.method == "POST":
            posts.append(request.path)
            return web.Response(status=202)
        endpoint = "event: endpoint\ndata: /messages\n\n"
        if is_large:
            return await stream(request, endpoint, event(method="x" * 2000))
        return await hang_up(request, endpoint)

    async with (
        site(serve) as origin,
        await connect(ServerAddress(f"{origin}/sse", max_body=1000)) as connection,
    ):
        ended = await next_of(connection)
        await say(connection, id=1, method="ping")

    assert type(ended) is ConnectionEnded
    assert ended.why.startswith("the response is larger than 1000 bytes" if is_large else "Response payload")
    assert posts == []


async def test_a_server_of_http_with_sse_that_names_no_endpoint_is_reported(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def serve(request: web.Request) -> web.StreamResponse:
        response = await stream(request, ": wait\n\n")
        await asyncio.sleep(BOUND)
        return response

    monkeypatch.setattr(module, "ENDPOINT_TIMEOUT", 0.01)
    async with site(serve) as origin:
        with pytest.raises(
            CannotStart, match=r"it did not name an endpoint within 0 s \(is it Streamable HTTP"
        ):
            await connect(ServerAddress(f"{origin}/sse"))
