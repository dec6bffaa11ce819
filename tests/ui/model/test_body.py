"""Layout of message bodies without changes of their values."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpspy.ui.model.body import WIDE, pretty


def test_json_is_laid_out_with_its_numbers_and_duplicates_as_sent() -> None:
    body = b'{"a":1.0,"a":1E5,"n":123456789012345678901234567890,"s":"\\u00e9"}'

    assert pretty(body) == [
        "{",
        '  "a": 1.0,',
        '  "a": 1E5,',
        '  "n": 123456789012345678901234567890,',
        '  "s": "\\u00e9"',
        "}",
    ]


def test_invalid_json_is_shown_as_text() -> None:
    assert pretty(b'{"half') == ['{"half']
    assert pretty(b"caf\xe9\x1b[2J") == ["caf\\xe9\\x1b[2J"]


def test_invisible_characters_are_visible() -> None:
    assert pretty('"a\u200b\U000e0041\ufeff"'.encode()) == ['"a\\u200b\\U000e0041\\ufeff"']
    assert pretty("a\u2060b".encode()) == ["a\\u2060b"]


def test_a_long_line_is_cut_and_counted() -> None:
    assert pretty(b"x" * (WIDE + 7)) == ["x" * WIDE + "… 7 more characters"]
    assert pretty("é".encode() * (WIDE + 7)) == ["é" * WIDE + "… 7 more characters"]
    assert pretty("é".encode() * WIDE) == ["é" * WIDE]


def test_lines_are_a_sequence_with_its_ends() -> None:
    lines = pretty(b'{"a":1}')
    assert lines[-1] == "}"
    for beyond in (3, -4):
        with pytest.raises(IndexError):
            lines[beyond]


@given(st.binary(max_size=200))
def test_no_body_raises_and_no_line_has_control_characters(body: bytes) -> None:
    assert all(len(line.splitlines()) <= 1 for line in pretty(body))
