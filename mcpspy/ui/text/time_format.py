"""Relative, absolute and delta times, and latency bars on a logarithmic scale. Pure."""

from __future__ import annotations

import math
from datetime import datetime, timedelta
from enum import StrEnum
from functools import lru_cache
from typing import Self

from mcpspy.analysis import rows


class Cycle(StrEnum):
    @property
    def following(self) -> Self:
        ways = list(type(self))
        return ways[(ways.index(self) + 1) % len(ways)]


class TimeFormat(Cycle):
    RELATIVE = "relative to start"
    ABSOLUTE = "absolute (time of day)"
    DELTA = "delta to previous row"


BLOCKS = "▏▎▍▌▋▊▉█"

FASTEST = -4.0
"""Decimal logarithm of the shortest latency with a bar, in seconds: 0.1 ms."""

CELLS_A_DECADE = 4 / 3
"""A bar of eight cells is full at 100 s."""


def shown(way: TimeFormat, at: float, before: float, started: datetime | None) -> str:
    """Return the time of a row at `at` seconds; `before` is the previous row's, `started` the wall clock at 0."""
    if way is TimeFormat.ABSOLUTE and started is not None:
        return (started + timedelta(seconds=at)).strftime("%H:%M:%S.%f")[:-3]
    if way is TimeFormat.DELTA:
        return f"{at - before:+.3f}"
    return rows.moment(at)


def width(way: TimeFormat, last: float) -> int:
    return 12 if way is TimeFormat.ABSOLUTE else max(5, len(rows.moment(last)) + (way is TimeFormat.DELTA))


@lru_cache(maxsize=64)
def began(started: str) -> datetime | None:
    """Return the local start time of a session; None if its header has no valid time."""
    try:
        return datetime.fromisoformat(started).astimezone()
    except ValueError:
        return None


def bar(latency: float | None) -> str:
    """Return a bar whose length is logarithmic in the latency (seconds)."""
    if latency is None or latency <= 0:
        return ""
    eighths = round((math.log10(latency) - FASTEST) * CELLS_A_DECADE * 8)
    full, rest = divmod(max(1, min(eighths, 64)), 8)
    return "█" * full + (BLOCKS[rest - 1] if rest else "")
