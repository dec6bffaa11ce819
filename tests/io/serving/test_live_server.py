"""A live server behind a mock: a fake connection, and a client with requests that were not recorded."""

from __future__ import annotations

import asyncio
import json
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any

import pytest

from mcpspy.errors import CannotStart
from mcpspy.io.client import (
    ConnectionEnded,
    ExchangeLost,
    ExchangeRefused,
    ReceivedMessage,
    ServerCommand,
    ServerConnection,
)
from mcpspy.io.client.base import INITIALIZE_ID, ServerAddress
from mcpspy.io.recording.reader import Recording
from mcpspy.io.serving import live_server as module
from mcpspy.io.serving.live_server import LiveServer, LiveServerConnection, LiveServerThread

if TYPE_CHECKING:
    from pathlib import Path

    from mcpspy.io.client import ServerTarget
    from mcpspy.io.recording.recorder import Recorder

pytestmark = pytest.mark.timeout(60)

HELLO = b'{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25"}}'


def line(**members: Any) -> bytes:
    return json.dumps({"jsonrpc": "2.0", **members}).encode()


class Server(ServerConnection):
    """Responds as configured, and stores the messages it gets."""

    def __init__(self, answers: dict[str, list[Any]]) -> None:
        super().__init__("the server", None)
        self.sent: list[Any] = []
        self.answers = answers
        self.is_closed = False

    async def send(self, data: bytes) -> None:
        message = json.loads(data)
        self.sent.append(message)
        for event in self.answers.get(message.get("method", ""), []):
            self._enqueue(event(message) if callable(event) else event)

    async def close(self) -> None:
        self.is_closed = True
        self._enqueue(ConnectionEnded(0.0, 0))


def answer(message: Any) -> ReceivedMessage:
    return ReceivedMessage(0.0, line(id=message["id"], result={"said": "new"}), None)


READY: dict[str, list[Any]] = {"initialize": [answer], "tools/call": [answer]}


class World:
    """The messages that a client receives, and the server behind it."""

    def __init__(self) -> None:
        self.server = Server(dict(READY))
        self.received: asyncio.Queue[Any] = asyncio.Queue()
        self.connected = 0
        self.refuses: str | None = None
        self.real_server = LiveServerConnection(
            LiveServer(ServerCommand(["server"]), "server", None), self.hear
        )

    def hear(self, data: bytes) -> None:
        self.received.put_nowait(json.loads(data))

    async def connect(self, _target: ServerTarget, _recorder: Recorder | None) -> ServerConnection:
        self.connected += 1
        if self.refuses is not None:
            raise CannotStart(self.refuses)
        return self.server


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> World:
    world = World()
    monkeypatch.setattr(module, "connect", world.connect)
    return world


async def test_the_clients_handshake_is_repeated_once_with_the_real_server(world: World) -> None:
    for id in (5, 6):  # noqa: A001
        world.real_server.send(line(id=id, method="tools/call"), HELLO)
        assert await world.received.get() == {"jsonrpc": "2.0", "id": id, "result": {"said": "new"}}
    methods = [message["method"] for message in world.server.sent]
    assert methods == ["initialize", "notifications/initialized", "tools/call", "tools/call"]
    assert world.server.sent[0]["params"] == {"protocolVersion": "2025-11-25"}
    assert world.connected == 1
    await world.real_server.close()
    assert world.server.is_closed


async def test_a_client_of_2026_needs_no_handshake(world: World) -> None:
    world.real_server.send(line(id=5, method="tools/call"), None)
    assert (await world.received.get())["id"] == 5
    assert [message["method"] for message in world.server.sent] == ["tools/call"]
    await world.real_server.close()


@pytest.mark.parametrize(
    ("event", "why"),
    [
        (lambda m: ExchangeRefused(0.0, json.dumps(m["id"]), 1, 500, "HTTP 500"), "HTTP 500"),
        (lambda m: ExchangeLost(0.0, json.dumps(m["id"]), 1, "the stream broke"), "the stream broke"),
        (ConnectionEnded(0.0, 3, why="it exited with 3"), "the server: it exited with 3"),
    ],
)
async def test_a_request_without_a_response_gets_an_error_with_the_reason(
    event: Any, why: str, world: World
) -> None:
    world.server.answers["tools/call"] = [event]
    world.real_server.send(line(id=5, method="tools/call"), HELLO)
    said = await world.received.get()
    assert (said["id"], said["error"]["code"]) == (5, -32603)
    assert said["error"]["message"].endswith(why)
    await world.real_server.close()


