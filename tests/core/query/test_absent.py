"""The names that a filter asks for and a session does not have."""

from __future__ import annotations

import pytest

from mcpspy.core.query.absent import SHOWN, absent_name

NAMES = [
    ("initialize", ""),
    ("tools/call", "get-sum"),
    ("tools/call", "echo"),
    ("tools/call", "echo"),
    ("resources/read", "file:///a"),
]


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("", ""),
        ("tool:echo", ""),
        ("tool:ech", ""),
        ("-tool:other", ""),
        ("tool:ehco", 'no tool matches "ehco": did you mean echo? Tools here are echo, get-sum'),
        ("status:error tool:x", 'no tool matches "x". Tools here are echo, get-sum'),
        (
            "method:tool/call",
            'no method matches "tool/call": did you mean tools/call? Methods here are initialize, resources/read, tools/call',
        ),
        (
            "uri:file:///b",
            'no resource matches "file:///b": did you mean file:///a? Resources here are file:///a',
        ),
        ("prompt:x", 'no prompt matches "x", and the session has none'),
        ("text:x", ""),
    ],
)
def test_a_name_that_the_session_does_not_have_is_reported(text: str, hint: str) -> None:
    assert absent_name(text, NAMES) == hint


def test_many_names_are_cut() -> None:
    names = [("tools/call", f"t{number:02}") for number in range(SHOWN + 3)]
    assert absent_name("tool:none", names).endswith("t06, t07 and 3 more")
