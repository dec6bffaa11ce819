"""A stdio host and an HTTP server: with the bridge between them, the host gets the same messages."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from asyncio.subprocess import PIPE
from typing import TYPE_CHECKING, NamedTuple

import pytest

from recordings import make
from tests import forks
from tests.e2e.test_http import AUTH, received, serving

if TYPE_CHECKING:
    from tests.e2e.conftest import Peers


class Case(NamedTuple):
    """A server and its clients."""

    name: str
    command: str
    path: str
    clients: tuple[str, ...]


CASES = [
    Case(
        "sdk",
        f"python {make.SDK_SERVER} --transport streamable-http --port",
        "/mcp",
        tuple(f"sdk.py --script sdk --mode {mode}" for mode in ("legacy", "2026-07-28")),
    ),
    Case(
        "sdk-stateless",
        f"python {make.SDK_SERVER} --transport streamable-http --stateless --json --port",
        "/mcp",
        ("inspector.sh --method tools/list",),
    ),
    Case(
        "everything",
        "mcp-server-everything streamableHttp",
        "/mcp",
        ("sdk.py --script everything --mode legacy",),
    ),
    Case(
        "everything-sse",
        "mcp-server-everything sse",
        "/sse",
        ("sdk.py --script everything --mode legacy --transport sse",),
    ),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
async def test_a_host_receives_the_same_as_a_direct_client_and_everything_is_recorded(
    case: Case, peers: Peers
) -> None:
    with serving(case.name, case.command, case.path, peers.folder) as url:
        for number, client in enumerate(case.clients):
            folder = f"recorded-{number}"
            bridge = ("mcpspy", "bridge", "--upstream", url, "--record", f"{folder}/r.jsonl")
            direct, bridged = await asyncio.gather(
                peers.play(client, url), peers.play(client.replace(" --transport sse", ""), *bridge)
            )
            assert received(bridged) == received(direct)
            assert bridged.code == 0
            (read,) = await peers.recorded(folder)
            assert read.header.upstream == url
            assert len(read.session.exchanges) > 1
            assert read.session.exit is not None


BROWSER = """
import sys, urllib.request
assert b"You can close this page" in urllib.request.urlopen(sys.argv[1]).read()
"""


@pytest.mark.parametrize("options", ["", "--bound", "--undescribed"])
async def test_a_host_without_oauth_uses_a_server_that_requires_it(options: str, peers: Peers) -> None:
    browser = peers.folder / "browser.py"
    browser.write_text(BROWSER, encoding="utf-8")
    with serving("auth", f"{AUTH} {options} --port", "/mcp", peers.folder) as url:
        process = await asyncio.create_subprocess_exec(
            *(forks.command(), "bridge", "--upstream", url, "--no-record"),
            stdin=PIPE,
            stdout=PIPE,
            stderr=PIPE,
            env={
                **os.environ,
                "BROWSER": f"{sys.executable} {browser} %s",
                "XDG_CONFIG_HOME": str(peers.folder),
            },
        )
        lines: list[dict[str, object]] = [
            {"id": 0, "method": "initialize", "params": INITIALIZE},
            {"method": "notifications/initialized"},
            {"id": 1, "method": "tools/call", "params": {"name": "scopes", "arguments": {}}},
        ]
        sent = b"".join(json.dumps({"jsonrpc": "2.0", **each}).encode() + b"\n" for each in lines)
        said, complaints = await asyncio.wait_for(process.communicate(sent), 60)
    result = json.loads(said.splitlines()[1])["result"]
    assert result["structuredContent"] == {"result": ["tools"]}
    assert f"signed in to {url}" in complaints.decode()


INITIALIZE = {
    "protocolVersion": "2025-11-25",
    "capabilities": {},
    "clientInfo": {"name": "host", "version": "1"},
}
