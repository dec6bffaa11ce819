"""The tracks of a timeline as lines of cells."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from rich.style import Style
from textual.strip import Strip

from mcpspy.analysis import rows
from mcpspy.core.counted import counted
from mcpspy.core.sanitize import sanitize
from mcpspy.ui.model.timeline import Track
from mcpspy.ui.text.width import cut, pad
from mcpspy.ui.tui.widgets.base import BaseWidget
from mcpspy.ui.tui.widgets.columns import Piece

SHADES = "░▒▓█"
"""A cell by the share of its time in which a request was in flight."""

FAILURE = "✗"
"""A cell with a failure."""

MOST = 8
"""Maximum tracks that are shown at once."""


def track_cells(track: Track, left: float, span: float, width: int, now: float) -> list[Piece]:
    """Return the cells of a window of time."""
    step = span / max(width, 1)
    pieces: list[Piece] = []
    for column in range(width):
        begin, end = left + column * step, left + (column + 1) * step
        if track.fails(begin, end):
            pieces.append((FAILURE, rows.BAD))
            continue
        share = (track.busy(end, now) - track.busy(begin, now)) / step
        shade = min(int(share * len(SHADES)), len(SHADES) - 1)
        pieces.append((SHADES[shade], rows.OK) if share > 0 or track.begins(begin, end) else (" ", None))
    return pieces


def track_label(track: Track) -> str:
    """Return the counts of a session."""
    failed = f" · {counted(len(track.failures), 'error')}" if track.failures else ""
    return f"{counted(track.requests, 'request')}{failed}"


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
        counts = track_label(track)
        counts = counts if len(name) + len(counts) + 2 <= room else ""
        text = pad(cut(name, room - len(counts) - (2 if counts else 0)), room - len(counts)) + counts
        mark = "▸ " if track is view.chosen else "  "
        cells = track_cells(track, view.begin, view.span, view.width, view.now)
        pieces: list[Piece] = [(mark, None), (text, "title" if track is view.chosen else None), (" ", None)]
        return Strip(self.paint([*pieces, *cells], total), total)
