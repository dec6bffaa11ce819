"""Strict JSON: the same verdict before and after msgspec is imported, in any pieces, and as three strict parsers."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpspy.core.recording import strict_json
from mcpspy.core.recording.encode import FrameEncoder
from mcpspy.core.recording.strict_json import MAX_DEPTH, WINDOW, are_strict, flaw, is_deep
from tests.strict import strict_json as strict_json_of

FRAGMENTS = st.sampled_from(
    [
        *(
            "{",
            "}",
            "[",
            "]",
            ",",
            ":",
            '"',
            "\\",
            "\\\\",
            '\\"',
            "\\u0041",
            "\\ud83d",
            "\\ude00",
            "\\x",
            "\\u00",
        ),
        *("a", "é", "\u2028", "\t", "\x00", "\x1f", "\x7f", " ", "\r", "null", "true", "NaN", "-Infinity"),
        *("0", "-", "1", "01", "1.5", "1e5", "1E+5", ".", "e", '"a"', '"a":1', '{"a":1}', "[1,2]", "[[]]"),
    ]
)
NESTED = st.recursive(
    st.sampled_from([1, None, "", "a", "[", "]", "{}", '"', "\\", '\\"]', "é\\"]),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["", "[", '}"']), inner, max_size=3)
    ),
)


def before(text: bytes) -> str | None:
    """Return the flaw that is found before msgspec is imported."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(strict_json, "_parsers", strict_json._Parsers())
        return flaw([text])


@pytest.fixture
def unloaded(monkeypatch: pytest.MonkeyPatch) -> None:
    """A process that has not imported msgspec."""
    monkeypatch.setattr(strict_json, "_parsers", strict_json._Parsers())


def is_strict(text: bytes) -> bool:
    """Return True if three strict parsers accept a text."""
    try:
        strict_json_of(text)
    except ValueError:
        return False
    return True


@given(
    st.lists(FRAGMENTS, max_size=12).map("".join),
    st.sampled_from(["{}", "[]", '{"":}', '[""]']),
    st.integers(0, 20),
)
def test_a_text_is_strict_if_three_strict_parsers_accept_it(inner: str, outer: str, cut: int) -> None:
    at = len(outer) // 2 + outer.startswith('{"')
    text = (outer[:at] + inner + outer[at:]).encode()
    expected = is_strict(text)
    assert (flaw([text]) is None) == (before(text) is None) == expected
    assert (flaw([text[:cut], bytearray(text[cut:])] if 0 < cut < len(text) else [text]) is None) == expected
    if text.startswith(b"{"):
        assert are_strict(b"{}\n" + text + b"\n{}\n", 3) == expected


@pytest.mark.parametrize("opener", ["[", '{"":', '{"[":"]}",\n"":', '["\\\\\\"[",', '[ "]]", '])
@pytest.mark.parametrize("levels", [MAX_DEPTH, MAX_DEPTH + 1, 400, 900, 10_000])
def test_nesting_is_limited(opener: str, levels: int) -> None:
    opener = opener.replace("\n", "")
    closer = "]" if opener[0] == "[" else "}"
    text = (opener * levels + "1" + closer * levels).encode()
    is_allowed = levels <= MAX_DEPTH
    assert (flaw([text]) is None) == (before(text) is None) == is_allowed
    if levels > MAX_DEPTH:
        assert flaw([text]) == f"nested deeper than {MAX_DEPTH} levels"
    line = b'{"":%b}\n' % text.replace(opener.encode(), b"", 1)[:-1]
    assert are_strict(b"{}\n" + line + line, 3) == is_allowed


