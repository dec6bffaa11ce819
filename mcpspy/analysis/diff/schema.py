"""Judge changes of a JSON Schema (2020-12, and draft 7 where it differs), keyword by keyword.

An input schema that accepts less is breaking, and so is an output schema that allows more. If neither is
known, a change is breaking in an input and different in an output.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterator
from typing import Any, NamedTuple

from msgspec import UNSET

from mcpspy.analysis.diff.json_diff import fingerprint
from mcpspy.analysis.diff.model import ChangeSeverity
from mcpspy.core.jsontools import Pointer, pointer

BREAKING, DIFFERENT, NOTE = ChangeSeverity

ANNOTATIONS = frozenset("title description examples example $comment deprecated readOnly writeOnly".split())
"""Keywords that describe and don't restrict."""

_DEFINITIONS = frozenset("$defs definitions $schema $id $anchor".split())
"""Definitions and dialects. Definitions are judged where a `$ref` points to them."""

_FROM = frozenset("minimum exclusiveMinimum minLength minItems minProperties minContains".split())
_UP_TO = frozenset("maximum exclusiveMaximum maxLength maxItems maxProperties maxContains".split())
_OPEN = frozenset(
    "additionalProperties unevaluatedProperties items additionalItems unevaluatedItems contains propertyNames".split()
)
"""Subschemas that allow anything if they are missing."""

_CONSTRAINTS = frozenset(
    """$ref $dynamicRef pattern format multipleOf uniqueItems dependentRequired dependentSchemas dependencies patternProperties
    contentEncoding contentMediaType contentSchema prefixItems not if then else""".split()
)
"""Keywords that restrict by their presence; two values of them are not compared further."""


class SchemaChange(NamedTuple):
    tokens: Pointer
    severity: ChangeSeverity
    why: str
    old: Any
    new: Any


def compare_schemas(old: Any, new: Any, *, is_input: bool) -> list[SchemaChange]:
    try:
        return list(_SchemaComparison(old, new, is_input).schemas(old, new, ()))
    except RecursionError:
        return [SchemaChange((), DIFFERENT, "nested too deep to compare", old, new)] if old != new else []


