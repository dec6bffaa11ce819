"""Sizes as people type them: `500k`, `100M`, `2G`."""

from __future__ import annotations

from mcpspy.errors import UsageError

_UNITS = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30}


def read_size(flag: str, text: str) -> int:
    small = text.lower().removesuffix("b")
    number = small.rstrip("kmg")
    unit = small[len(number) :]
    if not number.isdecimal() or unit not in _UNITS or int(number) == 0:
        raise UsageError(f"{flag} {text} is not a size", "like 500k, 100M or 2G")
    return int(number) * _UNITS[unit]
