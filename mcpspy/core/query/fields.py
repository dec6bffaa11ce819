"""The fields of the filter language: what each of them asks of an item.

Owns the names of states, kinds and sides. Refuses to look anything up: an
item says what it is.
"""

from __future__ import annotations

import difflib
import json
import operator
import re
from collections.abc import Callable, Collection, Iterable
from typing import NoReturn, cast

from mcpspy.core.protocol.spec import CLIENT, METHODS, SERVER
from mcpspy.core.query.item import FilterItem, LintFilterItem, QueryPart, SessionEnd, Test
from mcpspy.core.query.lexer import MOMENTS, NUMBERS, ORDER, PATH, REGEX, WORD, Atom
from mcpspy.core.query.path import path
from mcpspy.core.query.values import (
    compared_code,
    looks,
    moment,
    number,
    pattern,
    remembered,
    searched,
    unordered,
)
from mcpspy.core.session.exchange import State

SLOW = 1.0
"""Seconds above which an answer is slow."""

FAILED = frozenset({State.ERROR.value, State.TOOL_ERROR.value, State.REFUSED.value})
"""States of what was answered, and badly."""

STATUSES: dict[str, frozenset[str]] = {
    "ok": frozenset({State.OK.value}),
    "error": FAILED,
    "toolerror": frozenset({State.TOOL_ERROR.value}),
    "rpcerror": frozenset({State.ERROR.value}),
    "pending": frozenset({State.PENDING.value}),
    "cancelled": frozenset({State.CANCELLED.value}),
    "late": frozenset({State.LATE.value}),
    "noanswer": frozenset({State.UNANSWERED.value}),
    "closed": frozenset({State.CLOSED.value}),
    "refused": frozenset({State.REFUSED.value}),
    "input": frozenset({State.INPUT_REQUIRED.value}),
}
"""What may stand behind `status:`, blanks aside, and which states it means."""

_SAME_STATUS = {
    "err": "error",
    "failed": "error",
    "toolerr": "toolerror",
    "open": "pending",
    "canceled": "cancelled",
    "answeredlate": "late",
    "unanswered": "noanswer",
    "inputrequired": "input",
}

KINDS = (
    *("request", "notification", "result", "error", "malformed", "exchange", "damaged"),
    *("stderr", "exit", "eof", "signal", "closed", "lost", "http", "http-end", "sse", "part"),
    *("rule", "rules", "noise"),
)
"""The kinds there are today. Notes may come to have others."""

_SAME_KIND = {"response": ("result", "error"), "answer": ("result", "error"), "failure": ("error",)}

_SIDES = {
    CLIENT: ("client", "c", "c2s", "->", "→", "out"),
    SERVER: ("server", "s", "s2c", "<-", "←", "in"),
}

_SUBJECTS = {
    "tool": frozenset({"tools/call"}),
    "prompt": frozenset({"prompts/get"}),
    "uri": frozenset(name for name, method in METHODS.items() if method.subject == "uri"),
}
"""Methods whose subject a field asks for."""


def _word(atom: Atom) -> QueryPart:
    # A note has neither method nor subject: its kind stands where others have the method.
    found = remembered(atom)
    return QueryPart(
        lambda item: found(item.method) or found(item.subject) or (not item.side and found(item.kind)), False
    )


def _method(atom: Atom) -> QueryPart:
    found = remembered(atom)
    return QueryPart(lambda item: found(item.method), False)


def _subject(atom: Atom) -> QueryPart:
    found, methods = remembered(atom), _SUBJECTS.get(atom.field)
    if methods is None:
        return QueryPart(lambda item: found(item.subject), False)
    return QueryPart(lambda item: item.method in methods and found(item.subject), False)


def _stream(atom: Atom) -> QueryPart:
    found = remembered(atom)
    return QueryPart(lambda item: found(item.stream), False)


def _id(atom: Atom) -> QueryPart:
    """Compare with the id's JSON text, or loosely: 7 is `7` and `"7"` then."""
    if atom.op in ("=", "!="):
        exact = atom.raw
        try:
            json.loads(exact)
        except (ValueError, RecursionError):
            exact = f'"{exact}"'
        return QueryPart(lambda item: item.id == exact, False)
    if "*" in atom.value and not atom.is_quoted:
        found = looks(atom)
        return QueryPart(lambda item: found(item.id.strip('"')), False)
    unordered(atom)
    either = (atom.value, json.dumps(atom.value, ensure_ascii=False))
    return QueryPart(lambda item: item.id in either, False)


