"""Replays and mocks that the page starts: their states and lists, their end, and who may start them."""

from __future__ import annotations

import asyncio
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from mcpspy.io.recording.reader import read_header_of
from mcpspy.ui.model.replay_options import ReplayForm, remember
from mcpspy.ui.web import server as web_server
from tests.analysis.export.html.chromium import chromium
from tests.io.files import BOUND
from tests.io.mock.speaking import Spoken
from tests.ui.model.replaying import command, echoes, record
from tests.ui.web.serving import Served, served, wrong

pytestmark = pytest.mark.timeout(120)


@pytest.fixture(autouse=True)
def _folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HOME", "XDG_CONFIG_HOME", "XDG_STATE_HOME"):
        monkeypatch.setenv(name, str(tmp_path / "home"))


@pytest.fixture
async def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "sessions"
    folder.mkdir()
    await record(folder / "echo.jsonl", *echoes("one", "two", "three"))
    return folder


async def until(server: Served, is_so: Callable[[dict[str, Any]], object]) -> dict[str, Any]:
    """Return the first state of the session's event stream that is so."""
    async with asyncio.timeout(BOUND):
        async for facts in server.events("echo"):
            if is_so(facts["play"]):
                return dict(facts["play"])
    raise AssertionError("the stream ended")


async def test_a_session_is_replayed_and_each_step_is_shown(folder: Path) -> None:
    async with served(folder, allows_control=True) as server:
        proposed = await server.get("s/echo/play")
        assert proposed["servers"][0]["title"] == "the recorded server"
        assert proposed["servers"][0]["shown"] == shlex.join(command())
        assert await server.post("s/echo/play", {"order": "replay", "against": 0}) == (200, {})
        state = await until(server, lambda play: play.get("over"))
        assert (state["done"], state["total"], state["counts"]) == (5, 5, {"same": 5})
        steps = await server.get("s/echo/play/steps", first=2, count=2)
        assert steps["total"] == 5
        assert [(each["about"], each["state"]) for each in steps["rows"]] == [("tools/call echo", "same")] * 2
        await server.post("s/echo/play", {"order": "save"})
        saved = await until(server, lambda play: "saved to" in play.get("message", ""))
        assert Path(saved["message"].removeprefix("saved to ")).parent == folder
        assert await server.post("s/echo/play", {"order": "close"}) == (200, {})
        assert await until(server, lambda play: not play["kind"]) == {"kind": ""}


async def test_one_step_at_a_time_a_breaking_change_and_an_ignored_one(folder: Path) -> None:
    async with served(folder, allows_control=True) as server:
        target = {"server": shlex.join(command("different")), "pause": True}
        await server.post("s/echo/play", {"order": "replay", **target})
        assert (await until(server, lambda play: play.get("paused")))["done"] == 0
        await server.post("s/echo/play", {"order": "step"})
        await until(server, lambda play: play.get("paused") and play["done"] == 1)
        await server.post("s/echo/play", {"order": "resume"})
        ended = await until(server, lambda play: play.get("over"))
        assert ended["counts"] == {"same": 2, "different": 3}
        (step,) = (await server.get("s/echo/play/steps", first=2, count=1))["rows"]
        assert "one" in step["reason"]
        assert "ONE" in step["reason"]
        await server.post("s/echo/play", {"order": "ignore", "number": step["number"]})
        await until(server, lambda play: play["counts"] == {"same": 5})


async def test_a_session_is_served_and_its_requests_are_counted(folder: Path) -> None:
    async with served(folder, allows_control=True) as server:
        assert (await server.post("s/echo/play", {"order": "serve", "port": "x"}))[0] == 409
        assert await server.post("s/echo/play", {"order": "serve", "port": "0"}) == (200, {})
        refused = await server.post("s/echo/play", {"order": "replay", "against": 0})
        assert refused[1]["error"] == "this session is replayed or served already (stop it first)"
        state = await until(server, lambda play: play.get("url"))
        async with aiohttp.ClientSession() as http:
            client = Spoken(None, http, state["url"].removesuffix("/mcp"))  # type: ignore[arg-type]
            await client.begin("2025-11-25")
            for number, text in enumerate(("one", "none")):
                params = {"name": "echo", "arguments": {"text": text}}
                await client.say(id=number, method="tools/call", params=params)
            state = await until(server, lambda play: play["misses"])
        assert (state["phase"], state["clients"], state["interactions"]) == ("serving", 1, 4)
        got = (await server.get("s/echo/play/requests"))["rows"]
        assert [each["state"] for each in got][-2:] == ["played", "missed"]
        assert "nearest: request" in got[-1]["got"]
        asked = (await server.get("s/echo/play/interactions"))["rows"]
        assert sum(each["asked"] for each in asked if each["about"] == "tools/call echo") == 1
        assert await server.post("s/echo/play", {"order": "close"}) == (200, {})
        async with aiohttp.ClientSession() as http:
            with pytest.raises(aiohttp.ClientError):
                await http.get(state["url"])


