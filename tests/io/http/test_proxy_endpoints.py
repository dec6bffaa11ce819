"""MCP endpoints at other paths than that of `--upstream` are recorded, and nothing else is."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from mcpspy.io.http import proxy as proxy_module
from tests.io.http_spy import EVENTS, JSON, PING, PONG, chunk, event, plain

if TYPE_CHECKING:
    from tests.io.http_spy import Client, Spy, Start

pytestmark = pytest.mark.timeout(60)

RPC_OF_ANOTHER_PROTOCOL = b'{"jsonrpc":"2.0","id":1,"method":"textDocument/hover"}'


async def called(spy: Spy, client: Client, target: str, body: bytes = PING, answer: bytes = PONG) -> None:
    await client.ask("POST", target, body, JSON)
    call = await spy.server.call()
    assert (call.target, call.body) == (target, body)
    await call.send(plain(answer, JSON))
    assert await client.answer() == (200, answer)


def entries(folder: Path) -> dict[str, list[dict[str, Any]]]:
    """Return the entries of each recording, by the path of its endpoint."""
    found = {}
    for path in folder.glob("recording*.jsonl"):
        header, *lines = map(json.loads, path.read_bytes().splitlines())
        found["/" + header["upstream"].split("/", 3)[3]] = lines
    return found


def recorded(folder: Path) -> dict[str, list[tuple[str, Any]]]:
    """Return the messages of each recording, by the path of its endpoint."""
    return {
        path: [(entry["from"], entry["msg"]) for entry in lines if "msg" in entry]
        for path, lines in entries(folder).items()
    }


EXCHANGE = [("client", json.loads(PING)), ("server", json.loads(PONG))]


async def test_each_endpoint_has_its_own_recording(proxy: Start, tmp_path: Path) -> None:
    async with proxy("/a") as spy:
        client = await spy.client()
        for target in ("/a", "/b", "/c?key=1", "/b"):
            await called(spy, client, target)
    assert recorded(tmp_path) == {"/a": EXCHANGE, "/b": EXCHANGE * 2, "/c": EXCHANGE}


async def test_an_endpoint_is_found_once_by_requests_at_the_same_time(proxy: Start, tmp_path: Path) -> None:
    async with proxy("/a") as spy:
        clients = [await spy.client() for _ in range(3)]
        for client in clients[:2]:
            await client.ask("POST", "/b", PING, JSON)
        for _ in range(2):
            await (await spy.server.call()).send(plain(PONG, JSON))
        for client in clients[:2]:
            assert await client.answer() == (200, PONG)
        await called(spy, clients[2], "/b")
    assert {path: len(messages) for path, messages in recorded(tmp_path).items()} == {"/a": 0, "/b": 6}


async def test_endpoints_above_the_limit_are_forwarded_and_reported_once(
    proxy: Start, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(proxy_module, "MAX_ENDPOINTS", 1)
    async with proxy("/a") as spy:
        for target in ("/b", "/c", "/c", "/d"):
            await called(spy, await spy.client(), target)
        lines = [spy.lines.get_nowait() for _ in range(spy.lines.qsize())]
        assert lines[1:] == [
            f"{spy.server.origin}/c and further MCP endpoints are not recorded: 1 others are"
        ]
    assert recorded(tmp_path) == {"/a": [], "/b": EXCHANGE}


@pytest.mark.parametrize(
    ("status", "header", "is_copied"),
    [
        ("404 Not Found", JSON, True),
        ("405 Method Not Allowed", "Content-Type: text/plain", True),
        ("404 Not Found", "Mcp-Session-Id: lost", False),
        ("400 Bad Request", JSON, False),
    ],
)
async def test_a_message_to_a_path_without_an_endpoint_is_recorded_in_the_session_of_the_endpoint_too(
    proxy: Start, tmp_path: Path, status: str, header: str, is_copied: bool
) -> None:
    answer = b'{"detail":"Not Found"}'
    async with proxy("/mcp") as spy:
        client = await spy.client()
        await called(spy, client, "/mcp")
        for _ in range(2):
            await client.ask("POST", "/message", PING, JSON, header)
            await (await spy.server.call()).send(plain(answer, header, status=status))
            assert (await client.answer())[1] == answer
    found = entries(tmp_path)
    first = [entry for entry in found["/message"] if entry.get("http") == 1]
    copy = [entry for entry in found["/mcp"] if entry.get("http") in (2, 3)]
    assert first
    assert [*map(unnumbered, copy)] == [*map(unnumbered, first if is_copied else [])]
    for old, new in zip(first, copy, strict=False):
        assert (new["stream"], new["http"]) == ("2", 2)
        later = new["t"] - old["t"]
        assert later > 0
        assert new.get("asked_at", 0) == pytest.approx(old["asked_at"] + later if "asked_at" in old else 0)


def unnumbered(entry: dict[str, Any]) -> dict[str, Any]:
    return {name: entry[name] for name in entry if name not in ("t", "asked_at", "stream", "http", "client")}


async def test_an_upstream_without_a_path_takes_the_first_endpoint(proxy: Start, tmp_path: Path) -> None:
    async with proxy("/") as spy:
        client = await spy.client()
        for target in ("/mcp", "/mcp", "/other"):
            await called(spy, client, target)
    assert recorded(tmp_path) == {"/": EXCHANGE * 2, "/other": EXCHANGE}


async def test_an_endpoint_includes_the_path_to_which_it_redirects(proxy: Start, tmp_path: Path) -> None:
    async with proxy("/mcp") as spy:
        client = await spy.client()
        await client.post(PING)
        location = f"Location: {spy.server.origin}/mcp/"
        await (await spy.server.call()).send(plain(b"", location, status="307 Temporary Redirect"))
        assert (await client.answer())[0] == 307
        await called(spy, client, "/mcp/")
    assert recorded(tmp_path) == {"/mcp": [EXCHANGE[0], *EXCHANGE]}


async def test_a_body_decides_after_it_has_arrived(proxy: Start, tmp_path: Path) -> None:
    async with proxy("/a") as spy:
        client = await spy.client()
        head = f"POST /b HTTP/1.1\r\nHost: {spy.host}\r\n{JSON}\r\nContent-Length: {len(PING)}\r\n"
        client.writer.write(head.encode() + b"Expect: 100-continue\r\n\r\n")
        assert await client.stream.readuntil(b"\r\n\r\n") == b"HTTP/1.1 100 Continue\r\n\r\n"
        for part in (PING[:9], PING[9:]):
            client.writer.write(part)
            await asyncio.sleep(0)
        call = await spy.server.call()
        assert call.body == PING
        await call.send(plain(PONG, JSON))
        assert await client.answer() == (200, PONG)
    assert recorded(tmp_path) == {"/a": [], "/b": EXCHANGE}


@pytest.mark.parametrize(
    ("target", "body"), [("/token", b'{"grant_type":"x"}'), ("/lsp", RPC_OF_ANOTHER_PROTOCOL)]
)
async def test_other_requests_are_forwarded_unrecorded(
    proxy: Start, tmp_path: Path, target: str, body: bytes
) -> None:
    async with proxy("/mcp") as spy:
        await called(spy, await spy.client(), target, body, b"{}")
    assert recorded(tmp_path) == {"/mcp": []}


async def test_a_stream_that_may_be_mcp_is_reported_once(
    proxy: Start, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    async with proxy("/mcp") as spy:
        for _ in range(2):
            client = await spy.client()
            await client.ask("GET", "/sse", None, "Accept: text/event-stream")
            await (await spy.server.call()).send(EVENTS + chunk(event(PING)) + chunk(b""))
            await client.head()
            assert await client.body() == event(PING)
        url = f"{spy.server.origin}/sse"
    assert recorded(tmp_path) == {"/mcp": []}
    assert capfd.readouterr().err.count(f"{url} is a stream of events and is not recorded") == 1


async def test_a_foreign_page_cannot_create_an_endpoint(proxy: Start, tmp_path: Path) -> None:
    async with proxy("/mcp") as spy:
        client = await spy.client()
        await client.ask("POST", "/other", PING, JSON, "Origin: https://example.com")
        assert (await client.answer())[0] == 403
    assert recorded(tmp_path) == {"/mcp": []}
