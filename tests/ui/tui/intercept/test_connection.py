"""Tests of the connection to a live session: discovery, events, and its end."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from mcpspy.errors import CannotStart
from mcpspy.ui.model import intercept_connection as module
from mcpspy.ui.model.intercept_connection import HeldMessage, InterceptConnection
from tests.ui.tui.intercept.conftest import call


async def until(condition: Callable[[], object]) -> None:
    async with asyncio.timeout(30):
        while not condition():  # noqa: ASYNC110 - the other task sets no event.
            await asyncio.sleep(0.01)


async def test_only_decisions_of_others_are_reported_and_the_end_clears_the_messages(reached: Any) -> None:
    reported: list[tuple[int, str]] = []

    def released(held: HeldMessage, why: str) -> None:
        reported.append((held.ticket, why))

    is_live = [True]
    async with reached("tool:other => hold") as session:
        session.say("client", call(1, "other"))
        connection = InterceptConnection(session.path, released)
        keeping = asyncio.ensure_future(connection.keep(lambda: is_live[0]))
        await until(lambda: connection.held)
        assert (connection.is_open, connection.viewer, connection.held_here) == (True, "tui", [])
        await connection.hold("tool:write_file")
        session.say("client", call(2))
        session.say("client", call(3))
        await until(lambda: len(connection.held) == 3)
        assert [held.id for held in connection.held_here] == ["2", "3"]
        rule, held_here, other = connection.held.values()
        await connection.accept(held_here)
        await until(lambda: len(connection.held) == 2)
        session.order("send", {"order": "release", "ticket": rule.ticket})
        await until(lambda: len(connection.held) == 1)
        assert reported == [(rule.ticket, "accepted")]
        with pytest.raises(Exception, match="no message is held under ticket"):
            await connection.drop(held_here)
        assert await connection.accept_all() == 1
        await until(lambda: not connection.held)
        assert reported == [(rule.ticket, "accepted")]
        assert other.data == call(3)
        is_live[0] = False
    await asyncio.wait_for(keeping, 30)
    assert (connection.is_open, connection.query) == (False, None)
    with pytest.raises(CannotStart, match="cannot reach the session: the session has ended"):
        await connection.hold("")


async def test_it_retries_until_the_session_exists(reached: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "RETRY", 0.01)
    async with reached() as session:
        elsewhere = session.path.with_name("elsewhere.jsonl")
        connection = InterceptConnection(elsewhere, lambda _held, _why: None)
        keeping = asyncio.ensure_future(connection.keep(lambda: True))
        with pytest.raises(CannotStart, match="cannot reach the session: "):
            await connection.accept_all()
        session.path.rename(elsewhere)
        await until(lambda: connection.is_open)
        keeping.cancel()
        await asyncio.gather(keeping, return_exceptions=True)
        assert not connection.is_open
