"""Names and schemas of tools that hosts do not accept."""

from __future__ import annotations

import re
from typing import Any

import jsonschema_rs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpspy.core.rules.repair import flat_schema, repairs, short_name


@pytest.mark.parametrize("name", ["a", "get_it", "A-1", "x" * 64])
def test_a_name_that_hosts_accept_stays(name: str) -> None:
    assert short_name(name, 64) is None


@given(st.text(min_size=1, max_size=300), st.integers(16, 128))
def test_a_repaired_name_is_short_plain_and_stays_so(name: str, longest: int) -> None:
    short = short_name(name, longest)
    if short is None:
        assert len(name) <= longest
    else:
        assert re.fullmatch(rf"[A-Za-z0-9_-]{{1,{longest}}}", short)
        assert short_name(short, longest) is None


def test_two_long_names_with_the_same_beginning_differ() -> None:
    assert short_name("x" * 70 + "a", 64) != short_name("x" * 70 + "b", 64)


PARTS = [
    {"properties": {"a": {"type": "string"}}, "required": ["a"]},
    {"type": "object", "properties": {"b": {"type": "integer"}}, "title": "B"},
]


def test_parts_become_one_schema() -> None:
    assert flat_schema({"allOf": PARTS, "description": "d"}) == {
        "type": "object",
        "description": "d",
        "properties": {"a": {"type": "string"}, "b": {"type": "integer"}},
        "required": ["a"],
        "title": "B",
    }


def test_a_missing_type_is_added() -> None:
    assert flat_schema({"properties": {"a": {}}}) == {"type": "object", "properties": {"a": {}}}


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "object"},
        {"type": "string", "allOf": PARTS},
        {"allOf": PARTS, "additionalProperties": False},
        {"allOf": [{"$ref": "#/x"}]},
        {"allOf": [{"properties": {"a": {}}}, {"properties": {"a": {"type": "string"}}}]},
        {"allOf": [{"not": {}}]},
        {"allOf": {}},
        {"allOf": [True]},
        {"allOf": [{"properties": []}]},
        {"allOf": [{"required": "a"}]},
        {"allOf": [{"required": [{}]}]},
        {"allOf": PARTS, "properties": 1},
        {"allOf": PARTS, "required": None},
        {"type": ["object"], "allOf": PARTS},
        None,
    ],
)
def test_a_schema_whose_meaning_could_change_stays(schema: Any) -> None:
    assert flat_schema(schema) is None


values = st.none() | st.booleans() | st.integers(-2, 2) | st.sampled_from(["", "x"])
properties = st.dictionaries(
    st.sampled_from("abc"), st.sampled_from([{}, {"type": "string"}, {"type": "integer"}]), max_size=3
)
parts = st.fixed_dictionaries(
    {},
    optional={
        "type": st.just("object"),
        "properties": properties,
        "required": st.lists(st.sampled_from("abc"), unique=True),
    },
)


@given(
    st.fixed_dictionaries(
        {"allOf": st.lists(parts, min_size=1, max_size=3)}, optional={"properties": properties}
    ),
    st.lists(st.dictionaries(st.sampled_from("abc"), values), min_size=1),
)
def test_a_flat_schema_allows_the_same_arguments(
    schema: dict[str, Any], arguments: list[dict[str, Any]]
) -> None:
    flat = flat_schema(schema)
    if flat is not None:
        before, after = jsonschema_rs.validator_for(schema), jsonschema_rs.validator_for(flat)
        assert [before.is_valid(each) for each in arguments] == [after.is_valid(each) for each in arguments]


@pytest.mark.parametrize(
    "result", [None, [], {}, {"tools": 1}, {"tools": [1, {"name": 2, "inputSchema": 3}]}]
)
def test_a_list_without_tools_to_repair_has_no_repairs(result: Any) -> None:
    assert list(repairs(result, 64, schemas=True, originals={})) == []
