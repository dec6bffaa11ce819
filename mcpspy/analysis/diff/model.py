"""The options of a comparison and the parsers of their text forms, and its result: changes.

A change has a kind, a severity, and its position in both sessions.

Ignore patterns are globs for methods, subjects and JSON pointers. Ignored values are removed before the comparison, so
requests and list items that differ only there are equal.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable
from enum import StrEnum
from functools import lru_cache
from typing import Any, Protocol

from msgspec import UNSET, Struct

from mcpspy.analysis.diff.json_diff import deltas, inner
from mcpspy.analysis.diff.volatile import Tolerance
from mcpspy.core.jsontools import Pointer, pointer, pointer_text
from mcpspy.core.regex import glob_regex


class ChangeSeverity(StrEnum):
    """Effect of a change on users of the old session."""

    BREAKING = "breaking"
    """A client that worked with the old server may fail with the new one."""
    DIFFERENT = "different"
    NOTE = "note"
    """Informational: a version, a description, an additional tool."""

    @property
    def rank(self) -> int:
        """0 is the most severe."""
        return list(ChangeSeverity).index(self)


class ChangeKind(StrEnum):
    ADDED = "added"
    REMOVED = "removed"
    REQUEST = "request"
    """The same method, tool, resource or prompt with other parameters."""
    ERROR = "error"
    """It fails and did not fail before, or the error is different."""
    RECOVERED = "recovered"
    OUTCOME = "outcome"
    """It ends differently: cancelled, with input required, or without a response."""
    RESULT = "result"
    PROGRESS = "progress"
    NOTIFICATION = "notification"
    INTERFACE = "interface"
    HANDSHAKE = "handshake"
    ORDER = "order"
    LATENCY = "latency"
    EXIT = "exit"


class ChangePosition(Struct, frozen=True):
    line: int
    """Line of the recording; the header is 1. Counted across all parts."""
    exchange: int | None = None
    """Number of the exchange, from 0, as in `mcpspy show --format json`; None if it is not a request."""


class DiffChange(Struct, frozen=True, kw_only=True):
    kind: ChangeKind
    severity: ChangeSeverity
    why: str = ""
    """A short reason: `gained a required property`. May contain a peer's text."""
    pointer: str = ""
    """JSON pointer from the message's root: `/result/content/0/text`; empty for the whole message.

    Two extensions of RFC 6901: in lists without an order the name replaces the index
    (`/result/tools/echo/description`), and the pointer continues into a text that is JSON. An item of a list
    has its new index; a removed item has its old one.
    """
    old: Any = UNSET
    """UNSET if it was added."""
    new: Any = UNSET
    """UNSET if it was removed."""


class ComparedCase(Struct, frozen=True, kw_only=True):
    """One compared item, changed or not: a request with its outcome, a notification, the handshake."""

    method: str
    """Or `handshake`, `exit`, `not JSON`, if it is not a message of the protocol."""
    subject: str | None = None
    old: ChangePosition | None = None
    new: ChangePosition | None = None
    latency: float | None = None
    """Seconds until the response in the new session; None without one."""
    changes: tuple[DiffChange, ...] = ()

    @property
    def about(self) -> str:
        """Display name; contains a peer's text."""
        return f"{self.method} {self.subject}" if self.subject else self.method

    @property
    def severity(self) -> ChangeSeverity | None:
        return min((change.severity for change in self.changes), key=lambda found: found.rank, default=None)


class SessionDiff(Struct, frozen=True):
    cases: tuple[ComparedCase, ...]
    """Everything compared, in the order of the new session; removed cases at their old position."""

    @property
    def changed(self) -> list[ComparedCase]:
        return [case for case in self.cases if case.changes]

    @property
    def changes(self) -> list[tuple[ComparedCase, DiffChange]]:
        return [(case, change) for case in self.cases for change in case.changes]

    @property
    def counts(self) -> dict[ChangeSeverity, int]:
        counted = Counter(change.severity for _, change in self.changes)
        return {severity: counted[severity] for severity in ChangeSeverity}

    def is_same(self, fail_on: ChangeSeverity = ChangeSeverity.DIFFERENT) -> bool:
        """Return whether there is no change of at least this severity."""
        return not any(change.severity.rank <= fail_on.rank for _, change in self.changes)


LISTED = {
    "tools": ("tools/list",),
    "resources": ("resources/list", "resources/templates/list"),
    "prompts": ("prompts/list",),
}
"""Part of an interface → the methods that list it."""

DEEP = "**"

_FIRST = ("params", "result", "error", "progress", DEEP)
_PARTS = (*_FIRST, "*")

