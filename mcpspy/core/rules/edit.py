"""Edit and corrupt messages: merge patches (RFC 7396), values at JSON pointers (RFC 6901).

Values that are not edited keep their bytes: `1.0`, thirty digits, escapes. Raises ValueError for an
impossible pointer. Corruption depends on the message alone, so that a run can be repeated. Sources:
JSON-RPC 2.0, 5 (a response has its request's id); MCP basic/transports, stdio (one message per line).
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

import orjson
from msgspec import DecodeError, Raw
from msgspec.json import Decoder, encode

from mcpspy.core.jsontools import Pointer, pointer_text, replaced
from mcpspy.core.protocol.message import loads

T = TypeVar("T")

_members = Decoder(dict[str, Raw]).decode
_items = Decoder(list[Raw]).decode

BAD_JSON, HALF_LINE, WRONG_ID, OVERSIZE = "bad-json", "half-line", "wrong-id", "oversize"

CORRUPTIONS = {
    BAD_JSON: "an extra comma before the last bracket",
    HALF_LINE: "the first half, without a line end",
    WRONG_ID: "the id of an unknown request",
    OVERSIZE: "blanks before the last bracket, until it is too long",
}

WRONG_ID_OFFSET = 1_000_000_000
"""Added to a numeric id to make it an unknown id."""


class CorruptedMessage(NamedTuple):
    data: bytes
    is_cut: bool = False
    """True if its line end is missing too."""
    padding: int = 0
    """Number of blanks before the last bracket; notes omit them."""


def merged(data: bytes, patch: Any) -> bytes:
    """Return the JSON text with a merge patch applied: null removes, objects merge, other values replace."""
    if not isinstance(patch, dict):
        return to_json(patch)
    members = _decoded(_members, data) if data.lstrip()[:1] == b"{" else {}
    for key, value in patch.items():
        if value is None:
            members.pop(key, None)
        else:
            members[key] = Raw(merged(bytes(members.get(key, b"")), value))
    return encode(members)


def put(data: bytes, pointer: Pointer, value: Any) -> bytes:
    """Return the JSON text with a value at the pointer; missing objects are created, `-` appends."""
    return _put(data, pointer, to_json(value), pointer)


def _put(data: bytes, rest: Pointer, value: bytes, pointer: Pointer) -> bytes:
    if not rest:
        return value
    first, *more = rest
    kind = data.lstrip()[:1]
    if kind == b"[":
        items = _decoded(_items, data)
        number = len(items) if first == "-" else int(first) if first.isascii() and first.isdigit() else -1
        if not 0 <= number <= len(items):
            raise ValueError(f"{pointer_text(pointer)} does not exist: the array has {len(items)} items")
        old = bytes(items[number]) if number < len(items) else b""
        items[number : number + 1] = [Raw(_put(old, tuple(more), value, pointer))]
        return encode(items)
    if kind not in (b"{", b""):
        raise ValueError(
            f"{pointer_text(pointer)} does not exist: {first} would be in {data[:20].decode('utf-8', 'replace')}"
        )
    members = _decoded(_members, data) if kind else {}
    members[first] = Raw(_put(bytes(members.get(first, b"")), tuple(more), value, pointer))
    return encode(members)


def to_json(value: Any) -> bytes:
    try:
        return orjson.dumps(value)
    except TypeError:  # An integer beyond 64 bits, a lone surrogate.
        return json.dumps(value).encode()


def _decoded(decode: Callable[[bytes], T], data: bytes) -> T:
    try:
        return decode(data)
    except (DecodeError, RecursionError) as error:
        raise ValueError(f"the message is not JSON: {error}") from None


def corrupted(data: bytes, way: str, id: str | None, size: int) -> CorruptedMessage:  # noqa: A002
    """Return the corrupted message; `way` is a key of `CORRUPTIONS`, `id` JSON text, `size` the bytes if oversized."""
    data = data.rstrip()  # A body may end in a line end.
    if way == BAD_JSON:
        return CorruptedMessage(data[:-1] + b"," + data[-1:])
    if way == HALF_LINE:
        return CorruptedMessage(data[: len(data) // 2], is_cut=True)
    if way == OVERSIZE:
        padding = max(size - len(data), 0)
        return CorruptedMessage(data[:-1] + b" " * padding + data[-1:], padding=padding)
    value = loads((id or "null").encode())
    is_integer = isinstance(value, int) and not isinstance(value, bool)
    wrong = value + WRONG_ID_OFFSET if is_integer else f"{value}-wrong"
    return CorruptedMessage(replaced(data, ("id",), to_json(wrong)))
