"""Forms of a JSON Schema: references resolved, constants as `enum`, bounds of numbers."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations
from math import ceil, floor
from typing import Any

from msgspec import UNSET

from mcpspy.analysis.diff.json_diff import fingerprint
from mcpspy.core.jsontools import ABSENT, is_number, pointer, value_at

ANNOTATIONS = frozenset("title description examples example $comment deprecated readOnly writeOnly".split())
"""Keywords that describe and don't restrict."""

DEFINITIONS = frozenset("$defs definitions $schema $id $anchor".split())
"""Definitions and dialects. Definitions are judged where a `$ref` points to them."""

_OTHER = "mcpspy:other"


def resolved(schema: Any, root: Any) -> tuple[Any, str]:
    """Return the target of a local reference merged with its siblings, and the reference."""
    first, seen = "", set()
    while isinstance(schema, dict) and isinstance(reference := schema.get("$ref"), str):
        if reference in seen or (target := target_of(root, reference)) is None:
            return schema, first or reference
        seen.add(reference)
        first = first or reference
        beside = {key: value for key, value in schema.items() if key != "$ref"}
        if isinstance(target, dict) and beside.keys().isdisjoint(target.keys() - ANNOTATIONS):
            schema = {**target, **beside}
        else:
            schema = {**beside, "allOf": [*list_of(beside.get("allOf")), target]} if beside else target
    return schema, first


def target_of(root: Any, reference: str) -> Any:
    """Return the subschema behind a local reference; None if there is none."""
    if reference == "#":
        return root
    if not reference.startswith("#/"):
        return None
    try:
        found = value_at(root, pointer(reference[1:]))
    except ValueError:
        return None
    return None if found is ABSENT else found


def targets(value: Any, root: Any) -> dict[str, str]:
    """Return the fingerprints behind all references in a value, and in those targets."""
    found: dict[str, str] = {}
    todo = [value]
    while todo:
        value = todo.pop()
        if isinstance(value, dict):
            if isinstance(reference := value.get("$ref"), str) and reference not in found:
                found[reference] = fingerprint(target := target_of(root, reference))
                todo.append(target)
            todo += value.values()
        elif isinstance(value, list):
            todo += value
    return found


def moved(value: Any) -> Any:
    """Return a subschema whose local references point to the second root of a `document`."""
    if isinstance(value, list):
        return [moved(item) for item in value]
    if not isinstance(value, dict):
        return value
    return {
        key: f"#/$defs/{_OTHER}{item[1:]}"
        if key == "$ref" and isinstance(item, str) and item.startswith("#")
        else moved(item)
        for key, item in value.items()
    }


def document(schema: Any, root: Any) -> Any:
    """Return a schema with the root to which its `moved` references point."""
    if not isinstance(schema, dict) or not isinstance(root, dict) or _OTHER not in str(schema):
        return schema
    other = {key: value for key, value in moved(root).items() if key not in ("$id", "$schema")}
    return {**schema, "$defs": {**dict_of(schema.get("$defs")), _OTHER: other}}


def plain(schema: dict[str, Any]) -> dict[str, Any]:
    """Return an equivalent schema with constants as `enum`."""
    for keyword in ("anyOf", "oneOf"):
        listed = [bare(each) for each in list_of(schema.get(keyword))]
        if listed and "enum" not in schema and "const" not in schema and all(map(_is_constant, listed)):
            values = [value for each in listed for value in each.get("enum", [each.get("const")])]
            if keyword == "anyOf" or len(values_of(values)) == len(values):
                schema = {key: value for key, value in schema.items() if key != keyword} | {"enum": values}
    if "const" in schema and "enum" not in schema:
        schema = {("enum" if key == "const" else key): value for key, value in schema.items()}
        schema["enum"] = [schema["enum"]]
    return schema


def _is_constant(schema: Any) -> bool:
    return isinstance(schema, dict) and (
        schema.keys() == {"const"} or (schema.keys() == {"enum"} and isinstance(schema["enum"], list))
    )


def unwrapped(schema: dict[str, Any]) -> dict[str, Any]:
    """Return an equivalent schema without an `allOf` of one."""
    if len(only := list_of(schema.get("allOf"))) == 1 and isinstance(only[0], dict):
        others = {key: value for key, value in schema.items() if key != "allOf"}
        if others.keys().isdisjoint(only[0].keys() - ANNOTATIONS):
            return {**only[0], **others}
    return schema


