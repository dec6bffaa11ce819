"""The matches of a filter in the sections of a message."""

from __future__ import annotations

import pytest

from mcpspy.ui.tui.detail.search import FilterSearch
from mcpspy.ui.tui.detail.views import json_section, text_section

CALL = b'{"method":"tools/call","id":7,"params":{"name":"echo","arguments":{"path":"/x/echo","a":[{"b":1},{"b":"x"}]}}}'
ERROR = b'{"id":7,"error":{"code":-32602,"message":"no x, y"}}'


def marked(filter_text: str, data: bytes) -> list[str]:
    """Return the marked parts of the lines, and check that there is a hit for each."""
    section = json_section([], data)
    matches = FilterSearch(filter_text).of(section)
    source, found = section.source, []
    for number in range(len(source)):
        line = source[number]
        found += [line[start:end] for start, end, _ in matches.spans(line, "hit", source.start(number))]
    assert len(list(matches.find(source.text))) == len(found)
    return found


@pytest.mark.parametrize(
    ("text", "data", "parts"),
    [
        ("echo", CALL, ["echo"]),
        ("tools", CALL, ["tools"]),
        ("text:ECHO", CALL, ["echo", "echo"]),
        ("/e[c]ho/", CALL, ["echo", "echo"]),
        ("params.arguments.path:x", CALL, ["x"]),
        ("params.arguments.path:*", CALL, ['"/x/echo"']),
        ("params.arguments:x", CALL, ["x", "x"]),
        ("params.arguments.a[].b=1", CALL, ["1", '"x"']),
        ("params.arguments.a[1].b:x", CALL, ["x"]),
        ("params.arguments.a[-1].b:x", CALL, ["x"]),
        ("params.other:x", CALL, []),
        ("id:7", CALL, ["7"]),
        ("code:-32602", ERROR, ["-32602"]),
        ("is:problem", ERROR, ['"no x, y"']),
        ("echo -text:x", CALL, ["echo"]),
        ("is:slow", CALL, []),
    ],
)
def test_a_filter_marks_what_it_tests(text: str, data: bytes, parts: list[str]) -> None:
    assert marked(text, data) == parts


def test_a_path_marks_the_string_that_is_shown_as_text() -> None:
    search = FilterSearch("params.text:b")
    shown = text_section([], b"a\nb", "/params/text")
    assert list(search.of(shown).find(shown.source.text)) == [2]
    assert search.of(shown).spans("b", "hit", 2) == [(0, 1, "hit")]
    other = text_section([], b"a\nb", "/params/other")
    assert list(search.of(other).find(other.source.text)) == []


def test_a_filter_without_marks_is_false() -> None:
    assert not FilterSearch("is:slow >1s")
    assert FilterSearch("text:x")
