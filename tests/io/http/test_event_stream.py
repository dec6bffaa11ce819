"""The events of a stream are recorded, then forwarded, without a coroutine where nothing has to wait."""

from __future__ import annotations

import asyncio
import gc
from typing import TYPE_CHECKING

import pytest

from mcpspy.core.exchange.events import DecidedEvents, ForwardedEvents
from mcpspy.core.exchange.machine import ExchangeMachine
from mcpspy.io.http.exchange import ProxiedExchange
from tests.io.http_spy import PONG, chunk, event

if TYPE_CHECKING:
    from tests.io.http_spy import Start

pytestmark = pytest.mark.timeout(60)

MOST = 20

PARTS = (ForwardedEvents, DecidedEvents, ExchangeMachine, ProxiedExchange)
"""Classes of the objects of an exchange."""


@pytest.fixture
def refusals(monkeypatch: pytest.MonkeyPatch) -> list[bytes]:
    """Return a list to which each chunk is added that is not an event like the one before."""
    refused: list[bytes] = []
    known = ForwardedEvents.known

    def noted(self: ForwardedEvents, now: float, data: bytes) -> bytes | None:
        line = known(self, now, data)
        if line is None:
            refused.append(data)
        return line

    monkeypatch.setattr(ForwardedEvents, "known", noted)
    return refused


async def test_each_event_is_in_the_file_when_it_is_forwarded(
    proxy: Start, monkeypatch: pytest.MonkeyPatch, refusals: list[bytes]
) -> None:
    async with proxy() as spy:
        send, recorded = ProxiedExchange.to_client, []

        def noted(self: ProxiedExchange, data: bytes) -> None:
            if data == chunk(event(PONG)):
                recorded.append(len(spy.said("server")))
            send(self, data)

        monkeypatch.setattr(ProxiedExchange, "to_client", noted)
        client, call = await spy.event_stream()
        for _ in range(MOST):
            await call.send(chunk(event(PONG)))
            assert await client.read(len(event(PONG))) == event(PONG)
        await call.send(chunk(b""))
        assert await client.body() == b""
        assert recorded == list(range(1, MOST + 1))
        assert refusals == [event(PONG)] * 2  # The stream begins, and the shape of its events becomes known.


@pytest.mark.parametrize("rules", [(), ("tool:none => drop",)], ids=["forwarded", "decided"])
async def test_a_stream_that_has_ended_is_freed_without_the_cycle_collector(
    proxy: Start, rules: tuple[str, ...]
) -> None:
    async with proxy("/mcp", *rules) as spy:
        gc.collect()
        gc.disable()
        try:
            client, call = await spy.event_stream()
            for _ in range(3):
                await call.send(chunk(event(PONG)))
                assert await client.read(len(event(PONG))) == event(PONG)
            await call.send(chunk(b""))
            assert await client.body() == b""
            async with asyncio.timeout(20):
                while any(isinstance(each, PARTS) for each in gc.get_objects()):  # noqa: ASYNC110 - no event.
                    await asyncio.sleep(0)
        finally:
            gc.enable()


async def test_the_rest_of_an_event_and_a_client_that_does_not_read_are_left_to_the_coroutine(
    proxy: Start, refusals: list[bytes]
) -> None:
    async with proxy() as spy:
        client, call = await spy.event_stream()
        for _ in range(3):
            await call.send(chunk(event(PONG)))
            assert await client.read(len(event(PONG))) == event(PONG)
        refusals.clear()
        await call.send(chunk(event(PONG)[:9]))
        assert await client.read(9) == event(PONG)[:9]
        await call.send(chunk(event(PONG)[9:]))
        assert await client.read(len(event(PONG)) - 9) == event(PONG)[9:]
        assert refusals == [event(PONG)[:9], event(PONG)[9:]]
        large = event(b'{"text":"%b"}' % (b"x" * 15_000))
        count = 2000  # 30 MB, more than sockets and buffers hold.
        sending = asyncio.create_task(call.send(chunk(large) * count + chunk(b"")))
        assert await client.body() == large * count
        await sending
        assert len(spy.said("server")) == count + 4
        assert await spy.ended() == [None]


async def test_a_bug_while_an_event_is_forwarded_ends_the_stream_and_is_reported(
    proxy: Start, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    def broken(self: ForwardedEvents, *_: object) -> bytes | None:
        raise ValueError("broken")

    monkeypatch.setattr(ForwardedEvents, "known", broken)
    async with proxy() as spy:
        client, call = await spy.event_stream()
        await call.send(chunk(event(PONG)))
        with pytest.raises(asyncio.IncompleteReadError):
            await client.body()
        assert await spy.ended() == ["mcpspy"]
    assert "a bug in mcpspy: ValueError: 'broken'" in capfd.readouterr().err
