"""`mcpspy mcp` with the clients of the official SDKs: over stdio, recorded by mcpspy itself, and over HTTP."""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import sys
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from mcpspy.analysis.context import count_tokens, estimated_tokens, features
from mcpspy.analysis.lint import Severity
from mcpspy.core.protocol.message import Result
from mcpspy.core.session.exchange import State
from mcpspy.io.recording.reader import Recording
from recordings import make
from tests import forks
from tests.e2e.tours import Call, Server, Tour, record
from tests.ui.agent import test_hostile as hostile
from tests.ui.report.faults.record import FAULTS, HERE

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

ROOT = Path(__file__).parents[2]
PYTHON = str(make.PEERS / "mcp2" / "bin" / "python")
"""An environment that has mcpspy's dependencies and the SDK, which the development environment cannot have."""

SESSION = "peer-sdk-legacy"
CALLS: tuple[Call, ...] = (
    ("list_sessions", {}, "call"),
    ("find", {"filter": "status:error", "sessions": [SESSION]}, "call"),
    ("read", {"line": 50, "session": SESSION, "exchange": True}, "call"),
    ("explain", {"session": SESSION}, "call"),
    ("lint", {"session": SESSION}, "call"),
    ("stats", {"session": SESSION}, "call"),
    ("diff", {"old": SESSION, "new": "peer-sdk-modern"}, "call"),
    ("export", {"format": "mermaid", "session": SESSION}, "call"),
    ("read", {"line": "x"}, "call"),
)
SERVER = Server(
    "mcpspy-mcp",
    (PYTHON, "-m", "mcpspy", "mcp", "--dir", str(ROOT / "recordings")),
    environment={"PYTHONPATH": str(ROOT)},
    calls=CALLS,
)


@pytest.fixture(autouse=True)
def _peers() -> None:
    if not Path(PYTHON).exists():
        pytest.fail("the peers are not installed: run make peers", pytrace=False)


@pytest.mark.parametrize(
    ("client", "mode"),
    [
        ("python-2", "2026-07-28"),
        ("python-1", "2025-11-25"),
        ("typescript-2", "2026-07-28"),
        ("typescript-1", "auto"),
    ],
)
async def test_the_clients_of_the_sdks_use_it_and_lint_finds_no_error(
    client: str, mode: str, tmp_path: Path
) -> None:
    (recorded,) = await record(SERVER, [Tour(client, SERVER, mode)], tmp_path)

    assert recorded.error is None
    exchanges = [each for path in recorded.paths for each in Recording(path).session().exchanges]
    calls = [each for each in exchanges if each.request.method == "tools/call"]
    assert [each.state for each in calls] == [State.OK] * 8 + [State.TOOL_ERROR]
    assert {each.request.method for each in exchanges} >= {
        "tools/list",
        "resources/list",
        "prompts/list",
    }
    assert [each.code for each in recorded.findings() if each.severity is Severity.ERROR] == []
    found = calls[1].answer
    assert isinstance(found, Result)
    assert b"<recorded " in found.data
    assert b'"mcpspy/provenance"' in found.data


@asynccontextmanager
async def serving(folder: Path, *options: str) -> AsyncIterator[tuple[str, str]]:
    """Start `mcpspy mcp --http`. Yield its URL, and what it prints as the value of the header Authorization."""
    process = await asyncio.create_subprocess_exec(
        *(
            PYTHON,
            "-m",
            "mcpspy",
            "mcp",
            "--http",
            "0",
            "--dir",
            str(ROOT / "recordings"),
            *options,
        ),
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT), "TOKEN": "correct"},
        stderr=asyncio.subprocess.PIPE,
        start_new_session=True,
    )
    try:
        assert process.stderr is not None
        line = (await process.stderr.readline()).decode()
        (printed,) = re.findall(
            r"serving (http://127\.0\.0\.1:\d+/mcp), with the header Authorization: (.+)", line
        )
        yield printed
    finally:
        os.killpg(process.pid, signal.SIGTERM)
        await process.communicate()


CLIENT = """\
import asyncio, json, sys
import httpx2
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

async def main(url):
    for mode in ("legacy", "auto"):
        http = httpx2.AsyncClient(headers={"Authorization": "Bearer correct"})
        async with Client(streamable_http_client(url, http_client=http), mode=mode) as client:
            found = await client.call_tool("find", {"filter": "status:error", "sessions": ["peer-sdk-legacy"]})
            line = await client.read_resource("mcpspy://ba42897e/50")
            prompt = await client.get_prompt("debug-this-server", {"session": "weather"})
            print(json.dumps([
                client.protocol_version, found.structured_content["matches"], line.contents[0].text,
                prompt.messages[0].content.text,
            ]))

asyncio.run(main(sys.argv[1]))
"""


