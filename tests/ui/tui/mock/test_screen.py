"""The keys of the mock screen, with the real engine and a client."""

from __future__ import annotations

import asyncio
import json
import os
from pathlib import Path

import pytest
from textual.widgets import TextArea

from mcpspy.core.recording.decode import Frame
from mcpspy.io.recording.reader import Recording
from mcpspy.ui.tui.session.screen import SessionScreen
from tests.ui.tui.mock.conftest import Mocking

pytestmark = pytest.mark.timeout(120)


def said(name: str) -> int:
    """Return the number in the last response of a recording."""
    *_, last = (entry for entry in Recording(Path(name)) if isinstance(entry, Frame))
    return int(json.loads(last.data)["result"]["said"])


def edited(text: str) -> str:
    """Return the text of a response in the editor."""
    return json.dumps({"result": {"said": text}})


async def test_requests_show_the_recorded_one_that_they_got(mocking: Mocking) -> None:
    async with mocking() as screen:
        await screen.client.begin()
        assert [await screen.call(5), await screen.call(6), await screen.call(7, "add", a=2)] == [
            "first",
            "second",
            -32603,
        ]
        await screen.gets(
            "request 0",
            "request 1 (1 of 2)",
            "request 2 (2 of 2)",
            "not recorded; nearest: request 3, tools/call add, differs at /params/arguments/a: recorded 1, sent 2",
        )
        await screen.shows("4 requests · 1 not recorded · 1 client", "recorded 1", "sent 2")
        await screen.press("p")
        assert screen.mock.interactions.number == 3
        await screen.shows("recorded request 3")


async def test_paused_requests_wait_until_they_are_answered(mocking: Mocking) -> None:
    async with mocking() as screen:
        await screen.client.begin()
        await screen.press("i")
        await screen.shows("PAUSED, 0 waiting")
        calls = [asyncio.ensure_future(screen.call(number)) for number in (5, 6, 7)]
        await screen.shows("PAUSED, 3 waiting", "WAITS")
        await screen.press("a")
        await screen.shows("PAUSED, 2 waiting")
        await screen.press("A")
        await screen.shows("PAUSED, 0 waiting")
        assert sorted(await asyncio.gather(*calls)) == ["first", "second", "second"]
        await screen.press("i")
        await screen.until(lambda: "PAUSED" not in screen.text)
        assert await screen.call(8) == "second"


async def test_a_waiting_request_is_answered_with_an_error(mocking: Mocking) -> None:
    async with mocking() as screen:
        await screen.client.begin()
        await screen.press("i")
        await screen.shows("PAUSED, 0 waiting")
        waiting = asyncio.ensure_future(screen.call(5))
        await screen.shows("WAITS")
        await screen.press("!")
        await screen.shows("Answer tools/call echo with an error in place of the recording")
        await screen.press("enter")
        await screen.press("enter")
        assert await waiting == -32603
        await screen.shows("answered")


async def test_a_waiting_request_is_answered_later(mocking: Mocking) -> None:
    async with mocking() as screen:
        await screen.client.begin()
        await screen.press("i")
        await screen.shows("PAUSED, 0 waiting")
        waiting = asyncio.ensure_future(screen.call(5))
        await screen.shows("WAITS")
        await screen.press("t", "backspace", *"0.01", "enter")
        assert await waiting == "first"


async def test_the_next_request_gets_an_edited_response(mocking: Mocking) -> None:
    async with mocking() as screen:
        await screen.client.begin()
        await screen.press("R")
        await screen.shows("response to the next request")
        area = screen.app.screen.query_one(TextArea)
        area.text = edited("edited")[:-1]
        await screen.press("ctrl+s")
        await screen.shows("invalid JSON")
        area.text = edited("edited")
        await screen.press("ctrl+s")
        await screen.shows("next request: edited result")
        assert [await screen.call(5), await screen.call(6)] == ["edited", "second"]
        await screen.gets("edited result in place of request 1 (1 of 2)", "request 2 (2 of 2)")


