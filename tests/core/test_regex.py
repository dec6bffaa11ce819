"""Regular expressions of users: linear time, and what only Python's `re` can run."""

from __future__ import annotations

import re
import sys
import time
from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mcpspy.core.regex import RegexError, UnsupportedRegexError, _Re2Regex, compile_regex, glob_regex

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
        ("a[[:foo:]]", "invalid character class range [:foo:] is not supported (rewrite the pattern", 2),
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


def test_without_re2_a_pattern_runs_only_if_the_user_allows_unsafe_patterns(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "re2", None)

    with pytest.raises(
        UnsupportedRegexError, match=r"google-re2 is not installed \(install it, or use --unsafe-"
    ):
        compile_regex("a+")
    with pytest.raises(RegexError, match="unterminated"):
        compile_regex("a(b", allow)

    assert list(compile_regex("A+", allow, ignore_case=True).spans(b"xaab")) == [(1, 3)]


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


class CountedPattern:
    """A pattern of RE2 that counts the bytes that its searches may read."""

    def __init__(self, pattern: str) -> None:
        self._pattern = re.compile(pattern.encode())
        self.read = 0

    def finditer(self, text: bytes, at: int, end: int | None = None) -> Iterator[re.Match[bytes]]:
        end = len(text) if end is None else end
        while at <= end:
            self.read += end - at
            found = self._pattern.search(text, at, end)
            if found is None:
                return
            yield found
            at = found.end() + (found.end() == found.start())


def test_a_pattern_whose_matches_look_ahead_reads_twice_as_much_of_twice_the_text() -> None:
    read = []
    for size in (1 << 17, 1 << 18):
        pattern = CountedPattern("x")
        assert sum(1 for _ in _Re2Regex("x", pattern).spans(b"x    " * (size // 5))) == size // 5
        read.append(pattern.read)

    assert read[1] / read[0] < 2.5


@settings(deadline=None)
@given(st.lists(st.sampled_from(["x", "xyyy", " ", " " * 9000, "y" * 30, "\n"]), max_size=40), st.data())
def test_matches_are_those_of_a_search_of_the_whole_text(parts: list[str], data: st.DataObject) -> None:
    text = ("x " * data.draw(st.sampled_from([0, 60, 200])) + "".join(parts)).encode()
    regex = compile_regex(data.draw(st.sampled_from(["x", "xy*", "y{3}", "x|", "(x)y"])))
    assert isinstance(regex, _Re2Regex)

    assert list(regex.spans(text)) == [hit.span() for hit in regex._compiled.finditer(text)]


@given(st.text("ab*?.", max_size=8), st.text("ab.\n", max_size=12))
def test_a_glob_matches_as_its_backtracking_pattern_would(glob: str, text: str) -> None:
    wild = {"*": ".*", "?": "."}
    slow = "".join(wild.get(character) or re.escape(character) for character in glob)

    assert bool(glob_regex(glob).fullmatch(text)) is bool(re.fullmatch(slow, text, re.DOTALL))


def test_a_glob_with_many_stars_does_not_backtrack() -> None:
    began = time.monotonic()

    assert glob_regex("*a" * 20 + "b").fullmatch("a" * 20_000) is None
    assert time.monotonic() - began < 20
