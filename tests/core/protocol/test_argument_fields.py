"""The fields of a form from a schema: their kinds, and the values of their texts."""

from __future__ import annotations

import re
from typing import Any

import pytest

from mcpspy.core.jsontools import ABSENT
from mcpspy.core.protocol.argument_fields import (
    EXAMINED,
    MOST,
    ArgumentField,
    FieldKind,
    argument_fields,
    text_in,
    value_in,
)


def only(part: Any, **more: Any) -> ArgumentField:
    """Return the only field of a schema with one member."""
    (field,), _ = argument_fields({"type": "object", "properties": {"a": part}, **more})
    return field


@pytest.mark.parametrize(
    ("part", "kind", "choices"),
    [
        ({"type": "string"}, FieldKind.TEXT, ()),
        ({"type": ["string", "null"]}, FieldKind.TEXT, ()),
        ({"type": "integer"}, FieldKind.NUMBER, ()),
        ({"anyOf": [{"type": "number"}, {"type": "null"}]}, FieldKind.NUMBER, ()),
        ({"type": "boolean"}, FieldKind.BOOLEAN, (True, False)),
        ({"anyOf": [{"type": "boolean"}, {"type": "null"}]}, FieldKind.BOOLEAN, (True, False, None)),
        ({"enum": ["a", 1, None]}, FieldKind.CHOICE, ("a", 1, None)),
        ({"const": "x"}, FieldKind.CHOICE, ("x",)),
        ({"oneOf": [{"const": "x", "title": "X"}, {"const": "y"}]}, FieldKind.CHOICE, ("x", "y")),
        ({"anyOf": [{"enum": ["a", "b"]}, {"type": "null"}]}, FieldKind.CHOICE, ("a", "b", None)),
        ({"enum": list(range(1000))}, FieldKind.JSON, ()),
        ({"type": "array", "items": {"type": "string"}}, FieldKind.JSON, ()),
        ({"type": "object"}, FieldKind.JSON, ()),
        ({"type": "object", "properties": {}}, FieldKind.JSON, ()),
        ({"anyOf": [{"type": "object", "properties": {"x": {}}}, {"type": "null"}]}, FieldKind.JSON, ()),
        ({"anyOf": [{"type": "string"}, {"type": "integer"}]}, FieldKind.TEXT, ()),
        ({}, FieldKind.JSON, ()),
        (True, FieldKind.JSON, ()),
        (7, FieldKind.JSON, ()),
        ({"$ref": "#/$defs/missing"}, FieldKind.JSON, ()),
        ({"$ref": "https://example.com/schema"}, FieldKind.JSON, ()),
    ],
    ids=str,
)
def test_a_schema_gives_a_field_its_kind(part: Any, kind: FieldKind, choices: tuple[Any, ...]) -> None:
    field = only(part)
    assert (field.kind, field.choices) == (kind, choices)


def test_members_of_objects_are_fields_and_needed_only_if_their_object_is() -> None:
    place = {"type": "object", "properties": {"lat": {"type": "number"}, "name": {}}, "required": ["lat"]}
    schema = {
        "properties": {"here": {"$ref": "#/$defs/Place"}, "there": {"$ref": "#/$defs/Place"}},
        "required": ["here"],
        "$defs": {"Place": place},
    }
    fields, _ = argument_fields(schema)
    assert [(each.name, each.is_required, each.is_needed) for each in fields] == [
        ("here.lat", True, True),
        ("here.name", False, False),
        ("there.lat", True, False),
        ("there.name", False, False),
    ]


def test_required_names_of_all_parts_count_and_those_of_one_alternative_do_not() -> None:
    schema = {
        "allOf": [{"properties": {"a": {}}, "required": ["a"]}, {"properties": {"b": {}}}],
        "anyOf": [{"properties": {"c": {}}, "required": ["c"]}, {}],
    }
    assert {each.name: each.is_needed for each in argument_fields(schema)[0]} == {
        "a": True,
        "b": False,
        "c": False,
    }


def test_the_description_default_and_bounds_of_a_reference_are_found() -> None:
    schema = {
        "properties": {"a": {"$ref": "#/$defs/N", "description": "own"}, "b": {"$ref": "#/$defs/N"}},
        "$defs": {
            "N": {"type": "integer", "description": "shared", "default": 2, "minimum": 1, "maximum": 9}
        },
    }
    fields, _ = argument_fields(schema)
    assert [(each.about, each.default, each.bounds) for each in fields] == [
        ("own", 2, "1 to 9"),
        ("shared", 2, "1 to 9"),
    ]


@pytest.mark.parametrize(
    ("part", "words"),
    [
        ({"type": ["string", "null"]}, "string or null"),
        ({"anyOf": [{"type": "string"}, {"type": "integer"}]}, "string or integer"),
        ({"enum": ["a", 1, None]}, '"a" | 1 | null'),
        ({"const": True}, "true"),
        ({"anyOf": [{"enum": ["a", "b"]}, {"type": "null"}]}, '"a" | "b" | null'),
        ({"type": "array", "items": {"type": "string"}}, "array of strings"),
        ({"type": "array", "items": {"$ref": "#/properties/a"}}, "array of arrays"),
        ({"type": "array", "items": [{}]}, "array"),
        (
            {"type": "array", "items": {"type": "object", "properties": {"x": {}, "y": {}}}},
            "array of objects with x, y",
        ),
        ({"anyOf": [{"const": 1}, {}]}, "any value"),
        ({}, "any value"),
    ],
    ids=str,
)
def test_a_field_names_its_types_or_values(part: Any, words: str) -> None:
    assert only(part).type == words


