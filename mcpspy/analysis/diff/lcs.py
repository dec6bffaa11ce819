"""What two sequences have in common, in order.

Owns the longest common subsequence (Hunt and Szymanski, 1977: by the longest
increasing subsequence of the places where items are equal) and the bound on its
work: where equal items are too many, the first is held for the first, the
second for the second. Never quadratic.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Hashable, Sequence

MATCHES = 100_000
"""Equal pairs that are weighed; a thousand times the same item in two lists are a million."""


def increasing(numbers: Sequence[int]) -> list[int]:
    """Return the places of a longest strictly increasing subsequence, in order."""
    ends: list[int] = []  # Of the best one of each length: where it ends, and with which number.
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
    """Return the places, in both, of a longest common subsequence."""
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
    """Return where items between the equal ends are equal: by the old place, then from the last new one."""
    places: defaultdict[Hashable, list[int]] = defaultdict(list)
    for there in range(len(new) - end - 1, start - 1, -1):
        places[new[there]].append(there)
    here = range(start, len(old) - end)
    if sum(len(places.get(old[place], ())) for place in here) <= MATCHES:
        return [(place, there) for place in here for there in places.get(old[place], ())]
    return [(place, places[old[place]].pop()) for place in here if places.get(old[place])]
