"""Which calls overlap: every exchange of a session, and how many were in flight with it.

Owns when an exchange was over, and the count of those that were not as the
next one began. How that is drawn is `axis`'. Pure.

A stretch of time as columns of the terminal.

Owns the window that is looked at, moving and zooming it, the labels over it,
and the bars in it. Pure: numbers in, text out.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from math import floor, log10
from typing import NamedTuple

from mcpspy.core.session.columns import NOTE, NOTIFICATION, REQUEST
from mcpspy.core.session.exchange import State
from mcpspy.ui.tui.panels.panel_screen import IncrementalBuild


class Timeline(IncrementalBuild):
    """The exchanges of a session, in the order in which they began."""

    def _begin(self) -> None:
        self.rows = array("I")
        """The row of each exchange's request."""
        self.depths = array("I")
        """How many were in flight once it had begun, itself included."""
        self.peak = 0
        """The most there ever were in flight."""
        self.peak_place = 0
        """The exchange whose beginning made it so many."""
        self._open: set[int] = set()
        self._stopped: dict[int, int] = {}
        """Row of a request that ended without an answer → row of what ended it."""

    def __len__(self) -> int:
        return len(self.rows)

    def place_of(self, row: int) -> int:
        """Return the place of an exchange, or of the next one."""
        return max(min(bisect_left(self.rows, row), len(self) - 1), 0)

    def begin_of(self, place: int) -> float:
        return self._index.at[self.rows[place]]

    def end_of(self, place: int) -> float | None:
        """Return when an exchange was over; None while it is not."""
        index, row = self._index, self.rows[place]
        last = index.pair(row)
        if last is None:
            last = self._stopped.get(row)
        if last is not None:
            return index.at[last]
        return None if index.state(row) is State.PENDING else index.last_at

    def _take(self, begin: int, end: int) -> None:
        index, is_open = self._index, self._open
        what = index.what
        for row in range(begin, end):
            kind = what[row] & 7
            if kind == REQUEST:
                if index.request(row) is not None:
                    self._ask(row)
                continue
            request = index.pair(row)
            if request is None or request not in is_open:
                continue
            if kind == NOTIFICATION:
                if index.texts[index.method[row]] != "notifications/cancelled":
                    continue
                self._stopped[request] = row
            elif kind == NOTE:
                self._stopped[request] = row
            is_open.discard(request)

    def _ask(self, row: int) -> None:
        self._open.add(row)
        depth = len(self._open)
        if depth > self.peak:
            self.peak, self.peak_place = depth, len(self)
        self.rows.append(row)
        self.depths.append(depth)


BLOCKS = " ▏▎▍▌▋▊▉█"
"""A cell that is filled from the left, by eighths."""

RIGHT_HALF, RIGHT_EIGHTH = "▐", "▕"

GOES_ON, EARLIER, LATER = "▸", "◂", "▹"
"""Ends of bars: not over; and what lies on this side of the window, or on that."""

LEAST = 2e-5
"""Seconds of the narrowest window."""

APART = 12
"""Columns between two labels, at least."""


class TimeWindow(NamedTuple):
    """What is looked at."""

    left: float
    span: float
    """Seconds; more than 0."""

    @property
    def right(self) -> float:
        return self.left + self.span

    def zoomed(self, factor: float, around: float, total: float) -> TimeWindow:
        """Return one whose span is so many times as long; what is around a moment stays in place."""
        around = min(max(around, self.left), self.right)
        share = (around - self.left) / self.span
        span = min(max(self.span * factor, LEAST), max(total, LEAST))
        return TimeWindow(around - span * share, span).within(total)

    def moved(self, share: float, total: float) -> TimeWindow:
        """Return one that lies so many spans later."""
        return TimeWindow(self.left + self.span * share, self.span).within(total)

    def within(self, total: float) -> TimeWindow:
        """Return one that lies in the session."""
        span = min(self.span, max(total, LEAST))
        return TimeWindow(max(min(self.left, total - span), 0.0), span)

    def showing(self, moment: float, total: float) -> TimeWindow:
        """Return one that holds a moment: this one if it does."""
        if self.left <= moment <= self.right:
            return self
        return TimeWindow(moment - self.span / 10, self.span).within(total)


def around(begin: float, end: float, total: float) -> TimeWindow:
    """Return a window in which a stretch can be seen whole, with some room."""
    span = max((end - begin) * 1.25, LEAST)
    return TimeWindow(begin - span / 10, span).within(total)


def label(moment: float, span: float) -> str:
    """Return a moment, as exact as a window of this span needs: `12.4 s`."""
    digits = min(max(2 - floor(log10(max(span, LEAST))), 0), 6)
    return f"{moment:.{digits}f} s"


def labels(window: TimeWindow, width: int) -> str:
    """Return the line over the bars: each label stands behind its tick."""
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
    """Return the bar of what began and ended; without an end it goes on beyond the window."""
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
    # All but within one cell, how long it was says more than where in the cell.
    if end is not None and (last < cell + 1 or last - first < 0.25):
        full, part = 0, max(round((last - max(first, cell)) * 8), 1)
    text = BLOCKS[8] * full + (BLOCKS[part] if part else "")
    if first - cell >= 0.5:
        text = RIGHT_HALF + text[1:] if full else text.replace(BLOCKS[1], RIGHT_EIGHTH)
    return " " * cell + text + (GOES_ON if end is None else "")


def _step(least: float) -> float:
    """Return a round number of seconds, not below `least`."""
    power = 10.0 ** floor(log10(least))
    return next(step for factor in (1, 2, 5, 10) if (step := factor * power) >= least * 0.999)
