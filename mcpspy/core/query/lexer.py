"""Split a filter into tokens: words, fields, operators, values, paths, with their positions.

`core.query.parser` defines the grammar, `core.query.fields` the meaning of fields.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Collection, Mapping
from typing import NamedTuple, NoReturn

from mcpspy.core.sanitize import sanitize
from mcpspy.errors import UsageError

FIELDS = {
    **{
        name: name
        for name in """method subject tool prompt uri id dir kind note status is stream text latency size time since
        until code lint""".split()
    },
    "about": "subject",
    "target": "subject",
    "resource": "uri",
    "side": "dir",
    "from": "dir",
    "session": "stream",
    "server": "stream",
    "lat": "latency",
}
"""Field name or alias → field."""

ROOTS = ("params", "result", "error")
"""Members of a message at which a path may begin."""

NUMBERS = ("latency", "size", "time", "code")
"""Fields that are numbers and can be compared."""

MOMENTS = ("since", "until")
"""Fields that are times; a negative time is relative to the end."""


class FieldTable(NamedTuple):
    """The fields that a filter may use."""

    names: Mapping[str, str]
    """Field name or alias → field."""
    numbers: Collection[str]
    """Fields that can be compared."""


MESSAGE_FIELDS = FieldTable(FIELDS, NUMBERS)

WORD, REGEX, ORDER, PATH = "", "/", "<>", "."
"""Fields of atoms that have no field name."""


class QueryError(UsageError):
    """An invalid filter; the mistake is in `text[start:end]`."""

    def __init__(self, message: str, start: int, end: int) -> None:
        super().__init__(message)
        self.start = start
        self.end = end

    def located(self, name: str, hint: str) -> UsageError:
        """Return the error with the name of the filter and the position of the mistake."""
        return UsageError(sanitize(f"{name}, character {self.start + 1}: {self}"), hint)


class Atom(NamedTuple):
    """A single condition."""

    field: str
    """One of FIELDS' values, or WORD, REGEX, ORDER, PATH."""
    name: str
    """The field name as typed; for a path, the path."""
    op: str
    """`:`, `=`, `!=`, `>` …; for a regex, its flags."""
    value: str
    raw: str
    """The value as typed, with quotes."""
    start: int
    """Position of the value."""
    end: int

    @property
    def is_quoted(self) -> bool:
        return self.raw.startswith('"')

    def fail(self, message: str) -> NoReturn:
        raise QueryError(message, self.start, self.end)


class Token(NamedTuple):
    """An atom, an operator or a parenthesis."""

    kind: str
    text: str
    start: int
    end: int
    atom: Atom | None = None


ATOM, END, NOT, AND, OR, OPEN, CLOSE = "atom", "", "not", "and", "or", "(", ")"
"""Kinds of tokens."""

_SIGNS = {
    "(": OPEN,
    ")": CLOSE,
    **dict.fromkeys(("-", "!", "not"), NOT),
    **dict.fromkeys(("&", "&&", "and"), AND),
    **dict.fromkeys(("|", "||", "or"), OR),
}

_SPACE = re.compile(r"\s*")
_SIGN = re.compile(r"[()!-]|\|\|?|&&?")
_RUN = re.compile(r"[^\s()|]*")
_ORDER = re.compile(r"[<>]=?")
_OP = r"(\s*)(:?(?:[<>]=?|!?=)|:)"
_FIELD = re.compile(rf"([^\W\d][\w-]*){_OP}")
_ROOT = re.compile(r"\.?([a-z]+)(?=[.\[:=!<>])")
_OTHER_ROOT = re.compile(r"\.?([^\W\d][\w-]*)[.\[][\w.\[\]\"$@-]*(?::(?!//)|!?=|[<>])")
_STEP = re.compile(r'\.([\w$@-]+)|\.?\["((?:[^"\\]|\\.)*)"\]|\.?\[(-?[0-9]{1,9}|)\]', re.DOTALL)
_AFTER_PATH = re.compile(_OP)
_QUOTED = re.compile(r'"((?:[^"\\]|\\.)*)"', re.DOTALL)
_ESCAPED = re.compile(r'\\(["\\])')
# A slash within a path does not end a regex: `/tools/call/` is one.
_REGEX = re.compile(r"/((?:[^/\\]|\\.|/(?!i?(?:[\s)|]|\Z)))+)/(i?)(?=[\s)|]|\Z)", re.DOTALL)


def tokenize(text: str, fields: FieldTable = MESSAGE_FIELDS) -> list[Token]:
    """Return the tokens, the last of them END; raise QueryError."""
    tokens, at = [], _skip_space(text, 0)
    while at < len(text):
        token = _token(text, at, fields)
        tokens.append(token)
        at = _skip_space(text, token.end)
    return [*tokens, Token(END, "", len(text), len(text))]


