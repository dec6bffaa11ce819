"""JSON values: canonical text, pointers, differences; and replacing members of JSON text.

Two values are equal whatever the order of members; `1.0` equals `1` (RFC 8785), `true` does not.
A replacement keeps every other byte of the text (floats, escapes, thirty-digit integers).
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

_NUMBER_PATTERN = bytes.maketrans(b"123456789e", b"000000000.")
"""Maps all digits to 0, and the `e` of a number to a point: faster than any regular expression."""

_members = Decoder(dict[str, Raw]).decode


def canonical(value: Any) -> str:
    """Return the canonical text of a value; raise RecursionError if it is nested too deep."""
    return canonical_bytes(value).decode("utf-8", "surrogatepass")


def canonical_bytes(value: Any) -> bytes:
    """Return the canonical text in UTF-8, with lone surrogates encoded like characters."""
    written = canonical_fast(value)
    return canonical_slow(value) if written is None else written


def canonical_fast(value: Any) -> bytes | None:
    """Return the canonical text as orjson writes it; None if orjson may write it differently."""
    try:
        written = orjson.dumps(value, option=orjson.OPT_SORT_KEYS)
    except TypeError:  # An integer beyond 64 bits, a lone surrogate, nested too deep for it.
        return None
    return None if _may_differ(written) else written


def canonical_slow(value: Any) -> bytes:
    """Return the canonical text of any value."""
    return _encode(_normalized(value)).encode("utf-8", "surrogatepass")


def same(one: Any, other: Any) -> bool:
    """Return True if two values are equal as JSON."""
    return canonical(one) == canonical(other)


def is_number(value: Any) -> bool:
    """Return True for a number of JSON, which `true` is not."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def pointer(text: str) -> Pointer:
    """Return the tokens of a JSON pointer; raise ValueError if it is not one."""
    if not text.startswith("/"):
        raise ValueError("a JSON pointer begins with /")
    tokens = text.split("/")[1:]
    if any("~" in token.replace("~0", "").replace("~1", "") for token in tokens):
        raise ValueError("a ~ in a JSON pointer is written ~0, a / in a name ~1")
    return tuple(token.replace("~1", "/").replace("~0", "~") for token in tokens)


def pointer_text(tokens: Pointer) -> str:
    """Return the text of a JSON pointer."""
    return "".join("/" + token.replace("~", "~0").replace("/", "~1") for token in tokens)


def without(value: Any, tokens: Pointer) -> Any:
    """Return a value without the member that a pointer names; the value itself if it has no such member.

    An item removed from an array leaves null, so that other pointers into the array stay valid.
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
    """Yield the pointers at which two values differ: changed, added or missing."""
    if isinstance(one, list) and isinstance(other, list):
        one, other = ({str(number): item for number, item in enumerate(items)} for items in (one, other))
    if isinstance(one, dict) and isinstance(other, dict):
        for key in [*one, *(key for key in other if key not in one)]:
            if key in one and key in other:
                yield from differences(one[key], other[key], (*at, key))
            else:
                yield pointer_text((*at, key))
    elif not same(one, other):
        yield pointer_text(at)


def _may_differ(written: bytes) -> bool:
    """Return True if orjson may have written a non-canonical text: floats; and NaN, which it writes as null."""
    return b"0." in written.translate(_NUMBER_PATTERN) or b"null" in written


def _is_index(token: str, items: list[Any]) -> bool:
    return token.isascii() and token.isdigit() and str(int(token)) == token and int(token) < len(items)


def _normalized(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _normalized(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_normalized(item) for item in value]
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return value


def replaced(data: bytes, path: tuple[str, ...], value: bytes) -> bytes:
    """Return the message with JSON text at a path of members; unchanged if the path is missing."""
    try:
        return _replaced(data, path, value)
    except (DecodeError, RecursionError):
        return _replaced_loosely(data, path, value)


def one_line(data: bytes) -> bytes:
    """Return the message without line ends, which are only white space in JSON."""
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


def _replaced_loosely(data: bytes, path: tuple[str, ...], value: bytes) -> bytes:
    """Replace in text that a strict parser rejects: NaN, lone surrogates, invalid UTF-8."""
    try:
        whole: Any = json.loads(data.decode("utf-8", "replace"))
        parent = whole
        for key in path[:-1]:
            parent = parent[key]
        if not isinstance(parent, dict) or path[-1] not in parent:
            return data
        parent[path[-1]] = json.loads(value)
        return json.dumps(whole).encode()
    except (ValueError, TypeError, KeyError, RecursionError):
        return data
