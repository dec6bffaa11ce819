"""A mock that viewers steer, with the proxy in front of it."""

from __future__ import annotations

import asyncio
import json
import socket
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import aiohttp
import pytest

from mcpspy.core.mock.steering import MockOptions
from mcpspy.core.recording.decode import Note, read_entry
from mcpspy.errors import CannotStart, UsageError
from mcpspy.io.client import ServerCommand
from mcpspy.io.control.client import AsyncControlClient, CommandRefused, find_session
from mcpspy.io.mock.live import serving_live
from mcpspy.io.mock.loader import RecordingsLoader
from mcpspy.io.serving.live_server import LiveServer
from tests.io.mock.speaking import Spoken
from tests.io.mock.test_stdio import HEADER, call, handshake

pytestmark = pytest.mark.timeout(60)


class Served(Spoken):
    """A live mock, a client of it, and a viewer."""

    path: Path
    viewer: AsyncControlClient

    def notes(self) -> list[Note]:
        entries = map(read_entry, self.path.read_bytes().splitlines()[1:])
        return [each for each in entries if isinstance(each, Note) and each.kind == "mock"]


@pytest.fixture
def recording(tmp_path: Path) -> Path:
    path = tmp_path / "r.jsonl"
    path.write_bytes(HEADER % b"x" + handshake("server") + call(1) + call(2))
    return path


@pytest.fixture(autouse=True)
def _runtime(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    folder.mkdir(mode=0o700)
    monkeypatch.setenv("MCPSPY_RUNTIME", str(folder))


@asynccontextmanager
async def served(recording: Path, real: LiveServer | None = None, port: int = 0) -> AsyncIterator[Served]:
    options = MockOptions(may_forward=real is not None)
    folder = str(recording.parent / "sessions")
    loader = RecordingsLoader([recording], (), merge=False)
    async with (
        serving_live(loader, options, port=port, folder=folder, real=real) as live,
        aiohttp.ClientSession() as client,
    ):
        await live.reading
        found = Served(None, client, live.url.removesuffix("/mcp"))  # type: ignore[arg-type]
        found.path = Path(live.path)
        found.viewer = await AsyncControlClient.open(find_session(found.path), "test")
        yield found
        await found.viewer.close()


async def test_the_outcome_of_a_request_is_noted_after_it(recording: Path) -> None:
    async with served(recording) as mock:
        await mock.begin()
        status, said = await mock.say(
            id=5, method="tools/call", params={"name": "tool", "arguments": {"n": 9}}
        )
        assert (status, said["error"]["code"]) == (200, -32603)
        notes = mock.notes()
        assert [each.fields["did"] for each in notes] == ["played", "missed"]
        assert {each.fields["client"] for each in notes} == {1}
        text = mock.path.read_text()
        assert text.index('"n": 9') < text.index('"did":"missed"') < text.index('"code":-32603')


async def test_a_viewer_steers_the_mock(recording: Path) -> None:
    async with served(recording) as mock:
        await mock.begin()
        assert (await mock.viewer.order("mock"))["clients"] == 1
        error = {"code": -32000, "message": "later"}
        state = await mock.viewer.order("mock", misses="nearest", answer={"error": error})
        assert (state["misses"], state["answers"][0]["error"]) == ("nearest", error)
        assert await mock.call(5, "tool 1") == -32000
        with pytest.raises(CommandRefused, match="no real server"):
            await mock.viewer.order("mock", misses="forward")
        notes = mock.notes()
        assert [each.fields["did"] for each in notes] == ["played", "changed", "answered"]


async def test_held_requests_wait_and_are_answered_by_the_viewer(recording: Path) -> None:
    async with served(recording) as mock:
        await mock.begin()
        await mock.viewer.order("hold", query="kind:request from:client")
        waiting = asyncio.ensure_future(mock.call(5, "tool 1"))
        events = mock.viewer.events()
        held = await anext(events)
        assert (held["event"], held["method"]) == ("held", "tools/call")
        assert not waiting.done()
        await mock.viewer.order("answer", ticket=held["ticket"], error={"code": -7, "message": "no"})
        assert await waiting == -7


async def test_a_client_that_ends_its_session_is_noted(recording: Path) -> None:
    async with served(recording) as mock:
        await mock.begin()
        async with await mock.client.delete(mock.url + "/mcp", headers=mock.session) as response:
            assert response.status == 200
        notes = mock.notes()
        assert notes[-1].fields == {"did": "left", "client": 1}


async def test_a_client_of_http_sse_is_recorded_too(recording: Path) -> None:
    async with served(recording) as mock:
        async with await mock.client.get(mock.url + "/sse") as response:
            assert await response.content.readline() == b"event: endpoint\n"
        assert [*mock.path.parent.glob("*.jsonl")] == [mock.path]


async def test_a_miss_is_passed_on_and_recorded_as_a_session(recording: Path) -> None:
    real = LiveServer(
        ServerCommand([sys.executable, "-m", "mcpspy.ui.demo.weather"]),
        "weather",
        str(recording.parent / "sessions"),
    )
    async with served(recording, real) as mock:
        await mock.begin()
        await mock.viewer.order("mock", misses="forward")
        _, said = await mock.say(
            id=5, method="tools/call", params={"name": "forecast", "arguments": {"city": "Oslo"}}
        )
        assert "Oslo" in json.dumps(said)
        notes = mock.notes()
        assert notes[-1].fields["request"] == "tools/call forecast"
        (episode,) = {*mock.path.parent.glob("*.jsonl")} - {mock.path}
        assert "Oslo" in episode.read_text()


async def test_a_port_in_use_is_one_clear_line(recording: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(CannotStart) as error:
            async with served(recording, port=port):
                pass
    assert str(error.value).endswith("Address already in use (use another port, or 0 for a free one)")


async def test_a_recording_without_a_server_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    path.write_bytes(HEADER % b"x")
    with pytest.raises(UsageError, match="contains no requests"):
        async with served(path):
            pass


async def test_a_folder_that_is_not_writable_is_refused(recording: Path) -> None:
    (recording.parent / "sessions").write_text("a file")
    with pytest.raises(CannotStart, match="cannot record to"):
        async with served(recording):
            pass
