"""What scenes are found by."""

from __future__ import annotations

from mcpspy.core.mock.store import FIRSTS, Keys


def test_rows_are_found_by_what_is_asked() -> None:
    its = Keys()
    for row in range(FIRSTS + 3):
        digest = b"same" if row < 3 else b"%16d" % row
        its.file(row, digest, "tools/call", "a" if row < 3 else "b", answers=False)
    assert list(its.rows(b"same")) == [0, 1, 2]
    assert list(its.rows(b"%16d" % 5)) == [5]
    assert list(its.rows(b"none")) == []
    assert len(its.methods["tools/call", False]) == FIRSTS + 3
    assert len(its.firsts["tools/call"]) == FIRSTS
    assert sorted(its.subjects.values()) == [~3, 0], "the only one of a, the first of b"