class _SchemaComparison:
    def __init__(self, old: Any, new: Any, is_input: bool) -> None:
        self._roots = old, new
        self._is_input = is_input
        self._narrower, self._wider = (BREAKING, NOTE) if is_input else (NOTE, BREAKING)
        self._unknown = BREAKING if is_input else DIFFERENT
        self._seen: set[tuple[str, str]] = set()
        """References being judged: a schema may be recursive."""

    def schemas(self, old: Any, new: Any, at: Pointer) -> Iterator[SchemaChange]:
        old, old_ref = _resolved(old, self._roots[0])
        new, new_ref = _resolved(new, self._roots[1])
        if old_ref or new_ref:
            if (old_ref, new_ref) in self._seen:
                return
            self._seen.add((old_ref, new_ref))
        if not isinstance(old, dict) or not isinstance(new, dict):
            if fingerprint(old) != fingerprint(new):
                yield SchemaChange(at, self._boolean(old, new), "", old, new)
            return
        if ("anyOf" in old or "anyOf" in new) and _is_choice(old) and _is_choice(new):
            yield from self._choices(old, new, at)
            return
        yield from self._properties(old, new, at)
        yield from self._required(old, new, at)
        for keyword in [*old, *(keyword for keyword in new if keyword not in old)]:
            if keyword not in _DEFINITIONS | {"properties", "required"}:
                yield from self._keyword(keyword, old.get(keyword, UNSET), new.get(keyword, UNSET), at)

    def _keyword(self, keyword: str, old: Any, new: Any, at: Pointer) -> Iterator[SchemaChange]:
        at = (*at, keyword)
        if keyword in _OPEN:
            closed = (True if old is UNSET else old), (True if new is UNSET else new)
            if isinstance(closed[0], dict) and isinstance(closed[1], dict):
                yield from self.schemas(*closed, at)
            elif fingerprint(closed[0]) != fingerprint(closed[1]):
                yield SchemaChange(at, self._boolean(*closed), "", old, new)
            return
        if keyword in ("oneOf", "allOf", "anyOf") and isinstance(old, list) and isinstance(new, list):
            yield from self._several(keyword, old, new, at)
            return
        if old is not UNSET and new is not UNSET and fingerprint(old) == fingerprint(new):
            return
        if keyword in ANNOTATIONS:
            yield SchemaChange(at, NOTE, "", old, new)
        elif keyword == "type":
            yield SchemaChange(at, self._sets(_types(old), _types(new)), "", old, new)
        elif keyword in ("enum", "const"):
            yield SchemaChange(at, self._sets(_values(keyword, old), _values(keyword, new)), "", old, new)
        elif keyword in _FROM | _UP_TO:
            yield SchemaChange(at, self._bounds(old, new, rises=keyword in _FROM), "", old, new)
        elif keyword in _CONSTRAINTS or keyword in ("anyOf", "oneOf", "allOf"):
            severity = self._narrower if old is UNSET else self._wider if new is UNSET else self._unknown
            yield SchemaChange(at, severity, "", old, new)
        else:
            yield SchemaChange(at, DIFFERENT, "", old, new)

    def _properties(self, old: dict[str, Any], new: dict[str, Any], at: Pointer) -> Iterator[SchemaChange]:
        before, now = _dict(old.get("properties")), _dict(new.get("properties"))
        needed = _names(new.get("required"))
        for name, schema in before.items():
            tokens = (*at, "properties", name)
            if name in now:
                yield from self.schemas(schema, now[name], tokens)
            else:
                yield SchemaChange(tokens, BREAKING, f"lost the property {name}", schema, UNSET)
        for name, schema in now.items():
            if name not in before:
                why = f"gained {'a required' if name in needed else 'an optional'} property {name}"
                severity = self._narrower if name in needed else NOTE
                yield SchemaChange((*at, "properties", name), severity, why, UNSET, schema)

    def _required(self, old: dict[str, Any], new: dict[str, Any], at: Pointer) -> Iterator[SchemaChange]:
        """Yield properties that became required or optional, unless the property's own change reports it."""
        before, now = _names(old.get("required")), _names(new.get("required"))
        was_there, is_there = _dict(old.get("properties")), _dict(new.get("properties"))
        at = (*at, "required")
        for name in sorted(now - before):
            if name in was_there or name not in is_there:
                yield SchemaChange(at, self._narrower, f"{name} is required now", UNSET, name)
        for name in sorted(before - now):
            if name in is_there or name not in was_there:
                yield SchemaChange(at, self._wider, f"{name} is no longer required", name, UNSET)

    def _choices(self, old: dict[str, Any], new: dict[str, Any], at: Pointer) -> Iterator[SchemaChange]:
        """Yield changes of alternatives: `anyOf`, or a list of types."""
        for keyword in [*old, *(keyword for keyword in new if keyword not in old)]:
            if keyword in ANNOTATIONS or keyword == "default":
                yield from self._keyword(keyword, old.get(keyword, UNSET), new.get(keyword, UNSET), at)
        yield from self._several("anyOf", _choices(old), _choices(new), (*at, "anyOf"))

    def _several(self, keyword: str, old: list[Any], new: list[Any], at: Pointer) -> Iterator[SchemaChange]:
        """Yield the changes of a list of schemas, whose order does not matter."""
        waiting: defaultdict[str, deque[tuple[int, Any]]] = defaultdict(deque)
        for number, schema in enumerate(old):
            waiting[fingerprint(_bare(schema))].append((number, schema))
        unmatched: list[tuple[int, Any]] = []
        for number, schema in enumerate(new):
            if same := waiting.get(fingerprint(_bare(schema))):
                yield from self.schemas(same.popleft()[1], schema, (*at, str(number)))
            else:
                unmatched.append((number, schema))
        left = sorted((pair for pairs in waiting.values() for pair in pairs), key=lambda pair: pair[0])
        if len(left) == len(unmatched):
            for (_, one), (number, two) in zip(left, unmatched, strict=True):
                yield from self.schemas(one, two, (*at, str(number)))
            return
        more, less = self._wider, self._narrower
        if keyword == "allOf":
            more, less = less, more
        yield from (SchemaChange((*at, str(n)), less, "", schema, UNSET) for n, schema in left)
        yield from (SchemaChange((*at, str(n)), more, "", UNSET, schema) for n, schema in unmatched)

    def _sets(self, old: frozenset[str] | None, new: frozenset[str] | None) -> ChangeSeverity:
        """Return the severity of a changed set of allowed values; None allows anything."""
        if old == new:
            return NOTE
        if new is None or (old is not None and old <= new):
            return self._wider
        return self._narrower if old is None or new <= old else BREAKING

    def _bounds(self, old: Any, new: Any, *, rises: bool) -> ChangeSeverity:
        if old is UNSET or new is UNSET:
            return self._narrower if old is UNSET else self._wider
        if isinstance(old, int | float) and isinstance(new, int | float):
            return self._narrower if (new > old) == rises else self._wider
        return self._unknown

    def _boolean(self, old: Any, new: Any) -> ChangeSeverity:
        """Return the severity if one of the schemas is a boolean: `false` allows nothing."""
        if not self._is_input:
            return NOTE if isinstance(old, bool | dict) and isinstance(new, bool | dict) else DIFFERENT
        if old is True or old == {} or new is False:
            return BREAKING
        return NOTE if new is True or new == {} or old is False else BREAKING


