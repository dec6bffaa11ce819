"""Messages, exchanges and heads that wait for the hooks of a script, without a process."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

import mcpspy
from mcpspy.core.protocol.message import read_frame
from mcpspy.core.recording.decode import Frame

orders: list[tuple[str, dict[str, Any]]] = []
notes: list[str] = []


async def order(name: str, fields: dict[str, Any]) -> None:
    orders.append((name, fields))


SESSION = mcpspy.LiveSession(
    {"session": "1", "name": "weather", "transport": "stdio", "file": None}, order, notes.append
)
CALL: dict[str, Any] = {"id": 7, "method": "tools/call", "params": {"name": "echo", "arguments": {"a": 1}}}


def live(side: str = "client", text: bytes | None = None, **members: Any) -> mcpspy.LiveMessage:
    data = json.dumps({"jsonrpc": "2.0", **members}).encode() if text is None else text
    return mcpspy.LiveMessage(SESSION, read_frame(Frame(0.5, side, data))[0])


def answered(**members: Any) -> mcpspy.LiveExchange:
    return mcpspy.LiveExchange(live(**CALL), live("server", id=7, **members))


@pytest.mark.parametrize(
    ("message", "properties", "shown"),
    [
        (live(**CALL), ("request", "tools/call", "echo", CALL["params"]), "client request tools/call echo"),
        (live("server", method="a/b"), ("notification", "a/b", "", None), "server notification a/b"),
        (live("server", id=7, result={}), ("result", "", "", None), "server result"),
        (live("server", text=b"garbage"), ("malformed", "", "", None), "server malformed"),
        (
            answered(result={}).response,
            ("result", "tools/call", "echo", None),
            "server result tools/call echo",
        ),
        (
            answered(error={"code": 1, "message": "m"}).response,
            ("error", "tools/call", "echo", None),
            "server error tools/call echo",
        ),
        (live(method="a\x1b[2Jb"), ("notification", "a\x1b[2Jb", "", None), "client notification a\\x1b[2Jb"),
    ],
    ids=["request", "notification", "unpaired result", "malformed", "result", "error", "control characters"],
)
def test_a_message_has_the_properties_of_a_recorded_one(
    message: mcpspy.LiveMessage, properties: tuple[Any, ...], shown: str
) -> None:
    assert (message.kind, message.method, message.subject, message.params) == properties
    assert repr(message) == f"<mcpspy.LiveMessage {shown}>"


@pytest.mark.parametrize(
    ("replacement", "sent"),
    [
        ({"message": {"id": 7, "method": "ping"}}, b'{"id":7,"method":"ping"}'),
        ({"message": b'{"id":7, "method":"ping"}'}, b'{"id":7, "method":"ping"}'),
        ({"message": "anything"}, b"anything"),
        ({"message": '{"id":7,\n"method":"ping"}\n'}, b'{"id":7, "method":"ping"}'),
        (
            {"params": {"name": "other"}},
            b'{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"other"}}',
        ),
    ],
    ids=["object", "bytes", "text", "lines of JSON", "params"],
)
def test_a_replacement_is_what_the_next_script_sees_and_what_is_sent(
    replacement: dict[str, Any], sent: bytes
) -> None:
    message = live(**CALL)
    message.replace(**replacement)
    assert (message.data, message._effects["text"].encode()) == (sent, sent)


@pytest.mark.parametrize(
    ("replacement", "why"),
    [
        ({}, "replace: needs exactly one of message, params and result"),
        ({"params": {}, "result": {}}, "replace: needs exactly one of message, params and result"),
        ({"message": "two\nlines"}, "replace: neither one line nor JSON in UTF-8"),
        ({"message": b"\xff"}, "replace: neither one line nor JSON in UTF-8"),
        ({"message": ""}, "replace: the message is empty"),
    ],
)
def test_an_invalid_replacement_is_refused_and_changes_nothing(replacement: dict[str, Any], why: str) -> None:
    message = live(**CALL)
    before = message.data
    with pytest.raises(mcpspy.UsageError, match=why):
        message.replace(**replacement)
    assert (message.data, message._effects) == (before, {})


def test_delays_add_up_and_a_message_may_be_held() -> None:
    exchange = mcpspy.LiveExchange(live(**CALL))
    exchange.delay(0.5)
    exchange.delay(1)
    exchange.hold()
    assert exchange.request._effects == {"delay": 1.5, "hold": True}
    for seconds in -1, float("inf"), float("nan"):
        with pytest.raises(mcpspy.UsageError, match=r"delay: .*: not a number of seconds"):
            exchange.delay(seconds)
    assert exchange.request._effects["delay"] == 1.5


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        ({}, "answer: needs either a result or an error"),
        ({"result": {}, "error": {"code": 1, "message": "m"}}, "answer: needs either a result or an error"),
        ({"error": {"message": "m"}}, "answer: error needs an integer code and a string message"),
        ({"error": {"code": 1, "message": None}}, "answer: error needs an integer code and a string message"),
    ],
)
def test_an_invalid_answer_is_refused(answer: dict[str, Any], why: str) -> None:
    exchange = mcpspy.LiveExchange(live(**CALL))
    with pytest.raises(mcpspy.UsageError, match=why):
        exchange.answer(**answer)
    assert exchange.request._effects == {}


def test_a_request_that_has_a_response_cannot_be_answered() -> None:
    with pytest.raises(mcpspy.UsageError, match="answer: the request has a response"):
        answered(result={}).answer({})


def test_a_filter_finds_an_exchange_whose_request_a_script_has_replaced() -> None:
    exchange = mcpspy.LiveExchange(live(**CALL))
    assert exchange.matches("tool:echo")
    exchange.replace("not JSON")
    assert not exchange.matches("tool:echo")
    assert exchange.matches("is:malformed")


def test_a_session_injects_notifications_and_takes_notes() -> None:
    asyncio.run(SESSION.notify("notifications/message", {"level": "info"}))
    asyncio.run(SESSION.request("roots/list", to="client"))
    SESSION.note("seen")
    notified = {"to": "client", "method": "notifications/message", "params": {"level": "info"}}
    requested = {"to": "client", "method": "roots/list", "params": None}
    assert orders == [("notify", notified), ("request", requested)]
    assert notes == ["seen"]


def test_a_head_is_shown_with_its_status_and_returns_a_copy_of_its_headers() -> None:
    fields = {"at": 1.0, "method": "POST", "path": "/mcp", "status": None, "headers": [("A", "1")]}
    request, response = (mcpspy.LiveHead(SESSION, {**fields, "status": status}) for status in (None, 404))
    assert [repr(request), repr(response)] == [
        "<mcpspy.LiveHead POST /mcp>",
        "<mcpspy.LiveHead POST /mcp: 404>",
    ]
    request.headers.clear()
    assert request.headers == [("A", "1")]
