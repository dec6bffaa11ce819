"""A server on stdio, offered over HTTP: sessions, processes, streams, ends, and the recording."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from mcpspy.core.recording.decode import Note, read_entry
from mcpspy.io.gateway import gateway as module
from mcpspy.io.gateway.gateway import GatewayOptions, serving_command
from mcpspy.io.serving import client as served
from tests.core.mock.talking import modern
from tests.io.mock.speaking import Spoken, event, received

pytestmark = pytest.mark.timeout(60)

SERVER = str(Path(__file__).parents[2] / "servers" / "offered.py")


class Offered(Spoken):
    """A server that is offered, and a client of it."""

    path: Path

    def notes(self, kind: str) -> list[Note]:
        """Return the notes of a kind in the recording."""
        entries = map(read_entry, self.path.read_bytes().splitlines()[1:])
        return [each for each in entries if isinstance(each, Note) and each.kind == kind]

    def texts(self, kind: str) -> list[str]:
        return [str(each.fields["text"]) for each in self.notes(kind)]

    def another(self) -> Offered:
        other = Offered(self.mock, self.client, self.url)
        other.path = self.path
        return other


@asynccontextmanager
async def offered(
    tmp_path: Path, *, is_shared: bool = False, command: list[str] | None = None, watch: tuple[str, ...] = ()
) -> AsyncIterator[Offered]:
    options = GatewayOptions(command or [sys.executable, "-S", SERVER], "127.0.0.1", 0)
    options.record, options.name, options.is_shared = str(tmp_path / "r.jsonl"), "server", is_shared
    options.watch = [*watch]
    async with serving_command(options) as url, aiohttp.ClientSession() as client:
        found = Offered(None, client, url.removesuffix("/mcp"))  # type: ignore[arg-type]
        found.path = tmp_path / "r.jsonl"
        yield found


@pytest.fixture(autouse=True)
def _runtime(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    folder.mkdir(mode=0o700)
    monkeypatch.setenv("MCPSPY_RUNTIME", str(folder))


async def test_each_session_has_a_process_that_ends_with_it(tmp_path: Path) -> None:
    async with offered(tmp_path) as one:
        await one.begin()
        other = one.another()
        await other.begin()
        first, second = await one.call(1, "pid"), await other.call(1, "pid")
        assert first != second
        async with one.client.delete(one.url + "/mcp", headers=one.session) as response:
            assert response.status == 200
        assert (await one.say(id=2, method="ping"))[0] == 404
        assert await other.call(2, "pid") == second
        assert (await one.say(id=3, method="ping"))[0] == 404
        one.session = {}
        assert (await one.say(id=4, method="ping"))[0] == 400
    for pid in (first, second):
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)
    header = json.loads(one.path.read_bytes().splitlines()[0])
    assert (header["transport"], header["command"][-1]) == ("http", SERVER)
    assert header["upstream"] == one.url + "/mcp"


async def test_progress_and_questions_are_on_the_stream_of_their_call(tmp_path: Path) -> None:
    async with offered(tmp_path) as server:
        await server.begin("2025-06-18")
        params = {"name": "steps", "_meta": {"progressToken": "p"}}
        _, messages = await server.say(id=1, method="tools/call", params=params)
        assert [each.get("method", each.get("id")) for each in messages] == ["notifications/progress", 1]
        body = b'{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"ask"}}'
        async with await server.send(body) as response:
            lines = await event(response)
            asked = json.loads(next(line for line in lines if line.startswith("data: {"))[6:])
            assert asked["method"] == "elicitation/create"
            assert await server.say(id=asked["id"], result={"answer": "yes"}) == (202, None)
            (answer,) = [each for each in await received(response) if "result" in each]
            assert answer["result"] == {"said": "yes"}


async def test_messages_without_a_get_stream_are_kept_up_to_a_limit_and_a_loss_is_noted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(served, "MAX_STORED", 2)
    async with offered(tmp_path) as server:
        await server.begin("2025-06-18")
        assert await server.call(1, "change", times=2) == "changed"
        assert server.texts("error") == []
        assert await server.call(2, "change", times=1) == "changed"
        (text,) = server.texts("error")
        assert "has no GET stream" in text
        async with await server.get() as response:
            assert [(await event(response))[1] for _ in range(2)] == ["id: 7", "id: 10"]


async def test_the_end_of_a_process_answers_its_requests_and_ends_its_session(tmp_path: Path) -> None:
    async with offered(tmp_path) as server:
        await server.begin()
        _, said = await server.say(id=1, method="tools/call", params={"name": "die"})
        message = (said[0] if isinstance(said, list) else said)["error"]["message"]
        assert message.startswith("mcpspy http: ")
        assert message.endswith("ended with exit code 7; its last output: out of cheese")
        assert (await server.say(id=2, method="ping"))[0] == 404
        assert server.texts("stderr") == ["out of cheese"]
        assert "exit code 7" in server.texts("error")[0]
        await server.another().begin()


async def test_a_cancelled_request_ends_its_stream(tmp_path: Path) -> None:
    async with offered(tmp_path) as server:
        await server.begin()
        waiting = asyncio.ensure_future(
            server.say(id=1, method="tools/call", params={"name": "never", "arguments": {}})
        )
        while not server.path.read_bytes().count(b'"never"'):  # noqa: ASYNC110 - the file has no event.
            await asyncio.sleep(0)
        params = {"requestId": 1}
        assert (await server.say(method="notifications/cancelled", params=params))[0] == 202
        assert await waiting == (200, [])


async def test_clients_may_share_a_process(tmp_path: Path) -> None:
    async with offered(tmp_path, is_shared=True) as one:
        await one.begin()
        other = one.another()
        await other.begin()
        assert await one.call(1, "pid") == await other.call(1, "pid")
        _, said = await one.say(id=1, method="tools/call", params={"name": "die"})
        assert "error" in (said[0] if isinstance(said, list) else said)
        assert (await other.say(id=2, method="ping"))[0] == 404


async def test_requests_of_2026_share_a_process_without_a_session(tmp_path: Path) -> None:
    async with offered(tmp_path) as server:
        status, said = await server.ask(1, "server/discover", _meta=modern())
        assert (status, said["id"], "result" in said) == (200, 1, True)
        answers: list[Any] = [await server.ask(1, "tools/call", name="pid", _meta=modern()) for _ in range(2)]
        assert answers[0] == answers[1]
        _, said = await server.ask(3, "tools/call", name="die", _meta=modern())
        assert "exit code 7" in said["error"]["message"]
        status, said = await server.ask(4, "tools/call", name="pid", _meta=modern())
        assert said["result"]["said"] != answers[0][1]["result"]["said"]


async def test_a_process_beyond_the_limit_ends_that_of_the_least_recently_used_session(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MAX_PROCESSES", 2)
    async with offered(tmp_path) as one:
        two, three = one.another(), one.another()
        await one.begin()
        await two.begin()
        await one.call(1, "pid")
        await three.begin()
        assert (await two.say(id=1, method="ping"))[0] == 404
        assert isinstance(await one.call(2, "pid"), int)


async def test_a_foreign_host_and_a_foreign_origin_are_refused(tmp_path: Path) -> None:
    async with offered(tmp_path) as server:
        for header in ({"Host": "evil.example"}, {"Origin": "http://evil.example"}):
            async with await server.send(b"{}", **header) as response:
                assert response.status == 403