_SLOWER = re.compile(r"(?:(\d+(?:\.\d+)?)x)?\+?(?:(\d+(?:\.\d+)?)(us|ms|s))?")
_UNITS = {"us": 1e-6, "ms": 1e-3, "s": 1.0}


_ROUNDS, _PATTERNS, _LONG = 4, 1_000, 300

_OUTCOMES = (ChangeKind.ERROR, ChangeKind.RECOVERED, ChangeKind.OUTCOME, ChangeKind.HANDSHAKE)
_INDEX = re.compile(r"/\d+(?=/|$)")
_UNIGNORABLE = (ChangeKind.ORDER, ChangeKind.LATENCY)


class Comparable(Protocol):
    @property
    def method(self) -> str: ...

    @property
    def subject(self) -> str | None: ...


class Ignored(Struct, frozen=True):
    method: str = "*"
    subject: str = "*"
    tokens: Pointer = ()
    """One glob per level from the message's root, `**` for any number; empty: the whole message."""

    def is_about(self, message: Comparable) -> bool:
        is_subject = self.subject == "*" or _is_like(self.subject, message.subject or "")
        return is_subject and _is_like(self.method, message.method)


class LatencyLimit(Struct, frozen=True):
    """Maximum latency: `factor` times the old latency, plus `allowance`."""

    factor: float
    allowance: float = 0.0

    def allows(self, old: float, new: float) -> bool:
        """Return whether the new latency is within the limit. In seconds."""
        return new <= old * self.factor + self.allowance


class DiffOptions(Struct, frozen=True, kw_only=True):
    """Options of a comparison. Values that differ in every run are always ignored: see `normalize`."""

    only: frozenset[str] = frozenset()
    """Keys of `LISTED`: compare only these parts of the interface. Empty: everything."""
    ignored: tuple[Ignored, ...] = ()
    dates: bool = False
    volatile: bool = False
    """Also treats ids, epochs, process ids, ports and temporary paths as equal."""
    slower_than: LatencyLimit | None = None

    @property
    def tolerance(self) -> Tolerance:
        return Tolerance.VOLATILE if self.volatile else Tolerance.DATES if self.dates else Tolerance.NONE

    @property
    def methods(self) -> frozenset[str]:
        """The only methods to compare; empty: all."""
        return frozenset(method for part in self.only for method in LISTED[part])


def ignored(text: str) -> Ignored:
    """Parse `[METHOD [SUBJECT]] [POINTER]`; raise ValueError if it is invalid."""
    words = text.split()
    if not words:
        raise ValueError("empty pattern")
    tokens: Pointer = ()
    if words[-1].startswith("/"):
        tokens = pointer(words.pop())
        if tokens[0] not in _PARTS:
            raise ValueError(f"a pointer must begin with {', '.join('/' + part for part in _PARTS)}")
    elif (head := words[-1].partition("/"))[0] in _FIRST and (head[1] or len(words) == 1):
        raise ValueError(f"a pointer must begin with /: did you mean /{words[-1]}?")
    method, subject = (words[0] if words else "*"), " ".join(words[1:]) or "*"
    return Ignored(method, subject, tokens)


class IgnoreSuggestion(Struct, frozen=True):
    """Options that would ignore the changes of a comparison."""

    patterns: list[str]
    volatile: int
    """Number of changes that `volatile` would ignore."""
    changes: int
    """Number of all changes."""


def ignore_suggestion(
    difference: SessionDiff,
    fail_on: ChangeSeverity,
    again: Callable[[tuple[Ignored, ...]], SessionDiff] | None = None,
) -> IgnoreSuggestion:
    """Return the options that ignore the changes of at least this severity, except order and latency.

    `again` compares with more patterns: two calls that match then have their results compared.
    """
    changes = [change for _, change in difference.changes if change.severity.rank <= fail_on.rank]
    volatile = sum(map(is_volatile, changes))
    found: dict[str, None] = {}
    for _ in range(_ROUNDS):
        known = len(found)
        found |= dict.fromkeys(
            ignore_pattern(case, change)
            for case, change in difference.changes
            if change.severity.rank <= fail_on.rank and change.kind not in _UNIGNORABLE
        )
        if len(found) == known or again is None or len(found) > _PATTERNS:
            break
        difference = again(tuple(map(ignored, found)))
    any_index = {pattern: _INDEX.sub("/*", pattern) for pattern in found}
    several = Counter(any_index.values())
    patterns = dict.fromkeys(each if several[each] > 1 else pattern for pattern, each in any_index.items())
    return IgnoreSuggestion(list(patterns), volatile, len(changes))


