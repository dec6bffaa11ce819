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
from mcpspy.errors import UsageError


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
        (
            {"order": "request", "text": '{\n"a": 1e400, "method":"x","method":"ping"}', "stream": None},
            SendCommand("client", "ping", None, None, True, b'{ "a": 1e400, "method":"x","method":"ping"}'),
        ),
        ({"order": "release", "ticket": 7, "text": '{\n"a":1e400}'}, ReleaseCommand([7], b'{ "a":1e400}')),
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
        (
            {},
            "unknown order null \\(use list, hold, release, drop, answer, request, notify, scripts, decide, note\\)",
        ),
        ({"order": "hld"}, 'unknown order "hld"'),
        ({"order": ["list"]}, 'unknown order \\["list"\\]'),
        ({"order": "list", "all": True}, 'list: unknown key "all"'),
        ({"order": "hold", "query": 1}, "hold: query must be a string or null"),
        ({"order": "hold", "query": "a ("}, "hold: unclosed \\( \\(column 3\\)"),
        ({"order": "release"}, "release: ticket must be the number of a held message"),
        ({"order": "release", "ticket": True}, "release: ticket must be the number"),
        ({"order": "release", "tickets": "some"}, 'tickets must be a list of numbers or "all"'),
        ({"order": "release", "tickets": [1, "2"]}, "tickets must be a list of numbers"),
        ({"order": "release", "tickets": [1], "message": {}}, "message and text need a single ticket"),
        ({"order": "release", "ticket": 1, "message": {}, "text": "{}"}, "exclude each other"),
        ({"order": "release", "ticket": 1, "message": 1}, "message must be an object"),
        ({"order": "release", "ticket": 1, "text": " "}, "text must be a non-empty string"),
        ({"order": "release", "ticket": 1, "text": "{\n"}, "several lines but is not JSON"),
        ({"order": "release", "ticket": 1, "text": "\ud800"}, "a lone surrogate"),
        ({"order": "drop", "ticket": "7"}, "drop: ticket must be the number"),
        ({"order": "answer", "ticket": 7}, "answer: exactly one of result and error"),
        ({"order": "answer", "ticket": 7, "result": {}, "error": {}}, "answer: exactly one of result"),
        ({"order": "answer", "ticket": 7, "result": []}, "answer: result must be an object"),
        (
            {"order": "answer", "ticket": 7, "error": {"message": "m"}},
            "an integer code and a string message",
        ),
        ({"order": "request"}, "request: method must be a non-empty string"),
        ({"order": "request", "method": "x", "to": "host"}, "request: to must be client or server"),
        ({"order": "notify", "method": "x", "params": []}, "notify: params must be an object"),
        ({"order": "notify", "method": "x", "stream": 3}, "notify: stream must be a string"),
        ({"order": "request", "method": "x", "text": "{}"}, "request: text excludes method and params"),
        ({"order": "request", "text": " "}, "request: text must be a non-empty string$"),
        ({"order": "request", "text": '{"method":NaN}'}, "request: text is not JSON: invalid at byte 10"),
        ({"order": "request", "text": "[1]"}, "request: text must be an object with a method"),
        ({"order": "request", "text": '{"\\ud800":1}'}, "request: text must be an object with a method"),
        ({"order": "request", "text": '{"method":""}'}, "request: text must be an object with a method"),
        ({"order": "notify", "text": '{"id":1,"method":"x"}'}, "notify: text has an id"),
        ({"order": "scripts", "token": 1}, "scripts: "),
        ({"order": "scripts", "token": "t", "hooks": ["answer"]}, "scripts: hooks must be a list of "),
        ({"order": "decide", "ticket": 7, "decisions": {}}, "decide: decisions must be a list of objects"),
        ({"order": "decide", "ticket": 7, "decisions": [{"delay": -1}]}, "decide: delay must be a number"),
        (
            {"order": "decide", "ticket": 7, "decisions": [{"tags": "t"}]},
            "decide: tags must be a list of texts",
        ),
        (
            {"order": "decide", "ticket": 7, "decisions": [{"failures": ["f"]}]},
            "decide: failures must be a list",
        ),
        (
            {"order": "decide", "ticket": 7, "decisions": [{"headers": [["a"]]}]},
            "decide: headers must be a list",
        ),
    ],
)
def test_an_invalid_command_is_refused(order: dict[str, Any], why: str) -> None:
    with pytest.raises(CommandError, match=why):
        parse_command(order)


def test_a_hold_with_a_pattern_that_re2_cannot_run_needs_a_permission() -> None:
    order = {"order": "hold", "query": "/a(?=b)/"}
    with pytest.raises(CommandError, match=r"hold: look-ahead .* not supported .*\(column 3\)"):
        parse_command(order)
    assert isinstance(parse_command(order, lambda _pattern, _construct: True), InterceptCommand)

    def fail(_pattern: str, _construct: str) -> bool:
        raise UsageError("mcpspy.toml: not UTF-8")

    with pytest.raises(CommandError, match=r"hold: mcpspy\.toml: not UTF-8"):
        parse_command(order, fail)
