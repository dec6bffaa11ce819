"""The lines of one change."""

from __future__ import annotations

from mcpspy.analysis.diff import ChangeKind, ChangeSeverity, DiffChange
from mcpspy.ui.report import diff as diff_report

NOTE = ChangeSeverity.NOTE


def text_change(old: str, new: str) -> DiffChange:
    return DiffChange(kind=ChangeKind.RESULT, severity=NOTE, pointer="/result/t", old=old, new=new)


def test_a_heading_has_kind_pointer_and_reason(hostile: str) -> None:
    change = DiffChange(kind=ChangeKind.ERROR, severity=NOTE, pointer="/error/\x1b", why="ok → no answer")

    assert diff_report.change_heading(change) == r"error  /error/\x1b  ok → no answer"
    assert diff_report.change_heading(change, 8) == r"error     /error/\x1b  ok → no answer"
    assert diff_report.change_heading(change, beside=NOTE) == diff_report.change_heading(change)
    assert diff_report.change_heading(change, beside=ChangeSeverity.BREAKING).endswith("  (note)")
    assert "\x1b" not in diff_report.change_heading(
        DiffChange(kind=ChangeKind.ERROR, severity=NOTE, pointer=hostile, why=hostile)
    )


def test_values_have_a_line_each() -> None:
    assert list(diff_report.body(text_change("a", "b"), 80)) == [("-", '"a"'), ("+", '"b"')]
    assert list(diff_report.body(DiffChange(kind=ChangeKind.ADDED, severity=NOTE, new=None), 80)) == [
        ("+", "null")
    ]
    assert list(diff_report.body(DiffChange(kind=ChangeKind.ADDED, severity=NOTE), 80)) == []


def test_two_texts_are_compared_line_by_line_with_context() -> None:
    found = list(diff_report.body(text_change("a\nb\nc\nd\n--- e", "a\nb\nC\nd\n+++ f"), 80))

    assert found == [
        (" ", "b"),
        ("-", "c"),
        ("+", "C"),
        (" ", "d"),
        ("-", "--- e"),
        ("+", "+++ f"),
    ]


def test_lines_are_cut_and_counted_and_sanitized() -> None:
    found = list(diff_report.body(text_change("\x1b[2J" + "x" * 200 + "\n", "\n".join("b" * 99)), 20))

    assert found[0] == ("-", "\\x1b[2J" + "x" * 12 + "…")
    assert found[-1] == (" ", "… 61 more lines")
    assert len(found) == diff_report.MOST_LINES + 1


def test_very_many_lines_are_a_value_like_any_other() -> None:
    found = list(diff_report.body(text_change("a\n" * 5000, "b\n" * 5000), 40))

    assert [mark for mark, _ in found] == ["-", "+"]
