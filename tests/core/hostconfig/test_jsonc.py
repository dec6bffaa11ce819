"""Parser of JSON with comments."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpspy.core.hostconfig import jsonc
from mcpspy.core.hostconfig.tree import Node, NodeKind
from mcpspy.errors import UsageError
from tests.core.hostconfig.configs import walk

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=20,
)


def value(node: Node) -> object:
    if node.kind is NodeKind.OBJECT:
        return {member.key: value(member.node) for member in node.members}
    if node.kind is NodeKind.ARRAY:
        return [value(item.node) for item in node.items]
    return node.text if node.kind is NodeKind.STRING else json.loads(node.text)


@given(VALUES, st.sampled_from([None, 2]), st.booleans())
def test_it_reads_what_json_reads_and_every_span_is_of_its_value(
    made: object, indent: int | None, ascii_: bool
) -> None:
    text = json.dumps(made, indent=indent, ensure_ascii=ascii_)
    root = jsonc.read(text)

    assert value(root) == made
    for node in walk(root):
        assert value(node) == json.loads(text[node.start : node.end])


def test_comments_and_a_last_comma_are_passed_over() -> None:
    root = jsonc.read('\ufeff// a\n{ /* b */ "x" /*:*/ : // c\r\n [1, /* , */ 2,], "y": "//", }\n/* end */')

    assert value(root) == {"x": [1, 2], "y": "//"}


@pytest.mark.parametrize("text", ["", " \n", "\ufeff", "// nothing\n"])
def test_an_empty_file_is_an_empty_object(text: str) -> None:
    assert jsonc.read(text).kind is NodeKind.OBJECT
    assert jsonc.read(text).members == ()


@pytest.mark.parametrize(
    ("text", "where"),
    [
        ('{"a": 1', "line 1, column 8"),
        ('{"a" 1}', "line 1, column 6"),
        ('{\n  "a": nope}', "line 2, column 8"),
        ('{"a": 1 "b": 2}', "line 1, column 9"),
        ("{a: 1}", "line 1, column 2"),
        ('{"a": "\n"}', "line 1, column 7"),
        ('["\\x"]', "line 1, column 2"),
        ("{} {}", "line 1, column 4"),
        ("/* ", "line 1, column 1"),
        ("[,]", "line 1, column 2"),
        ("01", "line 1, column 2"),
        ("<<<<<<< HEAD", "line 1, column 1"),
        ("[" * 5000, "line 1, column 202"),
    ],
)
def test_invalid_json_is_reported_with_its_place(text: str, where: str) -> None:
    with pytest.raises(UsageError, match=f"^{where}: not JSON: "):
        jsonc.read(text)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ('{"a": "//", "b": ",]"}', []),
        ("\ufeff{}", ["it begins with a byte order mark"]),
        ("\ufeff ", ["it begins with a byte order mark", "it is empty"]),
        ('{\n  // old\n  "a": [1,],\n  /* b */ }', ["line 2, column 3: a comment", "line 3, column 10: a comma before a closing bracket"]),
        ('{"a": 1, // why\n}', ["line 1, column 8: a comma before a closing bracket", "line 1, column 10: a comment"]),
    ],
)  # fmt: skip
def test_extensions_of_json_are_named_with_their_places(text: str, found: list[str]) -> None:
    assert sorted(jsonc.extensions(text)) == sorted(found)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (r'{"a": "C:\Users"}', r"\U is not an escape: write \\ or / in a path of Windows"),
        ('{"a": "tok”}', 'the string is not closed: ” is a typographic quote, and not "'),
        ('{"a": "tok}', "the string is not closed"),
        ("{a: 1}", "expected a string"),
    ],
)
def test_the_reason_why_a_string_is_wrong_is_named(text: str, why: str) -> None:
    with pytest.raises(UsageError) as caught:
        jsonc.read(text)
    assert caught.value.args[0].endswith(f"not JSON: {why}")
