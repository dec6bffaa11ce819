"""Regular expressions of users: linear time, and what only Python's `re` can run."""

from __future__ import annotations

import re
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpspy.core.regex import RegexError, UnsupportedRegexError, compile_regex, glob_regex

CATASTROPHE = "(a+)+$"


def allow(_pattern: str, _construct: str) -> bool:
    return True


def test_a_pattern_that_would_hang_in_python_is_searched_in_linear_time() -> None:
    regex = compile_regex(CATASTROPHE)
    text = b"a" * 2_000_000 + b"!"
    began = time.monotonic()

    assert not regex.is_in(text)
    assert list(regex.group_spans(text)) == []
    assert time.monotonic() - began < 20  # Python's `re` would take 2 ** 2,000,000 steps.


@pytest.mark.parametrize(
    ("pattern", "message", "at"),
    [
        ("a(?=b)", "look-ahead (?= is not supported (rewrite the pattern, or use --unsafe-regex)", 1),
        ("(?!b)", "look-ahead (?! is not supported", 0),
        ("(?<=b)a", "look-behind (?<= is not supported", 0),
        ("ab(?<!b)", "look-behind (?<! is not supported", 2),
        (r"(a)\1", r"back-reference \1 is not supported", 3),
        ("(?P<x>a)(?P=x)", "back-reference (?P= is not supported", 8),
        ("(?>a)", "atomic group (?> is not supported", 0),
        ("a++", "possessive quantifier ++ is not supported", 1),
        ("(a)?(?(1)b|c)", "conditional group (?( is not supported", 4),
        ("(?#c)a", "comment (?# is not supported (remove it, or use --unsafe-regex)", 0),
        ("(?x) a", "flag (?x is not supported", 0),
        (r"a\Z", r"\Z is not supported (use \z, or use --unsafe-regex)", 1),
        (r"\u20ac", r"escape \u is not supported (use \x{20AC}, or use --unsafe-regex)", 0),
        ("a{2000}", "repetition of more than 1000 {2000} is not supported", 1),
    ],
)
def test_a_pattern_that_re2_cannot_run_is_an_error_that_names_the_construct(
    pattern: str, message: str, at: int
) -> None:
    with pytest.raises(UnsupportedRegexError) as caught:
        compile_regex(pattern)

    assert str(caught.value).startswith(message)
    assert caught.value.at == at
    compile_regex(pattern, allow)


@pytest.mark.parametrize(
    ("pattern", "message"),
    [
        ("a(b", "missing ), unterminated subpattern"),
        ("*", "nothing to repeat"),
        ("a{99999999999999999999}", "the repetition number is too large"),
        ("a\ud800", "not UTF-8"),
    ],
)
def test_an_invalid_pattern_is_an_error_even_if_python_may_run_it(pattern: str, message: str) -> None:
    with pytest.raises(RegexError, match=re.escape(message)) as caught:
        compile_regex(pattern, allow)

    assert not isinstance(caught.value, UnsupportedRegexError)


def test_only_patterns_that_re2_cannot_run_are_asked_about() -> None:
    asked: list[tuple[str, str]] = []

    def note(pattern: str, construct: str) -> bool:
        asked.append((pattern, construct))
        return True

    compile_regex(CATASTROPHE, note)
    compile_regex("a(?=b)", note)

    assert asked == [("a(?=b)", "look-ahead (?=")]


def test_bytes_are_read_as_utf_8_and_classes_are_ascii() -> None:
    assert compile_regex("^.t.$").is_in("été".encode())
    assert compile_regex("É", ignore_case=True).is_in("é".encode())
    assert not compile_regex(".").is_in(b"\xff")
    assert compile_regex("a.?b").is_in(b"\xffab\xff")
    assert not compile_regex(r"\d|\w").is_in("٣é".encode())
    assert not compile_regex("a$").is_in(b"a\n")
    assert compile_regex("^b$", multiline=True).is_in(b"a\nb\nc")


@pytest.mark.parametrize("unsafe", ["", "(?=)"], ids=["re2", "re"])
@pytest.mark.parametrize("pattern", ["b", "é", "(b)|é"])
def test_positions_are_those_of_the_bytes_or_of_the_characters(pattern: str, unsafe: str) -> None:
    regex, text = compile_regex(pattern + unsafe, allow), "aé€bé"
    found = [hit.span() for hit in re.finditer(pattern, text)]
    in_bytes = [(len(text[:start].encode()), len(text[:end].encode())) for start, end in found]

    assert list(regex.text_spans(text)) == found
    assert list(regex.spans(text.encode())) == in_bytes
    assert list(regex.group_spans(text.encode())) == in_bytes
    assert list(regex.spans(text.encode(), 3)) == [span for span in in_bytes if span[0] >= 3]
    assert regex.is_in(text.encode())


def test_a_group_replaces_the_match_if_it_took_part() -> None:
    for unsafe in ("", "(?=)"):
        regex = compile_regex(r"id-(\d+)|x" + unsafe, allow)
        assert list(regex.group_spans("é id-42 x".encode())) == [(6, 8), (9, 10)]


@given(st.text("ab*?.", max_size=8), st.text("ab.\n", max_size=12))
def test_a_glob_matches_as_its_backtracking_pattern_would(glob: str, text: str) -> None:
    wild = {"*": ".*", "?": "."}
    slow = "".join(wild.get(character) or re.escape(character) for character in glob)

    assert bool(glob_regex(glob).fullmatch(text)) is bool(re.fullmatch(slow, text, re.DOTALL))


def test_a_glob_with_many_stars_does_not_backtrack() -> None:
    began = time.monotonic()

    assert glob_regex("*a" * 20 + "b").fullmatch("a" * 20_000) is None
    assert time.monotonic() - began < 20
