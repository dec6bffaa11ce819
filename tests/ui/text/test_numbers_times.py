"""Time formats, and the latency bar."""

from __future__ import annotations

from datetime import datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpspy.ui.text.numbers import TimeFormat, latency_bar, start_time, time_text, time_width

NOON = datetime.fromisoformat("2026-01-01T12:00:00.500")


@pytest.mark.parametrize(
    ("way", "text"),
    [(TimeFormat.RELATIVE, "62.250"), (TimeFormat.ABSOLUTE, "12:01:02.750"), (TimeFormat.DELTA, "+2.250")],
)
def test_a_time_is_shown_in_the_chosen_format(way: TimeFormat, text: str) -> None:
    assert time_text(way, 62.25, 60.0, NOON) == text


def test_the_formats_cycle() -> None:
    assert TimeFormat.RELATIVE.following.following.following is TimeFormat.RELATIVE


def test_without_a_start_time_the_time_is_relative() -> None:
    assert start_time("yesterday") is None
    assert time_text(TimeFormat.ABSOLUTE, 1.5, 0.0, start_time("yesterday")) == "1.500"


@given(st.sampled_from(TimeFormat), st.floats(0, 1e6), st.floats(0, 1e6))
def test_no_time_is_wider_than_its_column(way: TimeFormat, one: float, two: float) -> None:
    first, last = sorted((one, two))
    assert len(time_text(way, last, first, NOON)) <= time_width(way, last)


@given(st.floats(1e-6, 1e5), st.floats(1e-6, 1e5))
def test_a_longer_latency_never_has_a_shorter_bar(one: float, two: float) -> None:
    short, long = sorted((one, two))
    assert latency_bar(short) <= latency_bar(long) or len(latency_bar(short)) <= len(latency_bar(long))
    assert 1 <= len(latency_bar(long)) <= 8


def test_no_latency_has_no_bar() -> None:
    assert (latency_bar(None), latency_bar(0.0)) == ("", "")
    assert (latency_bar(0.001), latency_bar(1.0), latency_bar(100.0)) == ("█▍", "█████▍", "████████")
