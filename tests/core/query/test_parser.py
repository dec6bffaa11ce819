"""Syntax of the filter language: the tree of a filter, and errors with positions."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpspy.core.query.lexer import FIELDS, REGEX, WORD, Atom, QueryError
from mcpspy.core.query.parser import AllOf, AnyOf, Node, Not, parse_tree

# Tokens with a meaning, more often than by chance.
PIECES = st.sampled_from(
    r"""  ( ) | - ! " \ / and or not method: lat > < = 200ms tool:x status: is:slow size> 1m text: code= file:///x * ? é /i id=""".split(
        " "
    )
)
TYPED = st.one_of(
    st.text(), st.lists(PIECES).map("".join), st.lists(st.one_of(PIECES, st.text(max_size=3))).map("".join)
)


BAD_STEP = 'bad step: use .name, ["any name"], [0], [-1] or []'


def shape(node: Node | None) -> str:
    """Return the tree as text."""
    match node:
        case None:
            return ""
        case Atom():
            return f"{node.field}{node.op}{node.value}" if node.field != WORD else node.value
        case Not(part):
            return f"-{shape(part)}"
        case AllOf(parts):
            return "(" + " ".join(map(shape, parts)) + ")"
        case AnyOf(parts):
            return "(" + " | ".join(map(shape, parts)) + ")"


@pytest.mark.parametrize(
    ("text", "tree"),
    [
        ("", ""),
        (" \t\n", ""),
        ("a", "a"),
        ("a b c", "(a b c)"),
        ("a and b & c && d", "(a b c d)"),
        ("a or b | c || d", "(a | b | c | d)"),
        ("a b or c d", "((a b) | (c d))"),
        ("a (b or c)", "(a (b | c))"),
        ("((a))", "a"),
        ("a|b", "(a | b)"),
        ("-a !b not c NOT d", "(-a -b -c -d)"),
        ("--a", "a"),
        ("-(a or b)", "-(a | b)"),
        ("not a AND b OR c", "((-a b) | c)"),
        ('"and" "a b" a"b', '(and a b a"b)'),
        (r'"say \"hi\" to c:\\x\n"', r'say "hi" to c:\x\n'),
        ("tools/call a-b a!b a&b", "(tools/call a-b a!b a&b)"),
        ("file:///x test://y note://z text://t", "(file:///x test://y note://z text://t)"),
        ('"a=b" "urn:isbn:1" 12:30', "(a=b urn:isbn:1 12:30)"),
        ("Method:x METHOD=y method!=z", "(method:x method=y method!=z)"),
        ("about:x target:x resource:y side:c session:1", "(subject:x subject:x uri:y dir:c stream:1)"),
        ("uri:file:///x", "uri:file:///x"),
        ('tool:"a b"', "tool:a b"),
        ("dir:-> dir:<-", "(dir:-> dir:<-)"),
        (">200ms <= 1s", "(<>>200ms <><=1s)"),
        ("->200ms", "-<>>200ms"),
        ("lat>1s latency > 1s latency:>=1s", "(latency>1s latency>1s latency>=1s)"),
        ("size = 5 code:-32602", "(size=5 code:-32602)"),
        ("time of day", "(time of day)"),
        ("/a b/ /c/i", "(/a b /ic)"),
        ("/tools/call/ /a\\/b/", r"(/tools/call /a\/b)"),
        ("(/x/)", "/x"),
        ("text:/a.b/i text:/etc/passwd", "(/ia.b text:/etc/passwd)"),
    ],
)
def test_a_filter_is_parsed_as_intended(text: str, tree: str) -> None:
    assert shape(parse_tree(text)) == tree


