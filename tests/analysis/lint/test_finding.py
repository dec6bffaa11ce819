"""Severities and places."""

from __future__ import annotations

from mcpspy.analysis.lint import EntryPosition, Severity


def test_the_most_severe_finding_ranks_first() -> None:
    assert [severity.rank for severity in (Severity.ERROR, Severity.WARNING, Severity.INFO)] == [0, 1, 2]


def test_an_uncounted_position_is_line_0_of_the_first_part() -> None:
    assert EntryPosition() == (0, 1)
