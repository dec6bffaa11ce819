"""The filter of sessions: the grammar of `core.query.parser` with the fields of a whole session.

`mcpspy ls`, the terminal UI, the page and the tools for agents filter their lists with it.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple, TypeAlias

from mcpspy.core.query.fields import reject_unknown
from mcpspy.core.query.highlight import wanted
from mcpspy.core.query.item import CompiledPart
from mcpspy.core.query.lexer import ORDER, PATH, REGEX, WORD, Atom, FieldTable
from mcpspy.core.query.parser import compiled, parse_tree
from mcpspy.core.query.values import COMPARE, reject_order, text_test
from mcpspy.core.recording.origin import ORIGINS
from mcpspy.core.session.outcome import TROUBLE, Verdict

STATES = ("live", "ended", "died", "failed")

VERDICTS = tuple(str(verdict) for verdict in Verdict)

PROBLEM = "problem"
"""Value of `is:` for a session with errors, unanswered requests or protocol issues, or that did not work."""

_TEXTS = ("id", "name", "server", "client", "revision")
CHOICES = {
    "state": (*STATES,),
    "verdict": VERDICTS,
    "origin": ORIGINS,
    "is": (PROBLEM, *dict.fromkeys((*STATES, *VERDICTS))),
}
"""Field → all of its values."""
_WORDS = ("name", "server", "client", "revision", "command")
_MISSABLE = (WORD, "name", "server", "client", "revision")
"""Fields whose values are listed if a filter asks for one that no session has."""

SHOWN_VALUES = 8
"""Maximum number of such values."""

_COUNTS = ("messages", "errors", "issues", "pending", "unanswered")
_NAMES = (*_TEXTS, "command", *_COUNTS, *CHOICES, "since", "until", "size")
FIELDS = FieldTable({name: name for name in _NAMES}, (*_COUNTS, "size"))

_AGES = {"s": 1, "m": 60, "min": 60, "h": 3600, "d": 86400, "w": 7 * 86400}
_SIZES = {"": 1, "b": 1, "k": 1e3, "kb": 1e3, "m": 1e6, "mb": 1e6, "g": 1e9, "gb": 1e9}
_NUMBER = re.compile(r"([0-9]+(?:\.[0-9]+)?)([a-z]*)", re.IGNORECASE)


class SessionItem(NamedTuple):
    """The fields of a session that filters test."""

    texts: Mapping[str, str]
    """`id`, `name`, `server`, `client`, `revision`, `command` (or the server's URL), `state`, one of STATES, and
    `origin`, one of `core.recording.origin.ORIGINS` or of a newer mcpspy."""
    started: float | None
    """Seconds since the epoch; None if the header has no valid time."""
    size: int
    """Bytes."""
    number: Callable[[str], int | None]
    """Returns the number of `messages`, `errors` …; None if it is unknown. May take long."""
    verdict: Callable[[], Verdict | None] = lambda: None
    """Returns how it went; None if that is unknown. May take long."""


Test: TypeAlias = Callable[[SessionItem], bool]

ReadTime: TypeAlias = Callable[[str], float | None]
"""A date and time of ISO 8601 → seconds since the epoch; None for any other text."""


_Part: TypeAlias = CompiledPart[SessionItem]


class SessionQuery(NamedTuple):
    text: str = ""
    """The filter without blanks around it; empty for one that matches everything."""
    matches: Test = lambda _: True
    texts: tuple[Atom, ...] = ()
    """The words and names that a session must have, each of them or one of several."""

    def no_match(self, items: Iterable[SessionItem]) -> str:
        """Return why no session matches, if it is a word or name that none of them has; else an empty text.

        The sentences name what exists instead.
        """
        listed = list(items)
        for atom in self.texts:
            test = _text(atom)
            if not any(map(test, listed)):
                values = list(
                    dict.fromkeys(filter(None, (item.texts[atom.field or "name"] for item in listed)))
                )
                return _missing(atom, values)
        return ""


def parse_sessions(text: str, now: Callable[[], float], read_time: ReadTime) -> SessionQuery:
    """Return a filter; a blank one matches everything. Raise QueryError.

    `now` returns the seconds since the epoch. It is called for each test: a list is shown for hours under `since:2h`.
    """
    node = parse_tree(text, FIELDS)
    if node is None:
        return SessionQuery()
    part = compiled(node, _Compiler(now, read_time).atom)
    texts = tuple(atom for atom in wanted(node) if atom.field in _MISSABLE)
    return SessionQuery(text.strip(), part.test, texts)


def read_age(text: str) -> float | None:
    """Return the seconds of `90min`, `12h`, `30d` or `2w`; None for any other text."""
    found = _NUMBER.fullmatch(text)
    factor = _AGES.get(found[2].lower()) if found is not None else None
    return None if found is None or factor is None else float(found[1]) * factor


class _Compiler:
    def __init__(self, now: Callable[[], float], read_time: ReadTime) -> None:
        self._now = now
        self._read_time = read_time

    def atom(self, atom: Atom) -> _Part:
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
                lambda item: (
                    item.verdict() in TROUBLE or any(map(item.number, ("errors", "unanswered", "issues")))
                ),
                True,
            )
        if field in CHOICES:
            if value not in CHOICES[field]:
                reject_unknown(atom, CHOICES[field], noun="state" if field == "is" else field)
            if field == "verdict" or (field == "is" and value not in STATES):
                return _Part(lambda item: item.verdict() == value, True)
            return _Part(lambda item: item.texts["origin" if field == "origin" else "state"] == value, False)
        return _Part(_text(atom), False)

    def _moment(self, atom: Atom) -> _Part:
        """Compare the start with an age (`2h`, `-2h`), or with a date and time."""
        if atom.op != ":":
            atom.fail(f"{atom.name} needs a colon: write {atom.name}:{atom.raw}")
        age = read_age(atom.value.removeprefix("-"))
        date = self._read_time(atom.value) if age is None else None
        if date is None and age is None:
            atom.fail(f"{atom.value} is not a time (examples: {atom.name}:2h, {atom.name}:2026-11-20)")
        is_since, now = atom.field == "since", self._now
        if date is not None and not is_since and len(atom.value) <= len("2026-11-20"):
            date += _AGES["d"]  # A date includes its day.

        def test(item: SessionItem) -> bool:
            bound = date if date is not None else now() - (age or 0.0)
            return item.started is not None and (item.started >= bound) == is_since

        return _Part(test, False)


def _text(atom: Atom) -> Test:
    """Return the test of a text; a word without a field is in one of several, or the beginning of an id."""
    field, value, found = atom.field, atom.value.lower(), text_test(atom)
    if field == "id":
        return lambda item: item.texts["id"].startswith(value)
    if field != WORD:
        return lambda item: found(item.texts[field])
    return lambda item: item.texts["id"].startswith(value) or any(found(item.texts[text]) for text in _WORDS)


def _missing(atom: Atom, values: list[str]) -> str:
    """Return what is missing, and the values that exist: `no name "wether": did you mean weather?`."""
    lower = {value.lower(): value for value in values}
    near = difflib.get_close_matches(atom.value.lower(), lower, 1, 0.6)
    meant = f": did you mean {lower[near[0]]}?" if near else "."
    named = f'No {atom.field} matches "{atom.value}"' if atom.field else f'Nothing contains "{atom.value}"'
    rest = f" and {len(values) - SHOWN_VALUES} more" if len(values) > SHOWN_VALUES else ""
    exist = f" The {atom.field or 'name'}s are {', '.join(values[:SHOWN_VALUES])}{rest}." if values else ""
    return f"{named}{meant}{exist}"


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
