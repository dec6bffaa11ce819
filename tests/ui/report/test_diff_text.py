"""A diff for a terminal."""

from __future__ import annotations

from mcpspy.analysis import rows
from mcpspy.analysis.diff import ChangeKind, ChangeSeverity, ComparedCase, DiffChange, SessionDiff
from mcpspy.ui.report.diff import terminal


def test_each_change_is_below_its_case_and_the_gravest_come_first(difference: SessionDiff) -> None:
    lines = list(terminal(difference))

    assert lines[0][0].startswith("breaking   tools/call \\x1b[2J")
    assert lines[0][0].endswith("· exchange 2 → 3, line 5 → 6")
    assert lines[0][1] == rows.BAD
    assert lines[1][0].startswith("  error         /error  ok → ")
    place = lines.index(("note       handshake", rows.QUIET))
    assert lines[place + 1] == ('  handshake     /v  "1" → "2"', None)
    assert ("different  roots/list  · exchange 4 → -, line 9 → -", rows.OPEN) in lines
    assert ("  removed       only in the old session", None) in lines
    assert ("  latency       1.0 ms → 2.00 s", None) in lines
    assert ("    - b", rows.BAD) in lines
    assert ("    + B", rows.OK) in lines
    assert lines[-2] == ("changed: 1 breaking, 4 different, 2 notes; 3 of 7 unchanged", rows.BAD)
    assert lines[-1][0].startswith("upgrade: breaks clients: tools/call ")
    assert lines[-1][1] == rows.BAD


def test_lesser_changes_are_only_counted(difference: SessionDiff) -> None:
    lines = list(terminal(difference, show=ChangeSeverity.BREAKING))

    assert [line for line, _ in lines if line.startswith(("breaking", "different", "note"))] == [lines[0][0]]
    assert [line[:17] for line, _ in lines if line.startswith("  ")] == [
        "  error         /",
        '    + {"message":',
    ]
    assert ("… 6 lesser changes not shown: --show note", rows.QUIET) in lines


def listed(name: str, new: object, severity: ChangeSeverity = ChangeSeverity.BREAKING) -> DiffChange:
    return DiffChange(
        kind=ChangeKind.INTERFACE,
        severity=severity,
        why=f'now refuses {{"{name}":[]}}' if severity is ChangeSeverity.BREAKING else "",
        pointer=f"/result/tools/{name}/inputSchema/properties/{name}/minItems",
        new=new,
    )


def test_equal_changes_of_several_tools_are_one() -> None:
    changes = (*(listed(name, 1) for name in ("a", "b", "c")), listed("d", 2))

    lines = [line for line, _ in terminal(SessionDiff((ComparedCase(method="tools/list", changes=changes),)))]

    assert lines == [
        "breaking   tools/list",
        '  interface     /result/tools/a/inputSchema/properties/a/minItems  now refuses {"a":[]}',
        "    + 1",
        "      also in 2: b, c",
        '  interface     /result/tools/d/inputSchema/properties/d/minItems  now refuses {"d":[]}',
        "    + 2",
        "changed: 4 breaking; 0 of 1 unchanged",
        'upgrade: breaks clients: a: now refuses {"a":[]}, and 3 more breaking changes',
    ]


def test_an_upgrade_that_breaks_nothing_may_still_matter() -> None:
    change = listed("a", 1, ChangeSeverity.DIFFERENT)

    lines = list(terminal(SessionDiff((ComparedCase(method="tools/list", changes=(change,)),))))

    assert lines[-1] == ("upgrade: breaks no client; 1 change may matter", rows.OPEN)


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
