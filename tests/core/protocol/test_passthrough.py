"""Requests forwarded to the real server, and its messages."""

from __future__ import annotations

import json
from typing import Any

import pytest

from mcpspy.core.protocol.message import Failure, Request, Result, read_frame
from mcpspy.core.protocol.passthrough import LiveServerMessage, Passthrough
from mcpspy.core.recording.decode import Frame


def read(**members: Any) -> Any:
    (message,) = read_frame(Frame(0.0, "client", json.dumps({"jsonrpc": "2.0", **members}).encode()))
    return message


def written(**members: Any) -> bytes:
    return json.dumps({"jsonrpc": "2.0", **members}).encode()


def forwarded(passthrough: Passthrough, id: Any = 1) -> Request:  # noqa: A002
    message = read(id=id, method="tools/call", params={"name": "new"})
    assert isinstance(message, Request)
    passthrough.forward(message)
    return message


def test_a_request_is_forwarded_unchanged_and_only_once() -> None:
    passthrough = Passthrough()
    message = forwarded(passthrough)
    assert passthrough.is_waiting
    assert passthrough.take_outgoing() == [message.data]
    assert passthrough.take_outgoing() == []


def test_a_response_is_returned_unchanged_and_only_once() -> None:
    passthrough = Passthrough()
    forwarded(passthrough, "a")
    answer = b'{"jsonrpc":"2.0","id":"a","result":{"n":1.50}}'
    assert passthrough.received(answer) == [LiveServerMessage(answer, b'"a"', True)]
    assert not passthrough.is_waiting
    assert passthrough.received(answer) == []


def test_a_server_request_gets_a_generated_id_and_its_response_the_original_id() -> None:
    passthrough = Passthrough()
    forwarded(passthrough)
    passthrough.take_outgoing()
    (said,) = passthrough.received(written(id=0, method="roots/list"))
    assert (said.request, said.is_answer) == (b"1", False)
    ours = json.loads(said.data)["id"]
    answer = read(id=ours, result={"roots": []})
    assert isinstance(answer, Result)
    assert passthrough.forward_response(answer)
    assert [json.loads(data) for data in passthrough.take_outgoing()] == [
        {"jsonrpc": "2.0", "id": 0, "result": {"roots": []}}
    ]
    assert not passthrough.forward_response(answer)


def test_a_response_to_a_request_that_was_not_forwarded_is_ignored() -> None:
    failure = read(id=1, error={"code": -1, "message": "no"})
    assert isinstance(failure, Failure)
    passthrough = Passthrough()
    assert not passthrough.forward_response(failure)
    assert passthrough.take_outgoing() == []


def test_a_cancellation_is_forwarded_only_if_its_request_was() -> None:
    passthrough = Passthrough()
    forwarded(passthrough)
    passthrough.take_outgoing()
    passthrough.forward_cancellation("2")
    assert passthrough.take_outgoing() == []
    passthrough.forward_cancellation("1")
    assert [json.loads(data)["params"] for data in passthrough.take_outgoing()] == [{"requestId": 1}]
    assert not passthrough.is_waiting


def test_a_notification_is_sent_on_the_stream_of_the_open_request() -> None:
    passthrough = Passthrough()
    note = written(method="notifications/message", params={"level": "info", "data": 1})
    assert passthrough.received(note) == [LiveServerMessage(note, None, False)]
    forwarded(passthrough)
    assert passthrough.received(note) == [LiveServerMessage(note, b"1", False)]


def carriers(passthrough: Passthrough, *members: dict[str, Any]) -> list[bytes | None]:
    """Return the stream of each message of the server."""
    return [said.request for each in members for said in passthrough.received(written(**each))]


def test_a_message_takes_the_stream_of_the_request_that_it_names() -> None:
    passthrough = Passthrough()
    for id, meta in ((1, {"progressToken": "p"}), (2, {}), (3, {"progressToken": 1})):  # noqa: A001
        request = read(id=id, method="tools/call", params={"name": "new", "_meta": meta})
        passthrough.forward(request)
    passthrough.forward(read(id=4, method="subscriptions/listen", params={}))
    subscription = {"io.modelcontextprotocol/subscriptionId": 4}

    assert carriers(
        passthrough,
        {"method": "notifications/progress", "params": {"progressToken": "p", "progress": 1}},
        {"method": "notifications/progress", "params": {"progressToken": 1, "progress": 1}},
        {"method": "notifications/tools/list_changed", "params": {"_meta": subscription}},
        {"method": "notifications/cancelled", "params": {"requestId": 4}},
    ) == [b"1", b"3", b"4", b"4"]
    # The others take the last request that waits for a result; changes belong to no request.
    assert carriers(
        passthrough,
        {"method": "notifications/progress", "params": {"progressToken": "unknown", "progress": 1}},
        {"method": "notifications/message", "params": {"level": "info", "data": 1}},
        {"id": 9, "method": "elicitation/create"},
        {"method": "notifications/tools/list_changed"},
        {"method": "notifications/resources/updated", "params": {"uri": "a:b"}},
    ) == [b"3", b"3", b"3", None, None]


def test_the_cancellation_of_a_server_request_has_its_id_and_its_stream() -> None:
    passthrough = Passthrough()
    forwarded(passthrough, 1)
    (asked,) = passthrough.received(written(id=7, method="elicitation/create"))
    forwarded(passthrough, 2)
    (cancelled,) = passthrough.received(written(method="notifications/cancelled", params={"requestId": 7}))
    assert json.loads(cancelled.data)["params"]["requestId"] == json.loads(asked.data)["id"]
    assert (asked.request, cancelled.request) == (b"1", b"1")


def test_a_cancelled_request_has_no_stream_any_more() -> None:
    passthrough = Passthrough()
    forwarded(passthrough, 1)
    forwarded(passthrough, 2)
    passthrough.take_outgoing()
    cancelled = read(method="notifications/cancelled", params={"requestId": 2, "reason": "slow"})
    passthrough.forward(cancelled)
    assert passthrough.take_outgoing() == [cancelled.data]
    note = {"method": "notifications/message", "params": {"level": "info", "data": 1}}
    assert carriers(passthrough, note, {"id": 2, "result": {}}) == [b"1"]


@pytest.mark.parametrize(
    ("result", "revision"),
    [({"protocolVersion": "2025-06-18"}, "2025-06-18"), ({"protocolVersion": 2}, None), ([], None)],
)
def test_a_forwarded_handshake_is_over_with_its_response(result: Any, revision: str | None) -> None:
    passthrough = Passthrough()
    passthrough.forward(read(id=0, method="initialize", params={}))
    assert (passthrough.is_initializing, passthrough.revision) == (True, None)
    passthrough.received(written(id=0, result=result))
    assert (passthrough.is_initializing, passthrough.revision) == (False, revision)


def test_output_that_is_not_a_message_is_skipped() -> None:
    assert Passthrough().received(b"Listening on stdio") == []
