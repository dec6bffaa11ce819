"""The values of the filter language: numbers with units, times, texts, wildcards, regular expressions.

Each function compiles an atom into a test, or rejects its value with QueryError.
"""

from __future__ import annotations

import json
import operator
import re
from collections.abc import Callable, Mapping
from decimal import Decimal, InvalidOperation

from mcpspy.core.query.item import FilterItem, QueryPart, SessionEnd
from mcpspy.core.query.lexer import ORDER, Atom, QueryError
from mcpspy.core.regex import AllowUnsafe, RegexError, UnsupportedRegexError, compile_regex, glob_regex

TIMES = {"us": 1e-6, "µs": 1e-6, "μs": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0}
SIZES = {"b": 1.0, "k": 1e3, "kb": 1e3, "m": 1e6, "mb": 1e6, "g": 1e9, "gb": 1e9}

JSON_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")
_NUMBER = re.compile(r"(-?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+))([^\W\d_]*)")

_MAX_CACHED = 4096
"""Maximum number of cached results per test. Methods and subjects are few, and repeat."""

COMPARE: dict[str, Callable[[float, float], bool]] = {
    ">": operator.gt,
    ">=": operator.ge,
    "<": operator.lt,
    "<=": operator.le,
    "=": operator.eq,
    ":": operator.eq,
    "!=": operator.eq,  # The caller negates it, as for every field.
}

_EXAMPLES = {
    ORDER: ">200ms or >10kb",
    "latency": "latency>200ms",
    "size": "size>10kb",
    "time": "time>10s",
    "code": "code:-32602",
    "since": "since:-5m or since:10s",
    "until": "until:-5m or until:10s",
}


def number_test(atom: Atom) -> QueryPart:
    """Compare a number; without a field, its unit selects latency or size."""
    field, bound = number_bound(atom)
    compare = COMPARE[atom.op]
    if field == "code":
        return code_test(bound, compare)
    if field == "size":
        return QueryPart(lambda item: compare(item.size, bound), False)
    if field == "time":
        return QueryPart(lambda item: compare(item.at, bound), False)
    return QueryPart(lambda item: (latency := item.latency) is not None and compare(latency, bound), False)


def number_bound(atom: Atom) -> tuple[str, float]:
    """Return the compared field, `latency`, `size`, `time` or `code`, and the number in seconds or bytes."""
    found = _NUMBER.fullmatch(atom.value)
    if found is None:
        atom.fail(f"{atom.value} is not a number (example: {_EXAMPLES[atom.field]})")
    amount, unit, field = float(found[1]), found[2].lower(), atom.field
    if field == ORDER:
        if not unit:
            atom.fail(f"{atom.value} needs a unit (example: {_EXAMPLES[field]})")
        if unit == "m":
            atom.fail(f"{atom.value} is ambiguous: write {found[1]}min or {found[1]}mb")
        field = "size" if unit in SIZES else "latency"
    if field == "code":
        if unit:
            atom.fail(f'code takes a number, not "{atom.value}"')
        return field, amount
    if field == "size":
        return field, amount * _factor(atom, found[2], {"": 1.0, **SIZES}, "bytes")
    if field == "time":
        return field, amount * _factor(atom, found[2], {"": 1.0, **TIMES}, "a time")
    if atom.op in (":", "=", "!="):
        atom.fail(f"{atom.name} needs < or >: write {atom.name}>{atom.value}")
    return field, amount * _factor(atom, found[2], TIMES, "a time")


def _factor(atom: Atom, unit: str, units: Mapping[str, float], what: str) -> float:
    factor = units.get(unit.lower())
    if factor is not None:
        return factor
    if not unit:
        atom.fail(f"{atom.value} needs a unit (example: {_EXAMPLES['latency']})")
    if unit.lower() in {**TIMES, **SIZES}:
        atom.fail(f'{atom.name} takes {what}, not "{unit}"')
    return atom.fail(f'unknown unit "{unit}": use µs, ms, s, min or h for times, b, kb, mb or gb for sizes')


def code_test(amount: float, compare: Callable[[float, float], bool]) -> QueryPart:
    """Compare the code of a JSON-RPC error."""
    return QueryPart(lambda item: (code := item.error_code) is not None and compare(code, amount), False)


def json_number(text: str) -> Decimal | None:
    """Return the value of a JSON number, exactly; None if the text is not one, or beyond `Decimal`."""
    try:
        return Decimal(text) if JSON_NUMBER.fullmatch(text) else None
    except InvalidOperation:
        return None


