"""Numbers in few columns, and the header."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpspy.ui.report.stats_table import CountedSession, head, states
from mcpspy.ui.text.numbers import share, span
from tests.analysis.stats.talking import Talk, group


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (0.0, "0µs"),
        (0.00085, "850µs"),
        (0.9996e-3, "1.00ms"),
        (0.0121, "12.1ms"),
        (0.9996, "1.00s"),
        (1.25, "1.25s"),
        (9.996, "10.0s"),
        (59.96, "1m00s"),
        (125, "2m05s"),
        (7300, "2h01m"),
    ],
)
def test_a_span_has_three_digits_and_a_unit(seconds: float, words: str) -> None:
    assert span(seconds) == words


@given(st.floats(0, 99 * 3600))
def test_a_span_fits_its_column(seconds: float) -> None:
    assert len(span(seconds)) <= 6


def test_a_small_share_is_not_shown_as_zero() -> None:
    assert [share(part, 10.0) for part in (0.0, 0.01, 1.2, 10.0)] == ["0 %", "< 1 %", "12 %", "100 %"]
    assert share(1.0, 0.0) == "0 %"


def test_the_head_has_the_session_and_its_state() -> None:
    talk = Talk().hello().hello(2.0)
    stats = talk.note(3.0, "exit", code=3, signal=None).stats()

    assert head(CountedSession("x", stats, False, ("x",))) == [
        "tested · ab12cd34 · 2026-01-01T00:00:00.000Z · server",
        "host 1 x2 → server 2 · protocol 2025-11-25 · exit 3",
    ]
    assert head(CountedSession("x", Talk().stats(), True, ("x",)))[1] == "live: numbers so far"
    assert head(CountedSession("x", Talk().stats(), False, ("x",)))[1] == "died: no exit note"


def test_the_states_of_requests_are_named() -> None:
    stats = (
        Talk().hello().call(1, 1.0, 2.0).call(2, 1.0, 2.0).ask(3, 1.0, "tools/call", {"name": "echo"}).stats()
    )

    assert states(group(stats, "tools/call", "echo")) == "3: 2 ok, 1 no answer"