def _resolved(schema: Any, root: Any) -> tuple[Any, str]:
    """Return the target of a local reference merged with its siblings, and the reference."""
    first, seen = "", set()
    while isinstance(schema, dict) and isinstance(reference := schema.get("$ref"), str):
        if reference in seen or (target := _at(root, reference)) is None:
            return schema, first or reference
        seen.add(reference)
        first = first or reference
        beside = {key: value for key, value in schema.items() if key != "$ref"}
        schema = {**target, **beside} if isinstance(target, dict) else target
    return schema, first


def _at(root: Any, reference: str) -> Any:
    if reference == "#":
        return root
    if not reference.startswith("#/"):
        return None
    try:
        tokens = pointer(reference[1:])
    except ValueError:
        return None
    for token in tokens:
        if isinstance(root, list) and token.isdecimal() and int(token) < len(root):
            root = root[int(token)]
        elif isinstance(root, dict) and token in root:
            root = root[token]
        else:
            return None
    return root


def _is_choice(schema: dict[str, Any]) -> bool:
    """Return whether the schema is equivalent to a list of alternatives."""
    return "anyOf" not in schema or not (schema.keys() - ANNOTATIONS - {"anyOf", "default"} - _DEFINITIONS)


def _choices(schema: dict[str, Any]) -> list[Any]:
    if isinstance(listed := schema.get("anyOf"), list):
        return listed
    bare = {key: value for key, value in schema.items() if key not in ANNOTATIONS and key != "default"}
    types = bare.get("type")
    return [{**bare, "type": one} for one in types] if isinstance(types, list) else [bare]


def _bare(schema: Any) -> Any:
    if not isinstance(schema, dict):
        return schema
    return {key: value for key, value in schema.items() if key not in ANNOTATIONS}


def _types(value: Any) -> frozenset[str] | None:
    if value is UNSET:
        return None
    named = _names(value if isinstance(value, list) else [value])
    return named | {"integer"} if "number" in named else named


def _values(keyword: str, value: Any) -> frozenset[str] | None:
    if value is UNSET:
        return None
    return frozenset(map(fingerprint, value if keyword == "enum" and isinstance(value, list) else [value]))


def _names(value: Any) -> frozenset[str]:
    names = value if isinstance(value, list) else ()
    return frozenset(name for name in names if isinstance(name, str))


def _dict(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}
