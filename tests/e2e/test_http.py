"""Every client with every server over HTTP: nobody can tell whether mcpspy is there, and all of it is recorded."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import socket
import subprocess
import time
from collections import Counter
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, NamedTuple

import pytest

from mcpspy.core.exchange import State
from recordings import make

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.e2e.conftest import Peers, Played, Read

LEGACY, MODERN = "2025-11-25", "2026-07-28"

READY = 20
"""Seconds that a server may take until it listens; they need one."""

SERVERS = {
    "everything": ("mcp-server-everything streamableHttp", "/mcp"),
    "everything-sse": ("mcp-server-everything sse", "/sse"),
    "peer": (f"python {make.SDK_SERVER} --transport streamable-http --port", "/mcp"),
    "peer-sse": (f"python {make.SDK_SERVER} --transport sse --port", "/sse"),
}
"""Commands, to which the port is added unless it is in the environment, and endpoints."""

INTRODUCTIONS = {
    "everything": "mcp-servers/everything 2.0.0",
    "peer": "sdk-peer 1.0.0",
    "sdk": "sdk-client 1.0.0",
    "inspector": "inspector-cli 2.12.0",
}

CALLS = {
    "everything": '--tool-name trigger-long-running-operation --tool-args-json {"duration":0.6,"steps":2}',
    "peer": '--tool-name add --tool-args-json {"a":2,"b":40}',
}


class Pair(NamedTuple):
    """A client with a server, in one of the client's modes."""

    client: str
    server: str
    mode: str

    @property
    def family(self) -> str:
        return self.server.removesuffix("-sse")

    @property
    def is_sse(self) -> bool:
        """Whether the server speaks HTTP+SSE, and so does the client."""
        return self.server != self.family

    @property
    def played(self) -> str:
        """The client's command."""
        if self.client == "sdk":
            program = "sse.py" if self.is_sse else "sdk.py"
            script = "sdk" if self.family == "peer" else self.family
            return f"{program} --script {script} --mode {self.mode}"
        era = "modern" if self.mode == MODERN else self.mode
        return f"inspector.sh --method tools/call {CALLS[self.family]} --format json --protocol-era {era}"

    @property
    def refused(self) -> bool:
        """Whether the client insists on 2026-07-28, and asks first, and the server has not heard of it."""
        return self.mode == MODERN and self.client == "inspector" and self.family == "everything"

    @property
    def revision(self) -> str | None:
        if self.refused:
            return None
        return MODERN if self.mode == MODERN or (self.mode, self.family) == ("auto", "peer") else LEGACY

    @property
    def introduces_itself(self) -> bool:
        """Whether the server does: by a handshake, or by being modern."""
        return self.revision == LEGACY or (self.revision == MODERN and self.family == "peer")

    @property
    def flaws(self) -> set[str]:
        """What the peers do wrong, as their recording has to say."""
        found = set()
        if self.server == "everything" and self.mode != "legacy":
            found.add("it has no id")
        if (self.client, self.server) == ("sdk", "peer") and self.revision == LEGACY:
            found.add("answered after it was cancelled")
        return found


PAIRS = [
    Pair(client, server, mode)
    for client in ("sdk", "inspector")
    for server in SERVERS
    for mode in ("legacy", "auto", MODERN)
]


