"""Numbers as text: time spans, percentages, sizes, and bars."""

from __future__ import annotations

from collections.abc import Sequence

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
