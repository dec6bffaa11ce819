"""Completion of a filter."""

from __future__ import annotations

import pytest

from mcpspy.core.query.completion import completed, suggestion

NAMES = [
    ("tools/call", "get sum"),
    ("tools/call", "echo"),
    ("resources/read", "file:///a"),
    ("tools/call", "echo"),
]
VALUES = {"is": ("slow", "issue"), "name": ("", "weather", "weather")}


@pytest.mark.parametrize(
    ("text", "offered"),
    [
        ("", ["is:", "name:"]),
        ("is:", ["is:slow", "is:issue"]),
        ("x -is:sl", ["x -is:slow", "x -is:issue"]),
        ("(name:", ["(name:weather"]),
        ("tool:", ["tool:echo", 'tool:"get sum"']),
        ("method:", ["method:resources/read", "method:tools/call"]),
        ("uri:f", ["uri:file:///a"]),
        ("other:", []),
    ],
)
def test_the_last_term_is_completed(text: str, offered: list[str]) -> None:
    assert completed(text, ["is", "name"], VALUES, lambda: NAMES) == offered


@pytest.mark.parametrize(
    ("text", "shown"),
    [("is:s", "is:slow"), ("IS:S", "is:slow"), ("is:slow", None), ("", None), ("a ", None), ("na", "name:")],
)
def test_the_first_form_that_continues_a_text_is_suggested(text: str, shown: str | None) -> None:
    assert suggestion(text, [*completed(text, ["is", "name"], VALUES), "is:slow"]) == shown
