"""Calls of servers that mcpspy starts: which servers there are, a conversation, its progress, cancellation and recording."""

from __future__ import annotations

import asyncio
import json
import shlex
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from mcpspy.core.protocol.message import Result
from mcpspy.core.recording.decode import Header
from mcpspy.errors import CannotStart, McpspyError, UsageError
from mcpspy.io.client import ServerAddress, ServerCommand
from mcpspy.io.recording.reader import read_header_of, summarize
from mcpspy.ui.model.server_call import ServerCall, call_servers
from tests.io.files import BOUND

SERVER = Path(__file__).parents[2] / "servers" / "forms.py"
COMMAND = [sys.executable, "-I", "-S", str(SERVER)]


@pytest.fixture(autouse=True)
def _folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HOME", "XDG_CONFIG_HOME", "XDG_STATE_HOME"):
        monkeypatch.setenv(name, str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)


def header(**fields: Any) -> Header:
    return Header(**{"mcpspy": 1, "id": "a1", "started": "", "transport": "stdio", "name": "forms", **fields})


@pytest.fixture
def progressed() -> asyncio.Event:
    return asyncio.Event()


@pytest.fixture
async def call(tmp_path: Path, progressed: asyncio.Event) -> AsyncIterator[ServerCall]:
    (server,) = call_servers(header(command=COMMAND))
    running = ServerCall(server, str(tmp_path / "sessions"), progressed.set)
    async with asyncio.timeout(BOUND):
        await running.start()
        yield running
        await running.close()


def test_the_servers_are_that_of_the_recording_of_hosts_and_of_saved_calls(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    secret = "sk-ant-api03-0123456789abcdef0123456789abcdef"
    host = tmp_path / "home" / ".cursor" / "mcp.json"
    host.parent.mkdir(parents=True)
    entries = {
        "weather": {"command": "node", "args": ["w.js", "--api-key", secret], "env": {"T": "${T}"}},
        "a/remote": {"url": "http://localhost:3001/mcp"},
    }
    host.write_text(json.dumps({"mcpServers": entries}), encoding="utf-8")
    saved = tmp_path / "tests" / "calls"
    saved.mkdir(parents=True)
    (saved / "oslo.yaml").write_text("command: [python, w.py]\ntool: forecast\narguments: {city: Oslo}\n")
    (saved / "entry.yaml").write_text("entry: cursor/weather\ntool: forecast\n")
    (saved / "broken.yaml").write_text("nothing: here\n")
    servers = {each.title: each for each in call_servers(header(command=["node", "b c.js"]))}
    assert [*servers] == [
        "the recorded server",
        "cursor/weather",
        "cursor/a/remote",
        "@entry",
        "@oslo",
    ]
    assert servers["@entry"].shown == servers["cursor/weather"].shown, "the command is shown before it is run"
    assert secret not in str([each.shown for each in servers.values()])
    assert servers["the recorded server"].shown == "node 'b c.js'"
    assert servers["@oslo"].saved is not None
    assert servers["@oslo"].saved.arguments == {"city": "Oslo"}
    assert [each.is_command for each in servers.values()] == [True, True, False, True, True]
    with pytest.raises(UsageError, match="variable T is not set"):
        servers["cursor/weather"].find()
    monkeypatch.setenv("T", "t")
    name, target = servers["@entry"].find()
    assert isinstance(target, ServerCommand)
    assert (name, target.arguments[-1], target.environment) == ("weather", secret, {"T": "t"})
    _, address = servers["cursor/a/remote"].find()
    assert isinstance(address, ServerAddress)


def test_a_recording_without_a_server_has_none_and_a_redacted_one_cannot_be_started() -> None:
    assert call_servers(header(command=None)) == []
    (server,) = call_servers(header(command=["node", "[redacted:3f9c1b2a]"]))
    with pytest.raises(UsageError, match="fill in the redacted value"):
        server.find()
    (remote,) = call_servers(header(command=None, transport="http", upstream="http://localhost:9/mcp"))
    assert (remote.shown, remote.is_command) == ("http://localhost:9/mcp", False)


async def test_everything_that_a_server_lists_can_be_called_and_is_recorded(call: ServerCall) -> None:
    assert [each.key for each in call.targets][:4] == ["book", "fail", "slow", "heard"]
    assert {each.noun for each in call.targets} == {"tool", "prompt", "resource", "resource template"}
    response = await call.response("tools/call", {"name": "book", "arguments": {"city": "Oslo"}})
    assert isinstance(response, Result)
    assert json.loads(response.text) == {"city": "Oslo"}
    await call.close()
    await call.close()
    recorded = read_header_of(call.path)
    assert (recorded.origin, recorded.name) == ("call", "forms")
    assert summarize(call.path, recorded).exit is not None
    with pytest.raises(UsageError, match="the server is closed"):
        await call.response("ping", {})


async def test_a_call_shows_its_progress_and_is_cancelled_and_another_one_follows(
    call: ServerCall, progressed: asyncio.Event
) -> None:
    waiting = asyncio.create_task(call.response("tools/call", {"name": "slow", "arguments": {}}))
    await progressed.wait()
    assert call.progress == "1/3 waiting"
    with pytest.raises(UsageError, match="a call is running"):
        await call.response("ping", {})
    await call.cancel()
    with pytest.raises(CannotStart, match="the call was cancelled"):
        await waiting
    heard = await call.response("tools/call", {"name": "heard", "arguments": {}})
    assert isinstance(heard, Result)
    (cancelled,) = json.loads(heard.text)
    sent = [json.loads(line) for line in call.path.read_text(encoding="utf-8").splitlines()[1:]]
    slow = next(each["msg"] for each in sent if each.get("msg", {}).get("params", {}).get("name") == "slow")
    assert cancelled == slow["id"]
    await call.cancel()  # Nothing runs.


async def test_a_call_that_runs_ends_with_its_server(call: ServerCall, progressed: asyncio.Event) -> None:
    waiting = asyncio.create_task(call.response("tools/call", {"name": "slow", "arguments": {}}))
    await progressed.wait()
    await call.close()
    with pytest.raises(McpspyError, match="cancelled"):
        await waiting


@pytest.mark.parametrize(
    ("command", "why"),
    [
        (["no-such-program-here"], "no-such-program-here"),
        ([sys.executable, "-c", "import sys; print('out of order', file=sys.stderr)"], "out of order"),
    ],
)
async def test_a_server_that_does_not_start_is_an_error_with_its_reason(
    command: list[str], why: str, tmp_path: Path
) -> None:
    (server,) = call_servers(header(command=command))
    running = ServerCall(server, str(tmp_path / "sessions"))
    with pytest.raises(CannotStart, match=why):
        await running.start()
    await running.close()


def test_the_command_of_a_recording_is_what_is_shown() -> None:
    (server,) = call_servers(header(command=COMMAND))
    assert server.shown == shlex.join(COMMAND)
