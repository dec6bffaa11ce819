"""Ignore patterns: globs for methods, subjects and JSON pointers.

Ignored values are removed before the comparison, so requests and list items that differ only there are equal.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache
from typing import Any

from msgspec import Struct

from mcpspy.analysis.diff.json_diff import inner
from mcpspy.core.jsontools import Pointer, pointer

DEEP = "**"


class Ignored(Struct, frozen=True):
    method: str = "*"
    subject: str = "*"
    tokens: Pointer = ()
    """One glob per level from the message's root, `**` for any number; empty: the whole message."""

    def is_about(self, method: str, subject: str | None) -> bool:
        return _is_like(self.method, method) and (
            self.subject == "*" or _is_like(self.subject, subject or "")
        )


def ignored(text: str) -> Ignored:
    """Parse `[METHOD [SUBJECT]] [POINTER]`; raise ValueError if it is invalid."""
    words = text.split()
    if not words:
        raise ValueError("nothing is named")
    tokens: Pointer = ()
    if words[-1].startswith("/"):
        tokens = pointer(words.pop())
        if tokens[0] not in _PARTS:
            raise ValueError(f"a pointer begins with {', '.join('/' + part for part in _PARTS)}")
    method, subject = (words[0] if words else "*"), " ".join(words[1:]) or "*"
    return Ignored(method, subject, tokens)


_PARTS = ("params", "result", "error", "progress", DEEP, "*")


def cut(value: Any, patterns: Iterable[Pointer]) -> Any:
    """Return a value without what the patterns match. In a list, null replaces an item: the others keep their
    index.

    A value that is nested deeper than Python's recursion limit is returned unchanged.
    """
    active = [tokens for pattern in patterns for tokens in _shallow(pattern)]
    try:
        return _cut(value, active) if active else value
    except RecursionError:
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
        if tokens[0] == DEEP:
            if len(tokens) == 1:
                return [], True
            below += _shallow(tokens)
        elif _is_like(tokens[0], token):
            if len(tokens) == 1:
                return [], True
            below += _shallow(tokens[1:])
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
    return re.compile(
        "".join({"*": ".*", "?": "."}.get(character, re.escape(character)) for character in glob), re.DOTALL
    )
