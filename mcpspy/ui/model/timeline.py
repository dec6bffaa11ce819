"""The requests of a session over time: begins, ends, concurrency and failures, and windows of them.

A track is a session of a run. A window of a million messages is answered with a few hundred numbers per track.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Sequence
from math import inf
from typing import Any

from mcpspy.analysis import rows
from mcpspy.core.recording.decode import Note
from mcpspy.core.sanitize import sanitize
from mcpspy.core.session import outcome
from mcpspy.core.session.columns import FAILURE, FROM_SERVER, KIND, NOTE, NOTIFICATION, REQUEST, RESULT
from mcpspy.core.session.exchange import MAY_CHANGE, SUBSCRIBE, State
from mcpspy.ui.model.session_model import IncrementalBuild

BARS = 1500
"""Maximum requests of a window that are returned one by one."""

PARTS = 1000
"""Maximum parts of a window."""

STEP = 1024
"""Requests between two lists of those that were open at that moment."""

_WRONG = outcome.FAILED | outcome.UNANSWERED

_RESPONSES = (RESULT, FAILURE)

_APART, _FROM_CLIENT, _FROM_SERVER = range(3)
"""Kinds of requests whose concurrency is counted for itself. Subscriptions and what mcpspy sent are not counted."""


class Track:
    """The periods of one session in which a request was in flight, and its failures.

    It keeps no requests: a question takes a few bisections, however many there are.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.requests = self.errors = self.unanswered = 0
        self._failures = array("d")
        """Times at which requests failed or stayed unanswered, in order."""
        self._begins = array("d")
        self._ends = array("d")
        """Ends of the periods; the last one may still be open."""
        self._before = array("d")
        """Seconds in flight before each period."""
        self._in_flight = 0

    def begin(self, at: float) -> None:
        if not self._in_flight:
            busy = self._before[-1] + self._ends[-1] - self._begins[-1] if self._begins else 0.0
            self._begins.append(at)
            self._before.append(busy)
        self._in_flight += 1

    def end(self, at: float) -> None:
        self._in_flight -= 1
        if not self._in_flight:
            self._ends.append(at)

    def count(self, state: State, at: float) -> None:
        """Count the outcome of a request."""
        decided = outcome.of(state)
        self.errors += decided.failed
        self.unanswered += decided.unanswered
        if decided.failed or decided.unanswered:
            self._failures.append(at)

    def begins(self, begin: float, end: float) -> bool:
        """Return whether a period begins in a part of the session."""
        return bisect_left(self._begins, end) > bisect_left(self._begins, begin)

    def fails(self, begin: float, end: float) -> bool:
        """Return whether a request fails or stays unanswered in a part of the session."""
        return bisect_left(self._failures, end) > bisect_left(self._failures, begin)

    def busy(self, until: float, now: float) -> float:
        """Return the seconds before `until` in which a request was in flight; open ones last until `now`."""
        last = bisect_right(self._begins, until) - 1
        if last < 0:
            return 0.0
        end = self._ends[last] if last < len(self._ends) else now
        return self._before[last] + max(min(until, end) - self._begins[last], 0.0)


