"""A terminal interprets no text of a peer."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpspy.core.sanitize import sanitize, sanitize_bytes


@pytest.mark.parametrize(
    ("hostile", "shown"),
    [
        ("\x1b]0;owned\x07", "\\x1b]0;owned\\x07"),
        ("\x9b31m", "\\x9b31m"),
        ("a\nb\r\tc", "a\\nb\\r\\tc"),
        ("safe\u202etxt.exe", "safe\\u202etxt.exe"),
        ("\u2066x\u2069", "\\u2066x\\u2069"),
        ("line\u2028separator", "line\\u2028separator"),
        ("\ud800", "\\ud800"),
        ("[red]tool[/red]", "[red]tool[/red]"),
        ("Reykjavík 雨 🌧", "Reykjavík 雨 🌧"),
    ],
)
def test_control_characters_are_made_visible_and_other_text_is_unchanged(hostile: str, shown: str) -> None:
    assert sanitize(hostile) == shown


@given(st.text())
def test_no_control_character_remains(text: str) -> None:
    shown = sanitize(text)

    assert not [c for c in shown if unicodedata.category(c) in ("Cc", "Zl", "Zp", "Cs")]
    assert not {"\u202e", "\u2066", "\u200f", "\ufeff"} & set(shown)


@given(st.binary())
def test_any_bytes_are_one_line(data: bytes) -> None:
    assert len(sanitize_bytes(data).splitlines()) <= 1


def test_bytes_that_are_not_utf8_are_shown_as_bytes() -> None:
    assert sanitize_bytes(b"caf\xe9") == "caf\\xe9"
