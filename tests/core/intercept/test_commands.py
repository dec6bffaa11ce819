"""Commands of viewers."""

from __future__ import annotations

from typing import Any

import pytest

from mcpspy.core.intercept.actions import CommandError
from mcpspy.core.intercept.commands import (
    AnswerCommand,
    DropCommand,
    InterceptCommand,
    ListCommand,
    ReleaseCommand,
    SendCommand,
    parse_command,
)


@pytest.mark.parametrize(
    ("order", "meant"),
    [
        ({"order": "list", "n": 1}, ListCommand()),
        ({"order": "hold", "query": None}, InterceptCommand(None)),
        ({"order": "release", "ticket": 7}, ReleaseCommand([7])),
        ({"order": "release", "tickets": [7, 8]}, ReleaseCommand([7, 8])),
        ({"order": "release", "tickets": "all"}, ReleaseCommand(None)),
        ({"order": "release", "ticket": 7, "message": {"é": 1}}, ReleaseCommand([7], '{"é":1}'.encode())),
        ({"order": "release", "ticket": 7, "text": "{oops"}, ReleaseCommand([7], b"{oops")),
        (
            {"order": "release", "ticket": 7, "text": '{\r\n  "a": 1.0\n}\n'},
            ReleaseCommand([7], b'{    "a": 1.0 }'),
        ),
        ({"order": "drop", "ticket": 7}, DropCommand(7)),
        ({"order": "answer", "ticket": 7, "result": {}}, AnswerCommand(7, b"result", {})),
        (
            {"order": "answer", "ticket": 7, "error": {"code": 1, "message": "m", "data": 2}},
            AnswerCommand(7, b"error", {"code": 1, "message": "m", "data": 2}),
        ),
        ({"order": "request", "method": "ping"}, SendCommand("client", "ping", None, None, True)),
        (
            {"order": "request", "to": "client", "method": "roots/list", "params": {}, "stream": "3"},
            SendCommand("server", "roots/list", {}, "3", True),
        ),
        ({"order": "notify", "to": "server", "method": "x"}, SendCommand("client", "x", None, None, False)),
    ],
)
def test_a_command_is_parsed(order: dict[str, Any], meant: object) -> None:
    assert parse_command(order) == meant


def test_a_query_is_that_of_every_filter() -> None:
    wanted = parse_command({"order": "hold", "query": "tool:echo"})

    assert isinstance(wanted, InterceptCommand)
    assert wanted.query is not None
    assert wanted.query.text == "tool:echo"


@pytest.mark.parametrize(
    ("order", "why"),
    [
        ({}, "unknown order null: one of list, hold, release, drop, answer, request, notify"),
        ({"order": "hld"}, 'unknown order "hld"'),
        ({"order": ["list"]}, 'unknown order \\["list"\\]'),
        ({"order": "list", "all": True}, 'list: unknown key "all"'),
        ({"order": "hold", "query": 1}, "hold: query is a text, or null"),
        ({"order": "hold", "query": "a ("}, "hold: unclosed \\( \\(column 3\\)"),
        ({"order": "release"}, "release: ticket is the number of a held message"),
        ({"order": "release", "ticket": True}, "release: ticket is the number"),
        ({"order": "release", "tickets": "some"}, 'tickets is a list of numbers, or "all"'),
        ({"order": "release", "tickets": [1, "2"]}, "tickets is a list of numbers"),
        ({"order": "release", "tickets": [1], "message": {}}, "what is edited is one ticket"),
        ({"order": "release", "ticket": 1, "message": {}, "text": "{}"}, "either message or text"),
        ({"order": "release", "ticket": 1, "message": 1}, "message is an object"),
        ({"order": "release", "ticket": 1, "text": " "}, "to drop it there is drop"),
        ({"order": "release", "ticket": 1, "text": "{\n"}, "several lines and is not JSON"),
        ({"order": "release", "ticket": 1, "text": "\ud800"}, "half a character"),
        ({"order": "drop", "ticket": "7"}, "drop: ticket is the number"),
        ({"order": "answer", "ticket": 7}, "answer: either result or error"),
        ({"order": "answer", "ticket": 7, "result": {}, "error": {}}, "answer: either result or error"),
        ({"order": "answer", "ticket": 7, "result": []}, "answer: result is an object"),
        (
            {"order": "answer", "ticket": 7, "error": {"message": "m"}},
            "a code, a whole number, and a message",
        ),
        ({"order": "request"}, "request: method is a text"),
        ({"order": "request", "method": "x", "to": "host"}, "request: to is client or server"),
        ({"order": "notify", "method": "x", "params": []}, "notify: params is an object"),
        ({"order": "notify", "method": "x", "stream": 3}, "notify: stream is a text"),
    ],
)
def test_an_invalid_command_is_refused(order: dict[str, Any], why: str) -> None:
    with pytest.raises(CommandError, match=why):
        parse_command(order)
