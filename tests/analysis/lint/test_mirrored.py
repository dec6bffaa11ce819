"""Arguments that a tool wants in headers, and what is wrong with how it says so."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpspy.analysis.lint.mirrored import NOTHING, differs, mirrored, wanted


def prop(**schema: Any) -> dict[str, Any]:
    return {"type": "object", "properties": {"a": schema}}


def test_headers_are_wanted_at_any_depth_and_of_what_is_there() -> None:
    deep = prop(**prop(**{"type": "integer", "x-mcp-header": "Deep"}))
    wants = mirrored(deep).headers

    assert wants == {"mcp-param-deep": ("a", "a")}
    assert wanted(wants, {"a": {"a": 7}}) == {"mcp-param-deep": "7"}
    assert wanted(wants, {"a": {"a": True}}) == {"mcp-param-deep": "true"}
    for absent in (None, {}, {"a": None}, {"a": {"a": None}}, {"a": 1}):
        assert wanted(wants, absent) == {}


@pytest.mark.parametrize(
    ("schema", "why"),
    [
        (prop(**{"type": "string", "x-mcp-header": "a b"}), "'a b' is no name of a header"),
        (prop(**{"type": "string", "x-mcp-header": 7}), "'7' is no name of a header"),
        ({"type": "string", "x-mcp-header": "A"}, "A is not reached through properties alone"),
        (
            {"anyOf": [prop(**{"type": "string", "x-mcp-header": "A"})]},
            "A is not reached through properties alone",
        ),
        (
            prop(**{"type": "number", "x-mcp-header": "A"}),
            "A is of type number: neither string, integer nor boolean",
        ),
        (
            {"properties": {n: {"type": "string", "x-mcp-header": h} for n, h in (("a", "A"), ("b", "a"))}},
            "a is there twice",
        ),
    ],
)
def test_what_cannot_be_a_header_is_said(schema: Any, why: str) -> None:
    assert mirrored(schema).wrong == [why]


def test_an_annotation_within_a_value_is_none() -> None:
    assert mirrored(prop(default={"x-mcp-header": "A"}, type="object")) is NOTHING


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
def test_a_header_says_what_the_body_says(sent: str, value: str, expected: bool) -> None:
    assert differs(sent, value) is expected


@given(
    st.recursive(
        st.one_of(st.none(), st.text()),
        lambda inner: st.one_of(
            st.lists(inner),
            st.dictionaries(st.sampled_from(["properties", "x-mcp-header", "type", "a"]), inner),
        ),
    )
)
def test_no_schema_stops_it(schema: Any) -> None:
    found = mirrored(schema)

    assert wanted(found.headers, schema) is not None
