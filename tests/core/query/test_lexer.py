"""Tokens of the filter language: fields, paths, and words that only look like one."""

from __future__ import annotations

import pytest

from mcpspy.core.query.lexer import ATOM, END, NOT, PATH, WORD, path_steps, tokenize


def atoms_of(text: str) -> list[tuple[str, str, str]]:
    """Return field, operator and value of the atoms."""
    return [(one.field, one.op, one.value) for token in tokenize(text) if (one := token.atom) is not None]


def test_every_token_has_its_position() -> None:
    text = ' -tool:"a b"  x'

    assert [(token.kind, text[token.start : token.end]) for token in tokenize(text)] == [
        (NOT, "-"),
        (ATOM, 'tool:"a b"'),
        (ATOM, "x"),
        (END, ""),
    ]


@pytest.mark.parametrize(
    ("text", "atoms"),
    [
        ("params.a=1", [(PATH, "=", "1")]),
        ("result[0].x:>=5", [(PATH, ">=", "5")]),
        ("params.a > 5", [(PATH, ">", "5")]),
        ('params["a b"].c!="d e"', [(PATH, "!=", "d e")]),
        ("error:timeout", [(PATH, ":", "timeout")]),
        # A field without a value is a word; so is a word before a comparison.
        ("result.json", [(WORD, ":", "result.json")]),
        ("error >1s", [(WORD, ":", "error"), ("<>", ">", "1s")]),
        ("errors/list", [(WORD, ":", "errors/list")]),
        ("http://example.com:8000", [(WORD, ":", "http://example.com:8000")]),
    ],
)
def test_a_path_is_a_path_only_with_a_value(text: str, atoms: list[tuple[str, str, str]]) -> None:
    assert atoms_of(text) == atoms


@pytest.mark.parametrize(
    ("path", "steps"),
    [
        ("", []),
        (".a.b-c.$d", ["a", "b-c", "$d"]),
        ("[0][-1][]", [0, -1, None]),
        ('.["a \\"b\\" \\\\"].0', ['a "b" \\', "0"]),
    ],
)
def test_a_path_has_its_steps(path: str, steps: list[str | int | None]) -> None:
    assert path_steps(path) == steps