@pytest.mark.parametrize("before", range(WINDOW - 400, WINDOW + 10, 9))
@pytest.mark.parametrize("levels", [MAX_DEPTH, MAX_DEPTH + 1])
def test_a_deep_line_is_found_anywhere_among_short_ones(before: int, levels: int) -> None:
    other = b'{"a":"%b"}\n' % (b"x" * 91)
    deep = b'{"a":%b}\n' % (b"[" * (levels - 1) + b"]" * (levels - 1))
    lines = other * (before // 100) + other.replace(b"x", b"", 91 - before % 100 % 91) + deep + other * 900
    assert are_strict(lines, lines.count(b"\n")) == (levels <= MAX_DEPTH)


@given(NESTED, st.integers(0, 12))
def test_depth_is_exact_whatever_the_strings_contain(value: object, more: int) -> None:
    def depth(value: object) -> int:
        items = value.values() if isinstance(value, dict) else value if isinstance(value, list) else None
        return 0 if items is None else 1 + max(map(depth, items), default=0)

    inner = depth(value)
    for limit in (MAX_DEPTH, MAX_DEPTH + 1 + more):
        wrapped = "[" * (limit - inner) + json.dumps(value) + "]" * (limit - inner)
        assert is_deep(wrapped.encode()) == (limit > MAX_DEPTH)


@pytest.mark.parametrize(
    "filler",
    [
        *("x" * 70_000, "\\n" * 40_000, "é" * 40_000, '","' * 30_000, "1"),
        *(
            ' \\\\ \\" [ ' * 9_001,
            " \\ud83d\\ude00 " * 6_001,
            " \\ud83d \\ude00" * 6_001,
            " \\x " * 20_001,
        ),
    ],
)
@pytest.mark.parametrize("end", ['"]', '\\ud800"]', '\t"]', '"}', "]"])
def test_large_texts_are_judged_alike_in_pieces(filler: str, end: str) -> None:
    text = ('["' + filler * 10 + end).encode()
    pieces = [text[at : at + 65_536] for at in range(0, len(text), 65_536)]
    assert (flaw(pieces) is None) == is_strict(text)


@pytest.mark.parametrize("filler", ["x", " \\n"])
@pytest.mark.parametrize("character", [*map(chr, range(34)), "\\", '\\"', "\x7f", "\u2028"])
def test_one_character_decides_about_a_large_text(filler: str, character: str) -> None:
    text = f'["{filler * 100_000}{character}{filler * 100_000}"]'.encode()
    pieces = [text[at : at + 65_536] for at in range(0, len(text), 65_536)]
    assert (flaw(pieces) is None) == is_strict(text)


def test_a_large_array_of_numbers_is_judged_alike_in_pieces() -> None:
    text = b"[" + b"1" * 100_000 + b",2" * 200_000 + b"]"
    pieces = [text[at : at + 65_536] for at in range(0, len(text), 65_536)]
    assert flaw(pieces) is None
    assert flaw([*pieces[:-1], b"x" * 2000, pieces[-1]]) is not None


def test_no_depth_is_an_error() -> None:
    """Python limits the recursion of msgspec somewhere near 1,000 levels, on some versions."""
    encoder = FrameEncoder("client")
    for levels in range(800, 1010):
        message = b'{"a":["\\n",%b]}' % (b"[" * levels + b"]" * levels)
        lines = encoder.feed(0.0, message + b"\n")
        assert not isinstance(lines, bytes)
        assert b"nested deeper than 120 levels" in b"".join(lines)
        assert not are_strict(message + b"\n" + message + b"\n", 2)


@pytest.mark.usefixtures("unloaded")
def test_the_first_messages_do_not_import_msgspec() -> None:
    encoder = FrameEncoder("client")
    for message in (
        b'{"jsonrpc":"2.0","id":1}\n',
        b"{ a: 1 }\n",
        b"[INFO] ready [x]\n",
        b'{"a":NaN}\n',
        b'{"a":1}}\n',
        b"[" * 2000 + b"]" * 2000 + b"\n",
        b'{"a":1}\n{"a":2}\n',
    ):
        lines = encoder.feed(0.0, message)
        assert isinstance(lines, bytes) or b"".join(lines)
    assert strict_json.decoder() is None


@pytest.mark.usefixtures("unloaded")
def test_many_messages_do() -> None:
    encoder = FrameEncoder("client")
    message = b'{"a":"%b"}\n' % (b"x" * 1000)
    for _ in range(strict_json.EARLY // 1000 + 2):
        assert encoder.feed(0.0, message) == b'{"t":0.000000,"from":"client","msg":' + message[:-1] + b"}\n"
    assert strict_json.decoder() is not None


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (b"{ a: 1 }", "not strict JSON: a key without quotes"),
        (b"[INFO] ready [x]", "not strict JSON: no value after ["),
        (b'{"a":1,b:2}', "not strict JSON: expected a quote (byte 7)"),
        (b'{"a":NaN}', "not strict JSON: invalid character (byte 5)"),
        (b'{"a":"\\ud800"}', "not strict JSON: an unfinished value, or a lone surrogate"),
        (b"[" * 200 + b"]" * 200, "nested deeper than 120 levels"),
    ],
)
def test_the_reason_is_given(text: bytes, reason: str) -> None:
    for cut in range(1, len(text)):
        assert flaw([text]) == flaw([text[:cut], text[cut:]]) == reason


@pytest.mark.parametrize("levels", [MAX_DEPTH - 2, MAX_DEPTH + 1])
@pytest.mark.parametrize("text", [" \\n " + "[{ \\" * 3000, " x" * 5000, "\\\\ [ "])
@pytest.mark.parametrize("at", range(0, 13, 3))
def test_depth_is_exact_beside_long_texts_with_brackets(levels: int, text: str, at: int) -> None:
    """Brackets between spaces could be the content of a string, too."""
    text = text.replace("[{ \\", '[{ \\"')
    nested = "[ " * levels + " 1, " * 3000 + "1" + " ]" * levels
    for value in (f'"{"-" * at}{text}",{nested}', f'{nested},"{"-" * at}{text}"'):
        line = f'{{"":[{value}]}}'.encode()
        assert json.loads(line)
        assert is_deep(line) == (levels > MAX_DEPTH)
        assert (flaw([line]) is None) == (flaw([line[:at], line[at:]]) is None) == (levels <= MAX_DEPTH)
