"""Times and sizes as people type them: `2s`, `500ms`, `16MB`.

Refuses, by ValueError, what is no such thing.
"""

from __future__ import annotations

_SECONDS = {"ms": 0.001, "min": 60.0, "s": 1.0, "m": 60.0, "h": 3600.0}
_BYTES = {"gb": 1 << 30, "mb": 1 << 20, "kb": 1 << 10, "g": 1 << 30, "m": 1 << 20, "k": 1 << 10, "b": 1}

_LONGEST = 1e6
"""Seconds that no wait of ours lasts: eleven days."""


def seconds(value: object) -> float:
    """Return a time in seconds: a number is one, a text may have a unit."""
    number = _number(value, _SECONDS)
    if number is None or not 0 <= number <= _LONGEST:
        raise ValueError(f"{value or 'nothing'} is no time: write 2s, 500ms or 5min")
    return number


def size(value: object) -> int:
    """Return a size in bytes: a number is one, a text may have a unit."""
    number = _number(value, _BYTES)
    if number is None or not 0 < number <= 1 << 40:
        raise ValueError(f"{value or 'nothing'} is no size: write 500kb, 16mb or 1gb")
    return int(number)


def _number(value: object, units: dict[str, float] | dict[str, int]) -> float | None:
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return None
    text = str(value).strip().lower()
    unit = next((unit for unit in units if text.endswith(unit)), "")
    digits = text.removesuffix(unit).rstrip()
    if not digits.replace(".", "", 1).replace("e-", "", 1).isdigit() or not digits.isascii():
        return None
    return float(digits) * (units[unit] if unit else 1)
