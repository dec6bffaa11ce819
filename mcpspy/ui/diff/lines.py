"""The lines of one change, each with its mark: what the terminal and the pull request share.

Owns the choice between one line, two, and the lines of two texts that differ.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator
from itertools import islice

from mcpspy.analysis.diff import ChangeSeverity, DiffChange
from mcpspy.ui.diff import words

OLD, NEW, SAME = "-", "+", " "

MOST = 40
"""Lines of two texts that are shown."""

WEIGHED = 4_000
"""Lines of two texts that are compared line by line; beyond, they are values like any other."""


def head(change: DiffChange, kind_width: int = 0, *, beside: ChangeSeverity | None = None) -> str:
    """Return what stands first: kind, pointer, what is to be said; and the weight, if it is not that of its case."""
    weight = "" if beside in (None, change.severity) else f"({change.severity})"
    parts = (f"{change.kind:{kind_width}}", words.short(change.pointer), words.said(change), weight)
    return "  ".join(part for part in parts if part)


def body(change: DiffChange, width: int) -> Iterator[tuple[str, str]]:
    """Yield the old and the new, each line with its mark."""
    if (pair := words.texts(change)) is not None and len(pair[0]) + len(pair[1]) <= WEIGHED:
        yield from _texts(*pair, width)
        return
    old, new = words.values(change, width)
    if old is not None:
        yield OLD, old
    if new is not None:
        yield NEW, new


def _texts(old: list[str], new: list[str], width: int) -> Iterator[tuple[str, str]]:
    marked = [
        (line[:1], line[1:])
        for line in islice(difflib.unified_diff(old, new, n=1, lineterm=""), 2, None)  # Behind its two heads.
        if not line.startswith("@@")
    ]
    for mark, line in marked[:MOST]:
        yield mark, line if len(line) <= width else line[: width - 1] + "…"
    if len(marked) > MOST:
        yield SAME, f"… {len(marked) - MOST} more lines"
