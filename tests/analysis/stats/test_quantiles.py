"""Quantiles equal those of the sorted numbers, in any order of arrival."""

from __future__ import annotations

import tracemalloc
from math import ceil, fsum

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mcpspy.analysis.stats import group
from mcpspy.analysis.stats.group import Distribution

NUMBERS = st.lists(st.one_of(st.floats(0, 1e6), st.sampled_from([0.0, 0.1, 1.0])), max_size=60)


def spread(numbers: list[float]) -> Distribution:
    found = Distribution()
    for number in numbers:
        found.add(number)
    return found


@settings(deadline=None)
@given(st.lists(NUMBERS, max_size=4), st.floats(0.001, 1), st.integers(1, 9))
def test_quantiles_equal_those_of_the_sorted_list(lists: list[list[float]], share: float, run: int) -> None:
    before, group.RUN = group.RUN, run
    try:
        spreads = [spread(numbers) for numbers in lists]
    finally:
        group.RUN = before
    whole = sorted(number for numbers in lists for number in numbers)
    for found, numbers in [
        (Distribution.union(spreads), whole),
        *zip(spreads, map(sorted, lists), strict=True),
    ]:
        times = found.times()
        assert len(found) == times.answers == len(numbers)
        if numbers:
            assert found.quantiles(share) == [numbers[ceil(share * len(numbers)) - 1]]
            assert times[2:] == tuple(numbers[ceil(q * len(numbers)) - 1] for q in (0.5, 0.95, 0.99, 1.0))
            assert (times.total, times.mean) == pytest.approx((fsum(numbers), fsum(numbers) / len(numbers)))
        bounds = [0.0, 0.1, 5.0]
        assert found.counts(bounds) == [
            *(sum(number <= bound for number in numbers) for bound in bounds),
            len(numbers),
        ]


def test_an_empty_distribution_has_zeros() -> None:
    times = Distribution().times()

    assert times == (0, 0.0, 0.0, 0.0, 0.0, 0.0)
    assert times.mean == 0.0


@given(st.lists(st.floats(0, 1e6), min_size=1, max_size=200), st.integers(1, 30))
def test_a_quantile_is_the_number_of_its_rank(numbers: list[float], run: int) -> None:
    shares = (0.01, 0.25, 0.5, 0.95, 0.99, 1.0)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(group, "RUN", run)
        found = spread(numbers)
        ranked = sorted(numbers)
        expected = [ranked[max(ceil(share * len(numbers)), 1) - 1] for share in shares]
        assert found.quantiles(*shares) == expected
        assert (len(found), found.most) == (len(numbers), max(numbers))


def test_a_hundred_thousand_equal_numbers_are_processed() -> None:
    assert spread([0.5] * 100_000).quantiles(0.5, 0.95) == [0.5, 0.5]


def test_quantiles_stay_correct_as_numbers_are_added() -> None:
    found = spread([3.0, 1.0])
    assert found.quantiles(0.5) == [1.0]
    found.add(2.0)
    assert found.quantiles(0.5) == [2.0]


def test_a_union_of_many_runs_sorts_a_part_of_them_at_once() -> None:
    spreads = []
    for first in range(3):
        spread = Distribution()
        for number in range(first, 600_000, 3):
            spread.add(float(number * 7919 % 600_011))
        spreads.append(spread)
    whole = sorted(float(number * 7919 % 600_011) for number in range(600_000))
    tracemalloc.start()
    try:
        union = Distribution.union(spreads)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert union.quantiles(0.5, 0.99) == [whole[299_999], whole[593_999]]
    assert peak < 2 * 8 * 600_000  # Its own eight bytes for each number, and the objects of one part.
