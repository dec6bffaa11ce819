"""JSON that every parser takes.

Owns what Python's values have and strict JSON has not: of a lone surrogate its
escape is left, as text; an integer beyond 64 bits is a text of its digits.
"""

from __future__ import annotations

from typing import Any

import orjson


def dumps(value: Any) -> str:
    """Return a value as one line of JSON. Its keys are ours; a fragment (orjson) stands as it is."""
    try:
        return orjson.dumps(value).decode()
    except TypeError:
        return orjson.dumps(_held(value)).decode()


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
