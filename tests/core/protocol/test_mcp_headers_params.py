"""`Mcp-Param-*` headers of tools, and errors in their annotations."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mcpspy.core.protocol import mcp_headers as mcp_headers_module
from mcpspy.core.protocol.mcp_headers import (
    NOTHING,
    ToolParamHeaders,
    argument_headers,
    is_mismatch,
    param_headers,
)
from mcpspy.core.protocol.message import Request, Result, read_frame
from mcpspy.core.recording.decode import Frame

REGION = {"type": "string", "x-mcp-header": "Region"}


def prop(**schema: Any) -> dict[str, Any]:
    return {"type": "object", "properties": {"a": schema}}


def message(**members: Any) -> Any:
    (found,) = read_frame(Frame(0.0, "client", json.dumps({"jsonrpc": "2.0", **members}).encode()))
    return found


def listed(**schemas: Any) -> Result:
    tools = [{"name": name, "inputSchema": schema} for name, schema in schemas.items()]
    found = message(id=1, result={"tools": [*tools, {"name": "bare"}, {"name": 7}, 7]})
    assert isinstance(found, Result)
    return found


def call(tool: str = "t", method: str = "tools/call", **arguments: Any) -> Request:
    found = message(id=1, method=method, params={"name": tool, "arguments": arguments})
    assert isinstance(found, Request)
    return found


def test_headers_are_required_for_present_arguments_at_any_depth() -> None:
    deep = prop(**prop(**{"type": "integer", "x-mcp-header": "Deep"}))
    wants = param_headers(deep).headers

    assert wants == {"Mcp-Param-Deep": ("a", "a")}
    assert argument_headers(wants, {"a": {"a": 7}}) == {"Mcp-Param-Deep": "7"}
    assert argument_headers(wants, {"a": {"a": True}}) == {"Mcp-Param-Deep": "true"}
    nothing: tuple[Any, ...] = (None, {}, {"a": None}, {"a": {"a": None}}, {"a": {"a": []}}, {"a": 1})
    for absent in nothing:
        assert argument_headers(wants, absent) == {}


@pytest.mark.parametrize(
    ("schema", "why"),
    [
        (prop(**{"type": "string", "x-mcp-header": "a b"}), "'a b' is not a valid header name"),
        (prop(**{"type": "string", "x-mcp-header": 7}), "'7' is not a valid header name"),
        (REGION, "Region is not reached through properties alone"),
        ({"anyOf": [prop(**REGION)]}, "Region is not reached through properties alone"),
        ({"$defs": {"d": prop(**REGION)}}, "Region is not reached through properties alone"),
        (prop(items=REGION), "Region is not reached through properties alone"),
    ],
)
def test_annotations_that_cannot_be_headers_are_reported(schema: Any, why: str) -> None:
    assert param_headers(schema) == ({}, [why])


@pytest.mark.parametrize(
    ("schema", "why"),
    [
        (
            prop(**{"type": "number", "x-mcp-header": "A"}),
            "A has type number (use string, integer or boolean)",
        ),
        (
            {"properties": {n: {"type": "string", "x-mcp-header": h} for n, h in (("a", "A"), ("b", "a"))}},
            "a occurs twice",
        ),
    ],
)
def test_annotations_of_a_wrong_type_are_reported_and_sent(schema: Any, why: str) -> None:
    assert param_headers(schema) == ({"Mcp-Param-A": ("a",)}, [why])


@pytest.mark.parametrize(
    "schema",
    [
        None,
        [],
        {"properties": []},
        prop(default=REGION, type="object"),
        {"items": {"properties": {"x-mcp-header": {"type": "string"}}}},
    ],
)
def test_an_annotation_is_none_within_a_value_or_as_the_name_of_an_argument(schema: Any) -> None:
    assert param_headers(schema) is NOTHING


@pytest.mark.parametrize(
    ("sent", "value", "expected"),
    [
        ("a", "a", False),
        ("a", "b", True),
        ("42.0", "42", False),
        ("=?base64?w7w=?=", "ü", False),
        ("", "0", True),
    ],
)
def test_a_header_is_compared_with_the_body(sent: str, value: str, expected: bool) -> None:
    assert is_mismatch(sent, value) is expected


def test_a_call_of_a_listed_tool_has_its_headers_and_nothing_else_has_any() -> None:
    tools = ToolParamHeaders()
    tools.learn(listed(t=prop(**REGION), other={}))

    assert tools.headers(call(a="eu")) == {"Mcp-Param-Region": "eu"}
    assert tools.headers(call(a="cællo")) == {"Mcp-Param-Region": "=?base64?Y8OmbGxv?="}
    for without in (call(), call("other", a="eu"), call(a="eu", method="prompts/get")):
        assert tools.headers(without) == {}


def test_the_latest_listing_of_a_tool_determines_its_headers() -> None:
    tools = ToolParamHeaders()
    tools.learn(listed(t=prop(**REGION), u=prop(**REGION)))
    tools.learn(listed(t=prop(type="string")))

    assert tools.headers(call(a="eu")) == {}
    assert tools.headers(call("u", a="eu")) == {"Mcp-Param-Region": "eu"}


def test_only_max_tools_are_kept_those_listed_last(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mcp_headers_module, "MAX_TOOLS", 2)
    tools = ToolParamHeaders()
    tools.learn(listed(t=prop(**REGION), u=prop(**REGION)))
    tools.learn(listed(t=prop(**REGION), v=prop(**REGION)))

    assert [bool(tools.places(call(name))) for name in "tuv"] == [True, False, True]


@settings(max_examples=50)
@given(
    st.recursive(
        st.one_of(st.none(), st.text()),
        lambda inner: st.one_of(
            st.lists(inner),
            st.dictionaries(
                st.sampled_from(["properties", "x-mcp-header", "type", "a", "items", "$defs"]), inner
            ),
        ),
    )
)
def test_no_schema_raises(schema: Any) -> None:
    found = param_headers(schema)

    assert argument_headers(found.headers, schema) is not None
