"""Comparison of two JSON values: members by name, list items by longest common subsequence.

JSON in texts is compared as values. The longest common subsequence (Hunt and Szymanski, 1977) is the longest
increasing one of equal positions; its work is bounded: with too many equal items, the first is paired with the
first. Values that a tolerance marks are equal if their marks are.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Hashable, Iterator, Sequence
from typing import Any, NamedTuple, TypeAlias

from msgspec import UNSET

from mcpspy.analysis.diff.volatile import Tolerance, marked, marked_text
from mcpspy.core.jsontools import Pointer, canonical
from mcpspy.core.protocol.message import loads
from mcpspy.core.redact.placeholder import fits, untagged

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


NAMES = ("id", "uri", "name", "key", "path")
"""Members that identify an item of a list although other members changed."""


_Items: TypeAlias = list[tuple[int, Any]]


class ValueChange(NamedTuple):
    tokens: Pointer
    """For list items the new index; for a removed item the old one."""
    old: Any
    """UNSET if it was added."""
    new: Any
    """UNSET if it was removed."""
    is_layout: bool = False
    """True if both are texts with the same JSON in a different format."""


def deltas(old: Any, new: Any, *, tolerance: Tolerance = Tolerance.NONE) -> list[ValueChange]:
    try:
        return list(_walk(old, new, (), tolerance))
    except RecursionError:
        same = fingerprint(old, tolerance) == fingerprint(new, tolerance)
        return [] if same else [ValueChange((), old, new)]


def fingerprint(value: Any, tolerance: Tolerance = Tolerance.NONE) -> str:
    """Return a text that is equal for two values if, and only if, the values are equal."""
    try:
        return untagged(canonical(value if tolerance is Tolerance.NONE else marked(value, tolerance)))
    except (
        RecursionError
    ):  # `loads` reads deeper values than Python can recurse into. Nothing is tolerated then.
        return _flat(value)


def inner(text: str) -> dict[str, Any] | list[Any] | None:
    """Return the object or array that a text contains; None otherwise."""
    small = text.strip(" \t\r\n")
    if small[:1] + small[-1:] not in ("{}", "[]"):
        return None
    value = loads(small.encode("utf-8", "surrogatepass"))
    return value if isinstance(value, dict | list) else None


def _walk(old: Any, new: Any, at: Pointer, tolerance: Tolerance) -> Iterator[ValueChange]:
    if isinstance(old, dict) and isinstance(new, dict):
        for key, value in old.items():
            if key in new:
                yield from _walk(value, new[key], (*at, key), tolerance)
            else:
                yield ValueChange((*at, key), value, UNSET)
        for key, value in new.items():
            if key not in old:
                yield ValueChange((*at, key), UNSET, value)
    elif isinstance(old, list) and isinstance(new, list):
        yield from _items(old, new, at, tolerance)
    elif isinstance(old, str) and isinstance(new, str):
        yield from _texts(old, new, at, tolerance)
    elif not _is_same(old, new) and not _may_be(old, new):
        name = next((token for token in reversed(at) if not token.isdecimal()), "")
        if tolerance is Tolerance.NONE or marked(old, tolerance, name) != marked(new, tolerance, name):
            yield ValueChange(at, old, new)


def _items(old: list[Any], new: list[Any], at: Pointer, tolerance: Tolerance) -> Iterator[ValueChange]:
    if len(old) == len(new) == 1:  # Saves the fingerprints of nested lists.
        yield from _gap([(0, old[0])], [(0, new[0])], at, tolerance)
        return
    held = common(
        [fingerprint(item, tolerance) for item in old], [fingerprint(item, tolerance) for item in new]
    )
    left, right = list(enumerate(old)), list(enumerate(new))
    before = then = 0
    for here, there in [*held, (len(old), len(new))]:
        yield from _gap(left[before:here], right[then:there], at, tolerance)
        before, then = here + 1, there + 1


def _gap(old: _Items, new: _Items, at: Pointer, tolerance: Tolerance) -> Iterator[ValueChange]:
    """Yield the differences of two runs without equal items: matched by name, then by position."""
    named = common([_name(item, n, 0) for n, item in old], [_name(item, n, 1) for n, item in new])
    before = then = 0
    for here, there in [*named, (len(old), len(new))]:
        left, right = old[before:here], new[then:there]
        for (place, one), (number, two) in zip(left, right, strict=False):
            if _is_alike(one, two):
                yield from _walk(one, two, (*at, str(number)), tolerance)
            else:
                yield ValueChange((*at, str(place)), one, UNSET)
                yield ValueChange((*at, str(number)), UNSET, two)
        yield from (ValueChange((*at, str(place)), item, UNSET) for place, item in left[len(right) :])
        yield from (ValueChange((*at, str(number)), UNSET, item) for number, item in right[len(left) :])
        if here < len(old):
            yield from _walk(old[here][1], new[there][1], (*at, str(new[there][0])), tolerance)
        before, then = here + 1, there + 1


def _texts(old: str, new: str, at: Pointer, tolerance: Tolerance) -> Iterator[ValueChange]:
    if old == new or marked_text(old, tolerance) == marked_text(new, tolerance) or _may_be(old, new):
        return
    one = inner(old)
    two = inner(new) if one is not None else None
    if one is None or two is None or type(one) is not type(two):
        yield ValueChange(at, old, new)
        return
    found = list(_walk(one, two, at, tolerance))
    yield from found or [ValueChange(at, old, new, is_layout=True)]


def _name(item: Any, number: int, side: int) -> tuple[Any, ...]:
    """Return what identifies an item; an item without a name gets a unique key."""
    if isinstance(item, dict):
        for name in NAMES:
            if isinstance(value := item.get(name), str | int):
                return name, value, str(item.get("type"))
    return number, side


def _is_alike(old: Any, new: Any) -> bool:
    """Return whether one may be the changed other: both have the same JSON type and `type` member."""
    if isinstance(old, dict) and isinstance(new, dict):
        return bool(old.get("type") == new.get("type"))
    return isinstance(old, list) == isinstance(new, list) and isinstance(old, dict) == isinstance(new, dict)


def _is_same(old: Any, new: Any) -> bool:
    if isinstance(old, bool) or isinstance(new, bool):
        return old is new
    if isinstance(old, float) and isinstance(new, float) and old != old and new != new:  # noqa: PLR0124 - NaN
        return True
    return bool(old == new)


def _may_be(old: Any, new: Any) -> bool:
    """Return whether the values may be equal before redaction."""
    if isinstance(old, str) and isinstance(new, str) and untagged(old) == untagged(new):
        return True
    return fits(old, new) or fits(new, old)


def _flat(value: Any) -> str:
    """Return a text that is equal for equal values, without recursion."""
    written: list[str] = []
    left = [value]
    while left:
        item = left.pop()
        if isinstance(item, dict):
            written.append(f"{{{len(item)}")
            for key in sorted(item):
                left += (item[key], key)
        elif isinstance(item, list):
            written.append(f"[{len(item)}")
            left += reversed(item)
        else:
            written.append(canonical(item))
    return untagged("\n".join(written))
