"""The streams of one client."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from mcpspy.core.mock.session import MockSession
from mcpspy.core.mock.steering import MockOptions
from mcpspy.io.serving import client as module
from mcpspy.io.serving.client import ClientStream, ServedClient
from tests.core.mock.talking import Talk, asking, log, names, progress, slow

pytestmark = pytest.mark.timeout(60)


def control_client(talk: Talk, speed: float = 0.0, *, one_stream: bool = False) -> ServedClient:
    now = asyncio.get_running_loop().time()
    said: list[str] = []
    return ServedClient(
        MockSession(talk.recordings(), MockOptions(speed=speed), now), said.append, one_stream=one_stream
    )


def post(client: ServedClient, **members: Any) -> ClientStream:
    ids = [json.dumps(members["id"]).encode()] if "method" in members and "id" in members else []
    return client.post(json.dumps({"jsonrpc": "2.0", **members}).encode(), ids)


def on(stream: ClientStream) -> list[Any]:
    return names([json.loads(message.data) for _, message in stream.messages])


async def test_an_answer_ends_the_stream_of_its_request_with_all_that_came_before_it() -> None:
    client = control_client(slow())
    stream = post(client, id=1, method="tools/call", params={"name": "slow", "_meta": {"progressToken": 1}})
    assert on(stream) == ["notifications/progress", "notifications/progress", 1]
    assert stream.is_over
    assert on(client.general) == []


async def test_messages_without_a_request_are_sent_on_the_general_stream() -> None:
    client = control_client(Talk().handshake().server(method="notifications/tools/list_changed").call(1))
    assert on(post(client, method="notifications/initialized")) == []
    assert on(client.general) == ["notifications/tools/list_changed"]


async def test_a_server_request_is_sent_on_the_stream_of_its_call_and_its_response_resumes_it() -> None:
    client = control_client(asking())
    initialize = {"protocolVersion": "2025-11-25", "capabilities": {"roots": {}}, "clientInfo": {}}
    post(client, id=0, method="initialize", params=initialize)
    stream = post(client, id=5, method="tools/call", params={"name": "ask"})
    assert on(stream) == ["roots/list"]
    asked = json.loads(stream.messages[0][1].data)["id"]
    assert on(post(client, id=asked, result={"roots": []})) == []
    assert on(stream) == ["roots/list", "notifications/message", 5]


async def test_two_requests_of_one_id_are_answered_in_their_order() -> None:
    client = control_client(slow().call(2, "echo", "quick"), speed=1000.0)
    first = post(client, id=1, method="tools/call", params={"name": "slow"})
    second = post(client, id=1, method="tools/call", params={"name": "slow"})
    while not (first.is_over and second.is_over):
        await asyncio.wait_for(second.more(10), 30)
    assert (on(first), on(second)) == ([1], [1])


async def test_a_delayed_message_is_sent_when_it_is_due() -> None:
    client = control_client(slow(), speed=100.0)
    stream = post(client, id=1, method="tools/call", params={"name": "slow"})
    assert on(stream) == []
    while not stream.is_over:
        assert await stream.more(10)
    assert on(stream) == [1]


async def test_a_client_that_disconnects_receives_nothing_more() -> None:
    client = control_client(slow(), speed=1.0)
    stream = post(client, id=1, method="tools/call", params={"name": "slow"})
    client.hang_up([b"1"])
    assert not client.session.owes
    assert on(stream) == []


async def test_event_numbers_are_unique_across_streams_and_identify_their_stream() -> None:
    client = control_client(slow())
    streams = [
        post(client, id=n, method="tools/call", params={"name": "slow", "_meta": {"progressToken": n}})
        for n in (1, 2)
    ]
    numbers = [number for stream in streams for number, _ in stream.messages]
    assert numbers == sorted(set(numbers))
    for stream in streams:
        assert client.stream_of(stream.number) is stream
        assert [client.stream_of(number) for number, _ in stream.messages] == [stream] * 3
        first = stream.messages[0][0]
        assert [number for number, _ in stream.after(first)] == [first + 1, first + 2]
    assert client.stream_of(999) is None


async def test_one_stream_has_everything_for_a_client_of_2024() -> None:
    client = control_client(slow(), one_stream=True)
    client.post(b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"slow"}}', [])
    client.post(b"nonsense", [])
    assert on(client.general) == [1, None]


async def test_unread_messages_are_kept_up_to_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_STORED", 3)
    talk = Talk().handshake()
    for _ in range(10):
        talk.server(**log())
    client = control_client(talk)
    post(client, method="notifications/initialized")
    assert len(client.general.messages) == 3


async def test_a_call_with_more_messages_than_are_kept_loses_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_STORED", 3)
    talk = Talk().client(id=1, method="tools/call", params={"name": "slow", "_meta": {"progressToken": 1}})
    for number in range(10):
        talk.server(**progress(1, number))
    client = control_client(talk.server(id=1, result={}))
    stream = post(client, id=1, method="tools/call", params={"name": "slow", "_meta": {"progressToken": 1}})
    assert len(stream.messages) == 11


async def test_the_end_of_a_session_ends_its_streams() -> None:
    client = control_client(slow(), speed=1.0)
    stream = post(client, id=1, method="tools/call", params={"name": "slow"})
    client.close()
    assert stream.is_over
    assert client.general.is_over
