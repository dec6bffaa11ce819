"""Judge changes of a JSON Schema (2020-12, and draft 7 where it differs), keyword by keyword.

One schema must accept whatever the other one accepts: the new input schema whatever the old one accepts, and the
old output schema whatever the new one accepts. A change is a note if its keywords prove that, breaking if there
is a counterexample, and otherwise different: `cannot decide`.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Callable, Iterator, Sequence
from copy import copy
from typing import Any, NamedTuple

from msgspec import UNSET

from mcpspy.analysis.diff.counterexample import CounterexampleSearch
from mcpspy.analysis.diff.json_diff import fingerprint
from mcpspy.analysis.diff.model import ChangeSeverity
from mcpspy.analysis.diff.schema_forms import (
    ANNOTATIONS,
    DEFINITIONS,
    as_any_of,
    bare,
    choices,
    dict_of,
    document,
    is_choice,
    is_disjoint,
    is_multiple,
    is_whole,
    limit,
    list_of,
    moved,
    names_of,
    plain,
    resolved,
    stripped,
    targets,
    types_of,
    unwrapped,
    values_of,
)
from mcpspy.core.jsontools import Pointer, is_number

BREAKING, DIFFERENT, NOTE = ChangeSeverity

_LISTS = ("anyOf", "oneOf", "allOf")
_LIMITS = ("minimum", "maximum")
_UNITS = (
    ("minimum", "exclusiveMinimum"),
    ("maximum", "exclusiveMaximum"),
    ("contains", "minContains", "maxContains"),
    ("if", "then", "else"),
)
"""Keywords that restrict together."""

_UNIT_OF = {keyword: unit for unit in _UNITS for keyword in unit}

_APPLIES = {
    keyword: frozenset(types.split())
    for types, keywords in {
        "number integer": "minimum exclusiveMinimum maximum exclusiveMaximum multipleOf",
        "string": "minLength maxLength pattern format",
        "array": "minItems maxItems uniqueItems contains prefixItems items additionalItems",
        "object": "minProperties maxProperties dependentRequired patternProperties",
    }.items()
    for keyword in keywords.split()
}
"""Keyword → the types that it restricts."""

_CONSTRAINTS = frozenset((*_APPLIES, *_LISTS)) | frozenset(
    """type enum const $ref $dynamicRef propertyNames additionalProperties dependentSchemas dependencies not if then else
    minContains maxContains contentEncoding contentMediaType contentSchema unevaluatedProperties
    unevaluatedItems""".split()
)

_EFFORT = 5_000
"""Maximum number of compared subschemas, counting trials of alternatives."""

_SHOWN = 120

_STILL = ", and still accepts it"

UNDECIDED = "cannot decide: no counterexample found"


class SchemaChange(NamedTuple):
    tokens: Pointer
    severity: ChangeSeverity
    why: str
    old: Any
    new: Any


class _Found(NamedTuple):
    tokens: Pointer
    severity: ChangeSeverity | None
    """None if the change needs a counterexample."""
    why: str
    wide: Any
    narrow: Any
    mixed: Any = None
    """The wide root with this change only."""


class _Spot(NamedTuple):
    """The position of a compared subschema."""

    at: Pointer
    put: Callable[[Any], Any]
    """Returns the wide root with another subschema at this position."""

    def below(self, wide: Any, *path: str, at: Pointer | None = None) -> _Spot:
        """Return the position at a path in the subschema here; `at`: if the change is reported elsewhere."""
        return _Spot(
            (*self.at, *(path if at is None else at)), lambda schema: self.put(_replaced(wide, path, schema))
        )


def compare_schemas(old: Any, new: Any, *, is_input: bool) -> list[SchemaChange]:
    comparison = _SchemaComparison(*((old, new) if is_input else (new, old)), is_input=is_input)
    try:
        found = comparison.judged()
    except RecursionError:
        return [SchemaChange((), DIFFERENT, "nested too deep to compare", old, new)] if old != new else []
    return [
        SchemaChange(each.tokens, each.severity or DIFFERENT, each.why, *sides)
        for each in found
        for sides in [(each.wide, each.narrow) if is_input else (each.narrow, each.wide)]
    ]


class _SchemaComparison:
    """Compares a wide schema with a narrow one, which must accept all that the wide one accepts."""

    def __init__(self, wide: Any, narrow: Any, *, is_input: bool) -> None:
        self._roots = wide, narrow
        self._is_input = is_input
        self._search = CounterexampleSearch(wide, narrow, undeclared=not is_input)
        self._seen: set[tuple[str, str]] = set()
        """Subschemas with references that are compared already: a schema may be recursive."""
        self._effort = [_EFFORT]

    def judged(self) -> list[_Found]:
        found = list(self.schemas(*self._roots, _Spot((), lambda schema: schema)))
        doubtful = [number for number, each in enumerate(found) if each.severity is None]
        if not doubtful:
            return found
        instances = self._search.counterexamples()
        examples = {number: self._examples(found[number], instances) for number in doubtful}
        if instances and not any(examples.values()):  # No change alone is breaking: all of them together are.
            examples[doubtful[0]] = instances
        return [
            self._settled(each, examples[number]) if number in examples else each
            for number, each in enumerate(found)
        ]

    def _examples(self, found: _Found, instances: list[Any]) -> list[Any]:
        """Return the first instance that the wide schema does not accept with this change only."""
        mixed = document(found.mixed, self._roots[1])
        return next(([value] for value in instances if self._search.accepts(mixed, value) is False), [])

    def _settled(self, found: _Found, examples: list[Any]) -> _Found:
        why = f"{found.why}; " if found.why else ""
        if not examples:
            return found._replace(severity=DIFFERENT, why=why + UNDECIDED)
        text = fingerprint(examples[0])
        text = text if len(text) <= _SHOWN else text[: _SHOWN - 1] + "…"
        return found._replace(
            severity=BREAKING, why=f"{why}now {'refuses' if self._is_input else 'allows'} {text}"
        )

    def schemas(self, wide: Any, narrow: Any, spot: _Spot) -> Iterator[_Found]:
        pair = _identity(wide), _identity(narrow)
        wide, one = resolved(wide, self._roots[0])
        narrow, two = resolved(narrow, self._roots[1])
        if one or two:
            if pair in self._seen:
                return
            self._seen.add(pair)
        self._effort[0] -= 1
        wide, narrow = ({} if side is True else side for side in (wide, narrow))
        if not isinstance(wide, dict) or not isinstance(narrow, dict):
            if fingerprint(wide) != fingerprint(narrow):
                severity = NOTE if wide is False else None
                yield _Found(spot.at, severity, "", wide, narrow, spot.put(moved(narrow)))
            return
        found = list(self._alternatives(wide, narrow, spot))
        if any(each.severity is None for each in found) and self._is_finite_within(wide, narrow):
            found = [each._replace(severity=each.severity or NOTE) for each in found]
        elif rest := [each for each in ("unevaluatedProperties", "unevaluatedItems") if each in narrow]:
            # All other keywords matter for these, even `additionalProperties: true`.
            found = [_doubted(each) for each in found]
            is_settled = any(each.severity is None for each in found)
            if not is_settled and not self._is_same(stripped(wide), stripped(narrow)):
                sides = wide.get(rest[0], UNSET), narrow[rest[0]]
                found.append(_Found((*spot.at, rest[0]), None, "", *sides, spot.put(moved(narrow))))
        yield from found

    def _alternatives(self, wide: dict[str, Any], narrow: dict[str, Any], spot: _Spot) -> Iterator[_Found]:
        """Compare two schemas in forms that are alike, as lists of alternatives if they are nothing else."""
        if not ("allOf" in wide and "allOf" in narrow):
            wide, narrow = (
                resolved(unwrapped(each), root)[0]
                for each, root in zip((wide, narrow), self._roots, strict=True)
            )
        wide, narrow = plain(wide), plain(narrow)
        any_of, one_of = ([keyword in each for each in (wide, narrow)] for keyword in ("anyOf", "oneOf"))
        written = ["anyOf" if each else "" for each in any_of]
        if any_of == [False, True] and one_of == [True, False]:
            yield _Found((*spot.at, "oneOf"), NOTE, "", wide["oneOf"], UNSET)
            wide, written[0] = as_any_of(wide), "oneOf"
        elif any_of == [True, False] and one_of == [False, True] and self._is_disjoint(narrow["oneOf"]):
            yield _Found((*spot.at, "oneOf"), NOTE, "", UNSET, narrow["oneOf"])
            narrow, written[1] = as_any_of(narrow), "oneOf"
        first, second = (wide, narrow) if self._is_input else (narrow, wide)
        keywords = [*first, *(keyword for keyword in second if keyword not in first)]
        is_list = ("anyOf" in wide or "anyOf" in narrow) and is_choice(wide) and is_choice(narrow)
        if is_list:
            keywords = [keyword for keyword in keywords if keyword in ANNOTATIONS or keyword == "default"]
        else:
            yield from self._members(wide, narrow, spot)
            yield from self._required(wide, narrow, spot)
        for unit in dict.fromkeys(_UNIT_OF.get(keyword, (keyword,)) for keyword in keywords):
            if unit[0] not in ("properties", "required", *DEFINITIONS):
                yield from self._keyword(unit, wide, narrow, spot, written)
        if is_list:
            lists = {"anyOf": choices(wide)}, {"anyOf": choices(narrow)}
            yield from self._several("anyOf", *lists, spot, written)

    def _keyword(
        self,
        unit: tuple[str, ...],
        wide: dict[str, Any],
        narrow: dict[str, Any],
        spot: _Spot,
        written: Sequence[str],
    ) -> Iterator[_Found]:
        keyword = unit[0]
        one, two = wide.get(keyword, UNSET), narrow.get(keyword, UNSET)
        is_list = isinstance(one, list), isinstance(two, list)
        if keyword in ("additionalProperties", "propertyNames", "items") and not any(is_list):
            yield from self._subschema(keyword, one, two, spot.below(wide, keyword))
        elif keyword == "prefixItems":
            yield from self._items(wide, narrow, spot)
        elif keyword in _LISTS and all(is_list):
            yield from self._several(
                keyword, wide, narrow, spot, written if keyword == "anyOf" else (keyword, keyword)
            )
        elif not all(self._is_same(wide.get(each, UNSET), narrow.get(each, UNSET)) for each in unit):
            if keyword not in _CONSTRAINTS:
                yield _Found((*spot.at, keyword), NOTE if keyword in ANNOTATIONS else DIFFERENT, "", one, two)
                return
            if keyword in _LIMITS:
                limits = [limit(unit, each, is_whole=is_whole(wide)) for each in (wide, narrow)]
                if limits[0] == limits[1] is not None:
                    return
            severity = NOTE if self._is_implied(unit, wide, narrow) else None
            kept = {key: value for key, value in wide.items() if key not in unit}
            mixed = spot.put({**kept, **{each: moved(narrow[each]) for each in unit if each in narrow}})
            for each in unit:
                sides = wide.get(each, UNSET), narrow.get(each, UNSET)
                if not self._is_same(*sides):
                    yield _Found((*spot.at, each), severity, "", *sides, mixed)

    def _subschema(self, keyword: str, one: Any, two: Any, spot: _Spot) -> Iterator[_Found]:
        """Yield the changes of a keyword whose value is a schema, and that allows anything if it is missing."""
        both = (True if one is UNSET else one), (True if two is UNSET else two)
        for found in self.schemas(*both, spot):
            is_of_names = keyword == "propertyNames" and found.tokens == (*spot.at, "type")
            if found.tokens == spot.at and UNSET not in (found.wide, found.narrow):
                yield found._replace(wide=one, narrow=two)
            elif is_of_names and "string" in (types_of({"type": found.narrow}) or ()):
                yield found._replace(severity=NOTE)  # Names are texts, with or without this keyword.
            else:
                yield found

    def _members(self, wide: dict[str, Any], narrow: dict[str, Any], spot: _Spot) -> Iterator[_Found]:
        one, two = dict_of(wide.get("properties")), dict_of(narrow.get("properties"))
        first, second = (one, two) if self._is_input else (two, one)
        required = names_of(wide.get("required")), names_of(narrow.get("required"))
        for name in [*first, *(name for name in second if name not in first)]:
            member = spot.below({**wide, "properties": one}, "properties", name)
            needed = name in required[self._is_input]
            why = f"gained {'a required' if needed else 'an optional'} property {name}"
            if name in first:
                why = f"lost the property {name}"
            if name in one and name in two:
                yield from self.schemas(one[name], two[name], member)
            elif name in two:
                is_new = name in required[1] - required[0]
                schema = {**wide, "required": [*list_of(wide.get("required")), name]} if is_new else wide
                mixed = spot.below({"properties": {}, **schema}, "properties", name).put(moved(two[name]))
                severity = NOTE if not is_new and self._fits_others(wide, two[name]) else None
                yield _Found(member.at, severity, why, UNSET, two[name], mixed)
            elif self._fits_in(narrow, one[name]):
                why += _STILL if self._is_input else ""
                yield _Found(member.at, DIFFERENT if self._is_input else NOTE, why, one[name], UNSET)
            else:
                if narrow.get("patternProperties"):
                    rest = [key for key in ("patternProperties", "additionalProperties") if key in narrow]
                    others = {key: value for key, value in one.items() if key != name}
                    mixed = spot.put(
                        {**wide, "properties": others, **{key: moved(narrow[key]) for key in rest}}
                    )
                else:  # Only this member: an example with another one would not show what was lost.
                    mixed = member.put(moved(narrow.get("additionalProperties", True)))
                yield _Found(member.at, None, why, one[name], UNSET, mixed)

    def _fits_others(self, wide: dict[str, Any], narrow: Any) -> bool:
        """Return whether members that the wide schema does not declare fit a subschema of the narrow one."""
        if narrow is True or narrow == {}:
            return True
        if wide.get("patternProperties"):
            return False
        if "additionalProperties" not in wide:
            return self._is_input  # Clients send no arguments that they do not know.
        return self._is_within(wide["additionalProperties"], narrow)

    def _fits_in(self, narrow: dict[str, Any], wide: Any) -> bool:
        """Return whether a declared member fits a narrow schema that does not declare it."""
        rest = narrow.get("additionalProperties", True)
        return wide is False or (not narrow.get("patternProperties") and self._is_within(wide, rest))

    def _required(self, wide: dict[str, Any], narrow: dict[str, Any], spot: _Spot) -> Iterator[_Found]:
        """Yield properties that became required or optional, unless the property's own change reports it."""
        one, two = names_of(wide.get("required")), names_of(narrow.get("required"))
        declared = dict_of(wide.get("properties")), dict_of(narrow.get("properties"))
        at = (*spot.at, "required")
        for name in sorted(one ^ two):
            is_more = name in two
            if name in declared[not is_more] or name not in declared[is_more]:
                why = f"{name} is {'required now' if is_more is self._is_input else 'no longer required'}"
                mixed = spot.put({**wide, "required": [*list_of(wide.get("required")), name]})
                sides = (UNSET, name)[:: 1 if is_more else -1]
                yield _Found(at, None if is_more else NOTE, why, sides[0], sides[1], mixed)

    def _items(self, wide: dict[str, Any], narrow: dict[str, Any], spot: _Spot) -> Iterator[_Found]:
        """Yield the changes of `prefixItems`, whose missing items are `items`."""
        one, two = list_of(wide.get("prefixItems")), list_of(narrow.get("prefixItems"))
        rest = wide.get("items", True), narrow.get("items", True)
        for place in range(max(len(one), len(two))):
            all_items = {**wide, "prefixItems": [*one, *[rest[0]] * (place + 1 - len(one))]}
            sides = all_items["prefixItems"][place], (two[place] if place < len(two) else rest[1])
            yield from self.schemas(*sides, spot.below(all_items, "prefixItems", str(place)))

    def _several(
        self, keyword: str, wide: Any, narrow: Any, spot: _Spot, written: Sequence[str]
    ) -> Iterator[_Found]:
        """Yield the changes of a list of schemas, whose order does not matter.

        `written`: the keyword of each list in its own document; empty if the schema there is one without a list,
        or its types are the alternatives. So a pointer leads to the value that it is reported with.
        """
        one, two, is_all = wide[keyword], narrow[keyword], keyword == "allOf"
        is_sure = keyword != "oneOf" or self._is_disjoint(two)
        waiting: defaultdict[str, deque[int]] = defaultdict(deque)
        for number, schema in enumerate(one):
            waiting[fingerprint(bare(schema))].append(number)
        queues = [waiting.get(fingerprint(bare(schema))) for schema in two]
        pairs = [(queue.popleft(), number) for number, queue in enumerate(queues) if queue]
        left = sorted(number for numbers in waiting.values() for number in numbers)
        right = sorted(set(range(len(two))) - {number for _, number in pairs})
        # Of alternatives, each wide one must fit a narrow one; of conditions, a wide one must fit each narrow one.
        if is_all:
            fitting = {n for n in right if any(self._is_within(each, two[n]) for each in one)}
        else:
            fitting = {n for n in left if any(self._is_within(one[n], each) for each in two)}
        rest = [] if is_all or len(left) == len(right) else self._of_one_type(one, two, left, right)
        left = [n for n in left if n not in {place for place, _ in rest}]
        right = [n for n in right if n not in {other for _, other in rest}]
        if len(left) == len(right):
            rest += zip(left, right, strict=True)
            left = right = []
        for place, other in [*pairs, *rest]:
            name, number = (written[1], other) if self._is_input else (written[0], place)
            at: Pointer = (name, str(number)) if name else ()
            is_fitting = (place, other) in rest and (other if is_all else place) in fitting
            for found in self.schemas(one[place], two[other], spot.below(wide, keyword, str(place), at=at)):
                each = found._replace(severity=NOTE) if is_fitting and found.severity is None else found
                yield each if is_sure else _doubted(each)
        for n in left:
            mixed = spot.put({**wide, keyword: [*one[:n], *one[n + 1 :]]})
            severity = NOTE if is_all or (n in fitting and is_sure) else None
            at, value = _alternative(written[0], one, n)
            yield _Found((*spot.at, *at), severity, "", value, UNSET, mixed)
        for n in right:
            mixed = spot.put({**wide, keyword: [*one, moved(two[n])]})
            severity = NOTE if (n in fitting if is_all else is_sure) else None
            at, value = _alternative(written[1], two, n)
            yield _Found((*spot.at, *at), severity, "", UNSET, value, mixed)

    def _of_one_type(
        self, one: list[Any], two: list[Any], left: list[int], right: list[int]
    ) -> list[tuple[int, int]]:
        """Return the pairs of alternatives that alone have their type: one was changed into the other."""
        sides: list[dict[frozenset[str], list[int]]] = [{}, {}]
        for side, listed, numbers, root in zip(sides, (one, two), (left, right), self._roots, strict=True):
            for number in numbers:
                if types := types_of(dict_of(resolved(listed[number], root)[0])):
                    side.setdefault(types, []).append(number)
        return [
            (places[0], others[0])
            for types, places in sides[0].items()
            for others in [sides[1].get(types, [])]
            if len(places) == len(others) == 1
        ]

    def _is_implied(self, unit: tuple[str, ...], wide: dict[str, Any], narrow: dict[str, Any]) -> bool:
        """Return whether constraints of the wide schema prove those of the narrow one."""
        keyword, types = unit[0], types_of(wide)
        one, two = wide.get(keyword, UNSET), narrow.get(keyword, UNSET)
        if types is not None and keyword in _APPLIES and types.isdisjoint(_APPLIES[keyword]):
            return True
        if keyword in _LIMITS:
            limits = [limit(unit, each, is_whole=is_whole(wide)) for each in (wide, narrow)]
            return limits[0] is not None and limits[1] is not None and limits[0] >= limits[1]
        if two is UNSET:
            return keyword != "patternProperties" or narrow.get("additionalProperties", True) in (True, {})
        match keyword:
            case "type":
                allowed = types_of(narrow) or frozenset()
                some = types - {"number"} if types is not None and is_whole(wide) else types
                return some is not None and some <= allowed
            case "enum":
                return one is not UNSET and values_of(one) <= values_of(two)
            case "anyOf" | "oneOf":
                is_sure = keyword == "anyOf" or self._is_disjoint(two)
                return is_sure and any(self._is_within(wide, other) for other in list_of(two))
            case "allOf":
                return all(self._is_within(wide, other) for other in list_of(two))
            case "uniqueItems":
                return two is False
            case "multipleOf":
                step = one if is_number(one) else 1
                return is_number(two) and (one is step or is_whole(wide)) and is_multiple(step, two)
            case "minLength" | "minItems" | "minProperties":
                return is_number(two) and bool(two <= (one if is_number(one) else 0))
            case "maxLength" | "maxItems" | "maxProperties":
                return is_number(two) and is_number(one) and bool(one <= two)
        return False

    def _is_within(self, wide: Any, narrow: Any) -> bool:
        """Return whether a comparison proves that the narrow subschema accepts all that the wide one accepts."""
        if self._effort[0] <= 0:
            return False
        trial = copy(self)
        trial._seen = set(self._seen)
        found = trial.schemas(wide, narrow, _Spot((), lambda schema: schema))
        return all(each.severity is not None for each in found)

    def _is_finite_within(self, wide: dict[str, Any], narrow: dict[str, Any]) -> bool:
        """Return whether the wide subschema lists its values, and the narrow one accepts them all."""
        values, types = plain(wide).get("enum"), types_of(wide)
        if not isinstance(values, list):
            if not types or not types <= {"boolean", "null"}:
                return False
            values = [value for value in (True, False, None) if ("boolean", "null")[value is None] in types]
        return all(
            self._search.accepts(narrow, value, self._roots[1])
            or self._search.accepts(wide, value, self._roots[0]) is False
            for value in values
        )

    def _is_disjoint(self, listed: Any) -> bool:
        return isinstance(listed, list) and is_disjoint(listed, self._roots[1])

    def _is_same(self, one: Any, two: Any) -> bool:
        """Return whether two values of a keyword are equal, with the targets of their references."""
        if one is UNSET or two is UNSET:
            return one is two
        is_equal = fingerprint(one) == fingerprint(two)
        return is_equal and targets(one, self._roots[0]) == targets(two, self._roots[1])


