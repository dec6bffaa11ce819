"""Find instances that one JSON Schema accepts and another refuses.

The instances are enumerated from the constraints of both schemas: boundary values, members of enums, texts for
patterns and formats, missing and additional members. The enumeration is deterministic and bounded, and
jsonschema-rs validates each instance, with formats asserted.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from fractions import Fraction
from itertools import islice, product
from typing import Any, TypeGuard

from mcpspy.analysis.diff.json_diff import fingerprint
from mcpspy.analysis.diff.schema_forms import dict_of, document, list_of, moved, resolved, targets, types_of
from mcpspy.analysis.lint.schemas import CheckedSchema, SchemaCache
from mcpspy.core.jsontools import canonical, is_number

STEPS = 20_000
"""Maximum validations and constraints during an enumeration, for each maximum depth."""

MOST = 600
"""Maximum instances of one subschema."""

_VARIANTS, _NESTED, _LONG, _NAMES, _FEW = 12, 3, 40, 8, 3

_LEVELS = (2, 4, 6)
"""Maximum depths of objects and arrays, one after the other."""

_SCALARS = (None, True, False, 0, 1, -1, 7, 0.5, "", "a", "A", "1", "-", "a b", "é", "aaaa")

_CHARACTERS = "a1A_- z09Z.:/@+é"

_FORMATS = {
    "date": "2026-01-31",
    "time": "08:28:10Z",
    "date-time": "2026-01-31T08:28:10Z",
    "duration": "P1D",
    "email": "a@example.com",
    "idn-email": "a@example.com",
    "hostname": "example.com",
    "idn-hostname": "example.com",
    "ipv4": "192.0.2.1",
    "ipv6": "2001:db8::1",
    "uri": "https://example.com/a",
    "iri": "https://example.com/a",
    "uuid": "00000000-0000-4000-8000-000000000000",
    "json-pointer": "/a",
    "regex": "a+",
}

_NUMBERS = ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum")
_LENGTHS = ("minLength", "maxLength")
_COUNTS = ("minItems", "maxItems", "minContains", "maxContains")
_SIZES = ("minProperties", "maxProperties")

_OF_OBJECTS = frozenset(
    """properties required additionalProperties patternProperties propertyNames dependentRequired
    unevaluatedProperties""".split()
).union(_SIZES)
_OF_ARRAYS = frozenset("items prefixItems contains uniqueItems unevaluatedItems".split()).union(_COUNTS)


class CounterexampleSearch:
    """Enumerates what one schema accepts, the wide one, and validates it against another, the narrow one.

    Without `undeclared`, no instance has a member that only the narrow schema declares, unless the wide one
    allows additional members explicitly: a client sends no argument that it does not know.
    """

    def __init__(self, wide: Any, narrow: Any, *, undeclared: bool) -> None:
        self._roots = wide, narrow
        self._undeclared = undeclared
        self._cache = SchemaCache(formats=True)
        self._checked: dict[int, tuple[Any, CheckedSchema]] = {}
        self._left = 0

    def accepts(self, schema: Any, value: Any, root: Any = None) -> bool | None:
        """Return whether a schema accepts a value; None if that is unknown. `root`: for its local references."""
        if (known := self._checked.get(id(schema))) is None:
            whole = schema if root is None or schema is root else document(moved(schema), root)
            if isinstance(root, dict) and isinstance(whole, dict) and "$schema" in root:
                whole = {**whole, "$schema": root["$schema"]}
            # The schema is kept, since another one could have its id otherwise.
            known = self._checked[id(schema)] = schema, self._cache.check(whole)
        return known[1].accepts(value)

    def counterexamples(self) -> list[Any]:
        """Return the instances that only the wide schema accepts, shortest first."""
        wide, narrow = self._roots
        found: dict[str, Any] = {}
        for levels in _LEVELS:  # Instances of a recursive schema have any depth: the flat ones come first.
            self._left = STEPS
            found |= {canonical(value): value for value in self._values([wide], [narrow], levels)}
        refused = [text for text, value in found.items() if self.accepts(narrow, value) is False]
        return [found[text] for text in sorted(refused, key=len)]

    def _values(self, wide: list[Any], narrow: list[Any], levels: int) -> list[Any]:
        """Return instances that all of the wide subschemas accept, a few if the narrow ones are the same."""
        sides = [
            [*sorted(map(fingerprint, side)), targets(side, root)]
            for side, root in zip((wide, narrow), self._roots, strict=True)
        ]
        most = _FEW if sides[0] == sides[1] else MOST
        parts_of = {id(part): part for parts in _variants(narrow, self._roots[1]) for part in parts}
        hints = list(parts_of.values())
        self._left -= 1 + len(hints)
        found: dict[str, Any] = {}
        for parts in _variants(wide, self._roots[0]):
            for value in self._candidates(parts, hints, levels):
                if len(found) >= most or self._left <= 0:
                    return list(found.values())
                if (key := canonical(value)) not in found:
                    self._left -= 1 + len(wide)
                    if all(self.accepts(schema, value, self._roots[0]) for schema in wide):
                        found[key] = value
        return list(found.values())

    def _candidates(self, parts: list[Any], hints: list[Any], levels: int) -> Iterator[Any]:
        both = [*parts, *hints]
        bounds = [part[name] for part in both for name in _NUMBERS if is_number(part.get(name))]
        for part in both:
            yield from _listed(part)
        for part in both:
            yield from _texts(part)
            yield from _numbers(part, bounds)
        yield from _SCALARS
        named = {name for part in parts for name in types_of(part) or ()}
        keywords = {keyword for part in both for keyword in part}
        if levels > 0 and ("object" in named or not (named or _OF_OBJECTS.isdisjoint(keywords))):
            yield from self._objects(parts, hints, levels)
        if levels > 0 and ("array" in named or not (named or _OF_ARRAYS.isdisjoint(keywords))):
            yield from self._arrays(parts, hints, levels)
        yield from ({}, [], ["a", 1])
        if not any(_declared(part) for part in hints):
            yield {"a": 1}

    def _objects(self, parts: list[Any], hints: list[Any], levels: int) -> Iterator[Any]:
        names = dict.fromkeys(name for part in parts for name in _declared(part))
        unknown = [name for part in hints for name in _declared(part) if name not in names]
        if self._undeclared or any(part.get("additionalProperties", False) is not False for part in parts):
            names |= dict.fromkeys(unknown)
        members = {
            name: self._values(_members(parts, name), _members(hints, name), levels - 1) for name in names
        }
        members = {name: values for name, values in members.items() if values}
        full = {name: values[0] for name, values in members.items()}
        required = {name for part in parts for name in list_of(part.get("required"))}
        minimal = {name: value for name, value in full.items() if name in required}
        bases = [minimal, full]
        yield from bases
        if not all(self.accepts(part, minimal, self._roots[0]) for part in parts):
            bases.reverse()
        for name, values in members.items():
            yield {key: value for key, value in full.items() if key != name}
            yield from ({**bases[0], name: value} for value in values)
        extra = "extra" + "x" * sum(name.startswith("extra") for name in [*names, *unknown])
        texts = [pattern for part in (*parts, *hints) for pattern in dict_of(part.get("patternProperties"))]
        others = [extra, *(text for pattern in texts for text in _samples(pattern))]
        for narrow in (part.get("propertyNames") for part in (*parts, *hints)):
            if isinstance(narrow, dict):
                others += self._values([{"type": "string"}], [narrow], 0)
        for name in list(dict.fromkeys(others))[:_NAMES]:
            more = self._values(_members(parts, name), _members(hints, name), levels - 1)
            yield from ({**base, name: value} for value in more for base in bases)
            if name == extra and more:
                for size in _near(_SIZES, (*parts, *hints)):
                    added = {f"{extra}{number}": more[0] for number in range(size - len(bases[0]))}
                    yield {**bases[0], **added}

    def _arrays(self, parts: list[Any], hints: list[Any], levels: int) -> Iterator[Any]:
        both = [*parts, *hints]
        fixed = max((len(list_of(part.get("prefixItems"))) for part in both), default=0)
        places = [
            self._values(_items(parts, place), _items(hints, place), levels - 1)
            for place in range(min(fixed, _LONG) + 1)
        ]
        contained = [part["contains"] for part in (*parts, *hints) if "contains" in part]
        if contained:
            places[-1] = [*self._values(contained[:1], contained[1:], levels - 1), *places[-1]]
        first = [values[0] for values in places if values]
        rest = places[-1]
        for count in _near(_COUNTS, (*parts, *hints)):
            yield (first + first[-1:] * count)[:count]
            if rest:
                yield (first[:-1] + [rest[place % len(rest)] for place in range(count)])[:count]
        lowest = max((part["minItems"] for part in parts if _is_count(part.get("minItems"))), default=0)
        for place, values in enumerate(places):
            if len(first) >= place:
                for value in values:
                    start = [*first[:place], value]
                    yield start + first[-1:] * (lowest - len(start))
                    yield [*start, value]


def _variants(schemas: list[Any], root: Any, depth: int = 0) -> list[list[Any]]:
    """Return the lists of subschemas that may apply together: one for each choice of alternatives."""
    found: list[list[Any]] = [[]]
    for schema in schemas:
        part = dict_of(resolved(schema, root)[0])
        alternatives = [[[part.get("then")], [part.get("else")]] if "if" in part else []]
        alternatives += [[[one] for one in list_of(part.get(keyword))] for keyword in ("anyOf", "oneOf")]
        alternatives += [[[], [one]] for one in dict_of(part.get("dependentSchemas")).values()]
        alternatives += [[list_of(part.get("allOf"))]]
        choices = [
            [parts for some in each for parts in _variants(some, root, depth + 1)]
            for each in alternatives
            if each and depth < _NESTED
        ]
        together = (sum(some, [*start, part]) for start in found for some in product(*choices))
        found = list(islice(together, _VARIANTS))
    return found


def _listed(part: dict[str, Any]) -> Iterator[Any]:
    yield from list_of(part.get("enum"))
    yield from list_of(part.get("examples"))
    yield from (part[name] for name in ("const", "default") if name in part)


def _texts(part: dict[str, Any]) -> Iterator[str]:
    if isinstance(named := part.get("format"), str) and named in _FORMATS:
        yield _FORMATS[named]
    if isinstance(pattern := part.get("pattern"), str):
        yield from _samples(pattern)
    for name in _LENGTHS:
        if _is_count(length := part.get(name)):
            yield from ("a" * count for count in (length, length - 1, length + 1) if count >= 0)


def _numbers(part: dict[str, Any], bounds: list[Any]) -> Iterator[int | float]:
    for name in _NUMBERS:
        bound: Any = part.get(name)
        if is_number(bound) and (isinstance(bound, int) or abs(bound) < 1e15):
            yield from (bound, bound + 1, bound - 1)  # Integers are exact, also beyond 2 ** 53.
            if abs(bound) < 1e15:
                yield from (bound + 0.5, bound - 0.5, int(bound))
    step: Any = part.get("multipleOf")
    if is_number(step) and step > 0:
        exact = Fraction(str(step))
        near = [int(Fraction(str(bound)) / exact) + more for bound in bounds for more in (-1, 0, 1)]
        for factor in (1, 2, 3, 5, 7, *near):
            value = exact * factor
            yield value.numerator if value.denominator == 1 else float(value)


def _declared(part: dict[str, Any]) -> list[str]:
    required = [name for name in list_of(part.get("required")) if isinstance(name, str)]
    keywords = ("properties", "dependentRequired", "dependentSchemas")
    return [*(name for keyword in keywords for name in dict_of(part.get(keyword))), *required]


def _members(parts: Iterable[dict[str, Any]], name: str) -> list[Any]:
    """Return the subschemas of a member."""
    found = []
    for part in parts:
        declared = dict_of(part.get("properties"))
        if name in declared:
            found.append(declared[name])
        elif "additionalProperties" in part and not part.get("patternProperties"):
            found.append(part["additionalProperties"])
        found += [
            narrow for narrow in dict_of(part.get("patternProperties")).values() if name not in declared
        ]
    return found


def _items(parts: Iterable[dict[str, Any]], place: int) -> list[Any]:
    """Return the subschemas of an item at an index."""
    found = []
    for part in parts:
        if place < len(fixed := list_of(part.get("prefixItems"))):
            found.append(fixed[place])
        elif isinstance(rest := part.get("items"), dict | bool):
            found.append(rest)
    return found


def _near(names: tuple[str, ...], parts: Iterable[dict[str, Any]]) -> list[int]:
    """Return small counts, and those at the bounds with these names."""
    bounds = [part[name] for part in parts for name in names if _is_count(part.get(name))]
    near = {0, 1, 2, 3, *(bound + more for bound in bounds for more in (-1, 0, 1))}
    return sorted(count for count in near if 0 <= count <= 4 * _LONG)


def _is_count(value: Any) -> TypeGuard[int]:
    return is_number(value) and value == int(value) and 0 <= value <= 1000


_ATOM = re.compile(r"\[\^?\]?(?:\\.|[^\]\\])*\]|\\.|[^\\()|]", re.DOTALL)
_REPEATED = re.compile(r"([*+?])|\{(\d{1,3})(,(\d{1,3})?)?\}")


def _samples(pattern: str) -> list[str]:
    """Return texts that a simple pattern matches, of several lengths; none for look-around and references."""
    try:
        return list(dict.fromkeys(_sample(pattern, 0, mode)[0] for mode in range(4)))
    except (re.error, ValueError, RecursionError):
        return []


def _sample(pattern: str, at: int, mode: int) -> tuple[str, int]:
    """Return a text for the alternatives of a group, and the position of its end."""
    texts = [""]
    while at < len(pattern) and pattern[at] != ")":
        if pattern[at] == "|":
            texts.append("")
            at += 1
            continue
        if pattern[at] == "(":
            at += 3 if pattern.startswith("(?:", at) else 1
            if pattern.startswith("?", at):
                raise ValueError("a group with an extension")
            piece, at = _sample(pattern, at, mode)
            at += 1
        elif (atom := _ATOM.match(pattern, at)) is None:
            raise ValueError("an incomplete pattern")
        else:
            at = atom.end()
            piece = _character(atom.group(), mode)
        if (repeated := _REPEATED.match(pattern, at)) is not None:
            at = repeated.end() + pattern.startswith("?", repeated.end())
            sign, least, comma, most = repeated.groups()
            low = int(least) if least else int(sign == "+")
            high = 1 if sign == "?" else low + mode if sign or (comma and not most) else int(most or low)
            piece *= (low, low + 1, high, low)[mode] if high > low else low
        texts[-1] += piece
    return texts[mode % len(texts)], at


def _character(atom: str, mode: int) -> str:
    if atom in ("^", "$", r"\b", r"\B"):
        return ""
    matching = [character for character in _CHARACTERS if re.fullmatch(atom, character)]
    return (matching or [atom[-1]])[0 if mode < 3 else -1]
