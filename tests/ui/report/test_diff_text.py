"""A diff for a terminal."""

from __future__ import annotations

from mcpspy.analysis import rows
from mcpspy.analysis.diff import ChangeKind, ChangeSeverity, ComparedCase, DiffChange, SessionDiff
from mcpspy.ui.report.diff import terminal


def test_each_change_is_below_its_case(difference: SessionDiff) -> None:
    lines = list(terminal(difference))

    assert lines[0] == ("note       handshake", rows.QUIET)
    assert lines[1] == ('  handshake     /v  "1" → "2"', None)
    assert lines[2][0].startswith("breaking   tools/call \\x1b[2J")
    assert lines[2][0].endswith("· exchange 2 → 3, line 5 → 6")
    assert lines[2][1] == rows.BAD
    assert ("different  roots/list  · exchange 4 → -, line 9 → -", rows.OPEN) in lines
    assert ("  removed       only in the old session", None) in lines
    assert ("  latency       1.0 ms → 2.00 s", None) in lines
    assert ("    - b", rows.BAD) in lines
    assert ("    + B", rows.OK) in lines
    assert lines[-1] == ("changed: 1 breaking, 4 different, 2 notes; 3 of 7 unchanged", rows.BAD)


def test_nothing_of_a_peer_is_interpreted(difference: SessionDiff) -> None:
    for line, _ in terminal(difference):
        assert not set(line) & set("\x1b\x07\u202e\n\x00\ud800")


def test_values_that_do_not_fit_have_their_own_lines() -> None:
    change = DiffChange(
        kind=ChangeKind.RESULT,
        severity=ChangeSeverity.DIFFERENT,
        pointer="/result/a",
        old="x" * 30,
        new="y" * 30,
    )
    difference = SessionDiff((ComparedCase(method="a", changes=(change,)),))

    assert len(list(terminal(difference, width=100))) == 3
    narrow = list(terminal(difference, width=60))
    assert narrow[1:4] == [
        ("  result        /result/a", None),
        (f'    - "{"x" * 30}"', rows.BAD),
        (f'    + "{"y" * 30}"', rows.OK),
    ]


def test_nothing_changed_is_one_line() -> None:
    assert list(terminal(SessionDiff((ComparedCase(method="a"),)))) == [("same: 1 of 1 unchanged", None)]
