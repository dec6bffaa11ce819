"""What a request asks for."""

from __future__ import annotations

import json
from typing import Any

from mcpspy.core.jsontools import pointer
from mcpspy.core.mock.matching import Asked, asked, whole
from mcpspy.core.protocol.message import Request, read_frame
from mcpspy.core.recording.decode import Frame
from tests.core.mock.talking import VERSION, modern


def request(method: str = "tools/call", **params: Any) -> Request:
    data = json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).encode()
    (message,) = read_frame(Frame(0.0, "client", data))
    assert isinstance(message, Request)
    return message


def of(**params: Any) -> Asked:
    return asked(request(**params))


def test_what_a_client_says_of_itself_is_not_asked_for() -> None:
    assert of(name="x", _meta={"progressToken": 1, "traceparent": "00"}).key == of(name="x").key
    assert of(name="x", _meta=modern()).key == of(name="x", _meta=modern(progressToken=4)).key


def test_the_revision_is_part_of_it_in_the_era_that_says_it() -> None:
    assert of(name="x", _meta=modern()).key != of(name="x").key
    assert of(name="x", _meta=modern()).version == "2026-07-28"
    assert of(name="x", _meta={VERSION: "2025-11-25"}).key == of(name="x").key


def test_no_arguments_are_empty_arguments_and_no_params_are_empty_params() -> None:
    assert of(name="x", arguments={}).key == of(name="x").key
    (bare,) = read_frame(Frame(0.0, "client", b'{"jsonrpc":"2.0","id":1,"method":"tools/list"}'))
    assert isinstance(bare, Request)
    assert asked(bare).key == asked(request("tools/list")).key


def test_a_cursor_and_a_task_id_are_part_of_it() -> None:
    assert asked(request("tools/list", cursor="a")).key != asked(request("tools/list")).key
    assert asked(request("tasks/get", taskId="a")).key != asked(request("tasks/get", taskId="b")).key


def test_an_answered_question_is_another_request_than_the_one_that_led_to_it() -> None:
    first = of(name="ask")
    again = of(name="ask", requestState="s", inputResponses={"a": 1})
    assert first.key != again.key
    assert again.key == of(name="ask", requestState="s", inputResponses={"a": 2}).key
    assert again.responses != of(name="ask", requestState="s", inputResponses={"a": 2}).responses
    assert of(name="ask", inputResponses={"a": 1}).key == of(name="ask", inputResponses={"a": 2}).key


def test_what_is_ignored_is_no_part_of_it() -> None:
    ignored = [pointer("/params/arguments/now"), pointer("/params/arguments/list/1")]
    one = request(name="x", arguments={"now": 1, "list": [1, 2]})
    other = request(name="x", arguments={"now": 2, "list": [1, 3]})
    assert asked(one, ignored).key == asked(other, ignored).key
    assert asked(one).key != asked(other).key
    assert asked(one, [("params",)]).params == "{}"


def test_all_that_decides_is_laid_out_as_in_the_message() -> None:
    said = whole(request(name="x", requestState="s", _meta=modern(progressToken=1)))
    assert said == {
        "method": "tools/call",
        "params": {"name": "x", "requestState": "s", "_meta": {VERSION: "2026-07-28"}},
    }


def test_params_that_nobody_should_send_are_compared_all_the_same() -> None:
    deep = b'{"jsonrpc":"2.0","id":1,"method":"x","params":{"a":' + b"[" * 990 + b"]" * 990 + b"}}"
    (message,) = read_frame(Frame(0.0, "client", deep))
    if isinstance(message, Request):
        assert asked(message).key == asked(message).key
    assert asked(request("x")).about == "x"
    assert of(name="y").about == "tools/call y"
