"""The statistics panel: counts, errors, latencies and bytes by method and tool."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import ClassVar

from textual.binding import Binding, BindingType

from mcpspy.analysis import rows
from mcpspy.core.counted import counted
from mcpspy.ui.model.session_model import SessionModel
from mcpspy.ui.model.statistics import Origin, StatsGroup, StatsModel
from mcpspy.ui.text.width import cut_middle
from mcpspy.ui.tui.panels.panel_screen import PanelScreen, leaving
from mcpspy.ui.tui.widgets.columns import Column, Piece, PlacedColumn
from mcpspy.ui.tui.widgets.virtual_list import VirtualList

LONG = 400
STATS_COLUMNS = (
    Column("arrow", "", 1, 1, 0),
    Column("what", "method", 24, LONG, 1, enough=44, shorten=cut_middle),
    Column("count", "count", 7, 9, 2, right=True),
    Column("errors", "errors", 7, 8, 3, right=True),
    Column("unanswered", "unanswered", 10, 10, 6, right=True),
    Column("pending", "pending", 8, 8, 7, right=True),
    Column("p50", "p50", 8, 8, 4, right=True),
    Column("p95", "p95", 8, 8, 5, right=True),
    Column("p99", "p99", 8, 8, 7, right=True),
    Column("most", "max", 8, 8, 4, right=True),
    Column("sent", "sent", 6, 7, 8, right=True),
    Column("back", "received", 8, 8, 9, right=True),
    Column("", "", 0, 0, 0),  # Takes the rest of the line, so that the other columns stay together.
)

RARE = ("unanswered", "pending")
"""Columns that are shown only if they have content, or for the sort order."""

SORTABLE = [column.name for column in STATS_COLUMNS[1:-1]]

DOWN, UP = "↓", "↑"
"""Marks of the sort column: descending, ascending."""


class StatsList(VirtualList):
    HELP_NAME = "statistics table"

    def __init__(self) -> None:
        super().__init__(id="numbers")
        self.groups: list[StatsGroup] = []
        self.order = ("count", True)
        """The sort column, and True for descending order."""

    @property
    def columns(self) -> Sequence[Column]:
        sort_column, reverse = self.order
        mark = DOWN if reverse else UP
        return [
            column._replace(head=column.head + mark) if column.name == sort_column else column
            for column in STATS_COLUMNS
            if column.name not in RARE
            or column.name == sort_column
            or any(getattr(total, column.name) for total in self.groups[:2])
        ]

    def cells(self, index: int, placed: list[PlacedColumn]) -> list[Piece]:
        group = self.groups[index]
        return [(_cell(group, column.name), _role(group, column.name)) for column, _ in placed]

    def growing(self, index: int) -> Iterable[tuple[str, str]]:
        """Yield the name of a group."""
        yield "what", self.groups[index].what[:LONG]

    def fill(self, groups: list[StatsGroup]) -> None:
        held = self.groups[self.cursor] if self.cursor < len(self.groups) and self.cursor else None
        self.groups = groups
        self.sync(len(groups))
        if held is not None and held in groups:
            self.move_to(groups.index(held))
        self.refresh()


class StatsScreen(PanelScreen[str | None]):
    """The statistics screen; dismissed with the filter of the chosen group."""

    NAME = "Statistics"

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "open", "filter", tooltip="filter the session by this row", id="numbers.open"),
        Binding("s", "sort", "sort", tooltip="sort by the next column", id="numbers.sort"),
        Binding("S", "reverse", "reverse", tooltip="reverse the order", id="numbers.reverse"),
        *leaving("numbers"),
    ]

    HELP_NAME = "statistics"

    def __init__(self, model: SessionModel, origin: Origin | None = None) -> None:
        self.source = self.numbers = StatsModel(model, origin)
        self._list = StatsList()
        self._shown: object = None
        super().__init__(model, self._list)

    def look(self) -> None:
        super().look()
        self._fill()

    def show(self) -> None:
        numbers, listing = self.numbers, self._list
        calls = sum(total.count for total in numbers.totals.values())
        progress = numbers.notifications("notifications/progress")
        sent = counted(numbers.notifications(), "notification")
        text = f"{counted(calls, 'request')} · {sent} ({progress:,} progress)"
        if peak := numbers.peak:
            text = f"peak concurrency {peak:,} · {text}"
        sort_column, reverse = listing.order
        head = next(column.head for column in STATS_COLUMNS if column.name == sort_column)
        order = f"sorted by {head}, {'descending' if reverse else 'ascending'}"
        below: list[Piece] = [("p50, p95, p99, max: latency of responses", rows.QUIET)]
        if (behind := self.progress(numbers.processed))[0]:
            below = [behind]
        self.set_lines([(text, None)], below, [(order, rows.QUIET)])

    def action_open(self) -> None:
        groups = self._list.groups
        self.dismiss(self.numbers.filter(groups[self._list.cursor]) if groups else None)

    def action_sort(self) -> None:
        sort_column = SORTABLE[(SORTABLE.index(self._list.order[0]) + 1) % len(SORTABLE)]
        self._list.order = (sort_column, sort_column != "what")
        self._fill()
        self.show()

    def action_reverse(self) -> None:
        sort_column, reverse = self._list.order
        self._list.order = (sort_column, not reverse)
        self._fill()
        self.show()

    def _fill(self) -> None:
        numbers = self.numbers
        shown = (
            numbers.generation,
            numbers.processed,
            numbers.is_behind,
            self._model.is_over,
            self._list.order,
        )
        if shown == self._shown:
            return
        self._shown = shown
        sort_column, reverse = self._list.order
        self._list.empty = [("no requests yet", rows.QUIET)] if not self.is_behind else []
        self._list.fill(self.numbers.ordered(sort_column, reverse=reverse))


def _cell(group: StatsGroup, name: str) -> str:
    if not name:
        return ""
    if name == "arrow":
        return rows.arrow(group.side)
    if name == "what":
        return group.what[:LONG]
    if group.is_notification and name not in ("count", "sent"):
        return ""
    value = getattr(group, name)
    if name in ("p50", "p95", "p99", "most"):
        return rows.duration(value) if group.answers else ""
    if name in ("sent", "back"):
        return rows.size(value)
    return f"{value:,}" if value or name == "count" else "·"


def _role(group: StatsGroup, name: str) -> str | None:
    if name in ("errors", "unanswered") and getattr(group, name):
        return rows.BAD
    if name == "pending" and group.pending:
        return rows.OPEN
    if name in ("sent", "back") or group.is_notification:
        return rows.QUIET
    return None if group.method or name != "what" else "title"
