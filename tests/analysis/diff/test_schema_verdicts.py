"""Changes of schemas with their verdicts by hand: mcpspy's verdict agrees, or is `cannot decide`."""

from __future__ import annotations

from typing import Any

import pytest

from mcpspy.analysis.diff.counterexample import CounterexampleSearch
from mcpspy.analysis.diff.model import ChangeSeverity
from mcpspy.analysis.diff.schema import UNDECIDED, compare_schemas
from mcpspy.analysis.lint.schemas import SchemaCache

BREAKING, DIFFERENT, NOTE = ChangeSeverity

S, N, I, B, NULL = ({"type": name} for name in ("string", "number", "integer", "boolean", "null"))  # noqa: E741
LIST, OBJECT = {"type": "array"}, {"type": "object"}
CLOSED = {"additionalProperties": False}
PET = {"properties": {"kind": {"const": "pet"}, "age": I}, "type": "object", "required": ["kind"]}
CAR = {"properties": {"kind": {"const": "car"}, "age": I}, "type": "object", "required": ["kind"]}


def record(*required: str, **properties: Any) -> dict[str, Any]:
    needed = {"required": list(required)} if required else {}
    return {"type": "object", "properties": properties, **needed}


def several(keyword: str, *schemas: Any) -> dict[str, Any]:
    return {keyword: list(schemas)}