def _identity(schema: Any) -> str:
    """Return a text that is equal for references to the same target with the same siblings."""
    kept = bare(schema)
    if isinstance(kept, dict):
        kept = {keyword: value for keyword, value in kept.items() if keyword not in DEFINITIONS}
    return fingerprint(kept)


def _alternative(written: str, listed: list[Any], number: int) -> tuple[Pointer, Any]:
    """Return where an alternative is in its document, and its value there."""
    if written:
        return (written, str(number)), listed[number]
    return (("type",), listed[number]["type"]) if len(listed) > 1 else ((), listed[number])


def _doubted(found: _Found) -> _Found:
    if found.severity is NOTE and not ANNOTATIONS.isdisjoint(found.tokens[-1:]):
        return found
    is_loss = found.why.endswith(_STILL)
    doubt = found._replace(severity=None, why=found.why.removesuffix(_STILL))
    return doubt if found.severity is NOTE or is_loss else found


def _replaced(value: Any, path: Pointer, item: Any) -> Any:
    """Return an object or array with another value at a path; missing members are created."""
    if not path:
        return item
    first, *rest = path
    if isinstance(value, list):
        number = int(first)
        return [*value[:number], _replaced(value[number], tuple(rest), item), *value[number + 1 :]]
    return {**value, first: _replaced(value.get(first, {}), tuple(rest), item)}
