"""What is said of an edited message while it is typed."""

from __future__ import annotations

import json

import pytest

from mcpspy.ui.tui.intercept.editor import editable, problems, request_problems
from tests.ui.tui.intercept.conftest import call, result


def said(text: str, original: bytes = b"", side: str = "client") -> list[tuple[str, bool]]:
    return [(trouble.text, trouble.is_json) for trouble in problems(text, side, original)]


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ('{\n  "a": 1\n  "b": 2}', "line 3, column 3: "),
        ("", "line 1, column 1: Expecting value"),
        ('{"a": NaN}', "NaN is no JSON"),
        ("[" * 100_000, "nested too deep"),
        ('{"a": "\ud800"}', "lone surrogate"),
    ],
    ids=["comma", "empty", "nan", "deep", "surrogate"],
)
def test_what_is_no_json_is_reported_with_its_place(text: str, why: str) -> None:
    ((trouble, is_json),) = said(text)
    assert why in trouble
    assert not is_json


def test_what_is_json_but_no_message_is_a_warning() -> None:
    assert said(call(1).decode(), call(1)) == []
    for text in (
        '{"id": 1, "method": "ping"}',
        "3",
        '{"jsonrpc": "2.0", "id": null, "method": "ping"}',
        "[]",
    ):
        assert said(text), text
        assert all(is_json for _, is_json in said(text)), text


def test_another_id_and_another_kind_are_warned_of() -> None:
    assert said(call(2).decode(), call(1)) == [
        ("its id was 1: with another one the answer goes to nobody", True)
    ]
    assert said(result(2).decode(), result(1), "server") == [
        ("its id was 1: with another one nobody waits for it", True)
    ]
    ((kind, _),) = said('{"jsonrpc": "2.0", "method": "notifications/x"}', call(1))
    assert kind == "it was a request: whoever sent it may wait for ever"


def test_a_request_to_be_sent_is_a_method_with_params() -> None:
    assert request_problems('{"method": "ping"}') == []
    assert request_problems('{"method": "x", "params": {}}') == []
    for text in ("[]", '{"method": ""}', '{"params": {}}', '{"method": "x", "params": []}', "{"):
        assert [trouble.is_json for trouble in request_problems(text)] == [False], text
    (left_out,) = request_problems('{"method": "x", "id": 3}')
    assert left_out == ("left out when it is sent: id", True)


def test_text_to_edit_is_laid_out_and_means_the_same() -> None:
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
    assert editable(b"{half") == "{half"
    assert editable(b'{"a":"\xff"}') is None
