"""The way into a live session: found when it is there, told what happens, closed when it ends."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from mcpspy.errors import CannotStart
from mcpspy.ui.tui.intercept import connection as module
from mcpspy.ui.tui.intercept.connection import HeldMessage, InterceptConnection
from tests.ui.tui.intercept.conftest import call


async def until(condition: Callable[[], object]) -> None:
    async with asyncio.timeout(30):
        while not condition():  # noqa: ASYNC110 - what another task does sets no event.
            await asyncio.sleep(0.01)


async def test_only_what_others_decided_is_told_and_the_end_empties_it(reached: Any) -> None:
    told: list[tuple[int, str]] = []

    def released(held: HeldMessage, why: str) -> None:
        told.append((held.ticket, why))

    is_live = [True]
    async with reached("tool:other => hold") as session:
        session.say("client", call(1, "other"))
        reach = InterceptConnection(session.path, released)
        keeping = asyncio.ensure_future(reach.keep(lambda: is_live[0]))
        await until(lambda: reach.held)
        assert (reach.is_open, reach.viewer, reach.mine) == (True, "tui", [])
        await reach.hold("tool:write_file")
        session.say("client", call(2))
        session.say("client", call(3))
        await until(lambda: len(reach.held) == 3)
        assert [held.id for held in reach.mine] == ["2", "3"]
        rule, mine, other = reach.held.values()
        await reach.accept(mine)
        await until(lambda: len(reach.held) == 2)
        session.order("send", {"order": "release", "ticket": rule.ticket})
        await until(lambda: len(reach.held) == 1)
        assert told == [(rule.ticket, "accepted")]
        with pytest.raises(Exception, match="no message is held under ticket"):
            await reach.drop(mine)
        assert await reach.accept_all() == 1
        await until(lambda: not reach.held)
        assert told == [(rule.ticket, "accepted")]
        assert other.data == call(3)
        is_live[0] = False
    await asyncio.wait_for(keeping, 30)
    assert (reach.is_open, reach.query) == (False, None)
    with pytest.raises(CannotStart, match="cannot be reached: the session has ended"):
        await reach.hold("")


async def test_it_tries_again_until_the_session_is_there(
    reached: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "AGAIN", 0.01)
    async with reached() as session:
        elsewhere = session.path.with_name("elsewhere.jsonl")
        reach = InterceptConnection(elsewhere, lambda _held, _why: None)
        keeping = asyncio.ensure_future(reach.keep(lambda: True))
        with pytest.raises(CannotStart, match="cannot be reached: "):
            await reach.accept_all()
        session.path.rename(elsewhere)
        await until(lambda: reach.is_open)
        keeping.cancel()
        await asyncio.gather(keeping, return_exceptions=True)
        assert not reach.is_open
