"""The timeline panel: exchanges as bars on a time axis, their concurrency, and the tracks of a run."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import ClassVar, NamedTuple

from rich.style import Style
from textual.binding import Binding, BindingType
from textual.strip import Strip
from textual.widget import Widget

from mcpspy.analysis import rows
from mcpspy.core.counted import counted
from mcpspy.core.sanitize import sanitize
from mcpspy.core.session import outcome
from mcpspy.core.session.exchange import State
from mcpspy.ui.model.session_model import SessionModel
from mcpspy.ui.model.timeline import TimelineModel, Track
from mcpspy.ui.text.width import cut, pad, shorten_status, shorten_subject
from mcpspy.ui.tui.panels.panel_screen import PanelScreen, leaving
from mcpspy.ui.tui.panels.time_axis import TimeWindow, around, bar, label, labels
from mcpspy.ui.tui.widgets.base import BaseWidget
from mcpspy.ui.tui.widgets.columns import SERVER, Column, Piece, PlacedColumn, gap_at
from mcpspy.ui.tui.widgets.virtual_list import MARGIN, VirtualList

SHORT = 60.0
"""Sessions up to this many seconds are shown whole at first; longer ones start with a page of requests."""

LONG = 200

TIMELINE_COLUMNS = (
    Column("arrow", "", 1, 1, 0),
    Column("what", "request", 14, LONG, 2, enough=32, shorten=shorten_subject),
    Column("latency", "latency", 8, 8, 3, right=True),
    Column("mark", "", 1, 1, 0),
    Column("bar", "", 10, 1000, 1, enough=28),
)


class TimelineList(VirtualList):
    HELP_NAME = "timeline list"

    def __init__(self, model: SessionModel, timeline: TimelineModel) -> None:
        super().__init__(id="timeline")
        self._model = model
        self._timeline = timeline
        self.window = TimeWindow(0.0, 1.0)

    @property
    def columns(self) -> Sequence[Column]:
        room = self.scrollable_content_region.width - MARGIN
        columns = (SERVER, *TIMELINE_COLUMNS) if self._model.is_merged else TIMELINE_COLUMNS
        last = self.place(columns, room)[-1]
        return (*columns[:-1], last.column._replace(head=labels(self.window, last.width)))

    @property
    def axis(self) -> tuple[int, int]:
        """The columns before the bars, and the columns of the bars."""
        if not self._placed:
            return 0, 0
        *before, bars = self._placed
        gap = gap_at(self.scrollable_content_region.width - MARGIN)
        return 2 + sum(width + gap for _, width in before), bars.width

    @property
    def page(self) -> int:
        return self._page()

    @property
    def in_view(self) -> range:
        top = self.scroll_offset.y
        return range(top, min(top + self.page, self.count))

    def cells(self, index: int, placed: list[PlacedColumn]) -> list[Piece]:
        timeline, columns = self._timeline, self._model.index
        if (
            index >= len(timeline) or timeline.is_replaced
        ):  # The session was restarted, and the old rows are still on the screen.
            return [("", None)]
        row = timeline.rows[index]
        mark, tone = outcome.of(timeline.state_of(index)).mark, timeline.tone_of(index)
        fields: dict[str, Piece] = {
            "stream": (sanitize(columns.texts[columns.stream[row]]), rows.QUIET),
            "arrow": (rows.arrow(columns.side(row)), None),
            "what": (self._what(row), None),
            "latency": (self._latency(index), tone if tone == rows.OPEN else None),
            "mark": (mark, tone),
        }
        begin, end = timeline.begins[index], timeline.end_of(index)
        return [
            fields[column.name] if column.name in fields else (bar(self.window, width, begin, end), tone)
            for column, width in placed
        ]

    def growing(self, index: int) -> Iterable[tuple[str, str]]:
        """Yield the name of a request."""
        if index < len(self._timeline) and not self._timeline.is_replaced:
            row, columns = self._timeline.rows[index], self._model.index
            yield "what", self._what(row)
            yield "stream", columns.texts[columns.stream[row]]

    def _what(self, row: int) -> str:
        columns = self._model.index
        method, subject = columns.texts[columns.method[row]], columns.texts[columns.subject[row]]
        return sanitize(f"{method[:LONG]} {subject[:LONG]}".rstrip())

    def _latency(self, place: int) -> str:
        timeline, columns = self._timeline, self._model.index
        if outcome.of(timeline.state_of(place)).unanswered:
            return "none"
        end, latency = timeline.end_of(place), columns.latency(timeline.rows[place])
        if end is None or latency is None:
            latency = (columns.last_at if end is None else end) - timeline.begins[place]
        return rows.duration(max(latency, 0.0)) + ("…" if end is None else "")


SHADES = "░▒▓█"
"""A cell by the share of its time in which a request was in flight."""

FAILURE = "✗"
"""A cell with a failure."""

MOST_TRACKS = 8
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
    errors = f" · {counted(track.errors, 'error')}" if track.errors else ""
    unanswered = f" · {track.unanswered:,} unanswered" if track.unanswered else ""
    return f"{counted(track.requests, 'request')}{errors}{unanswered}"


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
        if (height := min(len(view.tracks), MOST_TRACKS)) != self.outer_size.height:
            self.styles.height = height
        self._view = view
        self.refresh()

    def render_line(self, y: int) -> Strip:
        view, total = self._view, self.outer_size.width
        tracks = view.tracks
        # The track of the cursor is always shown.
        place = tracks.index(view.chosen) if view.chosen in tracks else 0
        number = y + max(min(place - MOST_TRACKS // 2, len(tracks) - MOST_TRACKS), 0)
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


class TimelineScreen(PanelScreen[int | None]):
    """The exchanges of a session over time; dismissed with the row to go to."""

    NAME = "Timeline"

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "open", "go to", tooltip="go to this request in the session", id="timeline.open"),
        Binding("+,=", "zoom(0.5)", "zoom in", key_display="+", id="timeline.zoom-in"),
        Binding("-", "zoom(2)", "zoom out", id="timeline.zoom-out"),
        Binding("left,h", "pan(-0.25)", "earlier", show=False, id="timeline.earlier"),
        Binding("right,l", "pan(0.25)", "later", show=False, id="timeline.later"),
        Binding("0", "whole", "all", tooltip="show the whole session", id="timeline.whole"),
        Binding("z", "fit", "fit", tooltip="zoom to this request", id="timeline.fit"),
        Binding("Z", "fit_all", "fit rows", tooltip="zoom to the visible requests", id="timeline.fit-rows"),
        Binding("b", "peak", "peak", tooltip="go to the peak concurrency", id="timeline.peak"),
        *leaving("timeline"),
    ]

    HELP_NAME = "timeline"

    def __init__(self, model: SessionModel, row: int | None = None) -> None:
        """Put the cursor on the request of `row`."""
        self.source = self.timeline = TimelineModel(model)
        self._list = TimelineList(model, self.timeline)
        self._chart = TrackChart()
        super().__init__(model, self._list)
        self._is_whole: bool | None = None
        """True if the whole session is shown; None until the session has been read."""
        self._wanted = row
        self._followed = 0
        self._drawn: object = None
        self._known: tuple[object, str] = (None, "")
        """Row and state of a request → the reason of its failure, read from its response."""
        self._generation = self.timeline.generation

    @property
    def window(self) -> TimeWindow:
        return self._list.window

    def above(self) -> Iterable[Widget]:
        return [self._chart]

    def show(self) -> None:
        timeline, listing = self.timeline, self._list
        listing.can_follow = not self._model.is_over
        listing.follow &= listing.can_follow
        if timeline.generation != self._generation:
            self._generation, self._wanted, self._is_whole = timeline.generation, None, None
            listing.sync(0)
        listing.empty = [("no requests yet", rows.QUIET)] if not timeline.is_behind else []
        listing.sync(len(timeline))
        if not timeline.is_behind and self._is_whole is None and listing.size.height:
            self._begin()
        if self._is_whole is not False:
            self._show_window(TimeWindow(0.0, self._total))
        elif (
            len(timeline) and listing.cursor != self._followed
        ):  # Not on every update: the user may have moved the window.
            self._show_window(self.window.showing(self._moment, self._total))
        self._followed = listing.cursor
        drawn = (self.window, len(self._model), self._model.is_over, timeline.generation)
        self._show_tracks()
        if drawn != self._drawn:  # A bar changes with its response, an open one with every row.
            self._drawn = drawn
            listing.refresh()
        self._update_status()

    def action_open(self) -> None:
        self.dismiss(self.timeline.rows[self._list.cursor] if len(self.timeline) else None)

    def action_zoom(self, factor: float) -> None:
        self._look_at(self.window.zoomed(factor, self._moment, self._total))

    def action_pan(self, share: float) -> None:
        self._look_at(self.window.moved(share, self._total))

    def action_whole(self) -> None:
        self._is_whole = True
        self.show()

    def action_fit(self) -> None:
        self._look_at(self._around(range(self._list.cursor, min(self._list.cursor + 1, len(self.timeline)))))

    def action_fit_all(self) -> None:
        self._look_at(self._around(self._list.in_view))

    def action_peak(self) -> None:
        if len(self.timeline):
            self._list.follow = False
            self._list.move_to(self.timeline.peak_place)

    @property
    def _total(self) -> float:
        return max(self._model.index.last_at, 1e-3)

    @property
    def _moment(self) -> float:
        return self.timeline.begins[self._list.cursor] if len(self.timeline) else 0.0

    def _begin(self) -> None:
        """Put the cursor on the wanted row, and choose the window."""
        index, wanted = self._model.index, self._wanted
        if wanted is not None and wanted < len(index):
            request = index.request(wanted)
            self._list.move_to(self.timeline.place_of(wanted if request is None else request))
        elif self._list.can_follow:
            self._list.action_last()
        self._is_whole = self._total <= SHORT
        if not self._is_whole:
            page = self._list.page
            first = max(min(self._list.cursor, len(self.timeline) - page), 0)
            self._show_window(self._around(range(first, min(first + page, len(self.timeline)))))

    def _around(self, places: range) -> TimeWindow:
        timeline, last = self.timeline, self._model.index.last_at
        if not places:
            return self.window
        # An open exchange would shrink all others to dots.
        open_end = last if len(places) == 1 else timeline.begins[places[-1]]
        ends = (timeline.end_of(place) for place in places)
        end = max(open_end if end is None else end for end in ends)
        return around(timeline.begins[places[0]], end, self._total)

    def _look_at(self, window: TimeWindow) -> None:
        self._is_whole = window.span >= self._total
        self._show_window(window)
        self._show_tracks()
        self._list.refresh()
        self._update_status()

    def _show_tracks(self) -> None:
        timeline, left, width = self.timeline, *self._list.axis
        if not timeline.tracks or timeline.is_replaced or not width:
            return
        cursor = self._list.cursor
        chosen = timeline.track_of(cursor) if cursor < len(timeline) else None
        last = self._model.index.last_at
        view = TrackView(tuple(timeline.tracks), chosen, left, width, *self.window, last)
        self._chart.show(view)

    def _show_window(self, window: TimeWindow) -> None:
        self._list.window = window

    def _reason(self, row: int) -> str:
        """Return why a request failed; empty if it did not."""
        model = self._model
        state = model.index.state(row) or State.PENDING
        decided = outcome.of(state)
        key = (model.generation, row, state)
        if self._known[0] != key:
            text = (
                ""
                if not (decided.failed or decided.unanswered)
                else rows.exchange_row(model.shown(row), (0, None), 0.0).status
            )
            self._known = key, shorten_status(text, LONG)
        return self._known[1]

    def _update_status(self) -> None:
        if self.timeline.is_replaced:  # Its rows no longer exist; the next look starts over.
            return
        timeline, window, span = self.timeline, self.window, self.window.span
        right: list[Piece] = [(f"{len(timeline):,} requests", None)]
        below: list[Piece] = []
        if len(timeline):
            cursor = self._list.cursor
            peak = label(timeline.begins[timeline.peak_place], span)
            right = [(f"peak concurrency {timeline.peak:,} (at {peak})", None), (" · ", rows.QUIET), *right]
            depth = timeline.depths[cursor]
            below = [(f"started at {label(timeline.begins[cursor], span)}, concurrency {depth:,}", None)]
            if reason := self._reason(timeline.rows[cursor]):
                below = [(reason, rows.BAD), (" · ", rows.QUIET), *below]
        if (behind := self.progress(timeline.processed))[0]:
            below = [behind]
        whole = " (whole session)" if self._is_whole is not False else f" of {label(self._total, span)}"
        beside = f"{label(window.left, span)} to {label(window.right, span)}{whole}"
        self.set_lines(right, below, [(beside, rows.QUIET)])
