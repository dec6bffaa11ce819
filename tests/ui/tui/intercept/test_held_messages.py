"""Tests of the rows of held messages, and of the line about them."""

from __future__ import annotations

import json
from typing import Any

from mcpspy.core.intercept.trust_guard import HOLD, TrustGuard
from mcpspy.core.trust.lock import TrustedItem, TrustedServer
from tests.core.trust.locks import ADD, ECHO
from tests.ui.tui.intercept.conftest import call, hold, result

SIZE = (130, 18)


async def test_a_response_is_held_on_the_row_of_its_exchange(opened: Any, reached: Any) -> None:
    async with reached() as session, opened(session.path, size=(140, 18)) as screen:
        await hold(screen, "tool:write_file from:server")
        session.say("client", call(1))
        session.say("server", result(1))
        await screen.shows("HELD 0:0", "response to tools/call write_file", "Cline times out")
        assert session.taken() == [("client", call(1))]
        await screen.press("exclamation_mark")
        await screen.shows("only requests can be answered")
        await screen.press("v")
        await screen.processed()
        await screen.until(lambda: "held (tui)" in screen.text)
        await screen.press("G", "a")  # On the note about holding it.
        await screen.until(lambda: session.taken() == [("server", result(1))])


async def test_a_message_held_by_a_rule_is_shown_at_once_and_released_by_timeout(
    opened: Any, reached: Any
) -> None:
    async with reached("tool:write_file from:client => hold") as session:
        session.say("client", call(1))
        async with opened(session.path, size=SIZE) as screen:
            await screen.shows("1 held · tools/call write_file · by rule 1", "HELD")
            assert "intercepting" not in screen.text
            assert screen.session.leave_question == "", "this viewer does not hold it"
            session.wake(301.0)
            await screen.shows("tools/call write_file: auto-released (timeout)")
            await screen.until(lambda: "1 held" not in screen.text)
            assert session.taken() == [("client", call(1))]


async def test_equal_messages_of_one_chunk_are_held_in_separate_rows(
    opened: Any, reached: Any, monkeypatch: Any
) -> None:
    changed = b'{"jsonrpc":"2.0","method":"notifications/roots/list_changed"}'
    async with reached() as session, opened(session.path, size=SIZE) as screen:
        await hold(screen, "method:roots")
        monkeypatch.setattr(type(session), "at", 9.0)
        for _ in range(3):
            session.say("client", changed)
        await screen.shows("3 held")
        await screen.until(lambda: len(screen.session.listing.held) == 3, "a row for each")
        held = dict(screen.session.listing.held)
        first, second, third = sorted(held)
        assert held[first].ticket < held[second].ticket < held[third].ticket
        await screen.press("g", "j", "X")  # Only the second of them.
        await screen.shows("2 held")
        await screen.until(lambda: set(screen.session.listing.held) == {first, third}, "the others")
        await screen.press("A")
        await screen.until(lambda: len(session.sent) == 2)
        effects = screen.session.loader.model.index.effects
        await screen.until(
            lambda: (
                ["dropped" in effects.get(row, "") for row in (first, second, third)] == [False, True, False]
                and all("held" not in effects[row] or ";" in effects[row] for row in (first, third))
            )
        )


async def test_a_held_listing_is_shown_with_its_differences_from_the_lockfile(
    opened: Any, reached: Any
) -> None:
    items = {"tools": {str(tool["name"]): TrustedItem(tool) for tool in (ECHO, ADD)}}
    server = TrustedServer(listed=("tools",), items=items, capabilities={"tools": {}})
    tools = [{**ECHO, "description": "Evil."}, {"name": "rm", "inputSchema": {"type": "object"}}]
    listed = json.dumps({"jsonrpc": "2.0", "id": 1, "result": {"tools": tools}}).encode()
    async with (
        reached(trust=TrustGuard(server, HOLD, lambda _: None)) as session,
        opened(session.path, size=(160, 50)) as screen,
    ):
        session.say("client", b'{"jsonrpc":"2.0","id":1,"method":"tools/list"}')
        session.say("server", listed)
        await screen.shows("1 held · response to tools/list · by rule trust: tool echo: description changed")
        await screen.shows("HELD 0:")  # The row, which is read from the file.
        await screen.press("H")
        await screen.shows("differences from the lockfile", "breaking", "/result/tools/echo/description")
        await screen.shows('"Evil."', "lost the tool add", "gained the tool rm")
        assert session.taken()[-1][0] == "client"
        await screen.press("a")
        await screen.until(lambda: session.taken() == [("server", listed)])