@pytest.mark.parametrize(
    ("text", "message", "underlined"),
    [
        ("method:", "expected a value after 'method:'", "method:"),
        ("a lat>", "expected a value after 'lat>'", "lat>"),
        ("latency > ", "expected a value after 'latency>'", "latency > "),
        ("method: x", "expected a value after 'method:'", "method:"),
        (">", "expected a value after '>', like >200ms or >10kb", ">"),
        (
            "a tools:x",
            "unknown field tools: did you mean tool:? Put a word that contains : in quotes",
            "tools",
        ),
        (
            "statsu=x",
            "unknown field statsu: did you mean status=? Put a word that contains = in quotes",
            "statsu",
        ),
        (
            "a foo:bar",
            f"unknown field foo: the fields are {', '.join(dict.fromkeys(FIELDS.values()))}. Put a word that contains : in quotes",
            "foo",
        ),
        (
            "Content-Type!=x",
            f"unknown field Content-Type: the fields are {', '.join(dict.fromkeys(FIELDS.values()))}. Put a word that contains != in quotes",
            "Content-Type",
        ),
        ("tool:a method = x", "expected a field before '=', without a blank between", "="),
        ("!=ok", "expected a field before '=', without a blank between", "="),
        ("params.", BAD_STEP, "."),
        ("a params..b", BAD_STEP, "..b"),
        ("params.a[", BAD_STEP, "["),
        ("params.a[x]:1", BAD_STEP, "[x]:1"),
        ("error...", BAD_STEP, "..."),
        ("params.a : b", "expected a field before ':', without a blank between", ":"),
        (
            "Params.a=1",
            "unknown member Params: did you mean params? Put a word that contains : or = in quotes",
            "Params",
        ),
        (
            "example.com:8000",
            "unknown member example: a path begins with params, result or error. Put a word that contains : or = in quotes",
            "example",
        ),
        ("a (b", "unclosed (", "("),
        ("(", "unclosed (", "("),
        ("a) b", "unmatched )", ")"),
        (")", "unmatched )", ")"),
        ("a ( ) b", "empty parentheses", "( )"),
        ("a or", "expected a condition after 'or'", "or"),
        ("a and or b", "expected a condition after 'and'", "and"),
        ("-", "expected a condition after '-'", "-"),
        ("(not)", "expected a condition after 'not'", "not"),
        ("or a", "expected a condition before 'or'", "or"),
        ("(| a)", "expected a condition before '|'", "|"),
        ('a "b', "unclosed quote", '"b'),
        ('tool:"b c', "unclosed quote", '"b c'),
        ('""', "empty quotes: expected a value", '""'),
        ("/etc/passwd", "unclosed regex: end it with /, or put a path in quotes", "/etc/passwd"),
        ("(" * 51 + "a", "parentheses are nested deeper than 50 levels", "("),
    ],
)
def test_an_error_is_one_line_with_a_position(text: str, message: str, underlined: str) -> None:
    with pytest.raises(QueryError) as caught:
        parse_tree(text)

    assert str(caught.value) == message
    assert text[caught.value.start : caught.value.end] == underlined


def test_a_close_misspelling_before_slashes_is_a_scheme() -> None:
    assert shape(parse_tree("methods://x")) == "methods://x"


def refused(text: str) -> QueryError | None:
    """Return the error of a filter."""
    try:
        parse_tree(text)
    except QueryError as error:
        return error
    return None


@given(TYPED)
def test_any_text_is_parsed_or_rejected_with_a_position(text: str) -> None:
    error = refused(text)

    assert error is None or 0 <= error.start <= error.end <= len(text)


@pytest.mark.parametrize(
    "text", ["-" * 100_000 + "a", "a " * 100_000, "a|" * 100_000 + "a", "(" * 100_000, '"' * 99_999]
)
def test_a_very_long_filter_exhausts_no_stack(text: str) -> None:
    error = refused(text)

    assert error is None or error.end <= len(text)


@given(st.text(min_size=1))
def test_a_quoted_word_is_the_text_between_the_quotes(word: str) -> None:
    escaped = word.replace("\\", "\\\\").replace('"', '\\"')
    atom = parse_tree(f'"{escaped}"')

    assert isinstance(atom, Atom)
    assert (atom.field, atom.value) == (WORD, word)


def test_a_regex_has_its_flag_in_place_of_an_operator() -> None:
    atom = parse_tree("/A/i")

    assert isinstance(atom, Atom)
    assert (atom.field, atom.op, atom.value, atom.raw) == (REGEX, "i", "A", "/A/i")
