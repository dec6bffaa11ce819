"""The forward proxy between existing clients and servers."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import aiohttp
import pytest
from aiohttp import web

from mcpspy.io.intercept.interception import InterceptionOptions
from tests.core.redact import corpus, unseen
from tests.io.forward.spoken import EVENTS, JSON, PING, PONG, heads, pong, said

if TYPE_CHECKING:
    from pathlib import Path

    from tests.io.forward.spoken import Serving, Spying

pytestmark = pytest.mark.timeout(60)


async def test_mcp_is_recorded_as_if_the_server_had_been_named(
    spying: Spying, serving: Serving, capfd: pytest.CaptureFixture[str]
) -> None:
    async with serving(pong) as server, spying() as spy:
        assert await spy.post(f"{server}/mcp?key=1", PING) == (200, PONG)
        assert await spy.post(f"{server}/mcp?key=1", b"nonsense") == (200, PONG)
    ((upstream, entries),) = spy.recorded().items()
    assert upstream == f"{server}/mcp"
    assert heads(entries) == [("POST", "/mcp?key=1", 200)] * 2
    assert entries[1]["request"]["host"] == server.removeprefix("https://")
    asked, answered, _ = said(entries)
    assert (asked["method"], answered["result"]) == ("ping", {})
    # Recognised by its path from its first message on, whatever is sent there.
    assert [entry["raw"] for entry in entries if "raw" in entry] == ["nonsense"]
    assert entries[-1]["note"] == "exit"
    assert capfd.readouterr().err.startswith(f"mcpspy: {server}/mcp: recording to /")


def texts_of_files(folder: Path) -> str:
    files = [path for path in folder.rglob("*") if path.is_file()]
    return "\n".join(corpus.texts(path.read_bytes()) for path in files)


async def test_secrets_of_forwarded_messages_reach_the_server_and_no_file(
    spying: Spying, serving: Serving, tmp_path: Path
) -> None:
    received = []

    async def keep(request: web.Request) -> web.Response:
        received.append((await request.read()).decode())
        return web.Response(body=PONG, content_type="application/json")

    calls = unseen.calls()
    async with serving(keep) as server, spying() as spy:
        for case in calls:
            message = case.text.encode()
            status, _ = await spy.post(
                f"{server}/mcp?api_key=tiger99", message, Authorization="Bearer hunter2-abc123"
            )
            assert status == 200
    assert received == [case.text for case in calls]
    written = texts_of_files(tmp_path)
    assert "[redacted:" in written
    assert "tiger99" not in written
    assert "hunter2" not in written
    assert [case.what for case in calls if any(secret in written for secret in case.secrets)] == []


@pytest.mark.parametrize("plain", [True, False], ids=["http", "https"])
async def test_an_event_is_passed_on_when_it_comes_and_a_client_that_leaves_is_seen_upstream(
    plain: bool, spying: Spying, serving: Serving
) -> None:
    received, gone = asyncio.Event(), asyncio.Event()

    async def stream(request: web.Request) -> web.StreamResponse:
        answer = web.StreamResponse(headers=EVENTS)
        await answer.prepare(request)
        await answer.write(b"data: %s\n\n" % PONG)
        await received.wait()
        await answer.write(b"data: %s\n\n" % PONG)
        try:
            await asyncio.sleep(3600)
        finally:
            gone.set()
        return answer

    async with serving(stream, plain=plain) as server, spying() as spy:  # noqa: SIM117 - Ends before they do.
        async with spy.client.post(f"{server}/mcp", data=PING, headers=JSON) as answer:
            assert await answer.content.readuntil(b"\n\n") == b"data: %s\n\n" % PONG
            received.set()
            assert await answer.content.readuntil(b"\n\n") == b"data: %s\n\n" % PONG
            answer.close()
            await asyncio.wait_for(gone.wait(), 30)
    ((_, entries),) = spy.recorded().items()
    assert len(said(entries)) == 3
    (end,) = [entry for entry in entries if entry.get("note") == "http-end"]
    assert end["hung_up"] == "client"


async def test_a_truncated_response_is_truncated_for_the_client(spying: Spying, serving: Serving) -> None:
    async def tear(request: web.Request) -> web.StreamResponse:
        answer = web.StreamResponse(headers=EVENTS)
        await answer.prepare(request)
        await answer.write(b"data: %s\n\ndata: half" % PONG)
        assert request.transport is not None
        request.transport.abort()
        return answer

    async with serving(tear) as server, spying() as spy:
        with pytest.raises(aiohttp.ClientPayloadError):
            await spy.post(f"{server}/mcp", PING)
    ((_, entries),) = spy.recorded().items()
    assert [entry["hung_up"] for entry in entries if entry.get("note") == "http-end"] == ["server"]


async def test_an_unreachable_server_is_a_502_in_the_protocol_of_the_client(spying: Spying) -> None:
    async with spying() as spy:
        status, body = await spy.post("https://127.0.0.1:1/mcp", PING)
    assert (status, b'"id":1,"error"' in body, b"https://127.0.0.1:1/mcp" in body) == (502, True, True)


async def test_rules_apply_as_for_a_named_server(spying: Spying, serving: Serving) -> None:
    rules = InterceptionOptions()
    rules.flags = ["method:ping => error -32000 boom"]
    async with serving(pong) as server, spying(interception=rules) as spy:
        status, body = await spy.post(f"{server}/mcp", PING)
    assert status == 200
    assert b'"code":-32000,"message":"boom"' in body.replace(b": ", b":").replace(b", ", b",")
    ((_, entries),) = spy.recorded().items()
    assert [entry["action"] for entry in entries if entry.get("note") == "rule" and "action" in entry]
