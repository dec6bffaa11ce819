"""Generated values: valid by any schema that the generator understands, the same in every run, or a clear error."""

from __future__ import annotations

from typing import Any

import pytest

from mcpspy.core.mock.values import FORMATS, CannotGenerateError, generated, validator_of

NODE = {
    "type": "object",
    "properties": {
        "next": {"$ref": "#/$defs/node"},
        "all": {"type": "array", "items": {"$ref": "#/$defs/node"}},
    },
    "required": ["all"],
}

SCHEMAS: list[Any] = [
    {"$ref": "#/$defs/node", "$defs": {"node": NODE}},
    {"$ref": "#n", "$defs": {"x": {"$anchor": "n", "const": 5}}},
    {"type": "array", "prefixItems": [{"type": "string"}, {"type": "integer"}], "minItems": 2, "items": False},
    {"type": "array", "items": {"enum": [1, 2, 3, 4]}, "uniqueItems": True, "minItems": 4},
    {"type": "array", "contains": {"const": "x"}, "minItems": 3},
    {"properties": {"b": {"type": "null"}}, "required": ["a"], "dependentRequired": {"a": ["b"]}},
    {"type": "object", "minProperties": 3, "additionalProperties": {"type": "integer"}},
    {"type": "object", "patternProperties": {"^x-[a-z]+$": {"type": "boolean"}}, "additionalProperties": False, "minProperties": 1},
    {"type": "string", "pattern": r"^[A-Z]{2}-\d{3,5}(foo|bar)?[^a-z]\1$".replace(r"\1", "")},
    {"type": "string", "minLength": 30, "maxLength": 40},
    {"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 0.1},
    {"type": "number", "multipleOf": 0.25, "minimum": 1.1, "maximum": 2},
    {"type": "integer", "exclusiveMaximum": -5},
    {"$schema": "http://json-schema.org/draft-04/schema#", "type": "integer", "minimum": 3, "exclusiveMinimum": True},
    {"type": ["null", "integer"], "minimum": 7},
    {"oneOf": [{"properties": {"k": {"const": "a"}}, "required": ["k"]}, {"type": "integer"}]},
    {"if": {"properties": {"k": {"const": "x"}}}, "then": {"required": ["u"]}, "else": {"required": ["v"]}, "type": "object", "properties": {"k": {"enum": ["x", "y"]}}, "required": ["k"]},
    {"allOf": [{"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]}, {"properties": {"a": {"maxLength": 2}}}], "unevaluatedProperties": False},
    {"type": "string", "examples": [3, "three"]},
    True,
]  # fmt: skip


@pytest.mark.parametrize("schema", SCHEMAS, ids=str)
@pytest.mark.parametrize("seed", ["0", "1"])
def test_generated_values_are_valid_and_the_same_in_every_run(schema: Any, seed: str) -> None:
    value = generated(schema, seed)
    assert validator_of(schema).is_valid(value)
    assert generated(schema, seed) == value


@pytest.mark.parametrize("name", FORMATS)
def test_the_value_of_a_format_is_valid(name: str) -> None:
    assert generated({"type": "string", "format": name}, "0") == FORMATS[name]


def test_examples_are_preferred_and_seeds_differ() -> None:
    assert generated({"type": "string", "examples": ["Oslo"]}, "0") == "Oslo"
    schema = {"type": "array", "items": {"type": "integer"}, "minItems": 5}
    assert len({str(generated(schema, str(seed))) for seed in range(5)}) > 1


@pytest.mark.parametrize(
    ("schema", "reason"),
    [
        ({"not": {}}, "not allowed"),
        (False, "accepts no value"),
        ({"$ref": "https://example.com/s"}, "is not fetched"),
        ({"type": "frog"}, "not a valid JSON Schema"),
        ({"$ref": "#/$defs/n", "$defs": {"n": {"required": ["n"], "properties": {"n": {"$ref": "#/$defs/n"}}}}}, "recursive"),
    ],
)  # fmt: skip
def test_a_schema_without_a_value_is_an_error_with_the_reason(schema: Any, reason: str) -> None:
    with pytest.raises(CannotGenerateError, match=reason):
        generated(schema, "0")
