"""What was done to messages, in words."""

from __future__ import annotations

from typing import Any

import pytest

from mcpspy.core.session.rule_notes import about, words


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"action": "delay", "rule": "3", "seconds": 2.0}, "delayed 2 s (rule 3)"),
        ({"action": "delay", "why": "full"}, "no room to delay it"),
        ({"action": "drop", "rule": "flaky"}, "dropped (rule flaky)"),
        ({"action": "replace"}, "changed"),
        ({"action": "replace", "failed": "there is no /x"}, "not changed: there is no /x"),
        ({"action": "corrupt", "how": "bad-json"}, "corrupted: bad-json"),
        ({"action": "hold", "viewer": "tui"}, "held (tui)"),
        ({"action": "hold", "why": "full"}, "no room to hold it"),
        ({"action": "release", "why": "edited", "seconds": 0.5, "viewer": "tui"}, "edited after 0.5 s (tui)"),
        ({"action": "release", "why": "timeout", "seconds": 300}, "let go by itself after 300 s"),
        ({"action": "release", "why": "new", "seconds": "?"}, "new after a while"),
        ({"action": "timeout", "seconds": 30}, "after 30 s without an answer"),
        ({"action": "slow", "seconds": 1}, "no answer after 1 s"),
        ({"action": "later"}, "later"),
    ],
)
def test_an_effect_is_told_in_words(fields: dict[str, Any], said: str) -> None:
    assert words(fields) == said


def test_a_message_is_named_as_far_as_it_can_be() -> None:
    assert about({"method": "tools/call", "subject": "echo", "id": "7"}) == "tools/call echo, id 7"
    assert about({"method": "x"}) == "x"
    assert about({}) == ""
