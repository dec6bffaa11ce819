"""The paths of the filter language: `params.arguments.path:*.txt`, into the message itself.

Owns what a path reaches, and when that is like a value. How one is written is
`core.query.lexer`'.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NoReturn

from msgspec import DecodeError, Raw, Struct
from msgspec.json import Decoder

from mcpspy.core.protocol.message import loads
from mcpspy.core.query.item import FilterItem, QueryPart
from mcpspy.core.query.lexer import Atom, steps_of
from mcpspy.core.query.values import COMPARE, looks

_ABSENT = Raw(b"")


class _Members(Struct, gc=False):
    """What a path may begin with, none of it decoded."""

    params: Raw = _ABSENT
    result: Raw = _ABSENT
    error: Raw = _ABSENT


_decode = Decoder(_Members).decode

_PLAIN = re.compile(r"[\w$@/.-]+", re.ASCII)
_JSON_NUMBER = re.compile(r"-?[0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")


def path(atom: Atom) -> QueryPart:
    """Return the test of what stands at a path: whether any value there is as it should be."""
    root = atom.name[: re.match("[a-z]+", atom.name).end()]  # type: ignore[union-attr]  # It begins with one.
    steps = steps_of(atom.name[len(root) :])
    holds = _holds(atom)
    # A message without the names on the way has no value there, and need not be decoded; `\\` may hide a name.
    names = [f'"{step}"'.encode() for step in steps if isinstance(step, str) and _PLAIN.fullmatch(step)]

    def test(item: FilterItem) -> bool:
        data = item.message(root)
        if not data or not (all(name in data for name in names) or b"\\" in data):
            return False
        return any(map(holds, _reached(_member(data, root), steps)))

    return QueryPart(test, True)


def _member(data: bytes, name: str) -> Any:
    """Return a member of a message, decoded, in a list; an empty one if it has none."""
    try:
        raw = bytes(getattr(_decode(data), name))
        return [loads(raw)] if raw else []
    except (DecodeError, RecursionError):  # What a strict parser refuses, some peers take.
        message = loads(data)
        return [message[name]] if isinstance(message, dict) and name in message else []


def _reached(values: list[Any], steps: Sequence[str | int | None]) -> list[Any]:
    for step in steps:
        values = [inner for value in values for inner in _step(value, step)]
    return values


def _step(value: Any, step: str | int | None) -> Iterator[Any]:
    """Yield what stands in a value under a name, at a place, or anywhere."""
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


def _holds(atom: Atom) -> Callable[[Any], bool]:
    """Return the test of a value that a path reached."""
    if atom.op == ":":
        return _like(atom)
    if atom.op in ("=", "!="):
        wanted = atom.value if atom.is_quoted else _written(atom.raw)
        return lambda value: (
            value == wanted and (type(value) is type(wanted) or (_is_number(value) and _is_number(wanted)))
        )
    if not _JSON_NUMBER.fullmatch(atom.value) or atom.is_quoted:
        atom.fail(f"{atom.raw} is no number: as in {atom.name}>5")
    bound, compare = json.loads(atom.value), COMPARE[atom.op]
    return lambda value: _is_number(value) and compare(value, bound)


def _like(atom: Atom) -> Callable[[Any], bool]:
    """Return the test for `:`. A text is found anywhere, so in what is written of an object too; a number is it, or not."""
    like = looks(atom)
    if atom.value == "*" and not atom.is_quoted:
        return lambda value: True
    same, written = atom.value.lower(), _written(atom.value)

    def test(value: Any) -> bool:
        if isinstance(value, str):
            return like(value)
        if isinstance(value, dict | list):
            return like(json.dumps(value, ensure_ascii=False, separators=(",", ":")))
        if _is_number(value) and _is_number(written):
            return bool(value == written)
        text = json.dumps(value)
        return text == same or ("*" in same and like(text))

    return test


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _written(text: str) -> Any:
    """Return the value that is written so in JSON; what is no JSON is a text."""
    try:
        return json.loads(text, parse_constant=_refuse)
    except (ValueError, RecursionError):
        return text


def _refuse(constant: str) -> NoReturn:
    raise ValueError(constant)
