"""The filter language as a tree: what stands together, what is either, what is not.

Owns the grammar and every complaint about it. What a word is, is
`core.query.lexer`', what a field means `core.query.fields`'.

    either = all { ("or" | "|") all }
    all    = one { ["and"] one }
    one    = { "not" | "-" | "!" } ( "(" either ")" | atom )
    atom   = word | "words" | /regex/[i] | ( field | path ) op value | order number
    path   = [ "." ] ( "params" | "result" | "error" ) { "." name | [ "." ] "[" ( "name" | number | ) "]" }
    op     = ":" | "=" | "!=" | order      order = ">" | ">=" | "<" | "<="

The filter language: what a person types, as a predicate.

Owns `and`, `or` and `not`, and that what costs a read is asked last. How a
filter is written is `core.query.parser`'s, what a field means
`core.query.fields`'.
"""

from __future__ import annotations

from typing import NamedTuple, NoReturn, TypeAlias

from mcpspy.core.query.fields import atom, is_linted
from mcpspy.core.query.item import FilterItem, QueryPart, SessionEnd, Test
from mcpspy.core.query.lexer import AND, CLOSE, END, NOT, OPEN, OR, Atom, QueryError, Token, tokens_of

_DEEP = 50
"""Parentheses within parentheses: more would exhaust Python's stack, and nobody's patience."""


class Not(NamedTuple):
    """Negation."""

    part: Node


class AllOf(NamedTuple):
    """Conjunction of two parts or more."""

    parts: tuple[Node, ...]


class AnyOf(NamedTuple):
    """Disjunction of two parts or more."""

    parts: tuple[Node, ...]


Node: TypeAlias = Atom | Not | AllOf | AnyOf


def read(text: str) -> Node | None:
    """Return what a filter says, None if it is blank; raise QueryError."""
    tokens = tokens_of(text)
    return _Reader(tokens).read() if tokens[0].kind != END else None


class _Reader:
    """Tokens in, tree out."""

    def __init__(self, tokens: list[Token]) -> None:
        self._tokens = tokens
        self._at = 0
        self._depth = 0

    def read(self) -> Node:
        node = self._either()
        token = self._tokens[self._at]
        if token.kind == CLOSE:
            raise QueryError(") closes nothing", token.start, token.end)
        return node

    def _either(self) -> Node:
        parts = [self._all()]
        while self._tokens[self._at].kind == OR:
            self._at += 1
            parts.append(self._all())
        return AnyOf(tuple(parts)) if len(parts) > 1 else parts[0]

    def _all(self) -> Node:
        parts = [self._one()]
        while (kind := self._tokens[self._at].kind) not in (OR, CLOSE, END):
            self._at += kind == AND
            parts.append(self._one())
        return AllOf(tuple(parts)) if len(parts) > 1 else parts[0]

    def _one(self) -> Node:
        negated = False
        while self._tokens[self._at].kind == NOT:
            negated, self._at = not negated, self._at + 1
        token = self._tokens[self._at]
        if token.kind == OPEN:
            node = self._group(token)
        elif token.atom is not None:
            node, self._at = token.atom, self._at + 1
        else:
            self._missing(token)
        return Not(node) if negated else node

    def _group(self, opened: Token) -> Node:
        self._at += 1
        self._depth += 1
        if self._depth > _DEEP:
            raise QueryError(f"more than {_DEEP} parentheses within each other", opened.start, opened.end)
        closed = self._tokens[self._at]
        if closed.kind == CLOSE:
            raise QueryError("nothing between the parentheses", opened.start, closed.end)
        node = self._either() if closed.kind != END else None
        if node is None or self._tokens[self._at].kind != CLOSE:
            raise QueryError("( is never closed", opened.start, opened.end)
        self._at += 1
        self._depth -= 1
        return node

    def _missing(self, token: Token) -> NoReturn:
        """Complain that something should stand before this token."""
        before = self._tokens[self._at - 1] if self._at else None
        if before is not None and before.kind in (NOT, AND, OR):
            raise QueryError(f"{before.text} what?", before.start, before.end)
        if token.kind == CLOSE:
            raise QueryError(") closes nothing", token.start, token.end)
        raise QueryError(f"nothing before {token.text}", token.start, token.end)


__all__ = ["FilterItem", "Query", "QueryError", "parse"]


class Query:
    """A filter, ready to be asked."""

    __slots__ = ("_end", "asks_findings", "matches", "reads_text", "text")

    def __init__(
        self, text: str, matches: Test, reads_text: bool, end: SessionEnd, asks_findings: bool
    ) -> None:
        self.text = text
        """As it was typed."""
        self.matches = matches
        """Whether an item is wanted."""
        self.reads_text = reads_text
        """Whether it may ask for `Item.text()`, or `Item.message()`."""
        self.asks_findings = asks_findings
        """Whether it asks for `LintedItem.findings`."""
        self._end = end

    @property
    def counts_back(self) -> bool:
        """Whether it asks how long before the end something was, as `since:-5m` does: then the end should be said."""
        return self._end.is_asked

    @property
    def end(self) -> float | None:
        """Seconds from the start to where it counts back from; None: everything is the latest when it is asked about."""
        return self._end.at

    @end.setter
    def end(self, at: float | None) -> None:
        self._end.at = at


def parse(text: str, *, linted: bool = False) -> Query:
    """Return the filter; a blank one wants everything. Raise QueryError.

    `linted`: the items are `LintedItem`, so that it may ask for findings.
    """
    node, end = read(text), SessionEnd()
    compiler = _Compiler(end, linted=linted)
    part = QueryPart(lambda item: True, False) if node is None else compiler.part(node)
    return Query(text, part.test, part.reads, end, compiler.asks_findings)


class _Compiler:
    """Trees in, tests out."""

    def __init__(self, end: SessionEnd, *, linted: bool) -> None:
        self._end = end
        self._linted = linted
        self.asks_findings = False

    def part(self, node: Node) -> QueryPart:
        if isinstance(node, Atom):
            if is_linted(node):
                self.asks_findings = True
                if not self._linted:
                    node.fail("findings are not known here: mcpspy tui and mcpspy show --lint know them")
            part = atom(node, self._end)
            return _negated(part) if node.op == "!=" else part
        if isinstance(node, Not):
            return _negated(self.part(node.part))
        # What costs no read goes first; a sort is stable.
        parts = sorted(map(self.part, node.parts), key=lambda part: part.reads)
        tests, reads = [part.test for part in parts], parts[-1].reads
        return QueryPart(_all(tests) if isinstance(node, AllOf) else _either(tests), reads)


def _negated(part: QueryPart) -> QueryPart:
    test = part.test
    return QueryPart(lambda item: not test(item), part.reads)


def _all(tests: list[Test]) -> Test:
    if len(tests) == 2:
        one, two = tests
        return lambda item: one(item) and two(item)

    def test(item: FilterItem) -> bool:
        for each in tests:  # noqa: SIM110 - a generator costs more than most of the tests.
            if not each(item):
                return False
        return True

    return test


def _either(tests: list[Test]) -> Test:
    if len(tests) == 2:
        one, two = tests
        return lambda item: one(item) or two(item)

    def test(item: FilterItem) -> bool:
        for each in tests:  # noqa: SIM110
            if each(item):
                return True
        return False

    return test