def as_any_of(schema: dict[str, Any]) -> dict[str, Any]:
    """Return a schema with `anyOf` for `oneOf`, which accepts at least as much."""
    return {("anyOf" if keyword == "oneOf" else keyword): value for keyword, value in schema.items()}


def is_choice(schema: dict[str, Any]) -> bool:
    """Return whether the schema is equivalent to a list of alternatives."""
    return "anyOf" not in schema or not (schema.keys() - ANNOTATIONS - {"anyOf", "default"} - DEFINITIONS)


def choices(schema: dict[str, Any]) -> list[Any]:
    if isinstance(listed := schema.get("anyOf"), list):
        return listed
    kept = {key: value for key, value in bare(schema).items() if key != "default"}
    types = kept.get("type")
    return [{**kept, "type": one} for one in types] if isinstance(types, list) else [kept]


def bare(schema: Any) -> Any:
    if not isinstance(schema, dict):
        return schema
    return {key: value for key, value in schema.items() if key not in ANNOTATIONS}


def stripped(value: Any) -> Any:
    """Return a schema without the annotations at any depth."""
    if isinstance(value, list):
        return [stripped(item) for item in value]
    return {key: stripped(item) for key, item in bare(value).items()} if isinstance(value, dict) else value


def limit(unit: tuple[str, ...], schema: dict[str, Any], *, is_whole: bool) -> tuple[Any, bool] | None:
    """Return the bound of a number, greater if it is tighter, and whether it is exclusive; None if unknown.

    If all accepted numbers are integers, the bound is an inclusive integer.
    """
    bounds = [(schema[keyword], keyword.startswith("excl")) for keyword in unit if keyword in schema]
    if not all(is_number(bound) for bound, _ in bounds):
        return None
    sign = 1 if unit[0] == "minimum" else -1
    tightest, is_exclusive = max(
        ((sign * bound, each) for bound, each in bounds), default=(float("-inf"), False)
    )
    if is_whole and bounds:
        return (floor(tightest) + 1 if is_exclusive else ceil(tightest)), False
    return tightest, is_exclusive


def is_multiple(value: Any, step: Any) -> bool:
    return bool(step > 0) and (Fraction(str(value)) / Fraction(str(step))).denominator == 1


def is_whole(schema: dict[str, Any]) -> bool:
    """Return whether all numbers that a schema accepts are integers."""
    types, step = types_of(schema), schema.get("multipleOf")
    return (types is not None and "number" not in types) or (is_number(step) and is_multiple(step, 1))


def is_disjoint(schemas: list[Any], root: Any) -> bool:
    """Return whether no value matches two alternatives: by type, or by the values of a required member."""
    resolved_ones = [plain(dict_of(resolved(schema, root)[0])) for schema in schemas]
    return all(_are_disjoint(one, two, root) for one, two in combinations(resolved_ones, 2))


def _are_disjoint(one: dict[str, Any], two: dict[str, Any], root: Any) -> bool:
    types, others = types_of(one), types_of(two)
    if types is not None and others is not None and types.isdisjoint(others):
        return True
    if "enum" in one and "enum" in two:
        return values_of(one["enum"]).isdisjoint(values_of(two["enum"]))
    if not types or not others or types | others != {"object"}:
        return False
    return any(
        all("enum" in plain(dict_of(resolved(member, root)[0])) for member in members)
        and is_disjoint(members, root)
        for name in names_of(one.get("required")) & names_of(two.get("required"))
        for members in [[dict_of(each.get("properties")).get(name) for each in (one, two)]]
    )


def types_of(schema: dict[str, Any]) -> frozenset[str] | None:
    """Return the types that a schema allows; None for any."""
    if (value := schema.get("type", UNSET)) is UNSET:
        return None
    named = names_of(value if isinstance(value, list) else [value])
    return named | {"integer"} if "number" in named else named


def values_of(values: Any) -> frozenset[str]:
    return frozenset(map(fingerprint, list_of(values)))


def names_of(value: Any) -> frozenset[str]:
    return frozenset(name for name in list_of(value) if isinstance(name, str))


def dict_of(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def list_of(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []
