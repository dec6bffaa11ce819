"""The time axis of the timeline: a window of time, its labels, and the bars in it. Pure."""

from __future__ import annotations

from math import floor, log10
from typing import NamedTuple

BLOCKS = " ▏▎▍▌▋▊▉█"
"""A cell filled from the left, by eighths."""

RIGHT_HALF, RIGHT_EIGHTH = "▐", "▕"

STILL_OPEN, EARLIER, LATER = "▸", "◂", "▹"
"""Ends of bars: still open; before the window; after it."""

LEAST = 2e-5
"""Minimum seconds of a window."""

APART = 12
"""Minimum columns between two labels."""


class TimeWindow(NamedTuple):
    """The part of a session that is shown, in seconds since its start."""

    left: float
    span: float
    """Seconds; more than 0."""

    @property
    def right(self) -> float:
        return self.left + self.span

    def zoomed(self, factor: float, around: float, total: float) -> TimeWindow:
        """Return a window whose span is scaled by `factor`; the moment `around` keeps its position."""
        around = min(max(around, self.left), self.right)
        share = (around - self.left) / self.span
        span = min(max(self.span * factor, LEAST), max(total, LEAST))
        return TimeWindow(around - span * share, span).within(total)

    def moved(self, share: float, total: float) -> TimeWindow:
        return TimeWindow(self.left + self.span * share, self.span).within(total)

    def within(self, total: float) -> TimeWindow:
        span = min(self.span, max(total, LEAST))
        return TimeWindow(max(min(self.left, total - span), 0.0), span)

    def showing(self, moment: float, total: float) -> TimeWindow:
        """Return this window, or one near a moment that it does not contain."""
        if self.left <= moment <= self.right:
            return self
        return TimeWindow(moment - self.span / 10, self.span).within(total)


def around(begin: float, end: float, total: float) -> TimeWindow:
    """Return a window that shows a whole period with some margin."""
    span = max((end - begin) * 1.25, LEAST)
    return TimeWindow(begin - span / 10, span).within(total)


def label(moment: float, span: float) -> str:
    """Return a moment with the precision that the span needs: `12.4 s`."""
    digits = min(max(2 - floor(log10(max(span, LEAST))), 0), 6)
    return f"{moment:.{digits}f} s"


def labels(window: TimeWindow, width: int) -> str:
    """Return the time axis; each label follows its tick."""
    if width < 2:
        return " " * width
    step = _step(window.span * APART / width)
    digits = max(-floor(log10(step) + 1e-9), 0)
    line, tick = "", floor(window.left / step)
    while (column := round((tick * step - window.left) / window.span * width)) < width:
        text = f"╷{tick * step:.{digits}f} s"
        if column >= len(line) + bool(line):
            line = line.ljust(column) + (text if column + len(text) <= width else text[:1])
        tick += 1
    return line[:width].ljust(width)


def bar(window: TimeWindow, width: int, begin: float, end: float | None) -> str:
    """Return the bar of a period; without an end, it extends to the edge of the window."""
    if width < 1:
        return ""
    scale = width / window.span
    first = (begin - window.left) * scale
    if begin > window.right:
        return " " * (width - 1) + LATER
    if end is not None and end < window.left:
        return EARLIER
    last = width - 1.0 if end is None else min((end - window.left) * scale, width)
    cell = min(max(int(first), 0), width - 1)
    full, part = divmod(max(round((last - cell) * 8), 0), 8)
    # Within about one cell, the duration matters more than the position in the cell.
    if end is not None and (last < cell + 1 or last - first < 0.25):
        full, part = 0, max(round((last - max(first, cell)) * 8), 1)
    text = BLOCKS[8] * full + (BLOCKS[part] if part else "")
    if first - cell >= 0.5:
        text = RIGHT_HALF + text[1:] if full else text.replace(BLOCKS[1], RIGHT_EIGHTH)
    return " " * cell + text + (STILL_OPEN if end is None else "")


def _step(least: float) -> float:
    """Return a round number of seconds, not below `least`."""
    power = 10.0 ** floor(log10(least))
    return next(step for factor in (1, 2, 5, 10) if (step := factor * power) >= least * 0.999)
