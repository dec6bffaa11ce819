"""JSON that every parser takes, in one line.

Owns what Python's values have and strict JSON has not: of a lone surrogate its
escape is left, as text; an integer beyond 64 bits is a text of its digits.
"""

from __future__ import annotations

from typing import Any

import orjson
from msgspec import DecodeError
from msgspec.json import format as lay_out


def dumps(value: Any) -> str:
    """Return a value as one line of JSON. Its keys are ours; a fragment (orjson) stands as it is."""
    try:
        return orjson.dumps(value).decode()
    except TypeError:
        return orjson.dumps(_held(value)).decode()


def fragment(data: bytes) -> orjson.Fragment | None:
    """Return what can be spliced into a line as it is; None if it is not strict JSON."""
    try:
        orjson.loads(data)
        # A line end between two members is legal in JSON, and the end of a line here.
        return orjson.Fragment(lay_out(data, indent=-1) if b"\n" in data or b"\r" in data else data)
    except (ValueError, DecodeError, RecursionError):
        return None


def _held(value: Any) -> Any:
    if isinstance(value, str):
        return value.encode("utf-8", "backslashreplace").decode()
    if isinstance(value, dict):
        return {key: _held(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_held(item) for item in value]
    if isinstance(value, int) and not -(1 << 63) <= value < 1 << 64:
        return str(value)
    return value
