"""JSON values: canonical text, pointers and differences; and replacement of members in JSON text.

The order of members does not matter for equality; `1.0` equals `1` (RFC 8785), `true` does not.
A replacement keeps all other bytes of the text (floats, escapes, thirty-digit integers).
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import orjson
from msgspec import DecodeError, Raw
from msgspec.json import Decoder, encode

Pointer = tuple[str, ...]
"""Unescaped reference tokens of a JSON pointer (RFC 6901)."""

_encode = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode

_NUMBER_PATTERN = bytes.maketrans(b"123456789e", b"000000000.")
"""Translation of all digits to 0 and of the `e` of a number to a point: faster than any regular expression."""

_members = Decoder(dict[str, Raw]).decode


def canonical(value: Any) -> str:
    """Return the canonical text of a value; raise RecursionError if it is nested too deeply."""
    return canonical_bytes(value).decode("utf-8", "surrogatepass")


def canonical_bytes(value: Any) -> bytes:
    """Return the canonical text in UTF-8, with lone surrogates encoded like characters."""
    fast = canonical_fast(value)
    return canonical_slow(value) if fast is None else fast


def canonical_fast(value: Any) -> bytes | None:
    """Return the canonical text, written by orjson; None if its output may not be canonical."""
    try:
        encoded = orjson.dumps(value, option=orjson.OPT_SORT_KEYS)
    except TypeError:  # An integer beyond 64 bits, a lone surrogate, or too deep nesting for orjson.
        return None
    return None if _may_differ(encoded) else encoded


def canonical_slow(value: Any) -> bytes:
    """Return the canonical text of any value."""
    return _encode(_normalized(value)).encode("utf-8", "surrogatepass")


def same(one: Any, other: Any) -> bool:
    """Return True if two values are equal as JSON."""
    return canonical(one) == canonical(other)


def is_number(value: Any) -> bool:
    """Return True for a JSON number; `true` is not a number."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def pointer(text: str) -> Pointer:
    """Return the tokens of a JSON pointer; raise ValueError if the text is not a pointer."""
    if not text.startswith("/"):
        raise ValueError("a JSON pointer must begin with /")
    tokens = text.split("/")[1:]
    if any("~" in token.replace("~0", "").replace("~1", "") for token in tokens):
        raise ValueError("a JSON pointer must write ~ as ~0, and / in a name as ~1")
    return tuple(token.replace("~1", "/").replace("~0", "~") for token in tokens)


def pointer_text(tokens: Pointer) -> str:
    """Return the text of a JSON pointer."""
    return "".join("/" + token.replace("~", "~0").replace("/", "~1") for token in tokens)


def without(value: Any, tokens: Pointer) -> Any:
    """Return a value without the member at a pointer; the value itself if it has no such member.

    A removed array item becomes null, so that other pointers into the array stay valid.
    """
    if not tokens:
        return None
    first, *rest = tokens
    if isinstance(value, dict) and first in value:
        others = {key: item for key, item in value.items() if key != first}
        return others if not rest else {**value, first: without(value[first], tuple(rest))}
    if isinstance(value, list) and _is_index(first, value):
        number = int(first)
        return [*value[:number], without(value[number], tuple(rest)), *value[number + 1 :]]
    return value


def differences(one: Any, other: Any, at: Pointer = ()) -> Iterator[str]:
    """Yield the pointers of changed, added and missing members."""
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


def _may_differ(encoded: bytes) -> bool:
    """Return True if the output of orjson may not be canonical: it has floats, or null, which orjson writes for NaN."""
    return b"0." in encoded.translate(_NUMBER_PATTERN) or b"null" in encoded


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
    """Return the message with this JSON text at a path of members; unchanged if the path does not exist."""
    try:
        return _replaced(data, path, value)
    except (DecodeError, RecursionError):
        return _replaced_loosely(data, path, value)


def one_line(data: bytes) -> bytes:
    """Return the message with line ends, which are only white space in JSON, replaced by blanks."""
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
    """Replace a member in text that a strict parser rejects: NaN, lone surrogates, invalid UTF-8."""
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
