"""Paths of the filter language into the message itself: `params.arguments.path:*.txt`.

Finds the values at a path and tests them. `core.query.lexer` parses the syntax.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from msgspec import DecodeError, Raw, Struct
from msgspec.json import Decoder

from mcpspy.core.jsontools import is_number, read_json
from mcpspy.core.protocol.message import loads
from mcpspy.core.query.item import FilterItem, QueryPart
from mcpspy.core.query.lexer import Atom, path_steps
from mcpspy.core.query.values import COMPARE, JSON_NUMBER, text_test

_ABSENT = Raw(b"")


class _Members(Struct, gc=False):
    """The members at which a path may begin, not decoded."""

    params: Raw = _ABSENT
    result: Raw = _ABSENT
    error: Raw = _ABSENT


_decode = Decoder(_Members).decode

_PLAIN = re.compile(r"[\w$@/.-]+", re.ASCII)


def path_test(atom: Atom) -> QueryPart:
    """Return a test that is true if any value at the path matches."""
    root = atom.name[: re.match("[a-z]+", atom.name).end()]  # type: ignore[union-attr]  # It begins with one.
    steps = path_steps(atom.name[len(root) :])
    matches = _value_test(atom)
    names = [name.encode() for name in path_names(steps)]

    def test(item: FilterItem) -> bool:
        data = item.message(root)
        if not data or not (all(name in data for name in names) or b"\\" in data):
            return False
        return any(map(matches, _reached(_member(data, root), steps)))

    return QueryPart(test, True)


def path_names(steps: Sequence[str | int | None]) -> list[str]:
    """Return texts that a message with a value at a path contains, unless it contains a backslash."""
    # A message that lacks a name of the path has no value there and is not decoded; an escape may hide a name.
    return [f'"{step}"' for step in steps if isinstance(step, str) and _PLAIN.fullmatch(step)]


def _member(data: bytes, name: str) -> Any:
    """Return a member of a message, decoded, in a list; an empty list if it is missing."""
    try:
        raw = bytes(getattr(_decode(data), name))
        return [loads(raw)] if raw else []
    except (DecodeError, RecursionError):  # Some peers accept what a strict parser rejects.
        message = loads(data)
        return [message[name]] if isinstance(message, dict) and name in message else []


def _reached(values: list[Any], steps: Sequence[str | int | None]) -> list[Any]:
    for step in steps:
        values = [inner for value in values for inner in _step(value, step)]
    return values


def _step(value: Any, step: str | int | None) -> Iterator[Any]:
    """Yield the member of this name, the item at this index, or for None all of them."""
    if isinstance(value, dict):
        if step is None:
            yield from value.values()
        elif step in value:
            yield value[step]
    elif isinstance(value, list):
        if step is None:
            yield from value
        elif isinstance(step, int) and -len(value) <= step < len(value):
            yield value[step]


def _value_test(atom: Atom) -> Callable[[Any], bool]:
    """Return the test of a value at a path."""
    if atom.op == ":":
        return _colon_test(atom)
    if atom.op in ("=", "!="):
        wanted = atom.value if atom.is_quoted else json_literal(atom.raw)
        return lambda value: (
            value == wanted and (type(value) is type(wanted) or (is_number(value) and is_number(wanted)))
        )
    if not JSON_NUMBER.fullmatch(atom.value) or atom.is_quoted:
        atom.fail(f"{atom.raw} is not a number (example: {atom.name}>5)")
    bound, compare = json.loads(atom.value), COMPARE[atom.op]
    return lambda value: is_number(value) and compare(value, bound)


def _colon_test(atom: Atom) -> Callable[[Any], bool]:
    """Return the test for `:`: a substring of strings and of the JSON of objects; numbers must be equal."""
    like = text_test(atom)
    if atom.value == "*" and not atom.is_quoted:
        return lambda value: True
    lowered, literal = atom.value.lower(), json_literal(atom.value)

    def test(value: Any) -> bool:
        if isinstance(value, str):
            return like(value)
        if isinstance(value, dict | list):
            return like(json.dumps(value, ensure_ascii=False, separators=(",", ":")))
        if is_number(value) and is_number(literal):
            return bool(value == literal)
        text = json.dumps(value)
        return text == lowered or ("*" in lowered and like(text))

    return test


def json_literal(text: str) -> Any:
    """Return the value of JSON text; any other text is a string."""
    try:
        return read_json(text)
    except ValueError:
        return text
