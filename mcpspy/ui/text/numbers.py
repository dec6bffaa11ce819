"""Numbers as text: time spans, percentages, sizes, bars; and the times of rows.

A row has a relative, absolute or delta time, and a bar of its latency on a logarithmic scale.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import datetime, timedelta
from enum import StrEnum
from functools import lru_cache
from typing import Self

from mcpspy.analysis import rows


def span(seconds: float) -> str:
    """Return a time span in six columns: `850µs`, `12.1ms`, `1.25s`, `2m05s`."""
    if seconds < 0.9995e-3:
        return f"{seconds * 1e6:.0f}µs"
    if seconds < 0.9995:
        return f"{_three(seconds * 1e3)}ms"
    return f"{_three(seconds)}s" if seconds < 59.95 else rows.duration(max(seconds, 60.0))


def _three(number: float) -> str:
    return f"{number:.2f}" if number < 9.995 else f"{number:.1f}" if number < 99.95 else f"{number:.0f}"


def share(part: float, whole: float) -> str:
    """Return a percentage: `0 %`, `< 1 %`, `12 %`."""
    if part <= 0 or whole <= 0:
        return "0 %"
    return "< 1 %" if part / whole < 0.01 else f"{part / whole:.0%}".replace("%", " %")


def byte_size(count: int) -> str:
    """Return a number of bytes with its unit: `312 B`, `12.3 kB`."""
    short = rows.size(count)
    return f"{short[:-1]} {short[-1]}B" if short[-1] in "kMG" else f"{short} B"


_EIGHTHS = " ▏▎▍▌▋▊▉"
_LEVELS = "▁▂▃▄▅▆▇█"
_PLAIN_LEVELS = "_.-=+*%#"

GLYPHS = _EIGHTHS + _LEVELS
"""Characters that the encoding of the terminal must support."""


class BarStyle:
    """Small bar charts in text: eighths of a block, or ASCII for terminals without block characters."""

    def __init__(self, *, plain: bool = False) -> None:
        self._plain = plain

    def bar(self, share: float, width: int) -> str:
        """Return a bar of at most `width` columns; a share above 0 is always visible."""
        share = min(max(share, 0.0), 1.0)
        if self._plain:
            return "#" * max(round(share * width), share > 0)
        eighths = max(round(share * width * 8), share > 0)
        return "█" * (eighths // 8) + _EIGHTHS[eighths % 8].strip()

    def profile(self, values: Sequence[int]) -> str:
        """Return one column per value, relative to the largest; a blank for 0."""
        levels = _PLAIN_LEVELS if self._plain else _LEVELS
        most = max(values, default=0)
        return "".join(levels[(value * len(levels) - 1) // most] if value else " " for value in values)


class Cycle(StrEnum):
    @property
    def following(self) -> Self:
        ways = list(type(self))
        return ways[(ways.index(self) + 1) % len(ways)]


class TimeFormat(Cycle):
    RELATIVE = "relative to start"
    ABSOLUTE = "absolute (time of day)"
    DELTA = "delta to previous row"


LATENCY_BLOCKS = "▏▎▍▌▋▊▉█"

FASTEST = -4.0
"""Decimal logarithm of the shortest latency with a bar, in seconds: 0.1 ms."""

CELLS_A_DECADE = 4 / 3
"""A bar of eight cells is full at 100 s."""


def time_text(way: TimeFormat, at: float, before: float, started: datetime | None) -> str:
    """Return the time of a row at `at` seconds; `before` is the previous row's, `started` the wall clock at 0."""
    if way is TimeFormat.ABSOLUTE and started is not None:
        return (started + timedelta(seconds=at)).strftime("%H:%M:%S.%f")[:-3]
    if way is TimeFormat.DELTA:
        return f"{at - before:+.3f}"
    return rows.moment(at)


def time_width(way: TimeFormat, last: float) -> int:
    return 12 if way is TimeFormat.ABSOLUTE else max(5, len(rows.moment(last)) + (way is TimeFormat.DELTA))


@lru_cache(maxsize=64)
def start_time(started: str) -> datetime | None:
    """Return the local start time of a session; None if its header has no valid time."""
    try:
        return datetime.fromisoformat(started).astimezone()
    except ValueError:
        return None


def latency_bar(latency: float | None) -> str:
    """Return a bar whose length is logarithmic in the latency (seconds)."""
    if latency is None or latency <= 0:
        return ""
    eighths = round((math.log10(latency) - FASTEST) * CELLS_A_DECADE * 8)
    full, rest = divmod(max(1, min(eighths, 64)), 8)
    return "█" * full + (LATENCY_BLOCKS[rest - 1] if rest else "")
