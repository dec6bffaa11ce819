"""A placeholder replaces one secret in one recording, and matches any value."""

from __future__ import annotations

from typing import Any

import pytest

from mcpspy.core.redact.placeholder import fits, is_placeholder, placeholder

ONE, OTHER = "[redacted:00c0ffee]", "[redacted:deadbeef]"


def test_a_placeholder_depends_on_the_secret_and_the_recording_alone() -> None:
    key = b"k" * 32
    made = placeholder(b"swordfish", key)
    assert is_placeholder(made.decode())
    assert made == placeholder(b"swordfish", key)
    assert len({made, placeholder(b"trout", key), placeholder(b"swordfish", b"l" * 32)}) == 3


@pytest.mark.parametrize(
    "text", ["", "[redacted]", "[redacted:00c0ffe]", "[redacted:00C0FFEE]", f" {ONE}", f"{ONE}{ONE}"]
)
def test_no_other_text_is_a_placeholder(text: str) -> None:
    assert not is_placeholder(text)


@pytest.mark.parametrize(
    ("recorded", "live"),
    [
        (ONE, "swordfish"), (ONE, ""), (ONE, OTHER), (ONE, 5), (ONE, 0.5),
        (f"Bearer {ONE}", "Bearer x"), (f"{ONE}/{OTHER}", "a/b/c"), (f"a{ONE}b{ONE}", "a1b2"), (f"a{ONE}a", "aa"),
        ({"a": [ONE, 1]}, {"a": ["x", 1.0]}), ("same", "same"), (1, 1.0), (None, None), (True, True),
    ],
)  # fmt: skip
def test_this_may_be_the_recorded_value(recorded: Any, live: Any) -> None:
    assert fits(recorded, live)


@pytest.mark.parametrize(
    ("recorded", "live"),
    [
        (ONE, None), (ONE, True), (ONE, ["x"]), (ONE, {}), (f"Bearer {ONE}", "Basic x"), (f"Bearer {ONE}", 5),
        (f"a{ONE}a", "a"), (f"{ONE}b{ONE}c", "cb"), (f"{ONE}b{ONE}", "acd"), ({"a": ONE}, {"a": "x", "b": 1}), ([ONE], []), ([ONE], {}),
        ("x", ONE), ("x", "y"), (1, True), (0, False), (True, 1), (None, False), (1, "1"), (1, None), ({}, []),
    ],
)  # fmt: skip
def test_this_is_not_the_recorded_value(recorded: Any, live: Any) -> None:
    assert not fits(recorded, live)
