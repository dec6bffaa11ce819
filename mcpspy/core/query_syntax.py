"""The filter language as text: words, fields, operators, and where each of them stands.

Owns the grammar and every complaint about it. Refuses to know what a field
means: that is `core.query`'s.

    either = all { ("or" | "|") all }
    all    = one { ["and"] one }
    one    = { "not" | "-" | "!" } ( "(" either ")" | atom )
    atom   = word | "words" | /regex/[i] | field op value | order number
    op     = ":" | "=" | "!=" | order      order = ">" | ">=" | "<" | "<="
"""

from __future__ import annotations

import difflib
import re
from typing import NamedTuple, NoReturn, TypeAlias

from mcpspy.errors import UsageError

FIELDS = {
    "method": "method",
    "subject": "subject",
    "about": "subject",
    "tool": "tool",
    "prompt": "prompt",
    "uri": "uri",
    "resource": "uri",
    "id": "id",
    "dir": "dir",
    "side": "dir",
    "from": "dir",
    "kind": "kind",
    "note": "note",
    "status": "status",
    "is": "is",
    "stream": "stream",
    "session": "stream",
    "text": "text",
    "latency": "latency",
    "lat": "latency",
    "size": "size",
    "time": "time",
    "code": "code",
}
"""Every name of a field, and the field."""

NUMBERS = ("latency", "size", "time", "code")
"""Fields that are numbers, and so have an order."""

WORD, REGEX, ORDER = "", "/", "<>"
"""In place of a field: what stands alone."""

_DEEP = 50
"""Parentheses within parentheses: more would exhaust Python's stack, and nobody's patience."""


class QueryError(UsageError):
    """What is wrong with a filter, and where: `text[start:end]`."""

    def __init__(self, message: str, start: int, end: int) -> None:
        super().__init__(message)
        self.start = start
        self.end = end


class Atom(NamedTuple):
    """The least that can be true of an item."""

    field: str
    """One of FIELDS' values, or WORD, REGEX, ORDER."""
    name: str
    """The field as it was written."""
    op: str
    """`:`, `=`, `!=`, `>` …; of a regex: its flags."""
    value: str
    raw: str
    """The value as it was written, quotes included."""
    start: int
    """Where the value stands."""
    end: int

    @property
    def is_quoted(self) -> bool:
        """Whether the value is meant as it stands."""
        return self.raw.startswith('"')

    def fail(self, message: str) -> NoReturn:
        """Refuse the value."""
        raise QueryError(message, self.start, self.end)


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
    tokens = _tokens(text)
    return _Reader(tokens).read() if tokens[0].kind != _END else None


class _Token(NamedTuple):
    kind: str
    text: str
    start: int
    end: int
    atom: Atom | None = None


_ATOM, _END, _NOT, _AND, _OR, _OPEN, _CLOSE = "atom", "", "not", "and", "or", "(", ")"

_SIGNS = {
    "(": _OPEN,
    ")": _CLOSE,
    "-": _NOT,
    "!": _NOT,
    "|": _OR,
    "||": _OR,
    "&": _AND,
    "&&": _AND,
    "not": _NOT,
    "and": _AND,
    "or": _OR,
}

_SPACE = re.compile(r"\s*")
_SIGN = re.compile(r"[()!-]|\|\|?|&&?")
_RUN = re.compile(r"[^\s()|]*")
_ORDER = re.compile(r"[<>]=?")
_FIELD = re.compile(r"([a-z]+)(\s*)(:?(?:[<>]=?|!?=)|:)", re.IGNORECASE)
_QUOTED = re.compile(r'"((?:[^"\\]|\\.)*)"', re.DOTALL)
_ESCAPED = re.compile(r'\\(["\\])')
# A slash within a path does not end a regex: `/tools/call/` is one.
_REGEX = re.compile(r"/((?:[^/\\]|\\.|/(?!i?(?:[\s)|]|\Z)))+)/(i?)(?=[\s)|]|\Z)", re.DOTALL)


def _tokens(text: str) -> list[_Token]:
    """Return the tokens; the last is the end."""
    tokens, at = [], _skip(text, 0)
    while at < len(text):
        token = _token(text, at)
        tokens.append(token)
        at = _skip(text, token.end)
    return [*tokens, _Token(_END, "", len(text), len(text))]


def _token(text: str, at: int) -> _Token:
    first = text[at]
    if sign := _SIGN.match(text, at):
        return _Token(_SIGNS[sign[0]], sign[0], at, sign.end())
    if first == '"':
        return _atom(text, at, _value(text, at, WORD, "", ":"))
    if first == "/":
        if (regex := _regex(text, at)) is None:
            raise QueryError("/ is never closed: a regex ends in /, a path needs quotes", at, len(text))
        return _atom(text, at, regex)
    if order := _ORDER.match(text, at):
        atom = _value(text, _skip(text, order.end()), ORDER, "", order[0])
        if not atom.raw:
            raise QueryError(f"{order[0]} what? As in {order[0]}200ms or {order[0]}10kb", *order.span())
        return _atom(text, at, atom)
    if (found := _FIELD.match(text, at)) and (field := _field(text, found)):
        return _atom(text, at, field)
    atom = _value(text, at, WORD, "", ":")
    if (kind := _SIGNS.get(atom.value.lower())) is not None:
        return _Token(kind, atom.value, at, atom.end)
    return _atom(text, at, atom)


