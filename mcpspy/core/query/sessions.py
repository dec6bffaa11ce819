"""The filter of sessions: the grammar of `core.query.parser` with the fields of a whole session."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import NamedTuple, TypeAlias

from mcpspy.core.query.lexer import ORDER, PATH, REGEX, WORD, Atom, FieldTable
from mcpspy.core.query.parser import AllOf, Node, Not, parse_tree
from mcpspy.core.query.values import COMPARE, reject_order, text_test

STATES = ("live", "ended", "died", "failed")

PROBLEM = "problem"
"""Value of `is:` for a session with errors, unanswered requests or protocol issues, or one that crashed."""

_TEXTS = ("id", "name", "server", "client", "revision")
_WORDS = ("name", "server", "client", "revision", "command")
_COUNTS = ("messages", "errors", "issues", "pending", "unanswered")
_NAMES = (*_TEXTS, *_COUNTS, "state", "is", "since", "until", "size")
FIELDS = FieldTable({name: name for name in _NAMES}, (*_COUNTS, "size"))

_AGES = {"s": 1, "m": 60, "min": 60, "h": 3600, "d": 86400, "w": 7 * 86400}
_SIZES = {"": 1, "b": 1, "k": 1e3, "kb": 1e3, "m": 1e6, "mb": 1e6, "g": 1e9, "gb": 1e9}
_NUMBER = re.compile(r"([0-9]+(?:\.[0-9]+)?)([a-z]*)", re.IGNORECASE)


class SessionItem(NamedTuple):
    """The fields of a session that filters test."""

    texts: Mapping[str, str]
    """`id`, `name`, `server`, `client`, `revision`, `command` (or the server's URL), and `state`, one of STATES."""
    started: float | None
    """Seconds since the epoch; None if the header has no valid time."""
    size: int
    """Bytes."""
    number: Callable[[str], int | None]
    """Returns the number of `messages`, `errors` …; None if it is unknown. May take long."""
    has_crashed: bool = False
    """True if mcpspy was killed, or if the server crashed or was not reached."""


Test: TypeAlias = Callable[[SessionItem], bool]

ReadTime: TypeAlias = Callable[[str], float | None]
"""A date and time of ISO 8601 → seconds since the epoch; None for any other text."""


class _Part(NamedTuple):
    test: Test
    reads: bool
    """True if it reads counts."""


def parse_sessions(text: str, now: float, read_time: ReadTime) -> Test:
    """Return the test of a filter; a blank one matches everything. Raise QueryError.

    `now` is in seconds since the epoch: `since:2h` is relative to it.
    """
    node = parse_tree(text, FIELDS)
    return (lambda _: True) if node is None else _Compiler(now, read_time).part(node).test


def read_age(text: str) -> float | None:
    """Return the seconds of `90min`, `12h`, `30d` or `2w`; None for any other text."""
    found = _NUMBER.fullmatch(text)
    factor = _AGES.get(found[2].lower()) if found is not None else None
    return None if found is None or factor is None else float(found[1]) * factor


class _Compiler:
    def __init__(self, now: float, read_time: ReadTime) -> None:
        self._now = now
        self._read_time = read_time

    def part(self, node: Node) -> _Part:
        if isinstance(node, Atom):
            part = self._atom(node)
            return _negated(part) if node.op == "!=" else part
        if isinstance(node, Not):
            return _negated(self.part(node.part))
        # Tests that read counts go last.
        parts = sorted(map(self.part, node.parts), key=lambda part: part.reads)
        tests, reads = [part.test for part in parts], parts[-1].reads
        if isinstance(node, AllOf):
            return _Part(lambda item: all(test(item) for test in tests), reads)
        return _Part(lambda item: any(test(item) for test in tests), reads)

    def _atom(self, atom: Atom) -> _Part:
        field = atom.field
        if field in (REGEX, PATH):
            atom.fail("a filter of sessions has no regular expressions and paths: use mcpspy show -q")
        if field in (*_COUNTS, "size", ORDER):
            return _number(atom)
        if field in ("since", "until"):
            return self._moment(atom)
        reject_order(atom)
        value = atom.value.lower()
        if field == "is" and value == PROBLEM:
            return _Part(
                lambda item: item.has_crashed or any(map(item.number, ("errors", "unanswered", "issues"))),
                True,
            )
        if field in ("state", "is"):
            known = STATES if field == "state" else (PROBLEM, *STATES)
            if value not in known:
                atom.fail(f'unknown state "{atom.value}": use one of {", ".join(known)}')
            return _Part(lambda item: item.texts["state"] == value, False)
        if field == "id":
            return _Part(lambda item: item.texts["id"].startswith(value), False)
        found = text_test(atom)
        if field != WORD:
            return _Part(lambda item: found(item.texts[field]), False)
        return _Part(
            lambda item: (
                item.texts["id"].startswith(value) or any(found(item.texts[text]) for text in _WORDS)
            ),
            False,
        )

    def _moment(self, atom: Atom) -> _Part:
        """Compare the start with an age (`2h`, `-2h`), or with a date and time."""
        if atom.op != ":":
            atom.fail(f"{atom.name} needs a colon: write {atom.name}:{atom.raw}")
        age = read_age(atom.value.removeprefix("-"))
        bound = self._read_time(atom.value) if age is None else self._now - age
        if bound is None:
            atom.fail(f"{atom.value} is not a time (examples: {atom.name}:2h, {atom.name}:2026-11-20)")
        if atom.field == "since":
            return _Part(lambda item: (at := item.started) is not None and at >= bound, False)
        if age is None and len(atom.value) <= len("2026-11-20"):
            bound += _AGES["d"]  # A date includes its day.
        return _Part(lambda item: (at := item.started) is not None and at < bound, False)


def _negated(part: _Part) -> _Part:
    return _Part(lambda item: not part.test(item), part.reads)


def _number(atom: Atom) -> _Part:
    found = _NUMBER.fullmatch(atom.value)
    is_size = atom.field in ("size", ORDER)
    factor = (_SIZES if is_size else {"": 1}).get(found[2].lower()) if found is not None else None
    if found is None or factor is None or (atom.field == ORDER and not found[2]):
        example = "size>10mb" if is_size else f"{atom.field}>0"
        atom.fail(f"{atom.value} is not a {'size' if is_size else 'number'} (example: {example})")
    bound, compare, field = float(found[1]) * factor, COMPARE[atom.op], atom.field
    if is_size:
        return _Part(lambda item: compare(item.size, bound), False)
    return _Part(lambda item: (number := item.number(field)) is not None and compare(number, bound), True)