def _dir(atom: Atom) -> QueryPart:
    unordered(atom)
    wanted = next((side for side, names in _SIDES.items() if atom.value.lower() in names), None)
    if wanted is None:
        _unknown(atom, ("client", "server", "c2s", "s2c", "->", "<-"))
    return QueryPart(lambda item: item.side == wanted, False)


def _kind(atom: Atom) -> QueryPart:
    of_note, value = atom.field == "note", atom.value.lower()
    same = _SAME_KIND.get(value)
    if same and not of_note:
        return QueryPart(lambda item: item.kind in same and bool(item.side), False)
    if value == "note":
        return QueryPart(lambda item: not item.side, False)
    found = remembered(atom)
    # A note may be of a kind that we never heard of, so only what is nearly one of ours is an error.
    near = [] if any(map(found, KINDS)) else difflib.get_close_matches(value, KINDS, 1, 0.8)
    if near:
        atom.fail(f'unknown {atom.field} "{atom.value}": did you mean {near[0]}?')
    if of_note:
        return QueryPart(lambda item: not item.side and found(item.kind), False)
    return QueryPart(lambda item: found(item.kind), False)


def _status(atom: Atom) -> QueryPart:
    unordered(atom)
    if re.fullmatch(r"-?[0-9]+", atom.value):
        return compared_code(float(atom.value), operator.eq)
    test = _state(atom.value, exact=atom.op != ":")
    if test is None:
        _unknown(atom, STATUSES)
    return QueryPart(test, False)


def _state(value: str, *, exact: bool) -> Test | None:
    """Return the test of a status by its name."""
    name = re.sub(r"[\s_-]", "", value.lower())
    name = _SAME_STATUS.get(name, name)
    if name == "error":
        if exact:
            name = "rpcerror"
        else:  # An error may be late, or answer nothing; then it has another status, or none.
            return lambda item: item.status in FAILED or item.kind == "error" or item.error_code is not None
    states = STATUSES.get(name)
    return None if states is None else lambda item: item.status in states


def _is(atom: Atom) -> QueryPart:
    unordered(atom)
    value = atom.value.lower()
    if value == "slow":
        return QueryPart(lambda item: (latency := item.latency) is not None and latency > SLOW, False)
    if value == "odd":
        return QueryPart(lambda item: item.odd, False)
    if value == "finding":
        return QueryPart(lambda item: bool(_findings(item)), False)
    test = _state(value, exact=False)
    if test is not None:
        return QueryPart(test, False)
    if value in KINDS or value in _SAME_KIND or value == "note":
        return _kind(atom._replace(op=":" if value in _SAME_KIND else "="))
    return _unknown(atom, ("slow", "odd", "finding", *STATUSES, *KINDS, "response", "note"))


def _lint(atom: Atom) -> QueryPart:
    """Look for a finding by its code, or by how grave it is."""
    found = remembered(atom)
    return QueryPart(
        lambda item: any(found(word) for each in _findings(item) for word in each.split()), False
    )


def _findings(item: FilterItem) -> Collection[str]:
    return cast(LintFilterItem, item).findings  # `core.query.parser.parse` lets nobody else ask.


def _unknown(atom: Atom, known: Iterable[str]) -> NoReturn:
    atom.fail(f'unknown {atom.field} "{atom.value}": one of {", ".join(known)}')


_ATOMS: dict[str, Callable[[Atom], QueryPart]] = {
    WORD: _word,
    REGEX: pattern,
    ORDER: number,
    PATH: path,
    "method": _method,
    "subject": _subject,
    "tool": _subject,
    "prompt": _subject,
    "uri": _subject,
    "id": _id,
    "dir": _dir,
    "kind": _kind,
    "note": _kind,
    "status": _status,
    "is": _is,
    "lint": _lint,
    "stream": _stream,
    "text": searched,
    **dict.fromkeys(NUMBERS, number),
}


def atom(found: Atom, end: SessionEnd) -> QueryPart:
    """Return the test of an atom, its negation aside; raise QueryError."""
    return moment(found, end) if found.field in MOMENTS else _ATOMS[found.field](found)


def is_linted(found: Atom) -> bool:
    """Whether an atom asks for what `lint` says."""
    return found.field == "lint" or (found.field == "is" and found.value.lower() == "finding")