@pytest.mark.parametrize(
    ("part", "bounds"),
    [
        ({"type": "number", "exclusiveMinimum": 0}, "above 0"),
        ({"type": "integer", "maximum": 5, "multipleOf": 5}, "at most 5, a multiple of 5"),
        ({"type": "string", "minLength": 2, "format": "uri"}, "at least 2 characters, format uri"),
        ({"type": "array", "minItems": 1, "maxItems": 3}, "1 to 3 items"),
        ({"type": "string", "pattern": "^a$"}, "pattern ^a$"),
        ({"type": "integer", "minimum": 10**400, "maximum": "x", "multipleOf": True}, ""),
    ],
    ids=str,
)
def test_bounds_are_in_words(part: Any, bounds: str) -> None:
    assert only(part).bounds == bounds


@pytest.mark.parametrize(
    ("part", "text", "value"),
    [
        ({"type": "string"}, "007", "007"),
        ({"type": "integer"}, "7", 7),
        ({"type": "boolean"}, "true", True),
        ({"enum": ["a", 1]}, '"a"', "a"),
        ({"enum": ["a", 1]}, "1", 1),
        ({"type": "array", "items": {"type": "string"}}, '["a"]', ["a"]),
        ({"type": "array", "items": {"type": "string"}}, "a", ["a"]),
        ({"anyOf": [{"type": "string"}, {"type": "integer"}]}, "7", 7),
        ({"anyOf": [{"type": "string"}, {"type": "integer"}]}, "x", "x"),
        ({"type": ["string", "null"]}, "null", None),
    ],
    ids=str,
)
def test_a_text_has_the_value_of_its_type(part: Any, text: str, value: Any) -> None:
    assert value_in(only(part), text, {}) == value


@pytest.mark.parametrize(
    ("part", "text", "why"),
    [
        ({"type": "integer"}, "x", "not an integer"),
        ({"type": "number"}, "1e400", "not a number"),
        ({"type": "object"}, "{", "not JSON: column 2"),
        ({"type": "object"}, '{"a":\n1', "not JSON: line 2, column 2"),
        ({"type": "object"}, "x", "not an object"),
        ({"type": "array"}, "[" * 100_000, "not JSON: nested too deeply"),
        ({"enum": ["a"]}, "b", 'not one of "a"'),
    ],
    ids=lambda value: str(value)[:30],
)
def test_a_text_without_a_value_has_a_reason(part: Any, text: str, why: str) -> None:
    with pytest.raises(ValueError, match=re.escape(why)):
        value_in(only(part), text, {})


@pytest.mark.parametrize(
    ("part", "value", "text"),
    [
        ({"type": "string"}, "a b", "a b"),
        ({"type": "string"}, "", None),
        ({"type": ["string", "null"]}, "null", None),
        ({"type": "integer"}, 3, "3"),
        ({"type": "integer"}, "3", None),
        ({"type": "boolean"}, False, "false"),
        ({"enum": ["a", 1]}, "1", None),
        ({"type": "array"}, [1, "x"], '[1, "x"]'),
    ],
    ids=str,
)
def test_a_value_has_a_text_only_if_the_text_has_that_value(part: Any, value: Any, text: str | None) -> None:
    assert text_in(only(part), value, {}) == text


def test_of_a_thousand_members_those_that_are_needed_stay() -> None:
    schema = {"properties": {f"p{number}": {} for number in range(1000)}, "required": ["p999"]}
    fields, left_out = argument_fields(schema)
    assert (len(fields), left_out, fields[-1].name) == (MOST, 1000 - MOST, "p999")


@pytest.mark.timeout(30)
@pytest.mark.parametrize(
    "schema",
    [
        None,
        True,
        [1],
        {"properties": []},
        {"properties": {"a": None}, "required": "a"},
        {"$ref": "#"},
        {"properties": {"a": {"$ref": "#/properties/a"}}},
        {"properties": {"a": {"$ref": "#"}}},
        {"anyOf": [{"$ref": "#"}] * 30},
        {"properties": {"a": {"anyOf": [{"$ref": "#"}, {"$ref": "#/properties/a"}] * 9}}},
        {"properties": {f"{n}": {"properties": {f"{m}": {} for m in range(99)}} for n in range(99)}},
        {
            "properties": {f"{n}": {"$ref": "#/$defs/x"} for n in range(EXAMINED)},
            "$defs": {"x": {"anyOf": [{"minLength": n} for n in range(300)]}},
        },
    ],
    ids=lambda schema: str(schema)[:50],
)
def test_invalid_and_hostile_schemas_have_few_fields_soon(schema: Any) -> None:
    fields, _ = argument_fields(schema)
    assert len(fields) <= MOST
    assert all(each.default is ABSENT for each in fields)
