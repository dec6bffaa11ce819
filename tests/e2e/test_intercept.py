"""A real client whose messages are delayed, dropped, answered, edited, held and injected: the results in its code."""

from __future__ import annotations

import asyncio
import json
import sys
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from recordings import make
from tests.e2e.driving import TIMED_OUT, Driven, all_answered, answered, next_of, noted, reached

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from tests.e2e.conftest import Peers

SERVER = ("python", str(make.SDK_SERVER))

BROKEN = (sys.executable, "-I", "-S", str(Path(__file__).parents[1] / "servers" / "broken.py"))
"""A server that answers everything with `fine`, except tools that make a mistake."""


@pytest.fixture
def driven(peers: Peers, runtime: Path) -> Callable[..., Any]:
    """Start the client around a server under mcpspy, or a bridge to `upstream`, with options."""

    @asynccontextmanager
    async def start(
        *options: str,
        mode: str = "legacy",
        server: tuple[str, ...] = SERVER,
        upstream: str | None = None,
    ) -> AsyncIterator[Driven]:
        command = (
            "env",
            f"MCPSPY_RUNTIME={runtime}",
            "mcpspy",
            *(("run",) if upstream is None else ("bridge", "--upstream", upstream)),
            "--record",
            "r/r.jsonl",
            *options,
            *(("--", *server) if upstream is None else ()),
        )
        process = await asyncio.create_subprocess_exec(
            *("python", str(make.CLIENTS / "driven.py"), "--mode", mode, "--", *command),
            cwd=peers.folder,
            env=make.environment(peers.folder),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        try:
            client = Driven(process)
            assert "ready" in await client.next_message()
            yield client
        finally:
            if process.returncode is None:
                process.kill()
                await process.communicate()

    return start


RULES = """
[[rule]]
when = "tool:echo text:slowly from:client"
delay = "300ms"
[[rule]]
when = "tool:echo text:lost from:client"
drop = true
[[rule]]
when = "tool:echo text:refused from:client"
error = { code = -32000, message = "boom" }
[[rule]]
when = "tool:echo text:before from:client"
replace = { "/params/arguments/text" = "after" }
[[rule]]
when = "tool:add from:client"
respond = { content = [{ type = "text", text = "43" }], structuredContent = { a = 1, b = 2, total = 43 } }
[[rule]]
when = "tool:echo text:garbled from:server"
corrupt = "bad-json"
[[rule]]
when = "tool:echo text:astray from:server"
corrupt = "wrong-id"
[[rule]]
when = "tool:echo text:goodbye from:client"
disconnect = true
"""


async def test_the_client_receives_the_effect_of_each_rule(driven: Callable[..., Any], peers: Peers) -> None:
    write(peers.folder / "rules.toml", RULES)
    got = {}
    async with driven("--rules", "rules.toml") as client:
        for text in ("plain", "slowly", "lost", "refused", "before", "garbled", "astray"):
            patience = 0.5 if text in ("lost", "garbled", "astray") else 30
            got[text] = await client.call("echo", text=text, timeout=patience)
        got["add"] = await client.call("add", a=1, b=2)
        control_client = await reached(peers, "send")
        roots = await answered(control_client, "request", to="client", method="roots/list")
        got["goodbye"] = await client.call("echo", text="goodbye")
        assert [event["event"] async for event in control_client.events()][-1] == "end"
        await control_client.close()
        await client.leave()
    assert got == {
        "plain": {"text": "plain"},
        "slowly": {"text": "slowly"},
        "lost": TIMED_OUT,
        "refused": {"error": {"code": -32000, "message": "boom"}},
        "before": {"text": "after"},
        "garbled": TIMED_OUT,
        "astray": TIMED_OUT,
        "add": {"text": "43"},
        "goodbye": {"error": {"code": -32000, "message": "Connection closed"}},
    }
    assert roots["result"] == {"roots": [{"uri": "file:///home/ada/demo", "name": "demo"}]}
    (read,) = await peers.recorded("r")
    assert noted(read) == [
        ("delay", "1"),
        ("drop", "2"),
        ("error", "3"),
        ("replace", "4"),
        ("corrupt", "6"),
        ("corrupt", "7"),
        ("respond", "5"),
        ("inject", "send"),
        ("disconnect", "8"),
    ]


CHAOS = """
seed = 7
[[rule]]
when = "tool:any from:client"
probability = 0.1
error = { code = -32000, message = "chaos" }
[[rule]]
when = "tool:any from:server"
probability = 0.1
replace = { "/result/content/0/text" = "mad" }
"""


async def test_a_seed_reproduces_a_chaos_run(driven: Callable[..., Any], peers: Peers) -> None:
    write(peers.folder / "chaos.toml", CHAOS)

    async def run() -> list[dict[str, Any]]:
        async with driven("--rules", "chaos.toml", server=BROKEN) as client:
            client.send_call("any", times=200)
            got = [await client.next_message() for _ in range(200)]
            await client.leave()
        return got

    first, second = await asyncio.gather(run(), run())
    assert first == second
    kinds = [next(iter(got.items())) for got in first]
    refused = kinds.count(("error", {"code": -32000, "message": "chaos"}))
    mad = kinds.count(("text", "mad"))
    assert 20 <= refused + mad <= 60
    assert kinds.count(("text", "fine")) == 200 - refused - mad
    decisions = [[note.fields for note in read.notes("rule")] for read in await peers.recorded("r")]
    assert decisions[0] == decisions[1]
    assert len(decisions[0]) == refused + mad


async def test_a_viewer_sends_holds_and_edits_unnoticed_by_the_host(
    driven: Callable[..., Any], peers: Peers
) -> None:
    async with driven(mode="2026-07-28") as client:
        control_client = await reached(peers, "tui")
        client.send_call(
            "echo", text="load"
        )  # A message before the client's first one would select the server's era.
        assert await client.next_message() == {"text": "load"}
        client.send_call("echo", text="load", times=200)
        *texts, tools = await all_answered(control_client, 25, "tools/list")
        assert [await client.next_message() for _ in range(200)] == [{"text": "load"}] * 200
        assert [answer["result"]["content"][0]["text"] for answer in texts] == [str(n) for n in range(25)]
        assert "echo" in [tool["name"] for tool in tools["result"]["tools"]]

        await control_client.order("hold", query="tool:echo text:mine from:client")
        got = []
        for order in ("edited", "answer", "drop", "release"):
            client.send_call("echo", text=f"mine {order}", timeout=2 if order == "drop" else 30)
            held = await next_of(control_client, "held")
            if order == "edited":
                message = json.loads(held["text"])
                message["params"]["arguments"]["text"] = "yours"
                await control_client.order("release", ticket=held["ticket"], message=message)
            elif order == "answer":
                await control_client.order(
                    "answer", ticket=held["ticket"], error={"code": 7, "message": "no"}
                )
            else:
                await control_client.order(order, ticket=held["ticket"])
            got.append(await client.next_message())
        await control_client.close()
        stderr = await client.leave()
    assert got == [
        {"text": "yours"},
        {"error": {"code": 7, "message": "no"}},
        TIMED_OUT,
        {"text": "mine release"},
    ]
    assert "Failed" not in stderr
    (read,) = await peers.recorded("r")
    assert [entry for entry in noted(read) if entry[0] == "inject"] == [("inject", "tui")] * 26
    whys = [note.fields["why"] for note in read.notes("rule") if note.fields["action"] == "release"]
    assert whys == ["edited", "answered", "dropped", "accepted"]
    ids = [exchange.request.id for exchange in read.session.exchanges]
    assert len(ids) == len(set(ids))


@pytest.mark.parametrize("noise", ["pass", "stderr"])
async def test_noise_and_timeout_options_protect_a_client_from_a_misbehaving_server(
    noise: str, driven: Callable[..., Any], peers: Peers
) -> None:
    async with driven("--stdout-noise", noise, "--call-timeout", "2s", server=BROKEN) as client:
        client.send_call("ENV101")
        received = [await client.next_message()]
        if noise == "pass":
            received.append(await client.next_message())
        hung = await client.call("LIFE201")
        stderr = await client.leave()
    through = [{"received": "ValidationError"}] if noise == "pass" else []
    assert received == [*through, {"text": "fine"}]
    assert ("input_value='DEBUG: 3 stations in cache'" in stderr) == (noise == "pass")
    assert stderr.splitlines().count("DEBUG: 3 stations in cache") == (noise == "stderr")
    assert hung["error"]["code"] == -32001
    assert "LIFE201" in hung["error"]["message"]
    (read,) = await peers.recorded("r")
    assert [note.fields for note in read.notes("noise")] == ([] if noise == "pass" else [{"did": noise}])
    assert noted(read) == [("timeout", None)]


def write(path: Path, text: str) -> None:
    path.write_text(text, encoding="utf-8")
