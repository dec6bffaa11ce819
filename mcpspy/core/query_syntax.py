"""The filter language as a tree: what stands together, what is either, what is not.

Owns the grammar and every complaint about it. What a word is, is
`core.query_tokens`', what a field means `core.query_fields`'.

    either = all { ("or" | "|") all }
    all    = one { ["and"] one }
    one    = { "not" | "-" | "!" } ( "(" either ")" | atom )
    atom   = word | "words" | /regex/[i] | ( field | path ) op value | order number
    path   = [ "." ] ( "params" | "result" | "error" ) { "." name | [ "." ] "[" ( "name" | number | ) "]" }
    op     = ":" | "=" | "!=" | order      order = ">" | ">=" | "<" | "<="
"""

from __future__ import annotations

from typing import NamedTuple, NoReturn, TypeAlias

from mcpspy.core.query_tokens import (
    AND,
    CLOSE,
    END,
    NOT,
    OPEN,
    OR,
    Atom,
    QueryError,
    Token,
    tokens_of,
)

_DEEP = 50
"""Parentheses within parentheses: more would exhaust Python's stack, and nobody's patience."""


class Not(NamedTuple):
    """Negation."""

    part: Node


class All(NamedTuple):
    """Conjunction of two parts or more."""

    parts: tuple[Node, ...]


class Either(NamedTuple):
    """Disjunction of two parts or more."""

    parts: tuple[Node, ...]


Node: TypeAlias = Atom | Not | All | Either


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
        return Either(tuple(parts)) if len(parts) > 1 else parts[0]

    def _all(self) -> Node:
        parts = [self._one()]
        while (kind := self._tokens[self._at].kind) not in (OR, CLOSE, END):
            self._at += kind == AND
            parts.append(self._one())
        return All(tuple(parts)) if len(parts) > 1 else parts[0]

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