def _token(text: str, at: int, fields: FieldTable) -> Token:
    first = text[at]
    if sign := _SIGN.match(text, at):
        return Token(_SIGNS[sign[0]], sign[0], at, sign.end())
    if first == '"':
        return _atom(text, at, _value(text, at, WORD, "", ":"))
    if first == "/":
        if (regex := _regex(text, at)) is None:
            raise QueryError("unclosed regex: end it with /, or put a path in quotes", at, len(text))
        return _atom(text, at, regex)
    if order := _ORDER.match(text, at):
        op = order[0]
        atom = _value(text, _skip_space(text, order.end()), ORDER, "", op)
        if not atom.raw:
            raise QueryError(f"expected a value after '{op}', like {op}200ms or {op}10kb", *order.span())
        return _atom(text, at, atom)
    if (root := _ROOT.match(text, at)) and (path := _path(text, root)):
        return _atom(text, at, path)
    if (found := _FIELD.match(text, at)) and (field := _field(text, found, fields)):
        return _atom(text, at, field)
    if other := _OTHER_ROOT.match(text, at):
        near = difflib.get_close_matches(other[1].lower(), ROOTS, 1, 0.8)
        known = f"did you mean {near[0]}?" if near else "a path begins with params, result or error."
        raise QueryError(
            f"unknown member {other[1]}: {known} Put a word that contains : or = in quotes", *other.span(1)
        )
    if first in ":=":
        raise QueryError(f"expected a field before '{first}', without a blank between", at, at + 1)
    atom = _value(text, at, WORD, "", ":")
    if (kind := _SIGNS.get(atom.value.lower())) is not None:
        return Token(kind, atom.value, at, atom.end)
    return _atom(text, at, atom)


def _atom(text: str, at: int, atom: Atom) -> Token:
    return Token(ATOM, text[at : atom.end], at, max(atom.end, at + 1), atom)


def _field(text: str, found: re.Match[str], fields: FieldTable) -> Atom | None:
    """Return a field with its value; None if it is a word: `file:///x`. Raise QueryError for an unknown field."""
    name, space, op = found.groups()
    if text.startswith("://", found.end(1)):
        return None
    field = fields.names.get(name.lower())
    if field is None:
        if space:
            return None
        near = difflib.get_close_matches(name.lower(), fields.names, 1, 0.6)
        known = (
            f"did you mean {near[0]}{op}?"
            if near
            else f"the fields are {', '.join(dict.fromkeys(fields.names.values()))}."
        )
        raise QueryError(
            f"unknown field {name}: {known} Put a word that contains {op} in quotes", *found.span(1)
        )
    if space and (field not in fields.numbers or op.startswith(":")):
        return None
    after = found.end()
    if field in fields.numbers:
        op, after = _compared(text, found)
    elif op.startswith(":"):  # The rest belongs to the value: `dir:<-`.
        op, after = ":", found.end(2) + 1
    if field == "text" and (regex := _regex(text, after)):
        return regex
    atom = _value(text, after, field, name, op)
    if not atom.raw:
        raise QueryError(f"expected a value after '{name}{op}'", found.start(), after)
    return atom


def _compared(text: str, found: re.Match[str]) -> tuple[str, int]:
    """Return the operator of a comparison and the position of its value: `latency > 1s`, and `latency:>1s`."""
    op = found[found.lastindex or 0]
    return (op, found.end()) if op == ":" else (op.removeprefix(":"), _skip_space(text, found.end()))


def _path(text: str, root: re.Match[str]) -> Atom | None:
    """Return a path into the message with its value; None if it is a word, like `result.json`."""
    name, begin = root[1], root.end()
    if name not in ROOTS:
        return None
    end = begin
    while step := _STEP.match(text, end):
        end = step.end()
    found = _AFTER_PATH.match(text, end)
    if found is None:
        if text.startswith((".", "["), end):
            raise QueryError('bad step: use .name, ["any name"], [0], [-1] or []', end, _word_end(text, end))
        return None
    if found[1] and (found[2].startswith(":") or end == begin):
        return None  # `error >1s` is two atoms.
    op, after = _compared(text, found)
    name = text[root.start(1) : end]
    atom = _value(text, after, PATH, name, op)
    if not atom.raw:
        raise QueryError(f"expected a value after '{name}{op}'", root.start(), after)
    return atom


def path_steps(path: str) -> list[str | int | None]:
    """Return the steps after a path's first name: names, indices, and None for every item."""
    return [
        _ESCAPED.sub(r"\1", quoted) if quoted is not None else name if name is not None else _index(index)
        for name, quoted, index in (found.groups() for found in _STEP.finditer(path))
    ]


def _index(digits: str) -> int | None:
    return int(digits) if digits else None


def _value(text: str, at: int, field: str, name: str, op: str) -> Atom:
    """Return the atom with the value at this position: quoted, or up to the next blank."""
    if not text.startswith('"', at):
        end = _word_end(text, at)
        return Atom(field, name, op, text[at:end], text[at:end], at, end)
    quoted = _QUOTED.match(text, at)
    if quoted is None:
        raise QueryError("unclosed quote", at, len(text))
    value = _ESCAPED.sub(r"\1", quoted[1])
    if not value and op == ":":
        raise QueryError("empty quotes: expected a value", *quoted.span())
    return Atom(field, name, op, value, quoted[0], at, quoted.end())


def _regex(text: str, at: int) -> Atom | None:
    found = _REGEX.match(text, at)
    return Atom(REGEX, "", found[2], found[1], found[0], at, found.end()) if found else None


def _skip_space(text: str, at: int) -> int:
    found = _SPACE.match(text, at)
    assert found is not None
    return found.end()


def _word_end(text: str, at: int) -> int:
    found = _RUN.match(text, at)
    assert found is not None
    return found.end()
