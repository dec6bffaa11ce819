"""The filter language: parse a filter into a tree, and compile the tree into a predicate.

Tests that take long run last. `core.query.lexer` makes the tokens, `core.query.fields` compiles
single conditions.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, NoReturn, TypeAlias

from mcpspy.core.query.fields import atom_test, uses_findings
from mcpspy.core.query.item import CompiledPart, FilterItem, QueryPart, SessionEnd, T, Test
from mcpspy.core.query.lexer import (
    AND,
    CLOSE,
    END,
    MESSAGE_FIELDS,
    NOT,
    OPEN,
    OR,
    Atom,
    FieldTable,
    QueryError,
    Token,
    tokenize,
)
from mcpspy.core.regex import AllowUnsafe, refuse

__all__ = ["FilterItem", "Query", "QueryError", "parse"]

_DEEP = 50
"""Maximum nesting depth of parentheses; more would exhaust Python's stack."""


class Not(NamedTuple):
    part: Node


class AllOf(NamedTuple):
    parts: tuple[Node, ...]


class AnyOf(NamedTuple):
    parts: tuple[Node, ...]


Node: TypeAlias = Atom | Not | AllOf | AnyOf


def parse_tree(text: str, fields: FieldTable = MESSAGE_FIELDS) -> Node | None:
    """Return the tree of a filter, None if it is blank; raise QueryError.

    or     = and { ("or" | "|") and }
    and    = not { ["and"] not }
    not    = { "not" | "-" | "!" } ( "(" or ")" | atom )
    atom   = word | "words" | /regex/[i] | ( field | path ) op value | order number
    path   = [ "." ] ( "params" | "result" | "error" ) { "." name | [ "." ] "[" ( "name" | number | ) "]" }
    op     = ":" | "=" | "!=" | order      order = ">" | ">=" | "<" | "<="
    """
    tokens = tokenize(text, fields)
    return _TreeParser(tokens).parse() if tokens[0].kind != END else None


class _TreeParser:
    def __init__(self, tokens: list[Token]) -> None:
        self._tokens = tokens
        self._at = 0
        self._depth = 0

    def parse(self) -> Node:
        node = self._or()
        token = self._tokens[self._at]
        if token.kind == CLOSE:
            raise QueryError("unmatched )", token.start, token.end)
        return node

    def _or(self) -> Node:
        parts = [self._and()]
        while self._tokens[self._at].kind == OR:
            self._at += 1
            parts.append(self._and())
        return AnyOf(tuple(parts)) if len(parts) > 1 else parts[0]

    def _and(self) -> Node:
        parts = [self._not()]
        while (kind := self._tokens[self._at].kind) not in (OR, CLOSE, END):
            self._at += kind == AND
            parts.append(self._not())
        return AllOf(tuple(parts)) if len(parts) > 1 else parts[0]

    def _not(self) -> Node:
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
            raise QueryError(f"parentheses are nested deeper than {_DEEP} levels", opened.start, opened.end)
        closed = self._tokens[self._at]
        if closed.kind == CLOSE:
            raise QueryError("empty parentheses", opened.start, closed.end)
        node = self._or() if closed.kind != END else None
        if node is None or self._tokens[self._at].kind != CLOSE:
            raise QueryError("unclosed (", opened.start, opened.end)
        self._at += 1
        self._depth -= 1
        return node

    def _missing(self, token: Token) -> NoReturn:
        """Raise QueryError for a missing operand before this token."""
        before = self._tokens[self._at - 1] if self._at else None
        if before is not None and before.kind in (NOT, AND, OR):
            raise QueryError(f"expected a condition after '{before.text}'", before.start, before.end)
        if token.kind == CLOSE:
            raise QueryError("unmatched )", token.start, token.end)
        raise QueryError(f"expected a condition before '{token.text}'", token.start, token.end)


