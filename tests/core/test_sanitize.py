"""A terminal interprets no text of a peer."""

from __future__ import annotations

import json
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpspy.core.sanitize import hidden_as_json, hidden_characters, sanitize, sanitize_bytes


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
        ("a\u200bb\u200cc\u200dd", "a\\u200bb\\u200cc\\u200dd"),
        ("\u2060\u2064\ufeff\u00ad\u3164", "\\u2060\\u2064\\ufeff\\u00ad\\u3164"),
        ("hi\U000e0041\U000e007f", "hi\\U000e0041\\U000e007f"),
        ("a\ufe0fb\ufe01\U000e0101", "a\\ufe0fb\\ufe01\\U000e0101"),
        ("\U0001f600\ufe0f\ufe0f\u200d", "\U0001f600\ufe0f\\ufe0f\\u200d"),
        ("\U0001f3f4\U000e0068\U000e0069\U000e007f", "\U0001f3f4\\U000e0068\\U000e0069\\U000e007f"),
        ("[red]tool[/red]", "[red]tool[/red]"),
        ("Reykjavík 雨 🌧", "Reykjavík 雨 🌧"),
    ],
)
def test_control_characters_are_made_visible_and_other_text_is_unchanged(hostile: str, shown: str) -> None:
    assert sanitize(hostile) == shown


@pytest.mark.parametrize(
    "text",
    [
        "\U0001f468\u200d\U0001f469\u200d\U0001f467",
        "\U0001f3f3\ufe0f\u200d\U0001f308 \u2764\ufe0f 1\ufe0f\u20e3",
        "\U0001f3f4\U000e0067\U000e0062\U000e0065\U000e006e\U000e0067\U000e007f",
        "\u0646\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645",
        "\u0915\u094d\u200d\u0937",
    ],
)
def test_characters_that_emoji_and_words_need_stay(text: str) -> None:
    assert sanitize(text) == text
    assert not list(hidden_characters(text))


UNSEEN = st.sampled_from(
    "\u200b\u200c\u200d\u200e\u2060\ufeff\ufe0e\ufe0f\ufe01\U000e0041\U000e007f\U000e0101\u202e\u00ad"
)
MIXED = st.lists(
    st.one_of(UNSEEN, st.sampled_from("a1#\u06cc\u2764\U0001f469\U0001f3f4\u20e3"), st.characters(codec=None))
).map("".join)


def is_unseen(character: str) -> bool:
    """Return True for what a terminal does not show, by Unicode's categories and not by sanitize's own table."""
    code = ord(character)
    is_selector = 0xFE00 <= code < 0xFE10 or 0xE0100 <= code < 0xE01F0
    is_visible_format = code in (
        *range(0x600, 0x606),
        0x6DD,
        0x70F,
        0x890,
        0x891,
        0x8E2,
        0x110BD,
        0x110CD,
    ) or (0x13430 <= code < 0x13440)
    return is_selector or (unicodedata.category(character) == "Cf" and not is_visible_format)


@given(MIXED)
def test_no_invisible_character_is_left_except_between_what_it_joins(text: str) -> None:
    shown = sanitize(text)

    for at, character in enumerate(shown):
        if is_unseen(character):
            before, after = shown[at - 1 : at], shown[at + 1 : at + 2]
            assert character in "\u200c\u200d\ufe0e\ufe0f" or 0xE0000 <= ord(character) < 0xE0080
            assert (before and not before.isascii()) or after == "\u20e3", ascii(text)
            assert character != "\u200d" or (after and not after.isascii() and not is_unseen(after))


@given(MIXED)
def test_no_visible_character_is_changed(text: str) -> None:
    visible = [
        one
        for one in text
        if not is_unseen(one) and unicodedata.category(one) not in ("Cc", "Cs", "Cn", "Zl", "Zp")
    ]
    left = iter(sanitize(text))

    assert all(one in left for one in visible if one not in FILLERS)


FILLERS = "\u034f\u115f\u1160\u17b4\u17b5\u180b\u180c\u180d\u180f\u3164\uffa0\u2065"
"""Invisible characters that Unicode calls letters or marks."""


@given(
    st.text(st.characters(exclude_categories=("Cc", "Cf", "Cs", "Cn", "Zl", "Zp", "Mn", "Mc")), max_size=60)
)
def test_visible_text_stays_as_it_is(text: str) -> None:
    if not set(FILLERS) & set(text):
        assert sanitize(text) == text


@given(MIXED)
def test_sanitized_text_does_not_change_again(text: str) -> None:
    assert sanitize(sanitize(text)) == sanitize(text)


@given(MIXED)
def test_hidden_characters_are_those_that_become_visible(text: str) -> None:
    plain = "".join(
        one for one in text if one not in "\t\n\r\u2028\u2029" and not 0xD800 <= ord(one) < 0xE000
    )

    assert bool(list(hidden_characters(plain))) == (sanitize(plain) != plain)


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


def test_hidden_characters_of_json_become_its_escapes() -> None:
    text = '{"a":"\x7f\x9b\u202e\u200b\U000e0041é👩\u200d💻"}\n'
    shown = hidden_as_json(text)
    assert shown == '{"a":"\\u007f\\u009b\\u202e\\u200b\\udb40\\udc41é👩\u200d💻"}\n'
    assert json.loads(shown) == json.loads(text)
