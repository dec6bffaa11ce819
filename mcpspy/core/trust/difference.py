"""A difference of a message from the lockfile, and the wording of a changed value."""

from __future__ import annotations

from typing import Any, NamedTuple

from mcpspy.core.lookalikes import as_latin, mixed_words, visible


class Difference(NamedTuple):
    texts: list[str]
    """One line each: `tool echo: description changed`."""
    replacement: bytes | None = None
    """The message with the trusted definitions."""
    error: str = ""
    """Message of the error that answers a refused request; empty for a listing."""
    is_policy: bool = False
    trusted: Any = None
    """The definitions that changed or are missing, or members of the handshake, without volatile members."""
    listed: Any = None
    """The same as the server lists them, with new ones."""


def manner(old: Any, new: Any) -> str:
    """Return how a value changed: `added`, `removed`, `changed`, with the kind of a change of text."""
    if old is None or new is None:
        return "added" if old is None else "removed"
    if not isinstance(old, str) or not isinstance(new, str):
        return "changed"
    if old.split() == new.split():
        return "changed (whitespace only)"
    if visible(old) == visible(new):
        return "changed (invisible characters)"
    if as_latin(visible(old)) == as_latin(visible(new)) or mixed_words(new) - mixed_words(old):
        return "changed (look-alike characters)"
    return "changed"
