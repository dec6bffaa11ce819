"""The texts of a change."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpspy.analysis.diff import (
    ChangeKind,
    ChangePosition,
    ChangeSeverity,
    ComparedCase,
    DiffChange,
    SessionDiff,
)
from mcpspy.core.sanitize import sanitize
from mcpspy.ui.report.diff import about, one_line, place, places, reason, texts, values, verdict

BREAKING, DIFFERENT, NOTE = ChangeSeverity


def change(old: Any, new: Any, kind: ChangeKind = ChangeKind.RESULT) -> DiffChange:
    return DiffChange(kind=kind, severity=DIFFERENT, old=old, new=new)


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        (ChangePosition(3, 1), ChangePosition(3, 1), "exchange 1, line 3"),
        (ChangePosition(3, 1), ChangePosition(5, 2), "exchange 1 → 2, line 3 → 5"),
        (ChangePosition(3), None, "line 3 → -"),
        (None, ChangePosition(5, 2), "exchange - → 2, line - → 5"),
        (ChangePosition(0, 1), ChangePosition(0, 2), "exchange 1 → 2"),
        (None, None, ""),
    ],
    ids=str,
)
def test_equal_positions_are_shown_once(
    old: ChangePosition | None, new: ChangePosition | None, words: str
) -> None:
    assert places(ComparedCase(method="a", old=old, new=new)) == words


def test_a_position_in_json() -> None:
    assert place(ChangePosition(3, 0)) == {"line": 3, "exchange": 0}
    assert place(ChangePosition(3)) == {"line": 3}
    assert place(None) == {}


def test_all_text_is_sanitized(hostile: str) -> None:
    case = ComparedCase(method="tools/call", subject=hostile)
    found = DiffChange(
        kind=ChangeKind.ERROR, severity=BREAKING, why=hostile, old=hostile, new={hostile: [hostile]}
    )

    for text in (about(case), reason(found), *values(found, 10_000), one_line(hostile)):
        assert text is not None
        assert text == sanitize(text)
        assert "\x1b" not in text
        assert "\n" not in text


def test_no_name_takes_over_a_report() -> None:
    assert about(ComparedCase(method="tools/call", subject="x" * 10_000)) == "tools/call " + "x" * 288 + "…"


def test_the_reason_of_a_change() -> None:
    assert reason(change(1, 2)) == ""
    assert reason(change(1, 2, ChangeKind.ADDED)) == "only in the new session"
    assert reason(change(1, 2, ChangeKind.REMOVED)) == "only in the old session"


def test_values_are_one_line_of_json_and_none_where_there_is_none() -> None:
    assert values(change({"a": [1, None]}, "é"), 80) == ('{"a":[1,null]}', '"é"')
    assert values(DiffChange(kind=ChangeKind.ADDED, severity=NOTE, new=1), 80) == (None, "1")
    assert values(change(0.001, 2.5, ChangeKind.LATENCY), 80) == ("1.0 ms", "2.50 s")
    deep: Any = []
    for _ in range(100_000):
        deep = [deep]
    assert one_line(deep) == "(nested too deep)"


def test_long_values_are_cut_where_they_begin_to_differ() -> None:
    old, new = "x" * 500 + "OLD" + "y" * 500, "x" * 500 + "NEW" + "y" * 500

    one, two = values(change(old, new), 60)

    assert one is not None
    assert two is not None
    assert (one[0], two[0]) == ("…", "…")
    assert "OLD" in one
    assert "NEW" in two
    assert one.endswith(" more")
    assert (
        values(DiffChange(kind=ChangeKind.ADDED, severity=NOTE, new=old), 60)[1]
        == '"' + "x" * 57 + "… 947 more"
    )


@given(st.text(), st.text(), st.integers(8, 60))
def test_a_cut_value_has_room_and_two_that_differ_are_seen_to(old: str, new: str, width: int) -> None:
    one, two = values(change(old, new), width)

    assert one is not None
    assert two is not None
    assert len(one) <= width + len(f" {len(old) * 8} more")
    if old == new:
        assert one == two
    elif sanitize(old) != sanitize(new):
        assert one != two


def test_texts_of_several_lines_are_split() -> None:
    assert texts(change("a\nb", "a")) == (["a", "b"], ["a"])
    assert texts(change("a", "b")) is None
    assert texts(change("a\n", 1)) is None


def test_the_verdict_counts() -> None:
    def of(*severities: ChangeSeverity) -> SessionDiff:
        changes = tuple(DiffChange(kind=ChangeKind.RESULT, severity=severity) for severity in severities)
        return SessionDiff((ComparedCase(method="a"), ComparedCase(method="b", changes=changes)))

    assert verdict(of(), DIFFERENT) == "same: 2 of 2 unchanged"
    assert verdict(of(NOTE), DIFFERENT) == "same: 1 note; 1 of 2 unchanged"
    assert verdict(of(NOTE), NOTE) == "changed: 1 note; 1 of 2 unchanged"
    assert verdict(of(NOTE, NOTE, BREAKING), DIFFERENT) == "changed: 1 breaking, 2 notes; 1 of 2 unchanged"
    assert verdict(of(DIFFERENT, DIFFERENT), BREAKING) == "same: 2 different; 1 of 2 unchanged"