async def test_an_http_error_without_an_id_is_the_answer_of_its_request(world: World) -> None:
    world.server.answers["tools/call"] = [
        ReceivedMessage(0.0, line(id=None, error={"code": -32602, "message": "no"}), "5", 1, 400)
    ]
    world.real_server.send(line(id=5, method="tools/call"), None)
    said = await world.received.get()
    assert (said["id"], said["error"]["code"]) == (5, -32602)
    await world.real_server.close()


@pytest.mark.parametrize(
    ("event", "why"),
    [
        (
            ReceivedMessage(
                0.0, line(id=json.loads(INITIALIZE_ID), error={"code": -1, "message": "go away"})
            ),
            "refused initialize: go away",
        ),
        (
            ExchangeRefused(0.0, INITIALIZE_ID, 1, 401, "HTTP 401 Unauthorized"),
            "the server: HTTP 401 Unauthorized",
        ),
        (ConnectionEnded(0.0, 1), "ended before it answered initialize; its last output: sorry"),
    ],
)
async def test_a_failed_handshake_answers_all_pending_requests_with_an_error(
    event: Any, why: str, world: World
) -> None:
    world.server.answers["initialize"] = [event]
    world.server.last_words.append("sorry")
    world.real_server.send(line(id=5, method="tools/call"), HELLO)
    world.real_server.send(line(id=6, method="tools/call"), HELLO)
    said = [await world.received.get() for _ in range(2)]
    assert [message["id"] for message in said] == [5, 6]
    assert all(message["error"]["message"].endswith(why) for message in said)


async def test_a_server_that_cannot_be_reached_is_tried_again_for_the_next_request(world: World) -> None:
    world.refuses = "cannot start server: no such file"
    world.real_server.send(line(id=5, method="tools/call"), None)
    assert "no such file" in (await world.received.get())["error"]["message"]
    world.refuses = None
    world.real_server.send(line(id=6, method="tools/call"), None)
    assert "result" in await world.received.get()
    await world.real_server.close()


async def test_a_server_that_must_not_restart_gives_the_reason_of_its_end_again(world: World) -> None:
    real = LiveServer(ServerCommand(["server"]), "server", None, failure="mcpspy: failed", restarts=False)
    behind = LiveServerConnection(real, world.hear)
    world.server.answers["tools/call"] = [ConnectionEnded(0.0, 3, why="ended with exit code 3")]
    world.server.last_words.append("out of tea")
    for id in (5, 6):  # noqa: A001
        behind.send(line(id=id, method="tools/call"), None)
        said = await world.received.get()
        assert (said["id"], said["error"]["message"]) == (
            id,
            "mcpspy: failed: the server: ended with exit code 3; its last output: out of tea",
        )
    assert world.connected == 1
    await behind.close()


async def test_a_bug_in_mcpspy_gets_an_error_response_too(world: World) -> None:
    world.server.answers["tools/call"] = [lambda _: "no event"]
    world.real_server.send(line(id=5, method="tools/call"), None)
    world.real_server._take = None  # type: ignore[method-assign, assignment] # Acts like a bug.
    assert "a bug in mcpspy" in (await world.received.get())["error"]["message"]


@pytest.mark.parametrize(
    ("target", "transport", "upstream"),
    [
        (ServerCommand(["node", "server.js"]), "stdio", None),
        (ServerAddress("http://localhost:1/mcp"), "http", "http://localhost:1/mcp"),
    ],
)
def test_the_real_server_is_recorded_as_a_separate_session(
    target: ServerTarget, transport: str, upstream: str | None, tmp_path: Path
) -> None:
    recorder = LiveServer(target, "weather", str(tmp_path / "more.jsonl")).recorder()
    assert recorder is not None
    recorder.finish(0, None)
    header = Recording(tmp_path / "more.jsonl").header
    assert (header.transport, header.upstream, header.name) == (transport, upstream, "weather")
    assert header.command == (["node", "server.js"] if transport == "stdio" else None)


def test_a_caller_without_a_loop_is_served_by_a_thread(world: World) -> None:
    received: SimpleQueue[bytes] = SimpleQueue()
    behind = LiveServerThread(LiveServer(ServerCommand(["server"]), "server", None), received.put)
    behind.send(line(id=5, method="tools/call"), HELLO)
    assert json.loads(received.get(timeout=10))["result"] == {"said": "new"}
    behind.close()
    assert world.server.is_closed
