"""The requests of a session over time: counts per part of a window, or the requests one by one.

A window of a million messages is answered with a few hundred numbers per track; a track is a session of a run.
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
from mcpspy.core.session.columns import FAILURE, NOTE, NOTIFICATION, REQUEST, RESULT
from mcpspy.core.session.exchange import State
from mcpspy.ui.session_model import SessionModel

BARS = 1500
"""Maximum requests of a window that are returned one by one."""

PARTS = 1000
"""Maximum parts of a window."""

PORTION = 2000
"""Rows read between two checks of the clock."""

STEP = 1024
"""Requests between two lists of those that were open at that moment."""


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
                kind = what[row] & 7
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
