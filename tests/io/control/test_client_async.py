"""The asynchronous client of a live session."""

from __future__ import annotations

import asyncio
import socket
import threading
from typing import TYPE_CHECKING

import pytest

from mcpspy.errors import CannotStart
from mcpspy.io.control import client as module
from mcpspy.io.control.client import AsyncControlClient, CommandRefused
from mcpspy.io.control.server_poll import ThreadedServer

if TYPE_CHECKING:
    from pathlib import Path

    from tests.io.control.conftest import ControlTarget


async def test_orders_overlap_and_events_are_a_stream(opened: ThreadedServer, live: ControlTarget) -> None:
    session = await AsyncControlClient.open(opened.path, "tui")
    assert session.hello["name"] == "weather"
    orders = [session.order("tell", text=str(n)) for n in range(20)]
    assert await asyncio.gather(*orders) == [{"did": "tell"}] * 20
    with pytest.raises(CommandRefused):
        await session.order("refuse")
    texts = []
    async with asyncio.timeout(30):
        async for event in session.events():
            texts.append(event["text"])
            if len(texts) == 20:
                break
    assert texts == [str(n) for n in range(20)]
    assert {viewer for viewer, _ in live.orders} == {"tui"}
    await session.close()


async def test_an_order_fails_once_the_session_has_ended(live: ControlTarget, runtime: Path) -> None:
    lock = threading.Lock()
    with lock:
        opened = ThreadedServer(live, lock)
    session = await AsyncControlClient.open(opened.path)
    with lock:
        opened.close()
    assert [event["event"] async for event in session.events()][-1] == "end"
    with pytest.raises(CannotStart, match="the session has ended"):
        await session.order("list")
    await session.close()


async def test_a_client_that_is_not_connected_may_lack_a_callback(
    opened: ThreadedServer, live: ControlTarget
) -> None:
    on_disconnect = asyncio.Event()
    loop = asyncio.get_running_loop()

    def on_gone() -> None:
        loop.call_soon_threadsafe(on_disconnect.set)

    live.on_gone = on_gone
    with pytest.raises(CommandRefused, match="a word of at most 20 letters"):
        await AsyncControlClient.open(opened.path, "no word")
    async with asyncio.timeout(30):
        await on_disconnect.wait()


@pytest.mark.parametrize("last", [b"", b"[1]\n", b"not JSON\n"])
async def test_a_session_that_ends_or_is_not_mcpspy_fails_the_commands_that_wait_and_all_later_ones(
    monkeypatch: pytest.MonkeyPatch, last: bytes
) -> None:
    session, other = socket.socketpair()
    other.sendall(b'{"mcpspy":1}\n')
    monkeypatch.setattr(module, "connect", lambda _path, _seconds: session)
    client = await AsyncControlClient.open("x.sock")
    waiting = asyncio.ensure_future(client.order("list"))
    await asyncio.sleep(0)
    other.sendall(last)
    if not last:
        other.close()
    async with asyncio.timeout(30):
        assert [event async for event in client.events()] == [{"event": "end"}]
        for order in (waiting, client.order("list")):
            with pytest.raises(CannotStart, match="the session has ended"):
                await order
    await client.close()
    other.close()


async def test_a_command_without_a_response_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "RESPONSE_TIMEOUT", 0.05)
    session, other = socket.socketpair()
    other.sendall(b'{"mcpspy":1}\n')
    monkeypatch.setattr(module, "connect", lambda _path, _seconds: session)
    client = await AsyncControlClient.open("x.sock")
    with pytest.raises(CannotStart, match=r"did not respond in 0\.05 s \(is its mcpspy suspended\?\)"):
        await client.order("list")
    await client.close()
    other.close()
