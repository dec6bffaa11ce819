"""JSON values compared as values: one text for each, JSON pointers, what differs.

Owns when two values are the same: the order of members is not, and `1.0` is
`1`, as JSON's own numbers have it (RFC 8785); `true` is not `1`. Refuses to
know what a request is.

A recorded message under the ids of a live conversation.

Owns the splice: the members named are replaced, every other byte of a value
stays as the server sent it (floats, escapes, thirty-digit integers). A message
that has the right ids already is passed on untouched.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import orjson
from msgspec import DecodeError, Raw
from msgspec.json import Decoder, encode

Pointer = tuple[str, ...]
"""A JSON pointer's reference tokens, unescaped (RFC 6901)."""


_encode = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode

_SHAPES = bytes.maketrans(b"123456789e", b"000000000.")
"""Makes one digit of all digits, and a point of the `e` of a number: no search of an expression is as quick."""


def canonical(value: Any) -> str:
    """Return the one text of a value; raise RecursionError if it is nested too deep."""
    return canonical_bytes(value).decode("utf-8", "surrogatepass")


def canonical_bytes(value: Any) -> bytes:
    """Return the one text of a value in UTF-8, a lone surrogate as if it were a character."""
    written = quickly(value)
    return slowly(value) if written is None else written


def quickly(value: Any) -> bytes | None:
    """Return the one text of a value as orjson writes it; None if it may write it otherwise."""
    try:
        written = orjson.dumps(value, option=orjson.OPT_SORT_KEYS)
    except TypeError:  # An integer beyond 64 bits, a lone surrogate, nested too deep for it.
        return None
    return None if _is_doubtful(written) else written


def slowly(value: Any) -> bytes:
    """Return the one text of any value."""
    return _encode(_plain(value)).encode("utf-8", "surrogatepass")


def same(one: Any, other: Any) -> bool:
    """Whether two values are the same JSON."""
    return canonical(one) == canonical(other)


def pointer(text: str) -> Pointer:
    """Return the tokens of a JSON pointer; raise ValueError if it is none."""
    if not text.startswith("/"):
        raise ValueError("a JSON pointer begins with /")
    tokens = text.split("/")[1:]
    if any("~" in token.replace("~0", "").replace("~1", "") for token in tokens):
        raise ValueError("a ~ in a JSON pointer is written ~0, a / in a name ~1")
    return tuple(token.replace("~1", "/").replace("~0", "~") for token in tokens)


def spelled(tokens: Pointer) -> str:
    """Return the text of a JSON pointer."""
    return "".join("/" + token.replace("~", "~0").replace("/", "~1") for token in tokens)


def without(value: Any, tokens: Pointer) -> Any:
    """Return a value that lacks what a pointer names; the value itself if there is no such thing.

    An item taken out of an array leaves null, so that other pointers into the array stay true.
    """
    if not tokens:
        return None
    first, *rest = tokens
    if isinstance(value, dict) and first in value:
        kept = {key: item for key, item in value.items() if key != first}
        return kept if not rest else {**value, first: without(value[first], tuple(rest))}
    if isinstance(value, list) and _is_index(first, value):
        number = int(first)
        return [*value[:number], without(value[number], tuple(rest)), *value[number + 1 :]]
    return value


def differences(one: Any, other: Any, at: Pointer = ()) -> Iterator[str]:
    """Yield the pointers at which two values differ: to what is other, added or missing."""
    if isinstance(one, dict) and isinstance(other, dict):
        for key in [*one, *(key for key in other if key not in one)]:
            if key in one and key in other:
                yield from differences(one[key], other[key], (*at, key))
            else:
                yield spelled((*at, key))
    elif isinstance(one, list) and isinstance(other, list):
        for number in range(max(len(one), len(other))):
            if number < len(one) and number < len(other):
                yield from differences(one[number], other[number], (*at, str(number)))
            else:
                yield spelled((*at, str(number)))
    elif not same(one, other):
        yield spelled(at)


def _is_doubtful(written: bytes) -> bool:
    """Whether orjson may have written something otherwise than the one text: floats; and NaN, which it calls null."""
    return b"0." in written.translate(_SHAPES) or b"null" in written


def _is_index(token: str, items: list[Any]) -> bool:
    return token.isascii() and token.isdigit() and str(int(token)) == token and int(token) < len(items)


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_plain(item) for item in value]
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return value


_members = Decoder(dict[str, Raw]).decode


def replaced(data: bytes, path: tuple[str, ...], value: bytes) -> bytes:
    """Return the message with JSON text at a path of members; as it is if the path is not there."""
    try:
        return _replaced(data, path, value)
    except (DecodeError, RecursionError):
        return _loosely(data, path, value)


def one_line(data: bytes) -> bytes:
    """Return the message without line ends, which are white space wherever they stand in JSON."""
    return data.replace(b"\r", b" ").replace(b"\n", b" ")


def _replaced(data: bytes, path: tuple[str, ...], value: bytes) -> bytes:
    first, *rest = path
    members = _members(data)
    if first not in members:
        return data
    new = _replaced(bytes(members[first]), tuple(rest), value) if rest else value
    if new == bytes(members[first]):
        return data
    members[first] = Raw(new)
    return encode(members)


def _loosely(data: bytes, path: tuple[str, ...], value: bytes) -> bytes:
    """Replace in what a strict parser refuses: NaN, lone surrogates, bytes that are not UTF-8."""
    try:
        whole: Any = json.loads(data.decode("utf-8", "replace"))
        place = whole
        for key in path[:-1]:
            place = place[key]
        if not isinstance(place, dict) or path[-1] not in place:
            return data
        place[path[-1]] = json.loads(value)
        return json.dumps(whole).encode()
    except (ValueError, TypeError, KeyError, RecursionError):
        return data