class TimelineModel(IncrementalBuild):
    """The requests of a session, in the order in which they began, at their places."""

    def _begin(self) -> None:
        self.rows = array("I")
        self.begins = array("d")
        self.depths = array("I")
        """The concurrency when each began: the requests of the same side in flight, including itself."""
        self.peak = 0
        """The peak concurrency of either side."""
        self.peak_place = 0
        """The place of the request that reached the peak."""
        self.tracks: list[Track] = []
        """The sessions, if several are merged, in the order in which they began."""
        self._ends = array("d")
        """Infinite for a request that is in flight. A late response moves the end."""
        self._left: dict[int, float] = {}
        """Place of a request with a late response → the time until which it was in flight."""
        self._kinds = array("B")
        self._in_flight = [0, 0, 0]
        """Number of requests by their kind."""
        self._track_numbers = array("H")
        self._track_of_stream: dict[int, int] = {}
        self._open: dict[int, int] = {}
        """Row → place of each request that may still get a response."""
        self._open_at: list[array[int]] = []
        """The open requests before every `STEP`th one."""

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def is_behind(self) -> bool:
        return super().is_behind or (self._index.is_over and bool(self._open))

    def advance(self, may_continue: Callable[[], bool]) -> None:
        """Process new rows, and end open requests with the session, until `may_continue` returns False."""
        super().advance(may_continue)
        while self._index.is_over and self._open and not super().is_behind:
            self._finish(next(iter(self._open)), self._index.last_at, is_answered=False)
            if not may_continue():
                return

    def place_of(self, row: int) -> int:
        return max(min(bisect_left(self.rows, row), len(self) - 1), 0)

    def end_of(self, place: int) -> float | None:
        """Return the time at which a request ended, in seconds; None while it is open."""
        end = self._ends[place]
        return None if end == inf else end

    def state_of(self, place: int) -> State:
        return self._index.state(self.rows[place]) or State.PENDING

    def tone_of(self, place: int) -> str:
        """Return the tone of a request: that of its outcome, or of a protocol issue if nothing else is wrong."""
        index, row = self._index, self.rows[place]
        tone = outcome.of(self.state_of(place)).tone
        flaws = index.flaws
        return rows.ISSUE if tone == rows.OK and (row in flaws or index.pair(row) in flaws) else tone

    def track_of(self, place: int) -> Track | None:
        """Return the track of a request of merged sessions."""
        return self.tracks[self._track_numbers[place]] if self.tracks else None

    def _take(self, begin: int, end: int) -> None:
        index, is_open = self._index, self._open
        what, at, pair, polls, tasks = index.what, index.at, index.pair, index.polls, index.tasks
        for row in range(begin, end):
            kind = what[row] & KIND
            if kind == REQUEST:
                if index.request(row) == row and row not in polls:
                    self._add(row, index.stream[row])
            elif kind in _RESPONSES:
                request = pair(row)
                if polls and request in polls:
                    request = polls[request]
                if request in is_open:
                    if request not in tasks:
                        self._finish(request, at[row], is_answered=True)
                    elif index.ended.get(request, inf) <= at[row]:
                        self._finish(request, index.ended[request], is_answered=True)
            elif kind == NOTE:
                self._take_note(row)
            elif kind == NOTIFICATION and (request := pair(row)) in is_open:
                if index.texts[index.method[row]] == "notifications/cancelled":
                    self._leave(request, row)
                elif request in tasks and index.ended.get(request, inf) <= at[row]:
                    self._finish(request, index.ended[request], is_answered=True)

    def _add(self, row: int, stream: int) -> None:
        index, place = self._index, len(self.rows)
        if place % STEP == 0:
            self._open_at.append(array("I", self._open.values()))
        self._open[row] = place
        self.rows.append(row)
        # Lines of an imported file may be out of order: then a request is as late as those before it.
        at = index.at[row]
        if place and at < self.begins[-1]:
            at = self.begins[-1]
        self.begins.append(at)
        self._ends.append(inf)
        known = self._track_of_stream
        self._track_numbers.append(known[stream] if stream in known else self._find_track(stream))
        kind = _FROM_SERVER if index.what[row] & FROM_SERVER else _FROM_CLIENT
        if index.texts[index.method[row]] == SUBSCRIBE or index.held_seconds.get(row, 0.0) is None:
            kind = _APART
        else:
            self._in_flight[kind] += 1
        self._kinds.append(kind)
        depth = self._in_flight[kind]
        self.depths.append(depth)
        if depth > self.peak:
            self.peak, self.peak_place = depth, place
        if self.tracks:
            track = self.tracks[self._track_numbers[place]]
            track.requests += 1
            if kind != _APART:
                track.begin(at)

    def _take_note(self, note: int) -> None:
        index = self._index
        kind, request = index.texts[index.method[note]], index.pair(note)
        if request is not None and request in self._open:
            self._leave(request, note)
        elif kind == "lost":  # Their responses may be among the entries that were not recorded.
            track = self._find_track(index.stream[note])
            for place in self._open.values():
                is_of_track = self._track_numbers[place] == track
                if is_of_track and self._kinds[place] != _APART and self._ends[place] == inf:
                    self._end(place, index.at[note])
        elif kind in ("exit", "end") and self._is_end(note):
            track = self._find_track(index.stream[note])
            ended = [row for row, place in self._open.items() if self._track_numbers[place] == track]
            for row in ended:
                self._finish(row, index.at[note], is_answered=False)

    def _is_end(self, note: int) -> bool:
        what = self._model.message(note)
        return isinstance(what, Note) and what.is_end

    def _leave(self, request: int, row: int) -> None:
        """End a request that no side waits for after a row; a response may still follow."""
        answer, at = self._index.pair(request), self._index.at[row]
        if (answer is None or answer < row) and self._index.state(request) not in MAY_CHANGE:
            self._finish(request, at, is_answered=False)
        elif self._ends[place := self._open[request]] == inf:
            self._end(place, at)

    def _finish(self, request: int, at: float, *, is_answered: bool) -> None:
        """End a request that gets no further response."""
        place = self._open.pop(request)
        if self._ends[place] == inf:
            self._end(place, at)
        elif is_answered:
            self._left[place], self._ends[place] = self._ends[place], at
        if self.tracks and self._index.is_counted(request):
            self.tracks[self._track_numbers[place]].count(self.state_of(place), at)

    def _end(self, place: int, at: float) -> None:
        """End the time in which a request is in flight."""
        self._ends[place] = at
        if (kind := self._kinds[place]) != _APART:
            self._in_flight[kind] -= 1
            if self.tracks:
                self.tracks[self._track_numbers[place]].end(at)

    def _find_track(self, stream: int) -> int:
        """Return the number of the session of a stream: its name, or one that begins with it."""
        number = self._track_of_stream.get(stream)
        if number is None:
            names, text = self._model.sessions, self._index.texts[stream]
            self.tracks += map(Track, names[len(self.tracks) :])
            found = (each for each, name in enumerate(names) if f"{text}/".startswith(f"{name}/"))
            number = self._track_of_stream[stream] = next(found, 0)
        return number

    def window(
        self, selected: Sequence[int], begin: float, end: float, parts: int, now: float
    ) -> dict[str, Any]:
        """Return a window in equal parts, of the requests among the `selected` rows, which are in ascending order.

        Each track has, per part: the requests that `began`, the `peak` number in flight, those that `failed` or stayed
        `unanswered`, the `slowest` latency and the `number` of its row. `bars` are the requests, None if there are too
        many.
        """
        places = self._places(selected, begin, end)
        counted = [_Parts(begin, end, parts) for _ in self._model.sessions or ("",)]
        index, state = self._index, self._index.state
        for place in places:
            row, stop = self.rows[place], min(self._ends[place], now)
            left = self._left.get(place, stop) if self._left else stop
            track = counted[self._track_numbers[place]]
            track.add(row, self.begins[place], stop, left, self._kinds[place])
            decided = state(row)
            if decided in _WRONG and self.begins[place] >= begin and index.is_counted(row):
                track.add_failure(self.begins[place], is_answered=decided in outcome.FAILED)
        return {
            "begin": begin,
            "end": end,
            "tracks": [track.counts() for track in counted],
            "bars": [self._bar(place, now) for place in places] if len(places) <= BARS else None,
        }

    def _places(self, selected: Sequence[int], begin: float, end: float) -> list[int]:
        """Return the requests that are in flight at any moment of the window."""
        begins, ends, all_rows = self.begins, self._ends, self.rows
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

    def _bar(self, place: int, now: float) -> list[Any]:
        index, row, texts = self._index, self.rows[place], self._index.texts
        named = sanitize(texts[index.method[row]]), sanitize(texts[index.subject[row]])
        end = min(self._ends[place], now)
        track, tone = self._track_numbers[place], self.tone_of(place)
        return [row + 1, self.begins[place], end, track, tone, *named, index.status(row)]