def ignore_pattern(case: ComparedCase, change: DiffChange) -> str:
    """Return the pattern that ignores a change, and others at the same place of the same kind of message."""
    tokens = pointer(change.pointer) if change.pointer else ()
    if change.kind is ChangeKind.INTERFACE:
        tokens = tokens[:4]  # The whole schema: its keywords depend on each other.
    is_outcome = change.kind in _OUTCOMES and tokens in (("error",), ("result",))
    if is_outcome or change.kind in (ChangeKind.ADDED, ChangeKind.REMOVED):
        tokens = ()
    subject = _glob(case.subject or "*", r"\s{2,}|^\s|\s$|[^\S ]")
    if not tokens:
        subject = re.sub(r"(^| )/(?=\S*$)", r"\1?", subject)  # The last word would be a pointer.
    words = [_glob(case.method), *([subject] if subject != "*" else [])]
    return " ".join([*words, *([pointer_text(tuple(map(_glob, tokens)))] if tokens else [])])


def _glob(text: str, blank: str = r"\s") -> str:
    """Return a glob for a peer's text; what a pattern cannot contain becomes `*`."""
    return re.sub(rf"(?:{blank}|[^ -~])+", "*", text) if len(text) <= _LONG else "*"


def is_volatile(change: DiffChange) -> bool:
    """Return whether `volatile` would tolerate a change."""
    name = pointer(change.pointer)[-1] if change.pointer else ""
    sides = [{name: value} for value in (change.old, change.new)]
    return UNSET not in (change.old, change.new) and not deltas(*sides, tolerance=Tolerance.VOLATILE)


def slower(text: str) -> LatencyLimit:
    """Parse `2x`, `1.5x+20ms` or `200ms`; raise ValueError if it is invalid."""
    found = _SLOWER.fullmatch(text)
    if found is None or text.startswith("+") or text.endswith("+") or not any(found.groups()):
        raise ValueError("expected a limit like 2x, 1.5x+20ms or 200ms")
    factor, allowance, unit = found.groups()
    if factor is not None and allowance is not None and "+" not in text:
        raise ValueError("expected a limit like 2x, 1.5x+20ms or 200ms")
    if factor is not None and float(factor) < 1:
        raise ValueError("the factor must be at least 1")
    seconds = 0.0 if allowance is None else float(allowance) * _UNITS[unit]
    return LatencyLimit(1.0 if factor is None else float(factor), seconds)


def cut(value: Any, patterns: Iterable[Pointer]) -> Any:
    """Return a value without the parts that the patterns match; in a list, null replaces an item to keep indexes."""
    active = [tokens for pattern in patterns for tokens in _shallow(pattern)]
    try:
        return _cut(value, active) if active else value
    except RecursionError:  # Nested too deep: nothing is cut.
        return value


def is_cut(tokens: Pointer, patterns: Iterable[Pointer]) -> bool:
    """Return whether a pattern matches this pointer or a parent of it."""
    active = [found for pattern in patterns for found in _shallow(pattern)]
    for token in tokens:
        active, over = _step(active, token)
        if over:
            return True
    return False


def _cut(value: Any, active: list[Pointer]) -> Any:
    if isinstance(value, str):
        value = value if (found := inner(value)) is None else found
    if isinstance(value, dict):
        kept = {}
        for key, item in value.items():
            below, over = _step(active, key)
            if not over:
                kept[key] = _cut(item, below) if below else item
        return kept
    if isinstance(value, list):
        items = []
        for number, item in enumerate(value):
            below, over = _step(active, str(number))
            items.append(None if over else _cut(item, below) if below else item)
        return items
    return value


def _step(active: list[Pointer], token: str) -> tuple[list[Pointer], bool]:
    """Return the remaining patterns one level down, and whether one of them ends there."""
    below: list[Pointer] = []
    for tokens in active:
        is_deep = tokens[0] == DEEP
        if is_deep or _is_like(tokens[0], token):
            if len(tokens) == 1:
                return [], True
            below += _shallow(tokens if is_deep else tokens[1:])
    return list(dict.fromkeys(below)), False


def _shallow(tokens: Pointer) -> list[Pointer]:
    """Return a pattern, and its variant in which `**` matches no level."""
    if len(tokens) > 1 and tokens[0] == DEEP:
        return [tokens, *_shallow(tokens[1:])]
    return [tokens] if tokens else []


def _is_like(glob: str, text: str) -> bool:
    return glob == text or (("*" in glob or "?" in glob) and _compiled(glob).fullmatch(text) is not None)


@lru_cache(maxsize=256)
def _compiled(glob: str) -> re.Pattern[str]:
    return glob_regex(glob)
