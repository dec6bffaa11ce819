"""A server on stdio that is offered over HTTP, and restarted in the sessions of its clients."""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from mcpspy.errors import UsageError
from mcpspy.io.control.client import AsyncControlClient, CommandRefused, find_session
from mcpspy.io.recording.reader import Recording
from mcpspy.ui.cli.send import RESTART
from tests.core.mock.talking import modern
from tests.io.gateway.test_gateway import Offered, offered
from tests.io.mock.speaking import event, received

pytestmark = pytest.mark.timeout(30)

SERVER = str(Path(__file__).parents[2] / "servers" / "versioned.py")

HANGS = {"method": "tools/call", "params": {"name": "hang"}}


class Watched(Offered):
    """A server whose behaviour is in a watched file, and a client of it."""

    plan: Path

    def another(self) -> Watched:
        return watched_by(super().another(), self.plan)

    async def change(self, *, processes: int = 1, **plan: Any) -> None:
        """Replace the file as editors do, and wait until each process has a successor, or none that runs."""
        before = len(self.outcomes)
        new = self.plan.with_suffix(".new")
        new.write_text(json.dumps(plan), encoding="utf-8")
        os.replace(new, self.plan)
        await self.until(lambda: len(self.outcomes) >= before + processes)

    async def until(self, condition: Any) -> None:
        async with asyncio.timeout(30):
            while not condition():  # noqa: ASYNC110 - the file has no event.
                await asyncio.sleep(0)

    @property
    def outcomes(self) -> list[dict[str, Any]]:
        return [each.fields for each in self.notes("restart") if each.fields["did"] in ("listed", "failed")]

    async def tools(self, id: int, name: str = "echo") -> str:  # noqa: A002
        """Return the tools that the server has, or the error."""
        _, said = await self.say(id=id, method="tools/call", params={"name": name})
        said = said[-1] if isinstance(said, list) else said
        return str(said["result"]["content"][0]["text"] if "result" in said else said["error"]["message"])

    async def begin_watched(self, **capabilities: Any) -> None:
        """Begin a session, and wait until mcpspy has read the lists of its server."""
        await self.begin("2025-06-18", **capabilities)
        await self.tools(99)


def watched_by(server: Offered, plan: Path) -> Watched:
    found = Watched(server.mock, server.client, server.url)
    found.path, found.plan = server.path, plan
    return found


@asynccontextmanager
async def watched(tmp_path: Path, *, is_shared: bool = False) -> AsyncIterator[Watched]:
    plan = tmp_path / "watched" / "plan.json"
    plan.parent.mkdir()
    plan.write_text('{"tools": ["echo"]}', encoding="utf-8")
    command = [sys.executable, "-S", SERVER, str(plan)]
    async with offered(tmp_path, is_shared=is_shared, command=command, watch=(str(plan),)) as server:
        yield watched_by(server, plan)


def message(lines: list[str]) -> Any:
    return json.loads(next(line for line in lines if line.startswith("data: {"))[6:])


async def test_every_session_keeps_its_own_handshake_over_a_restart_and_is_notified(tmp_path: Path) -> None:
    async with watched(tmp_path) as one:
        other = one.another()
        await one.begin_watched(roots={})
        await other.begin_watched()
        async with await one.get() as stream:
            open_call = asyncio.ensure_future(one.say(id=1, **HANGS))
            await one.until(lambda: b'"hang"' in one.path.read_bytes())
            await one.change(processes=2, tools=["echo", "new"])
            _, said = await open_call
            said = said[-1] if isinstance(said, list) else said
            assert said["error"]["message"].endswith("plan.json changed)")
            changed = message(await event(stream))
        assert changed["method"] == "notifications/tools/list_changed"
        assert [await one.tools(2), await other.tools(2)] == ["['echo', 'new']"] * 2
        listed = one.outcomes
        assert [each["changes"] for each in listed] == [["gained the tool new"]] * 2
        streams = {note.fields["stream"] for note in one.notes("restart")}
        assert streams == {each["stream"] for each in listed}
        assert len(streams) == 2
        counts = Recording(one.path).session().counts
        assert (counts.errors, counts.unanswered) == (1, 0)


async def test_a_server_that_does_not_start_ends_no_session(tmp_path: Path) -> None:
    async with watched(tmp_path) as server:
        await server.begin_watched()
        await server.change(fails="SyntaxError: invalid syntax")
        assert "; on stderr: SyntaxError: invalid syntax" in await server.tools(1)
        await server.change(tools=["echo"])
        assert await server.tools(2) == "['echo']"
        assert "it ended with exit code 7" in await server.tools(3, "die")


