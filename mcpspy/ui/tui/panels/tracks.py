"""The tracks of a timeline: when each session of a run had requests in flight.

A track keeps periods, not requests: drawing a cell takes a few bisections, however many requests there are.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from typing import NamedTuple

from rich.style import Style
from textual.strip import Strip

from mcpspy.analysis import rows
from mcpspy.core.counted import counted
from mcpspy.core.sanitize import sanitize
from mcpspy.ui.tui.widgets.base import BaseWidget
from mcpspy.ui.tui.widgets.columns import Piece, cut, pad

SHADES = "░▒▓█"
"""A cell by the share of its time in which a request was in flight."""

FAILURE = "✗"
"""A cell with a failure."""

MOST = 8
"""Maximum tracks that are shown at once."""


class Track:
    """The periods of one session in which a request was in flight, and its failures."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.requests = 0
        self.failures = array("d")
        """Times of failed requests, in order."""
        self._begins = array("d")
        self._ends = array("d")
        """Ends of the periods; the last one may still be open."""
        self._before = array("d")
        """Seconds in flight before each period."""
        self._open: set[int] = set()

    def begin(self, row: int, at: float) -> None:
        self.requests += 1
        if not self._open:
            busy = self._before[-1] + self._ends[-1] - self._begins[-1] if self._begins else 0.0
            self._begins.append(at)
            self._before.append(busy)
        self._open.add(row)

    def end(self, row: int, at: float, *, failed: bool) -> None:
        if failed:
            self.failures.append(at)
        if row in self._open:
            self._open.remove(row)
            if not self._open:
                self._ends.append(at)

    def close(self, at: float) -> None:
        """End all requests with the session: they stay without a response."""
        for row in sorted(self._open):
            self.end(row, at, failed=True)

    def busy(self, until: float, now: float) -> float:
        """Return the seconds before `until` in which a request was in flight; open ones last until `now`."""
        last = bisect_right(self._begins, until) - 1
        if last < 0:
            return 0.0
        end = self._ends[last] if last < len(self._ends) else now
        return self._before[last] + max(min(until, end) - self._begins[last], 0.0)

    def cells(self, left: float, span: float, width: int, now: float) -> list[Piece]:
        """Return the cells of a window of time."""
        step = span / max(width, 1)
        pieces: list[Piece] = []
        for column in range(width):
            begin, end = left + column * step, left + (column + 1) * step
            if bisect_left(self.failures, end) > bisect_left(self.failures, begin):
                pieces.append((FAILURE, rows.BAD))
                continue
            share = (self.busy(end, now) - self.busy(begin, now)) / step
            has_begun = bisect_left(self._begins, end) > bisect_left(self._begins, begin)
            shade = min(int(share * len(SHADES)), len(SHADES) - 1)
            pieces.append((SHADES[shade], rows.OK) if share > 0 or has_begun else (" ", None))
        return pieces

    @property
    def label(self) -> str:
        """The counts of the session."""
        failed = f" · {counted(len(self.failures), 'error')}" if self.failures else ""
        return f"{counted(self.requests, 'request')}{failed}"


class TrackView(NamedTuple):
    """The window and the tracks of a chart."""

    tracks: Sequence[Track]
    chosen: Track | None
    """The track of the request under the cursor."""
    left: int
    """Columns before the cells."""
    width: int
    begin: float
    span: float
    now: float


class TrackChart(BaseWidget):
    """The tracks above the list of requests, on its time axis."""

    DEFAULT_CSS = "TrackChart { height: auto; background: $surface; }"

    def __init__(self) -> None:
        super().__init__(id="tracks")
        self._view = TrackView((), None, 0, 0, 0.0, 1.0, 0.0)
        self.styles.height = 0

    def show(self, view: TrackView) -> None:
        if (height := min(len(view.tracks), MOST)) != self.outer_size.height:
            self.styles.height = height
        self._view = view
        self.refresh()

    def render_line(self, y: int) -> Strip:
        view, total = self._view, self.outer_size.width
        tracks = view.tracks
        # The track of the cursor is always shown.
        place = tracks.index(view.chosen) if view.chosen in tracks else 0
        number = y + max(min(place - MOST // 2, len(tracks) - MOST), 0)
        if number >= len(tracks):
            return Strip(self.paint([], total, Style()), total)
        track = tracks[number]
        room = max(view.left - 3, 0)
        name = sanitize(track.name)
        counts = track.label if len(name) + len(track.label) + 2 <= room else ""
        text = pad(cut(name, room - len(counts) - (2 if counts else 0)), room - len(counts)) + counts
        mark = "▸ " if track is view.chosen else "  "
        cells = track.cells(view.begin, view.span, view.width, view.now)
        pieces: list[Piece] = [(mark, None), (text, "title" if track is view.chosen else None), (" ", None)]
        return Strip(self.paint([*pieces, *cells], total), total)
