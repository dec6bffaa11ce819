"""Tests of the mapping from time to columns: bars, labels, and the visible window."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from mcpspy.ui.tui.panels.time_axis import LEAST, TimeWindow, around, bar, label, labels

TEN = TimeWindow(0.0, 10.0)
TIMES = st.floats(0, 1e5, allow_nan=False)


@pytest.mark.parametrize(
    ("begin", "end", "drawn"),
    [
        (0.0, 10.0, "██████████"),
        (2.0, 5.0, "  ███"),
        (2.0, 4.5, "  ██▌"),
        (2.5, 5.0, "  ▐██"),
        (2.0, 2.01, "  ▏"),
        (2.9, 2.99, "  ▕"),
        (2.99, 3.01, "  ▕"),
        (2.4, 2.8, "  ▍"),
        (2.0, 2.0, "  ▏"),
        (10.0, 10.0, "         ▕"),
        (2.0, None, "  ███████▸"),
        (10.0, None, "         ▸"),
        (11.0, None, "         ▹"),
        (11.0, 12.0, "         ▹"),
        (5.0, 50.0, "     █████"),
    ],
)
def test_a_bar_is_at_the_columns_of_its_period(begin: float, end: float | None, drawn: str) -> None:
    assert bar(TEN, 10, begin, end) == drawn


def test_a_period_before_the_window_is_marked_at_the_left_edge() -> None:
    assert bar(TimeWindow(5.0, 10.0), 10, 1.0, 2.0) == "◂"
    assert bar(TimeWindow(5.0, 10.0), 10, 1.0, 6.0) == "█"


@given(TIMES, st.floats(LEAST, 1e5), st.integers(0, 200), TIMES, st.none() | st.floats(0, 1e4))
def test_no_bar_and_no_line_of_labels_is_wider_than_its_column(
    left: float, span: float, width: int, begin: float, lasted: float | None
) -> None:
    window = TimeWindow(left, span)
    assert cell_len(bar(window, width, begin, None if lasted is None else begin + lasted)) <= width
    assert cell_len(labels(window, width)) == width


def test_labels_are_at_round_moments() -> None:
    assert labels(TEN, 40) == "╷0 s                ╷5 s                "
    assert labels(TimeWindow(0.1, 0.01), 50).split() == ["╷0.100", "s", "╷0.105", "s"]


def test_the_precision_of_a_label_depends_on_its_window() -> None:
    assert [label(1.23456, span) for span in (1000.0, 1.0, 0.01)] == ["1 s", "1.23 s", "1.2346 s"]


def test_zooming_keeps_the_moment_in_its_column() -> None:
    closer = TEN.zoomed(0.5, 4.0, 10.0)
    assert closer == pytest.approx(TimeWindow(2.0, 5.0))
    assert closer.zoomed(2, 4.0, 10.0) == pytest.approx(TEN)


def test_zooming_ends_at_the_session_and_at_its_least() -> None:
    assert TEN.zoomed(2, 5.0, 10.0) == TEN
    window = TEN
    for _ in range(100):
        window = window.zoomed(0.5, 5.0, 10.0)
    assert window.span == LEAST
    assert window.left <= 5.0 <= window.right


@given(TIMES, st.floats(LEAST, 1e5), st.floats(-1e6, 1e6), TIMES)
def test_a_window_never_leaves_the_session(left: float, span: float, share: float, total: float) -> None:
    window = TimeWindow(left, span).moved(share, total)
    assert window.left >= 0
    assert window.right <= max(total, LEAST) * (1 + 1e-9)


def test_a_window_moves_only_to_a_moment_out_of_view() -> None:
    window = TimeWindow(2.0, 2.0)
    assert window.showing(3.0, 10.0) is window
    assert window.showing(7.0, 10.0) == pytest.approx(TimeWindow(6.8, 2.0))
    assert window.showing(0.1, 10.0).left == 0.0


def test_a_window_around_a_period_has_margins() -> None:
    window = around(4.0, 5.0, 10.0)
    assert (window.left < 4.0, window.right > 5.0) == (True, True)
