"""What goes on to the real server, and what comes back."""

from __future__ import annotations

import json
from typing import Any

from mcpspy.core.mock.passthrough import Relay, Said
from mcpspy.core.protocol.message import Failure, Request, Result, read_frame
from mcpspy.core.recording.decode import Frame


def read(**members: Any) -> Any:
    (message,) = read_frame(Frame(0.0, "client", json.dumps({"jsonrpc": "2.0", **members}).encode()))
    return message


def written(**members: Any) -> bytes:
    return json.dumps({"jsonrpc": "2.0", **members}).encode()


def asked(relay: Relay, id: Any = 1) -> Request:  # noqa: A002
    message = read(id=id, method="tools/call", params={"name": "new"})
    assert isinstance(message, Request)
    relay.ask(message)
    return message


def test_a_request_goes_on_as_it_is_once() -> None:
    relay = Relay()
    message = asked(relay)
    assert relay.is_waiting
    assert relay.outgoing() == [message.data]
    assert relay.outgoing() == []


def test_its_answer_comes_back_as_it_is_once() -> None:
    relay = Relay()
    asked(relay, "a")
    answer = b'{"jsonrpc":"2.0","id":"a","result":{"n":1.50}}'
    assert relay.heard(answer) == [Said(answer, b'"a"', True)]
    assert not relay.is_waiting
    assert relay.heard(answer) == []


def test_a_request_of_the_server_gets_an_id_of_ours_and_its_answer_the_servers() -> None:
    relay = Relay()
    asked(relay)
    relay.outgoing()
    (said,) = relay.heard(written(id=0, method="roots/list"))
    assert (said.request, said.is_answer) == (b"1", False)
    ours = json.loads(said.data)["id"]
    answer = read(id=ours, result={"roots": []})
    assert isinstance(answer, Result)
    assert relay.answer(answer)
    assert [json.loads(data) for data in relay.outgoing()] == [
        {"jsonrpc": "2.0", "id": 0, "result": {"roots": []}}
    ]
    assert not relay.answer(answer)


def test_an_answer_to_nothing_that_was_relayed_is_not_ours() -> None:
    failure = read(id=1, error={"code": -1, "message": "no"})
    assert isinstance(failure, Failure)
    relay = Relay()
    assert not relay.answer(failure)
    assert relay.outgoing() == []


def test_a_cancellation_goes_on_if_what_it_cancels_did() -> None:
    relay = Relay()
    asked(relay)
    relay.outgoing()
    relay.cancel("2")
    assert relay.outgoing() == []
    relay.cancel("1")
    assert [json.loads(data)["params"] for data in relay.outgoing()] == [{"requestId": 1}]
    assert not relay.is_waiting


def test_a_notification_comes_on_the_stream_of_what_is_open() -> None:
    relay = Relay()
    note = written(method="notifications/message", params={"level": "info", "data": 1})
    assert relay.heard(note) == [Said(note, None, False)]
    asked(relay)
    assert relay.heard(note) == [Said(note, b"1", False)]


def test_what_is_no_message_is_left_out() -> None:
    assert Relay().heard(b"Listening on stdio") == []
