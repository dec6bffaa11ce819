"""A stdio host and an HTTP server: with the bridge between them, the host gets the same messages."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, NamedTuple

import pytest

from recordings import make
from tests.e2e.test_http import received, serving

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
