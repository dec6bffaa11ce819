"""Tests of holding, editing, dropping and answering messages from the screen, over a real control socket."""

from __future__ import annotations

import json
from typing import Any

from mcpspy.ui.tui.intercept.editor import EditorScreen
from mcpspy.ui.tui.widgets.prompts import ConfirmPrompt
from tests.ui.tui.intercept.conftest import call, hold, result

SIZE = (130, 18)


async def test_a_call_is_held_edited_and_forwarded(opened: Any, reached: Any) -> None:
    async with reached() as session, opened(session.path, size=(130, 34)) as screen:
        await hold(screen, "tool:write_file from:client")
        await screen.shows("matching messages are held")
        session.say("client", call(1, path="a.txt", text="one"))
        assert session.taken() == []
        await screen.shows("HELD 0:", "· 1 held", "auto-releases in 4:", "Cline times out in 0:")
        assert "HELD" in screen.selected
        await screen.press("enter")
        await screen.shows("tools/call write_file · Cline times out", "unchanged; ctrl-s sends")
        area = screen.app.screen.query_one("TextArea")
        good = area.text.replace('"one"', '"two"')
        area.text = good.replace('"two"', "two")
        await screen.shows("invalid JSON: line 9, column 15: Expecting value")
        area.text = good.replace('"id": 1', '"id": 2')
        await screen.shows("id changed (was 1): the response will not match its request")
        area.text = good
        await screen.press("escape")
        await screen.shows("not sent; the draft is kept", "1 held")
        await screen.press("enter")
        await screen.until(lambda: isinstance(screen.app.screen, EditorScreen))
        assert screen.app.screen.text == good
        await screen.press("ctrl+s")
        await screen.shows("forwarded as edited", "0 held", "edited after", "forwarded instead")
        ((side, sent),) = session.taken()
        assert (side, json.loads(sent)) == ("client", json.loads(call(1, path="a.txt", text="two")))
        session.say("server", result(1))
        assert session.taken() == [("server", result(1))]
        await screen.shows("response: ok in")


async def test_interception_keys_apply_on_held_rows_only(opened: Any, reached: Any) -> None:
    async with reached() as session, opened(session.path, size=SIZE) as screen:
        await hold(screen, "tool:write_file from:client")
        for number in range(1, 7):
            session.say("client", call(number))
        await screen.shows("6 held", "6/6 matches")
        await screen.shows("enter edit", "! answer", "a forward", "X drop", "A forward all")
        await screen.press("g", "X")
        await screen.shows("tools/call write_file: dropped", "5 held")
        assert session.taken() == []
        await screen.press("d")
        await screen.shows("no earlier tools/call write_file")
        await screen.press("H", "a")
        await screen.shows("tools/call write_file: released", "4 held")
        assert session.taken() == [("client", call(2))]
        await screen.press("H", "exclamation_mark")
        await screen.shows("Answer tools/call write_file with an error")
        await screen.press("home", "x", "enter")
        await screen.shows("error code: not an integer")
        await screen.press("home", "delete", "enter", "end", *" x", "enter")
        await screen.shows("answered with error -32603", "3 held")
        ((side, answer),) = session.taken()
        assert (side, json.loads(answer)) == (
            "server",
            {"jsonrpc": "2.0", "id": 3, "error": {"code": -32603, "message": "Internal error x"}},
        )
        await screen.shows("error -32603")
        await screen.press("H", "enter")
        await screen.shows("unchanged; ctrl-s sends")
        await screen.press("ctrl+s")
        await screen.shows("forwarded unchanged", "2 held")
        assert session.taken() == [("client", call(4))]
        await screen.press("A")
        await screen.shows("released 2 messages", "0 held")
        assert session.taken() == [("client", call(number)) for number in (5, 6)]


async def test_leaving_asks_first_and_releases(opened: Any, reached: Any) -> None:
    async with reached() as session, opened(session.path, size=SIZE) as screen:
        await screen.shows("● LIVE")
        await screen.press("i")
        await screen.shows("Filter of messages to intercept")
        await screen.press("enter")
        await screen.shows("intercepting all messages")
        session.say("client", call(1))
        await screen.shows("1 held")
        await screen.press("Q")
        await screen.shows("Leave and release 1 held message?", "y: quit   n or esc: stay")
        await screen.press("n", "q")
        await screen.shows("y: leave   n or esc: stay")
        assert session.taken() == []
        await screen.press("n", "i")
        await screen.shows("interception off; released 1 message")
        assert session.taken() == [("client", call(1))]
        await screen.press("i", "enter")
        await screen.shows("intercepting all messages")
        session.say("client", call(2))
        await screen.shows("1 held")
        await screen.press("q", "y")
        await screen.until(lambda: session.taken() == [("client", call(2))])
        await screen.shows("1 session")
        assert not isinstance(screen.app.screen, ConfirmPrompt)


async def test_a_message_that_is_not_utf_8_can_be_forwarded_or_dropped_but_not_edited(
    opened: Any, reached: Any
) -> None:
    data = call(1, path="a.txt").replace(b"a.txt", b"\xff.txt")
    async with reached() as session, opened(session.path, size=SIZE) as screen:
        await hold(screen, "from:client")
        session.say("client", data)
        await screen.shows("1 held", "HELD 0:")
        await screen.press("enter")
        await screen.shows("cannot edit: not UTF-8; a forwards it unchanged, X drops it")
        assert not isinstance(screen.app.screen, EditorScreen)
        await screen.press("a")
        await screen.shows("tools/call write_file: released")
        assert session.taken() == [("client", data)]


async def test_a_key_restarts_the_server_of_a_session_that_allows_it(opened: Any, reached: Any) -> None:
    async with reached(restarts=[]) as session, opened(session.path, size=SIZE) as screen:
        await screen.shows("ctrl-r restart")
        await screen.press("ctrl+r")
        await screen.shows("restarting the server")
        assert session.restarts == ["tui"]


async def test_the_key_names_the_option_that_other_sessions_lack(opened: Any, reached: Any) -> None:
    async with reached() as session, opened(session.path, size=SIZE) as screen:
        await screen.shows("● LIVE")
        assert "restart" not in screen.lines[-1]
        await screen.press("ctrl+r")
        await screen.shows("cannot be restarted (start it with mcpspy run or http --watch)")
