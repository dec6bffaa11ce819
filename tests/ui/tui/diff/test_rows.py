"""Tests of the lines of a diff: order, width, filter, and sanitizing."""

from __future__ import annotations

import pytest
from rich.cells import cell_len

from mcpspy.analysis.diff import (
    ChangeKind,
    ChangePosition,
    ChangeSeverity,
    ComparedCase,
    DiffChange,
    SessionDiff,
)
from mcpspy.ui.tui.diff.rows import change_counts, diff_rows, whole

BREAKING, DIFFERENT, NOTE = ChangeSeverity

HOSTILE = "\x1b[2J\u202e\x00\ud800"

LONG = "x" * 200

DIFFERENCE = SessionDiff(
    (
        ComparedCase(method="ping", old=ChangePosition(2, 0), new=ChangePosition(2, 0)),
        ComparedCase(
            method="tools/call",
            subject="forecast",
            old=ChangePosition(5, 2),
            new=ChangePosition(6, 3),
            changes=(
                DiffChange(
                    kind=ChangeKind.RESULT, severity=DIFFERENT, pointer="/result/wind", old=12, new=15
                ),
                DiffChange(
                    kind=ChangeKind.ERROR, severity=BREAKING, pointer="/error", why="ok → error", new={"a": 1}
                ),
                DiffChange(
                    kind=ChangeKind.RESULT, severity=DIFFERENT, pointer="/result/text", old="a\nb", new="a\nB"
                ),
            ),
        ),
        ComparedCase(
            method="tools/call",
            subject=HOSTILE,
            new=ChangePosition(9, 5),
            changes=(
                DiffChange(
                    kind=ChangeKind.ADDED,
                    severity=NOTE,
                    pointer=f"/a/{'long/' * 30}{HOSTILE}/end",
                    why=HOSTILE,
                    old=LONG + "a",
                    new=LONG + HOSTILE,
                ),
            ),
        ),
    )
)


def texts(width: int = 80, wanted: str = "") -> list[str]:
    return [row.text for row in diff_rows(DIFFERENCE, width, wanted)]


def test_each_case_lists_its_changes_with_old_and_new_value() -> None:
    assert texts()[:9] == [
        "breaking  tools/call forecast  · exchange 2 → 3, line 5 → 6",
        "  result        /result/wind  (different)  12 → 15",
        "  error         /error  ok → error",
        '    + {"a":1}',
        "  result        /result/text  (different)",
        "      a",
        "    - b",
        "    + B",
        "note      tools/call \\x1b[2J\\u202e\\x00\\ud800  · exchange - → 5, line - → 9",
    ]


def test_every_line_refers_to_its_case_and_a_change_begins_once() -> None:
    found = diff_rows(DIFFERENCE, 80)
    changes = [change for _, change in DIFFERENCE.changes]
    assert [row.change for row in found if row.begins] == changes
    assert {id(row.case) for row in found} == {id(case) for case in DIFFERENCE.changed}


@pytest.mark.parametrize("width", [40, 60, 80, 300])
def test_lines_have_no_control_characters_and_truncated_values_show_their_difference(width: int) -> None:
    found = diff_rows(DIFFERENCE, width)
    for row in found:
        assert row.text.isprintable()
        assert not row.mark or cell_len(row.text) <= width
    old, new = (row.text for row in found[-2:])
    assert old.endswith('a"')
    assert "\\u001b" in new or "\\x1b" in new
    assert old.startswith("    - …") == (width < 300)


def test_the_end_of_a_long_pointer_is_kept() -> None:
    assert texts(80)[9].count("…") == 1
    assert "/end" in texts(80)[9]


@pytest.mark.parametrize(
    ("wanted", "left"),
    [
        ("", 4),
        ("wind", 1),
        ("FORECAST", 3),
        ("forecast -wind", 2),
        ("breaking", 1),
        ("result text", 1),
        ("- added", 1),
        ("nothing", 0),
    ],
)
def test_a_filter_keeps_the_changes_that_contain_its_words(wanted: str, left: int) -> None:
    found = diff_rows(DIFFERENCE, 80, wanted)
    assert sum(row.begins for row in found) == left
    assert len({id(row.case) for row in found if row.change is None}) == len({id(row.case) for row in found})


def test_the_whole_value_or_else_the_line_is_copied() -> None:
    found = diff_rows(DIFFERENCE, 60)
    assert whole(found[-2]) == f'"{LONG}a"'
    assert whole(found[3]) == '{"a":1}'
    assert whole(found[1]) == "result        /result/wind  (different)  12 → 15"
    assert whole(found[6]) == "- b"
    assert whole(found[0]).startswith("breaking  tools/call forecast")


def test_changes_are_counted_by_severity() -> None:
    assert (
        "".join(text for text, _ in change_counts(DIFFERENCE))
        == "1 breaking · 2 different · 1 note · 1 of 3 unchanged"
    )
    assert change_counts(SessionDiff(DIFFERENCE.cases[:1])) == [("no differences", "ok")]
    assert "".join(text for text, _ in change_counts(SessionDiff(DIFFERENCE.cases[2:]))) == "1 note"
    assert "".join(text for text, _ in change_counts(SessionDiff(()))) == "0 of 0 unchanged"


def test_placeholders_of_secrets_are_marked() -> None:
    change = DiffChange(
        kind=ChangeKind.RESULT, severity=DIFFERENT, pointer="/a", new=["x [redacted:00c0ffee]"]
    )
    *_, row = diff_rows(SessionDiff((ComparedCase(method="ping", changes=(change,)),)), 80)
    assert ("[redacted:00c0ffee]", "redacted") in row.pieces


def test_a_missing_case_is_described_in_place_of_a_pointer() -> None:
    case = ComparedCase(
        method="ping",
        old=ChangePosition(2, 0),
        changes=(DiffChange(kind=ChangeKind.REMOVED, severity=DIFFERENT),),
    )
    *_, row = diff_rows(SessionDiff((case,)), 80)
    assert row.text == "  removed       only in the old session"
