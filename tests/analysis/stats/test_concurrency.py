"""The number of pending requests is known for any time, in constant memory."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mcpspy.analysis.stats.concurrency import BINS, Concurrency


def flown(spans: list[tuple[bool, float, float]]) -> Concurrency:
    """Add requests that are pending from one time to another."""
    flight = Concurrency()
    events = [(begin, 1, is_client) for is_client, begin, _ in spans]
    events += [(end, -1, is_client) for is_client, _, end in spans]
    for at, by, is_client in sorted(events):
        flight.change(is_client, by, at)
    return flight


def test_the_time_is_split_by_the_side_that_waits() -> None:
    flight = flown([(True, 1.0, 5.0), (True, 2.0, 3.0), (False, 4.0, 4.5), (False, 8.0, 9.0)])

    assert (flight.served, flight.client_seconds, flight.area) == (3.5, 1.5, 5.0)
    assert (flight.peak, flight.server_peak) == (2, 1)


SPAN = st.tuples(st.booleans(), st.integers(0, 4000), st.integers(0, 4000)).map(
    lambda span: (span[0], min(span[1:]) / 8, max(span[1:]) / 8)
)


@settings(deadline=None)
@given(st.lists(SPAN, max_size=12), st.integers(1, 300))
def test_a_profile_never_hides_a_peak_nor_invents_one(
    spans: list[tuple[bool, float, float]], columns: int
) -> None:
    flight = flown(spans)
    profile = flight.profile(columns)
    mine = [(begin, end) for is_client, begin, end in spans if is_client]

    assert 1 <= len(profile) <= columns
    assert max(profile) == flight.peak
    assert flight.area == pytest.approx(sum(end - begin for begin, end in mine))
    if len(profile) == 1 or columns < BINS:
        return
    stretch = flight.span / len(profile)
    for place, most in enumerate(profile):
        begin, end = place * stretch, (place + 1) * stretch
        assert most <= sum(first <= end + 1 and last >= begin - 1 for first, last in mine)


def test_a_long_request_is_counted_in_all_intervals_between() -> None:
    flight = flown([(True, 0.0, 1000.0)])

    assert set(flight.profile(40)) == {1}


def test_a_time_that_goes_back_counts_as_the_latest_before_it() -> None:
    flight = Concurrency()
    for at, by in ((5.0, 1), (3.0, 1), (6.0, -1), (-1.0, -1), (7.0, 0)):
        flight.change(True, by, at)

    assert (flight.served, flight.area, flight.peak) == (1.0, 2.0, 2)


def test_a_large_clock_jump_takes_no_more_time() -> None:
    flight = flown([(True, 0.0, 1.0), (True, 1e12, 1e12 + 1)])

    assert flight.peak == 1
    assert flight.profile(8)[0] == 1
