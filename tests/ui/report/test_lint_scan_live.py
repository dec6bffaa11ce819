"""Findings in a session that is being read."""

from __future__ import annotations

from mcpspy.core.recording.decode import Frame, Note
from mcpspy.core.session.session import Session
from mcpspy.ui.report.lint_scan import LiveLinter

ASK = Frame(0.1, "client", b'{"jsonrpc":"2.0","id":1,"method":"ping"}')


def test_findings_are_kept_by_message_and_late_ones_are_returned() -> None:
    session, live = Session(), LiveLinter(None)
    earlier = [
        live.add(change) for entry in (ASK, Frame(0.2, "server", b"oops")) for change in session.add(entry)
    ]

    assert earlier == [[], []]
    assert live.words(1) == ["ENV101 error"]

    session.add(Note(0.3, "exit", {"code": 0}))
    late = live.end()
    assert [(found.number, found.code) for found in late] == [(0, "LIFE201")]
    assert "LIFE201 warning" in live.words(0)
    assert len(live) == len(live.of(0)) + len(live.of(1))
