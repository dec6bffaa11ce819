"""The model of a difference."""

from __future__ import annotations

from mcpspy.analysis.diff.model import ChangeKind, ChangeSeverity, ComparedCase, DiffChange, SessionDiff

BREAKING, DIFFERENT, NOTE = ChangeSeverity


def change(severity: ChangeSeverity) -> DiffChange:
    return DiffChange(kind=ChangeKind.RESULT, severity=severity)


def test_sessions_that_differ_only_in_notes_are_equal_by_default() -> None:
    noted = SessionDiff((ComparedCase(method="a"), ComparedCase(method="b", changes=(change(NOTE),))))
    changed = SessionDiff((ComparedCase(method="b", changes=(change(NOTE), change(DIFFERENT))),))

    assert noted.is_same()
    assert not noted.is_same(NOTE)
    assert not changed.is_same()
    assert changed.is_same(BREAKING)
    assert SessionDiff(()).is_same(NOTE)


def test_a_case_has_the_severity_of_its_most_severe_change() -> None:
    case = ComparedCase(
        method="tools/call", subject="a", changes=(change(NOTE), change(BREAKING), change(DIFFERENT))
    )

    assert case.severity is BREAKING
    assert case.about == "tools/call a"
    assert ComparedCase(method="ping").severity is None
    assert ComparedCase(method="ping").about == "ping"


def test_changes_are_counted_by_severity() -> None:
    difference = SessionDiff(
        (
            ComparedCase(method="a", changes=(change(NOTE), change(NOTE), change(BREAKING))),
            ComparedCase(method="b"),
        )
    )

    assert difference.counts == {BREAKING: 1, DIFFERENT: 0, NOTE: 2}
    assert [case.method for case in difference.changed] == ["a"]
    assert len(difference.changes) == 3
