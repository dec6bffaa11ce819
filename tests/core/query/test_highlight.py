"""The marks of a filter: what to show in a message that it matches."""

from __future__ import annotations

import pytest

from mcpspy.core.query.highlight import Mark, marks_of


@pytest.mark.parametrize(
    ("text", "marks"),
    [
        ("", []),
        ("text:needle", [Mark("needle")]),
        ('text:"a b"', [Mark(r"a\ b")]),
        ("/Ab+/ or /c/i", [Mark("Ab+", False), Mark("c", True)]),
        ("method:call", [Mark("call", path=("method",))]),
        ("tool:read_*", [Mark(path=("params", "name"))]),
        ("params.path:x", [Mark("x", path=("params", "path"))]),
        ("params.n>5", [Mark(path=("params", "n"))]),
        ('params.a[0]["b c"].d[]=x', [Mark(path=("params", "a", 0, "b c", "d", None))]),
        ("code:-32602", [Mark(path=("error", "code"))]),
        ("-text:needle", []),
        ("not (text:a or -text:b)", [Mark("b")]),
        ("method!=ping", []),
        ("-method!=ping", [Mark(path=("method",))]),
        (">200ms size>1kb lint:ENV kind:request", []),
    ],
)
def test_only_conditions_that_match_have_marks(text: str, marks: list[Mark]) -> None:
    assert marks_of(text) == marks


def test_a_word_is_marked_in_the_method_and_the_subject() -> None:
    assert {mark.path for mark in marks_of("echo")} >= {("method",), ("params", "name"), ("params", "uri")}
    assert {mark.pattern for mark in marks_of("echo")} == {"echo"}
