"""A message with something else in some places, and its own bytes in all others.

Owns merge patches (RFC 7396) and values put where JSON pointers lead (RFC
6901), both as splices: what is not named keeps its spelling, `1.0`, thirty
digits, escapes and all. Refuses, by ValueError, a place that cannot be.

Messages that are wrong in the ways in which peers get them wrong.

Owns the ways, each a function of the message alone, so that a run can be
repeated. Sources: JSON-RPC 2.0, 5 (an answer's id is its request's); MCP
basic/transports, stdio (one message a line).
"""

from __future__ import annotations

import json
from typing import Any, NamedTuple

import orjson
from msgspec import DecodeError, Raw
from msgspec.json import Decoder, encode

from mcpspy.core.jsontools import Pointer, replaced, spelled
from mcpspy.core.protocol.message import loads

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


BAD_JSON, HALF_LINE, WRONG_ID, OVERSIZE = "bad-json", "half-line", "wrong-id", "oversize"

WAYS = {
    BAD_JSON: "a comma too many before the last bracket",
    HALF_LINE: "the first half, and no line end",
    WRONG_ID: "an id that nobody asked under",
    OVERSIZE: "as many blanks before the last bracket as make it too long",
}

FAR = 1_000_000_000
"""What is added to a number to make it an id that nobody asked under."""


class CorruptedMessage(NamedTuple):
    """What goes on in place of a message."""

    data: bytes
    is_cut: bool = False
    """Whether it lacks its line end, too."""
    padding: int = 0
    """Blanks before the last bracket, which a note need not hold."""


def corrupted(data: bytes, way: str, id: str | None, size: int) -> CorruptedMessage:  # noqa: A002
    """Return the message, wrong in one way; `id` is its id's JSON text, `size` the bytes of an oversized one."""
    data = data.rstrip()  # A body may end in a line end.
    if way == BAD_JSON:
        return CorruptedMessage(data[:-1] + b"," + data[-1:])
    if way == HALF_LINE:
        return CorruptedMessage(data[: len(data) // 2], is_cut=True)
    if way == OVERSIZE:
        padding = max(size - len(data), 0)
        return CorruptedMessage(data[:-1] + b" " * padding + data[-1:], padding=padding)
    value = loads((id or "null").encode())
    wrong = value + FAR if isinstance(value, int) and not isinstance(value, bool) else f"{value}-wrong"
    return CorruptedMessage(replaced(data, ("id",), written(wrong)))
