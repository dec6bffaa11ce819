"""Longest common subsequences."""

from __future__ import annotations

from itertools import combinations, pairwise

from hypothesis import given
from hypothesis import strategies as st

from mcpspy.analysis.diff import json_diff
from mcpspy.analysis.diff.json_diff import common, increasing

SHORT = st.lists(st.integers(0, 3), max_size=7)


def longest(one: list[int], other: list[int]) -> int:
    """Return the length of a longest common subsequence, by brute force."""
    for length in range(min(len(one), len(other)), 0, -1):
        if set(combinations(one, length)) & set(combinations(other, length)):
            return length
    return 0


@given(SHORT, SHORT)
def test_the_found_subsequence_is_common_ordered_and_of_maximal_length(
    one: list[int], other: list[int]
) -> None:
    found = common(one, other)

    assert all(one[here] == other[there] for here, there in found)
    assert all(a[0] < b[0] and a[1] < b[1] for a, b in pairwise(found))
    assert len(found) == longest(one, other)


@given(st.lists(st.integers(0, 9), max_size=9))
def test_the_longest_increasing_subsequence(numbers: list[int]) -> None:
    places = increasing(numbers)
    best = max(
        (
            length
            for length in range(len(numbers) + 1)
            for some in combinations(numbers, length)
            if all(a < b for a, b in pairwise(some))
        ),
        default=0,
    )

    assert len(places) == best
    assert all(a < b and numbers[a] < numbers[b] for a, b in pairwise(places))


def test_a_hundred_thousand_equal_items_are_paired_in_order() -> None:
    old = ["x", *["same"] * 100_000, "y"]
    new = ["a", *["same"] * 99_999, "b"]

    found = common(old, new)

    assert len(found) == 99_999
    assert found[0] == (1, 1)


@given(SHORT, SHORT)
def test_beyond_the_limit_the_subsequence_is_still_common_and_ordered(
    one: list[int], other: list[int]
) -> None:
    before, json_diff.MATCHES = json_diff.MATCHES, 0
    try:
        found = common(one, other)
    finally:
        json_diff.MATCHES = before

    assert all(one[here] == other[there] for here, there in found)
    assert all(a[0] < b[0] and a[1] < b[1] for a, b in pairwise(found))
