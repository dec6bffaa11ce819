"""Quantiles are exact, however many numbers there are and however they come."""

from __future__ import annotations

from math import ceil

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpspy.ui.tui.asides import spread as module
from mcpspy.ui.tui.asides.spread import Spread

NUMBERS = st.lists(st.floats(0, 1e6, width=32), min_size=1, max_size=200)
SHARES = (0.01, 0.25, 0.5, 0.95, 0.99, 1.0)


def spread_of(numbers: list[float]) -> Spread:
    spread = Spread()
    for number in numbers:
        spread.add(number)
    return spread


@given(NUMBERS, st.integers(1, 30))
def test_a_quantile_is_the_number_of_its_rank(numbers: list[float], run: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "RUN", run)
        spread = spread_of(numbers)
        ranked = sorted(numbers)
        expected = [ranked[max(ceil(share * len(numbers)), 1) - 1] for share in SHARES]
        assert spread.quantiles(*SHARES) == expected
        assert (len(spread), spread.most) == (len(numbers), max(numbers))


def test_of_no_numbers_every_quantile_is_nothing() -> None:
    assert Spread().quantiles(0.5, 0.95) == [0.0, 0.0]


def test_equal_numbers_by_the_hundred_thousand_end() -> None:
    assert spread_of([0.5] * 100_000).quantiles(0.5, 0.95) == [0.5, 0.5]


def test_quantiles_stay_right_as_more_come() -> None:
    spread = spread_of([3.0, 1.0])
    assert spread.quantiles(0.5) == [1.0]
    spread.add(2.0)
    assert spread.quantiles(0.5) == [2.0]