CHANGES: list[tuple[str, Any, Any, str]] = [
    # Arguments of a tool.
    ("input", record(a=S), record(a=S, b=I), "compatible"),
    ("input", record(a=S), record("b", a=S, b=I), "breaking"),
    ("input", record(a=S), record("a", a=S), "breaking"),
    ("input", record("a", a=S), record(a=S), "compatible"),
    ("input", record("a", "b", a=S, b=S), record("a", a=S, b=S), "compatible"),
    ("input", record(a=S, b=I), record(a=S), "different"),
    ("input", record(a=S, b=I) | CLOSED, record(a=S) | CLOSED, "breaking"),
    ("input", record(a=S), record(a=S) | CLOSED, "breaking"),
    ("input", record(a=S) | CLOSED, record(a=S), "compatible"),
    ("input", record(a=S) | CLOSED, record(a=S, b=I) | CLOSED, "compatible"),
    ("input", record(a=S) | CLOSED, record("b", a=S, b=I) | CLOSED, "breaking"),
    ("input", OBJECT, record(a=S), "compatible"),
    ("input", OBJECT, OBJECT | CLOSED, "breaking"),
    ("input", record(a=S) | {"additionalProperties": S}, record(a=S) | {"additionalProperties": N}, "breaking"),
    ("input", record(a=S) | {"additionalProperties": I}, record(a=S, b=N) | {"additionalProperties": I}, "compatible"),
    ("input", record(a=S) | {"additionalProperties": S}, record(a=S, b=N) | {"additionalProperties": S}, "breaking"),
    ("input", record(a=S) | {"additionalProperties": True}, record(a=S), "compatible"),
    ("input", record(a=S, city=S), record(a=S, town=S), "different"),
    ("input", record("city", city=S), record("town", town=S), "breaking"),
    ("input", record(a=record("b", b=S)), record(a=record("b", "c", b=S, c=S)), "breaking"),
    ("input", record("a", a=record("b", b=record(c=S))), record("a", a=record("b", b=record(c=I))), "breaking"),
    ("input", record(a=record(b=S)), record(a=record(b=S, c=S)), "compatible"),
    ("input", record(a=S), record(a=S | {"default": "x"}), "different"),
    ("input", record(a=S), record(a=S | {"description": "x", "title": "A"}), "compatible"),
    ("input", record(a=S), {"$schema": "https://json-schema.org/draft/2020-12/schema", **record(a=S)}, "compatible"),
    ("input", {"properties": {"a": S}}, {"properties": {"a": False}}, "breaking"),
    ("input", record(a=I), record(a=I | {"maximum": 2**53 - 1}), "breaking"),
    ("input", record(a=I), record(a=I | {"minimum": -(2**53) + 1}), "breaking"),
    ("input", record(a=I | {"maximum": 2**53}), record(a=I | {"maximum": 2**53 - 1}), "breaking"),
    # Types.
    ("input", S, I, "breaking"),
    ("input", I, N, "compatible"),
    ("input", N, I, "breaking"),
    ("input", S, {"type": ["string", "null"]}, "compatible"),
    ("input", {"type": ["string", "null"]}, S, "breaking"),
    ("input", {"type": ["string"]}, S, "compatible"),
    ("input", S, {}, "compatible"),
    ("input", {}, S, "breaking"),
    ("input", {}, True, "compatible"),
    ("input", S, False, "breaking"),
    ("input", False, S, "compatible"),
    ("input", B, {"enum": [True, False]}, "compatible"),
    ("input", B, {"const": True}, "breaking"),
    ("input", NULL, {"const": None}, "compatible"),
    ("input", {"type": ["string", "null"]}, several("anyOf", NULL, S), "compatible"),
    ("input", several("anyOf", S, NULL), S, "breaking"),
    ("input", several("anyOf", S, I), several("anyOf", N, S), "compatible"),
    # Constants and listed values.
    ("input", {"const": "a"}, {"enum": ["a"]}, "compatible"),
    ("input", {"const": "a"}, {"enum": ["a", "b"]}, "compatible"),
    ("input", {"const": "a"}, {"enum": ["b", "c"]}, "breaking"),
    ("input", {"enum": ["a", "b"]}, {"const": "a"}, "breaking"),
    ("input", {"enum": ["a", "b"]}, {"enum": ["b", "a"]}, "compatible"),
    ("input", {"enum": ["a", "b"]}, {"enum": ["b", "c"]}, "breaking"),
    ("input", {"enum": ["a", "b"]}, S, "compatible"),
    ("input", {"enum": ["a", 1]}, S, "breaking"),
    ("input", S, S | {"enum": ["a"]}, "breaking"),
    ("input", {"const": "a"}, S | {"const": "a"}, "compatible"),
    ("input", {"enum": ["a", "bc"]}, {"pattern": "^[a-z]+$"}, "compatible"),
    ("input", {"enum": [2, 4]}, {"multipleOf": 2, "maximum": 4}, "compatible"),
    ("input", {"const": 1}, {"const": 1.0}, "compatible"),
    ("input", several("anyOf", {"const": "a"}, {"const": "b"}), S | {"enum": ["a", "b"]}, "compatible"),
    ("input", {"enum": ["a", "b"]}, several("anyOf", {"const": "a"}, {"const": "b"}), "compatible"),
    ("input", {"enum": ["a", "b"]}, several("anyOf", {"const": "a"}, {"const": "c"}), "breaking"),
    ("input", several("oneOf", {"const": "a", "title": "A"}, {"const": "b"}), {"enum": ["b", "a"]}, "compatible"),
    # Numbers.
    ("input", I | {"exclusiveMaximum": 6}, I | {"maximum": 5}, "compatible"),
    ("input", I | {"maximum": 5}, I | {"exclusiveMaximum": 6}, "compatible"),
    ("input", N | {"exclusiveMaximum": 6}, N | {"maximum": 5}, "breaking"),
    ("input", N | {"maximum": 5}, N | {"exclusiveMaximum": 6}, "compatible"),
    ("input", N | {"maximum": 5}, N | {"exclusiveMaximum": 5}, "breaking"),
    ("input", I | {"exclusiveMinimum": 0}, I | {"minimum": 1}, "compatible"),
    ("input", I | {"minimum": 1}, I | {"minimum": 0}, "compatible"),
    ("input", I | {"minimum": 0}, I | {"minimum": 1}, "breaking"),
    ("input", I, I | {"maximum": 100}, "breaking"),
    ("input", I | {"maximum": 4.5}, I | {"maximum": 4}, "compatible"),
    ("input", S, S | {"maximum": 100}, "compatible"),
    ("input", N | {"multipleOf": 6}, N | {"multipleOf": 3}, "compatible"),
    ("input", N | {"multipleOf": 3}, N | {"multipleOf": 6}, "breaking"),
    ("input", N | {"multipleOf": 0.3}, N | {"multipleOf": 0.1}, "compatible"),
    ("input", N | {"multipleOf": 0.1}, N | {"multipleOf": 0.3}, "breaking"),
    ("input", N | {"multipleOf": 4}, N | {"multipleOf": 6}, "breaking"),
    ("input", I, I | {"multipleOf": 1}, "compatible"),
    ("input", N | {"multipleOf": 2}, I, "compatible"),
    # Texts.
    ("input", S | {"maxLength": 9}, S | {"maxLength": 5}, "breaking"),
    ("input", S | {"maxLength": 5}, S | {"maxLength": 9}, "compatible"),
    ("input", S, S | {"minLength": 0}, "compatible"),
    ("input", S, S | {"minLength": 1}, "breaking"),
    ("input", S, S | {"pattern": "^[a-z]+$"}, "breaking"),
    ("input", S | {"pattern": "^[a-z]+$"}, S, "compatible"),
    ("input", S | {"pattern": "^[a-z]+$"}, S | {"pattern": "^[0-9]+$"}, "breaking"),
    ("input", S | {"pattern": "^[a-z]+$"}, S | {"pattern": "^[a-z0-9]+$"}, "compatible"),
    ("input", S | {"pattern": "^(ab|cd){2}$"}, S | {"pattern": "^[ab]+$"}, "breaking"),
    ("input", S, S | {"format": "date"}, "breaking"),
    ("input", S | {"format": "date"}, S, "compatible"),
    ("input", S | {"format": "date"}, S | {"format": "date-time"}, "breaking"),
    ("input", I | {"format": "int32"}, I | {"format": "int64"}, "compatible"),
    # Arrays.
    ("input", LIST | {"items": S}, LIST | {"items": I}, "breaking"),
    ("input", LIST, LIST | {"items": S}, "breaking"),
    ("input", LIST | {"items": I}, LIST | {"items": N}, "compatible"),
    ("input", LIST, LIST | {"minItems": 1}, "breaking"),
    ("input", LIST | {"maxItems": 2}, LIST | {"maxItems": 3}, "compatible"),
    ("input", LIST, LIST | {"uniqueItems": True}, "breaking"),
    ("input", LIST | {"uniqueItems": True}, LIST | {"uniqueItems": False}, "compatible"),
    ("input", LIST | {"prefixItems": [S, I]}, LIST | {"prefixItems": [S]}, "compatible"),
    ("input", LIST | {"prefixItems": [S]}, LIST | {"prefixItems": [S, I]}, "breaking"),
    ("input", LIST | {"prefixItems": [S], "items": I}, LIST | {"prefixItems": [S, N], "items": I}, "compatible"),
    ("input", LIST | {"contains": S}, LIST | {"contains": S, "minContains": 2}, "breaking"),
    # Alternatives and conditions.
    ("input", several("anyOf", S, I), several("anyOf", S, I, B), "compatible"),
    ("input", several("anyOf", S, I), several("anyOf", S, B), "breaking"),
    ("input", several("oneOf", S, I), several("anyOf", S, I), "compatible"),
    ("input", several("oneOf", S, S | {"maxLength": 3}), several("anyOf", S, S | {"maxLength": 3}), "compatible"),
    ("input", several("anyOf", S, S | {"maxLength": 3}), several("oneOf", S, S | {"maxLength": 3}), "breaking"),
    ("input", several("anyOf", S, I), several("oneOf", S, I), "compatible"),
    ("input", several("oneOf", S, I), several("oneOf", S, I, NULL), "compatible"),
    ("input", several("oneOf", I, S), several("oneOf", I, S, N), "breaking"),
    ("input", several("oneOf", PET), several("oneOf", PET, CAR), "compatible"),
    ("input", several("oneOf", PET, CAR), several("oneOf", PET), "breaking"),
    ("input", several("allOf", S), S, "compatible"),
    ("input", several("allOf", S), several("allOf", S, {"minLength": 1}), "breaking"),
    ("input", several("allOf", S, {"minLength": 1}), several("allOf", {"minLength": 1}), "compatible"),
    ("input", S | {"minLength": 1}, several("allOf", S, {"minLength": 1}), "compatible"),
    ("input", {"not": S}, {"not": several("anyOf", S, I)}, "breaking"),
    ("input", {"not": {"enum": [1, 2]}}, {"not": {"enum": [1]}}, "compatible"),
    ("input", {}, {"if": S, "then": {"minLength": 2}}, "breaking"),
    ("input", {"if": S, "then": {"minLength": 2}}, {}, "compatible"),
    ("input", OBJECT, OBJECT | {"minProperties": 1}, "breaking"),
    ("input", OBJECT, OBJECT | {"maxProperties": 2}, "breaking"),
    ("input", OBJECT, OBJECT | {"propertyNames": {"maxLength": 3}}, "breaking"),
    ("input", OBJECT, OBJECT | {"patternProperties": {"^x-": S}}, "breaking"),
    ("input", record(a=S, b=S), record(a=S, b=S) | {"dependentRequired": {"a": ["b"]}}, "breaking"),
    # References.
    ("input", record(a={"$ref": "#/$defs/A"}) | {"$defs": {"A": S}}, record(a=S), "compatible"),
    ("input", {"$ref": "#/$defs/A", "$defs": {"A": S}}, {"$ref": "#/$defs/B", "$defs": {"B": I}}, "breaking"),
    ("input", {"$ref": "#/$defs/A", "$defs": {"A": S}}, {"$ref": "#/$defs/A", "$defs": {"A": I}}, "breaking"),
    ("input", {"$ref": "https://example.com/a"}, {"$ref": "https://example.com/b"}, "different"),
    (
        "input",
        {"$ref": "#/$defs/A", "maxLength": 2, "$defs": {"A": {"maxLength": 3}}},
        {"$ref": "#/$defs/A", "maxLength": 3, "$defs": {"A": {"maxLength": 3}}},
        "compatible",
    ),
    (
        "input",
        {"$ref": "#/$defs/T", "$defs": {"T": record(next={"$ref": "#/$defs/T"}, n=N)}},
        {"$ref": "#/$defs/T", "$defs": {"T": record(next={"$ref": "#/$defs/T"}, n=I)}},
        "breaking",
    ),
    (
        "input",
        {"$ref": "#/$defs/A", "maxLength": 9, "$defs": {"A": {"maxLength": 3}}},
        {"$ref": "#/$defs/A", "maxLength": 9, "$defs": {"A": {"maxLength": 2}}},
        "breaking",
    ),
    (
        "input",
        {"not": {"$ref": "#/$defs/A"}, "$defs": {"A": S}},
        {"not": {"$ref": "#/$defs/A"}, "$defs": {"A": I}},
        "breaking",
    ),
    (
        "input",
        several("anyOf", {"$ref": "#/$defs/A"}, {"$ref": "#/$defs/A", "maxLength": 5}) | {"$ref": "#/$defs/A", "$defs": {"A": S}},
        several("anyOf", {"$ref": "#/$defs/A", "maxLength": 1}) | {"$ref": "#/$defs/A", "$defs": {"A": S}},
        "breaking",
    ),
    # Keywords that depend on others.
    ("input", {"patternProperties": {"^a": S}} | CLOSED, {"patternProperties": {"^a": S}, "properties": {"a": I}}, "breaking"),
    ("input", {"patternProperties": {"^a": S}} | CLOSED, CLOSED, "breaking"),
    ("input", record(a=S) | CLOSED, {"type": "object", "patternProperties": {"^a": S}} | CLOSED, "compatible"),
    (
        "input",
        several("allOf", record(a=S)) | {"unevaluatedProperties": False},
        several("allOf", OBJECT) | {"unevaluatedProperties": False},
        "breaking",
    ),
    ("output", {"unevaluatedProperties": False}, {"unevaluatedProperties": False, "additionalProperties": True}, "breaking"),
    ("input", record(a=S) | {"unevaluatedProperties": False}, record(a=S | {"title": "A"}) | {"unevaluatedProperties": False}, "compatible"),
    ("input", {"enum": ["a", "b"]}, {"enum": ["a", "b"], "const": "a"}, "breaking"),
    # Results of a tool: the other direction.
    ("output", record("a", a=S), record(a=S), "breaking"),
    ("output", record(a=S), record("a", a=S), "compatible"),
    ("output", record("a", "b", a=S, b=S), record("a", a=S), "breaking"),
    ("output", record(a=S, b=S), record(a=S), "breaking"),
    ("output", record(a=S), record(a=S, b=S), "compatible"),
    ("output", record(a=S) | CLOSED, record(a=S, b=S) | CLOSED, "breaking"),
    ("output", record(a=S), record(a=S) | CLOSED, "compatible"),
    ("output", I, N, "breaking"),
    ("output", N, I, "compatible"),
    ("output", {"enum": ["a"]}, {"enum": ["a", "b"]}, "breaking"),
    ("output", {"enum": ["a", "b"]}, {"const": "a"}, "compatible"),
    ("output", S, {"type": ["string", "null"]}, "breaking"),
    ("output", several("oneOf", S, S | {"maxLength": 3}), several("anyOf", S, S | {"maxLength": 3}), "breaking"),
    ("output", several("anyOf", S, I), several("oneOf", S, I), "compatible"),
    ("output", I | {"maximum": 5}, I | {"exclusiveMaximum": 6}, "compatible"),
    ("output", I | {"maximum": 5}, I | {"exclusiveMaximum": 7}, "breaking"),
    ("output", N | {"multipleOf": 3}, N | {"multipleOf": 6}, "compatible"),
    ("output", S | {"maxLength": 5}, S | {"maxLength": 9}, "breaking"),
    ("output", LIST | {"items": S}, LIST, "breaking"),
    ("output", record("a", a=record(b=S)), record("a", a=record("b", b=S)), "compatible"),
]  # fmt: skip

