"""Calls from a form of the page: what may be called, the form, the call and its end, and who may start servers."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from mcpspy.ui.web import server as web_server
from tests.analysis.export.html.axe import violations
from tests.analysis.export.html.chromium import chromium
from tests.io.files import BOUND
from tests.ui.model.replaying import echoes, record
from tests.ui.tui.intercept import conftest
from tests.ui.tui.intercept.conftest import result
from tests.ui.web.serving import Served, served, wrong

pytestmark = pytest.mark.timeout(120)

reached = conftest.reached

SERVER = Path(__file__).parents[2] / "servers" / "forms.py"


@pytest.fixture(autouse=True)
def _folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HOME", "XDG_CONFIG_HOME", "XDG_STATE_HOME"):
        monkeypatch.setenv(name, str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[Served]:
    """Serve a folder with one session, beside one saved call."""
    folder, calls = tmp_path / "sessions", tmp_path / "tests" / "calls"
    folder.mkdir()
    calls.mkdir(parents=True)
    call = {
        "command": [sys.executable, "-I", "-S", str(SERVER)],
        "tool": "book",
        "arguments": {"city": "Oslo"},
    }
    (calls / "oslo.yaml").write_text(json.dumps(call), encoding="utf-8")
    await record(folder / "echo.jsonl", *echoes("one"))
    async with served(folder, allows_control=True) as running:
        yield running


async def started(server: Served) -> dict[str, Any]:
    """Start the server of the saved call, from the list of sessions."""
    await server.get("sessions")
    found = await server.get("call")
    assert [(each["title"], each["starts"]) for each in found["servers"]] == [("@oslo", True)]
    status, answer = await server.post("call", {"order": "open", "server": 0})
    assert status == 200, answer
    return dict(answer)


async def ended(server: Served, call: str) -> dict[str, Any]:
    """Return the state of a call once it is over."""
    async with asyncio.timeout(BOUND):
        while (state := await server.get(f"call/{call}"))["busy"]:
            pass
    return dict(state)


async def test_a_form_is_edited_checked_and_sent_and_its_row_is_in_a_new_session(server: Served) -> None:
    opened = await started(server)
    names = [each["name"] for each in opened["targets"]]
    assert opened["chosen"] == names.index("book")
    base = {"call": opened["call"], "target": opened["chosen"]}
    _, form = await server.post("call", {**base, "order": "form", "texts": {"1": "x", "3": "1"}})
    assert [each["text"] for each in form["fields"]][:4] == ["Oslo", "x", "", "1"]
    assert (form["fields"][1]["error"], form["fatal"], form["hints"]) == (
        '"x" is not an integer',
        True,
        ["changes its environment", "destructive"],
    )
    status, refused = await server.post("call", {**base, "order": "send", "anyway": True})
    assert (status, refused["error"]) == (409, "correct the marked fields")
    _, form = await server.post("call", {**base, "order": "form", "json": '{"city": "O", "room": "double"}'})
    assert [each["error"] for each in form["fields"]][:2] == ['"O" is shorter than 2 characters', ""]
    assert (await server.post("call", {**base, "order": "form", "json": "{"}))[0] == 409
    assert (await server.post("call", {**base, "order": "send"}))[0] == 409
    assert (await server.post("call", {**base, "order": "send", "anyway": True}))[0] == 200
    state = await ended(server, opened["call"])
    row = await server.get(f"s/{state['session']}/rows/{state['number']}")
    assert (row["row"]["subject"], state["words"]) == ("book", "ok")
    again = await server.get("call", session=state["session"])
    assert again["call"] == opened["call"], "its session offers the server that runs"
    assert await server.post("call", {"order": "close", "call": opened["call"]}) == (200, {})
    assert (await server.post("call", {**base, "order": "send"}))[0] == 409


async def test_a_call_shows_progress_and_is_cancelled(server: Served) -> None:
    opened = await started(server)
    place = [each["name"] for each in opened["targets"]].index("slow")
    base = {"call": opened["call"], "target": place}
    await server.post("call", {**base, "order": "send"})
    async with asyncio.timeout(BOUND):
        while (await server.get(f"call/{opened['call']}"))["progress"] != "1/3 waiting":
            pass
    assert (await server.post("call", {**base, "order": "send"}))[0] == 409
    await server.post("call", {**base, "order": "cancel"})
    assert (await ended(server, opened["call"]))["error"] == "the call was cancelled"


@pytest.mark.parametrize(
    ("order", "error"),
    [
        ({"order": "open"}, "server: missing"),
        ({"order": "open", "server": 99}, "server: missing"),
        ({"order": "open", "live": True, "session": "echo"}, "the session is not live"),
        ({"order": "send", "call": "77"}, "the server was ended"),
    ],
)
async def test_wrong_orders_are_refused(order: dict[str, Any], error: str, server: Served) -> None:
    await server.get("call")
    status, answer = await server.post("call", order)
    assert (status, error in answer["error"]) == (409, True)


async def test_only_a_page_with_control_on_this_machine_may_start_a_server(
    server: Served, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    order = '{"order":"open","server":0}'
    await server.get("call")
    assert await server.status("/api/call", "POST", {"Origin": "http://evil.example"}, order) == 403
    monkeypatch.setattr(web_server, "_is_local", lambda _: False)
    assert await server.status("/api/call", "POST", data=order) == 403
    async with served(tmp_path / "sessions") as reading:
        assert await reading.status("/api/call", "POST", data=order) == 403
        assert await reading.status("/api/call") == 403


async def test_the_page_starts_a_server_fills_a_form_and_shows_the_row(
    server: Served, tmp_path: Path
) -> None:
    async with chromium(tmp_path / "profile") as browser:
        await browser.open(f"{server.origin}/#{server.token}")
        await browser.until("!document.getElementById('calls').hidden")
        await browser.press("(")
        await browser.until(
            "/This starts: .*forms.py/.test(document.querySelector('#call[open]')?.innerText)"
        )
        assert await violations(browser) == []
        await browser.evaluate(press("Start"))
        await browser.until("document.querySelector('#call h2').textContent === 'tool book'")
        await browser.until("document.querySelector('#call input').value === 'Oslo'")
        assert await violations(browser) == []
        await browser.evaluate(press("Call"))
        await browser.until("/required/.test(document.querySelector('#call .bad:is(span)')?.textContent)")
        await browser.evaluate(choose("double"))
        await browser.until("document.querySelector('#call textarea[aria-label]').value.includes('double')")
        await browser.evaluate(press("Call"))
        await browser.until("document.querySelector('#detail h2')?.textContent.includes('book')")
        await browser.until("document.getElementById('detail').textContent.includes('double')")
        await browser.press("(")
        await browser.until("document.querySelector('#call[open] select[size]')")
        hostile = "[...document.querySelectorAll('#call option')].findIndex((each) => /onerror/.test(each.textContent))"
        await browser.evaluate(f"document.querySelector('#call select').selectedIndex = {hostile}")
        await browser.evaluate(press("Open the form"))
        await browser.until("/<script>/.test(document.querySelector('#call .text')?.textContent)")
        assert await browser.evaluate("document.querySelectorAll('#call :is(img, script)').length") == 0
        assert wrong(browser) == []


def press(words: str) -> str:
    buttons = "[...document.querySelectorAll('#call button')]"
    return f"{buttons}.find((each) => each.textContent === '{words}').click()"


def choose(words: str) -> str:
    """Return the script that chooses an option of a field."""
    return (
        f"for (const each of document.querySelectorAll('#call option')) if (each.textContent === '\"{words}\"')"
        " { each.parentElement.value = each.value; each.parentElement.dispatchEvent(new Event('change')); }"
    )


async def test_the_page_calls_into_a_live_session(reached: Any, tmp_path: Path) -> None:
    async with reached() as session, served(tmp_path, allows_control=True) as server:
        session.say("client", b'{"jsonrpc":"2.0","id":1,"method":"tools/list"}')
        listed = {"tools": [{"name": "say", "inputSchema": {"properties": {"text": {"type": "string"}}}}]}
        session.say("server", json.dumps({"jsonrpc": "2.0", "id": 1, "result": listed}).encode())
        session.taken()
        # Each wait has its own limit: on a busy machine all of them together took longer than one.
        async with asyncio.timeout(BOUND):
            events = server.events(session.session)
            async for facts in events:
                if facts["control"]["open"]:
                    break
        found = await server.get("call", session=session.session)
        assert found["live"]
        order = {"order": "open", "live": True, "session": session.session}
        status, opened = await server.post("call", order)
        assert (status, opened["server"], len(opened["targets"])) == (200, None, 1)
        order = {"order": "send", "call": opened["call"], "target": 0, "texts": {"0": "hi"}}
        assert (await server.post("call", order))[0] == 200
        async with asyncio.timeout(BOUND):
            while not session.sent:
                assert "error" not in await server.get(f"call/{opened['call']}")
        ((_, sent),) = session.taken()
        assert json.loads(sent)["params"]["arguments"] == {"text": "hi"}
        session.say("server", result(json.loads(sent)["id"], "done"))
        state = await ended(server, opened["call"])
        assert (state["words"], state["session"]) == ("ok", session.session)
