"""A real client over HTTP whose messages are edited, held and injected: the results in its code, in both eras."""

from __future__ import annotations

import asyncio
import json
import re
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import pytest

from mcpspy.core.intercept.actions import AddNote
from mcpspy.core.protocol.message import Message
from mcpspy.io.intercept.interception import InterceptionOptions
from recordings import make
from tests.e2e.conftest import SECONDS
from tests.e2e.driving import TIMED_OUT, Driven, all_answered, answered, next_of, noted, reached
from tests.e2e.test_http import SERVERS, serving

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator
    from pathlib import Path

    from mcpspy.io.control.client import AsyncControlClient
    from tests.e2e.conftest import Peers

LEGACY, MODERN = "legacy", "2026-07-28"


@pytest.fixture(scope="module")
def urls(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """Run a server that responds with events, and one that responds with JSON."""
    folder = tmp_path_factory.mktemp("servers")
    with (
        serving("peer", *SERVERS["peer"], folder) as one,
        serving("json", *SERVERS["peer-json"], folder) as two,
    ):
        yield {"events": one, "json": two}


@pytest.fixture
def driven(peers: Peers, runtime: Path) -> Callable[..., Any]:
    """Start the client in front of an HTTP server, with mcpspy between them, recording into the folder `r`."""
    environment = {**make.environment(peers.folder), "MCPSPY_RUNTIME": str(runtime)}

    @asynccontextmanager
    async def start(url: str, *options: str, mode: str = LEGACY, name: str = "r") -> AsyncIterator[Driven]:
        command = (
            "mcpspy",
            "http",
            "--upstream",
            url,
            "--listen",
            ":0",
            "--record",
            f"r/{name}.jsonl",
            *options,
        )
        spy = await asyncio.create_subprocess_exec(
            *command,
            cwd=peers.folder,
            env=environment,
            stdin=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.PIPE,
        )
        assert spy.stderr is not None
        process = None
        try:
            async with asyncio.timeout(SECONDS):
                line = (await spy.stderr.readline()).decode()
            ready = re.fullmatch(r"mcpspy: (http://\S+) -> \S+\n", line)
            assert ready is not None, line
            process = await asyncio.create_subprocess_exec(
                *("python", str(make.CLIENTS / "driven.py"), "--mode", mode, "--", ready[1]),
                cwd=peers.folder,
                env=environment,
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
            )
            client = Driven(process)
            assert "ready" in await client.next_message()
            yield client
            spy.terminate()
            async with asyncio.timeout(SECONDS):
                assert ((await spy.communicate())[1], spy.returncode) == (b"", 0)
        finally:
            for each in (process, spy):
                if each is not None and each.returncode is None:
                    each.kill()
                    await each.communicate()

    return start


RULES = (
    "params.arguments.text:slowly => delay 300ms",
    "params.arguments.text:lost => drop",
    "params.arguments.text:refused => error -32000 no {{params.arguments.text}}",
    "params.arguments.text:before => replace /params/arguments/text = after",
    'tool:add => respond {"content": [{"type": "text", "text": "43"}], "structuredContent": {"a": 1, "b": 2, "total": 43}}',
    "kind:result params.arguments.text:reply => replace /result/content/0/text = changed",
    "kind:result params.arguments.text:garbled => corrupt bad-json",
    "kind:result params.arguments.text:astray => corrupt wrong-id",
    "tool:slow => name=last disconnect",
)


@pytest.mark.parametrize(("server", "mode"), [("events", LEGACY), ("json", MODERN)])
async def test_the_client_receives_only_the_effects_of_rules_and_viewers(
    server: str, mode: str, driven: Callable[..., Any], peers: Peers, urls: dict[str, str]
) -> None:
    options = [word for rule in RULES for word in ("--rule", rule)]
    got = {}
    async with driven(urls[server], *options, "--call-timeout", "2s", mode=mode) as client:
        for text in ("plain", "slowly", "refused", "before", "reply", "garbled"):
            got[text] = await client.call("echo", text=text)
        for text in ("lost", "astray"):
            got[text] = await client.call("echo", text=text, timeout=0.5 if text == "lost" else 1.5)
        got["add"] = await client.call("add", a=1, b=2)
        got["hang"] = await client.call("hang")
        edited = await requested_and_edited(client, await reached(peers, "tui"))
        got["slow"] = await client.call("slow", steps=1)
        await client.leave()

    garbled, astray = got.pop("garbled"), got.pop("astray")
    # The SDK reports unreadable messages, and accepts any id for a response on the stream of its request.
    assert "Failed to parse" in garbled["error"]["message"]
    assert astray == ({"text": "astray"} if server == "events" else TIMED_OUT)
    timed_out = got.pop("hang")["error"]["message"]
    assert timed_out == "Request timed out: no response to tools/call hang within 2 s (mcpspy --call-timeout)"
    assert "text" not in got.pop("slow")
    assert got == {
        "plain": {"text": "plain"},
        "slowly": {"text": "slowly"},
        "refused": {"error": {"code": -32000, "message": "no refused"}},
        "before": {"text": "after"},
        "reply": {"text": "changed"},
        "lost": TIMED_OUT,
        "add": {"text": "43"},
    }
    assert edited == [{"text": "yours"}, {"text": "mine"}]
    (read,) = await peers.recorded("r")
    done = [entry for entry in noted(read) if entry[0] not in ("inject", "swallowed")]
    assert done == [
        ("delay", "1"),
        ("error", "3"),
        ("replace", "4"),
        ("replace", "6"),
        ("corrupt", "7"),
        ("drop", "2"),
        ("corrupt", "8"),
        ("respond", "5"),
        ("timeout", None),
        *[("hold", "tui"), ("release", "tui"), ("hold", "tui"), ("release", None)],
        ("disconnect", "last"),
    ]
    sent = [note.fields["sent"] for note in read.notes("rule") if note.fields.get("rule") == "4"]
    assert [json.loads(each)["params"]["arguments"] for each in sent] == [{"text": "after"}]
    assert {"text": "before"} in [
        each.request.params.get("arguments") for each in read.exchanges("tools/call")
    ]
    ids = [(exchange.request.frame.stream, exchange.request.id) for exchange in read.session.exchanges]
    assert len(ids) == len(set(ids))


async def requested_and_edited(client: Driven, control_client: AsyncControlClient) -> list[Any]:
    """Send requests in parallel with the client, edit a call, and leave with another call held. Return the outcomes."""
    client.send_call("echo", text="load", times=40)
    *texts, tools = await all_answered(control_client, 10, "tools/list")
    assert [await client.next_message() for _ in range(40)] == [{"text": "load"}] * 40
    assert [answer["result"]["content"][0]["text"] for answer in texts] == [str(n) for n in range(10)]
    assert "echo" in [tool["name"] for tool in tools["result"]["tools"]]
    await control_client.order("hold", query="tool:echo params.arguments.text:mine kind:request")
    client.send_call("echo", text="mine")
    held = await next_of(control_client, "held")
    message = json.loads(held["text"])
    message["params"]["arguments"]["text"] = "yours"
    await control_client.order("release", ticket=held["ticket"], message=message)
    got = [await client.next_message()]
    client.send_call("echo", text="mine")
    await next_of(control_client, "held")
    await control_client.close()
    return [*got, await client.next_message()]


CHAOS = (
    "tool:echo => 10% seed=7 error -32000 chaos",
    "kind:result tool:echo => 10% seed=7 replace /result/content/0/text = mad",
)


async def test_a_seed_reproduces_a_chaos_run(
    driven: Callable[..., Any], peers: Peers, urls: dict[str, str]
) -> None:
    options = [word for rule in CHAOS for word in ("--rule", rule)]
    async with driven(urls["json"], *options) as client:
        client.send_call("echo", times=200, text="fine")
        got = [await client.next_message() for _ in range(200)]
        await client.leave()
    refused = got.count({"error": {"code": -32000, "message": "chaos"}})
    mad = got.count({"text": "mad"})
    assert 20 <= refused + mad <= 60
    assert got.count({"text": "fine"}) == 200 - refused - mad

    # The same messages again, without clients, servers and time: the same decisions, byte for byte.
    (read,) = await peers.recorded("r")
    asked_for = InterceptionOptions()
    asked_for.flags = list(CHAOS)
    interceptor = asked_for.interceptor()
    again = []
    for change in read.session.changes:
        if isinstance(change.what, Message) and change.what.frame.by is None:
            frame = change.what.frame
            steps = interceptor.process(0.0, frame.side, frame.data, stream=frame.stream).steps
            again += [step.fields for step in steps if isinstance(step, AddNote)]
    assert [{**note.fields, "http": None} for note in read.notes("rule")] == [
        {**fields, "http": None} for fields in again
    ]
    assert len(again) == refused + mad


async def test_injected_and_edited_calls_have_the_headers_that_a_real_server_requires(
    driven: Callable[..., Any], peers: Peers, tmp_path: Path
) -> None:
    command = f"python {make.SDK_SERVER.with_name('mirrored_server.py')} --port"
    with serving("mirrored", command, "/mcp", tmp_path) as url:
        async with driven(url, mode=MODERN) as client:
            assert await client.call("where", region="Rome") == {"text": "Rome 0"}  # It has listed the tools.
            control_client = await reached(peers, "tui")
            params = {"name": "where", "arguments": {"region": "Köln", "floor": 4}}
            ours = await answered(control_client, "request", method="tools/call", params=params)
            await control_client.order("hold", query="kind:request")
            client.send_call("where", region="Rome")
            held = await next_of(control_client, "held")
            message = json.loads(held["text"])
            message["params"]["arguments"]["floor"] = 5
            await control_client.order("release", ticket=held["ticket"], message=message)
            edited = await client.next_message()
            await control_client.close()
            await client.leave()

    assert ours["result"]["content"][0]["text"] == "Köln 4"
    assert edited == {"text": "Rome 5"}
