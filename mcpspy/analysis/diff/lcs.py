"""Longest common subsequence (Hunt and Szymanski, 1977).

It is the longest increasing subsequence of equal positions. The work is bounded: with too many equal items,
the first is paired with the first. Never quadratic.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Hashable, Sequence

MATCHES = 100_000
"""Maximum number of equal pairs: two lists of a thousand equal items have a million."""


def increasing(numbers: Sequence[int]) -> list[int]:
    """Return the indexes of a longest strictly increasing subsequence, in order."""
    ends: list[int] = []  # For each length, the end of the best subsequence.
    lowest: list[int] = []
    before: list[int] = []
    for place, number in enumerate(numbers):
        length = bisect_left(lowest, number)
        before.append(ends[length - 1] if length else -1)
        if length == len(ends):
            ends.append(place)
            lowest.append(number)
        else:
            ends[length], lowest[length] = place, number
    found: list[int] = []
    place = ends[-1] if ends else -1
    while place >= 0:
        found.append(place)
        place = before[place]
    return found[::-1]


def common(old: Sequence[Hashable], new: Sequence[Hashable]) -> list[tuple[int, int]]:
    """Return the indexes, in both sequences, of a longest common subsequence."""
    shorter = min(len(old), len(new))
    start = 0
    while start < shorter and old[start] == new[start]:
        start += 1
    end = 0
    while end < shorter - start and old[-1 - end] == new[-1 - end]:
        end += 1
    matches = _matches(old, new, start, end)
    return [
        *((place, place) for place in range(start)),
        *(matches[place] for place in increasing([there for _, there in matches])),
        *((len(old) - left, len(new) - left) for left in range(end, 0, -1)),
    ]


def _matches(old: Sequence[Hashable], new: Sequence[Hashable], start: int, end: int) -> list[tuple[int, int]]:
    """Return pairs of equal items between the equal ends: by old index, then by descending new index."""
    places: defaultdict[Hashable, list[int]] = defaultdict(list)
    for there in range(len(new) - end - 1, start - 1, -1):
        places[new[there]].append(there)
    here = range(start, len(old) - end)
    if sum(len(places.get(old[place], ())) for place in here) <= MATCHES:
        return [(place, there) for place in here for there in places.get(old[place], ())]
    return [(place, places[old[place]].pop()) for place in here if places.get(old[place])]
