"""Severity of JSON Schema changes, keyword by keyword."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import UNSET

from mcpspy.analysis.diff import schema
from mcpspy.analysis.diff.model import ChangeSeverity
from mcpspy.analysis.diff.schema import UNDECIDED, compare_schemas

BREAKING, DIFFERENT, NOTE = ChangeSeverity

STRING, NUMBER, INTEGER = {"type": "string"}, {"type": "number"}, {"type": "integer"}
NULL = {"type": "null"}
OBJECT = {"type": "object", "properties": {"a": STRING}, "required": ["a"]}
OPEN = {"unevaluatedProperties": False}


def weights(old: Any, new: Any, *, is_input: bool = True) -> list[tuple[str, ChangeSeverity]]:
    return [
        ("/".join(found.tokens), found.severity) for found in compare_schemas(old, new, is_input=is_input)
    ]


NARROWER = {
    "a property is required": ({"properties": {"a": STRING}}, OBJECT | {"type": "object"}),
    "a type for any": ({}, STRING),
    "fewer types": ({"type": ["string", "null"]}, STRING),
    "integer for number": (NUMBER, INTEGER),
    "fewer values": ({"enum": ["a", "b"]}, {"enum": ["a"]}),
    "values for any": (STRING, STRING | {"enum": ["a"]}),
    "one value": ({"enum": [1, 2]}, {"enum": [2]}),
    "a higher minimum": ({"minimum": 1}, {"minimum": 2}),
    "a minimum": ({}, {"minimum": 2}),
    "a lower maximum": ({"maxLength": 9}, {"maxLength": 5}),
    "a pattern": (STRING, STRING | {"pattern": "^a"}),
    "closed": ({"type": "object"}, {"type": "object", "additionalProperties": False}),
    "fewer alternatives": ({"anyOf": [STRING, NUMBER]}, {"anyOf": [STRING]}),
    "null is gone": ({"anyOf": [STRING, NULL]}, STRING),
    "one more condition": ({"allOf": [STRING]}, {"allOf": [STRING, {"minLength": 1}]}),
    "items of a type": ({"type": "array"}, {"type": "array", "items": STRING}),
    "in an item": ({"items": {"enum": [1, 2]}}, {"items": {"enum": [1]}}),
    "behind a reference": (
        {"properties": {"a": {"$ref": "#/$defs/A"}}, "$defs": {"A": {"enum": [1, 2]}}},
        {"properties": {"a": {"$ref": "#/$defs/B"}}, "$defs": {"B": {"enum": [1]}}},
    ),
}


@pytest.mark.parametrize("name", NARROWER)
def test_an_input_that_accepts_less_is_breaking_and_one_that_accepts_more_a_note(name: str) -> None:
    old, new = NARROWER[name]

    assert BREAKING in [severity for _, severity in weights(old, new)]
    assert {severity for _, severity in weights(new, old)} == {NOTE}


@pytest.mark.parametrize("name", sorted(NARROWER.keys() - {"closed", "items of a type"}))
def test_an_output_that_allows_more_is_breaking_and_one_that_allows_less_a_note(name: str) -> None:
    old, new = NARROWER[name]

    assert {severity for _, severity in weights(old, new, is_input=False)} == {NOTE}
    assert BREAKING in [severity for _, severity in weights(new, old, is_input=False)]


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        (OBJECT, {**OBJECT, "properties": {"a": STRING, "b": STRING}}, [("properties/b", NOTE)]),
        (
            OBJECT,
            {**OBJECT, "properties": {"a": STRING, "b": STRING}, "required": ["a", "b"]},
            [("properties/b", BREAKING)],
        ),
        (OBJECT, {"type": "object", "properties": {}, "required": []}, [("properties/a", DIFFERENT)]),
        (STRING, NUMBER, [("type", BREAKING)]),
        ({"enum": ["a", "b"]}, {"enum": ["b", "c"]}, [("enum", BREAKING)]),
        ({"enum": ["a", "b"]}, {"enum": ["b", "a"]}, [("enum", NOTE)]),
        ({"pattern": "a"}, {"pattern": "b"}, [("pattern", BREAKING)]),
        ({"minimum": 1}, {"minimum": "x"}, [("minimum", DIFFERENT)]),
        (STRING, STRING | {"default": "x"}, [("default", DIFFERENT)]),
        (STRING, STRING | {"x-mine": 1}, [("x-mine", DIFFERENT)]),
        (STRING | {"title": "a"}, STRING | {"title": "b", "description": "c"}, [("title", NOTE), ("description", NOTE)]),
        (STRING, {"anyOf": [STRING, NULL], "default": None}, [("default", DIFFERENT), ("anyOf/1", NOTE)]),
        ({"type": ["string", "null"]}, {"anyOf": [STRING, NULL]}, []),
        ({"anyOf": [STRING, NULL]}, {"anyOf": [NULL, STRING]}, []),
        ({"anyOf": [STRING, NULL]}, {"anyOf": [NUMBER, NULL]}, [("anyOf/0/type", BREAKING)]),
        ({"additionalProperties": True}, {}, []),
        ({"additionalProperties": STRING}, {"additionalProperties": NUMBER}, [("additionalProperties/type", BREAKING)]),
        ({"$defs": {"A": STRING}}, {"$defs": {"A": NUMBER}}, []),
        ({"$schema": "a", "type": "string"}, STRING, []),
        ({"required": ["z"]}, {}, [("required", NOTE)]),
        (True, False, [("", BREAKING)]),
        (False, True, [("", NOTE)]),
        ("odd", {"type": "string"}, [("", DIFFERENT)]),
        ({"properties": 1, "required": "a", "enum": 3, "anyOf": 1}, {"properties": [], "required": 7, "enum": 4}, None),
        (OBJECT, {**OBJECT, "properties": {"a": STRING, "b": True}}, [("properties/b", NOTE)]),
        # No text of these patterns is known, so nothing proves that one accepts less.
        (STRING | {"pattern": "^(?=a)b"}, STRING | {"pattern": "^b"}, [("pattern", DIFFERENT)]),
        (STRING | {"pattern": "["}, STRING | {"pattern": "a"}, [("pattern", DIFFERENT)]),
        (STRING | {"pattern": "a\\"}, STRING | {"pattern": "b"}, [("pattern", DIFFERENT)]),
        # References to an item of a list, and to nothing.
        ({"items": {"$ref": "#/$defs/A/anyOf/1"}, "$defs": {"A": {"anyOf": [STRING, {"enum": [1, 2]}]}}},
         {"items": {"enum": [1]}}, [("items/enum", BREAKING)]),
        ({"items": {"$ref": "#/$defs/~9"}}, {"items": STRING}, [("items/$ref", NOTE), ("items/type", DIFFERENT)]),
        (OPEN | {"allOf": [OBJECT | {"title": "a"}]}, OPEN | {"allOf": [OBJECT | {"title": "b"}]}, [("allOf/0/title", NOTE)]),
    ],
    ids=str,
)  # fmt: skip
def test_a_change_of_an_input_schema_has_a_severity(
    old: Any, new: Any, expected: list[tuple[str, ChangeSeverity]] | None
) -> None:
    if expected is None:  # The severity does not matter, but the change is reported and nothing is raised.
        assert weights(old, new)
    else:
        assert weights(old, new) == expected


def test_schemas_that_are_nested_too_deep_are_reported_as_a_whole() -> None:
    def nested(schema: Any) -> Any:
        for _ in range(5000):
            schema = {"items": schema}
        return schema

    (found,) = compare_schemas(nested(STRING), STRING, is_input=True)
    assert (found.tokens, found.severity, found.why) == ((), DIFFERENT, "nested too deep to compare")


def test_a_breaking_change_shows_an_instance_and_its_direction() -> None:
    more = {"type": "object", "properties": {"a": STRING, "b": INTEGER}, "required": ["a", "b"]}

    (argument,) = compare_schemas(OBJECT, more, is_input=True)
    (result,) = compare_schemas(more, OBJECT, is_input=False)

    assert argument.why == 'gained a required property b; now refuses {"a":""}'
    assert result.why == 'lost the property b; now allows {"a":""}'


def test_each_of_several_changes_has_its_own_instance() -> None:
    old = {"type": "object", "properties": {"a": STRING, "b": INTEGER, "c": STRING | {"pattern": "^a+$"}}}
    new = {"type": "object", "properties": {"a": NUMBER, "b": STRING, "c": STRING | {"pattern": "^(a)+$"}}}

    found = {each.tokens[1]: each for each in compare_schemas(old, new, is_input=True)}

    assert found["a"].why == 'now refuses {"a":""}'
    assert found["b"].why == 'now refuses {"b":0}'
    assert (found["c"].severity, found["c"].why) == (DIFFERENT, UNDECIDED)


def test_a_schema_that_cannot_be_validated_has_no_verdict() -> None:
    outside = {"properties": {"a": {"$ref": "https://example.com/schema"}}}

    (found,) = compare_schemas(outside, {**outside, "required": ["a"]}, is_input=True)

    assert (found.severity, found.why) == (DIFFERENT, f"a is required now; {UNDECIDED}")


def test_the_comparison_of_a_recursive_schema_ends() -> None:
    old = {"$ref": "#/$defs/T", "$defs": {"T": {"properties": {"next": {"$ref": "#/$defs/T"}, "n": NUMBER}}}}
    new = {"$ref": "#/$defs/T", "$defs": {"T": {"properties": {"next": {"$ref": "#/$defs/T"}, "n": STRING}}}}
    loop = {"$ref": "#/$defs/A", "$defs": {"A": {"$ref": "#/$defs/B"}, "B": {"$ref": "#/$defs/A"}}}

    assert weights(old, new) == [("properties/n/type", BREAKING)]
    assert weights(loop, loop) == []
    assert weights({"$ref": "#/nowhere"}, {"$ref": "other.json"}) != []


def test_a_condition_of_one_is_the_same_as_its_keywords() -> None:
    old = {"allOf": [{"$ref": "#/$defs/A"}], "default": 1, "$defs": {"A": INTEGER}}

    assert compare_schemas(old, INTEGER | {"default": 1}, is_input=True) == []


SCHEMAS = st.recursive(
    st.sampled_from(
        [STRING, NUMBER, {}, True, {"enum": [1, "a"]}, {"$ref": "#"}, {"minimum": 1}, {"const": 1}]
    ),
    lambda below: (
        st.dictionaries(st.sampled_from(["items", "not", "additionalProperties"]), below, max_size=2)
        | st.lists(below, max_size=3).map(lambda some: {"anyOf": some})
        | st.dictionaries(st.sampled_from("ab"), below, max_size=2).map(
            lambda some: {"properties": some, "required": list(some)[:1]}
        )
    ),
    max_leaves=8,
)


@settings(deadline=None)
@given(SCHEMAS, SCHEMAS, st.booleans())
def test_a_schema_equals_itself_and_any_two_schemas_can_be_compared(
    old: Any, new: Any, is_input: bool
) -> None:
    assert compare_schemas(old, old, is_input=is_input) == []
    assert all(found.severity in ChangeSeverity for found in compare_schemas(old, new, is_input=is_input))


def test_a_comparison_that_takes_too_many_steps_proves_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    old, new = ({"anyOf": [OBJECT, {"type": kind}]} for kind in ("integer", "number"))
    assert weights(old, new) == [("anyOf/1/type", NOTE)] or {each for _, each in weights(old, new)} == {NOTE}
    monkeypatch.setattr(schema, "_EFFORT", 1)
    assert BREAKING not in {each for _, each in weights(old, new)}


def test_a_lost_property_is_shown_by_an_instance_that_has_it() -> None:
    """Additional members are refused as well, and such an instance is shorter."""
    old = {"type": "object", "properties": {"long_name": {"type": "string"}}}
    found = {
        each.tokens[-1]: each
        for each in compare_schemas(old, {"type": "object", "additionalProperties": False}, is_input=True)
    }
    assert found["long_name"].why == 'lost the property long_name; now refuses {"long_name":""}'
    assert found["additionalProperties"].why == 'now refuses {"a":1}'


def test_an_alternative_that_alone_has_its_type_is_compared_with_its_successor() -> None:
    """An optional argument of Pydantic is `anyOf` with null: the text has a pattern now, and null is refused."""
    old = {"properties": {"key": {"anyOf": [{"type": "string"}, {"type": "null"}]}}}
    new = {"properties": {"key": {"type": "string", "pattern": "^[A-Z]+$"}}}
    found = {each.tokens: each for each in compare_schemas(old, new, is_input=True)}
    assert {tokens: (each.severity, each.why) for tokens, each in found.items()} == {
        ("properties", "key", "pattern"): (BREAKING, 'now refuses {"key":""}'),
        ("properties", "key", "anyOf", "1"): (BREAKING, 'now refuses {"key":null}'),
    }
    assert found["properties", "key", "pattern"].new == "^[A-Z]+$"


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        (
            {"anyOf": [{"type": "object"}, {"type": "null"}]},
            {"type": "string"},
            [
                (("anyOf", "0"), {"type": "object"}, UNSET),
                (("anyOf", "1"), {"type": "null"}, UNSET),
                ((), UNSET, {"type": "string"}),
            ],
        ),
        (
            {"anyOf": [{"type": "string"}, {"type": "integer"}]},
            {"oneOf": [{"type": "string"}, {"type": "integer", "minimum": 1}]},
            [
                (("oneOf",), UNSET, [{"type": "string"}, {"type": "integer", "minimum": 1}]),
                (("oneOf", "1", "minimum"), UNSET, 1),
            ],
        ),
        (
            {"anyOf": [{"type": "string"}, {"type": "integer"}, {"type": "null"}]},
            {"type": ["string", "null"]},
            [(("anyOf", "1"), {"type": "integer"}, UNSET)],
        ),
        (
            {"anyOf": [{"type": "string"}]},
            {"type": ["string", "null"]},
            [(("type",), UNSET, "null")],
        ),
        (
            {"oneOf": [{"type": "string"}, {"type": "object"}, {"type": "null"}]},
            {"anyOf": [{"type": "string"}, {"type": "object"}]},
            [
                (("oneOf",), [{"type": "string"}, {"type": "object"}, {"type": "null"}], UNSET),
                (("oneOf", "2"), {"type": "null"}, UNSET),
            ],
        ),
        (
            {"items": {"anyOf": [{"type": "object"}, {"type": "null"}]}},
            {"items": {"type": "string"}},
            [
                (("items", "anyOf", "0"), {"type": "object"}, UNSET),
                (("items", "anyOf", "1"), {"type": "null"}, UNSET),
                (("items",), UNSET, {"type": "string"}),
            ],
        ),
    ],
)
def test_the_pointer_of_an_alternative_leads_to_it_in_its_own_document(
    old: Any, new: Any, expected: list[tuple[Any, Any, Any]]
) -> None:
    changes = compare_schemas({"properties": {"key": old}}, {"properties": {"key": new}}, is_input=True)

    assert [(each.tokens[2:], each.old, each.new) for each in changes] == expected


def test_names_of_members_are_texts_with_or_without_a_type() -> None:
    """Zod 4 writes `propertyNames: {type: string}` for each record, Zod 3 wrote nothing."""
    new = {"type": "object", "propertyNames": {"type": "string", "maxLength": 1}}

    assert weights({"type": "object"}, new) == [
        ("propertyNames/type", NOTE),
        ("propertyNames/maxLength", BREAKING),
    ]
    assert weights(new, {"type": "object"}) == [
        ("propertyNames/type", NOTE),
        ("propertyNames/maxLength", NOTE),
    ]
    assert weights({"type": "object"}, {"type": "object", "propertyNames": {"type": "null"}}) == [
        ("propertyNames/type", BREAKING)
    ]
