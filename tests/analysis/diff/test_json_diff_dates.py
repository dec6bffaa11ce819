"""Dates and times in texts."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpspy.analysis.diff.json_diff import undated

MARK = "\N{CALENDAR}"


@pytest.mark.parametrize(
    "text",
    [
        "2026-11-21",
        "2026-11-21T08:28:10Z",
        "2026-11-21T08:28:10.123456+01:00",
        "2026-11-21 08:28:10",
        "2026-11-21 08:28:10 UTC",
        "2026/11/21 08:28",
        "Sat, 21 Nov 2026 08:28:10 GMT",
        "Sat Nov 21 2026 08:28:10 GMT+0100 (Central European Standard Time)",
        "Sat Nov 21 08:28:10 2026",
        "21 Nov 2026",
        "Nov 21, 2026 at 8:28 AM",
        "11/21/2026, 8:28:02 AM",
        "21.11.2026",
        "8:28:02 AM",
        "08:28",
    ],
)
def test_a_date_or_a_time_is_replaced_by_a_mark(text: str) -> None:
    assert undated(text) == MARK
    assert undated(f"it was {text}, I think") == f"it was {MARK}, I think"


@pytest.mark.parametrize(
    "text",
    ["", "none", "1.2.3", "12345678", "2026", "99:99", "2026-13-45", "10.0.0.1:8080", "a1:22b", "1/3", "v2026-11-21x", "May I?"],
    ids=repr,
)  # fmt: skip
def test_text_without_a_date_is_unchanged(text: str) -> None:
    assert undated(text) == text


@given(st.text())
def test_any_text_can_be_searched_for_dates(text: str) -> None:
    assert undated(undated(text)) == undated(text)
