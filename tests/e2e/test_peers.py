"""Every client with every server, in every era: mcpspy is not noticeable."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, NamedTuple

import pytest

from mcpspy.core.session.exchange import State
from recordings import make

if TYPE_CHECKING:
    from tests.e2e.conftest import Peers

LEGACY, MODERN = "2025-11-25", "2026-07-28"

SERVERS = {
    "everything": "mcp-server-everything stdio",
    "filesystem": "mcp-server-filesystem .",
    "memory": "mcp-server-memory",
    "peer": f"python {make.SDK_SERVER}",
}

INTRODUCTIONS = {
    "everything": "mcp-servers/everything 2.0.0",
    "filesystem": "secure-filesystem-server 0.2.0",
    "memory": "memory-server 0.6.3",
    "peer": "sdk-peer 1.0.0",
    "sdk": "sdk-client 1.0.0",
    "ts": "ts-client 1.0.0",
    "inspector": "inspector-cli 2.12.0",
}

CALLS = {
    "everything": ("trigger-long-running-operation", '{"duration":0.6,"steps":2}'),
    "filesystem": ("list_allowed_directories", "{}"),
    "memory": ("read_graph", "{}"),
    "peer": ("add", '{"a":2,"b":40}'),
}
"""A tool of each server whose result is always the same, and its arguments.

350 ms after the handshake, `everything` requests roots. A client that had exited by then could not respond.
"""


class Pair(NamedTuple):
    """A client with a server, in one of the client's modes."""

    client: str
    server: str
    mode: str

    @property
    def played(self) -> str:
        """The client's command."""
        tool, arguments = CALLS[self.server]
        if self.client == "sdk":
            script = "sdk" if self.server == "peer" else self.server
            return f"sdk.py --script {script} --mode {self.mode}"
        if self.client == "ts":
            return f"ts_client.mjs --mode {self.mode} --tool {tool} --args {arguments}"
        era = "modern" if self.mode == MODERN else self.mode
        call = f"--method tools/call --tool-name {tool} --tool-args-json {arguments}"
        return f"inspector.sh {call} --format json --protocol-era {era}"

    @property
    def served(self) -> list[str]:
        """The server's command. The SDK client gets a separate folder to write in."""
        return SERVERS[self.server].replace(" .", " {dir}" if self.client == "sdk" else " .").split()

    @property
    def refused(self) -> bool:
        """Return whether the client insists on 2026-07-28, probes first, and the server does not support it."""
        return self.mode == MODERN and self.client != "sdk" and self.server != "peer"

    @property
    def revision(self) -> str | None:
        if self.refused:
            return None
        return MODERN if self.mode == MODERN or (self.mode, self.server) == ("auto", "peer") else LEGACY

    @property
    def introduces_itself(self) -> bool:
        """Return whether the server introduces itself, by a handshake or by the modern revision."""
        return self.revision == LEGACY or (self.revision == MODERN and self.server == "peer")

    @property
    def starts(self) -> int:
        """The number of times that the client starts the server."""
        return 2 if self.client == "ts" and self.mode != "legacy" and not self.refused else 1


MODES = ("legacy", "auto", MODERN)

PAIRS = [
    Pair(("sdk", "ts", "inspector")[(s + m) % 3], server, mode)
    for s, server in enumerate(SERVERS)
    for m, mode in enumerate(MODES)
]
"""Every pair of client, server and mode. All combinations would take three times as long."""


@pytest.mark.parametrize("pair", PAIRS, ids="-".join)
async def test_a_client_receives_the_same_through_mcpspy_and_everything_is_recorded(
    pair: Pair, peers: Peers
) -> None:
    direct, spied = await asyncio.gather(
        peers.play(pair.played, *pair.served),
        peers.play(pair.played, "mcpspy", "run", "--dir", "recorded", "--", *pair.served),
    )
    assert spied == direct
    assert spied.code == (1 if pair.refused else 0)
    reads = await peers.recorded("recorded")
    assert len(reads) == pair.starts
    for read in reads:
        assert read.complaints() == []
        assert read.session.exit is not None
        assert str(read.session.client) == INTRODUCTIONS[pair.client]
    session = reads[-1].session
    assert session.revision == pair.revision
    assert str(session.server) == (INTRODUCTIONS[pair.server] if pair.introduces_itself else "None")
    if not pair.refused:
        assert len(session.exchanges) > 1


async def test_a_client_that_starts_the_command_twice_gets_two_recordings_under_one_name(
    peers: Peers,
) -> None:
    served = SERVERS["peer"].split()
    spied = await peers.play(
        "ts_client.mjs --mode auto", "mcpspy", "run", "--record", "recorded/r.jsonl", "--", *served
    )
    assert spied.code == 0
    probe, session = await peers.recorded("recorded")
    assert [probe.path.name, session.path.name] == ["r.jsonl", "r-2.jsonl"]
    assert [exchange.request.method for exchange in probe.session.exchanges] == ["server/discover"]
    assert [exchange.request.method for exchange in session.session.exchanges] == ["tools/list", "tools/call"]
    assert "r.jsonl exists; recording to" in spied.complaints


@pytest.mark.parametrize(
    ("asked", "code"),
    [
        ("--method resources/read --uri data://bytes", 0),
        ("--method prompts/get --prompt-name greet --prompt-args name=Ada", 0),
        ("--method tools/call --tool-name fail", 5),
        ("--method tools/list --format json --protocol-era auto", 0),
    ],
)
async def test_the_inspector_prints_and_exits_the_same(asked: str, code: int, peers: Peers) -> None:
    client, served = f"inspector.sh {asked}", SERVERS["peer"].split()
    direct, spied = await asyncio.gather(
        peers.play(client, *served), peers.play(client, "mcpspy", "run", "--dir", "recorded", "--", *served)
    )
    assert spied == direct
    assert spied.code == code
    (read,) = await peers.recorded("recorded")
    assert read.complaints() == []


async def test_each_of_5000_concurrent_calls_gets_its_response(peers: Peers) -> None:
    calls = 5000
    played = await peers.play(
        f"load.py --calls {calls} --at-once 200",
        "mcpspy",
        "run",
        "--dir",
        "recorded",
        "--",
        *SERVERS["peer"].split(),
    )
    assert json.loads(played.transcript) == {"calls": calls, "right": calls, "wrong": 0, "errors": 0}
    (read,) = await peers.recorded("recorded")
    assert read.complaints() == []
    echoes = [exchange for exchange in read.session.exchanges if exchange.request.subject == "echo"]
    assert len(echoes) == calls
    assert {exchange.state for exchange in echoes} == {State.OK}
