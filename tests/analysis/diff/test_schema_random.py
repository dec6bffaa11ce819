"""Random small schemas: a compatible change has no counterexample, and a breaking one has."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from mcpspy.analysis.diff.counterexample import CounterexampleSearch
from mcpspy.analysis.diff.model import ChangeSeverity
from mcpspy.analysis.diff.schema import compare_schemas
from mcpspy.analysis.lint.schemas import SchemaCache

BREAKING, _, NOTE = ChangeSeverity

Pair = tuple[Any, Any]

CONSTRAINTS: list[dict[str, Any]] = [
    {"type": "string"}, {"type": "integer"}, {"type": "number"}, {"type": ["integer", "null"]}, {"type": "boolean"},
    {"type": "object"}, {"type": "array"}, {"enum": [1, "a"]}, {"enum": [1, "a", None, True]}, {"const": 1}, {"const": "a"},
    {"minimum": 1}, {"minimum": 2}, {"exclusiveMinimum": 1}, {"maximum": 2}, {"exclusiveMaximum": 3}, {"multipleOf": 2},
    {"multipleOf": 0.5}, {"minLength": 1}, {"maxLength": 1}, {"pattern": "^a"}, {"pattern": "a"}, {"minItems": 1},
    {"maxItems": 1}, {"uniqueItems": True}, {"minProperties": 1}, {"maxProperties": 1}, {"format": "date"}, {},
    {"$ref": "#/$defs/A"}, {"$ref": "#/$defs/B"}, {"propertyNames": {"maxLength": 1}}, {"title": "T"},
    {"dependentRequired": {"a": ["b"]}}, {"not": {"type": "string"}}, {"contains": {"const": 1}}, {"minContains": 0},
    {"if": {"type": "string"}, "then": {"minLength": 1}}, {"unevaluatedProperties": False},
]  # fmt: skip


@st.composite
def related(draw: st.DrawFn, depth: int = 0, *, is_open: bool = True) -> Pair:
    """Return two schemas that share much; with `is_open` false, an object always has `additionalProperties`."""
    if depth and draw(st.integers(0, 9)) == 0:
        return draw(st.sampled_from([True, False])), draw(st.sampled_from([True, False, {}]))
    common = draw(st.lists(st.sampled_from(CONSTRAINTS), max_size=2))
    old: dict[str, Any] = {}
    new: dict[str, Any] = {}
    for side in (old, new):
        for each in [*common, *draw(st.lists(st.sampled_from(CONSTRAINTS), max_size=1))]:
            side.update(each)
    if depth < 2:
        kind = draw(st.sampled_from(["object", "array", "anyOf", "oneOf", "allOf", "none", "none"]))
        nested = related(depth + 1, is_open=is_open)
        if kind == "object":
            for name in draw(st.sets(st.sampled_from("abc"), max_size=2)):
                one, two = draw(nested)
                for side, schema in ((old, one), (new, two)):
                    if draw(st.integers(0, 4)):
                        side.setdefault("properties", {})[name] = schema
                    if draw(st.integers(0, 2)) == 0:
                        side.setdefault("required", []).append(name)
            if draw(st.integers(0, 3)) == 0:
                old["patternProperties"], new["patternProperties"] = ({"^a": side} for side in draw(nested))
            one, two = draw(nested)
            for side, schema in ((old, one), (new, two)):
                if not is_open or draw(st.booleans()):
                    side["additionalProperties"] = draw(st.sampled_from([True, False, schema]))
        elif kind == "array":
            if draw(st.booleans()):
                old["items"], new["items"] = draw(nested)
            some = draw(st.lists(nested, max_size=2))
            for number, side in enumerate((old, new)):
                if fixed := [pair[number] for pair in some[: draw(st.integers(0, 2))]]:
                    side["prefixItems"] = fixed
        elif kind != "none":
            some = draw(st.lists(nested, min_size=1, max_size=2))
            for number, side in enumerate((old, new)):
                name = kind if draw(st.integers(0, 3)) else draw(st.sampled_from(["anyOf", "oneOf"]))
                side[name] = [pair[number] for pair in some[draw(st.integers(0, 1)) :]] or [some[0][number]]
    if not is_open:
        for side in (old, new):
            side.setdefault("additionalProperties", True)
    return old, new


DEFINITIONS = st.sampled_from(
    [{"type": "string"}, {"type": "integer", "minimum": 1}, {}, {"properties": {"a": {"$ref": "#/$defs/A"}}}]
)
SCALARS = st.sampled_from(
    [None, True, False, 0, 1, 2, 3, 4, 0.5, 1.5, "", "a", "b", "ab", "ba", "2026-01-01"]
)
INSTANCES = st.lists(
    st.recursive(
        SCALARS,
        lambda below: (
            st.lists(below, max_size=3)
            | st.dictionaries(st.sampled_from(["a", "b", "c", "aa"]), below, max_size=3)
        ),
        max_leaves=6,
    ),
    min_size=20,
    max_size=20,
)


@st.composite
def changes(draw: st.DrawFn) -> tuple[Any, Any, bool]:
    is_input = draw(st.booleans())
    old, new = draw(related(is_open=not is_input))
    old["$defs"], new["$defs"] = (
        {"A": draw(DEFINITIONS) if not is_input else {"type": "string"}, "B": {"type": "integer"}}
        for _ in "ab"
    )
    return old, new, is_input


@settings(deadline=None, max_examples=200)
@given(changes(), INSTANCES)
def test_no_instance_contradicts_the_verdict_about_a_change(
    change: tuple[Any, Any, bool], instances: list[Any]
) -> None:
    old, new, is_input = change
    verdict = {found.severity for found in compare_schemas(old, new, is_input=is_input)}
    wide, narrow = (old, new) if is_input else (new, old)
    search = CounterexampleSearch(wide, narrow, undeclared=True)
    accepting, refusing = (SchemaCache(formats=True).check(side) for side in (wide, narrow))

    found = [value for value in instances if accepting.accepts(value) and refusing.accepts(value) is False]
    found += search.counterexamples()
    if verdict <= {NOTE}:
        assert found == []
    if BREAKING in verdict:
        assert found
