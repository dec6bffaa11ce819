"""The words of a change: the same in every report.

Owns how a value, a place and a change are said in one line. Everything returned
is inert: names, texts and pointers are the peers'.
"""

from __future__ import annotations

import json
from typing import Any

from msgspec import UNSET

from mcpspy.analysis.diff import (
    ChangeKind,
    ChangePosition,
    ChangeSeverity,
    ComparedCase,
    DiffChange,
    SessionDiff,
)
from mcpspy.analysis.rows import duration
from mcpspy.core.sanitize import sanitize

_SAID = {
    ChangeKind.ADDED: "only the new session has it",
    ChangeKind.REMOVED: "only the old session has it",
}

TOO_DEEP = "(nested too deep)"
"""Stands for a value that cannot be written."""

ARROW = "→"


LONG = 300
"""Characters of a name or a pointer that are shown: peers choose how long they are."""


def short(text: str) -> str:
    """Return a peer's word as text that does not take over the report."""
    text = sanitize(text)
    return text if len(text) <= LONG else text[: LONG - 1] + "…"


def about(case: ComparedCase) -> str:
    """Return what was compared: `tools/call forecast`."""
    return short(case.about)


def places(case: ComparedCase) -> str:
    """Return where it stands: `exchange 3 → 4, line 12 → 14`; once, if it is the same."""
    said = []
    exchanges = [None if place is None else place.exchange for place in (case.old, case.new)]
    if exchanges != [None, None]:
        said.append("exchange " + _both(exchanges))
    lines = [None if place is None else place.line for place in (case.old, case.new)]
    if any(lines):
        said.append("line " + _both(lines))
    return ", ".join(said)


def _both(numbers: list[int | None]) -> str:
    old, new = ("-" if number is None else str(number) for number in numbers)
    return new if old == new else f"{old} {ARROW} {new}"


def place(where: ChangePosition | None) -> dict[str, int]:
    if where is None:
        return {}
    return {"line": where.line, **({} if where.exchange is None else {"exchange": where.exchange})}


def said(change: DiffChange) -> str:
    """Return what is to be said of a change besides its kind, its pointer and its values; may be nothing."""
    return short(change.why) or _SAID.get(change.kind, "")


def values(change: DiffChange, width: int) -> tuple[str | None, str | None]:
    """Return the old and the new value in one line each, at most `width` characters; None if there is none.

    What they begin with alike is left out where that is needed to show what differs.
    """
    if change.kind is ChangeKind.LATENCY:
        return duration(change.old), duration(change.new)
    old, new = (None if value is UNSET else one_line(value) for value in (change.old, change.new))
    if old is None or new is None:
        return _cut(old, 0, width), _cut(new, 0, width)
    differs = next((n for n, (one, two) in enumerate(zip(old, new, strict=False)) if one != two), 0)
    longest = max(len(old), len(new))
    start = 0 if longest <= width or differs < width // 2 else differs - width // 3
    return _cut(old, start, width), _cut(new, start, width)


def one_line(value: Any) -> str:
    """Return a value as JSON in one line, made inert."""
    try:
        return sanitize(json.dumps(value, ensure_ascii=False, separators=(",", ":")))
    except (RecursionError, ValueError):
        return TOO_DEEP


def texts(change: DiffChange) -> tuple[list[str], list[str]] | None:
    """Return the lines of two texts of which one has several; None of any other values."""
    old, new = change.old, change.new
    if not isinstance(old, str) or not isinstance(new, str) or "\n" not in old + new:
        return None
    return [sanitize(line) for line in old.split("\n")], [sanitize(line) for line in new.split("\n")]


def verdict(difference: SessionDiff, fail_on: ChangeSeverity) -> str:
    """Return the one line that says it all: `changed: 1 breaking, 2 notes; 43 of 45 alike`."""
    counts = difference.counts
    notes = counts[ChangeSeverity.NOTE]
    found = [f"{counts[severity]} {severity}" for severity in ChangeSeverity if counts[severity]]
    if notes > 1:
        found[-1] += "s"
    compared = len(difference.cases)
    alike = f"{compared - len(difference.changed)} of {compared} alike"
    word = "same" if difference.is_same(fail_on) else "changed"
    return f"{word}: {', '.join(found)}; {alike}" if found else f"{word}: {alike}"


def _cut(text: str | None, start: int, width: int) -> str | None:
    if text is None or (start == 0 and len(text) <= width):
        return text
    before = "…" if start else ""
    room = max(width - 2, 1)
    rest = len(text) - start - room
    return f"{before}{text[start : start + room]}" + (f"… {rest} more" if rest > 0 else "")
