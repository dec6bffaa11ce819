"""Generator of values that are valid by a JSON Schema: the results of a mock without a recording.

A candidate is made from the schema, and `jsonschema-rs` judges it, with formats: nothing that a client would reject is
returned. Candidates differ in their choices, which a seed decides, so every run generates the same. What the generator
does not interpret (`not`, `propertyNames` and the like) may make all candidates invalid; that is an error with the
name of the tool, never a wrong value. docs/decisions.md has the reason for not using a library.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from hashlib import blake2b
from importlib import import_module
from itertools import count
from math import ceil, floor, inf
from typing import Any, NoReturn

from mcpspy.core.jsontools import ABSENT, canonical, is_number, pointer, value_at

ATTEMPTS = 60
"""Candidates per schema. Nearly every schema of a real server needs one."""

DEEPEST = 12
"""Levels of a generated value. From the third on, it has only required members, so that recursive schemas end."""

ALL_MEMBERS = 3

LONGEST = 10_000
"""Maximum characters of a generated string, and maximum items of an array."""

FORMATS = {
    "date": "2026-01-31",
    "date-time": "2026-01-31T12:00:00Z",
    "time": "12:00:00Z",
    "duration": "PT1H",
    "email": "user@example.com",
    "idn-email": "user@example.com",
    "hostname": "example.com",
    "idn-hostname": "example.com",
    "ipv4": "192.0.2.1",
    "ipv6": "2001:db8::1",
    "uri": "https://example.com/",
    "uri-reference": "/a/b",
    "iri": "https://example.com/",
    "iri-reference": "/a/b",
    "uri-template": "https://example.com/{id}",
    "uuid": "123e4567-e89b-42d3-a456-426614174000",
    "json-pointer": "/a/b",
    "relative-json-pointer": "1/a",
    "regex": "^a+$",
}
"""Format → a valid string; the names and addresses are those reserved for documentation (RFC 2606, 5737, 3849)."""

_MEETS = {"minimum": max, "exclusiveMinimum": max, "minLength": max, "minItems": max, "minProperties": max}
_MEETS |= {name.replace("min", "max").replace("Min", "Max"): min for name in _MEETS}
"""Keyword → how two values of it combine."""


class CannotGenerateError(Exception):
    """No valid value was found; the text is the reason."""


def validator_of(schema: Any) -> Any:
    """Return the validator of a schema, with formats. Raise ValueError; nothing it refers to is fetched."""
    from jsonschema_rs import validator_for

    return validator_for(schema, retriever=_refuse, validate_formats=True)


def generated(schema: Any, seed: str) -> Any:
    """Return a value that is valid by a schema; equal seeds give equal values. Raise CannotGenerateError."""
    try:
        validator = validator_of(schema)
    except ValueError as error:
        raise CannotGenerateError(f"not a valid JSON Schema: {_first_line(error)}") from None
    reason = ""
    for attempt in range(ATTEMPTS):
        try:
            value = _Candidate(schema, _Choices(f"{seed} {attempt}"), attempt).value(schema)
        except (CannotGenerateError, RecursionError) as error:
            reason = reason or str(error) or "nested too deep"
            continue
        if validator.is_valid(value):
            return value
        reason = reason or _first_line(next(iter(validator.iter_errors(value))))
    raise CannotGenerateError(reason)


class _Choices:
    """Choices that a seed decides, the same with every version of Python."""

    def __init__(self, seed: str) -> None:
        self._seed = seed
        self._number = 0

    def random(self) -> float:
        """Return a number from 0 up to 1, without 1."""
        self._number += 1
        digest = blake2b(f"{self._seed} {self._number}".encode(), digest_size=6).digest()
        return int.from_bytes(digest) / (1 << 48)

    def randint(self, first: int, last: int) -> int:
        return first + int(self.random() * (last - first + 1))

    def choice(self, items: Sequence[Any]) -> Any:
        return items[self.randint(0, len(items) - 1)]


class _Candidate:
    """One attempt; `examples` and optional members are used by the first ones, and by every other one."""

    def __init__(self, root: Any, random: _Choices, attempt: int) -> None:
        self._root = root
        self._random = random
        self._examples = attempt % 2 == 0
        self._optional = attempt % 4 < 2
        self._varied = attempt > 0

    def value(self, schema: Any, depth: int = 0) -> Any:
        if schema is False:
            raise CannotGenerateError("a schema `false` accepts no value")
        if depth > DEEPEST:
            raise CannotGenerateError("recursive without an end")
        if not isinstance(schema, dict):
            return "text"
        schema = self._flat(schema)
        if "const" in schema:
            return schema["const"]
        if "enum" in schema and isinstance(schema["enum"], list) and schema["enum"]:
            return self._random.choice(schema["enum"])
        if self._examples:
            examples = schema.get("examples")
            if isinstance(examples, list) and examples:
                return self._random.choice(examples)
            if "default" in schema:
                return schema["default"]
        kind = self._type(schema)
        if kind == "object":
            return self._object(schema, depth)
        if kind == "array":
            return self._array(schema, depth)
        if kind in ("integer", "number"):
            return self._number(schema, is_integer=kind == "integer")
        if kind == "boolean":
            return self._random.random() < 0.5
        return None if kind == "null" else self._string(schema)

    def _flat(self, schema: dict[str, Any]) -> dict[str, Any]:
        """Return a schema without references and alternatives: one of each alternative is chosen."""
        for _ in range(50):
            schema, before = dict(schema), schema
            references = [schema.pop(name) for name in ("$ref", "$dynamicRef") if name in schema]
            parts: list[Any] = [self._referred(reference) for reference in references]
            parts += schema.pop("allOf", ())
            for name in ("anyOf", "oneOf"):
                if isinstance(before.get(name), list) and before[name]:
                    parts.append(self._random.choice(schema.pop(name)))
            if "if" in schema:
                condition, then, other = (schema.pop(name, True) for name in ("if", "then", "else"))
                parts += [condition, then] if self._random.random() < 0.5 else [other]
            if not parts:
                return schema
            for part in parts:
                schema = _merged(schema, part)
        raise CannotGenerateError("references without an end")

    def _referred(self, reference: Any) -> Any:
        if reference == "#":
            return self._root
        if isinstance(reference, str) and reference.startswith("#/"):
            found = value_at(self._root, pointer(reference[1:]))
            if found is not ABSENT:
                return found
        elif isinstance(reference, str) and reference.startswith("#"):
            for found in _subschemas(self._root):
                if reference[1:] in (found.get("$anchor"), found.get("$dynamicAnchor")):
                    return found
        raise CannotGenerateError(f"the reference {reference!r} is not resolved")

    def _type(self, schema: dict[str, Any]) -> str:
        kind = schema.get("type")
        if isinstance(kind, list):
            kinds = [each for each in kind if each != "null"] or kind
            kind = self._random.choice(kinds) if kinds else None
        if isinstance(kind, str):
            return kind
        for kind, words in (
            ("object", ("properties", "required", "minProperties", "additionalProperties")),
            ("array", ("items", "prefixItems", "minItems", "contains")),
            ("number", ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf")),
        ):
            if any(word in schema for word in words):
                return kind
        return "string"

    def _object(self, schema: dict[str, Any], depth: int) -> dict[str, Any]:
        properties = schema.get("properties")
        properties = properties if isinstance(properties, dict) else {}
        names = list(schema.get("required", ()))
        if self._optional and depth < ALL_MEMBERS:
            names += [name for name, member in properties.items() if member is not False]
        for name in names:
            names += schema.get("dependentRequired", {}).get(name, ())
        rest = schema.get("additionalProperties", True)
        least = schema.get("minProperties", 0)
        names = list(dict.fromkeys(names))[: schema.get("maxProperties", len(names))]
        names += [name for name in properties if name not in names][: max(0, least - len(names))]
        patterns: dict[str, Any] = schema.get("patternProperties") or {}
        others = list(patterns.values())
        for number in count(1):
            if len(names) >= least or number > LONGEST:
                break
            names.append(_matching(next(iter(patterns)), self._random) if others else f"member{number}")
        return {
            name: self.value(properties.get(name, others[0] if others else rest), depth + 1) for name in names
        }

    def _array(self, schema: dict[str, Any], depth: int) -> list[Any]:
        prefix = schema.get("prefixItems", ())
        items = schema.get("items", True)
        if isinstance(items, list):  # Before draft 2020-12.
            prefix, items = items, schema.get("additionalItems", True)
        least = schema.get("minItems", 0)
        size = max(least, len(prefix), 1 if depth < ALL_MEMBERS and items is not False else 0)
        size = min(size, schema.get("maxItems", size), LONGEST)
        found = [
            self.value(prefix[number] if number < len(prefix) else items, depth + 1) for number in range(size)
        ]
        if "contains" in schema:
            wanted = max(1, schema.get("minContains", 1))
            found[: len(found)] = found[: max(0, size - wanted)]
            found += [self.value(schema["contains"], depth + 1) for _ in range(wanted)]
        if schema.get("uniqueItems"):
            known = {canonical(item) for item in found}
            for number, item in enumerate(found):
                if canonical(item) in {canonical(each) for each in found[:number]}:
                    found[number] = self._another(items, known, depth)
                    known.add(canonical(found[number]))
        return found

    def _another(self, schema: Any, known: set[str], depth: int) -> Any:
        self._varied = True
        for _ in range(ATTEMPTS):
            if canonical(item := self.value(schema, depth + 1)) not in known:
                return item
        raise CannotGenerateError("too few different items")

    def _number(self, schema: dict[str, Any], *, is_integer: bool) -> int | float:
        low, high, step = -inf, inf, schema.get("multipleOf", 1 if is_integer else None)
        least, most = schema.get("exclusiveMinimum"), schema.get("exclusiveMaximum")
        unit = step or (1 if is_integer else 0.5)
        low = max(low, schema.get("minimum", -inf), _above(least, unit, schema.get("minimum")))
        high = min(
            high, schema.get("maximum", inf), -_above(_minus(most), unit, _minus(schema.get("maximum")))
        )
        if low > high and not step:  # A narrow range between exclusive bounds.
            return float(schema.get("exclusiveMinimum", low) + schema.get("exclusiveMaximum", high)) / 2
        if low == -inf:
            low = min(1, high) if high != inf else 1
        if high == inf:
            high = low + 99 * unit
        if not step:
            return float(low + (high - low) * self._random.choice((0.0, 0.25, 0.5, 1.0)))
        first, last = ceil(low / step), floor(high / step)
        if first > last:
            raise CannotGenerateError(f"no multiple of {step} between {low} and {high}")
        number: int | float = self._random.randint(first, min(last, first + 99)) * step
        return int(number) if is_integer else float(number)

    def _string(self, schema: dict[str, Any]) -> str:
        pattern, kind = schema.get("pattern"), schema.get("format")
        if isinstance(pattern, str):
            return _matching(pattern, self._random)
        if kind in FORMATS:
            return FORMATS[str(kind)]
        text: str = f"text {self._random.randint(1, 999)}" if self._varied else "text"
        least, most = schema.get("minLength", 0), schema.get("maxLength", LONGEST)
        return str(text + "x" * min(LONGEST, max(0, least - len(text))))[: int(most)]


def _merged(one: dict[str, Any], other: Any) -> dict[str, Any]:
    """Return a schema that both schemas are part of, as far as keywords can be combined."""
    if other is False:
        raise CannotGenerateError("a schema `false` accepts no value")
    if not isinstance(other, dict):
        return one
    merged = {**one, **other}
    for name in one.keys() & other.keys():
        mine, its = one[name], other[name]
        if name in ("properties", "patternProperties", "$defs", "definitions", "dependentRequired"):
            merged[name] = {**mine, **its}
            if name == "properties":
                both = mine.keys() & its.keys()
                merged[name] |= {key: {"allOf": [mine[key], its[key]]} for key in both}
        elif name == "required":
            merged[name] = [*mine, *(each for each in its if each not in mine)]
        elif name in _MEETS and is_number(mine) and is_number(its):
            merged[name] = _MEETS[name](mine, its)
        elif name == "enum":
            merged[name] = [each for each in mine if each in its]
        elif name == "type":
            kinds, others = ([each] if isinstance(each, str) else each for each in (mine, its))
            merged[name] = [each for each in kinds if each in others or "number" in others] or kinds
        elif name in ("allOf", "anyOf", "oneOf") and isinstance(mine, list):
            merged[name] = mine
            merged["allOf"] = [*merged.get("allOf", ()), {name: its}]
    return merged


def _subschemas(schema: Any) -> Iterator[dict[str, Any]]:
    if isinstance(schema, dict):
        yield schema
    if isinstance(schema, dict | list):
        for item in schema.values() if isinstance(schema, dict) else schema:
            yield from _subschemas(item)


def _above(bound: Any, unit: float, inclusive: Any) -> float:
    """Return the lowest multiple of a unit above an exclusive bound. Draft 4 has a boolean beside `minimum`."""
    if bound is True:
        bound = inclusive
    if not is_number(bound):
        return -inf
    return float((floor(bound / unit) + 1) * unit)


def _minus(value: Any) -> Any:
    return -value if is_number(value) else value


def _matching(pattern: str, random: _Choices) -> str:
    """Return a string that a regular expression matches, as far as Python reads it as ECMA-262 does."""
    parser: Any = import_module("re._parser")
    try:
        parsed = parser.parse(pattern)
    except (ValueError, OverflowError) as error:
        raise CannotGenerateError(f"the pattern {pattern!r}: {error}") from None
    return "".join(_characters(parsed, random, {}))


_CLASSES = {"CATEGORY_DIGIT": "0123456789", "CATEGORY_SPACE": " ", "CATEGORY_WORD": "abcxyz019_"}
_CLASSES |= {"CATEGORY_NOT_DIGIT": "abc", "CATEGORY_NOT_SPACE": "abc", "CATEGORY_NOT_WORD": "-. "}
_ANY = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_ ."


def _characters(parsed: Any, random: _Choices, groups: dict[int, str]) -> Iterator[str]:
    for operator, argument in parsed:
        name = str(operator)
        if name == "LITERAL":
            yield chr(argument)
        elif name == "NOT_LITERAL":
            yield random.choice([each for each in _ANY if ord(each) != argument])
        elif name == "ANY":
            yield random.choice(_ANY[:52])
        elif name == "IN":
            yield random.choice(_members(argument))
        elif name in ("MAX_REPEAT", "MIN_REPEAT", "POSSESSIVE_REPEAT"):
            least, most, inner = argument
            for _ in range(random.randint(least, min(int(most), max(least, min(least + 3, LONGEST))))):
                yield from _characters(inner, random, groups)
        elif name == "SUBPATTERN":
            text = "".join(_characters(argument[-1], random, groups))
            groups[argument[0]] = text
            yield text
        elif name == "ATOMIC_GROUP":
            yield from _characters(argument, random, groups)
        elif name == "BRANCH":
            yield from _characters(random.choice(argument[1]), random, groups)
        elif name == "GROUPREF":
            yield groups.get(argument, "")
        elif name not in ("AT", "ASSERT", "ASSERT_NOT"):
            raise CannotGenerateError(f"{name.lower()} in a pattern")


def _members(argument: Any) -> str:
    """Return characters of a class, the printable ones if there are any."""
    is_negated, found = False, ""
    for operator, value in argument:
        name = str(operator)
        if name == "NEGATE":
            is_negated = True
        elif name == "LITERAL":
            found += chr(value)
        elif name == "RANGE":
            found += "".join(map(chr, range(value[0], min(value[1], value[0] + 200) + 1)))
        elif name == "CATEGORY":
            found += _CLASSES[str(value)]
    members = "".join(each for each in _ANY if each not in found) if is_negated else found
    if not members:
        raise CannotGenerateError("an empty character class in a pattern")
    return "".join(filter(str.isprintable, members)) or members


def _refuse(uri: str) -> NoReturn:
    raise ValueError(f"{uri} is not fetched")


def _first_line(error: object) -> str:
    return str(error).partition("\n")[0]