@contextmanager
def serving(name: str, folder: Path) -> Iterator[str]:
    """Run a server on a free port; yield its URL once it listens."""
    command, endpoint = SERVERS[name]
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    with (folder / f"{name}.log").open("wb") as log:
        process = subprocess.Popen(
            [*command.split(), *((str(port),) if command.endswith("--port") else ())],
            cwd=folder,
            env={**make.environment(folder), "PORT": str(port)},
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
    try:
        _wait_until_it_listens(name, process, port)
        yield f"http://127.0.0.1:{port}{endpoint}"
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def _wait_until_it_listens(name: str, process: subprocess.Popen[bytes], port: int) -> None:
    end = time.monotonic() + READY
    while time.monotonic() < end:
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
        except OSError:
            try:
                code = process.wait(0.02)
            except subprocess.TimeoutExpired:
                continue
            pytest.fail(f"{name} ended with {code} before it listened", pytrace=False)
        return
    pytest.fail(f"{name} did not listen within {READY} s", pytrace=False)


@pytest.fixture(scope="module")
def urls(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """Run all the servers; they serve one client after the other."""
    if not (make.PEERS / "installed").exists():
        pytest.fail("the peers are not installed: run make peers", pytrace=False)
    folder = tmp_path_factory.mktemp("servers")
    with ExitStack() as running:
        yield {name: running.enter_context(serving(name, folder)) for name in SERVERS}


def heard(played: Played) -> Played:
    """Return what is the same in every run: server-everything names its sessions, and when it says
    that its tools changed is a matter of timing.
    """
    text = re.sub(r"session [0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", "session …", played.transcript)
    if '"mcp-servers/everything"' in text or '"script": "everything"' in text:
        text = re.sub(r'"changed": \[[^]]*\]', '"changed": …', text)
    return played._replace(transcript=text)


def flaws(read: Read) -> set[str]:
    """Return the kinds of what is wrong with a recording."""
    return {complaint.partition(": ")[0] for complaint in read.complaints()}


@pytest.mark.parametrize("pair", PAIRS, ids="-".join)
async def test_a_client_hears_the_same_with_mcpspy_between_and_all_of_it_is_recorded(
    pair: Pair, peers: Peers, urls: dict[str, str]
) -> None:
    async with peers.proxied(urls[pair.server]) as ours:
        direct, spied = await asyncio.gather(
            peers.play(pair.played, urls[pair.server]), peers.play(pair.played, ours)
        )
    assert heard(spied) == heard(direct)
    assert spied.code == (1 if pair.refused else 0)
    (read,) = await peers.recorded("recorded")
    assert flaws(read) == pair.flaws, read.complaints()
    assert read.header.upstream == urls[pair.server]
    session = read.session
    assert session.exit is not None
    assert str(session.client) == INTRODUCTIONS[pair.client]
    assert session.revision == pair.revision
    assert str(session.server) == (INTRODUCTIONS[pair.family] if pair.introduces_itself else "None")
    ends = Counter(note.fields["http"] for note in read.notes("http-end"))
    assert set(ends.values()) == {1}, "every HTTP exchange ends once"
    assert {note.fields["http"] for note in read.notes("http")} <= set(ends)
    if not pair.refused:
        assert len(session.exchanges) > 1


@pytest.mark.parametrize("server", ["everything-sse", "peer-sse"])
async def test_a_client_of_the_other_transport_is_refused_in_the_servers_own_words(
    server: str, peers: Peers, urls: dict[str, str]
) -> None:
    client = "sdk.py --script sdk --mode legacy"
    async with peers.proxied(urls[server]) as ours:
        direct, spied = await asyncio.gather(peers.play(client, urls[server]), peers.play(client, ours))
    assert spied == direct
    assert spied.code == 1
    (read,) = await peers.recorded("recorded")
    assert [exchange.state for exchange in read.exchanges("initialize")] == [State.REFUSED]


@pytest.mark.parametrize("server", ["peer", "peer-sse"])
@pytest.mark.parametrize("mode", ["legacy", MODERN])
async def test_two_clients_that_both_count_from_1_are_kept_apart(
    server: str, mode: str, peers: Peers, urls: dict[str, str]
) -> None:
    pair = Pair("sdk", server, mode)
    async with peers.proxied(urls[server]) as ours:
        direct, *spied = await asyncio.gather(
            peers.play(pair.played, urls[server]),
            peers.play(pair.played, ours),
            peers.play(pair.played, ours),
        )
    assert spied == [direct, direct]
    (read,) = await peers.recorded("recorded")
    assert flaws(read) == pair.flaws, read.complaints()
    echoes = read.exchanges("tools/call", "echo")
    assert [exchange.state for exchange in echoes] == [State.OK] * 6
    for number in {exchange.request.id for exchange in echoes}:
        assert [exchange.request.id for exchange in echoes].count(number) == 2
