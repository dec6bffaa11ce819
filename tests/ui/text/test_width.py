"""Tests of text with a given width: cut, padded and wrapped."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from mcpspy.core.sanitize import sanitize
from mcpspy.ui.text.width import cut, cut_middle, pad, steady, wrap

TEXTS = st.text(max_size=60).map(sanitize).map(steady)


@pytest.mark.parametrize(
    ("text", "width", "shown"),
    [
        ("short", 9, "short"),
        ("exactly 9", 9, "exactly 9"),
        ("a bit more", 9, "a bit mo…"),
        ("漢字漢字", 8, "漢字漢字"),
        ("漢字漢字", 7, "漢字漢…"),
        ("漢字漢字", 6, "漢字…"),
        ("anything", 1, "…"),
        ("anything", 0, ""),
        ("x" * 1_000_000, 4, "xxx…"),
    ],
)
def test_truncated_text_ends_with_an_ellipsis(text: str, width: int, shown: str) -> None:
    assert cut(text, width) == shown


@pytest.mark.parametrize(
    ("method", "shown"),
    [
        ("tools/call", "tools/call"),
        ("notifications/progress", "noti…/progress"),
        ("notifications/resources/list_changed", "noti…t_changed"),
        ("an-extension-of-somebody", "an-e…-somebody"),
    ],
)
def test_a_truncated_method_keeps_its_end(method: str, shown: str) -> None:
    assert cut_middle(method, 14) == shown


def test_joining_and_invisible_characters_are_escaped() -> None:
    assert steady("a\u200bb\u200dc\u00add\U000e0041") == "a\\u200bb\\u200dc\\u00add\\U000e0041"


def test_variation_selectors_are_removed() -> None:
    assert steady("\u26a0\ufe0f") == "\u26a0"


@given(TEXTS, st.integers(0, 40), st.booleans())
def test_a_padded_text_has_exactly_the_given_width(text: str, width: int, right: bool) -> None:
    assert cell_len(pad(text, width, right=right)) == width


@given(TEXTS, st.integers(2, 30), st.integers(0, 20))
def test_wrapped_rows_fit_and_contain_the_whole_text(text: str, width: int, hang: int) -> None:
    rows = wrap(text, width, min(hang, width - 2))

    assert "".join(text[start:end] for start, end in rows) == text
    assert all(cell_len(text[start:end]) <= width for start, end in rows)


def test_rows_break_after_a_nearby_space() -> None:
    text = "one two three four"

    assert [text[start:end] for start, end in wrap(text, 9)] == ["one two ", "three ", "four"]
