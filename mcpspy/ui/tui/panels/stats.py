"""The statistics panel: counts, errors, latencies and bytes by method and tool."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import ClassVar

from textual.binding import Binding, BindingType

from mcpspy.analysis import rows
from mcpspy.analysis.stats.quantiles import Distribution
from mcpspy.core.protocol.spec import CLIENT, SERVER
from mcpspy.core.sanitize import sanitize
from mcpspy.core.session import outcome
from mcpspy.core.session.columns import NOTIFICATION, REQUEST, RowKind
from mcpspy.core.session.exchange import State
from mcpspy.ui.session_model import SessionModel
from mcpspy.ui.tui.panels.panel_screen import IncrementalBuild, PanelScreen, leaving
from mcpspy.ui.tui.widgets.columns import Column, Piece, PlacedColumn, cut_middle
from mcpspy.ui.tui.widgets.virtual_list import VirtualList

BY_SUBJECT = {"tools/call": "tool", "prompts/get": "prompt", "resources/read": "uri"}
"""Methods that are counted per subject → the filter field of the subject."""

MOST = 2000
"""Maximum number of groups; the rest is counted in one group per side and kind."""

MAY_STILL_END = frozenset({State.CANCELLED, State.DROPPED, State.REDIRECTED, State.INCOMPLETE})
"""States of requests that are not pending, but may still get a response."""


class StatsGroup:
    """The requests or notifications of one side with the same method and subject."""

    def __init__(self, side: str, kind: RowKind, method: str = "", subject: str = "", name: str = "") -> None:
        self.side = side
        self.kind = kind
        self.method = method
        """Empty in totals and in groups of the remaining methods."""
        self.subject = subject
        self.what = name or sanitize(f"{method} {subject}".rstrip())
        self.count = self.errors = self.pending = self.progress = 0
        self.sent = self.back = 0
        """Bytes of the messages and of their responses."""
        self.answers = Distribution()
        """Latencies in seconds."""
        self.p50 = self.p95 = 0.0

    @property
    def most(self) -> float:
        return self.answers.most

    def settle(self) -> None:
        """Compute the quantiles, which is too slow to do for every response."""
        self.p50, self.p95 = self.answers.quantiles(0.5, 0.95)


class StatsModel(IncrementalBuild):
    def _begin(self) -> None:
        self.totals = {
            side: StatsGroup(side, RowKind.REQUEST, name="all requests") for side in (CLIENT, SERVER)
        }
        self.notifications = self.progress = 0
        self._groups: dict[tuple[int, int, int], StatsGroup] = {}
        self._stale: set[StatsGroup] = set()
        self._open: dict[int, bool] = {}
        """Row of a request whose outcome may still change → True if it is pending."""

    @property
    def is_behind(self) -> bool:
        return super().is_behind or bool(self._stale) or (self._index.is_over and bool(self._open))

    def advance(self, may_continue: Callable[[], bool]) -> None:
        """Process new rows and update changed groups until `may_continue` returns False."""
        super().advance(may_continue)
        # Requests without a response change their state when the session ends.
        while self._index.is_over and self._open and not super().is_behind:
            self._settle(next(iter(self._open)))
            if not may_continue():
                return
        while self._stale and not super().is_behind:
            self._stale.pop().settle()
            if not may_continue():
                return

    def ordered(self, column: str, *, reverse: bool) -> list[StatsGroup]:
        groups = sorted(self._groups.values(), key=lambda group: group.what)
        groups.sort(key=lambda group: getattr(group, column), reverse=reverse)
        return [*(total for total in self.totals.values() if total.count), *groups]

    def filter(self, group: StatsGroup) -> str:
        """Return the narrowest filter that matches the rows of a group and that a user can type."""
        parts, method = [f"is:{group.kind.name.lower()}"], group.method
        field = BY_SUBJECT.get(method)
        if method and (field in (None, "uri") or not group.subject):
            parts.append(_term("method", method))
        if field is not None:
            parts.append(_term(field, group.subject) if group.subject else 'subject=""')
        twins = (
            other
            for other in self._groups.values()
            if (other.kind, other.method, other.subject) == (group.kind, method, group.subject)
        )
        if not method or any(other.side != group.side for other in twins):
            parts.append(f"dir:{group.side}")
        return " ".join(part for part in parts if part)

    def _take(self, begin: int, end: int) -> None:
        index, is_open = self._index, self._open
        what = index.what
        for row in range(begin, end):
            kind = what[row] & 7
            request = index.pair(row) if kind != REQUEST else None
            if kind == NOTIFICATION:
                self._add_notification(row, request)
            elif (
                kind == REQUEST and index.request(row) is not None
            ):  # A repeated request is not counted again.
                self._add_request(row)
            request = None if request is None else index.polls.get(request, request)
            if request is not None and request in is_open:
                self._settle(request)

    def _add_request(self, row: int) -> None:
        size = self._index.size[row]
        for group in (self._group(row), self.totals[self._index.side(row)]):
            group.count += 1
            group.pending += 1
            group.sent += size
        self._settle(row)

    def _add_notification(self, row: int, request: int | None) -> None:
        index, group = self._index, self._group(row)
        self.notifications += 1
        group.count += 1
        group.sent += index.size[row]
        if index.texts[index.method[row]] == "notifications/progress":
            self.progress += 1
            if request is not None:
                self._group(request).progress += 1
                self.totals[index.side(request)].progress += 1

    def _settle(self, request: int) -> None:
        """Count the outcome of a request; remember the request if its outcome may still change."""
        index = self._index
        was_pending = self._open.pop(request, True)
        state, answer = index.state(request), index.pair(request)
        judged = outcome.of(state or State.PENDING)
        # The result of a task may come after its status.
        is_open = judged.is_open or (
            request in index.tasks and request not in index.finals and not index.is_over
        )
        if is_open or (state in MAY_STILL_END and not index.is_over):
            self._open[request] = is_open
        if is_open:
            return
        failed = judged.failed and index.is_counted(request)
        for group in (self._group(request), self.totals[index.side(request)]):
            group.pending -= was_pending
            group.errors += failed
            if answer is not None:
                group.back += index.size[answer]
                if request not in index.polls and (latency := index.latency(request)) is not None:
                    group.answers.add(max(latency, 0.0))
                self._stale.add(group)

    def _group(self, row: int) -> StatsGroup:
        index = self._index
        what, method = index.what[row], index.method[row]
        name = index.texts[method]
        subject = index.subject[row] if name in BY_SUBJECT else 0
        key = (what & 31, method, subject)
        group = self._groups.get(key)
        if group is None:
            kind, side = index.kind(row), index.side(row)
            if len(self._groups) < MOST:
                group = StatsGroup(side, kind, name, index.texts[subject])
            else:
                key = (what & 31, 0, 0)
                group = self._groups.get(key) or StatsGroup(side, kind, name=f"(other {kind.name.lower()}s)")
            self._groups[key] = group
        return group


def _term(field: str, text: str) -> str:
    """Return the filter term for a text, or for the longest printable part of it."""
    part, op = text, "="
    if sanitize(text) != text:
        printable = (character if sanitize(character) == character else "\n" for character in text)
        part, op = max("".join(printable).split("\n"), key=len), ":"
    if not part.strip() and op == ":":
        return ""
    escaped = part.replace("\\", "\\\\").replace('"', '\\"')
    return f'{field}{op}"{escaped}"'


LONG = 400
STATS_COLUMNS = (
    Column("arrow", "", 1, 1, 0),
    Column("what", "method", 24, LONG, 1, enough=44, shorten=cut_middle),
    Column("count", "count", 7, 9, 2, right=True),
    Column("errors", "errors", 7, 8, 3, right=True),
    Column("pending", "pending", 8, 8, 7, right=True),
    Column("p50", "p50", 8, 8, 4, right=True),
    Column("p95", "p95", 8, 8, 5, right=True),
    Column("most", "max", 8, 8, 4, right=True),
    Column("sent", "sent", 6, 7, 8, right=True),
    Column("back", "received", 8, 8, 9, right=True),
    Column("progress", "progress", 9, 9, 10, right=True),
    Column("", "", 0, 0, 0),  # Takes the rest of the line, so that the other columns stay together.
)

RARE = ("pending", "progress")
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

    def __init__(self, model: SessionModel) -> None:
        self.source = self.numbers = StatsModel(model)
        self._list = StatsList()
        self._shown: object = None
        super().__init__(model, self._list)

    def look(self) -> None:
        super().look()
        self._fill()

    def show(self) -> None:
        numbers, listing = self.numbers, self._list
        calls = sum(total.count for total in numbers.totals.values())
        counted = (
            f"{calls:,} requests · {numbers.notifications:,} notifications ({numbers.progress:,} progress)"
        )
        sort_column, reverse = listing.order
        head = next(column.head for column in STATS_COLUMNS if column.name == sort_column)
        order = f"sorted by {head}, {'descending' if reverse else 'ascending'}"
        below: list[Piece] = [("p50, p95, max: latency of responses", rows.QUIET)]
        if (behind := self.progress(numbers.processed))[0]:
            below = [behind]
        self.set_lines([(counted, None)], below, [(order, rows.QUIET)])

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
