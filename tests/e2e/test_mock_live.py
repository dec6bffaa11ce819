"""Real clients of a mock that the terminal UI serves, over HTTP and on stdio."""

from __future__ import annotations

import asyncio
import json
import shlex
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from mcpspy.core.recording.decode import Note
from mcpspy.ui.model.mock_control import MockConnection, RunningMock
from mcpspy.ui.model.mock_engine import MockSetup
from recordings import make
from tests.e2e.conftest import Read

if TYPE_CHECKING:
    from tests.e2e.conftest import Peers

pytestmark = pytest.mark.timeout(180)

SERVER = shlex.join(["python", str(make.SDK_SERVER)])

SDK1 = [str(make.PEERS / "mcp1" / "bin" / "python"), str(make.CLIENTS / "sdk1.py")]

CLIENTS = {
    "python-2": "sdk.py --script sdk --mode legacy",
    "python-2-modern": "sdk.py --script sdk --mode auto",
    "python-1": "sdk1.py",
    "typescript": 'ts_client.mjs --mode legacy --tool add --args {"a":1,"b":2}',
}

RECORDINGS = {"python-2": "peer-sdk-legacy", "python-2-modern": "peer-sdk-auto"}
"""The recording of a client itself; the others get responses of another one's, and new episodes."""


class Served:
    """A mock that is serving, and a viewer that steers it."""

    def __init__(self, mock: RunningMock, peers: Peers) -> None:
        self.mock = mock
        self.viewer = MockConnection(mock.path, lambda _held, _why: None)
        self._peers = peers

    async def play(self, client: str) -> dict[str, str]:
        """Run a client over HTTP and on stdio; return what it printed."""
        ways = {"http": [self.mock.url], "stdio": ["mcpspy", *self.mock.command[-4:]]}
        assert ways["stdio"][1] == "bridge"
        played = {way: await self._peers.play(client, *target) for way, target in ways.items()}
        assert {each.code for each in played.values()} == {0}, played
        return {way: each.transcript for way, each in played.items()}


Serving = Callable[..., AbstractAsyncContextManager[Served]]
"""Takes the name of a recording and the real server."""


@pytest.fixture
def serving(peers: Peers, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Serving:
    if not (make.PEERS / "mcp1").is_dir():
        pytest.fail("the peers are not installed: run make peers", pytrace=False)
    peers._commands["sdk1.py"] = SDK1
    for name, value in make.environment(tmp_path).items():
        monkeypatch.setenv(name, value)

    @asynccontextmanager
    async def served(recording: str, server: str = "") -> AsyncIterator[Served]:
        path = make.HERE / f"{recording}.jsonl"
        setup = MockSetup(recording=str(path), folder=str(tmp_path / "mocks"), server=server)
        mock = RunningMock(setup)
        await mock.start()
        found = Served(mock, peers)
        watching = asyncio.ensure_future(found.viewer.keep(lambda: True))
        try:
            yield found
        finally:
            watching.cancel()
            await asyncio.gather(watching, return_exceptions=True)
            await mock.stop()

    return served


def notes(path: Path) -> list[Note]:
    return Read.of(path).notes("mock")


@pytest.mark.parametrize("client", CLIENTS)
async def test_a_client_gets_the_same_as_from_the_server_with_new_episodes(
    client: str, serving: Serving, peers: Peers
) -> None:
    direct = await peers.play(CLIENTS[client], *shlex.split(SERVER))
    async with serving(RECORDINGS.get(client, "peer-sdk-legacy"), SERVER) as served:
        await served.viewer.steer(misses="forward")
        assert await served.play(CLIENTS[client]) == {"http": direct.transcript, "stdio": direct.transcript}
    did = [note.fields["did"] for note in notes(served.mock.path)]
    assert "played" in did
    if client in ("python-1", "typescript"):
        assert "forwarded" in did
        episodes = [path for path in served.mock.path.parent.glob("*.jsonl") if path != served.mock.path]
        assert episodes
        assert all(Read.of(path).exchanges("tools/call") for path in episodes)
    assert Read.of(served.mock.path).complaints() == []


async def test_a_miss_and_an_injected_error_reach_the_clients(serving: Serving) -> None:
    add = CLIENTS["typescript"]
    async with serving("peer-sdk-legacy") as served:
        for transcript in (await served.play(add)).values():
            error = json.loads(transcript)["tools/call add"]["error"]
            assert error["code"] == -32603
            assert "nearest: tools/call add differs at /params/arguments/" in error["message"]
        (number,) = {each.fields["nearest"] for each in notes(served.mock.path) if "nearest" in each.fields}
        error = {"code": -32050, "message": "out of order"}
        await served.viewer.steer(match="nearest", answer={"interaction": number, "error": error})
        for transcript in (await served.play(add)).values():
            assert json.loads(transcript)["tools/call add"]["error"]["code"] == -32050
    assert [
        note.fields["did"] for note in notes(served.mock.path) if "add" in note.fields.get("request", "")
    ] == [
        "missed",
        "missed",
        "answered",
        "answered",
    ]
