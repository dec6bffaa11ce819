"""Real clients started by `mcpspy exec`, with a TLS server: they get the same as directly, and it is recorded."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from mcpspy.core.session.exchange import State
from recordings import make
from tests.e2e.conftest import SECONDS, Peers
from tests.e2e.test_http import LEGACY, MODERN, flaws, serving
from tests.io.forward.conftest import Pki, make_pki

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.e2e.conftest import Played, Read

NODE = make.PEERS / "node24" / "node_modules" / ".bin" / "node"
"""A Node.js whose fetch() takes a proxy from the environment."""

COMMANDS = {
    "sdk.py": make.COMMANDS["sdk.py"],
    "ts_client.mjs": [str(NODE), str(make.CLIENTS / "ts_client.mjs")],
}


@pytest.fixture(scope="module")
def pki(tmp_path_factory: pytest.TempPathFactory) -> Pki:
    return make_pki(tmp_path_factory.mktemp("pki"))


@pytest.fixture(scope="module")
def url(pki: Pki, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Run a server with a certificate of the private CA."""
    if not (make.PEERS / "installed").exists():
        pytest.fail("the peers are not installed: run make peers", pytrace=False)
    server = make.SDK_SERVER.with_name("tls_server.py")
    command = f"python {server} {pki.certificate} {pki.key} --port"
    with serving("tls", command, "/mcp", tmp_path_factory.mktemp("server")) as plain:
        yield plain.replace("http://", "https://")


@pytest.fixture
def direct(pki: Pki, tmp_path: Path) -> Peers:
    """Start clients that trust the private CA."""
    trusting = {"SSL_CERT_FILE": str(pki.authority), "NODE_EXTRA_CA_CERTS": str(pki.authority)}
    return Peers(tmp_path, COMMANDS, make.environment(tmp_path) | trusting)


def through(folder: str, pki: Pki, tmp_path: Path) -> Peers:
    """Start clients with `mcpspy exec`, recording into a folder."""
    spying = ["mcpspy", "exec", "--cacert", str(pki.authority), "--record", f"{folder}/", "--"]
    commands = {name: [*spying, *command] for name, command in COMMANDS.items()}
    return Peers(tmp_path, commands, make.environment(tmp_path))


def without_note(played: Played) -> Played:
    """Return the output of a client, without the line about the recording."""
    lines = played.complaints.splitlines()
    kept = [line for line in lines if not line.startswith("mcpspy: https://")]
    assert len(kept) == len(lines) - 1
    return played._replace(complaints="\n".join(kept))


@pytest.mark.parametrize("mode", ["legacy", MODERN])
async def test_a_client_of_either_era_receives_the_same_and_its_recording_can_be_mocked(
    mode: str, url: str, pki: Pki, direct: Peers, tmp_path: Path
) -> None:
    spying = through("recorded", pki, tmp_path)
    client = f"sdk.py --script sdk --mode {mode} --transport http"
    plain, spied = await asyncio.gather(direct.play(client, url), spying.play(client, url))
    assert without_note(spied) == plain
    assert plain.code == 0
    (read,) = await spying.recorded("recorded")
    assert read.header.upstream == url
    assert read.session.revision == (LEGACY if mode == "legacy" else MODERN)
    assert flaws(read) == ({"answered after it was cancelled"} if mode == "legacy" else set())
    assert (
        State.CANCELLED in states(read)
        if mode == MODERN
        else {State.LATE_OK, State.LATE_ERROR} & set(states(read))
    )
    recording = str(read.path)
    if mode == MODERN:
        async with direct.mocked(recording) as mocked:
            assert (await direct.play(client, mocked)).transcript == plain.transcript
    else:
        replay = ("replay", recording, "--no-record", "--upstream", url, "--cacert", pki.authority)
        output, code = await ran(tmp_path, "mcpspy", *replay)
        assert code == 0, output


async def ran(folder: Path, *command: object) -> tuple[str, int]:
    """Run a command to its end. Return its output and exit code."""
    process = await asyncio.create_subprocess_exec(
        *map(str, command),
        cwd=folder,
        env=make.environment(folder),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    async with asyncio.timeout(SECONDS):
        output, _ = await process.communicate()
    return output.decode(), process.returncode or 0


def states(read: Read) -> set[State]:
    return {exchange.state for exchange in read.session.exchanges}


async def test_a_client_on_the_typescript_sdk_is_recorded_where_node_heeds_the_environment(
    url: str, pki: Pki, tmp_path: Path
) -> None:
    spying = through("ts", pki, tmp_path)
    typescript = "ts_client.mjs --mode auto"
    spied = without_note(await spying.play(typescript, url))
    assert (spied.complaints, spied.code, '"hi"' in spied.transcript) == ("", 0, True)
    (read,) = await spying.recorded("ts")
    assert str(read.session.client) == "ts-client 1.0.0"
    assert flaws(read) == set()
    assert read.exchanges("tools/call")[-1].state is State.OK
