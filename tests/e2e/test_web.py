"""A session in the browser while a real client of the SDK calls a real server."""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mcpspy.ui.views.extension import Extension
from recordings import make
from tests import forks
from tests.analysis.export.html.axe import violations
from tests.analysis.export.html.chromium import chromium
from tests.ui.web.serving import served, wrong

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tests.e2e.conftest import Peers

FOUND = "document.getElementById('found').textContent"


async def test_rows_appear_while_a_client_calls(peers: Peers, tmp_path: Path) -> None:
    folder = tmp_path / "sessions"
    folder.mkdir()
    async with served(folder) as server, chromium(tmp_path / "profile") as browser:
        await browser.open(f"{server.origin}/#{server.token}")
        await browser.until(f"{FOUND} === '0 sessions'")
        client = asyncio.create_task(
            peers.play(
                "sdk.py --script everything --mode legacy",
                *("mcpspy", "run", "--dir", str(folder), "--", "mcp-server-everything", "stdio"),
            )
        )
        await browser.until("document.querySelectorAll('a.listed').length === 1")
        await browser.evaluate("document.querySelector('a.listed').click()")
        await browser.until("document.querySelectorAll('#tall .method').length > 3")
        played = await client
        await browser.until("document.getElementById('ending').textContent.startsWith('exit')")

        (session,) = (await server.get("sessions"))["sessions"]
        rows = await server.get(f"s/{session['key']}/rows")
        await browser.until(f"{FOUND} === '{rows['total']} rows'")
        await browser.press("q")
        await browser.until("document.querySelector('a.listed .verdict')?.textContent.length > 3")
        assert played.code == 0
        assert rows["total"] > 30


class RawClient:
    """A host that writes its messages by hand, to `mcpspy run`."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process
        assert process.stdin is not None
        assert process.stdout is not None
        self._stdin, self._stdout = process.stdin, process.stdout

    def send(self, **message: Any) -> None:
        self._stdin.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")

    async def response(self, number: int) -> dict[str, Any]:
        async with asyncio.timeout(30):
            while True:
                message: dict[str, Any] = json.loads(await self._stdout.readline())
                if message.get("id") == number and "method" not in message:
                    return message

    async def begin(self) -> None:
        client = {"name": "by hand", "version": "1"}
        self.send(
            id=1,
            method="initialize",
            params={"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client},
        )
        await self.response(1)
        self.send(method="notifications/initialized")

    async def end(self) -> None:
        self._stdin.close()
        await self._process.wait()


EVERYTHING = str(make.PEERS / "node_modules" / ".bin" / "mcp-server-everything")
MEMORY = str(make.PEERS / "node_modules" / ".bin" / "mcp-server-memory")


async def running(folder: Path, *command: str, options: Sequence[str] = ()) -> RawClient:
    mcpspy = [forks.command(), "run", "--dir", str(folder), "--name", "server", *options]
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(
        *mcpspy, "--", *command, stdin=pipe, stdout=pipe, stderr=asyncio.subprocess.DEVNULL
    )
    return RawClient(process)


OWN_SCRIPT = """
def column_said(exchange):
    return exchange.result["content"][0]["text"] if exchange.result else "waits"

def view_echo(content):
    return [[("heard ", "quiet"), (content.text, "ok")]] if content.text.startswith("Echo: ") else None
