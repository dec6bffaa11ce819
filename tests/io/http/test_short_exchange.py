"""Calls whose heads are known: recorded and forwarded as the first one, and with anything else that may happen."""

from __future__ import annotations

import asyncio
import gc
import json
from typing import TYPE_CHECKING, Any

import pytest

from mcpspy.core.intercept.interceptor import Interceptor
from mcpspy.io.http.exchange import ProxiedExchange
from mcpspy.io.scripts import ScriptOptions
from tests.io.http_spy import JSON, PING, PONG, chunk, event, plain

if TYPE_CHECKING:
    from pathlib import Path

    from tests.io.http_spy import Client, Spy, Start

pytestmark = pytest.mark.timeout(60)


async def called(spy: Spy, client: Client, count: int = 2, *headers: str) -> None:
    """Make calls that are answered in one packet each."""
    for _ in range(count):
        await client.post(PING, *headers)
        await (await spy.server.call()).send(plain(PONG, JSON, *headers))
        assert await client.answer() == (200, PONG)


@pytest.mark.parametrize("rules", [(), ("tool:other => drop",)], ids=["without rules", "with a rule"])
@pytest.mark.parametrize("headers", [(), ("Mcp-Session-Id: s",)], ids=["without a session", "session"])
async def test_its_entries_are_those_of_any_exchange(
    proxy: Start, headers: tuple[str, ...], rules: tuple[str, ...]
) -> None:
    async with proxy("/mcp", *rules) as spy:
        await called(spy, await spy.client(), 4, *headers)
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
async def test_another_response_continues_as_any_exchange(proxy: Start, response: bytes) -> None:
    async with proxy() as spy:
        client = await spy.client()
        await called(spy, client)
        await client.post(PING)
        await (await spy.server.call()).send(response)
        status, body = await client.answer()
        assert (status, PONG in body) == (int(response[9:12]), True)
        assert spy.said("server") == [PONG] * 3
        assert await spy.ended(3) == [None] * 3


async def test_a_second_request_waits_for_the_first_response(proxy: Start) -> None:
    async with proxy() as spy:
        client = await spy.client()
        await called(spy, client)
        await client.post(PING)
        first = await spy.server.call()
        await client.post(PING)
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


def call(tool: str) -> bytes:
    """Return a call; those of names of one length have the same head."""
    return b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"%b"}}' % tool.encode()


CALM, LOUD = call("calm"), call("loud")


async def calls_of(spy: Spy, client: Client, count: int = 3) -> None:
    """Make calls that no rule matches, the last ones as short exchanges."""
    for _ in range(count):
        await client.post(CALM)
        await (await spy.server.call()).send(plain(PONG, JSON))
        assert await client.answer() == (200, PONG)


ERROR = b'{"jsonrpc":"2.0","id":1,"error":{"code":-32000,"message":"no"}}'
CHANGED = b'{"jsonrpc":"2.0","id":1,"result":{"a":1}}'


@pytest.mark.parametrize(
    ("rule", "received", "answered"),
    [
        ("tool:loud => error -32000 no", None, ERROR),
        ("tool:loud => delay 20ms", LOUD, PONG),
        ("tool:loud => replace /params/name = even", call("even"), PONG),
        ('kind:result tool:loud => replace /result = {"a":1}', LOUD, CHANGED),
        ("kind:result tool:loud => delay 20ms", LOUD, PONG),
    ],
    ids=["answered", "delayed", "replaced", "response replaced", "response delayed"],
)
async def test_a_decision_that_changes_something_is_carried_out(
    proxy: Start,
    rule: str,
    received: bytes | None,
    answered: bytes,
) -> None:
    async with proxy("/mcp", rule) as spy:
        client = await spy.client()
        await calls_of(spy, client)
        await client.post(LOUD)
        if received is not None:
            served = await spy.server.call()
            assert served.body == received
            await served.send(plain(PONG, JSON))
        assert await client.answer() == (200, answered)
        assert await spy.ended(4) == [None] * 4
        assert [note["status"] for note in spy.notes("http")] == [200] * 4
        assert spy.said("client") == [CALM] * 3 + [LOUD]
        assert spy.said("server")[3:] == [ERROR if received is None else PONG]
        await calls_of(spy, client)


