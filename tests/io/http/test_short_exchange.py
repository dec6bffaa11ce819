"""Exchanges without a coroutine: recorded and forwarded as any other, and continued as one when more happens."""

from __future__ import annotations

import asyncio
import gc
import json
from typing import TYPE_CHECKING, Any

import pytest

from mcpspy.io.http.exchange import HttpExchange
from tests.io.http_spy import JSON, PING, PONG, chunk, event, plain

if TYPE_CHECKING:
    from mcpspy.io.http.server import Response
    from tests.io.http_spy import Client, Spy, Start

pytestmark = pytest.mark.timeout(60)


@pytest.fixture
def runs(monkeypatch: pytest.MonkeyPatch) -> list[HttpExchange]:
    """Return the exchanges that a coroutine handles."""
    found: list[HttpExchange] = []
    run = HttpExchange.run

    async def noted(self: HttpExchange) -> Response | None:
        found.append(self)
        return await run(self)

    monkeypatch.setattr(HttpExchange, "run", noted)
    return found


async def called(spy: Spy, client: Client, count: int = 2, *headers: str) -> None:
    """Make calls that are answered in one packet each."""
    for _ in range(count):
        await client.post(PING, *headers)
        await (await spy.server.call()).send(plain(PONG, JSON, *headers))
        assert await client.answer() == (200, PONG)


@pytest.mark.parametrize("headers", [(), ("Mcp-Session-Id: s",)], ids=["without a session", "session"])
async def test_its_entries_are_those_of_any_exchange(
    proxy: Start, runs: list[HttpExchange], headers: tuple[str, ...]
) -> None:
    async with proxy() as spy:
        await called(spy, await spy.client(), 4, *headers)
        assert len(runs) == 1
        entries = [json.loads(line) for line in spy.recording.read_bytes().splitlines()[1:]]
        entries = [entry for entry in entries if "http" in entry]
        number = entries[0]["http"]
        each = [[entry for entry in entries if entry.get("http") == number + n] for n in range(4)]
        shown = [[_without_times(entry, number + n) for entry in each[n]] for n in range(4)]
        assert len(each[0]) == 4
        assert shown[1:] == [shown[0]] * 3
        times = [entry["t"] for entry in entries]
        assert times == sorted(times)
        assert len({entry["stream"] for entry in entries}) == (1 if headers else 4)


def _without_times(entry: dict[str, Any], number: int) -> dict[str, Any]:
    """Return an entry without what differs from exchange to exchange."""
    assert entry["http"] == number
    return {
        name: value
        for name, value in entry.items()
        if name not in ("t", "http", "stream", "asked_at", "client")
    }


async def test_the_request_is_recorded_before_it_is_sent(proxy: Start) -> None:
    async with proxy() as spy:
        client = await spy.client()
        await called(spy, client)
        await client.post(PING)
        await spy.server.call()
        assert spy.said("client") == [PING] * 3


@pytest.mark.parametrize(
    "response",
    [
        plain(PONG, JSON, status="404 Not Found"),
        plain(PONG, JSON, "X-New: 1"),
        b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
        + chunk(event(PONG))
        + chunk(b""),
    ],
    ids=["status", "head", "events"],
)
async def test_another_response_continues_as_any_exchange(
    proxy: Start, runs: list[HttpExchange], response: bytes
) -> None:
    async with proxy() as spy:
        client = await spy.client()
        await called(spy, client)
        await client.post(PING)
        await (await spy.server.call()).send(response)
        status, body = await client.answer()
        assert (status, PONG in body) == (int(response[9:12]), True)
        assert len(runs) == 2
        assert spy.said("server") == [PONG] * 3
        assert await spy.ended(3) == [None] * 3


async def test_a_second_request_waits_for_the_first_response(proxy: Start, runs: list[HttpExchange]) -> None:
    async with proxy() as spy:
        client = await spy.client()
        await called(spy, client)
        await client.post(PING)
        first = await spy.server.call()
        await client.post(PING)
        while len(runs) < 2:  # noqa: ASYNC110 - the second request has no event.
            await asyncio.sleep(0)
        await first.send(plain(PONG, JSON))
        await (await spy.server.call()).send(plain(b'{"second":1}', JSON))
        assert [await client.answer() for _ in range(2)] == [(200, PONG), (200, b'{"second":1}')]


async def test_the_server_learns_that_the_client_has_hung_up(proxy: Start) -> None:
    async with proxy() as spy:
        client = await spy.client()
        await called(spy, client)
        await client.post(PING)
        call = await spy.server.call()
        client.writer.close()
        async with asyncio.timeout(20):
            await call.gone.wait()
        assert await spy.ended(3) == [None, None, "client"]


async def test_a_connection_that_was_closed_is_freed_without_the_cycle_collector(proxy: Start) -> None:
    async with proxy() as spy:
        gc.collect()
        gc.disable()
        try:
            for number in range(2):
                client = await spy.client()
                await called(spy, client, 3, f"Mcp-Session-Id: s{number}")
                client.writer.close()
            async with asyncio.timeout(20):
                while left := _of_connections():  # noqa: ASYNC110 - that a connection is freed has no event.
                    await asyncio.sleep(0)
            assert left == []
        finally:
            gc.enable()


def _of_connections() -> list[str]:
    """Return the names of the objects that belong to connections of clients and their requests."""
    names = ("DownstreamConnection", "HttpExchange", "HttpRequest", "RequestHead", "ShortExchanges")
    return [name for each in gc.get_objects() if (name := type(each).__name__) in names]
