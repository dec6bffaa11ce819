"""Tests of the fields of a JSON schema, and of the short text for a type."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpspy.ui.model.interface import MOST, TYPE_WIDTH, SchemaField, fields, type_of

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.sampled_from(
                ["type", "properties", "items", "enum", "anyOf", "required", "$ref", "const", "default"]
            )
            | st.text(max_size=3),
            inner,
            max_size=5,
        )
    ),
    max_leaves=30,
)


@pytest.mark.parametrize(
    ("schema", "said"),
    [
        ({"type": "string"}, "string"),
        ({"type": ["string", "null"]}, "string | null"),
        ({"type": "array", "items": {"type": "integer"}}, "array of integer"),
        ({"type": "array"}, "array"),
        ({"enum": ["a", 1, None]}, '"a" | 1 | null'),
        ({"const": "x"}, '"x"'),
        (
            {"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]},
            "string | array of string",
        ),
        ({"$ref": "#/$defs/City"}, "City"),
        ({"properties": {}}, "object"),
        (True, "any"),
        ({}, ""),
        (7, ""),
    ],
)
def test_a_type_is_described_in_short_text(schema: object, said: str) -> None:
    assert type_of(schema) == said


def test_a_long_type_is_cut() -> None:
    assert len(type_of({"enum": [str(n) * 30 for n in range(20)]})) == TYPE_WIDTH


def test_properties_have_a_name_a_type_and_a_required_flag() -> None:
    schema: dict[str, Any] = {
        "type": "object",
        "required": ["city"],
        "properties": {
            "city": {"type": "string", "description": "which one"},
            "days": {"type": "integer", "default": 3},
        },
    }
    assert fields(schema) == [
        SchemaField("city", "string", True, "which one"),
        SchemaField("days", "integer", False, "(default 3)"),
    ]


def test_nested_objects_are_named_by_their_path() -> None:
    inner = {"type": "object", "properties": {"x": {"type": "number"}}}
    schema = {"properties": {"at": inner, "all": {"type": "array", "items": inner}}}

    assert [field.name for field in fields(schema)] == ["at", "at.x", "all", "all[].x"]


def test_the_number_of_fields_is_limited() -> None:
    schema: dict[str, Any] = {"properties": {f"p{n}": {} for n in range(MOST + 5)}}
    assert (len(fields(schema)), fields(schema)[-1].about) == (MOST + 1, "more than 300 fields")


def test_a_recursive_schema_is_read_to_a_maximum_depth() -> None:
    schema: dict[str, Any] = {}
    schema.update(type="object", properties={"a": schema})
    assert [field.name for field in fields(schema)] == ["a", "a.a", "a.a.a", "a.a.a.a"]


@given(JSON)
def test_no_schema_causes_a_crash(schema: object) -> None:
    type_of(schema)
    fields(schema)