async def test_an_answer_to_a_question_of_the_old_server_does_not_reach_the_new_one(tmp_path: Path) -> None:
    async with watched(tmp_path) as server:
        await server.begin_watched(roots={})
        body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "ask"}})
        async with await server.send(body.encode()) as response:
            asked = message(await event(response))
            await server.change(tools=["echo"])
            messages = await received(response)
        assert [each.get("method", each.get("id")) for each in messages] == ["notifications/cancelled", 1]
        assert messages[0]["params"]["requestId"] == asked["id"]
        async with await server.send(body.replace('"id": 1', '"id": 2').encode()) as response:
            again = message(await event(response))
            await server.say(id=asked["id"], result={"roots": ["old"]})
            await server.say(id=again["id"], result={"roots": ["new"]})
            (answer,) = await received(response)
        assert json.loads(answer["result"]["content"][0]["text"]) == {"roots": ["new"]}


async def test_clients_that_share_a_process_share_its_restart(tmp_path: Path) -> None:
    async with watched(tmp_path, is_shared=True) as one:
        other = one.another()
        await one.begin_watched()
        await other.begin_watched()
        async with await one.get() as first, await other.get() as second:
            calls = [asyncio.ensure_future(each.say(id=1, **HANGS)) for each in (one, other)]
            await one.until(lambda: one.path.read_bytes().count(b'"hang"') == 2)
            await one.change(tools=["echo", "new"])
            for call in calls:
                _, said = await call
                said = said[-1] if isinstance(said, list) else said
                assert (said["id"], "restarted before" in said["error"]["message"]) == (1, True)
            for stream in (first, second):
                assert message(await event(stream))["method"] == "notifications/tools/list_changed"
        assert len(one.outcomes) == 1
        assert await other.tools(2) == "['echo', 'new']"


async def test_a_client_that_joins_after_a_restart_gets_the_handshake_of_the_new_server(
    tmp_path: Path,
) -> None:
    async with watched(tmp_path, is_shared=True) as one:
        await one.begin_watched()
        await one.change(tools=["echo"], declares={"tools": {}, "prompts": {}})
        params = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "c"}}
        _, said = await one.say(id=5, method="initialize", params=params)
        said = said[-1] if isinstance(said, list) else said
        assert said["id"] == 5
        assert said["result"]["capabilities"] == {
            "tools": {"listChanged": True},
            "prompts": {"listChanged": True},
        }


async def test_a_subscription_of_2026_is_notified_with_its_own_id(tmp_path: Path) -> None:
    async with watched(tmp_path) as server:
        await server.ask(1, "server/discover", _meta=modern())
        body = {"notifications": {"toolsListChanged": True}, "_meta": modern()}
        text = json.dumps({"jsonrpc": "2.0", "id": "mine", "method": "subscriptions/listen", "params": body})
        headers = {"Mcp_Method": "subscriptions/listen", "MCP_Protocol_Version": "2026-07-28"}
        async with await server.send(text.encode(), **headers) as stream:
            assert message(await event(stream))["method"] == "notifications/subscriptions/acknowledged"
            await server.change(tools=["echo", "new"])
            changed = message(await event(stream))
        assert changed["method"] == "notifications/tools/list_changed"
        assert changed["params"]["_meta"] == {"io.modelcontextprotocol/subscriptionId": "mine"}


async def test_a_viewer_restarts_all_processes_and_learns_their_number(tmp_path: Path) -> None:
    async with watched(tmp_path) as server:
        viewer = await AsyncControlClient.open(find_session(str(server.path)), "tester")
        try:
            assert viewer.hello["restarts"] is True
            with pytest.raises(CommandRefused, match="no client has connected"):
                await viewer.order("restart")
            with pytest.raises(CommandRefused, match="unknown key 'soon'"):
                await viewer.order("restart", soon=True)
            await server.begin_watched()
            answer = await viewer.order("restart")
            assert answer["servers"] == 1
            async for happened in viewer.events():
                if happened["event"] == "restart" and happened["did"] == "listed":
                    break
        finally:
            await viewer.close()
        started = [each.fields for each in server.notes("restart") if each.fields["did"] == "started"]
        assert [each["viewer"] for each in started] == ["tester"]


async def test_the_command_restart_waits_for_every_process(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    async with watched(tmp_path) as one:
        other = one.another()
        await one.begin_watched()
        await other.begin_watched()
        arguments = argparse.Namespace(session=str(one.path), dir=None, timeout=20.0)
        assert await asyncio.to_thread(RESTART.main, arguments) == 0
    assert capsys.readouterr().out.splitlines() == ["the interface did not change"] * 2


async def test_a_path_that_does_not_exist_is_a_usage_error(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="gone: no such file or folder"):
        async with offered(tmp_path, watch=(str(tmp_path / "gone"),)):
            pass
