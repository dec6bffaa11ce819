"""The lines of a diff, and the list that shows them.

This module owns their order, roles and filter, and how much of a value fits;
`ui.report.diff` has the wording.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from rich.cells import cell_len

from mcpspy.analysis import rows
from mcpspy.analysis.diff import ChangeKind, ChangeSeverity, ComparedCase, DiffChange, SessionDiff
from mcpspy.ui.report import diff as diff_report
from mcpspy.ui.report.diff import KINDS, MARKS, TONES
from mcpspy.ui.text.width import cut, cut_middle
from mcpspy.ui.tui.detail.document import StyledSpan, pieces, redacted
from mcpspy.ui.tui.widgets.columns import Column, Piece, PlacedColumn, fitted
from mcpspy.ui.tui.widgets.virtual_list import MARGIN, VirtualList

WEIGHTS = max(map(len, ChangeSeverity))

POINTER = 24
"""Columns reserved for a pointer beside its description."""

COUNT = 16
"""Columns of the note after a truncated value: `… 123456789 more`."""

INDENT = 6


class DiffRow(NamedTuple):
    """One line of the diff."""

    pieces: list[Piece]
    case: ComparedCase
    change: DiffChange | None = None
    """None in the heading line of a case."""
    begins: bool = False
    mark: str = ""
    """`-`, `+` or a space in a line of a value; otherwise empty."""

    @property
    def text(self) -> str:
        return "".join(text for text, _ in self.pieces)


def diff_rows(difference: SessionDiff, width: int, query: str = "") -> list[DiffRow]:
    """Return the lines of the changes that match the filter."""
    tests = _tests(query)
    found: list[DiffRow] = []
    for case in difference.changed:
        changes = [change for change in case.changes if _matches(case, change, tests)]
        if changes:
            found.append(DiffRow(_head(case), case))
            for change in changes:
                found += _change(case, change, width)
    return found


def whole(row: DiffRow) -> str:
    """Return the sanitized full text of a line: the whole value if the line shows one, else the line."""
    change = row.change
    if (
        change is None
        or not row.mark
        or diff_report.texts(change) is not None
        or change.kind is ChangeKind.LATENCY
    ):
        return row.text.strip()
    return diff_report.one_line(change.old if row.mark == diff_report.OLD else change.new)


def change_counts(difference: SessionDiff) -> list[Piece]:
    """Return the counts: `1 breaking · 2 notes · 14 of 17 unchanged`."""
    parts: list[Piece] = []
    for severity, count in difference.counts.items():
        if count:
            plural = "s" if severity is ChangeSeverity.NOTE and count > 1 else ""
            parts += [(f"{count:,} {severity}{plural}", TONES[severity]), (" · ", rows.QUIET)]
    compared = len(difference.cases)
    if compared == 1:
        return parts[:-1] or [("no differences", rows.OK)]
    return [*parts, (f"{compared - len(difference.changed):,} of {compared:,} unchanged", None)]


def _tests(query: str) -> list[tuple[str, bool]]:
    parts = (part for part in query.lower().split() if part != "-")
    return [(part.removeprefix("-"), not part.startswith("-")) for part in parts]


def _matches(case: ComparedCase, change: DiffChange, tests: Sequence[tuple[str, bool]]) -> bool:
    if not tests:
        return True
    text = f"{change.severity} {case.about} {change.kind} {change.pointer} {change.why}".lower()
    return all((word in text) is is_in for word, is_in in tests)


def _head(case: ComparedCase) -> list[Piece]:
    severity = case.severity
    assert severity is not None
    where = (
        diff_report.places(case)
        if any(place is not None and place.line for place in (case.old, case.new))
        else ""
    )
    return [
        (f"{severity:{WEIGHTS}} ", TONES[severity]),
        (diff_report.about(case), "title"),
        (f"  · {where}" if where else "", rows.QUIET),
    ]


def _change(case: ComparedCase, change: DiffChange, width: int) -> Iterator[DiffRow]:
    label = diff_report.reason(change)
    if label and change.pointer:
        label = f"  {label}"
    weight = f"  ({change.severity})" if change.severity is not case.severity else ""
    begin = f"  {change.kind:{KINDS}}  "
    room = max(width - len(begin) - len(label) - len(weight), POINTER)
    head: list[Piece] = [
        (begin, "word"),
        (cut_middle(diff_report.short(change.pointer), room), "key"),
        (label, None),
        (weight, TONES[change.severity]),
    ]
    if (beside := _beside(change, width - sum(len(text) for text, _ in head))) is not None:
        yield DiffRow([*head, *beside], case, change, begins=True)
        return
    yield DiffRow(head, case, change, begins=True)
    for mark, line in _body(change, max(width - INDENT, POINTER)):
        found = redacted(line, [StyledSpan(0, len(line), MARKS[mark])])
        value: list[Piece] = [(f"    {mark} ", MARKS[mark]), *pieces(line, 0, len(line), found)]
        yield DiffRow(value, case, change, mark=mark)


def _body(change: DiffChange, room: int) -> list[tuple[str, str]]:
    """Return the lines of both values, with room for the note after a truncated value."""
    found = list(diff_report.body(change, room))
    return (
        found if all(len(line) <= room for _, line in found) else list(diff_report.body(change, room - COUNT))
    )


def _beside(change: DiffChange, room: int) -> list[Piece] | None:
    if room < POINTER // 2 or _is_long(change.old) or _is_long(change.new):
        return None
    old, new = diff_report.values(change, room)
    if old is None or new is None or len(old) + len(new) + 5 > room:
        return None
    return [("  ", None), (old, rows.BAD), (f" {diff_report.ARROW} ", rows.QUIET), (new, rows.OK)]


def _is_long(value: Any) -> bool:
    """Return True for multi-line and structured values, which do not fit beside each other."""
    return isinstance(value, dict | list) or (isinstance(value, str) and "\n" in value)


BETWEEN = 3


class DiffList(VirtualList):
    HELP_NAME = "list of changes"

    def __init__(self) -> None:
        super().__init__(id="diff")
        self.rows: list[DiffRow] = []
        self.titles = ("", "")

    @property
    def room(self) -> int:
        return max(self.scrollable_content_region.width - MARGIN, 1)

    @property
    def selected(self) -> DiffRow | None:
        return self.rows[self.cursor] if self.cursor < len(self.rows) else None

    @property
    def columns(self) -> Sequence[Column]:
        old, new = self.titles
        room = max(self.room - BETWEEN - 4, 2)
        half = max(room // 2, room - cell_len(new))
        head = f"- {cut(old, half)}{' ' * BETWEEN}+ {cut(new, room - min(half, cell_len(old)))}"
        return [Column("line", head, 1, 10_000, 0)]

    def line(self, index: int, width: int) -> list[Piece]:
        return fitted(self.rows[index].pieces, width) if index < len(self.rows) else []

    def cells(self, index: int, placed: list[PlacedColumn]) -> list[Piece]:
        return [(self.rows[index].text, None)]

    def fill(self, rows: list[DiffRow]) -> None:
        held = self.selected
        self.rows = rows
        self.sync(len(rows))
        place = self._place_of(held) if held is not None else None
        # On the first change, not on the heading of its case.
        self.move_to(place if place is not None else self.following(0, 1) or 0)
        self.refresh()

    def following(self, place: int, step: int) -> int | None:
        places = range(place + 1, len(self.rows)) if step > 0 else range(place - 1, -1, -1)
        return next((index for index in places if self.rows[index].begins), None)

    def _place_of(self, held: DiffRow) -> int | None:
        same = [
            place
            for place, row in enumerate(self.rows)
            if row.case is held.case and row.change is held.change
        ]
        exact = (place for place in same if self.rows[place].mark == held.mark)
        return next(exact, same[0] if same else None)
