"""Descriptions of rule notes."""

from __future__ import annotations

from typing import Any

import pytest

from mcpspy.core.session.rule_notes import about, words


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"action": "delay", "rule": "3", "seconds": 2.0}, "delayed 2 s (rule 3)"),
        ({"action": "delay", "why": "full"}, "buffer full, cannot delay it"),
        ({"action": "drop", "rule": "flaky"}, "dropped (rule flaky)"),
        ({"action": "replace"}, "changed"),
        ({"action": "replace", "failed": "/x does not exist"}, "not changed: /x does not exist"),
        ({"action": "corrupt", "how": "bad-json"}, "corrupted: bad-json"),
        ({"action": "hold", "viewer": "tui"}, "held (tui)"),
        ({"action": "hold", "why": "full"}, "buffer full, cannot hold it"),
        ({"action": "release", "why": "edited", "seconds": 0.5, "viewer": "tui"}, "edited after 0.5 s (tui)"),
        ({"action": "release", "why": "timeout", "seconds": 300}, "auto-released after 300 s"),
        ({"action": "release", "why": "new", "seconds": "?"}, "new after a while"),
        ({"action": "timeout", "seconds": 30}, "timed out after 30 s without a response"),
        ({"action": "slow", "seconds": 1}, "no response after 1 s"),
        ({"action": "later"}, "later"),
        ({"action": "replace", "script": "a.py"}, "changed (script a.py)"),
        ({"action": "tag", "tag": "slow", "script": "a.py"}, "tag slow (script a.py)"),
        ({"action": "note", "text": "13\n tools", "script": "a.py"}, "note: 13 tools (script a.py)"),
        (
            {"action": "script", "failed": "request: ValueError (line 2)", "script": "a.py"},
            "failed: request: ValueError (line 2) (script a.py)",
        ),
        (
            {"action": "block", "differences": ["tool a: new", "tool b: new"]},
            "blocked: tool a: new; tool b: new",
        ),
    ],
)
def test_an_action_is_described(fields: dict[str, Any], said: str) -> None:
    assert words(fields) == said


def test_a_message_is_described_by_the_fields_that_exist() -> None:
    assert about({"method": "tools/call", "subject": "echo", "id": "7"}) == "tools/call echo, id 7"
    assert about({"method": "x"}) == "x"
    assert about({}) == ""