async def test_over_http_the_token_host_and_origin_are_checked_and_both_eras_are_served(
    tmp_path: Path,
) -> None:
    async with asyncio.timeout(90), serving(tmp_path, "--token-env", "TOKEN") as (url, shown):
        assert shown == "Bearer the value of TOKEN"
        refused = [
            await status(url),
            await status(url, Authorization="Bearer wrong"),
            await status(url, Authorization="Bearer correct", Host="evil.example"),
            await status(url, Authorization="Bearer correct", Origin="https://evil.example"),
        ]
        process = await asyncio.create_subprocess_exec(
            *(str(make.PEERS / "venv" / "bin" / "python"), "-c", CLIENT, url), stdout=asyncio.subprocess.PIPE
        )
        out, _ = await process.communicate()

    assert refused == [401, 401, 421, 403]
    answers: list[list[Any]] = [json.loads(line) for line in out.splitlines()]
    assert [answer[:2] for answer in answers] == [["2025-11-25", 6], ["2026-07-28", 6]]
    assert all("there is no note named none" in answer[2] for answer in answers)
    assert all("session weather" in answer[3] for answer in answers)


async def status(url: str, **headers: str) -> int:
    """Return the HTTP status of a POST, sent without a library that would correct the headers."""
    port = int(url.rsplit(":", 1)[1].partition("/")[0])
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    fields = {
        "Host": f"127.0.0.1:{port}",
        "Content-Type": "application/json",
        "Content-Length": "2",
        **headers,
    }
    head = "".join(f"{name}: {value}\r\n" for name, value in fields.items())
    writer.write(f"POST /mcp HTTP/1.1\r\n{head}\r\n{{}}".encode())
    line = await reader.readline()
    writer.close()
    return int(line.split()[1])


CALLER = """\
import asyncio, json, os, sys
from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client

async def main(command, calls):
    server = StdioServerParameters(command=command[0], args=command[1:], env=dict(os.environ))
    updated = asyncio.Event()
    async def heard(message):
        if getattr(message, "method", "") == "notifications/resources/updated":
            updated.set()
    async with stdio_client(server) as (read, write), ClientSession(read, write, message_handler=heard) as session:
        await session.initialize()
        await session.subscribe_resource("mcpspy://peer")
        for name, arguments in calls:
            result = await session.call_tool(name, arguments)
            print(json.dumps([result.is_error, result.structured_content, result.content[0].text]), flush=True)
        await updated.wait()

asyncio.run(main(*map(json.loads, sys.argv[1:])))
"""


async def test_an_agent_sends_into_a_live_session_and_replays_it(tmp_path: Path, runtime: Path) -> None:
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "MCPSPY_DIR": str(tmp_path / "sessions")}
    peer = [sys.executable, "-m", "mcpspy.ui.demo.weather"]
    hello = {
        "protocolVersion": "2025-11-25",
        "capabilities": {},
        "clientInfo": {"name": "host", "version": "1"},
    }
    begin = {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": hello}
    call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "stations"}}
    host = await asyncio.create_subprocess_exec(
        *(forks.command(), "run", "--name", "peer", "--", *peer),
        env=environment,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
    )
    assert host.stdin is not None
    assert host.stdout is not None
    async with asyncio.timeout(90):
        host.stdin.write(b"".join(json.dumps(each).encode() + b"\n" for each in (begin, call)))
        while b'"id":1' not in await host.stdout.readline():
            pass
        allowed = ["--allow-send", "peer", "--allow-replay", " ".join(peer)]
        calls = [
            ("send", {"session": "peer", "method": "tools/list"}),
            ("wait_for", {"filter": "tool:stations", "session": "peer", "after": 1}),
            ("send", {"session": "peer", "method": "notifications/roots/list_changed", "notify": True}),
            ("replay", {"session": "peer"}),
        ]
        agent = await asyncio.create_subprocess_exec(
            *(
                str(make.PEERS / "venv" / "bin" / "python"),
                "-c",
                CALLER,
                json.dumps([PYTHON, "-m", "mcpspy", "mcp", *allowed]),
                json.dumps(calls),
            ),
            env=environment,
            stdout=asyncio.subprocess.PIPE,
        )
        out, _ = await agent.communicate()
        host.stdin.close()
        await host.wait()
    sent, waited, notified, replayed = [json.loads(line) for line in out.splitlines()]

    assert (sent[0], sent[1]["ok"]) == (False, True)
    assert '"name":"forecast"' in sent[1]["recorded"]
    assert waited[1]["matched"]
    assert waited[1]["live"]
    assert (notified[0], notified[1]["ok"]) == (False, True)
    notification = b'"by":"mcpspy","msg":{"jsonrpc":"2.0","method":"notifications/roots/list_changed"'
    assert [notification in path.read_bytes() for path in (tmp_path / "sessions").glob("*.jsonl")].count(
        True
    ) == 1
    assert (replayed[0], replayed[1]["same"]) == (False, True)
    assert len(list((tmp_path / "sessions").glob("*.jsonl"))) == 2


