"""The texts in a message that a filter matches, to mark them where the message is shown. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from mcpspy.core.protocol.spec import METHODS
from mcpspy.core.query.lexer import PATH, REGEX, WORD, Atom, path_steps
from mcpspy.core.query.parser import Node, Not, parse_tree
from mcpspy.core.query.values import text_forms

Steps = Sequence[str | int | None]
"""A path into a message: names, indices, and None for every item."""

_METHOD, _NAME, _URI = ("method",), ("params", "name"), ("params", "uri")
_SUBJECTS = tuple(
    ("params", name) for name in sorted({one.subject for one in METHODS.values() if one.subject})
)
_PLACES: dict[str, tuple[Steps, ...]] = {
    WORD: (_METHOD, *_SUBJECTS),
    "method": (_METHOD,),
    "subject": _SUBJECTS,
    "tool": (_NAME,),
    "prompt": (_NAME,),
    "uri": (_URI,),
    "id": (("id",),),
    "code": (("error", "code"),),
    "status": (("error", "message"),),
    "is": (("error", "message"),),
}
"""Field → members of a message that it tests, or that show why it matches."""


class Mark(NamedTuple):
    pattern: str = ""
    """A regular expression; empty for the whole value."""
    ignore_case: bool = True
    path: Steps | None = None
    """The values to search; None for the whole message."""


def marks_of(text: str) -> list[Mark]:
    """Return the marks of a valid filter; conditions that must not match have none."""
    node = parse_tree(text)
    return [] if node is None else [mark for atom in wanted(node) for mark in _marks(atom)]


def wanted(node: Node, *, is_negated: bool = False) -> Iterator[Atom]:
    """Yield the conditions that must hold, each of them or one of several."""
    if isinstance(node, Atom):
        if is_negated == (node.op == "!="):
            yield node
    elif isinstance(node, Not):
        yield from wanted(node.part, is_negated=not is_negated)
    else:
        for part in node.parts:
            yield from wanted(part, is_negated=is_negated)


def _names_errors(value: str) -> bool:
    return value.lower() in ("problem", "error", "err", "failed", "rpcerror") or value.lstrip("-").isdigit()


def _marks(atom: Atom) -> Iterator[Mark]:
    is_part = atom.op == ":" and (atom.is_quoted or not re.search(r"[*?]", atom.value))
    forms = "|".join(map(re.escape, sorted(text_forms(atom.value))))
    pattern = forms if is_part else ""
    if atom.field == REGEX:
        yield Mark(atom.value, bool(atom.op))
    elif atom.field == "text":
        yield Mark(forms)
    elif atom.field == PATH:
        root = re.match("[a-z]+", atom.name)
        assert root is not None
        yield Mark(pattern, path=(root[0], *path_steps(atom.name[root.end() :])))
    elif atom.field in _PLACES and (atom.field not in ("status", "is") or _names_errors(atom.value)):
        is_whole = atom.field in ("id", "code", "status", "is")
        yield from (Mark("" if is_whole else pattern, path=path) for path in _PLACES[atom.field])
