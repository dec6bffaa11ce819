"""The text of a JSON string, and the position of its characters in the bytes."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpspy.core.redact.text import UnescapedText, escape


@given(st.text(), st.booleans())
def test_the_text_and_the_positions_of_its_characters_are_those_of_json(text: str, ascii_only: bool) -> None:
    raw = json.dumps(text, ensure_ascii=ascii_only)[1:-1].encode("utf-8", "surrogatepass")
    unescaped = UnescapedText(raw)
    assert unescaped.text == text.encode("utf-8", "surrogatepass")
    at = 0
    for character in json.loads(f'"{raw.decode("utf-8", "surrogatepass")}"'):
        size = len(character.encode("utf-8", "surrogatepass"))
        part = raw[unescaped.raw(at) : unescaped.raw(at + size)]
        assert UnescapedText(part).text == unescaped.text[at : at + size]
        at += size
    assert unescaped.raw(at) == len(raw)


@pytest.mark.parametrize("raw", [rb"\x", rb"\u12", b"\\", rb"\ud83d", rb"\ude00\ud83d", b"\xff\\n"])
def test_invalid_escapes_are_unchanged(raw: bytes) -> None:
    unescaped = UnescapedText(raw)
    assert unescaped.raw(0) == 0
    assert unescaped.raw(len(unescaped.text)) == len(raw)


@given(st.text(st.characters(min_codepoint=32, exclude_categories=["Cs"])))
def test_escaped_text_is_read_back(text: str) -> None:
    assert UnescapedText(escape(text.encode())).text == text.encode()