NOT_DECIDED = 4
"""Changes above that mcpspy cannot decide: patterns, `not`, and external references."""


def verdict(old: Any, new: Any, *, is_input: bool) -> str:
    found = compare_schemas(old, new, is_input=is_input)
    severities = {each.severity for each in found}
    if BREAKING in severities:
        return "breaking"
    if any(UNDECIDED in each.why for each in found):
        return "cannot decide"
    return "different" if DIFFERENT in severities else "compatible"


@pytest.mark.parametrize(("side", "old", "new", "by_hand"), CHANGES, ids=str)
def test_the_verdict_about_a_change_agrees_with_the_one_by_hand_and_with_instances(
    side: str, old: Any, new: Any, by_hand: str
) -> None:
    is_input = side == "input"
    wide, narrow = (old, new) if is_input else (new, old)
    accepting, refusing = (SchemaCache(formats=True).check(schema) for schema in (wide, narrow))

    instances = CounterexampleSearch(wide, narrow, undeclared=not is_input).counterexamples()

    assert verdict(old, new, is_input=is_input) in (by_hand, "cannot decide")
    assert bool(instances) is (by_hand == "breaking")
    for value in instances:
        assert accepting.accepts(value) is True
        assert refusing.accepts(value) is False


def test_few_changes_cannot_be_decided_and_none_of_them_is_breaking() -> None:
    undecided = [
        (old, new, by_hand)
        for side, old, new, by_hand in CHANGES
        if verdict(old, new, is_input=side == "input") == "cannot decide"
    ]

    assert len(CHANGES) >= 100
    assert len(undecided) == NOT_DECIDED
    assert "breaking" not in [by_hand for *_, by_hand in undecided]
