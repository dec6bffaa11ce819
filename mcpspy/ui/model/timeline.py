"""The requests of a session over time: in order, and counted per part of a window.

A track is a session of a run. A window of a million messages is answered with a few hundred numbers per track.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Sequence
from math import inf
from typing import Any

from mcpspy.analysis import rows
from mcpspy.core.sanitize import sanitize
from mcpspy.core.session import outcome
from mcpspy.core.session.columns import FAILURE, KIND, NOTE, NOTIFICATION, REQUEST, RESULT
from mcpspy.core.session.exchange import State
from mcpspy.ui.model.session_model import FAILED_STATES, IncrementalBuild, SessionModel

BARS = 1500
"""Maximum requests of a window that are returned one by one."""

PARTS = 1000
"""Maximum parts of a window."""

PORTION = 2000
"""Rows read between two checks of the clock."""

STEP = 1024
"""Requests between two lists of those that were open at that moment."""


class Track:
    """The periods of one session in which a request was in flight, and its failures.

    It keeps no requests: a question takes a few bisections, however many there are.
    """

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

    def begins(self, begin: float, end: float) -> bool:
        """Return whether a period begins in a part of the session."""
        return bisect_left(self._begins, end) > bisect_left(self._begins, begin)

    def fails(self, begin: float, end: float) -> bool:
        """Return whether a request fails in a part of the session."""
        return bisect_left(self.failures, end) > bisect_left(self.failures, begin)

    def busy(self, until: float, now: float) -> float:
        """Return the seconds before `until` in which a request was in flight; open ones last until `now`."""
        last = bisect_right(self._begins, until) - 1
        if last < 0:
            return 0.0
        end = self._ends[last] if last < len(self._ends) else now
        return self._before[last] + max(min(until, end) - self._begins[last], 0.0)


class TimelineModel(IncrementalBuild):
    """The exchanges of a session, in the order in which they began."""

    def _begin(self) -> None:
        self.rows = array("I")
        self.depths = array("I")
        """The number of exchanges in flight when each began, including itself."""
        self.peak = 0
        """The peak concurrency."""
        self.peak_place = 0
        """The position of the exchange that reached the peak."""
        self._open: set[int] = set()
        self._stopped: dict[int, int] = {}
        """Row of a request that ended without a response → the row that ended it."""
        self.tracks: list[Track] = []
        """The sessions, if several are merged, in the order in which they appear."""
        self._tracks: dict[int, Track] = {}
        """Number of the text of a stream → track."""

    def __len__(self) -> int:
        return len(self.rows)

    def place_of(self, row: int) -> int:
        return max(min(bisect_left(self.rows, row), len(self) - 1), 0)

    def begin_of(self, place: int) -> float:
        return self._index.at[self.rows[place]]

    def end_of(self, place: int) -> float | None:
        """Return the time at which an exchange ended, in seconds; None while it is open."""
        index, row = self._index, self.rows[place]
        last = index.pair(row)
        if last is None:
            last = self._stopped.get(row)
        if last is not None:
            return index.at[last]
        return None if index.state(row) is State.PENDING else index.last_at

    def track_of(self, row: int) -> Track:
        """Return the track of a row of merged sessions, whose stream begins with the name of its session."""
        stream = self._index.stream[row]
        track = self._tracks.get(stream)
        if track is None:
            name = self._index.texts[stream].partition("/")[0]
            track = next((each for each in self.tracks if each.name == name), None)
            if track is None:
                track = Track(name)
                self.tracks.append(track)
            self._tracks[stream] = track
        return track

    def _take(self, begin: int, end: int) -> None:
        index, is_open = self._index, self._open
        what, is_merged = index.what, self._model.is_merged
        for row in range(begin, end):
            kind = what[row] & KIND
            if is_merged and kind == NOTE and index.texts[index.method[row]] == "exit":
                self.track_of(row).close(index.at[row])
            if kind == REQUEST:
                if index.request(row) is not None:
                    self._add_request(row)
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
            if is_merged:
                failed = index.state(request) in FAILED_STATES
                self.track_of(request).end(request, index.at[row], failed=failed)

    def _add_request(self, row: int) -> None:
        self._open.add(row)
        if self._model.is_merged:
            self.track_of(row).begin(row, self._index.at[row])
        depth = len(self._open)
        if depth > self.peak:
            self.peak, self.peak_place = depth, len(self)
        self.rows.append(row)
        self.depths.append(depth)


class Timeline:
    """The start and the end of each request of a model, which may still grow."""

    def __init__(self, model: SessionModel, tracks: Sequence[str] = ()) -> None:
        self._model = model
        self._tracks = tracks
        self._begin_again()

    def _begin_again(self) -> None:
        self._generation = self._model.generation
        self._done = 0
        self._rows = array("I")
        self._begins = array("d")
        self._ends = array("d")
        """Infinite for a request that is open."""
        self._track = array("H")
        self._open: dict[int, int] = {}
        """Row → place of each request without a response."""
        self._open_at: list[array[int]] = []
        """The open requests before every `STEP`th one."""
        self._track_of_stream: dict[int, int] = {}

    @property
    def is_behind(self) -> bool:
        return self._done < len(self._model) or self._generation != self._model.generation

    def advance(self, may_continue: Callable[[], bool]) -> None:
        """Read the new rows of the model while `may_continue`."""
        if self._generation != self._model.generation:
            self._begin_again()
        index, is_open = self._model.index, self._open
        what, at = index.what, index.at
        while self._done < len(index):
            begin, self._done = self._done, min(self._done + PORTION, len(index))
            for row in range(begin, self._done):
                kind = what[row] & KIND
                if kind == REQUEST:
                    if index.request(row) is not None:
                        self._add(row)
                elif (
                    kind in (RESULT, FAILURE, NOTIFICATION, NOTE) and (request := index.pair(row)) in is_open
                ):
                    if kind != NOTIFICATION:
                        self._ends[is_open.pop(request)] = at[row]
                    elif index.texts[index.method[row]] == "notifications/cancelled":
                        self._ends[is_open[request]] = at[row]
            if not may_continue():
                return

    def _add(self, row: int) -> None:
        index, place = self._model.index, len(self._rows)
        if place % STEP == 0:
            self._open_at.append(array("I", self._open.values()))
        self._open[row] = place
        self._rows.append(row)
        # Lines of an imported file may be out of order: then a request is as late as those before it.
        self._begins.append(max(index.at[row], self._begins[-1] if place else 0.0))
        self._ends.append(inf)
        stream = index.stream[row]
        if stream not in self._track_of_stream:
            self._track_of_stream[stream] = self._find_track(index.texts[stream])
        self._track.append(self._track_of_stream[stream])

    def _find_track(self, stream: str) -> int:
        return next(
            (
                track
                for track, name in enumerate(self._tracks)
                if stream == name or stream.startswith(name + "/")
            ),
            0,
        )

    def window(
        self, selected: Sequence[int], begin: float, end: float, parts: int, now: float
    ) -> dict[str, Any]:
        """Return a window in equal parts, of the requests among the `selected` rows, which are in ascending order.

        Each track has, per part: the requests that `began`, the `peak` number in flight, those that `failed`, the
        `slowest` latency and the `number` of its row. `bars` are the requests, None if there are too many.
        """
        places = self._places(selected, begin, end)
        counted = [_Parts(begin, end, parts) for _ in self._tracks or ("",)]
        for place in places:
            counted[self._track[place]].add(self._exchange(place, now))
        return {
            "begin": begin,
            "end": end,
            "tracks": [track.counts() for track in counted],
            "bars": [self._bar(place, now) for place in places] if len(places) <= BARS else None,
        }

    def _places(self, selected: Sequence[int], begin: float, end: float) -> list[int]:
        """Return the requests that are in flight at any moment of the window."""
        begins, ends, all_rows = self._begins, self._ends, self._rows
        first, last = bisect_left(begins, begin), bisect_right(begins, end)
        step = min(first // STEP, len(self._open_at) - 1)
        before: Iterable[int] = () if step < 0 else (*self._open_at[step], *range(step * STEP, first))
        spanning = [place for place in before if ends[place] >= begin and _has(selected, all_rows[place])]
        if first == last:
            return spanning
        chosen = set(
            selected[bisect_left(selected, all_rows[first]) : bisect_right(selected, all_rows[last - 1])]
        )
        return [*spanning, *(place for place in range(first, last) if all_rows[place] in chosen)]

    def _exchange(self, place: int, now: float) -> tuple[int, float, float, bool]:
        """Return the row of a request, when it began and ended, and whether it failed."""
        row, answer = self._rows[place], self._model.index.answer(self._rows[place])
        has_failed = answer is not None and self._model.index.has_failed(answer)
        return row, self._begins[place], min(self._ends[place], now), has_failed

    def _bar(self, place: int, now: float) -> list[Any]:
        index = self._model.index
        row, begin, end, has_failed = self._exchange(place, now)
        answer = index.answer(row)
        state = index.state(row)
        tone = outcome.of(state or State.PENDING).tone
        if has_failed:
            tone = rows.BAD
        elif tone not in (rows.BAD, rows.OPEN):
            tone = rows.ISSUE if row in index.flaws or answer in index.flaws else rows.OK
        texts = index.texts
        named = sanitize(texts[index.method[row]]), sanitize(texts[index.subject[row]])
        return [row + 1, begin, end, self._track[place], tone, *named, index.status(row)]


class _Parts:
    """The counts of one track."""

    def __init__(self, begin: float, end: float, parts: int) -> None:
        self._begin, self._end, self._parts = begin, end, parts
        self._scale = parts / (end - begin)
        self._began, self._peak, self._failed, self._number = ([0] * parts for _ in range(4))
        self._slowest = [0.0] * parts
        self._starts: list[float] = []
        self._stops: list[float] = []

    def add(self, exchange: tuple[int, float, float, bool]) -> None:
        row, begin, end, has_failed = exchange
        self._starts.append(max(begin, self._begin))
        if end <= self._end:
            self._stops.append(end)
        if begin < self._begin:
            return
        part = self._part(begin)
        self._began[part] += 1
        self._failed[part] += has_failed
        if end - begin >= self._slowest[part]:
            self._slowest[part], self._number[part] = end - begin, row + 1

    def _part(self, at: float) -> int:
        return min(max(int((at - self._begin) * self._scale), 0), self._parts - 1)

    def counts(self) -> dict[str, list[Any]]:
        """Return the counts of each part."""
        self._count_peaks()
        return {
            "began": self._began,
            "peak": self._peak,
            "failed": self._failed,
            "slowest": [round(each, 6) for each in self._slowest],
            "number": self._number,
        }

    def _count_peaks(self) -> None:
        starts, stops, peak = sorted(self._starts), sorted(self._stops), self._peak
        changes = [0] * (self._parts + 1)
        stopped = 0
        for count, at in enumerate(starts, 1):
            while stopped < len(stops) and stops[stopped] <= at:
                stopped += 1
            part = self._part(at)
            peak[part] = max(peak[part], count - stopped)
            changes[part + 1] += 1
        for at in stops:
            changes[self._part(at) + 1] -= 1
        in_flight = 0
        for part in range(self._parts):
            in_flight += changes[part]
            peak[part] = max(peak[part], in_flight)


def _has(selected: Sequence[int], row: int) -> bool:
    place = bisect_left(selected, row)
    return place < len(selected) and selected[place] == row
