"""A bridge between a host and a server of different eras: what both get, and how the recording reads."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any

import pytest

from mcpspy.core.era import machine
from mcpspy.core.recording.decode import Note
from mcpspy.core.session.exchange import State
from mcpspy.core.session.session import Session, is_injected
from mcpspy.io.bridge import bridge as module
from mcpspy.io.bridge.bridge import Bridge, BridgeOptions
from mcpspy.io.client import ReceivedMessage, ServerAddress, ServerConnection
from mcpspy.io.client.http_exchange import ClientExchange
from mcpspy.io.recording.reader import Recording
from mcpspy.io.recording.recorder import Recorder, RecordingTarget

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from mcpspy.io.client.http import Receive

pytestmark = pytest.mark.timeout(60)

META = "io.modelcontextprotocol/"
MODERN = "2026-07-28"
ME = {f"{META}protocolVersion": MODERN, f"{META}clientCapabilities": {"elicitation": {"form": {}}}}
URL = "http://localhost:1/mcp"


class Server(ServerConnection):
    """A server that answers each request by a function."""

    is_in_session = False
    stream: str | None = None

    def __init__(self, answer: Callable[[dict[str, Any]], dict[str, Any]], recorder: Recorder) -> None:
        super().__init__(URL, None)
        self.answer = answer
        self.recorder = recorder
        self.sent: list[dict[str, Any]] = []
        self.receive: Receive | None = None
        self.numbers = iter(range(1, 100))
        self.tasks: set[asyncio.Future[None]] = set()

    def exchange_for(self, _: Any) -> ClientExchange:
        number = next(self.numbers)
        return ClientExchange(self.recorder, number, str(number), records_messages=False)

    async def send(self, data: bytes, exchange: ClientExchange | None = None) -> None:
        message = json.loads(data)
        self.sent.append(message)
        if "method" not in message or "id" not in message:
            return
        found = self.answer(message)
        if not found:
            return  # The server does not answer.
        id_ = (
            None if "error" in found else message["id"]
        )  # As many servers answer what they do not understand.
        answer = json.dumps({"jsonrpc": "2.0", "id": id_, **found}).encode()
        assert self.receive is not None
        assert exchange is not None
        status = 400 if "error" in found else 200
        request = json.dumps(message["id"])
        event = ReceivedMessage(0.0, answer, request, exchange.number, status, exchange.fields)
        task = asyncio.ensure_future(self.receive(event))
        self.tasks.add(task)

    async def close(self) -> None:
        pass


def newer(message: dict[str, Any]) -> dict[str, Any]:
    """Answer as a server of 2026-07-28 that asks once."""
    params = message.get("params", {})
    if f"{META}protocolVersion" not in params.get("_meta", {}):
        return {"error": {"code": -32022, "message": "no", "data": {"supported": [MODERN]}}}
    if message["method"] == "server/discover":
        return {
            "result": {"supportedVersions": [MODERN], "capabilities": {"tools": {}}, "resultType": "complete"}
        }
    if "inputResponses" not in params:
        form = {"method": "elicitation/create", "params": {"message": "?", "requestedSchema": {}}}
        return {"result": {"resultType": "input_required", "inputRequests": {"q": form}}}
    return {"result": {"content": [{"type": "text", "text": "done"}], "resultType": "complete"}}


def older(message: dict[str, Any]) -> dict[str, Any]:
    """Answer as a server of 2025-06-18."""
    if message["method"] == "initialize":
        info = {"name": "old", "version": "1"}
        return {
            "result": {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": info}
        }
    if f"{META}protocolVersion" in message.get("params", {}).get("_meta", {}):
        return {"error": {"code": -32000, "message": "Bad Request: Server not initialized"}}
    return {"result": {"content": [{"type": "text", "text": "done"}]}}


class World:
    """A bridge to one server, and its recording."""

    def __init__(
        self,
        path: Path,
        answer: Callable[[dict[str, Any]], dict[str, Any]],
        monkeypatch: pytest.MonkeyPatch,
        *,
        is_sse: bool = False,
    ) -> None:
        where = RecordingTarget()
        where.record = str(path)
        self.path = path
        self.written: asyncio.Queue[Any] = asyncio.Queue()
        self.recorder = Recorder(where, {"transport": "http"})
        options = BridgeOptions(ServerAddress(URL, is_sse=is_sse), "server")
        self.bridge = Bridge(options, self.recorder, lambda data: self.written.put_nowait(json.loads(data)))
        self.bridge.interception.begin()
        self.found = Server(answer, self.recorder)
        monkeypatch.setattr(module, "open_http", self.open)

    async def open(self, *_: Any, receive: Receive) -> Server:
        self.found.receive = receive
        return self.found

    async def say(self, **members: Any) -> None:
        await self.bridge.forward(json.dumps({"jsonrpc": "2.0", **members}).encode())

    async def hear(self) -> Any:
        async with asyncio.timeout(30):
            return await self.written.get()

    async def session(self) -> Session:
        """End the session. Return it as it was recorded."""
        await self.bridge.close()
        self.recorder.finish(0, None)
        return Recording(self.path).session()


async def test_a_host_with_a_handshake_uses_a_server_of_2026_07_28(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    world = World(tmp_path / "r.jsonl", newer, monkeypatch)
    params = {"protocolVersion": "2025-11-25", "capabilities": {"elicitation": {}}}
    await world.say(id=1, method="initialize", params=params)
    assert (await world.hear())["result"]["protocolVersion"] == "2025-11-25"
    await world.say(id=2, method="tools/call", params={"name": "x"})
    question = await world.hear()
    assert question["method"] == "elicitation/create"
    await world.say(id=question["id"], result={"action": "decline"})
    assert await world.hear() == {
        "jsonrpc": "2.0",
        "id": 2,
        "result": {"content": [{"type": "text", "text": "done"}]},
    }
    assert "translating: the host speaks MCP 2025-11-25, the server 2026-07-28" in capfd.readouterr().err

    session = await world.session()
    shown = [each for each in session.exchanges if not each.is_injected]
    assert [(each.request.method, each.state) for each in shown] == [
        ("initialize", State.OK),
        ("tools/call", State.OK),
        ("elicitation/create", State.OK),
    ]
    assert session.revision == "2025-11-25"
    assert (session.counts.errors, session.counts.issues, session.counts.unanswered) == (0, 0, 0)
    kept = [change for change in session.changes if change.is_kept]
    assert [is_injected(change) for change in kept] == [True, True]  # The refusal, and the question.


async def test_a_host_of_2026_07_28_uses_a_server_with_a_handshake(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = World(tmp_path / "r.jsonl", older, monkeypatch)
    await world.say(id=1, method="tools/call", params={"name": "x", "_meta": ME})
    await world.say(id=2, method="tools/call", params={"name": "y", "_meta": ME})
    answers = [await world.hear(), await world.hear()]
    assert [(each["id"], each["result"]["resultType"]) for each in answers] == [
        (1, "complete"),
        (2, "complete"),
    ]
    methods = [each["method"] for each in world.found.sent]
    assert methods[:3] == ["tools/call", "server/discover", "initialize"]
    assert methods[3:] == ["notifications/initialized", "tools/call", "tools/call"]

    session = await world.session()
    shown = [each for each in session.exchanges if not each.is_injected]
    assert [(each.request.id, each.state) for each in shown] == [("1", State.OK), ("2", State.OK)]
    assert (session.counts.errors, session.counts.unanswered) == (0, 0)
    notes = [
        each.what for each in session.changes if isinstance(each.what, Note) and each.what.kind == "rule"
    ]
    sent = [json.loads(note.fields["sent"])["params"] for note in notes if note.fields["from"] == "client"]
    assert {"name": "x"} in sent  # Without the `_meta` of 2026-07-28.


async def test_the_handshake_of_the_bridge_over_http_sse_is_recorded_with_its_response(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = World(tmp_path / "r.jsonl", older, monkeypatch, is_sse=True)
    await world.say(id=1, method="tools/call", params={"name": "x", "_meta": ME})
    assert (await world.hear())["id"] == 1
    session = await world.session()
    found = [(each.request.method, each.state, each.is_injected) for each in session.exchanges]
    assert found == [("tools/call", State.OK, False), ("initialize", State.OK, True)]
    assert session.revision == "2025-06-18"


async def test_a_server_that_never_answers_the_probe_costs_the_host_the_timeout(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    def answer(message: dict[str, Any]) -> dict[str, Any]:
        return {} if message["method"] == "server/discover" else {"error": {"code": -32000, "message": "no"}}

    monkeypatch.setattr(machine, "RESPONSE_TIMEOUT", 0.01)
    world = World(tmp_path / "r.jsonl", answer, monkeypatch)
    await world.say(id=1, method="initialize", params={"protocolVersion": "2025-11-25"})
    assert (await world.hear())["error"]["message"] == "no"
    why = "the server sent no response to server/discover within 0.01 s"
    assert why in capfd.readouterr().err
    session = await world.session()
    assert [each.state for each in session.exchanges if not each.is_injected] == [State.ERROR]
    notes = [each.what for each in session.changes if isinstance(each.what, Note)]
    assert [note.fields["text"] for note in notes if note.kind == "error"] == [why]
