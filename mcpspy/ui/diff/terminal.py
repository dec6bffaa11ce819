"""A difference for people at a terminal: what changed, where, from what to what.

Owns the layout. Which tone has which colour, and whether there is any, is
`mcpspy.ui.cli.output`'s.
"""

from __future__ import annotations

from collections.abc import Iterator

from mcpspy.analysis import rows
from mcpspy.analysis.diff import ChangeKind, ChangeSeverity, DiffChange, SessionDiff
from mcpspy.ui.diff import lines, words

TONES = {
    ChangeSeverity.BREAKING: rows.BAD,
    ChangeSeverity.DIFFERENT: rows.OPEN,
    ChangeSeverity.NOTE: rows.QUIET,
}
_MARKS = {lines.OLD: rows.BAD, lines.NEW: rows.OK, lines.SAME: rows.QUIET}

KINDS = max(map(len, ChangeKind))
"""Columns of the longest kind."""

WIDE = 120
"""Characters of a value where the output has no width."""


def terminal(
    difference: SessionDiff, *, width: int = 0, fail_on: ChangeSeverity = ChangeSeverity.DIFFERENT
) -> Iterator[tuple[str, str | None]]:
    """Yield the lines of the report, each with its tone; `width` 0 for lines of any length."""
    for case in difference.changed:
        severity = case.severity
        assert severity is not None
        where = words.places(case)
        yield (
            f"{severity:10} {words.about(case)}" + (f"  · {where}" if where else ""),
            TONES[severity],
        )
        for change in case.changes:
            yield from _change(change, severity, width)
    yield words.verdict(difference, fail_on), None if difference.is_same(fail_on) else rows.BAD


def _change(change: DiffChange, severity: ChangeSeverity, width: int) -> Iterator[tuple[str, str | None]]:
    head = f"  {lines.head(change, KINDS, beside=severity)}"
    room = (width or WIDE) - 6
    old, new = words.values(change, room)
    if words.texts(change) is None and old is not None and new is not None:
        both = f"{head}  {old} {words.ARROW} {new}"
        if len(both) <= (width or WIDE):
            yield both, None
            return
    yield head, None
    for mark, line in lines.body(change, room):
        yield f"    {mark} {line}", _MARKS[mark]
