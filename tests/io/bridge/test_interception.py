"""Interception of a bridge between lines and a fake connection; `tests/e2e/test_intercept_bridge.py` has real peers."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any

import pytest

from mcpspy.core.intercept.actions import CommandError
from mcpspy.core.intercept.interceptor import Interceptor
from mcpspy.errors import CannotStart
from mcpspy.io.bridge import bridge as module
from mcpspy.io.client import ConnectionEnded, ExchangeRefused
from mcpspy.io.recording.reader import Recording
from mcpspy.io.recording.recorder import Recorder, RecordingTarget
from tests.io.bridge.test_bridge import CALL, HELLO, Server, World, answer, line

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

pytestmark = pytest.mark.timeout(60)

BEGUN = line(method="notifications/initialized")


@pytest.fixture
async def world(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[World]:
    world = World()
    monkeypatch.setattr(module, "open_http", world.open)
    await world.say(HELLO)
    await world.bridge.forward(BEGUN)
    yield world
    await world.bridge.close()


def hold(world: World, query: str = "tool:echo") -> list[dict[str, Any]]:
    """Hold messages as a viewer; return the list that gets the viewer's events."""
    events: list[dict[str, Any]] = []
    world.bridge.interception.tell = lambda _, event: events.append(event)
    world.bridge.interception.order("tui", {"order": "hold", "query": query})
    return events


async def test_a_call_that_a_viewer_drops_never_reaches_the_server(world: World) -> None:
    events = hold(world)
    await world.bridge.forward(CALL)
    world.bridge.interception.order("tui", {"order": "drop", "ticket": events[0]["ticket"]})
    world.bridge.interception.viewer_left("tui")
    assert (await world.say(CALL.replace(b'"id": 1', b'"id": 2')))["id"] == 2
    assert [message.get("id") for message in world.found[0].sent] == [0, None, 2]


async def test_a_held_message_is_released_when_the_host_closes_stdin(world: World) -> None:
    hold(world)
    await world.bridge.forward(CALL)
    await world.bridge.forward(CALL.replace(b'"id": 1', b'"id": 2'))
    async with asyncio.timeout(30):
        world.bridge.interception.order("tui", {"order": "hold", "query": "kind:request"})
        await world.bridge.drain()
        assert [(await world.written.get())["id"] for _ in range(2)] == [1, 2]


async def test_a_bug_in_the_engine_loses_neither_the_message_nor_the_held_ones(
    world: World, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    hold(world)
    await world.bridge.forward(CALL)
    monkeypatch.setattr(Interceptor, "process", lambda *_, **__: 1 / 0)
    await world.bridge.forward(CALL.replace(b'"id": 1', b'"id": 2'))
    async with asyncio.timeout(30):
        assert [(await world.written.get())["id"] for _ in range(2)] == [1, 2]
    assert "interception stopped by a bug in mcpspy: ZeroDivisionError" in capfd.readouterr().err
    with pytest.raises(CommandError, match="interception stopped by a bug"):
        world.bridge.interception.order("tui", {"order": "list"})


async def test_a_request_of_a_viewer_that_the_server_refuses_is_reported_to_the_viewer(world: World) -> None:
    world.found[0].answers["ping"] = [lambda m: ExchangeRefused(0.0, json.dumps(m["id"]), 1, 500, "HTTP 500")]
    events: list[dict[str, Any]] = []
    answered = asyncio.Event()

    def tell(_: str | None, event: dict[str, Any]) -> None:
        events.append(event)
        answered.set()

    world.bridge.interception.tell = tell
    world.bridge.interception.order("tui", {"order": "request", "method": "ping"})
    async with asyncio.timeout(30):
        await answered.wait()
    assert events[0]["event"] == "answer"
    assert "HTTP 500" in events[0]["error"]
    assert world.written.empty()


async def test_a_viewer_cannot_send_before_a_server_is_connected() -> None:
    world = World()
    with pytest.raises(CommandError, match="cannot send to the server: it is not connected"):
        world.bridge.interception.order("tui", {"order": "request", "method": "ping"})
    await world.bridge.close()


async def test_a_viewer_cannot_send_before_the_handshake_is_over(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World()
    monkeypatch.setattr(module, "open_http", world.open)
    world.servers = [Server({})]
    hold(world)
    await world.bridge.forward(HELLO)
    with pytest.raises(CommandError, match="the session has not started: try again after the handshake"):
        world.bridge.interception.order("tui", {"order": "request", "method": "ping"})
    await world.bridge.close()


async def test_a_call_that_is_released_after_the_server_has_gone_gets_an_error(world: World) -> None:
    events = hold(world)
    await world.bridge.forward(CALL)
    world.found[0].hears(ConnectionEnded(0.0, why="gone"))
    world.servers = [CannotStart("cannot reach it")]
    world.bridge.interception.order("tui", {"order": "release", "ticket": events[0]["ticket"]})
    async with asyncio.timeout(30):
        refused = await world.written.get()
    assert (refused["id"], refused["error"]["message"]) == (1, "mcpspy bridge: cannot reach it")


async def test_a_held_call_is_recorded_once_with_what_was_sent_in_a_note(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    world, target = World(), RecordingTarget()
    target.record = str(tmp_path / "r.jsonl")
    recorder = Recorder(target, {"transport": "http", "upstream": "http://localhost:1/mcp"})
    world.bridge = module.Bridge(module.BridgeOptions(world.bridge._address, "server"), recorder, world.write)
    world.bridge.interception.begin()
    monkeypatch.setattr(module, "open_http", world.open)
    world.servers = [Server({"initialize": [answer], "tools/call": [answer]})]
    await world.say(HELLO)
    await world.bridge.forward(BEGUN)
    events = hold(world)
    await world.bridge.forward(CALL)
    edited = {**json.loads(CALL), "params": {"name": "other"}}
    world.bridge.interception.order(
        "tui", {"order": "release", "ticket": events[0]["ticket"], "message": edited}
    )
    async with asyncio.timeout(30):
        await world.written.get()
    await world.bridge.close()
    recorder.finish(0, None)

    lines = (tmp_path / "r.jsonl").read_text(encoding="utf-8").splitlines()
    entries = [json.loads(each) for each in lines]
    calls = [each["msg"] for each in entries if each.get("msg", {}).get("method") == "tools/call"]
    assert calls == [json.loads(CALL)]
    (released,) = [each for each in entries if each.get("action") == "release"]
    assert json.loads(released["sent"])["params"] == {"name": "other"}
    assert world.found[0].sent[-1]["params"] == {"name": "other"}
    assert Recording(tmp_path / "r.jsonl").header.upstream == "http://localhost:1/mcp"
