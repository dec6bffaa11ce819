"""Wall-clock times of a session."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from mcpspy.analysis.export.base import WallClock

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@given(
    st.datetimes(datetime(1971, 1, 1), datetime(2399, 12, 30)),
    st.integers(0, 10**11),
)
@example(datetime(2000, 2, 29, 23, 59, 59, 999_000), 2000)
@example(datetime(2100, 2, 28, 23, 59, 59), 1_000_000)
def test_times_follow_the_calendar(started: datetime, microseconds: int) -> None:
    began = started.replace(tzinfo=UTC, microsecond=started.microsecond // 1000 * 1000)
    clock = WallClock(began.isoformat(timespec="milliseconds").replace("+00:00", "Z"))
    then = began + timedelta(microseconds=microseconds)

    assert clock.nanoseconds(microseconds / 1e6) == (then - EPOCH) // timedelta(microseconds=1) * 1000
    assert clock.iso(microseconds / 1e6) == then.isoformat(timespec="microseconds").replace("+00:00", "Z")


@pytest.mark.parametrize("started", ["", "yesterday", "2026-11-21", "2026-11-21T08:13:03+01:00"])
def test_an_invalid_start_time_is_1970(started: str) -> None:
    assert WallClock(started).iso(1.5) == "1970-01-01T00:00:01.500000Z"
    assert WallClock(started).nanoseconds(-5.0) == 0


def test_a_date_that_does_not_exist_is_1970_and_a_time_after_the_last_year_is_its_end() -> None:
    assert WallClock("2026-02-30T00:00:00.000Z").iso(0) == "1970-01-01T00:00:00.000000Z"
    assert WallClock("2026-02-28T00:00:00.000Z").iso(1e300) == "9999-12-31T23:59:59.999999Z"
