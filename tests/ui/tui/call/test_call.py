"""Calls from a form: into a live session, and in a new session of a server that the user has."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from textual.widgets import Input, OptionList, TextArea

from mcpspy.io.recording.catalog import sessions
from mcpspy.ui.tui.call.form import CallFormScreen
from mcpspy.ui.tui.call.servers import CallServerDialog
from mcpspy.ui.tui.call.targets import CallTargetsScreen
from mcpspy.ui.tui.sessions.screen import SessionsScreen
from tests.servers.forms import TOOLS
from tests.ui.model.replaying import echoes, record
from tests.ui.tui.conftest import Opened, Screen
from tests.ui.tui.intercept.conftest import Reached, result

pytestmark = pytest.mark.timeout(120)

SIZE = (130, 34)
SERVER = Path(__file__).parents[3] / "servers" / "forms.py"
LIST = b'{"jsonrpc":"2.0","id":%d,"method":"tools/list"}'


def lists(session: Reached, number: int, *tools: dict[str, Any]) -> None:
    """Let the client of a live session list tools."""
    session.say("client", LIST % number)
    answer = {"jsonrpc": "2.0", "id": number, "result": {"tools": tools}}
    session.say("server", json.dumps(answer).encode())
    session.taken()


async def form_of(screen: Screen, name: str) -> CallFormScreen:
    """Choose a tool in the list."""
    await screen.until(lambda: isinstance(screen.app.screen, CallTargetsScreen) and screen.app.screen.focused)
    screen.app.screen.query_one(Input).value = name
    await screen.pilot.pause()
    await screen.press("enter")
    await screen.until(lambda: isinstance(screen.app.screen, CallFormScreen))
    assert isinstance(screen.app.screen, CallFormScreen)
    return screen.app.screen


def put(form: CallFormScreen, number: int, text: str) -> None:
    form.query_one(f"#field-{number}", Input).value = text


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    """Save a call of the server with all kinds of fields."""
    path = tmp_path / "tests" / "calls" / "oslo.yaml"
    path.parent.mkdir(parents=True)
    call = {"command": [sys.executable, "-I", "-S", str(SERVER)], "tool": "book"}
    path.write_text(json.dumps({**call, "arguments": {"city": "Oslo", "room": "double"}}), encoding="utf-8")
    return path


async def test_a_call_is_injected_into_the_live_session_and_its_response_is_shown(
    opened: Opened, reached: Any
) -> None:
    async with reached() as session, opened(session.path, size=SIZE) as screen:
        lists(session, 1, {"name": "old"})
        lists(session, 2, *TOOLS[:2])
        await screen.shows("● LIVE", "4/4")
        await screen.press("(")
        await screen.shows("sent into the live session", "book", "destructive")
        assert "old" not in screen.text
        form = await form_of(screen, "boo")
        await screen.shows("Tool book", "city*", "at least 2 characters", "Where to stay.")
        put(form, 0, "Oslo")
        put(form, 1, "3")
        await screen.press("ctrl+s")
        await screen.shows("room: required; press ctrl-s again to call it anyway")
        await screen.press("right", "ctrl+s")
        await screen.until(lambda: session.sent)
        ((side, sent),) = session.taken()
        request = json.loads(sent)
        token = request["params"]["_meta"]["progressToken"]
        assert (side, request["params"]["name"], token) == ("client", "book", request["id"])
        assert request["params"]["arguments"] == {"city": "Oslo", "nights": 3, "room": "single"}
        progress = {"progressToken": token, "progress": 1, "total": 2, "message": "asking"}
        note = {"jsonrpc": "2.0", "method": "notifications/progress", "params": progress}
        session.say("server", json.dumps(note).encode())
        await screen.shows("1/2 asking (esc cancels the call)")
        session.say("server", result(request["id"], "booked it"))
        await screen.shows("ok: row", "booked it", "sent (tui)")
        assert session.taken() == [], "the host receives neither"
        await screen.press("escape", "escape")
        await screen.shows("● LIVE", "tools/call book")


async def test_a_call_is_cancelled_and_the_server_of_the_live_session_is_notified(
    opened: Opened, reached: Any
) -> None:
    async with reached() as session, opened(session.path, size=SIZE) as screen:
        lists(session, 1, {"name": "slow", "inputSchema": {"type": "object"}})
        await screen.shows("● LIVE", "3/3")
        await screen.press("(")
        await form_of(screen, "slow")
        await screen.shows("No arguments")
        await screen.press("ctrl+s")
        await screen.until(lambda: session.sent)
        ((_, sent),) = session.taken()
        await screen.press("ctrl+s")
        await screen.shows("waiting for the response, ", "(esc cancels the call)")
        assert session.taken() == [], "one call at a time"
        await screen.press("escape")
        await screen.shows("no response: the call was cancelled")
        ((_, notice),) = session.taken()
        assert json.loads(notice)["params"]["requestId"] == json.loads(sent)["id"]
        assert isinstance(screen.app.screen, CallFormScreen)


async def test_a_live_session_that_listed_nothing_is_reported(opened: Opened, reached: Any) -> None:
    async with reached() as session, opened(session.path, size=SIZE) as screen:
        await screen.shows("● LIVE")
        await screen.press("(")
        await screen.shows("has listed nothing that can be called")


async def test_the_server_of_a_recording_is_started_after_its_command_was_shown(
    opened: Opened, tmp_path: Path
) -> None:
    path = await record(tmp_path / "echo.jsonl", *echoes("one"))
    async with opened(path, size=SIZE) as screen:
        await screen.shows("ended")
        await screen.press("(")
        await screen.until(lambda: isinstance(screen.app.screen, CallServerDialog))
        await screen.shows("the recorded server", "replayed.py")
        assert len(sessions(str(tmp_path))) == 1, "nothing was started"
        await screen.press("enter")
        form = await form_of(screen, "echo")
        await screen.shows("a new session: started")
        put(form, 0, "hello")
        await screen.press("ctrl+s")
        await screen.shows("ok: row", "hello")
        await screen.press("escape", "escape")
        await screen.until(lambda: len(screen.app.screen_stack) == 2)
    new, _ = sorted(sessions(str(tmp_path)), key=lambda each: each.path == path)
    assert (new.header.origin, new.header.name) == ("call", "replayed")


async def test_a_saved_call_opens_with_its_arguments_and_the_json_is_edited(
    opened: Opened, saved: Path
) -> None:
    async with opened(size=SIZE) as screen:
        await screen.until(lambda: isinstance(screen.app.screen, SessionsScreen))
        await screen.press("(")
        await screen.shows("@oslo", "starts", "forms.py")
        await screen.press("enter")
        await screen.shows("Tool book", '< "double" >')
        form = screen.app.screen
        assert isinstance(form, CallFormScreen)
        await screen.press("ctrl+l")
        await screen.until(lambda: isinstance(screen.app.focused, TextArea))
        area = form.query_one(TextArea)
        area.text = '{"city": "O"'
        await screen.shows("not JSON: line 1, column 13")
        area.text = '{"city": "O", "room": "suite", "extra": [1], "nights": 2}'
        await screen.shows("city: ", "room: ")
        await screen.press("ctrl+l")
        await screen.shows("is shorter than 2 characters", "is not one of")
        put(form, 1, "x")
        await screen.shows('"x" is not an integer · integer · 1 to 14 · default 2')
        await screen.press("ctrl+l")
        await screen.shows("correct the marked fields first")
        await screen.press("ctrl+s", "ctrl+s")
        await screen.shows('nights: "x" is not an integer', "< as in the JSON >")
        put(form, 1, "4")
        await screen.press("ctrl+s", "ctrl+s")  # The rest is only against the schema: sent anyway.
        await screen.shows("ok: row", "extra")
        await screen.press("escape")
        await form_of(screen, "fail")
        await screen.press("ctrl+s")
        await screen.shows("tool error: row", "it fails")
        await screen.press("escape")
        await form_of(screen, "greet")
        await screen.shows("Prompt greet", "who*")
        await screen.press("A", "d", "a", "ctrl+s")
        await screen.shows("ok: row", "Ada")
        await screen.press("escape")
        await form_of(screen, "note://{")
        await screen.press("x", "ctrl+s")
        await screen.shows("ok: row", "the note note://x")


async def test_names_are_found_and_completed_and_hostile_ones_are_only_text(
    opened: Opened, saved: Path
) -> None:
    async with opened(size=(80, 24)) as screen:
        await screen.until(lambda: isinstance(screen.app.screen, SessionsScreen))
        await screen.press("(")
        await screen.shows("@oslo")
        await screen.press("enter")
        await screen.shows("Tool book")
        await screen.press("escape")
        await screen.until(lambda: isinstance(screen.app.screen, CallTargetsScreen))
        await screen.press("n", "o", "t", "e")
        await screen.shows("note://first")
        await screen.until(lambda: "slow" not in screen.text)
        await screen.press("tab")
        assert screen.app.screen.query_one(Input).value == "note://first"
        await screen.press("ctrl+u", "z", "z")
        await screen.shows("No name matches")
        form = await form_of_hostile(screen)
        assert "The response appears here." not in screen.text, "the fields have the whole screen"
        assert "<b>\\x1b[2J" in screen.text
        assert not any("\x1b" in line or "\x07" in line for line in screen.lines)
        await screen.press("h", "i", "ctrl+s")
        await screen.shows("ok: row")
        await screen.press("escape")
        form = await form_of(screen, "many")
        await screen.press("ctrl+s")
        await screen.shows("p999: required", "required · string", "p999*")
        await screen.until(lambda: screen.app.focused is form.query_one("#field-99"))
        await screen.press("v", "ctrl+s")
        await screen.shows("ok: row")


async def form_of_hostile(screen: Screen) -> CallFormScreen:
    form = await form_of(screen, "onerror")
    await screen.shows("<script>alert(1)</script>")
    return form


async def test_a_server_that_does_not_start_is_reported_in_the_dialog(opened: Opened, tmp_path: Path) -> None:
    folder = tmp_path / "tests" / "calls"
    folder.mkdir(parents=True)
    (folder / "gone.yaml").write_text("command: [no-such-program-here]\ntool: t\n", encoding="utf-8")
    async with opened(size=SIZE) as screen:
        await screen.until(lambda: isinstance(screen.app.screen, SessionsScreen))
        await screen.press("(")
        await screen.shows("@gone")
        await screen.press("enter")
        await screen.shows("no-such-program-here: ")
        assert isinstance(screen.app.screen, CallServerDialog)
        assert screen.app.screen.query_one(OptionList).has_focus
        await screen.press("escape")
        await screen.until(lambda: isinstance(screen.app.screen, SessionsScreen))


async def test_without_any_server_the_dialog_states_that(opened: Opened) -> None:
    async with opened(size=SIZE) as screen:
        await screen.until(lambda: isinstance(screen.app.screen, SessionsScreen))
        await screen.press("(")
        await screen.shows("No server: no host on this machine has one")
        await screen.press("escape")
