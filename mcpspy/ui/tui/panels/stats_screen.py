"""The numbers of a session: counts, errors, times and bytes by method and tool.

Owns the table, its order and its keys. What is counted is `numbers`'.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from textual.binding import Binding, BindingType

from mcpspy.analysis import rows
from mcpspy.core.protocol.spec import CLIENT
from mcpspy.core.session.columns import RowKind
from mcpspy.ui.session_model import SessionModel
from mcpspy.ui.tui.detail.layout import Piece
from mcpspy.ui.tui.panels.panel_screen import PanelScreen, leaving
from mcpspy.ui.tui.panels.stats import StatsGroup, StatsModel
from mcpspy.ui.tui.widgets.columns import Column, PlacedColumn
from mcpspy.ui.tui.widgets.virtual_list import VirtualList

LONG = 400
"""Characters of a cell that are looked at."""

COLUMNS = (
    Column("arrow", "", 1, 1, 0),
    Column("what", "what", 20, 60, 1),
    Column("count", "count", 7, 9, 2, right=True),
    Column("errors", "errors", 7, 8, 3, right=True),
    Column("pending", "pending", 8, 8, 7, right=True),
    Column("p50", "p50", 8, 8, 4, right=True),
    Column("p95", "p95", 8, 8, 5, right=True),
    Column("most", "max", 8, 8, 6, right=True),
    Column("sent", "sent", 6, 7, 8, right=True),
    Column("back", "back", 6, 7, 9, right=True),
    Column("progress", "progress", 9, 9, 10, right=True),
    Column("", "", 0, 1000, 0),  # The last one has the rest of the line, and so no right side.
)

SORTABLE = [column.name for column in COLUMNS[1:-1]]

DOWN, UP = "▾", "▴"
"""Marks of the column that rules the order: the largest first, or the least."""


class StatsList(VirtualList):
    """Groups of calls, the totals first."""

    HELP_NAME = "in the table"

    def __init__(self) -> None:
        super().__init__(id="numbers")
        self.groups: list[StatsGroup] = []
        self.order = ("count", True)
        """The column that rules, and whether the largest comes first."""

    @property
    def columns(self) -> Sequence[Column]:
        """The columns; the one that rules is marked."""
        ruling, reverse = self.order
        mark = DOWN if reverse else UP
        return [
            column._replace(head=column.head + mark) if column.name == ruling else column
            for column in COLUMNS
        ]

    def cells(self, index: int, placed: list[PlacedColumn]) -> list[Piece]:
        group = self.groups[index]
        return [(_cell(group, column.name), _role(group, column.name)) for column, _ in placed]

    def fill(self, groups: list[StatsGroup]) -> None:
        """Show these; the cursor stays with its group."""
        held = self.groups[self.cursor] if self.cursor < len(self.groups) and self.cursor else None
        self.groups = groups
        self.sync(len(groups))
        if held is not None and held in groups:
            self.move_to(groups.index(held))
        self.refresh()


class StatsScreen(PanelScreen[str | None]):
    """How much of what; dismissed with the filter that shows it."""

    NAME = "numbers"

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "open", "show them", tooltip="filter the session by this", id="numbers.open"),
        Binding("s", "sort", "sort", tooltip="sort by the next column", id="numbers.sort"),
        Binding("S", "reverse", "reverse", tooltip="the other way round", id="numbers.reverse"),
        *leaving("numbers"),
    ]

    HELP_NAME = "the numbers"

    def __init__(self, log: SessionModel) -> None:
        self.source = self.numbers = StatsModel(log)
        self._list = StatsList()
        self._shown: object = None
        super().__init__(log, self._list)

    def look(self) -> None:
        """See what has come, and put it in order."""
        super().look()
        self._fill()

    def show(self) -> None:
        """Say what the table is about."""
        numbers, listing = self.numbers, self._list
        calls = sum(total.count for total in numbers.totals.values())
        counted = (
            f"{calls:,} requests · {numbers.notifications:,} notifications, {numbers.progress:,} of progress"
        )
        ruling, reverse = listing.order
        head = next(column.head for column in COLUMNS if column.name == ruling)
        order = f"by {head}, {'largest' if reverse else 'least'} first"
        below: list[Piece] = [("times: half of the answers took at most p50, 95 % at most p95", rows.QUIET)]
        if (behind := self.progress(numbers.judged))[0]:
            below = [behind]
        self.say([(counted, None)], below, [(order, rows.QUIET)])

    def opened(self) -> None:
        """Filter the session by what is under the cursor."""
        groups = self._list.groups
        self.dismiss(self.numbers.filter(groups[self._list.cursor]) if groups else None)

    def action_sort(self) -> None:
        ruling = SORTABLE[(SORTABLE.index(self._list.order[0]) + 1) % len(SORTABLE)]
        self._list.order = (ruling, ruling != "what")
        self._fill()
        self.show()

    def action_reverse(self) -> None:
        ruling, reverse = self._list.order
        self._list.order = (ruling, not reverse)
        self._fill()
        self.show()

    def _fill(self) -> None:
        numbers = self.numbers
        shown = (numbers.generation, numbers.judged, numbers.is_behind, self._log.is_over, self._list.order)
        if shown == self._shown:
            return
        self._shown = shown
        ruling, reverse = self._list.order
        self._list.empty = [("no request yet", rows.QUIET)] if not self.is_behind else []
        self._list.fill(self.numbers.ordered(ruling, reverse=reverse))


def _cell(group: StatsGroup, name: str) -> str:
    if not name:
        return ""
    if name == "arrow":
        return rows.FROM_CLIENT if group.side == CLIENT else rows.FROM_SERVER
    if name == "what":
        return group.what[:LONG]
    if group.kind is RowKind.NOTIFICATION and name not in ("count", "sent"):
        return ""
    value = getattr(group, name)
    if name in ("p50", "p95", "most"):
        return rows.duration(value) if len(group.answers) else ""
    if name in ("sent", "back"):
        return rows.size(value)
    return f"{value:,}" if value or name == "count" else "·"


def _role(group: StatsGroup, name: str) -> str | None:
    if name == "errors" and group.errors:
        return rows.BAD
    if name == "pending" and group.pending:
        return rows.OPEN
    if name in ("sent", "back", "progress") or group.kind is RowKind.NOTIFICATION:
        return rows.QUIET
    return None if group.method or name != "what" else "title"
