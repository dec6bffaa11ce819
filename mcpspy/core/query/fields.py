"""The fields of the filter language, and the names of states, kinds and sides.

Each function compiles an atom into a test of items; an item provides its own values.
"""

from __future__ import annotations

import difflib
import json
import operator
import re
from collections.abc import Callable, Collection
from typing import NoReturn, cast

from mcpspy.core.protocol.spec import CLIENT, METHODS, SERVER
from mcpspy.core.query import values
from mcpspy.core.query.item import FilterItem, LintFilterItem, QueryPart, SessionEnd, Test
from mcpspy.core.query.lexer import MOMENTS, NUMBERS, ORDER, PATH, REGEX, WORD, Atom
from mcpspy.core.query.path import path_test
from mcpspy.core.regex import AllowUnsafe
from mcpspy.core.session.outcome import ATOMS, states_of

SLOW = 1.0
"""Seconds above which a response is slow."""

ERRORS = "is:error or is:unanswered or note:exit is:problem"
"""The filter of the rows to which the key for the next error goes."""

STATUSES: dict[str, frozenset[str]] = {
    atom: frozenset(state.value for state in states_of(atom)) for atom in ATOMS
}
"""Values of `status:`, without blanks, and the states they match."""

SAME_STATUS = {
    "err": "error",
    "failed": "error",
    "toolerr": "toolerror",
    "open": "pending",
    "canceled": "cancelled",
    "answeredlate": "late",
    "unanswered": "noanswer",
    "inputrequired": "input",
    "latetoolerror": "late",
    "lateerror": "late",
    "notcontinued": "noanswer",
    "tasknotfinished": "noanswer",
}

NOTES = (
    *("stderr", "exit", "end", "eof", "signal", "closed", "lost", "error", "http", "http-end", "sse", "part"),
    *("document", "http2"),
    *(
        "rule",
        "rules",
        "noise",
        "oversized",
        "oauth",
        "redirect",
        "trust",
        "unread",
        "unfinished",
        "placeholders",
        "mock",
        "restart",
        "translation",
    ),
)
"""The kinds of notes of docs/format.md."""

KINDS = tuple(
    dict.fromkeys(("request", "notification", "result", "error", "malformed", "exchange", "damaged", *NOTES))
)
"""The known kinds. Later versions may write notes of other kinds: in quotes, any kind is accepted."""

KIND_GROUPS = ("response", "note", "batch")
"""Values of `kind:` that match several kinds; `batch` matches the members of a batch (2025-03-26)."""

SAME_KIND = {"response": ("result", "error"), "answer": ("result", "error"), "failure": ("error",)}

SIDES = {
    CLIENT: ("client", "c", "c2s", "->", "→", "out"),
    SERVER: ("server", "s", "s2c", "<-", "←", "in"),
}

SUBJECTS = {
    "tool": frozenset({"tools/call"}),
    "prompt": frozenset({"prompts/get"}),
    "uri": frozenset(name for name, method in METHODS.items() if method.subject == "uri"),
}
"""Fields that match the subject of these methods only."""


def _word(atom: Atom) -> QueryPart:
    # A note has neither method nor subject; lists show its kind in the method column.
    found = values.cached_text_test(atom)
    return QueryPart(
        lambda item: found(item.method) or found(item.subject) or (not item.side and found(item.kind)), False
    )


def _attribute(atom: Atom) -> QueryPart:
    found, attribute = values.cached_text_test(atom), operator.attrgetter(atom.field)
    return QueryPart(lambda item: found(attribute(item)), False)


def _subject(atom: Atom) -> QueryPart:
    found, methods = values.cached_text_test(atom), SUBJECTS[atom.field]
    return QueryPart(lambda item: item.method in methods and found(item.subject), False)


def _id(atom: Atom) -> QueryPart:
    """Compare ids by value: `1` matches 1 and 1.0, `"1"` the string. With `:`, `1` also matches the string."""
    values.reject_order(atom)
    is_exact = atom.op != ":"
    if "*" in atom.value and not atom.is_quoted and not is_exact:
        found = values.text_test(atom)
        return QueryPart(lambda item: found(item.id.strip('"')), False)
    string = json.dumps(atom.value, ensure_ascii=False)
    if atom.is_quoted:
        return QueryPart(lambda item: item.id == string, False)
    number = values.json_number(atom.value)
    if number is not None:
        same = values.number_text_test(number)
        return QueryPart(lambda item: same(item.id) or (not is_exact and item.id == string), False)
    is_literal = atom.value in ("null", "true", "false") or bool(values.JSON_NUMBER.fullmatch(atom.value))
    forms = {atom.value} if is_literal and is_exact else {atom.value, string} if is_literal else {string}
    if atom.value == "null":  # A response without an id belongs to no request, as one with the id null.
        return QueryPart(lambda item: item.id in forms or (not item.id and _is_response(item)), False)
    return QueryPart(lambda item: item.id in forms, False)


def _is_response(item: FilterItem) -> bool:
    return item.kind in SAME_KIND["response"] and bool(item.side)


