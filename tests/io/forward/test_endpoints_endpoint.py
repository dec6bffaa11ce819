"""An endpoint that is recognised only by its response."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import orjson
import pytest
from aiohttp import web

from mcpspy.io.control.client import AsyncControlClient, live_sessions
from mcpspy.io.intercept.interception import InterceptionOptions
from tests.io.forward.spoken import EVENTS, PING, PONG, heads

if TYPE_CHECKING:
    from tests.io.forward.spoken import Serving, Spying

pytestmark = pytest.mark.timeout(60)


class SseServer:
    """A server of 2024-11-05: it keeps the messages that it gets, and sends those that it is given."""

    def __init__(self) -> None:
        self.asked: asyncio.Queue[bytes] = asyncio.Queue()
        self.answers: asyncio.Queue[bytes] = asyncio.Queue()

    async def handle(self, request: web.Request) -> web.StreamResponse:
        if request.method == "POST":
            await self.asked.put(await request.read())
            return web.Response(status=202)
        answer = web.StreamResponse(headers=EVENTS)
        await answer.prepare(request)
        await answer.write(b"event: endpoint\ndata: /messages?session=7\n\n")
        while True:
            await answer.write(b"event: message\ndata: %s\n\n" % await self.answers.get())


@pytest.mark.parametrize("rules", [[], ["tool:x => delay 1ms"]], ids=["without rules", "with rules"])
async def test_an_sse_stream_is_mcp_from_its_endpoint_event_on(
    spying: Spying, serving: Serving, rules: list[str]
) -> None:
    server_side = SseServer()
    interception = InterceptionOptions()
    interception.flags = rules
    async with serving(server_side.handle) as server, spying(interception=interception) as spy:
        headers = {"Accept": "text/event-stream", "Cache-Control": "no-store"}
        async with spy.client.get(f"{server}/sse", headers=headers) as answer:
            assert b"/messages?session=7" in await answer.content.readuntil(b"\n\n")
            assert await spy.post(f"{server}/messages?session=7", PING) == (202, b"")
            assert await server_side.asked.get() == PING
            await server_side.answers.put(PONG)
            assert PONG in await answer.content.readuntil(b"\n\n")
    ((upstream, entries),) = spy.recorded().items()
    assert upstream == f"{server}/sse"
    assert [(note["event"], note["data"]) for note in entries if note.get("note") == "sse"] == [
        ("endpoint", "/messages?session=7")
    ]
    assert heads(entries) == [("GET", "/sse", 200), ("POST", "/messages?session=7", 202)]
    assert [entry["stream"] for entry in entries if "msg" in entry] == ["1", "1"]
    assert [entry["t"] for entry in entries] == sorted(entry["t"] for entry in entries)


async def event(viewer: AsyncControlClient, kind: str) -> dict[str, Any]:
    async for said in viewer.events():
        if said["event"] == kind:
            return said
    raise AssertionError("the session has ended")


async def held(viewer: AsyncControlClient) -> int:
    ticket: int = (await event(viewer, "held"))["ticket"]
    return ticket


async def test_a_viewer_holds_edits_and_sends_messages_of_an_sse_stream(
    spying: Spying, serving: Serving
) -> None:
    server_side = SseServer()
    asked, answers = server_side.asked, server_side.answers
    async with serving(server_side.handle) as server, spying() as spy:
        messages = f"{server}/messages?session=7"
        assert await asyncio.to_thread(live_sessions) == []
        async with spy.client.get(f"{server}/sse", headers={"Accept": "text/event-stream"}) as answer:
            await answer.content.readuntil(b"\n\n")
            (found,) = await asyncio.to_thread(live_sessions)
            viewer = await AsyncControlClient.open(found.path, "tui")
            try:
                assert viewer.hello["session"] in viewer.hello["file"]
                await viewer.order("hold", query="method:ping")
                posting = asyncio.ensure_future(spy.post(messages, PING))
                ticket = await held(viewer)
                assert asked.empty()
                await viewer.order("release", ticket=ticket)
                assert await posting == (202, b"")
                assert await asked.get() == PING

                await answers.put(PONG)
                message = {"jsonrpc": "2.0", "id": 1, "result": {"n": 2}}
                await viewer.order("release", ticket=await held(viewer), message=message)
                assert b'"n":2' in await answer.content.readuntil(b"\n\n")

                await viewer.order("hold", query=None)
                injected = await viewer.order("request", to="server", method="tools/list")
                sent = orjson.loads(await asked.get())
                assert orjson.dumps(sent["id"]).decode() == injected["id"]
                await answers.put(orjson.dumps({"jsonrpc": "2.0", "id": sent["id"], "result": {"tools": []}}))
                assert (await event(viewer, "answer"))["message"]["result"] == {"tools": []}
            finally:
                await viewer.close()
