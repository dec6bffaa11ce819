"""Groups of similar requests or notifications, their counts, and exact quantiles of their durations.

A group has one side and one method; calls, prompts and resources also one subject. A distribution owns its numbers, in
sorted runs of eight bytes each; a rank is searched among the runs of one or several distributions, without sorting all
numbers: half a million take some milliseconds. docs/decisions.md explains why it is not a histogram.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from enum import StrEnum
from itertools import accumulate, chain, count
from math import ceil, fsum
from typing import NamedTuple

from mcpspy.core.session.exchange import State
from mcpspy.core.session.outcome import FAILED, OUTCOMES, UNANSWERED

RUN = 2048
"""Maximum count of numbers that are sorted together: they take a quarter of a millisecond."""

_made = count()


MOST_RUNS = 100
"""Number of runs above which a union sorts them in portions: long sessions, and thousands of short ones."""

PORTION = 1 << 14
"""Numbers that are sorted together then: as objects, they take half a megabyte."""


class Durations(NamedTuple):
    """Latency in seconds."""

    answers: int
    total: float
    p50: float
    """Median by nearest rank, so it is one of the values."""
    p95: float
    p99: float
    most: float

    @property
    def mean(self) -> float:
        return self.total / self.answers if self.answers else 0.0


class Distribution:
    __slots__ = ("_fresh", "_room", "_runs", "_sorted")

    def __init__(self) -> None:
        # Tools that are called in turn must not all reach their sort at the same moment.
        self._room = max(RUN - next(_made) * 37 % RUN // 2, 1)
        self._sorted = 0
        self._runs: list[array[float]] = []
        self._fresh = array("d")

    @staticmethod
    def union(spreads: Sequence[Distribution]) -> Distribution:
        """Return the union of several distributions; add nothing to any of them while it is in use."""
        union = Distribution()
        union._runs = [run for spread in spreads for run in spread._all()]
        if len(union._runs) > MOST_RUNS:
            union._runs = list(map(_sorted, _portions(union._runs)))
        union._sorted = sum(map(len, union._runs))
        return union

    def __len__(self) -> int:
        return self._sorted + len(self._fresh)

    def add(self, number: float) -> None:
        fresh = self._fresh
        fresh.append(number)
        if len(fresh) == self._room:
            self._runs.append(array("d", sorted(fresh)))
            self._sorted += len(fresh)
            self._fresh = array("d")

    @property
    def most(self) -> float:
        return max((run[-1] for run in self._all() if run), default=0.0)

    def times(self) -> Durations:
        p50, p95, p99 = self.quantiles(0.5, 0.95, 0.99)
        return Durations(len(self), fsum(map(fsum, self._all())), p50, p95, p99, self.most)

    def quantiles(self, *shares: float) -> list[float]:
        """Return the quantile of each share by nearest rank; 0 for an empty distribution."""
        if not len(self):
            return [0.0 for _ in shares]
        runs = self._all()
        return [_ranked(runs, max(ceil(share * len(self)), 1)) for share in shares]

    def counts(self, bounds: Iterable[float]) -> list[int]:
        """Return the number of values up to each of the rising bounds, and of all values."""
        runs = self._all()
        return [*(sum(bisect_right(run, bound) for run in runs) for bound in bounds), len(self)]

    def _all(self) -> list[array[float]]:
        return [*self._runs, array("d", sorted(self._fresh))]


class RunningUnion:
    """The union of distributions to which numbers are still added, brought up to date in short steps."""

    def __init__(self) -> None:
        self._taken: dict[Distribution, int] = {}
        """Distribution → the number of its runs that were taken."""
        self._merged: list[array[float]] = []
        self._single: list[array[float]] = []
        """Runs that do not fill a portion yet."""
        self._union = Distribution()

    def __len__(self) -> int:
        return len(self._union)

    def update(self, spreads: Sequence[Distribution]) -> Iterator[None]:
        """Take the numbers that were added; add no others before this has ended. A step sorts one portion."""
        fresh = [spread._fresh for spread in spreads]
        for spread in spreads:
            self._single += spread._runs[self._taken.get(spread, 0) :]
            self._taken[spread] = len(spread._runs)
        *full, self._single = _portions(self._single)
        for part in full:
            self._merged.append(_sorted(part))
            yield
        runs = [*self._merged, *self._single]
        for part in _portions(fresh):
            runs.append(_sorted(part))
            yield
        self._union = Distribution()
        self._union._runs, self._union._sorted = runs, sum(map(len, runs))

    def quantile(self, share: float) -> float:
        """Return the quantile of a share by nearest rank, as of the last update."""
        return self._union.quantiles(share)[0]

    @property
    def most(self) -> float:
        return self._union.most


def _sorted(runs: Iterable[array[float]]) -> array[float]:
    return array("d", sorted(chain.from_iterable(runs)))


def _portions(runs: Sequence[array[float]]) -> Iterator[list[array[float]]]:
    """Yield consecutive runs that have `PORTION` numbers together."""
    part: list[array[float]] = []
    size = 0
    for run in runs:
        part.append(run)
        size += len(run)
        if size >= PORTION:
            yield part
            part, size = [], 0
    yield part


def _ranked(runs: Sequence[array[float]], rank: int) -> float:
    """Return the number of a rank, from 1, among sorted runs."""
    left = [(run, 0, len(run)) for run in runs if run]
    while True:
        pivot = _middle(left)
        below = [bisect_left(run, pivot, low, high) for run, low, high in left]
        upto = [bisect_right(run, pivot, low, high) for run, low, high in left]
        less = sum(place - low for place, (_, low, _) in zip(below, left, strict=True))
        same = sum(above - place for above, place in zip(upto, below, strict=True))
        if less < rank <= less + same:
            return pivot
        if rank <= less:
            left = [
                (run, low, place) for place, (run, low, _) in zip(below, left, strict=True) if place > low
            ]
        else:
            rank -= less + same
            left = [
                (run, place, high) for place, (run, _, high) in zip(upto, left, strict=True) if high > place
            ]


def _middle(left: list[tuple[array[float], int, int]]) -> float:
    """Return a number that at least a quarter of all is not below, and at least a quarter not above."""
    middles = sorted((run[(low + high) // 2], high - low) for run, low, high in left)
    reached = list(accumulate(weight for _, weight in middles))
    return middles[bisect_left(reached, reached[-1] / 2)][0]


BY_SUBJECT = frozenset({"tools/call", "prompts/get", "resources/read"})
"""Methods that are counted by subject: the tool, prompt or resource."""


class GroupKind(StrEnum):
    REQUEST = "request"
    NOTIFICATION = "notification"

    __hash__ = str.__hash__  # The method of Enum is Python code, and is called for every message.


class StateCounts(dict[State, int]):
    """State → number of requests; 0 by default."""

    def __missing__(self, _: State) -> int:
        return 0


class ChainCounts:
    """Calls that took more than one request (2026-07-28, input required)."""

    def __init__(self) -> None:
        self.whole = Distribution()
        """Seconds from the first request to the last response, of each finished call."""
        self.served = 0.0
        """Seconds of it in which the server had a request to answer."""
        self.requests = 0

    def __len__(self) -> int:
        return len(self.whole)


class MessageGroup:
    """Counts of similar requests or notifications."""

    def __init__(self, side: str, kind: GroupKind, method: str, subject: str | None = None) -> None:
        self.side = side
        self.kind = kind
        self.method = method
        """Empty for all methods."""
        self.subject = subject
        """Tool, prompt or resource; None for all, or if the method has none."""
        self.count = 0
        self.states = StateCounts()
        """Requests by outcome; with `apart`, they add up to `count`."""
        self.apart = 0
        """Requests whose outcome does not count: a viewer sent them, they poll a task, or are open subscriptions."""
        self.sent = self.back = 0
        """Bytes of the messages, and of the responses to them."""
        self.took = Distribution()
        """Seconds from request to response, without the time for which mcpspy held the request.

        Subscriptions stay open by design, and a request that mcpspy sent or answered is not the peers': without both.
        """
        self.chains = ChainCounts()

    @property
    def errors(self) -> int:
        """Requests that failed."""
        return sum(self.states[state] for state in FAILED)

    @property
    def unanswered(self) -> int:
        """Requests that got no outcome."""
        return sum(self.states[state] for state in UNANSWERED)

    @property
    def pending(self) -> int:
        """Requests that are open."""
        return sum(count for state, count in self.states.items() if OUTCOMES[state].is_open)


def merged(groups: Iterable[MessageGroup], method: str = "") -> MessageGroup:
    """Return several groups of one side and kind as one. Nothing may be added to them any more."""
    groups = list(groups)
    whole = MessageGroup(groups[0].side, groups[0].kind, method)
    for group in groups:
        whole.count += group.count
        for state, requests in group.states.items():
            whole.states[state] += requests
        whole.apart += group.apart
        whole.sent += group.sent
        whole.back += group.back
        whole.chains.served += group.chains.served
        whole.chains.requests += group.chains.requests
    whole.took = Distribution.union([group.took for group in groups])
    whole.chains.whole = Distribution.union([group.chains.whole for group in groups])
    return whole