async def test_a_recorded_interaction_gets_an_edited_response_which_is_saved(
    mocking: Mocking, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    async with mocking() as screen:
        await screen.client.begin()
        await screen.press("w")
        await screen.shows("nothing to save")
        await screen.press("v", "end", "R")
        await screen.shows("response to request 3 (tools/call add)", '": "3"')
        screen.app.screen.query_one(TextArea).text = edited("4")
        await screen.press("ctrl+s")
        await screen.shows("request 3: edited result")
        assert [await screen.call(each, "add", a=1) for each in (5, 6)] == ["4", "4"]
        await screen.press("w")
        await screen.shows("r-edited.jsonl")
        await screen.press("enter")
        await screen.shows("saved")
        assert [said(name) for name in ("r.jsonl", "r-edited.jsonl")] == [3, 4]
        await screen.press("delete")
        await screen.shows("1 taken back")
        assert await screen.call(7, "add", a=1) == "3"


async def test_options_change_by_keys(mocking: Mocking) -> None:
    async with mocking() as screen:
        await screen.press("m")
        await screen.shows("match lenient")
        await screen.press("n")
        await screen.shows("misses: error -32601")
        await screen.press("n")
        await screen.shows("misses: the nearest")
        await screen.press("n")
        await screen.shows("misses: error")
        await screen.press("-")
        await screen.shows("speed 10")
        await screen.press("+")
        await screen.shows("at once")


async def test_a_miss_is_passed_on_to_the_real_server_and_recorded(mocking: Mocking, tmp_path: Path) -> None:
    async with mocking(server="python -m mcpspy.ui.demo.weather") as screen:
        await screen.client.begin()
        await screen.press("n", "n", "n")
        await screen.shows("misses: the real server")
        _, said = await screen.client.say(
            id=5, method="tools/call", params={"name": "forecast", "arguments": {"city": "Oslo"}}
        )
        assert "Oslo" in str(said)
        await screen.until(lambda: screen.got[-1].startswith("not recorded, passed on to the real server"))
        assert len([name for name in os.listdir(tmp_path) if name.endswith(".jsonl")]) == 3


async def test_the_session_that_the_mock_records_opens_at_the_request(mocking: Mocking) -> None:
    async with mocking() as screen:
        await screen.client.begin()
        await screen.call(5)
        await screen.gets("request 1 (1 of 2)")
        await screen.press("O")
        await screen.until(lambda: isinstance(screen.app.screen, SessionScreen))
        await screen.shows("tools/call", "first")
        await screen.press("q")
        await screen.until(lambda: screen.app.screen is screen.mock)


async def test_a_client_that_leaves_is_shown(mocking: Mocking) -> None:
    async with mocking() as screen:
        await screen.client.begin()
        await screen.shows("1 client", "connected")
        url, session = screen.mock.mock.url, screen.client.session
        async with await screen.client.client.delete(url, headers=session) as response:
            assert response.status == 200
        await screen.shows("0 clients", "left")


async def test_a_narrow_screen_shows_one_list_at_a_time(mocking: Mocking) -> None:
    async with mocking((80, 24)) as screen:
        await screen.shows(screen.mock.mock.url, "no requests yet")
        await screen.press("v")
        await screen.shows("recorded request 1")
        assert "no requests yet" not in screen.text
        await screen.press("v")
        await screen.shows("no client is connected")
        await screen.press("v", "tab")
        assert screen.mock.detail.has_focus_within
        await screen.press("escape")
        assert screen.mock.requests.has_focus


async def test_stopping_asks_if_clients_are_connected_and_ends_the_process(mocking: Mocking) -> None:
    async with mocking() as screen:
        await screen.client.begin()
        await screen.shows("1 client")
        pid, path = screen.mock.mock._engine.pid, screen.mock.session_path
        assert pid is not None
        await screen.press("q")
        await screen.shows("Stop the mock? 1 client may still use it.")
        await screen.press("n", "q", "y")
        await screen.until(lambda: "sessions" in screen.lines[0])
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)
        assert b'"note":"exit"' in path.read_bytes()


async def test_the_end_of_the_process_is_reported(mocking: Mocking) -> None:
    async with mocking() as screen:
        pid = screen.mock.mock._engine.pid
        assert pid is not None
        os.kill(pid, 9)
        await screen.shows("stopped")
        await screen.press("i")
        await screen.until(lambda: "cannot reach the session" in screen.text or "has ended" in screen.text)
        assert screen.mock.leave_question == ""
