"""Viewers on an asyncio loop."""

from __future__ import annotations

import asyncio
import os
from typing import TYPE_CHECKING

import pytest

from mcpspy.errors import CannotStart
from mcpspy.io.control import server_asyncio, socket
from mcpspy.io.control.client import AsyncControlClient
from mcpspy.io.control.server_asyncio import AsyncioServer

if TYPE_CHECKING:
    from pathlib import Path

    from tests.io.control.conftest import ControlTarget


async def viewer_gone(live: ControlTarget) -> None:
    on_disconnect = asyncio.Event()
    live.on_gone = on_disconnect.set
    async with asyncio.timeout(30):
        if not live.gone:
            await on_disconnect.wait()


def is_empty(folder: Path) -> bool:
    return not list(folder.iterdir())


@pytest.mark.parametrize("has_unix", [True, False], ids=["unix", "loopback"])
async def test_viewers_come_hear_and_go(
    live: ControlTarget, runtime: Path, has_unix: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(socket, "HAS_UNIX", has_unix and socket.HAS_UNIX)
    opened = AsyncioServer.open(live, pytest.fail)
    assert opened is not None
    first = await AsyncControlClient.open(opened.path, "tui")
    second = await AsyncControlClient.open(opened.path, "tui")
    answers = await asyncio.gather(first.order("list"), second.order("hold"))
    assert list(answers) == [{"did": "list"}, {"did": "hold"}]
    assert sorted(viewer for viewer, _ in live.orders) == ["tui", "tui-2"]
    live.tell("tui-2", {"event": "held"})
    assert await anext(second.events()) == {"event": "held"}
    live.gone.clear()
    await first.close()
    await viewer_gone(live)
    assert live.gone == ["tui"]
    await opened.close()
    assert [event async for event in second.events()] == [{"event": "end"}]
    await second.close()
    assert is_empty(runtime)


async def test_a_viewer_that_never_reads_is_disconnected(
    live: ControlTarget, runtime: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server_asyncio, "MAX_UNSENT", 1_000_000)
    opened = AsyncioServer.open(live, pytest.fail)
    assert opened is not None
    reader, writer = await asyncio.open_unix_connection(opened.path)
    await reader.readline()
    reader._transport.pause_reading()  # type: ignore[attr-defined]
    for _ in range(4):
        live.tell(None, {"event": "held", "text": "x" * 1_000_000})
    await viewer_gone(live)
    writer.close()
    await opened.close()


async def test_a_socket_that_cannot_be_created_is_one_line_and_changes_nothing_else(
    live: ControlTarget, runtime: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MCPSPY_RUNTIME", os.devnull)
    message: list[str] = []
    assert AsyncioServer.open(live, message.append) is None
    (line,) = message
    assert line.startswith("viewers cannot connect to this session: ")
    assert "\n" not in line


async def test_a_viewer_that_leaves_at_once_keeps_no_one_out(
    live: ControlTarget, runtime: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[object] = []

    def is_same_user(connection: object) -> bool:
        asked.append(connection)
        if len(asked) == 1:
            raise OSError(57, "Socket is not connected")
        return True

    monkeypatch.setattr(socket, "is_same_user", is_same_user)
    opened = AsyncioServer.open(live, pytest.fail)
    assert opened is not None
    with pytest.raises(CannotStart):
        await AsyncControlClient.open(opened.path)
    client = await AsyncControlClient.open(opened.path)
    assert await client.order("list") == {"did": "list"}
    await client.close()
    await opened.close()
