"""Tests of the validation of an edited message."""

from __future__ import annotations

import json

import pytest

from mcpspy.ui.tui.intercept.assistance import editable, problems, request_problems
from tests.ui.tui.intercept.conftest import call, result


def found(text: str, original: bytes = b"", side: str = "client") -> list[tuple[str, bool]]:
    return [(problem.text, problem.is_json) for problem in problems(text, side, original)]


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ('{\n  "a": 1\n  "b": 2}', "line 3, column 3: "),
        ("", "line 1, column 1: Expecting value"),
        ('{"a": NaN}', "NaN is not allowed"),
        ("[" * 100_000, "nested too deep"),
        ('{"a": "\ud800"}', "lone surrogate"),
    ],
    ids=["comma", "empty", "nan", "deep", "surrogate"],
)
def test_invalid_json_is_reported_with_its_position(text: str, why: str) -> None:
    ((problem, is_json),) = found(text)
    assert why in problem
    assert not is_json


def test_json_that_is_not_a_valid_message_is_a_warning() -> None:
    assert found(call(1).decode(), call(1)) == []
    for text in (
        '{"id": 1, "method": "ping"}',
        "3",
        '{"jsonrpc": "2.0", "id": null, "method": "ping"}',
        "[]",
    ):
        assert found(text), text
        assert all(is_json for _, is_json in found(text)), text


def test_a_changed_id_and_a_changed_kind_are_warnings() -> None:
    assert found(call(2).decode(), call(1)) == [
        ("id changed (was 1): the response will not match its request", True)
    ]
    assert found(result(2).decode(), result(1), "server") == [
        ("id changed (was 1): the response will not match its request", True)
    ]
    ((kind, _),) = found('{"jsonrpc": "2.0", "method": "notifications/x"}', call(1))
    assert kind == "was a request: its sender may wait forever for the response"


def test_a_request_to_send_has_a_method_and_params() -> None:
    assert request_problems('{"jsonrpc": "2.0", "method": "ping"}') == []
    assert request_problems('{"jsonrpc": "2.0", "id": 3, "method": "x", "params": {}}') == []
    for text in ("[]", '{"method": ""}', '{"params": {}}', "{"):
        assert [problem.is_fatal for problem in request_problems(text)] == [True], text
    assert [problem.text for problem in request_problems('{"method": "x", "params": []}')] == [
        'jsonrpc is not "2.0"',
        '"params" is not an object',
    ]


def test_text_to_edit_is_indented_and_equivalent() -> None:
    data = '{"a":"caf\u00e9 \u009b31m \u202e\x7f","b":1E5,"b":1.0}'.encode()
    text = editable(data)
    assert text is not None
    assert text.split("\n") == [
        "{",
        '  "a": "caf\u00e9 \\u009b31m \\u202e\\u007f",',
        '  "b": 1E5,',
        '  "b": 1.0',
        "}",
    ]
    assert json.loads(text) == json.loads(data)
    hidden = '{"a":"b\u200b\U000e0041\ufe0f \u2764\ufe0f"}'.encode()
    assert (text := editable(hidden)) is not None
    assert "b\\u200b\\udb40\\udc41\\ufe0f \u2764" in text
    assert json.loads(text) == json.loads(hidden)
    assert editable(b"{half") == "{half"
    assert editable(b'{"a":"\xff"}') is None
