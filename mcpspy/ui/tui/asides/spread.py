"""Exact quantiles of very many numbers, without ever sorting them all.

Owns the numbers, in sorted runs of four bytes each, and finding the one of a
rank among the runs: half a million take some milliseconds. Pure.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from itertools import count
from math import ceil

RUN = 2048
"""Numbers that are sorted together, at most: a quarter of a millisecond."""

_made = count()


class Spread:
    """Numbers, and how they are spread."""

    __slots__ = ("_count", "_fresh", "_room", "_runs", "most")

    def __init__(self) -> None:
        self.most = 0.0
        """The largest."""
        # Tools that are called in turn must not all come to be sorted at the same moment.
        self._room = max(RUN - next(_made) * 37 % RUN // 2, 1)
        self._count = 0
        self._runs: list[array[float]] = []
        self._fresh = array("f")

    def __len__(self) -> int:
        return self._count

    def add(self, number: float) -> None:
        """Take one more, not below 0."""
        self.most = max(self.most, number)
        self._count += 1
        self._fresh.append(number)
        if len(self._fresh) == self._room:
            self._runs.append(array("f", sorted(self._fresh)))
            self._fresh = array("f")

    def quantiles(self, *shares: float) -> list[float]:
        """Return, for each share, the least number that so many are not above (nearest rank); of none, 0."""
        if not len(self):
            return [0.0 for _ in shares]
        runs = [*self._runs, array("f", sorted(self._fresh))]
        return [_ranked(runs, max(ceil(share * len(self)), 1)) for share in shares]


def _ranked(runs: list[array[float]], rank: int) -> float:
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
    """Return a number that at least a quarter of all is not below, and a quarter not above."""
    middles = sorted((run[(low + high) // 2], high - low) for run, low, high in left)
    half = sum(weight for _, weight in middles) / 2
    for middle, weight in middles:
        half -= weight
        if half <= 0:
            return middle
    raise AssertionError("no number is left")