READER = """\
import asyncio, json, os, sys
from mcp import Client, StdioServerParameters

async def main(command):
    server = StdioServerParameters(command=command[0], args=command[1:], env=dict(os.environ))
    async with Client(server) as client:
        listed = await client.list_resources()
        print(listed.model_dump_json(by_alias=True))
        for resource in listed.resources:
            for uri in (resource.uri, f"{resource.uri}/7"):
                print((await client.read_resource(uri)).model_dump_json(by_alias=True), flush=True)

asyncio.run(main(json.loads(sys.argv[1])))
"""


async def test_resources_of_hostile_recordings_are_marked_redacted_and_short(tmp_path: Path) -> None:
    for number, text in enumerate(hostile.TEXTS.values()):
        hostile.recording(tmp_path / f"{number}.jsonl", text)
    async with asyncio.timeout(90):
        reader = await asyncio.create_subprocess_exec(
            *(str(make.PEERS / "venv" / "bin" / "python"), "-c", READER),
            json.dumps([PYTHON, "-m", "mcpspy", "mcp", "--dir", str(tmp_path)]),
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            stdout=asyncio.subprocess.PIPE,
            limit=1 << 24,
        )
        out, _ = await reader.communicate()

    listed, *read = [json.loads(line) for line in out.splitlines()]
    assert len(read) == 2 * len(hostile.TEXTS)
    assert all(
        re.fullmatch(
            "mcpspy://[0-9]+ [0-9]+ session without a time, ended",
            f"{one['uri']} {one['name']} {one['title']}",
        )
        for one in listed["resources"]
    )
    assert not [secret for secret in hostile.SECRETS if secret in out.decode()]
    for content in (each["contents"][0] for each in read):
        fence = content["_meta"]["mcpspy/provenance"]["fence"]
        summary, mark, *inside = content["text"].splitlines()
        assert re.fullmatch(r"[a-z0-9 ,:;→#()=\[\]\"-]*", summary, re.IGNORECASE)
        assert mark.startswith(f"<recorded {fence}>")
        assert inside.count(f"</recorded {fence}>") == 1
        # The environment of the server has no tokenizer: it estimates.
        assert estimated_tokens(features(content["text"])) <= 1_500


AGENT = """\
import asyncio, json, os, sys
from mcp import Client, StdioServerParameters

async def main(command, sessions):
    server = StdioServerParameters(command=command[0], args=command[1:], env=dict(os.environ))
    async with Client(server) as client:
        for session in sessions:
            explained = await client.call_tool("explain", {"session": session})
            facts = explained.structured_content
            line = next(iter(facts["lines"]), 2)
            quoted = await client.call_tool("read", {"session": session, "line": line})
            answers = [[each.content[0].text, each.structured_content] for each in (explained, quoted)]
            print(json.dumps([(facts["causes"] or facts["observations"])[0], answers]))

asyncio.run(main(*map(json.loads, sys.argv[1:])))
"""


async def test_a_scripted_agent_finds_every_seeded_fault_in_two_calls_and_4000_tokens() -> None:
    command = [PYTHON, "-m", "mcpspy", "mcp", "--dir", str(HERE)]
    sessions = [str(HERE / f"{name}.jsonl") for name in FAULTS]
    async with asyncio.timeout(90):
        agent = await asyncio.create_subprocess_exec(
            *(str(make.PEERS / "venv" / "bin" / "python"), "-c", AGENT),
            *(json.dumps(command), json.dumps(sessions)),
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            stdout=asyncio.subprocess.PIPE,
        )
        out, _ = await agent.communicate()

    found = [json.loads(line) for line in out.splitlines()]
    assert [cause for cause, _ in found] == [fault.cause for fault in FAULTS.values()]
    for _, answers in found:
        forms = zip(*((text, json.dumps(structured)) for text, structured in answers), strict=True)
        assert max(sum(map(count_tokens, texts)) for texts in forms) <= 4_000


async def test_over_http_the_token_that_mcpspy_generates_is_printed_and_accepted(tmp_path: Path) -> None:
    async with asyncio.timeout(90), serving(tmp_path) as (url, header):
        assert re.fullmatch(r"Bearer [\w-]{32}", header)
        assert await status(url, Authorization=header) not in (401, 403, 421)
        assert await status(url, Authorization=header[:-1]) == 401
