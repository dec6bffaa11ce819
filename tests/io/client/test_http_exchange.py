"""One HTTP exchange, in its recording and as events."""

from __future__ import annotations

from typing import TYPE_CHECKING

import aiohttp
import pytest
from aiohttp import web
from yarl import URL

from mcpspy.core.protocol.message import Message
from mcpspy.core.recording.decode import Note
from mcpspy.io.client.http_exchange import ClientExchange, ResponsePart, excerpt
from tests.io.client.conftest import stream

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractAsyncContextManager

    from tests.io.client.conftest import Handler, Kept

    Site = Callable[[Handler], AbstractAsyncContextManager[str]]

PING = b'{"jsonrpc":"2.0","id":1,"method":"ping"}'
PONG = '{"jsonrpc":"2.0","id":1,"result":{}}'


async def ask(url: str, kept: Kept, **headers: str) -> tuple[ClientExchange, list[ResponsePart]]:
    async with aiohttp.ClientSession() as client:
        exchange = ClientExchange(kept.recorder, 7, "3")
        try:
            await exchange.send_request(client, "POST", URL(url), headers, PING)
            events = [event async for event in exchange.events()]
        finally:
            exchange.close(None)
    return exchange, events


def notes(kept: Kept) -> list[tuple[str, dict[str, object]]]:
    return [
        (change.what.kind, change.what.fields)
        for change in kept.session().changes
        if isinstance(change.what, Note)
    ]


async def test_events_are_received_one_by_one_and_recorded_with_their_fields(site: Site, kept: Kept) -> None:
    async def serve(request: web.Request) -> web.StreamResponse:
        return await stream(
            request,
            "id: 1\nretry: 20\ndata:\n\n",
            f"id: 2\r\nevent: message\r\ndata: {PONG}\r\n\r\n",
            "event: half\ndata: half",
        )

    async with site(serve) as origin:
        _, events = await ask(f"{origin}/mcp?key=x", kept, Authorization="Bearer secret")

    assert events == [
        ResponsePart(None, None, "", "1", 20),
        ResponsePart(PONG.encode(), "message", "", "2", None),
    ]
    found = notes(kept)
    assert [kind for kind, _ in found] == ["http", "sse", "sse", "http-end", "exit"]
    head = found[0][1]
    assert (head["http"], head["stream"], head["status"], head["path"]) == (7, "3", 200, "/mcp?key=x")
    assert head["request"] == {
        "authorization": "[redacted]",
        "host": origin.removeprefix("http://"),
        "accept": "*/*",
        "content-length": "40",
        "content-type": "application/octet-stream",
        "user-agent": aiohttp.http.SERVER_SOFTWARE,
    }
    assert (found[2][1]["torn"], found[2][1]["lacks"], found[2][1]["size"]) == (True, "newline", 4)


async def test_a_body_is_one_message_and_its_exchange_is_paired(site: Site, kept: Kept) -> None:
    async def serve(request: web.Request) -> web.StreamResponse:
        assert await request.read() == PING
        return web.Response(text=PONG, content_type="application/json")

    async with site(serve) as origin:
        _, events = await ask(origin, kept)

    assert events == [ResponsePart(PONG.encode())]
    (exchange,) = kept.session().exchanges
    assert (exchange.state, exchange.request.frame.http, exchange.flaws) == ("ok", 7, [])


async def test_a_redirect_is_followed_only_within_its_origin(site: Site, kept: Kept) -> None:
    async def serve(request: web.Request) -> web.StreamResponse:
        target = {"/a": "/b", "/b": "/c", "/x": "http://127.0.0.1:1/steal"}.get(request.path)
        if target is not None:
            return web.Response(status=307, headers={"Location": target})
        return web.Response(text=request.headers["X-Key"], content_type="text/plain")

    async with site(serve) as origin:
        followed, events = await ask(f"{origin}/a", kept, **{"X-Key": "k"})
        refused, _ = await ask(f"{origin}/x", kept, **{"X-Key": "k"})

    assert (followed.status, events) == (200, [ResponsePart(b"k")])
    assert refused.status == 307


async def test_a_truncated_response_is_an_error_and_recorded_as_incomplete(site: Site, kept: Kept) -> None:
    async def serve(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "application/json", "Content-Length": "100"})
        await response.prepare(request)
        await response.write(PONG.encode())
        assert request.transport is not None
        request.transport.close()
        return response

    async with site(serve) as origin:
        with pytest.raises(aiohttp.ClientError):
            await ask(origin, kept)
    (_, torn) = (change.what for change in kept.session().changes if isinstance(change.what, Message))
    assert (torn.data, torn.frame.eol) == (PONG.encode(), "")
    assert (torn.frame.lacks, torn.frame.size) == ("rest of body", len(PONG))


async def test_a_refused_connection_is_an_error_and_a_head_without_a_status(kept: Kept) -> None:
    async with aiohttp.ClientSession() as client:
        exchange = ClientExchange(kept.recorder, 1, "1")
        with pytest.raises(aiohttp.ClientError):
            await exchange.send_request(client, "POST", URL("http://127.0.0.1:1/mcp"), {}, PING)
        exchange.close(None, "cannot reach it")
        exchange.close("client")

    head, end, _ = notes(kept)
    assert (head[0], head[1]["status"], head[1]["error"]) == ("http", None, "cannot reach it")
    assert (end[0], end[1]["hung_up"]) == ("http-end", None)


def test_an_excerpt_is_one_short_line() -> None:
    assert excerpt(b"<html>\n  <b>no</b>\n" + b"x" * 500) == "<html> <b>no</b> " + "x" * 183 + "…"
