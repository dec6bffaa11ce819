"""An endpoint that is recognised only by its response."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest
from aiohttp import web

from tests.io.forward.spoken import EVENTS, PING, PONG, heads

if TYPE_CHECKING:
    from tests.io.forward.spoken import Serving, Spying

pytestmark = pytest.mark.timeout(60)


async def test_an_sse_stream_is_mcp_from_its_endpoint_event_on(spying: Spying, serving: Serving) -> None:
    asked: asyncio.Queue[bytes] = asyncio.Queue()

    async def sse(request: web.Request) -> web.StreamResponse:
        if request.method == "POST":
            await asked.put(await request.read())
            return web.Response(status=202)
        answer = web.StreamResponse(headers=EVENTS)
        await answer.prepare(request)
        await answer.write(b"event: endpoint\ndata: /messages?session=7\n\n")
        assert await asked.get() == PING
        await answer.write(b"event: message\ndata: %s\n\n" % PONG)
        return answer

    async with serving(sse) as server, spying() as spy:
        headers = {"Accept": "text/event-stream", "Cache-Control": "no-store"}
        async with spy.client.get(f"{server}/sse", headers=headers) as answer:
            assert b"/messages?session=7" in await answer.content.readuntil(b"\n\n")
            assert await spy.post(f"{server}/messages?session=7", PING) == (202, b"")
            assert PONG in await answer.content.readuntil(b"\n\n")
    ((upstream, entries),) = spy.recorded().items()
    assert upstream == f"{server}/sse"
    assert heads(entries) == [("GET", "/sse", 200), ("POST", "/messages?session=7", 202)]
    assert [entry["stream"] for entry in entries if "msg" in entry] == ["1", "1"]
    assert [entry["t"] for entry in entries] == sorted(entry["t"] for entry in entries)
