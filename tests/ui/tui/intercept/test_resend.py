"""Requests of a live session sent again from its screen, through a real socket."""

from __future__ import annotations

import json
from typing import Any

from mcpspy.io.recording.reader import RecordingState
from mcpspy.ui.tui.diff.screen import DiffScreen
from tests.ui.tui.intercept.conftest import call, result

SIZE = (130, 18)


async def test_a_request_is_sent_again_and_its_answer_lands_beside_the_first(
    opened: Any, reached: Any
) -> None:
    async with reached() as session, opened(session.path, size=SIZE) as screen:
        await screen.shows("● LIVE")
        session.say("client", call(1, path="a.txt"))
        session.say("server", result(1, "one"))
        await screen.shows("3/3")
        session.taken()
        await screen.press("r")
        await screen.shows("sent again, to the server; its answer is waited for")
        ((side, sent),) = session.taken()
        ours = json.loads(sent)
        assert side == "client"
        assert ours.pop("id").startswith("mcpspy-test-")
        assert ours == {key: value for key, value in json.loads(call(1, path="a.txt")).items() if key != "id"}
        session.say("server", result(json.loads(sent)["id"], "two"))
        await screen.until(lambda: isinstance(screen.app.screen, DiffScreen))
        await screen.shows('"one" → "two"', "id 1", 'id "mcpspy-test-1"')
        assert session.taken() == [], "the host never hears of it"
        await screen.press("q")
        await screen.shows("4/4", "sent (tui)")
        await screen.press("g", "j", "j", "R")
        await screen.shows("send again, to the server: tools/call", "a new request, under an id of its own")
        area = screen.app.screen.query_one("TextArea")
        area.text = '{"method": 1}'
        await screen.shows('an object with "method", a text')
        area.text = '{"method": "tools/call", "params": {"name": "read_file"}}'
        await screen.press("ctrl+s")
        await screen.until(lambda: session.sent)
        ((_, sent),) = session.taken()
        ours = json.loads(sent)
        assert (ours["method"], ours["params"]) == ("tools/call", {"name": "read_file"})
        await screen.press("slash", "x")  # Busy with something else when the answer comes.
        session.say("server", result(ours["id"], "three"))
        await screen.shows("what was sent again is answered; d on it says what differs")
        await screen.press("escape", "G", "d")
        await screen.until(lambda: isinstance(screen.app.screen, DiffScreen))
        await screen.shows('"one" → "three"', "id 1")


async def test_what_cannot_be_reached_shows_so_in_a_line(
    opened: Any, reached: Any, make_recording: Any, live: Any
) -> None:
    async with opened(make_recording(), size=(100, 24)) as screen:
        await screen.shows("ended: exit 0")
        for key in ("i", "r", "R"):
            await screen.press(key)
            await screen.shows("the session is over: nothing can be held")
    live.say("client", call(1))
    async with opened(live.path, size=(100, 24)) as screen:  # Recorded, with nobody to answer for it.
        await screen.shows("● LIVE", "1/1")
        await screen.press("r")
        await screen.shows("the session cannot be reached:", "not a live session")
    async with reached() as session, opened(session.path, size=(100, 24)) as screen:
        await screen.shows("● LIVE")
        screen.session.filter.put("is:finding")
        await screen.press("i")
        await screen.shows("hold: ")
        assert "holding" not in screen.text
        screen.session.filter.put("")
        await screen.press("g", "r")
        await screen.shows("sent again")
        session.end()
        await screen.until(lambda: screen.session.loader.state is RecordingState.ENDED)
        await screen.shows("no answer: the session has ended")
