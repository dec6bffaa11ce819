"""A conversation with a server, which is played."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from mcpspy.core.protocol.message import Failure, Notification, Result
from mcpspy.core.protocol.spec import META, MODERN
from mcpspy.errors import CannotStart, UsageError
from mcpspy.io.client import (
    ConnectionEnded,
    ExchangeRefused,
    InboundEvent,
    ReceivedMessage,
    ServerCommand,
    ServerConnection,
    conversation,
)
from mcpspy.io.client.conversation import LEGACY, Conversation, offered_lists

Reply = Callable[[dict[str, Any]], list[dict[str, Any] | InboundEvent]]

WELCOME = {"protocolVersion": LEGACY, "capabilities": {"tools": {}}, "serverInfo": {"name": "s"}}
DISCOVERED = {"supportedVersions": [MODERN], "capabilities": {"prompts": {}}, "resultType": "complete"}
UNKNOWN = {"code": -32601, "message": "no such method"}


class PlayedServer(ServerConnection):
    """A connection to a server that is a function: message → what it sends."""

    def __init__(self, reply: Reply, sent: list[dict[str, Any]]) -> None:
        super().__init__("a server", None)
        self._reply = reply
        self._sent = sent

    async def send(self, data: bytes) -> None:
        message = json.loads(data)
        self._sent.append(message)
        for each in self._reply(message):
            self._enqueue(_event(each, message) if isinstance(each, dict) else each)

    async def close(self) -> None:
        self._enqueue(ConnectionEnded(0.0, why="closed"))


def _event(reply: dict[str, Any], message: dict[str, Any]) -> ReceivedMessage:
    body = {"jsonrpc": "2.0", **reply}
    if "result" in reply or "error" in reply:
        body = {"id": message["id"], **body}
    return ReceivedMessage(0.0, json.dumps(body).encode(), str(message.get("id")))


def talk(
    monkeypatch: pytest.MonkeyPatch, reply: Reply, **more: Any
) -> tuple[Conversation, list[dict[str, Any]]]:
    """Return a conversation with a played server, and what it will have sent."""
    sent: list[dict[str, Any]] = []

    async def connect(*_: object) -> ServerConnection:
        return PlayedServer(reply, sent)

    monkeypatch.setattr(conversation, "connect", connect)
    return Conversation(ServerCommand(["x"]), None, 5.0, **more), sent


def legacy(message: dict[str, Any]) -> list[dict[str, Any] | InboundEvent]:
    if message.get("method") == "initialize":
        return [{"result": WELCOME}]
    return [{"error": UNKNOWN}] if "id" in message and "method" in message else []


async def test_an_older_server_gets_initialize_after_it_refused_discover(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    talking, sent = talk(monkeypatch, legacy)
    async with talking:
        offer = await talking.begin()

    assert (offer.revision, offer.info, [*offered_lists(offer)]) == (LEGACY, {"name": "s"}, ["tools/list"])
    methods = [message["method"] for message in sent]
    assert methods == ["server/discover", "initialize", "notifications/initialized"]
    assert "_meta" not in sent[1]["params"]


async def test_requests_to_a_modern_server_name_its_revision(monkeypatch: pytest.MonkeyPatch) -> None:
    talking, sent = talk(
        monkeypatch, lambda message: [{"result": DISCOVERED if "discover" in message["method"] else {}}]
    )
    async with talking:
        assert (await talking.begin()).revision == MODERN
        await talking.request("tools/call", {"name": "a"})

    assert [message["params"]["_meta"][META + "protocolVersion"] for message in sent] == [MODERN] * 2
    assert sent[1]["params"]["_meta"]["progressToken"] == sent[1]["id"]


async def test_a_server_that_discovers_late_is_modern(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(conversation, "PROBE", 0.01)
    late = {"jsonrpc": "2.0", "id": 1, "result": DISCOVERED}
    refused = {"error": {"code": -32022, "message": "modern only"}}

    def reply(message: dict[str, Any]) -> list[dict[str, Any] | InboundEvent]:
        return [late, refused] if message["method"] == "initialize" else []

    talking, _ = talk(monkeypatch, reply)
    async with talking:
        assert (await talking.begin()).revision == MODERN


async def test_a_server_that_ends_because_of_discover_is_started_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def reply(message: dict[str, Any]) -> list[dict[str, Any] | InboundEvent]:
        if message["method"] == "server/discover":
            return [ConnectionEnded(0.0, code=1, why="exited with code 1")]
        return legacy(message)

    talking, _ = talk(monkeypatch, reply)
    async with talking:
        assert (await talking.begin()).revision == LEGACY


async def test_a_required_revision_that_the_server_lacks_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    talking, _ = talk(monkeypatch, legacy)
    async with talking:
        with pytest.raises(CannotStart, match="no such method"):
            await talking.begin(MODERN)


async def test_a_refused_sign_in_does_not_lead_to_another_revision(monkeypatch: pytest.MonkeyPatch) -> None:
    talking, sent = talk(monkeypatch, lambda _: [ExchangeRefused(0.0, "1", 1, 401, "HTTP 401 Unauthorized")])
    async with talking:
        with pytest.raises(CannotStart, match="HTTP 401"):
            await talking.begin()
    assert len(sent) == 1


async def test_questions_of_the_server_are_answered(monkeypatch: pytest.MonkeyPatch) -> None:
    question = {"id": "q", "method": "roots/list"}

    def reply(message: dict[str, Any]) -> list[dict[str, Any] | InboundEvent]:
        if message.get("method") == "tools/call":
            return [question, {"id": 9, "method": "ping"}, {"id": 8, "method": "sampling/createMessage"}]
        if message.get("id") == 8:
            return [{"id": 3, "result": {"ok": True}}]
        return legacy(message)

    async def roots(params: dict[str, Any]) -> dict[str, Any]:
        return {"roots": []}

    talking, sent = talk(monkeypatch, reply, answers={"roots/list": roots})
    async with talking:
        await talking.begin()
        response = await talking.request("tools/call", {"name": "a"})

    assert isinstance(response, Result)
    assert response.result == {"ok": True}
    assert sent[1]["params"]["capabilities"] == {"roots": {}}
    answers = {message["id"]: message for message in sent if "method" not in message}
    assert answers["q"]["result"] == {"roots": []}
    assert answers[9]["result"] == {}
    assert answers[8]["error"]["code"] == -32601


async def test_questions_in_a_result_are_answered_in_the_next_request(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asks = {
        "resultType": "input_required",
        "requestState": "s1",
        "inputRequests": {"where": {"method": "elicitation/create", "params": {"message": "?"}}},
    }

    def reply(message: dict[str, Any]) -> list[dict[str, Any] | InboundEvent]:
        if message["method"] == "server/discover":
            return [{"result": DISCOVERED}]
        return [{"result": {"done": 1} if "requestState" in message["params"] else asks}]

    async def elicited(params: dict[str, Any]) -> dict[str, Any]:
        return {"action": "accept", "content": {"asked": params["message"]}}

    talking, sent = talk(monkeypatch, reply, answers={"elicitation/create": elicited})
    async with talking:
        await talking.begin()
        response = await talking.request("tools/call", {"name": "a"})

    assert isinstance(response, Result)
    assert response.result == {"done": 1}
    assert sent[2]["params"]["inputResponses"] == {"where": {"action": "accept", "content": {"asked": "?"}}}
    assert sent[2]["params"]["requestState"] == "s1"


async def test_an_answer_that_fails_is_an_error_for_the_server(monkeypatch: pytest.MonkeyPatch) -> None:
    def reply(message: dict[str, Any]) -> list[dict[str, Any] | InboundEvent]:
        if message.get("method") == "tools/call":
            return [{"id": "q", "method": "roots/list"}]
        return [{"id": 3, "result": {}}] if message.get("id") == "q" else legacy(message)

    async def roots(params: dict[str, Any]) -> dict[str, Any]:
        raise UsageError("no folder")

    talking, sent = talk(monkeypatch, reply, answers={"roots/list": roots})
    async with talking:
        await talking.begin()
        await talking.request("tools/call", {"name": "a"})
    assert sent[-1]["error"] == {"code": -32603, "message": "no folder"}


async def test_notifications_are_passed_on_and_pages_are_followed(monkeypatch: pytest.MonkeyPatch) -> None:
    noted: list[Notification] = []

    def reply(message: dict[str, Any]) -> list[dict[str, Any] | InboundEvent]:
        if message["method"] != "tools/list":
            return legacy(message)
        page = {"tools": [2]} if message["params"] else {"tools": [1], "nextCursor": "b"}
        return [{"method": "notifications/message", "params": {}}, {"result": page}]

    talking, _ = talk(monkeypatch, reply, notified=noted.append)
    async with talking:
        await talking.begin(LEGACY)
        pages = await talking.pages("tools/list")

    assert [page["tools"] for page in pages] == [[1], [2]]
    assert len(noted) == 2


async def test_a_request_without_a_response_is_cancelled(monkeypatch: pytest.MonkeyPatch) -> None:
    talking, sent = talk(
        monkeypatch, lambda message: [] if message.get("method") == "tools/call" else legacy(message)
    )
    async with talking:
        await talking.begin(LEGACY)
        talking.seconds = 0.01
        with pytest.raises(CannotStart, match=r"no response to tools/call within 0\.01 s"):
            await talking.request("tools/call", {"name": "a"})
    assert sent[-1]["method"] == "notifications/cancelled"
    assert sent[-1]["params"]["requestId"] == sent[-2]["id"]


async def test_a_task_is_polled_until_it_has_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    states = ["working", "working", "completed"]

    def reply(message: dict[str, Any]) -> list[dict[str, Any] | InboundEvent]:
        task = {"taskId": "t", "status": "working", "pollInterval": 0}
        results = {
            "tools/call": {"task": task},
            "tasks/get": {**task, "status": states.pop(0)} if message["method"] == "tasks/get" else {},
            "tasks/result": {"content": []},
        }
        result = results.get(message["method"])
        return legacy(message) if result is None else [{"result": result}]

    talking, sent = talk(monkeypatch, reply)
    async with talking:
        await talking.begin(LEGACY)
        created = await talking.request("tools/call", {"name": "a", "task": {}})
        assert isinstance(created, Result)
        response = await talking.task_result(created)

    assert isinstance(response, Result)
    assert response.result == {"content": []}
    assert not states
    assert sent[-1]["params"] == {"taskId": "t"}


async def test_the_end_of_the_server_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    talking, _ = talk(monkeypatch, lambda _: [ConnectionEnded(0.0, code=1, why="exited")])
    async with talking:
        with pytest.raises(CannotStart, match="the server ended before it answered initialize"):
            await talking.begin(LEGACY)


async def test_an_error_is_a_response(monkeypatch: pytest.MonkeyPatch) -> None:
    talking, _ = talk(monkeypatch, legacy)
    async with talking:
        await talking.begin(LEGACY)
        assert isinstance(await talking.request("nonsense"), Failure)