def number_text_test(number: Decimal) -> Callable[[str], bool]:
    """Return a test of JSON text: true for every spelling of the number, like `1`, `1.0` and `1e0`."""
    is_short_integer = number.adjusted() < 40 and number == number.to_integral_value()
    integer = str(int(number)) if is_short_integer else ""
    # JSON integers have no leading zeros, so only other spellings need parsing.
    return lambda text: text == integer if integer and text.isdigit() else json_number(text) == number


def time_bound(atom: Atom, end: SessionEnd) -> QueryPart:
    """Compare the time since the start; a negative value is relative to the end."""
    if atom.op != ":":
        atom.fail(f"{atom.name} needs a colon: write {atom.name}:{atom.raw}")
    found = _NUMBER.fullmatch(atom.value)
    if found is None:
        atom.fail(f"{atom.value} is not a time (example: {_EXAMPLES[atom.field]})")
    bound = float(found[1]) * _factor(atom, found[2], {"": 1.0, **TIMES}, "a time")
    compare = COMPARE[">=" if atom.field == "since" else "<="]
    if not atom.value.startswith("-"):
        return QueryPart(lambda item: compare(item.at, bound), False)
    end.is_used = True

    def test(item: FilterItem) -> bool:
        at = item.at
        return compare(at, (at if end.at is None else end.at) + bound)

    return QueryPart(test, False)


class _TestCache(dict[str, bool]):
    """A cache of the results of a text test."""

    def __init__(self, test: Callable[[str], bool]) -> None:
        super().__init__()
        self._test = test

    def __missing__(self, text: str) -> bool:
        if len(self) >= _MAX_CACHED:
            self.clear()
        found = self[text] = self._test(text)
        return found


def text_test(atom: Atom) -> Callable[[str], bool]:
    """Return the test of a text: exact, a pattern with `*` and `?`, or a substring."""
    value = atom.value
    if atom.op in ("=", "!="):
        return lambda text: text == value
    reject_order(atom)
    value = value.casefold()
    if not atom.is_quoted and ("*" in value or "?" in value):
        fullmatch = glob_regex(value).fullmatch
        # Match literally, too: the ? of a URI is not a pattern.
        return lambda text: (
            bool(text) and (value in text.casefold() or fullmatch(text.casefold()) is not None)
        )
    return lambda text: value in text.casefold()


def reject_order(atom: Atom) -> None:
    """Raise QueryError for `<` and `>`."""
    if atom.op[0] in "<>":
        atom.fail(f"{atom.name} cannot be compared with {atom.op}: write {atom.name}:{atom.raw}")


def cached_text_test(atom: Atom) -> Callable[[str], bool]:
    """Return a `text_test` with a cache, for texts that are few and repeat."""
    return _TestCache(text_test(atom)).__getitem__


def text_forms(value: str) -> set[str]:
    """Return a text in lower case, as it is and as JSON escapes it."""
    plain = value.casefold()
    held = (json.dumps(plain, ensure_ascii=False), json.dumps(plain), json.dumps(value))
    return {plain, *(form[1:-1].casefold() for form in held)}


def text_search(atom: Atom) -> QueryPart:
    """Find a text literally or as JSON escapes it, ignoring case."""
    if atom.op != ":":
        atom.fail(f"{atom.name} needs a colon: write {atom.name}:{atom.raw}")
    value, plain, forms = atom.value, atom.value.casefold(), text_forms(atom.value)
    if (
        not value.isascii()
    ):  # Only str folds the case of other alphabets; some characters fold to ASCII, like ß to ss.
        return QueryPart(
            lambda item: any(map(item.text().decode("utf-8", "replace").casefold().__contains__, forms)), True
        )
    if len(forms) > 1:
        needles = [form.encode() for form in forms]
        return QueryPart(lambda item: any(map(item.text().lower().__contains__, needles)), True)
    needle = plain.encode()
    if needle == needle.upper():
        return QueryPart(lambda item: needle in item.text(), True)
    return QueryPart(lambda item: needle in item.text().lower(), True)


def regex_search(atom: Atom, allow_unsafe: AllowUnsafe) -> QueryPart:
    """Search with a regular expression."""
    try:
        regex = compile_regex(atom.value, allow_unsafe, ignore_case=bool(atom.op))
    except RegexError as error:
        message = f"{'' if isinstance(error, UnsupportedRegexError) else 'invalid regex: '}{error}"
        if error.at is None:
            atom.fail(message)
        at = min(atom.start + 1 + error.at, atom.end - 1)
        raise QueryError(message, at, at + 1) from None
    return QueryPart(lambda item: regex.is_in(item.text()), True)