def _atom(text: str, at: int, atom: Atom) -> _Token:
    return _Token(_ATOM, text[at : atom.end], at, max(atom.end, at + 1), atom)


def _field(text: str, found: re.Match[str]) -> Atom | None:
    """Return a field with its value; None if this is a word: `file:///x`, `a=b`."""
    name, space, op = found.groups()
    if text.startswith("://", found.end(1)):
        return None
    field = FIELDS.get(name.lower())
    if field is None:
        near = difflib.get_close_matches(name.lower(), FIELDS, 1, 0.8)
        if near and not space:
            raise QueryError(
                f"unknown field {name}: did you mean {near[0]}{op}? A word with {op} in it may stand in quotes",
                *found.span(1),
            )
        return None
    after = found.end()
    if field in NUMBERS:
        if space and op.startswith(":"):
            return None
        if op != ":":  # `latency > 1s`, and `latency:>1s` as elsewhere on the net.
            op, after = op.removeprefix(":"), _skip(text, after)
    elif space:
        return None
    elif op.startswith(":"):  # What follows is the value's: `dir:<-`.
        op, after = ":", found.end(2) + 1
    if field == "text" and (regex := _regex(text, after)):
        return regex
    atom = _value(text, after, field, name, op)
    if not atom.raw:
        raise QueryError(f"{name}{op} what?", found.start(), after)
    return atom


def _value(text: str, at: int, field: str, name: str, op: str) -> Atom:
    """Return the atom whose value stands here: quoted, or up to the next blank."""
    if not text.startswith('"', at):
        end = _run(text, at)
        return Atom(field, name, op, text[at:end], text[at:end], at, end)
    quoted = _QUOTED.match(text, at)
    if quoted is None:
        raise QueryError('" is never closed', at, len(text))
    value = _ESCAPED.sub(r"\1", quoted[1])
    if not value and op == ":":
        raise QueryError("nothing between the quotes", *quoted.span())
    return Atom(field, name, op, value, quoted[0], at, quoted.end())


def _regex(text: str, at: int) -> Atom | None:
    found = _REGEX.match(text, at)
    return Atom(REGEX, "", found[2], found[1], found[0], at, found.end()) if found else None


def _skip(text: str, at: int) -> int:
    found = _SPACE.match(text, at)
    assert found is not None
    return found.end()


def _run(text: str, at: int) -> int:
    found = _RUN.match(text, at)
    assert found is not None
    return found.end()


class _Reader:
    """Tokens in, tree out."""

    def __init__(self, tokens: list[_Token]) -> None:
        self._tokens = tokens
        self._at = 0
        self._depth = 0

    def read(self) -> Node:
        node = self._either()
        token = self._tokens[self._at]
        if token.kind == _CLOSE:
            raise QueryError(") closes nothing", token.start, token.end)
        return node

    def _either(self) -> Node:
        parts = [self._all()]
        while self._tokens[self._at].kind == _OR:
            self._at += 1
            parts.append(self._all())
        return Either(tuple(parts)) if len(parts) > 1 else parts[0]

    def _all(self) -> Node:
        parts = [self._one()]
        while (kind := self._tokens[self._at].kind) not in (_OR, _CLOSE, _END):
            self._at += kind == _AND
            parts.append(self._one())
        return All(tuple(parts)) if len(parts) > 1 else parts[0]

    def _one(self) -> Node:
        negated = False
        while self._tokens[self._at].kind == _NOT:
            negated, self._at = not negated, self._at + 1
        token = self._tokens[self._at]
        if token.kind == _OPEN:
            node = self._group(token)
        elif token.atom is not None:
            node, self._at = token.atom, self._at + 1
        else:
            self._missing(token)
        return Not(node) if negated else node

    def _group(self, opened: _Token) -> Node:
        self._at += 1
        self._depth += 1
        if self._depth > _DEEP:
            raise QueryError(f"more than {_DEEP} parentheses within each other", opened.start, opened.end)
        closed = self._tokens[self._at]
        if closed.kind == _CLOSE:
            raise QueryError("nothing between the parentheses", opened.start, closed.end)
        node = self._either() if closed.kind != _END else None
        if node is None or self._tokens[self._at].kind != _CLOSE:
            raise QueryError("( is never closed", opened.start, opened.end)
        self._at += 1
        self._depth -= 1
        return node

    def _missing(self, token: _Token) -> NoReturn:
        """Complain that something should stand before this token."""
        before = self._tokens[self._at - 1] if self._at else None
        if before is not None and before.kind in (_NOT, _AND, _OR):
            raise QueryError(f"{before.text} what?", before.start, before.end)
        if token.kind == _CLOSE:
            raise QueryError(") closes nothing", token.start, token.end)
        raise QueryError(f"nothing before {token.text}", token.start, token.end)
