"""Decisions and the fields of notes."""

from __future__ import annotations

from mcpspy.core.intercept.actions import AddNote, Decision, Dropped, Forward, text_field

PASS = Forward("client", b"{}", None, 1)


def test_only_a_message_forwarded_unchanged_without_notes_is_untouched() -> None:
    assert Decision(1, False, [PASS], False).is_untouched
    assert not Decision(1, False, [AddNote("rule", {}), PASS], False).is_untouched
    assert not Decision(1, True, [Dropped("client", None, 1)], False).is_untouched
    assert not Decision(1, False, [], True).is_untouched


def test_sent_bytes_are_noted_exactly() -> None:
    assert text_field("sent", '{"é":1.0}'.encode()) == {"sent": '{"é":1.0}'}
    assert text_field("sent", b'{"\xff"') == {"sent_b64": "eyL/Ig=="}
