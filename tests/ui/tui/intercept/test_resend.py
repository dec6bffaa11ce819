"""Tests of resending requests from the screen of a live session, over a real control socket."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from textual.widgets import TextArea

from mcpspy.io.recording.reader import RecordingState
from mcpspy.ui.model.intercept_connection import InterceptConnection
from mcpspy.ui.tui.diff.screen import DiffScreen
from tests.ui.tui.intercept.conftest import call, result
from tests.ui.tui.test_first_use import open_session, press

SIZE = (130, 18)

TOOLS = {
    "tools": [
        {"name": "forecast", "inputSchema": {"properties": {"city": {}, "days": {"enum": [1, 2, 3]}}}},
        {"name": "stations"},
    ]
}


async def test_a_request_is_resent_and_compared_with_the_original(opened: Any, reached: Any) -> None:
    async with reached() as session, opened(session.path, size=SIZE) as screen:
        await screen.shows("● LIVE")
        session.say("client", call(1, path="a.txt"))
        session.say("server", result(1, "one"))
        await screen.shows("3/3")
        session.taken()
        await screen.press("r")
        await screen.shows("resent to the server; waiting for the response")
        ((side, sent),) = session.taken()
        resent = json.loads(sent)
        assert side == "client"
        assert resent.pop("id").startswith("mcpspy-test-")
        assert resent == {
            key: value for key, value in json.loads(call(1, path="a.txt")).items() if key != "id"
        }
        session.say("server", result(json.loads(sent)["id"], "two"))
        await screen.until(lambda: isinstance(screen.app.screen, DiffScreen))
        await screen.shows('"one" → "two"', "id 1", 'id "mcpspy-test-1"')
        assert session.taken() == [], "the host does not receive the response"
        await screen.press("q")
        await screen.shows("4/4", "sent (tui)")
        await screen.press("g", "j", "j", "R")
        await screen.shows("resend to the server: tools/call", "a new request with a new id")
        area = screen.app.screen.query_one("TextArea")
        area.text = '{"method": 1}'
        await screen.shows('not a request: use an object with a "method" string')
        area.text = '{"method":"tools/call",\n"params": {"name":"read_file","n":1E5,"n":1e400}}'
        await screen.press("ctrl+s")
        await screen.until(lambda: session.sent)
        ((_, sent),) = session.taken()
        resent = {"id": "mcpspy-test-2"}
        assert sent == area.text.encode().replace(b"\n", b" ").replace(b"{", b'{"id":"mcpspy-test-2",', 1)
        await screen.press("slash", "x")  # The user types a filter when the response arrives.
        session.say("server", result(resent["id"], "three"))
        await screen.shows("the resent request has its response; press d on it to compare")
        await screen.press("escape", "G", "d")
        await screen.until(lambda: isinstance(screen.app.screen, DiffScreen))
        await screen.shows('"one" → "three"', "id 1")


async def test_an_unreachable_session_is_reported_in_the_status_line(
    opened: Any, reached: Any, make_recording: Any, live: Any
) -> None:
    async with opened(make_recording(), size=(100, 24)) as screen:
        await screen.shows("ended: exit 0")
        for key in ("i", "r", "R"):
            await screen.press(key)
            await screen.shows(
                "the session has ended: cannot intercept or send"
                if key == "i"
                else "cannot resend: the session has ended; use mcpspy replay"
            )
    live.say("client", call(1))
    async with opened(
        live.path, size=(100, 24)
    ) as screen:  # Recorded, but no process serves its control socket.
        await screen.shows("● LIVE", "1/1")
        await screen.press("r")
        await screen.shows("cannot reach the session:", "not a live session")
    async with reached() as session, opened(session.path, size=(100, 24)) as screen:
        await screen.shows("● LIVE")
        screen.session.filter.put("is:finding")
        await screen.press("i")
        await screen.shows("hold: ")
        assert "intercepting" not in screen.text
        screen.session.filter.put("")
        await screen.press("g", "r")
        await screen.shows("resent to")
        session.end()
        await screen.until(lambda: screen.session.loader.state is RecordingState.ENDED)
        await screen.shows("no response: the session has ended")


async def test_the_footer_shows_the_keys_only_where_they_work(
    opened: Any, reached: Any, make_recording: Any, live: Any
) -> None:
    live.say("client", call(1))
    live.note("stderr", text="a line")
    for path in (make_recording(), live.path):
        async with opened(path, size=SIZE) as screen:
            await screen.shows("1.000" if path != live.path else "a line")
            await screen.press("g")
            await screen.shows("e error")
            assert "r R resend" not in screen.lines[-1]
    async with reached() as session, opened(session.path, size=SIZE) as screen:
        session.say("client", call(1))
        session.say("server", b"a line")
        await screen.shows("a line", "4/4")
        assert "r R resend" not in screen.lines[-1]
        await screen.press("r")
        await screen.shows("nothing to resend: this row belongs to no request")
        await screen.press("k")
        await screen.shows("r R resend")
    async with opened([live.path, session.path], size=SIZE) as screen:
        await screen.shows("a line")
        await screen.press("g", "r")
        await screen.shows("several sessions are open: open one alone (O) to resend")
        assert "r R resend" not in screen.lines[-1]


async def test_the_editor_opens_at_the_arguments_with_schema_checks_and_completion(
    opened: Any, reached: Any
) -> None:
    schema = {
        "required": ["path"],
        "properties": {"path": {"type": "string", "description": "where"}, "mode": {"enum": ["new", "add"]}},
    }
    tools = {"tools": [{"name": "write_file", "inputSchema": schema}, {"name": "read_file"}]}
    async with reached() as session, opened(session.path, size=SIZE) as screen:
        session.say("client", b'{"jsonrpc":"2.0","id":7,"method":"tools/list"}')
        session.say("server", json.dumps({"jsonrpc": "2.0", "id": 7, "result": tools}).encode())
        session.say("client", call(1, path="a.txt"))
        session.say("server", result(1, "one"))
        await screen.shows("4/4")
        session.taken()
        await screen.press("G", "R")
        await screen.shows("arguments of write_file", "required", "where", '"new" | "add"', 'tab: "mode"')
        area = screen.app.screen.query_one("TextArea")
        await screen.press("tab", "tab")
        assert area.text.endswith('"arguments": {\n      "mode": "new","path": "a.txt"\n    }\n  }\n}')
        await screen.press("tab")
        assert '"mode": "add","path"' in area.text
        area.text = area.text.replace('"a.txt"', "5").replace('"add"', '"old"')
        await screen.shows(
            'arguments/mode: "old" is not one of "new" or "add"', 'arguments/path: 5 is not of type "string"'
        )
        area.text = area.text.replace("write_file", "delete_file")
        await screen.shows("params/name: the server has not listed 'delete_file'")
        assert "arguments of" not in screen.text
        area.text = '{"method": NaN}'
        await screen.press("ctrl+s", "ctrl+s")
        await screen.shows("invalid JSON: NaN is not allowed")
        assert session.taken() == []


async def test_a_request_that_is_not_edited_is_resent_byte_for_byte(opened: Any, reached: Any) -> None:
    async with reached() as session, opened(session.path, size=SIZE) as screen:
        raw = b'{"params" : {"n":1E5,"n":1e400,  "a":1.0},"method":"x", "jsonrpc":"2.0", "id":%b}'
        session.say("client", raw % b"5")
        session.say("server", b'{"jsonrpc":"2.0","id":5,"result":{}}')
        await screen.shows("3/3")
        session.taken()
        await screen.press("G", "R")
        await screen.shows("unchanged; ctrl-s sends")
        await screen.press("ctrl+s")
        await screen.until(lambda: session.sent)
        assert session.taken() == [("client", raw % b'"mcpspy-test-1"')]


async def test_a_call_is_sent_again_with_another_argument_by_keys_that_the_screen_shows(
    opened: Any, reached: Any
) -> None:
    async with reached() as session, opened(size=(80, 24)) as screen:
        session.say("client", b'{"jsonrpc":"2.0","id":7,"method":"tools/list"}')
        session.say("server", json.dumps({"jsonrpc": "2.0", "id": 7, "result": TOOLS}).encode())
        session.say("client", call(1, "forecast", city="Oslo"))
        session.say("server", result(1, "rain"))
        await open_session(screen)
        await screen.until(lambda: "forecast" in screen.selected)
        session.taken()
        await press(screen, "R")
        await screen.shows("arguments of forecast", 'tab: "days"')
        await press(screen, "tab")
        await screen.until(lambda: '"days"' in screen.app.screen.query_one(TextArea).text)
        await press(screen, "tab")
        assert json.loads(screen.app.screen.query_one(TextArea).text)["params"]["arguments"]["days"]
        await press(screen, "ctrl+s")
        await screen.until(lambda: session.sent)
        ((side, sent),) = session.taken()
        assert side == "client"
        message = json.loads(sent)
        assert message["params"] == {"name": "forecast", "arguments": {"days": 1, "city": "Oslo"}}
        session.say("server", result(message["id"], "sun"))
        await screen.shows('"rain" → "sun"')


async def test_the_keys_to_resend_appear_as_soon_as_the_session_is_reached(
    opened: Any, reached: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    is_ready, connect = asyncio.Event(), InterceptConnection._connect

    async def connect_later(connection: InterceptConnection) -> None:
        await is_ready.wait()
        await connect(connection)

    monkeypatch.setattr(InterceptConnection, "_connect", connect_later)
    async with reached() as session, opened(session.path, size=SIZE) as screen:
        session.say("client", call(1, "forecast", city="Oslo"))
        session.say("server", result(1, "rain"))
        await screen.shows("3/3")
        await screen.until(lambda: " ok" in screen.selected and "i intercept" in screen.lines[-1])
        assert "resend" not in screen.lines[-1]
        is_ready.set()
        await screen.until(lambda: "r R resend" in screen.lines[-1])


async def test_a_notification_is_resent_without_waiting(opened: Any, reached: Any) -> None:
    changed = b'{"jsonrpc":"2.0","method":"notifications/roots/list_changed"}'
    async with reached() as session, opened(session.path, size=(100, 24)) as screen:
        session.say("client", changed)
        await screen.shows("● LIVE", "roots/list_changed")
        session.taken()
        await screen.press("G", "r")
        await screen.shows("resent to the server: notifications/roots/list_changed")
        ((side, sent),) = session.taken()
        assert (side, json.loads(sent)) == ("client", json.loads(changed))
