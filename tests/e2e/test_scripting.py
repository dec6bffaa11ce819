"""The examples of docs/scripting.md, run for the SDK's client in front of real servers, on stdio and over HTTP."""

from __future__ import annotations

import asyncio
import re
import sys
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import mcpspy
from tests.e2e.conftest import SECONDS
from tests.e2e.driving import Driven
from tests.e2e.test_http import SERVERS, serving
from tests.e2e.test_intercept import driven as driven_on_stdio
from tests.e2e.test_intercept_http import driven as driven_over_http

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from tests.e2e.conftest import Peers, Read

stdio, http = driven_on_stdio, driven_over_http

PAGE = Path(__file__).parents[2] / "docs" / "scripting.md"

EXAMPLES = dict(re.findall(r"```python\n# (\w+\.py)\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL))

EVERYTHING = ("mcp-server-everything", "stdio")


def script(peers: Peers, name: str) -> tuple[str, str]:
    """Write an example into the client's folder; return the option for it."""
    (peers.folder / name).write_text(EXAMPLES[name], encoding="utf-8")
    return "--script", name


def actions(read: Read) -> list[tuple[Any, ...]]:
    """Return what scripts did, each with the script and the sender of the message."""
    fields = [note.fields for note in read.notes("rule")]
    return [(each["action"], each.get("script"), each.get("from")) for each in fields]


def test_the_page_has_these_examples() -> None:
    assert set(EXAMPLES) == {"guard.py", "shout.py", "inventory.py", "sales.py"}


@pytest.mark.parametrize("mode", ["legacy", "2026-07-28"])
async def test_the_examples_run_on_stdio_before_the_sdk_server(
    mode: str, stdio: Callable[..., Any], peers: Peers
) -> None:
    options = [*script(peers, "guard.py"), *script(peers, "shout.py"), *script(peers, "inventory.py")]
    async with stdio(*options, "--script-option", "limit=2", mode=mode) as client:
        got = await calls(client)
        assert await client.leave() == "sdk-peer: ready\n"

    check(got)
    (read,) = await peers.recorded("r")
    check_notes(read)


@asynccontextmanager
async def over_http(
    peers: Peers, start: Callable[..., Any], mode: str, *options: str
) -> AsyncIterator[Driven]:
    server = "peer" if mode == "legacy" else "peer-json"
    with serving(server, *SERVERS[server], peers.folder) as url:
        async with start(url, *options, mode=mode) as client:
            yield client


@pytest.mark.parametrize("mode", ["legacy", "2026-07-28"])
async def test_the_examples_run_over_http_before_the_sdk_server(
    mode: str, http: Callable[..., Any], peers: Peers
) -> None:
    options = [*script(peers, "guard.py"), *script(peers, "shout.py"), *script(peers, "inventory.py")]
    async with over_http(peers, http, mode, *options, "--script-option", "limit=2") as client:
        got = await calls(client)
        await client.leave()

    check(got)
    (read,) = await peers.recorded("r")
    check_notes(read)


async def test_a_script_that_exits_over_http_is_started_again(http: Callable[..., Any], peers: Peers) -> None:
    (peers.folder / "exits.py").write_text(
        "import os\n\ndef request(exchange):\n    if exchange.arguments.get('text') == 'exit':\n"
        "        os._exit(5)\n    if exchange.subject == 'echo':\n        exchange.tag('seen')\n",
        encoding="utf-8",
    )
    texts = ("one", "exit", "two")
    got = []

    async def play() -> None:
        async with over_http(peers, http, "2026-07-28", "--script", "exits.py") as client:
            got.extend([await client.call("echo", text=text) for text in texts])
            await client.leave()

    # The fixture compares the proxy's stderr with nothing.
    with pytest.raises(AssertionError, match=r"exits\.py: exited with code 5; 1 message forwarded unchanged"):
        await play()

    assert got == [{"text": text} for text in texts]
    (read,) = await peers.recorded("r")
    assert actions(read) == [
        ("tag", "exits.py", "client"),
        ("script", "exits.py", None),
        ("tag", "exits.py", "client"),
    ]


async def test_an_example_runs_before_server_everything(stdio: Callable[..., Any], peers: Peers) -> None:
    (peers.folder / "tags.py").write_text(
        "def response(exchange):\n    exchange.tag(exchange.status)\n"
        "def notification(message):\n    message.tag(message.method)\n"
        "def stderr(line):\n    print('heard', line)\n",
        encoding="utf-8",
    )
    options = [*script(peers, "shout.py"), "--script", "tags.py"]
    async with stdio(*options, server=EVERYTHING) as client:
        got = await client.call("echo", message="hello")
        err = await client.leave()

    assert got == {"text": "Echo: HELLO!"}
    assert "heard Starting default (STDIO) server..." in err
    (read,) = await peers.recorded("r")
    tags = [note.fields["tag"] for note in read.notes("rule") if note.fields["action"] == "tag"]
    assert tags.count("ok") >= 2
    assert "notifications/initialized" in tags


async def calls(client: Driven) -> list[dict[str, Any]]:
    texts = ("secret", "one", "two", "three")
    return [await client.call("echo", text=text) for text in texts]


def check(got: list[dict[str, Any]]) -> None:
    assert got == [
        {"error": {"code": -32000, "message": "not allowed here"}},
        {"text": "ONE!"},
        {"text": "TWO!"},
        {"tool_error": "limit reached"},
    ]


def check_notes(read: Read) -> None:
    found = actions(read)
    assert found.count(("error", "guard.py", "client")) == 1
    # A note names all scripts that did something with its message: shout.py had replaced it.
    assert found.count(("note", "shout.py, inventory.py", "client")) == 1
    assert found.count(("respond", "shout.py, inventory.py", "client")) == 1
    replaced = [script for action, script, side in found if (action, side) == ("replace", "server")]
    # guard.py is named too if it tagged the response as slow: a loaded machine may need more than its second.
    assert [names.removeprefix("guard.py, ") for names in replaced] == ["shout.py", "shout.py"]
    (listed,) = [each for each in read.exchanges("tools/list") if each.request.frame.by]
    assert listed.answer is not None


@pytest.mark.parametrize("transport", ["stdio", "http"])
async def test_repair_metrics_and_record_run_before_server_everything(
    transport: str, stdio: Callable[..., Any], http: Callable[..., Any], peers: Peers
) -> None:
    kept = peers.folder / "kept.jsonl"
    names = [word for name in ("repair", "record", "metrics") for word in ("--script", f"builtin:{name}")]
    values = ("port=0", "filter=tool:get-sum", f"file={kept}")
    options = [*names, *(word for value in values for word in ("--script-option", value))]

    async def play(client: Driven) -> dict[str, Any]:
        client.send_list()
        while "tools" not in await client.next_message():
            pass
        await client.call("echo", message="hello")
        got = await client.call("get-sum", a="2", b=3)
        await client.leave()
        return got

    if transport == "stdio":
        async with stdio(*options, server=EVERYTHING) as client:
            got = await play(client)
    else:
        with (
            serving("everything", *SERVERS["everything"], peers.folder) as url,
            pytest.raises(AssertionError, match=r"metrics: http://127\.0\.0\.1:\d+/metrics"),
        ):  # The fixture compares the proxy's stderr with nothing.
            async with http(url, *options) as client:
                got = await play(client)

    assert got == {"text": "The sum of 2 and 3 is 5."}
    (read,) = await peers.recorded("r")
    notes = [note.fields["text"] for note in read.notes("rule") if note.fields["action"] == "note"]
    assert notes == ["changed to fit the schema: arguments.a (str to int)"]
    session = mcpspy.read(kept)
    assert (session.transport, session.server) == (transport, "mcp-servers/everything 2.0.0")
    assert {each.method for each in session} == {"initialize", "tools/call"}
    assert [(each.tool, each.status) for each in session if each.tool] == [("get-sum", "ok")]


BREAKS = """
def configure(options):
    global is_breaking
    is_breaking = False

def request(exchange):
    global is_breaking
    is_breaking = exchange.arguments.get("text") == "break"

def http_request(head):
    head.set("X-Team", "blue")
    if is_breaking:
        head.set("MCP-Protocol-Version", "1999-01-01")

async def http_response(head):
    head.tag(f"{head.method} {head.status}")
"""


@pytest.mark.parametrize("mode", ["legacy", "2026-07-28"])
async def test_heads_are_changed_before_the_sdk_server(
    mode: str, http: Callable[..., Any], peers: Peers
) -> None:
    (peers.folder / "breaks.py").write_text(BREAKS, encoding="utf-8")
    async with over_http(peers, http, mode, "--script", "breaks.py") as client:
        got = [await client.call("echo", text=text) for text in ("one", "break", "two")]
        await client.leave()

    assert (got[0], got[2]) == ({"text": "one"}, {"text": "two"})
    assert "text" not in got[1]  # The server refuses the revision.
    (read,) = await peers.recorded("r")
    heads = [note.fields for note in read.notes("http")]
    changed = [note.fields for note in read.notes("rule") if note.fields["action"] == "headers"]
    tags = [note.fields["tag"] for note in read.notes("rule") if note.fields["action"] == "tag"]
    # An exchange is noted when its answer arrives, and a GET and a POST run side by side.
    assert sorted(each["http"] for each in changed) == sorted(each["http"] for each in heads)
    assert ["mcp-protocol-version", "x-team"] in [each["set"] for each in changed]
    assert "POST 400" in tags
    assert sorted(tags) == sorted(f"{each['method']} {each['status']}" for each in heads)


RECORDING = Path(__file__).parents[2] / "recordings" / "everything-sdk-legacy.jsonl"

GREETING = "Grüße, 世界 🎈"

MOCKED = """
def request(exchange):
    if exchange.arguments.get("message") == "secret":
        exchange.answer(error={"code": -32000, "message": "not allowed here"})

def response(exchange):
    if exchange.tool == "echo" and exchange.result:
        exchange.replace(result={**exchange.result, "content": [{"type": "text", "text": "changed"}]})
"""


async def mocked_calls(client: Driven) -> list[dict[str, Any]]:
    got = [await client.call("echo", message=text) for text in ("secret", GREETING)]
    await client.leave()
    return got


@pytest.mark.parametrize("transport", ["stdio", "http"])
async def test_scripts_run_before_a_mock_for_the_sdk_client(
    transport: str, stdio: Callable[..., Any], http: Callable[..., Any], peers: Peers
) -> None:
    (peers.folder / "mocked.py").write_text(MOCKED, encoding="utf-8")
    command = (
        sys.executable,
        "-m",
        "mcpspy",
        "mock",
        str(RECORDING),
        "--match=lenient",
        "--script",
        "mocked.py",
    )
    if transport == "stdio":
        async with stdio(server=command) as client:
            got = await mocked_calls(client)
    else:
        mock = await asyncio.create_subprocess_exec(
            *command, "--http", "0", cwd=peers.folder, stderr=asyncio.subprocess.PIPE
        )
        assert mock.stderr is not None
        try:
            async with asyncio.timeout(SECONDS):
                url = (await mock.stderr.readline()).decode().split()[1]
            async with http(url) as client:
                got = await mocked_calls(client)
            mock.terminate()
            async with asyncio.timeout(SECONDS):
                assert await mock.wait() == 0
        finally:
            if mock.returncode is None:
                mock.kill()
                await mock.wait()

    assert got == [{"error": {"code": -32000, "message": "not allowed here"}}, {"text": "changed"}]