"""


async def test_columns_and_views_of_a_script_appear_while_a_client_calls(tmp_path: Path) -> None:
    folder = tmp_path / "sessions"
    folder.mkdir()
    (tmp_path / "own.py").write_text(OWN_SCRIPT, encoding="utf-8")
    client = await running(folder, EVERYTHING, "stdio")
    await client.begin()
    extension = Extension([str(tmp_path / "own.py")], shows_images=False)
    async with served(folder, extension=extension) as server, chromium(tmp_path / "profile") as browser:
        await browser.look(1400)
        await browser.open(f"{server.origin}/#{server.token}")
        await browser.until("document.querySelectorAll('a.listed').length === 1")
        (session,) = (await server.get("sessions"))["sessions"]
        await browser.open(f"{server.origin}/s/{session['key']}?q=tool:*")
        await browser.until("document.querySelectorAll('#columns .own').length === 1")
        slow = {"name": "trigger-long-running-operation", "arguments": {"duration": 4, "steps": 1}}
        client.send(id=2, method="tools/call", params=slow)
        cells = "[...document.querySelectorAll('#tall .own')].map((each) => each.textContent)"
        await browser.until(f"{cells}.join() === 'waits'")
        client.send(id=3, method="tools/call", params={"name": "echo", "arguments": {"message": "<b>hi</b>"}})
        await browser.until(f"{cells}.join() === 'waits,Echo: <b>hi</b>'")
        await client.response(2)
        await browser.until(f"{cells}[0].startsWith('Long running operation completed')")
        await browser.evaluate("document.querySelectorAll('#tall .row')[1].click()")
        await browser.until(
            "document.querySelector('#detail .view')?.textContent === 'heard Echo: <b>hi</b>'"
        )
        assert wrong(browser) == []
    await client.end()


def press(label: str) -> str:
    """Return the script that presses a button for the first held message."""
    buttons = "[...document.querySelectorAll('#held button')]"
    return f"{buttons}.find((each) => each.textContent === '{label}').click()"


HELD = "document.querySelectorAll('#held li').length"
HOLD = "document.getElementById('hold').textContent"


async def test_the_page_holds_edits_drops_answers_and_sends_again(tmp_path: Path) -> None:
    folder = tmp_path / "sessions"
    folder.mkdir()
    client = await running(folder, EVERYTHING, "stdio")
    await client.begin()

    def call(number: int, text: str) -> None:
        client.send(id=number, method="tools/call", params={"name": "echo", "arguments": {"message": text}})

    async with served(folder, allows_control=True) as server, chromium(tmp_path / "profile") as browser:
        await browser.open(f"{server.origin}/#{server.token}")
        await browser.until("document.querySelectorAll('a.listed').length === 1")
        await browser.evaluate("document.querySelector('a.listed').click()")
        await browser.until("!document.getElementById('held').hidden")
        (session,) = (await server.get("sessions"))["sessions"]
        await browser.open(f"{server.origin}/s/{session['key']}?q=tool:echo%20from:client")
        await browser.until("!document.getElementById('held').hidden")
        await browser.press("i")
        await browser.until(f"{HOLD} === 'Stop holding'")

        call(2, "one")
        await browser.until(f"{HELD} === 1")
        assert await violations(browser) == []
        await browser.evaluate(press("Edit"))
        await browser.until("document.querySelector('#editor textarea')?.value.includes('one')")
        assert await violations(browser) == []
        field = "document.querySelector('#editor textarea')"
        await browser.evaluate(f"{field}.value = {field}.value.replace('one', 'two')")
        await browser.evaluate("document.querySelector('#editor button[type=submit]').click()")
        assert (await client.response(2))["result"]["content"][0]["text"] == "Echo: two"

        await browser.until(f"{HELD} === 0")
        call(3, "three")
        await browser.until(f"{HELD} === 1")
        await browser.evaluate(press("Answer with an error"))
        await browser.until(f"{field}?.value === 'refused by a viewer'")
        await browser.evaluate("document.querySelector('#editor button[type=submit]').click()")
        assert (await client.response(3))["error"]["message"] == "refused by a viewer"

        await browser.until(f"{HELD} === 0")
        unknown = '{"order":"dance"}'
        assert await server.status(f"/api/s/{session['key']}/control", "POST", data=unknown) == 409
        call(6, "six")
        call(7, "seven")
        await browser.until(f"{HELD} === 2")
        await browser.evaluate(press("Release all"))
        for number, text in ((6, "six"), (7, "seven")):
            assert (await client.response(number))["result"]["content"][0]["text"] == f"Echo: {text}"

        await browser.until(f"{HELD} === 0")
        call(4, "four")
        call(5, "five")
        await browser.until(f"{HELD} === 2")
        await browser.evaluate(press("Drop"))
        await browser.until(f"{HELD} === 1")
        await browser.press("i")  # Releases what is held.
        assert (await client.response(5))["result"]["content"][0]["text"] == "Echo: five"
        await browser.until(f"{HOLD} === 'Hold' && {HELD} === 0")

        await browser.open(f"{server.origin}/s/{session['key']}?q=tool:echo")
        await browser.until("document.querySelectorAll('#tall .method').length >= 4")
        rows = (await server.get(f"s/{session['key']}/rows", q="tool:echo"))["total"]
        await browser.press("j", "Enter")
        await browser.until("!document.getElementById('detail').hidden")
        await browser.until("!document.getElementById('held').hidden")
        await browser.press("r")
        await browser.until(f"{field}?.value.includes('one')")
        await browser.evaluate("document.querySelector('#editor button[type=submit]').click()")
        await browser.until(f"parseInt({FOUND}) > {rows}")
    await client.end()
    notes = [json.loads(line) for line in next(folder.glob("*.jsonl")).read_text("utf-8").splitlines()[1:]]
    assert {note["viewer"] for note in notes if note.get("note") == "rule" and "viewer" in note} == {"web"}


async def test_a_click_restarts_the_server_of_a_session_that_allows_it(tmp_path: Path) -> None:
    folder, plan = tmp_path / "sessions", tmp_path / "plan.json"
    folder.mkdir()
    plan.write_text('{"tools": ["echo"]}', encoding="utf-8")
    server_file = Path(__file__).parents[1] / "servers" / "versioned.py"
    options = ["--watch", str(plan), "--stdout-noise", "drop"]
    client = await running(folder, sys.executable, str(server_file), str(plan), options=options)
    await client.begin()
    async with served(folder, allows_control=True) as server, chromium(tmp_path / "profile") as browser:
        (session,) = (await server.get("sessions"))["sessions"]
        await browser.open(f"{server.origin}/s/{session['key']}?q=note:restart#{server.token}")
        await browser.until("!document.getElementById('held').hidden")
        assert await violations(browser) == []
        await browser.evaluate(press("Restart server"))
        await browser.until("document.body.textContent.includes('server restarted (ordered by web)')")
    client.send(id=2, method="tools/call", params={"name": "echo"})
    assert (await client.response(2))["result"]["content"][0]["text"] == "['echo']"
    await client.end()


async def test_a_page_that_leaves_releases_what_it_held(tmp_path: Path) -> None:
    folder = tmp_path / "sessions"
    folder.mkdir()
    client = await running(folder, EVERYTHING, "stdio")
    await client.begin()
    async with served(folder, allows_control=True) as server, chromium(tmp_path / "profile") as browser:
        (session,) = (await server.get("sessions"))["sessions"]
        await browser.open(f"{server.origin}/s/{session['key']}#{server.token}")
        await browser.until("!document.getElementById('held').hidden")
        await browser.press("i")
        await browser.until(f"{HOLD} === 'Stop holding'")
        client.send(id=2, method="ping")
        await browser.until(f"{HELD} === 1")
        await browser.press("q")
        assert (await client.response(2))["result"] == {}
    await client.end()


async def test_a_held_listing_shows_how_it_differs_from_the_lockfile(tmp_path: Path) -> None:
    folder, lock = tmp_path / "sessions", tmp_path / "mcp.lock"
    folder.mkdir()
    trust = [
        sys.executable,
        "-m",
        "mcpspy",
        "trust",
        "--name",
        "server",
        "--lock",
        str(lock),
        "--dir",
        str(folder),
    ]
    process = await asyncio.create_subprocess_exec(
        *trust, "--", EVERYTHING, "stdio", stdout=asyncio.subprocess.DEVNULL
    )
    assert await process.wait() == 0
    client = await running(folder, MEMORY, options=["--trust", str(lock), "--on-change", "hold"])
    async with served(folder, allows_control=True) as server, chromium(tmp_path / "profile") as browser:
        client.send(
            id=1,
            method="initialize",
            params={
                "protocolVersion": "2025-06-18",
                "capabilities": {},
                "clientInfo": {"name": "a", "version": "1"},
            },
        )
        await browser.open(f"{server.origin}/#{server.token}")
        live = "[...document.querySelectorAll('a.listed')].find((each) => each.textContent.includes('live'))"
        await browser.until(f"Boolean({live})")
        await browser.evaluate(f"{live}.click()")
        await browser.until(f"{HELD} === 1")
        await browser.until("document.querySelector('#held pre').textContent.includes('/result/')")
        await browser.evaluate(press("Release"))
        assert (await client.response(1))["result"]["serverInfo"]["name"] == "memory-server"
    await client.end()
