"""A diff as an HTML page: its changes, and no markup of a peer."""

from __future__ import annotations

from mcpspy.analysis.diff import ChangeSeverity, compare
from mcpspy.ui.report.diff_page import page
from tests.core.mock.talking import Talk


def test_the_page_lists_changes_and_escapes_all_text_of_peers() -> None:
    old, new = (Talk().handshake().call(1, "echo", answer).session for answer in ("a", "<script>b"))
    for session in (old, new):
        session.end()
    text = page(compare(old, new), ("old", "the <new>"), fail_on=ChangeSeverity.DIFFERENT)
    assert "changed: 1 different" in text
    assert "&lt;script&gt;b" in text
    assert "<script" not in text
    assert "the &lt;new&gt;" in text


def test_a_page_without_changes_has_no_table() -> None:
    session = Talk().handshake().session
    session.end()
    text = page(compare(session, session), ("a", "b"), fail_on=ChangeSeverity.DIFFERENT)
    assert "same: " in text
    assert "<table" not in text
