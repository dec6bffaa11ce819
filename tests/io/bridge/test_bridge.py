"""A bridge between lines and a fake connection; `tests/e2e/test_bridge.py` uses real peers at both ends."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import pytest

from mcpspy.errors import CannotStart
from mcpspy.io.bridge import bridge as module
from mcpspy.io.bridge.bridge import MAX_QUEUED, Bridge, BridgeOptions
from mcpspy.io.client import (
    ConnectionEnded,
    ExchangeLost,
    ExchangeRefused,
    ReceivedMessage,
    ServerAddress,
    ServerConnection,
)
from mcpspy.io.client.base import INITIALIZE_ID
from mcpspy.io.client.http import Receive
from mcpspy.io.client.http_exchange import ClientExchange
from mcpspy.io.extras import install_command
from mcpspy.io.http.request import HttpRequest, Response
from mcpspy.io.http.server import accepting
from mcpspy.io.network.listener import listening, origin
from mcpspy.io.recording.reader import Recording, RecordingState
from mcpspy.io.recording.recorder import Recorder, RecordingTarget

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.timeout(60)

URL = "http://localhost:1/mcp"


def line(**members: Any) -> bytes:
    return json.dumps({"jsonrpc": "2.0", **members}).encode()


HELLO = line(id=0, method="initialize", params={"protocolVersion": "2025-11-25"})
CALL = line(id=1, method="tools/call", params={"name": "echo"})


class Server(ServerConnection):
    """Answers each method with the next configured response, and stores the messages it gets."""

    def __init__(self, answers: dict[str, list[Any]]) -> None:
        super().__init__(URL, None)
        self.is_in_session = True
        self.is_closed = False
        self.sent: list[Any] = []
        self.answers = answers
        self.receive: Receive | None = None
        self.receiving: list[asyncio.Future[None]] = []

    async def send(self, data: bytes, _: ClientExchange | None = None) -> None:
        message = json.loads(data)
        self.sent.append(message)
        waiting = self.answers.get(message.get("method", ""))
        if waiting:
            event = waiting.pop(0) if len(waiting) > 1 else waiting[0]
            self.hears(event(message) if callable(event) else event)

    def exchange_for(self, _: Any) -> ClientExchange:
        return ClientExchange(None, 1, "1")

    def hears(self, event: Any) -> None:
        """Take an event of the server; with None, it stays silent."""
        if event is None:
            return
        if isinstance(event, ReceivedMessage):
            assert self.receive is not None
            self.receiving.append(asyncio.ensure_future(self.receive(event)))
        else:
            self._enqueue(event)

    async def close(self) -> None:
        self.is_closed = True
        self._enqueue(ConnectionEnded(0.0, why="closed"))


def answer(message: Any) -> ReceivedMessage:
    return ReceivedMessage(0.0, line(id=message["id"], result={"said": message["method"]}))


class World:
    """A bridge, the servers it finds one after the other, and the messages that the host reads."""

    def __init__(self, **address: Any) -> None:
        self.servers: list[Server | CannotStart] = []
        self.found: list[Server] = []
        self.written: asyncio.Queue[Any] = asyncio.Queue()
        where = RecordingTarget()
        where.recording = False
        options = BridgeOptions(ServerAddress(URL, **address), "server")
        self.bridge = Bridge(options, Recorder(where, {}), self.write)
        self.bridge.interception.begin()

    def write(self, data: bytes) -> None:
        assert b"\n" not in data
        self.written.put_nowait(json.loads(data))

    async def open(self, *_: Any, receive: Receive) -> Server:
        server = (
            self.servers.pop(0) if self.servers else Server({"initialize": [answer], "tools/call": [answer]})
        )
        if isinstance(server, CannotStart):
            raise server
        server.receive = receive
        self.found.append(server)
        return server

    async def say(self, *lines: bytes) -> Any:
        """Send lines. Return the next messages that the host reads."""
        for each in lines:
            await self.bridge.forward(each)
        async with asyncio.timeout(30):
            return await self.written.get()


@pytest.fixture
async def world(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[World]:
    world = World()
    monkeypatch.setattr(module, "open_http", world.open)
    yield world
    await world.bridge.close()


async def test_lines_are_forwarded_verbatim_and_each_received_message_is_one_line(world: World) -> None:
    pretty = ReceivedMessage(0.0, b'{"jsonrpc":"2.0",\r\n"id":1,"result":{"n":1.50}}')
    world.servers = [Server({"tools/call": [pretty]})]
    assert await world.say(CALL) == {"jsonrpc": "2.0", "id": 1, "result": {"n": 1.5}}
    assert world.found[0].sent == [json.loads(CALL)]


async def test_an_http_error_without_an_id_answers_its_request(world: World) -> None:
    world.servers = [
        Server({"tools/call": [ReceivedMessage(0.0, line(id=None, error={"code": -1}), "1", 1, 400)]})
    ]
    assert await world.say(CALL) == {"jsonrpc": "2.0", "id": 1, "error": {"code": -1}}


@pytest.mark.parametrize(
    ("event", "why"),
    [
        (ExchangeRefused(0.0, "1", 1, 500, "HTTP 500"), f"mcpspy bridge: {URL}: HTTP 500"),
        (ExchangeLost(0.0, "1", 1, "the stream broke off"), f"mcpspy bridge: {URL}: the stream broke off"),
        (ConnectionEnded(0.0, why="the stream ended"), f"mcpspy bridge: {URL}: the stream ended"),
    ],
)
async def test_a_request_without_a_response_gets_an_error_with_the_reason(
    event: Any, why: str, world: World
) -> None:
    world.servers = [Server({"tools/call": [event]})]
    said = await world.say(CALL)
    assert (said["id"], said["error"]) == (1, {"code": -32603, "message": why})


@pytest.mark.parametrize(
    ("headers", "advice"),
    [
        (
            (),
            f"sign in with the extra oauth ({install_command('oauth')}), or send a token with --bearer-env VARIABLE",
        ),
        ((("authorization", "Bearer x"),), "the Authorization header was refused"),
    ],
)
async def test_a_server_that_wants_a_token_is_answered_with_what_to_do(
    headers: tuple[tuple[str, str], ...], advice: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = World(headers=headers)
    monkeypatch.setattr(module, "open_http", world.open)
    world.servers = [
        Server({"tools/call": [ExchangeRefused(0.0, "1", 1, 401, "HTTP 401 Unauthorized", False)]})
    ]
    error = (await world.say(CALL))["error"]
    assert error["message"] == f"mcpspy bridge: {URL}: HTTP 401 Unauthorized; {advice}"
    await world.bridge.close()


async def test_an_error_does_not_tell_the_host_the_secrets_of_the_url(world: World) -> None:
    world.bridge._address = ServerAddress("https://ada:hunter2@example.com/mcp?token=tiger99")
    lost = ExchangeLost(0.0, "1", 1, "proxy http://ada:hunter2@proxy refused")
    world.servers = [Server({"tools/call": [lost]})]

    said = await world.say(CALL)

    assert said["error"]["message"] == (
        "mcpspy bridge: https://ada:[redacted]@example.com/mcp?token=[redacted]: "
        "proxy http://ada:[redacted]@proxy refused"
    )


async def test_a_server_that_is_not_there_is_tried_again_with_the_next_line(world: World) -> None:
    world.servers = [CannotStart("cannot reach it")]
    assert (await world.say(HELLO))["error"]["message"] == "mcpspy bridge: cannot reach it"
    assert (await world.say(HELLO))["result"] == {"said": "initialize"}


async def test_a_lost_session_is_restored_silently_and_the_request_repeated(
    world: World, capfd: pytest.CaptureFixture[str]
) -> None:
    now = asyncio.get_running_loop().time() + 3600
    lost = [lambda m, at=now: ExchangeRefused(at, str(m["id"]), 1, 404, "HTTP 404", True)]
    world.servers = [Server({"initialize": [answer], "tools/call": [*lost, answer]})]
    assert (await world.say(HELLO))["id"] == 0
    assert await world.say(CALL) == {"jsonrpc": "2.0", "id": 1, "result": {"said": "tools/call"}}
    sent = [(message["method"], message.get("id")) for message in world.found[0].sent]
    again = [
        ("initialize", json.loads(INITIALIZE_ID)),
        ("notifications/initialized", None),
        ("tools/call", 1),
    ]
    assert sent == [("initialize", 0), ("tools/call", 1), *again]
    assert world.written.empty()
    assert "started a new one" in capfd.readouterr().err


async def test_a_404_with_an_error_in_it_is_a_lost_session_too(world: World) -> None:
    now = asyncio.get_running_loop().time() + 3600

    def lost(message: Any) -> ReceivedMessage:
        id = str(message["id"])  # noqa: A001
        asyncio.get_running_loop().call_soon(
            world.found[0].hears, ExchangeRefused(now, id, 1, 404, "HTTP 404 Not Found", True)
        )
        return ReceivedMessage(
            now, line(id=None, error={"code": -32600, "message": "Session not found"}), id, 1, 404
        )

    world.servers = [Server({"initialize": [answer], "tools/call": [lost, answer]})]
    await world.say(HELLO)
    assert await world.say(CALL) == {"jsonrpc": "2.0", "id": 1, "result": {"said": "tools/call"}}
    assert world.written.empty()


async def test_messages_sent_before_the_initialize_response_wait_for_the_session(world: World) -> None:
    world.servers = [Server({"tools/call": [answer]})]
    await world.bridge.forward(HELLO)
    forwarding = asyncio.ensure_future(world.bridge.forward(CALL))
    for _ in range(5):
        await asyncio.sleep(0)
    assert [message["method"] for message in world.found[0].sent] == ["initialize"]
    world.found[0].hears(ReceivedMessage(0.0, line(id=0, result={})))
    await asyncio.wait_for(forwarding, 30)
    assert [message["method"] for message in world.found[0].sent] == ["initialize", "tools/call"]


async def test_a_request_is_repeated_only_once_after_a_lost_session(world: World) -> None:
    now = asyncio.get_running_loop().time() + 3600
    world.servers = [
        Server(
            {
                "initialize": [answer],
                "tools/call": [lambda m: ExchangeRefused(now, str(m["id"]), 1, 404, "HTTP 404", True)],
            }
        )
    ]
    await world.say(HELLO)
    assert (await world.say(CALL))["error"]["message"].endswith("HTTP 404")


@pytest.mark.parametrize(
    ("event", "why"),
    [
        (
            ReceivedMessage(
                0.0, line(id=json.loads(INITIALIZE_ID), error={"code": -1, "message": "no more"})
            ),
            "refused initialize: no more",
        ),
        (ExchangeLost(0.0, INITIALIZE_ID, 1, "it is gone"), f"{URL}: it is gone"),
    ],
)
async def test_a_server_that_refuses_a_new_session_is_reported(event: Any, why: str, world: World) -> None:
    now = asyncio.get_running_loop().time() + 3600
    lost = ExchangeRefused(now, "1", 1, 404, "HTTP 404", True)
    world.servers = [Server({"initialize": [answer, event], "tools/call": [lost]})]
    await world.say(HELLO)
    assert (await world.say(CALL))["error"]["message"].endswith(why)


async def test_a_server_that_is_silent_at_a_new_session_is_given_up_and_asked_again_with_the_next_request(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "HANDSHAKE", 0.05)
    now = asyncio.get_running_loop().time() + 3600
    lost = ExchangeRefused(now, "1", 1, 404, "HTTP 404", True)
    silent = Server({"initialize": [answer, None], "tools/call": [lost]})
    world.servers = [silent]
    await world.say(HELLO)
    assert "no response to initialize within 0 s" in (await world.say(CALL))["error"]["message"]
    assert silent.is_closed
    assert (await world.say(CALL))["result"] == {"said": "tools/call"}


async def test_a_request_that_the_host_cancelled_is_not_waited_for_at_the_end(
    world: World, capfd: pytest.CaptureFixture[str]
) -> None:
    world.servers = [Server({"initialize": [answer]})]
    await world.say(HELLO)
    await world.bridge.forward(CALL)
    await world.bridge.forward(line(method="notifications/cancelled", params={"requestId": 1}))
    await asyncio.wait_for(world.bridge.drain(), module.DRAIN / 2)
    assert world.found[0].sent[-1]["params"] == {"requestId": 1}
    assert "no response" not in capfd.readouterr().err


async def test_after_a_connection_ends_the_next_repeats_the_handshake(world: World) -> None:
    world.servers = [Server({"initialize": [answer], "tools/call": [ConnectionEnded(0.0, why="gone")]})]
    await world.say(HELLO)
    assert "gone" in (await world.say(CALL))["error"]["message"]
    assert (await world.say(CALL))["result"] == {"said": "tools/call"}
    assert [server.is_closed for server in world.found] == [True, False], "the sockets of the first one"
    assert [message["method"] for message in world.found[1].sent] == [
        "initialize",
        "notifications/initialized",
        "tools/call",
    ]


class Leaving(Server):
    """Ends when it is initialized, and lets the bridge notice that."""

    async def send(self, data: bytes, _: ClientExchange | None = None) -> None:
        if self.ended is None:
            await super().send(data)
        while self.ended is not None and not self._inbox._queue.empty():  # noqa: ASYNC110 - it has no event.
            await asyncio.sleep(0)


async def test_a_server_that_ends_in_the_repeated_handshake_answers_the_request_with_an_error(
    world: World,
) -> None:
    gone = ConnectionEnded(0.0, why="gone")
    world.servers = [
        Server({"initialize": [answer], "ping": [gone]}),
        Leaving({"initialize": [answer], "notifications/initialized": [gone]}),
    ]
    await world.say(HELLO)
    await world.say(line(id=5, method="ping"))
    assert (await world.say(CALL))["error"]["message"] == f"mcpspy bridge: {URL}: gone"
    assert (await world.say(CALL))["result"] == {"said": "tools/call"}


async def test_a_failure_for_which_no_request_waits_is_a_line(
    world: World, capfd: pytest.CaptureFixture[str]
) -> None:
    lost = ExchangeLost(0.0, None, None, "the stream for the server's own messages was lost")
    world.servers = [Server({"notifications/x": [lost], "tools/call": [answer]})]
    await world.say(line(method="notifications/x"), CALL)
    assert capfd.readouterr().err == f"mcpspy: {URL}: {lost.why}\n"


async def test_a_host_that_does_not_read_keeps_the_server_waiting(world: World) -> None:
    world.bridge.pause(is_full=True)
    await world.bridge.forward(CALL)
    for _ in range(10):  # More steps of the loop than receiving takes.
        await asyncio.sleep(0)
    (receiving,) = world.found[0].receiving
    assert not receiving.done()
    world.bridge.pause(is_full=False)
    await asyncio.wait_for(receiving, 30)
    assert (await world.written.get())["id"] == 1


async def test_the_end_waits_for_answers_but_not_for_subscriptions(
    world: World, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    world.servers = [Server({})]
    await world.bridge.forward(line(id=1, method="subscriptions/listen"))
    await world.bridge.drain()
    await world.bridge.forward(CALL.replace(b'"id": 1', b'"id": 2'))
    draining = asyncio.ensure_future(world.bridge.drain())
    await asyncio.sleep(0)
    assert not draining.done()
    world.found[0].hears(ReceivedMessage(0.0, line(id=2, result={})))
    await asyncio.wait_for(draining, 30)
    monkeypatch.setattr(module, "DRAIN", 0.01)
    await world.bridge.forward(CALL.replace(b'"id": 1', b'"id": 3'))
    await world.bridge.drain()
    assert "1 requests still had no response" in capfd.readouterr().err


@asynccontextmanager
async def forgetful(sessions: list[str]) -> AsyncIterator[str]:
    """Run a server that forgets its first session after the handshake."""

    async def handle(request: HttpRequest) -> Response:
        message = json.loads(b"".join([piece async for piece in request.chunks()]) or b"{}")
        if message.get("method") == "initialize":
            sessions.append(f"s{len(sessions)}")
            result = {"protocolVersion": "2025-11-25", "capabilities": {}, "serverInfo": {}}
            answer = result_of(message, result)
            answer.headers["Mcp-Session-Id"] = sessions[-1]
            return answer
        if request.method != "POST":
            return Response(405)
        if "id" not in message:
            return Response(202)
        if request.headers["Mcp-Session-Id"] == "s0":
            return Response(404)
        return result_of(message, {"said": "yes"})

    def result_of(message: dict[str, Any], result: object) -> Response:
        body = json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}).encode()
        return Response(200, body, "application/json")

    with listening("127.0.0.1", 0, "-") as listener:
        async with accepting(handle, listener):
            yield origin("127.0.0.1", listener) + "/mcp"


async def test_the_program_outlives_a_session_and_ends_with_stdin(tmp_path: Path) -> None:
    sessions: list[str] = []
    async with forgetful(sessions) as url:
        command = ("-m", "mcpspy", "bridge", "--upstream", url, "--record", str(tmp_path / "r.jsonl"))
        process = await asyncio.create_subprocess_exec(
            sys.executable, *command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        initialized = line(method="notifications/initialized")
        said, complaints = await asyncio.wait_for(
            process.communicate(b"\n".join((HELLO, initialized, CALL, b"")) + b"\n"), 20
        )
    assert [json.loads(each)["id"] for each in said.splitlines()] == [0, 1]
    assert json.loads(said.splitlines()[1])["result"] == {"said": "yes"}
    assert sessions == ["s0", "s1"]
    assert b"started a new one" in complaints
    assert process.returncode == 0
    recording = Recording(tmp_path / "r.jsonl")
    assert recording.state is RecordingState.ENDED
    assert recording.header.upstream == url


async def test_a_host_waits_while_the_server_does_not_answer_its_initialize(tmp_path: Path) -> None:
    taken = asyncio.Event()

    async def handle(request: HttpRequest) -> Response:
        assert [piece async for piece in request.chunks()]
        taken.set()
        await asyncio.Event().wait()
        return Response()

    with listening("127.0.0.1", 0, "-") as listener:
        async with accepting(handle, listener):
            url = origin("127.0.0.1", listener) + "/mcp"
            process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-m", "mcpspy", "bridge", "--upstream", url, "--no-record"),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
            )
            assert process.stdin is not None
            process.stdin.write(HELLO + b"\n")
            await asyncio.wait_for(taken.wait(), 20)
            filler = line(method="notifications/x", params={"text": "x" * (1 << 16)}) + b"\n"
            written, is_read = 0, True
            while is_read and written < 100 << 20:
                process.stdin.write(filler)
                written += len(filler)
                draining = asyncio.ensure_future(process.stdin.drain())
                is_read = bool((await asyncio.wait((draining,), timeout=1))[0])
            assert written < 8 * MAX_QUEUED
            process.kill()
            await process.wait()
            await asyncio.gather(draining, return_exceptions=True)