@pytest.mark.parametrize("side", ["client", "server"])
async def test_a_message_of_a_client_that_has_hung_up_is_not_forwarded(proxy: Start, side: str) -> None:
    async with proxy("/mcp", f"{'kind:result ' * (side == 'server')}tool:loud => hold") as spy:
        client = await spy.client()
        await calls_of(spy, client)
        await client.post(LOUD)
        if side == "server":
            await (await spy.server.call()).send(plain(PONG, JSON))
        while not any(note["action"] == "hold" for note in spy.notes("rule")):  # noqa: ASYNC110 - a file sets no event.
            await asyncio.sleep(0)
        client.writer.close()
        assert await spy.ended(4) == [None, None, None, "client"]
        assert [note["why"] for note in spy.notes("rule") if note["action"] == "release"] == [
            "connection closed"
        ]
        await calls_of(spy, await spy.client())


async def test_a_request_is_sent_though_the_connection_to_the_server_was_lost(proxy: Start) -> None:
    async with proxy("/mcp", "tool:loud => delay 50ms") as spy:
        client = await spy.client()
        await calls_of(spy, client, 2)
        await client.post(CALM)
        last = await spy.server.call()
        await last.send(plain(PONG, JSON))
        assert await client.answer() == (200, PONG)
        await client.post(LOUD)
        last.writer.close()
        served = await spy.server.call()
        assert (served.body, served.writer is last.writer) == (LOUD, False)
        assert spy.said("client") == [CALM] * 3 + [LOUD]
        await served.send(plain(PONG, JSON))
        assert await client.answer() == (200, PONG)
        assert await spy.ended(4) == [None] * 4


@pytest.mark.parametrize("side", ["client", "server"])
async def test_a_second_request_waits_for_the_decision_on_the_first(proxy: Start, side: str) -> None:
    async with proxy("/mcp", f"{'kind:result ' * (side == 'server')}tool:loud => delay 50ms") as spy:
        client = await spy.client()
        await calls_of(spy, client)
        await client.post(LOUD)
        if side == "server":
            await (await spy.server.call()).send(plain(PONG, JSON))
        await client.post(CALM)
        if side == "client":
            await (await spy.server.call()).send(plain(PONG, JSON))
        assert await client.answer() == (200, PONG)
        await (await spy.server.call()).send(plain(CHANGED, JSON))
        assert await client.answer() == (200, CHANGED)
        assert await spy.ended(5) == [None] * 5


async def test_a_script_decides_on_its_messages(proxy: Start, tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(
        "def request(exchange):\n    if exchange.tool == 'loud':\n        exchange.tag('loud')\n"
        "def response(exchange):\n    if exchange.tool == 'loud':\n        exchange.replace(result={'a': 1})\n",
        encoding="utf-8",
    )
    scripts = ScriptOptions()
    scripts.files = [str(script)]
    async with proxy(scripts=scripts) as spy:
        client = await spy.client()
        await calls_of(spy, client)
        await client.post(LOUD)
        await (await spy.server.call()).send(plain(PONG, JSON))
        assert await client.answer() == (200, CHANGED)
        await calls_of(spy, client, 1)
        assert [note["action"] for note in spy.notes("rule")] == ["tag", "replace"]
        assert await spy.ended(5) == [None] * 5


async def test_a_bug_in_interception_forwards_what_waits(
    proxy: Start, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    async with proxy("/mcp", "tool:loud => delay 50ms") as spy:
        client = await spy.client()
        await calls_of(spy, client)

        def bug(*_: object) -> None:
            raise RuntimeError("broken")

        monkeypatch.setattr(Interceptor, "run_due", bug)
        await client.post(LOUD)
        served = await spy.server.call()
        assert served.body == LOUD
        await served.send(plain(PONG, JSON))
        assert await client.answer() == (200, PONG)
        await calls_of(spy, client)
        assert "interception stopped by a bug" in capfd.readouterr().err


async def test_an_exchange_whose_messages_were_decided_on_leaves_nothing_behind(proxy: Start) -> None:
    async with proxy("/mcp", "tool:loud => drop") as spy:
        await calls_of(spy, await spy.client(), 20)
        gc.collect()
        assert sum(isinstance(each, ProxiedExchange) for each in gc.get_objects()) <= 1


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
    """Return the names of the objects that belong to connections of clients and their requests.

    A route keeps the head of the last POST of a session.
    """
    names = ("DownstreamConnection", "ExchangeMachine", "HttpRequest", "ProxiedExchange")
    return [name for each in gc.get_objects() if (name := type(each).__name__) in names]