class Query:
    """A compiled filter."""

    __slots__ = ("_end", "asks_findings", "matches", "reads_text", "text")

    def __reduce__(self) -> tuple[Callable[[str, bool], Query], tuple[str, bool]]:
        """Pickle the text: an unsafe regular expression in it was allowed before, and the end is set again."""
        return _restored, (self.text, self.asks_findings)

    def __init__(
        self, text: str, matches: Test, reads_text: bool, end: SessionEnd, asks_findings: bool
    ) -> None:
        self.text = text
        """The filter as typed."""
        self.matches = matches
        """The predicate."""
        self.reads_text = reads_text
        """True if it may call `FilterItem.text` or `FilterItem.message`."""
        self.asks_findings = asks_findings
        """True if it uses `LintFilterItem.findings`."""
        self._end = end

    @property
    def is_relative_to_end(self) -> bool:
        """Return True if it has a time relative to the end, like `since:-5m`: then set `end`."""
        return self._end.is_used

    @property
    def end(self) -> float | None:
        """Seconds from the start to the end of the session; None: each tested item is the latest."""
        return self._end.at

    @end.setter
    def end(self, at: float | None) -> None:
        self._end.at = at


def parse(text: str, *, linted: bool = False, allow_unsafe: AllowUnsafe = refuse) -> Query:
    """Return the filter; a blank one matches everything. Raise QueryError.

    `linted`: the items are `LintFilterItem`, so the filter may test findings. `allow_unsafe` decides on a
    regular expression that RE2 cannot run.
    """
    node, end = parse_tree(text), SessionEnd()
    compiler = _Compiler(end, allow_unsafe, linted=linted)
    part = QueryPart(lambda item: True, False) if node is None else compiled(node, compiler.atom)
    return Query(text, part.test, part.reads, end, compiler.asks_findings)


def _restored(text: str, is_linted: bool) -> Query:
    return parse(text, linted=is_linted, allow_unsafe=lambda *_: True)


class _Compiler:
    def __init__(self, end: SessionEnd, allow_unsafe: AllowUnsafe, *, linted: bool) -> None:
        self._end = end
        self._allow_unsafe = allow_unsafe
        self._linted = linted
        self.asks_findings = False

    def atom(self, atom: Atom) -> QueryPart:
        if uses_findings(atom):
            self.asks_findings = True
            if not self._linted:
                atom.fail("findings are available only in mcpspy tui and mcpspy show --lint")
        return atom_test(atom, self._end, self._allow_unsafe)


def compiled(node: Node, atom: Callable[[Atom], CompiledPart[T]]) -> CompiledPart[T]:
    """Return the test of a tree; `atom` compiles a single condition, without its negation."""
    if isinstance(node, Atom):
        part = atom(node)
        return _negated(part) if node.op == "!=" else part
    if isinstance(node, Not):
        return _negated(compiled(node.part, atom))
    # Tests that take long go last; the sort is stable.
    parts = sorted((compiled(part, atom) for part in node.parts), key=lambda part: part.reads)
    tests, reads = [part.test for part in parts], parts[-1].reads
    return CompiledPart(_all_test(tests) if isinstance(node, AllOf) else _any_test(tests), reads)


def _negated(part: CompiledPart[T]) -> CompiledPart[T]:
    test = part.test
    return CompiledPart(lambda item: not test(item), part.reads)


def _all_test(tests: list[Callable[[T], bool]]) -> Callable[[T], bool]:
    if len(tests) == 2:
        one, two = tests
        return lambda item: one(item) and two(item)

    def test(item: T) -> bool:
        for each in tests:  # noqa: SIM110 - a generator costs more than most of the tests.
            if not each(item):
                return False
        return True

    return test


def _any_test(tests: list[Callable[[T], bool]]) -> Callable[[T], bool]:
    if len(tests) == 2:
        one, two = tests
        return lambda item: one(item) or two(item)

    def test(item: T) -> bool:
        for each in tests:  # noqa: SIM110
            if each(item):
                return True
        return False

    return test