class _Parts:
    """The counts of one track."""

    def __init__(self, begin: float, end: float, parts: int) -> None:
        self._begin, self._end, self._parts = begin, end, parts
        self._scale = parts / (end - begin)
        zeros = ([0] * parts for _ in range(5))
        self._began, self._peak, self._failed, self._unanswered, self._number = zeros
        self._slowest = [0.0] * parts
        self._changes: dict[int, tuple[list[float], list[float]]] = {
            _FROM_CLIENT: ([], []),
            _FROM_SERVER: ([], []),
        }
        """Kind of requests → the times at which they began and ended."""

    def add(self, row: int, begin: float, end: float, left: float, kind: int) -> None:
        """Count a request, which was in flight until `left`."""
        if kind != _APART:
            starts, stops = self._changes[kind]
            starts.append(max(begin, self._begin))
            if left <= self._end:
                stops.append(max(left, self._begin))
        if begin < self._begin:
            return
        part = self._part(begin)
        self._began[part] += 1
        if not self._number[part] or (kind != _APART and end - begin >= self._slowest[part]):
            self._number[part] = row + 1
            self._slowest[part] = 0.0 if kind == _APART else end - begin

    def add_failure(self, begin: float, *, is_answered: bool) -> None:
        """Count a request that failed, or stayed unanswered."""
        (self._failed if is_answered else self._unanswered)[self._part(begin)] += 1

    def _part(self, at: float) -> int:
        return min(max(int((at - self._begin) * self._scale), 0), self._parts - 1)

    def counts(self) -> dict[str, list[Any]]:
        """Return the counts of each part."""
        for starts, stops in self._changes.values():
            self._count_peaks(sorted(starts), sorted(stops))
        return {
            "began": self._began,
            "peak": self._peak,
            "failed": self._failed,
            "unanswered": self._unanswered,
            "slowest": [round(each, 6) for each in self._slowest],
            "number": self._number,
        }

    def _count_peaks(self, starts: list[float], stops: list[float]) -> None:
        peak = self._peak
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