async def test_a_server_that_cannot_start_is_reported(folder: Path) -> None:
    async with served(folder, allows_control=True) as server:
        await server.post("s/echo/play", {"order": "replay", "server": "no-such-server-here"})
        state = await until(server, lambda play: play.get("over"))
        assert state["phase"] == "failed"
        assert any("no-such-server-here" in line for line in state["ending"])


@pytest.mark.parametrize(
    ("order", "error"),
    [
        ({"order": "replay"}, "server: missing"),
        ({"order": "replay", "against": 99}, "server: missing"),
        ({"order": "replay", "server": "a 'b"}, "no closing quotation"),
        ({"order": "stop"}, "neither replayed nor served"),
        ({"order": "fly"}, "neither replayed nor served"),
    ],
)
async def test_wrong_orders_are_refused(order: dict[str, Any], error: str, folder: Path) -> None:
    async with served(folder, allows_control=True) as server:
        status, answer = await server.post("s/echo/play", order)
        assert status == 409
        assert error in answer["error"]


async def test_only_a_page_with_control_on_this_machine_may_start_programs(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    order = '{"order":"replay","against":0}'
    async with served(folder) as server:
        assert await server.status("/api/s/echo/play", "POST", data=order) == 403
        assert await server.status("/api/s/echo/play") == 403
        assert await server.status("/api/s/echo/play/steps") == 403
        async for facts in server.events("echo"):
            assert "play" not in facts
            break
    async with served(folder, allows_control=True) as server:
        foreign = {"Origin": "http://evil.example"}
        assert await server.status("/api/s/echo/play", "POST", foreign, order) == 403
        monkeypatch.setattr(web_server, "_is_local", lambda _: False)
        assert await server.status("/api/s/echo/play", "POST", data=order) == 403
    async with served(folder, allows_control=True, is_signed_in=False) as server:
        assert await server.status("/api/s/echo/play", "POST", data=order) == 401


async def test_secrets_of_a_proposed_server_do_not_reach_the_page(folder: Path) -> None:
    header = read_header_of(folder / "echo.jsonl")
    assert header is not None
    secret = "sk-ant-api03-0123456789abcdef0123456789abcdef"
    host = folder.parent / "home" / ".cursor" / "mcp.json"
    host.parent.mkdir(parents=True)
    entry = f'{{"command": "node", "args": ["--api-key", "{secret}"], "env": {{"TOKEN": "{secret}"}}}}'
    host.write_text(f'{{"mcpServers": {{"a": {entry}}}}}')
    remember(header, ReplayForm(server="node b.js"))
    async with served(folder, allows_control=True) as server:
        proposed = await server.get("s/echo/play")
        assert [each["title"] for each in proposed["servers"]] == ["the recorded server", "cursor: a"]
        assert secret not in str(proposed)


async def test_the_page_replays_and_serves_with_its_buttons(folder: Path, tmp_path: Path) -> None:
    async with served(folder, allows_control=True) as server, chromium(tmp_path / "profile") as browser:
        await browser.open(f"{server.origin}/#{server.token}")
        await browser.until("document.querySelector('a.listed')")
        await browser.open(f"{server.origin}/s/echo")

        async def click(words: str) -> None:
            find = (
                f"[...document.querySelectorAll('button')].findLast((each) => each.textContent === '{words}')"
            )
            await browser.until(find)
            await browser.evaluate(f"{find}.click()")

        await click("Replay")
        await browser.until(
            "/the recorded server/.test(document.querySelector('dialog[open] select')?.innerText)"
        )
        await browser.evaluate("document.querySelector('dialog [type=submit]').click()")
        await browser.until("/Replay ended, 5 of 5 requests/.test(document.getElementById('play').innerText)")
        await browser.until("document.querySelectorAll('#play td.ok').length === 5")
        await click("Close")
        await click("Serve")
        await browser.until("document.querySelector('dialog[open] [type=submit]')")
        await browser.evaluate("document.querySelector('dialog [type=submit]').click()")
        await browser.until("/Mock serving/.test(document.getElementById('play').innerText)")
        await click("Stop")
        await browser.until("/Serve/.test(document.getElementById('play').innerText)")
        assert wrong(browser) == []
