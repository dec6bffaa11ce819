"""The colours of a line of JSON."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpspy.ui.tui.detail.document import pieces, redacted, spans


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ('  "a": "b",', [('"a"', "key"), ('"b"', "string")]),
        ('  "a:b": -1.5E+7,', [('"a:b"', "key"), ("-1.5E+7", "number")]),
        ('  "a\\"b": true', [('"a\\"b"', "key"), ("true", "word")]),
        ('  "12 true"', [('"12 true"', "string")]),
        (
            '  "cut off in the midd… 7 more characters',
            [('"cut off in the midd… 7 more characters', "string")],
        ),
        ('  "cut at a backslash\\', [('"cut at a backslash\\', "string")]),
        ("  ],", []),
    ],
)
def test_keys_strings_numbers_and_words(line: str, found: list[tuple[str, str]]) -> None:
    assert [(line[span.start : span.end], span.role) for span in spans(line)] == found


def test_redaction_placeholders_override_other_colours() -> None:
    line = '  "a": "x [redacted:00c0ffee] y", [redacted:x]'
    assert [(line[span.start : span.end], span.role) for span in redacted(line, spans(line))] == [
        ('"a"', "key"),
        ('"x ', "string"),
        ("[redacted:00c0ffee]", "redacted"),
        (' y"', "string"),
    ]
    assert redacted("plain", []) == []


@given(st.text(), st.integers(0, 20), st.integers(0, 20))
def test_pieces_are_the_text_they_were_cut_from(line: str, start: int, length: int) -> None:
    end = min(start + length, len(line))

    assert "".join(text for text, _ in pieces(line, start, end, spans(line))) == line[start:end]
