"""Searches in the bytes of a message, and the cache of results."""

from __future__ import annotations

import pytest

from mcpspy.core.query.parser import QueryError, parse
from mcpspy.core.query.values import _MAX_CACHED, _TestCache
from tests.core.query.querying import Row


@pytest.mark.parametrize(
    ("query", "data", "found"),
    [
        ("text:NEEDLE", b'{"a":"Needle"}', True),
        ("text:other", b'{"a":"Needle"}', False),
        ("text:123", b"[0,1234]", True),
        ('text:"say \\"hi\\""', rb'{"a":"say \"hi\""}', True),
        ('text:"\\"a\\":"', b'{"a":1}', True),
        ("text:ÉTÉ", '{"a":"été"}'.encode(), True),
        ("text:Été", rb'{"a":"\u00e9t\u00E9"}', True),
        ("text:été", b"ete", False),
        ("text:a*b", b"aXb", False),
        ("/N.+le/", b'{"a":"Needle"}', True),
        ("/n.+le/", b'{"a":"Needle"}', False),
        ("/n.+le/i", b'{"a":"Needle"}', True),
        ("/^.t.$/", "été".encode(), True),
        ("/^ét.$/", "été".encode(), True),
        ("/É/i", "été".encode(), True),
        ("/é/", b"\xff\xfe", False),
        ("text:/n.{4}E/i", b'{"a":"Needle"}', True),
    ],
)
def test_the_text_is_searched_as_it_was_on_the_wire(query: str, data: bytes, found: bool) -> None:
    assert parse(query).matches(Row(data=data)) is found
    assert parse(query).reads_text


@pytest.mark.parametrize(
    ("text", "message", "underlined"),
    [
        ("text=x", "text needs a colon: write text:x", "x"),
        ("a /b(c/", "invalid regex: missing ), unterminated subpattern", "("),
        ("/*/", "invalid regex: nothing to repeat", "*"),
        ("x /a(?=b)/", "look-ahead (?= is not supported (rewrite the pattern, or use --unsafe-regex)", "("),
        (
            "/a{99999999999999999999}/",
            "invalid regex: the repetition number is too large",
            "/a{99999999999999999999}/",
        ),
    ],
)
def test_an_invalid_pattern_is_one_line_with_a_position(text: str, message: str, underlined: str) -> None:
    with pytest.raises(QueryError) as caught:
        parse(text)

    assert str(caught.value) == message
    assert text[caught.value.start : caught.value.end] == underlined


def test_a_text_test_runs_once_per_text_and_its_cache_is_bounded() -> None:
    tested: list[str] = []

    def ask(text: str) -> bool:
        tested.append(text)
        return text.endswith("9")

    remembered = _TestCache(ask)
    for _ in range(3):
        assert remembered["a9"] is True
        assert remembered["b"] is False
    assert tested == ["a9", "b"]

    for number in range(2 * _MAX_CACHED):
        assert remembered[str(number)] is str(number).endswith("9")
        assert len(remembered) <= _MAX_CACHED


def test_a_text_that_folds_to_ascii_is_found_unchanged() -> None:
    for word in ("ß", "Straße", "\ufb01"):
        assert parse(f"text:{word}").matches(Row(data=f"a {word} b".encode()))
    assert parse("text:Straße").matches(Row(data=b"STRASSE"))


def test_a_pattern_that_re2_cannot_run_needs_a_permission() -> None:
    asked: list[tuple[str, str]] = []

    def allow(pattern: str, construct: str) -> bool:
        asked.append((pattern, construct))
        return True

    query = parse("/a(?=b)/ or text:/x/", allow_unsafe=allow)

    assert asked == [("a(?=b)", "look-ahead (?=")]
    assert query.matches(Row(data=b"ab"))
    assert not query.matches(Row(data=b"ac"))


def test_a_pattern_that_never_ends_in_python_ends() -> None:
    assert not parse("/(a+)+$/").matches(Row(data=b"a" * 1_000_000 + b"!"))
    assert not parse("uri:" + "*a" * 20 + "b").matches(Row(method="resources/read", subject="a" * 10_000))
