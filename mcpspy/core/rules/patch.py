"""A message with something else in some places, and its own bytes in all others.

Owns merge patches (RFC 7396) and values put where JSON pointers lead (RFC
6901), both as splices: what is not named keeps its spelling, `1.0`, thirty
digits, escapes and all. Refuses, by ValueError, a place that cannot be.
"""

from __future__ import annotations

import json
from typing import Any

import orjson
from msgspec import DecodeError, Raw
from msgspec.json import Decoder, encode

from mcpspy.core.canonical import Pointer, spelled

_members = Decoder(dict[str, Raw]).decode
_items = Decoder(list[Raw]).decode


def merged(data: bytes, patch: Any) -> bytes:
    """Return the JSON text with a merge patch applied: null removes, objects go deeper, the rest replaces."""
    if not isinstance(patch, dict):
        return written(patch)
    members = _object(data) if data.lstrip()[:1] == b"{" else {}
    for key, value in patch.items():
        if value is None:
            members.pop(key, None)
        else:
            members[key] = Raw(merged(bytes(members.get(key, b"")), value))
    return encode(members)


def put(data: bytes, pointer: Pointer, value: Any) -> bytes:
    """Return the JSON text with a value where the pointer leads; objects on the way are made, `-` is after the last."""
    return _put(data, pointer, written(value), pointer)


def _put(data: bytes, rest: Pointer, value: bytes, pointer: Pointer) -> bytes:
    if not rest:
        return value
    first, *more = rest
    kind = data.lstrip()[:1]
    if kind == b"[":
        items = _array(data)
        number = len(items) if first == "-" else int(first) if first.isascii() and first.isdigit() else -1
        if not 0 <= number <= len(items):
            raise ValueError(f"there is no {spelled(pointer)}: the array has {len(items)} items")
        old = bytes(items[number]) if number < len(items) else b""
        items[number : number + 1] = [Raw(_put(old, tuple(more), value, pointer))]
        return encode(items)
    if kind not in (b"{", b""):
        raise ValueError(
            f"there is no {spelled(pointer)}: {first} would be in {data[:20].decode('utf-8', 'replace')}"
        )
    members = _object(data) if kind else {}
    members[first] = Raw(_put(bytes(members.get(first, b"")), tuple(more), value, pointer))
    return encode(members)


def written(value: Any) -> bytes:
    """Return a value as JSON text."""
    try:
        return orjson.dumps(value)
    except TypeError:  # An integer beyond 64 bits, a lone surrogate.
        return json.dumps(value).encode()


def _object(data: bytes) -> dict[str, Raw]:
    try:
        return _members(data)
    except (DecodeError, RecursionError) as error:
        raise ValueError(f"the message is not JSON: {error}") from None


def _array(data: bytes) -> list[Raw]:
    try:
        return _items(data)
    except (DecodeError, RecursionError) as error:
        raise ValueError(f"the message is not JSON: {error}") from None
