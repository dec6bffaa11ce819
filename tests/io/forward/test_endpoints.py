"""The endpoints that were found, and their listener."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import aiohttp
import pytest
from aiohttp import web

from tests.io.forward.spoken import PING, PONG, heads, pong, said

if TYPE_CHECKING:
    from tests.io.forward.spoken import Serving, Spying

pytestmark = pytest.mark.timeout(60)


async def test_each_endpoint_has_a_recording_and_what_is_reported_about_it_is_noted_there(
    spying: Spying, serving: Serving
) -> None:
    async def describe(request: web.Request) -> web.Response:
        if request.method == "POST":
            return await pong(request)
        resource = (
            f"https://{request.host}{request.path.removeprefix('/.well-known/oauth-protected-resource')}"
        )
        return web.json_response({"resource": resource})

    head = "/.well-known/oauth-protected-resource"
    async with serving(describe) as server, spying() as spy:
        async with spy.client.get(f"{server}{head}/two", headers={"MCP-Protocol-Version": "2025-11-25"}):
            pass  # Before there is an endpoint it could be about.
        await spy.post(f"{server}/one", PING)
        await spy.post(f"{server}/two", PING)
        async with spy.client.get(f"{server}{head}/two") as answer:
            # As the server sent it: a client that uses the server's own address must find that address.
            assert await answer.json() == {"resource": f"{server}/two"}
        await spy.post(f"{server}/token", b'{"grant_type":"authorization_code"}')
    recorded = spy.recorded()
    assert heads(recorded[f"{server}/one"]) == [("POST", "/one", 200)]
    assert heads(recorded[f"{server}/two"]) == [("POST", "/two", 200), ("GET", f"{head}/two", 200)]
    assert len(recorded) == 2


async def test_only_mitmproxy_can_reach_the_core(spying: Spying, serving: Serving) -> None:
    async with serving(pong) as server, spying() as spy:
        await spy.post(f"{server}/mcp", PING)
        async with aiohttp.ClientSession() as other:
            for path in ("/mcp", "/1/mcp", "/guess/1/mcp", "/"):
                async with other.post(f"http://127.0.0.1:{spy.core}{path}", data=PING) as answer:
                    assert answer.status == 404
    ((_, entries),) = spy.recorded().items()
    assert len(heads(entries)) == 1


async def test_concurrent_first_requests_are_in_one_recording(spying: Spying, serving: Serving) -> None:
    async with serving(pong) as server, spying() as spy:
        answers = await asyncio.gather(*(spy.post(f"{server}/mcp", PING) for _ in range(5)))
    assert answers == [(200, PONG)] * 5
    assert spy.count() == 1
    ((_, entries),) = spy.recorded().items()
    assert len(said(entries)) == 10
