"""Options of a comparison, and the parsers of their text forms.

Ignore patterns are globs for methods, subjects and JSON pointers. Ignored values are removed before the
comparison, so requests and list items that differ only there are equal.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache
from typing import Any, Protocol

from msgspec import Struct

from mcpspy.analysis.diff.json_diff import inner
from mcpspy.core.jsontools import Pointer, pointer
from mcpspy.core.regex import glob_regex

LISTED = {
    "tools": ("tools/list",),
    "resources": ("resources/list", "resources/templates/list"),
    "prompts": ("prompts/list",),
}
"""Part of an interface → the methods that list it."""

DEEP = "**"

_PARTS = ("params", "result", "error", "progress", DEEP, "*")

_SLOWER = re.compile(r"(?:(\d+(?:\.\d+)?)x)?\+?(?:(\d+(?:\.\d+)?)(us|ms|s))?")
_UNITS = {"us": 1e-6, "ms": 1e-3, "s": 1.0}


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
    slower_than: LatencyLimit | None = None

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
    method, subject = (words[0] if words else "*"), " ".join(words[1:]) or "*"
    return Ignored(method, subject, tokens)


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