def _dir(atom: Atom) -> QueryPart:
    values.reject_order(atom)
    wanted = next((side for side, names in SIDES.items() if atom.value.lower() in names), None)
    if wanted is None:
        reject_unknown(atom, ("client", "server", "c2s", "s2c", "->", "<-"))
    return QueryPart(lambda item: item.side == wanted, False)


def _kind(atom: Atom) -> QueryPart:
    of_note, value = atom.field == "note", atom.value.lower()
    same = SAME_KIND.get(value)
    if same and not of_note:
        return QueryPart(lambda item: item.kind in same and bool(item.side), False)
    if value == "note":
        return QueryPart(lambda item: not item.side, False)
    if value == "batch":
        return QueryPart(lambda item: item.is_batch, False)
    found = values.cached_text_test(atom)
    known = NOTES if of_note else (*KINDS, *KIND_GROUPS)
    if not atom.is_quoted and not any(map(found, known)):
        reject_unknown(atom, known, () if of_note else SAME_KIND)
    if of_note:
        return QueryPart(lambda item: not item.side and found(item.kind), False)
    return QueryPart(lambda item: found(item.kind), False)


def _status(atom: Atom) -> QueryPart:
    values.reject_order(atom)
    if re.fullmatch(r"-?[0-9]+", atom.value):
        return values.code_test(float(atom.value), operator.eq)
    test = _state(atom.value, exact=atom.op != ":")
    if test is None:
        reject_unknown(atom, STATUSES, SAME_STATUS)
    return QueryPart(test, False)


def _state(value: str, *, exact: bool) -> Test | None:
    """Return the test for a status name; None if it is unknown."""
    name = re.sub(r"[\s_-]", "", value.lower())
    name = SAME_STATUS.get(name, name)
    states = STATUSES.get("rpcerror" if exact and name == "error" else name)
    return None if states is None else lambda item: item.status in states


def _is(atom: Atom) -> QueryPart:
    values.reject_order(atom)
    value = atom.value.lower()
    if value == "slow":
        return QueryPart(_is_slow, False)
    if value == "problem":
        wrong = STATUSES["error"] | STATUSES["noanswer"]
        return QueryPart(
            lambda item: item.status in wrong or item.has_issue or _is_slow(item) or item.is_failed_event,
            False,
        )
    if value in ("issue", "odd"):  # `odd` is a hidden alias.
        return QueryPart(lambda item: item.has_issue, False)
    if value == "finding":
        return QueryPart(lambda item: bool(_findings(item)), False)
    test = _state(value, exact=False)
    if test is not None:
        return QueryPart(test, False)
    if value in KINDS or value in SAME_KIND or value in KIND_GROUPS:
        return _kind(atom._replace(op=":" if value in SAME_KIND else "="))
    known = ("problem", "slow", "issue", "finding", *STATUSES, *KINDS, *KIND_GROUPS)
    return reject_unknown(atom, known, (*SAME_STATUS, *SAME_KIND))


def _is_slow(item: FilterItem) -> bool:
    return (latency := item.latency) is not None and latency > SLOW


def _lint(atom: Atom) -> QueryPart:
    """Find lint findings by code or severity."""
    found = values.cached_text_test(atom)
    return QueryPart(
        lambda item: any(found(word) for each in _findings(item) for word in each.split()), False
    )


def _findings(item: FilterItem) -> Collection[str]:
    return cast(LintFilterItem, item).findings  # `core.query.parser.parse` rejects the field for other items.


_NOUNS = {"dir": "sender", "is": "status or kind", "note": "kind of event"}


def reject_unknown(
    atom: Atom, known: Collection[str], aliases: Collection[str] = (), noun: str = ""
) -> NoReturn:
    near = difflib.get_close_matches(atom.value.lower(), (*known, *aliases), 1, 0.7)
    meant = f"did you mean {near[0]}? Use" if near else "use"
    noun = noun or _NOUNS.get(atom.field, atom.field)
    atom.fail(f'unknown {noun} "{atom.value}": {meant} one of {", ".join(dict.fromkeys(known))}')


_COMPILERS: dict[str, Callable[[Atom], QueryPart]] = {
    WORD: _word,
    PATH: path_test,
    **dict.fromkeys(("method", "subject", "stream"), _attribute),
    **dict.fromkeys(SUBJECTS, _subject),
    "id": _id,
    "dir": _dir,
    **dict.fromkeys(("kind", "note"), _kind),
    "status": _status,
    "is": _is,
    "lint": _lint,
    "text": values.text_search,
    **dict.fromkeys((ORDER, *NUMBERS), values.number_test),
}


def atom_test(found: Atom, end: SessionEnd, allow_unsafe: AllowUnsafe) -> QueryPart:
    """Return the test of an atom, without its negation; raise QueryError."""
    if found.field == REGEX:
        return values.regex_search(found, allow_unsafe)
    return values.time_bound(found, end) if found.field in MOMENTS else _COMPILERS[found.field](found)


def uses_findings(found: Atom) -> bool:
    """Return True if an atom tests lint findings."""
    return found.field == "lint" or (found.field == "is" and found.value.lower() == "finding")
