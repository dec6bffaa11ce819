"""A number with its noun."""

from __future__ import annotations

from mcpspy.core.counted import counted


def test_the_noun_agrees_with_its_number() -> None:
    assert [counted(number, "message") for number in (0, 1, 2, 2000)] == [
        "0 messages",
        "1 message",
        "2 messages",
        "2,000 messages",
    ]
