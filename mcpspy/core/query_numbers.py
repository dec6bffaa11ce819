"""The numbers of the filter language: times, sizes, codes, and their units.

Owns what a number with a unit is, and how one is compared.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Mapping

from mcpspy.core.query_item import End, Item, Part
from mcpspy.core.query_tokens import ORDER, Atom

_TIMES = {"us": 1e-6, "µs": 1e-6, "μs": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0}
_SIZES = {"b": 1.0, "k": 1e3, "kb": 1e3, "m": 1e6, "mb": 1e6, "g": 1e9, "gb": 1e9}

_NUMBER = re.compile(r"(-?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+))([^\W\d_]*)")

COMPARE: dict[str, Callable[[float, float], bool]] = {
    ">": operator.gt,
    ">=": operator.ge,
    "<": operator.lt,
    "<=": operator.le,
    "=": operator.eq,
    ":": operator.eq,
    "!=": operator.eq,  # And negated, as for every field.
}

_EXAMPLES = {
    ORDER: "as in >200ms or >10kb",
    "latency": "as in latency>200ms",
    "size": "as in size>10kb",
    "time": "as in time>10s",
    "code": "as in code:-32602",
    "since": "as in since:-5m, or since:10s",
    "until": "as in until:-5m, or until:10s",
}


def number(atom: Atom) -> Part:
    """Compare a number; one that stands alone says by its unit which."""
    found = _NUMBER.fullmatch(atom.value)
    if found is None:
        atom.fail(f"{atom.value} is no number: {_EXAMPLES[atom.field]}")
    amount, unit, field = float(found[1]), found[2].lower(), atom.field
    if field == ORDER:
        if not unit:
            atom.fail(f"{atom.value} what? {_EXAMPLES[field]}")
        if unit == "m":
            atom.fail(f"{atom.value} may be minutes or megabytes: write {found[1]}min or {found[1]}mb")
        field = "size" if unit in _SIZES else "latency"
    compare = COMPARE[atom.op]
    if field == "code":
        if unit:
            atom.fail(f'code takes a number, not "{atom.value}"')
        return compared_code(amount, compare)
    if field == "size":
        bound = amount * _factor(atom, found[2], {"": 1.0, **_SIZES}, "bytes")
        return Part(lambda item: compare(item.size, bound), False)
    if field == "time":
        bound = amount * _factor(atom, found[2], {"": 1.0, **_TIMES}, "a time")
        return Part(lambda item: compare(item.at, bound), False)
    if atom.op in (":", "=", "!="):
        atom.fail(f"no latency is exactly that: write {atom.name}>{atom.value}")
    bound = amount * _factor(atom, found[2], _TIMES, "a time")
    return Part(lambda item: (latency := item.latency) is not None and compare(latency, bound), False)


def _factor(atom: Atom, unit: str, units: Mapping[str, float], what: str) -> float:
    factor = units.get(unit.lower())
    if factor is not None:
        return factor
    if not unit:
        atom.fail(f"{atom.value} what? {_EXAMPLES['latency']}")
    if unit.lower() in {**_TIMES, **_SIZES}:
        atom.fail(f'{atom.name} takes {what}, not "{unit}"')
    return atom.fail(f'unknown unit "{unit}": us, ms, s, min, h for times; b, kb, mb, gb for sizes')


def compared_code(amount: float, compare: Callable[[float, float], bool]) -> Part:
    """Compare the code of a JSON-RPC error."""
    return Part(lambda item: (code := item.error_code) is not None and compare(code, amount), False)


def moment(atom: Atom, end: End) -> Part:
    """Hold when it was said against a time since the start; a negative one counts back from the end."""
    if atom.op != ":":
        atom.fail(f"{atom.name} takes a colon: {atom.name}:{atom.raw}")
    found = _NUMBER.fullmatch(atom.value)
    if found is None:
        atom.fail(f"{atom.value} is no time: {_EXAMPLES[atom.field]}")
    bound = float(found[1]) * _factor(atom, found[2], {"": 1.0, **_TIMES}, "a time")
    compare = COMPARE[">=" if atom.field == "since" else "<="]
    if not atom.value.startswith("-"):
        return Part(lambda item: compare(item.at, bound), False)
    end.is_asked = True

    def test(item: Item) -> bool:
        at = item.at
        return compare(at, (at if end.at is None else end.at) + bound)

    return Part(test, False)
