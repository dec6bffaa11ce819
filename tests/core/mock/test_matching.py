"""Keys of requests."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpspy.core.jsontools import pointer
from mcpspy.core.mock.matching import RequestKey, compared_request, plain_key, request_key
from mcpspy.core.protocol.message import Request, read_frame
from mcpspy.core.recording.decode import Frame
from tests.core.mock.talking import VERSION, modern


def request(method: str = "tools/call", **params: Any) -> Request:
    data = json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).encode()
    (message,) = read_frame(Frame(0.0, "client", data))
    assert isinstance(message, Request)
    return message


def of(**params: Any) -> RequestKey:
    return request_key(request(**params))


def test_client_metadata_is_not_compared() -> None:
    assert of(name="x", _meta={"progressToken": 1, "traceparent": "00"}).digest == of(name="x").digest
    assert of(name="x", _meta=modern()).digest == of(name="x", _meta=modern(progressToken=4)).digest


def test_the_revision_is_part_of_the_key_of_modern_requests_only() -> None:
    assert of(name="x", _meta=modern()).digest != of(name="x").digest
    assert of(name="x", _meta=modern()).version == "2026-07-28"
    assert of(name="x", _meta={VERSION: "2025-11-25"}).digest == of(name="x").digest


def test_missing_arguments_equal_empty_ones_and_missing_params_equal_empty_ones() -> None:
    assert of(name="x", arguments={}).digest == of(name="x").digest
    (bare,) = read_frame(Frame(0.0, "client", b'{"jsonrpc":"2.0","id":1,"method":"tools/list"}'))
    assert isinstance(bare, Request)
    assert request_key(bare).digest == request_key(request("tools/list")).digest


def test_a_cursor_and_a_task_id_are_part_of_the_key() -> None:
    assert request_key(request("tools/list", cursor="a")).digest != request_key(request("tools/list")).digest
    assert (
        request_key(request("tasks/get", taskId="a")).digest
        != request_key(request("tasks/get", taskId="b")).digest
    )


def test_a_retry_with_input_responses_differs_from_the_first_request() -> None:
    first = of(name="ask")
    again = of(name="ask", requestState="s", inputResponses={"a": 1})
    assert first.digest != again.digest
    assert again.digest == of(name="ask", requestState="s", inputResponses={"a": 2}).digest
    assert again.responses != of(name="ask", requestState="s", inputResponses={"a": 2}).responses
    assert of(name="ask", inputResponses={"a": 1}).digest == of(name="ask", inputResponses={"a": 2}).digest


def test_ignored_params_are_not_part_of_the_key() -> None:
    ignored = [pointer("/params/arguments/now"), pointer("/params/arguments/list/1")]
    one = request(name="x", arguments={"now": 1, "list": [1, 2]})
    other = request(name="x", arguments={"now": 2, "list": [1, 3]})
    assert request_key(one, ignored).digest == request_key(other, ignored).digest
    assert request_key(one).digest != request_key(other).digest
    assert request_key(one, [("params",)]).params == b"{}"


def test_the_compared_parts_are_arranged_as_in_the_message() -> None:
    given: dict[str, Any] = {"requestState": "s", "inputResponses": {"a": 1}}
    said = compared_request(request(name="x", **given, _meta=modern(progressToken=1)))
    assert said == {
        "method": "tools/call",
        "params": {"name": "x", "inputResponses": {"a": 1}, "_meta": {VERSION: "2026-07-28"}},
    }


def test_invalid_params_are_compared_too() -> None:
    deep = b'{"jsonrpc":"2.0","id":1,"method":"x","params":{"a":' + b"[" * 990 + b"]" * 990 + b"}}"
    (message,) = read_frame(Frame(0.0, "client", deep))
    if isinstance(message, Request):
        assert request_key(message).digest == request_key(message).digest
    assert request_key(request("x")).about == "x"
    assert of(name="y").about == "tools/call y"


VALUES: st.SearchStrategy[Any] = st.recursive(
    st.sampled_from([1, 1.0, 1.5, 10**30, None, True, "1.2", "e", "é", "\ud800", {}]),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from("ab"), inner, max_size=2),
    max_leaves=4,
)
META = VALUES | st.sampled_from([modern(), modern(progressToken="t"), {VERSION: "2025-11-25"}])
NAMES = ["name", "uri", "ref", "arguments", "cursor", "inputResponses"]
PARAMS = (
    VALUES
    | st.dictionaries(st.sampled_from(NAMES), VALUES)
    | st.builds(
        lambda params, meta: {**params, "_meta": meta}, st.dictionaries(st.sampled_from(NAMES), VALUES), META
    )
)


@given(st.sampled_from(["tools/call", "resources/read", "completion/complete", "x"]), PARAMS, st.booleans())
def test_the_fast_key_equals_the_full_key(method: str, params: Any, ignores: bool) -> None:
    ignored = (("params", "arguments", "a"),) if ignores else ()
    said = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
    (request,) = read_frame(Frame(0.0, "client", json.dumps(said).encode()))
    assert isinstance(request, Request)
    found, wanted = plain_key(method, request.data, ignored), request_key(request, ignored)
    if found is not None:
        assert found.digest == wanted.digest
        assert (found.subject, found.version) == (wanted.subject, wanted.version)
        assert found.token == request.progress_token


@pytest.mark.parametrize("data", [b'{"a":1}', b"{}", b"", b'{"n":1e40}', b'{"_meta":{"progressToken":1}}'])
def test_plain_params_have_a_fast_key(data: bytes) -> None:
    assert plain_key("tools/call", _message(data)) is not None


@pytest.mark.parametrize("data", [b"[]", b"{", b'{"requestState":"s"}', b'{"name":1}', b'{"_meta":5}'])
def test_unusual_params_have_no_fast_key(data: bytes) -> None:
    assert plain_key("tools/call", _message(data)) is None


def _message(params: bytes) -> bytes:
    return b'{"jsonrpc":"2.0","id":1%b}' % (b',"params":' + params if params else b"")
