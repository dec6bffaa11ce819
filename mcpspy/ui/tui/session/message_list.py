"""The list of a session's exchanges, or of its messages.

Owns what a row shows, at which width, and that the cursor stays on its row
whatever comes or goes above it. Which rows there are is `view`'s, the words
are `analysis.rows`'.

Rows that have come, and when the list is given them.

Owns that what arrives out of sight waits, because each new height is a new
layout, and how much of it a person has not seen.

Where the keys lead that go from row to row.

Owns what the next of something is, in the order that is shown; a row of an
exchange stands for both of its messages. Pure: numbers of rows in and out.

What single keys change about the rows that are shown, and what is said of it. Pure.
"""

from __future__ import annotations

import time
from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from typing import ClassVar

from msgspec.structs import replace

from mcpspy.analysis import rows
from mcpspy.core.sanitize import sanitize
from mcpspy.core.session.columns import RowKind
from mcpspy.core.session.exchange import State
from mcpspy.ui.session_model import SessionModel
from mcpspy.ui.tui.intercept.connection import HeldMessage
from mcpspy.ui.tui.intercept.labels import cell
from mcpspy.ui.tui.session.labels import SEVERITY_ROLES
from mcpspy.ui.tui.session.loader import SessionLoader
from mcpspy.ui.tui.session.row_filter import FilteredView, SortOrder, ViewOptions
from mcpspy.ui.tui.session.time_format import TimeFormat, bar, began, shown, width
from mcpspy.ui.tui.widgets.columns import EXCHANGES, MESSAGES, Column, Piece, PlacedColumn, cut_middle
from mcpspy.ui.tui.widgets.virtual_list import VirtualList

OTHER = "▹"
"""Mark of the row that the one under the cursor belongs to."""

MARKED = "*"

LETTERS = {"error": "E", "warning": "W", "info": "i"}
"""Severity of a finding, the gravest first → how the row is marked."""

KEPT = 2000
"""Rows whose text is kept: a few screens."""

LONG = 1000
"""Characters of a cell that are looked at: no screen is wider."""

MAY_CHANGE = (State.PENDING, State.CANCELLED)
"""States that an answer changes: those of requests that wait for one, or no longer do."""

BAR_FROM = 140
"""Columns from which there is room for the bar."""


class MessageList(VirtualList):
    """Rows of a view."""

    COLUMNS: ClassVar[tuple[Column, ...]] = EXCHANGES

    def __init__(self, loader: SessionLoader, view: FilteredView, *, id: str | None = None) -> None:  # noqa: A002
        super().__init__(id=id)
        self._loader = loader
        self._model = loader.model
        self.view = view
        self.time = TimeFormat.RELATIVE
        self.marked: set[int] = set()
        """Rows of the log that a person marked."""
        self.notes: dict[int, str] = {}
        """What a person wrote on rows, which are marked by that."""
        self.held: Mapping[int, HeldMessage] = {}
        """Rows whose message is held."""
        self._row = 0
        """The row that the cursor is on, or is meant to be on once it is shown again."""
        self._above = 0
        """Lines between the top of the list and the cursor."""
        self._is_settled = True
        """Whether the cursor is where it is meant to be."""
        self._generation = view.generation
        """That of the view when its rows were last taken."""
        self._version = view.version
        self._said: dict[object, rows.Row] = {}
        self._waiting: set[int] = set()
        """Places that were drawn with a request whose answer may come."""

    @property
    def row(self) -> int | None:
        """The row of the log that is selected; None if the list is empty."""
        if self._is_settled and self._generation == self.view.generation:
            return self._under
        # Its place is not known yet, or only where it was.
        return self._row if self.count and self._row < len(self._model) else None

    @property
    def runs(self) -> bool:
        return bool(self._waiting) and self._loader.is_live

    @property
    def columns(self) -> Sequence[Column]:
        """The columns; the time is as wide as the latest one, and clients are told apart where there are several."""
        index = self._model.index
        wide = width(self.time, index.last_at)
        columns = EXCHANGES if self.view.options.exchanges else MESSAGES
        left_out = {
            *(() if len(index.streams) > 1 else ("stream",)),
            *(() if self._model.findings.count else ("finding",)),
            *(() if self.size.width >= BAR_FROM else ("bar",)),
        }
        time, *others = columns
        return (
            time._replace(least=wide, most=wide),
            *(column for column in others if column.name not in left_out),
        )

    def cells(self, index: int, placed: list[PlacedColumn]) -> list[Piece]:
        if index >= len(self.view):  # The file was cut a moment ago, and the rows are still to go.
            return [("", None)]
        row = self.view.rows[index]
        if row >= len(self._model):
            return [("", None)]
        if row in self.held or self._model.index.state(row) in MAY_CHANGE:
            self._waiting.add(index)
        said = self._said_of(row)
        cells: list[Piece] = []
        for column, wide in placed:
            if said.arrow == rows.ASIDE and column.name == "subject":
                return [*cells, (f"{said.subject}  {said.status}".rstrip(), said.tone)]
            cells.append(self._cell(column.name, wide, said, row, index))
        return cells

    def mark(self, index: int) -> str:
        """Mark the row under the cursor, the one it belongs to, and those a person marked."""
        row = self.view.rows[index] if index < len(self.view) else -1
        own = MARKED if row in self.marked else " "
        if index != self.cursor and (here := self.row) is not None and self._model.other(here) == row:
            return OTHER + own
        return super().mark(index) + own

    def sync(self, count: int) -> None:
        """Show as many rows as the view has now; the cursor stays on its row, and that where it is on the screen."""
        view = self.view
        if self._is_settled:
            self._above = self.cursor - self.scroll_offset.y
        self._generation = view.generation
        if not self.follow and count:
            place = view.place_of(self._row)
            if place != self.cursor or not self._is_settled:
                self.extend(count + 1)
                self.count = count
                self.cursor = place
                self.jump(max(place - self._above, 0))
                self.refresh()
        super().sync(count)
        if self._version != view.version:
            self._version = view.version
            self.refresh()
        # While rows are still judged, the one that is meant may be yet to come.
        row = self._under
        is_past = row is not None and not view.options.is_sorted and row >= self._row
        self._is_settled = row is not None and (self.follow or is_past or not view.is_behind)
        self._remember()

    def move_to(self, index: int) -> None:
        """Put the cursor on a row."""
        if self._generation != self.view.generation:
            self.sync(len(self.view))
        before = self.cursor
        super().move_to(index)
        # Another size of the window is no wish for another row.
        self._is_settled |= self.cursor != before
        self._remember()

    def go_to(self, row: int) -> None:
        """Put the cursor on a row of the log, or the next that is shown."""
        self._row = row
        self.move_to(self.view.place_of(row))

    def hold(self, rows: Mapping[int, HeldMessage]) -> None:
        """Mark these rows, whose message is held, and no others."""
        if rows != self.held:
            self.held = rows
            self.refresh()

    def renew(self) -> None:
        """Draw again what waits for an answer: its clock runs, and it may have come."""
        waiting, self._waiting = self._waiting, set()
        for index in waiting:
            super()._repaint(index)

    @property
    def _under(self) -> int | None:
        return self.view.rows[self.cursor] if self.cursor < len(self.view) else None

    def _remember(self) -> None:
        if self._is_settled and (row := self._under) is not None:
            self._row = row

    def _repaint(self, index: int) -> None:
        super()._repaint(index)
        row = self.view.rows[index] if index < len(self.view) else None
        if row is not None and (other := self._model.other(row)) is not None and self.view.held_rows(other):
            super()._repaint(self.view.place_of(other))

    def _cell(self, name: str, wide: int, said: rows.Row, row: int, place: int) -> Piece:
        index = self._model.index
        if name == "time":
            if index.kind(row) is RowKind.DAMAGED:
                return "", rows.QUIET
            before = index.at[self.view.rows[place - 1]] if place else 0.0
            return shown(self.time, index.at[row], before, began(self._model.header.started)), rows.QUIET
        if name == "stream":
            return sanitize(index.texts[index.stream[row]]), rows.QUIET
        if name == "finding":
            found = self._model.findings.of_both(index, row, exchanges=self.view.options.exchanges)
            severities = {each.severity for each in found}
            return next(
                ((LETTERS[one], SEVERITY_ROLES[one]) for one in LETTERS if one in severities), ("", None)
            )
        if name == "bar":
            return bar(index.latency(row)), said.tone
        if name == "status" and row in self.held:
            return cell(self.held[row], time.monotonic())
        text: str = getattr(said, name)
        return cut_middle(text, wide) if name == "method" else text, _role(name, said)

    def _said_of(self, row: int) -> rows.Row:
        """Return what a row says. It changes with the state of its request, and while that waits, with the clock."""
        index = self._model.index
        state = index.state(row)
        pair = index.pair(row)
        done = index.effects.get(row), None if pair is None else index.effects.get(pair)
        key = (self._model.generation, row, self.view.options.exchanges, state, pair, done)
        waits = state is State.PENDING and index.kind(row) is RowKind.REQUEST and self.view.options.exchanges
        said = None if waits else self._said.get(key)
        if said is None:
            if len(self._said) > KEPT:
                self._said.clear()
            said = rows.Row(*(cell[:LONG] for cell in self._row_of(row)))
            if not waits:
                self._said[key] = said
        return said

    def _row_of(self, row: int) -> rows.Row:
        index, change = self._model.index, self._model.shown(row)
        if index.kind(row) is RowKind.REQUEST and self.view.options.exchanges:
            answer = index.pair(row)
            sizes = index.size[row], None if answer is None else index.size[answer]
            return rows.exchange_row(change, sizes, self._loader.now)
        said = rows.row(change)
        return said if not said.size else said._replace(size=rows.size(index.size[row]))


def _role(column: str, said: rows.Row) -> str | None:
    if column == "status" or (column == "latency" and said.latency.endswith("…")):
        return said.tone
    return rows.QUIET if said.tone == rows.QUIET or column in ("id", "size") else None


PAUSED = 0.5
"""Seconds between two growths of a list whose end is not in view."""

SORTED_EVERY = 1.0
"""Seconds between two times that a growing list is sorted."""


class ListUpdates:
    """From the view to the list."""

    def __init__(self, loader: SessionLoader, view: FilteredView, listing: MessageList) -> None:
        self._loader = loader
        self._view = view
        self._listing = listing
        self._seen = 0
        """Rows of the session that were there when it was last followed."""
        self._shown_at = 0.0
        self._sorted_at = 0.0
        self._generation = 0

    @property
    def unseen(self) -> int:
        """How many rows came since it was followed; those that a filter lets in again are not new."""
        view = self._view
        return 0 if view.options.is_sorted else len(view) - bisect_left(view.rows, self._seen)

    def show(self, *, at_once: bool = False) -> None:
        """Give the list the rows that arrived."""
        view, listing, now = self._view, self._listing, time.monotonic()
        listing.can_follow = self._loader.is_live and not view.options.is_sorted
        if view.is_stale and now > self._sorted_at + SORTED_EVERY:
            self._sorted_at = now
            view.sort()
        if view.generation != self._generation:
            self._generation = view.generation
            at_once = True
        at_once |= listing.follow or listing.has_room or now > self._shown_at + PAUSED
        if at_once and (len(view) or not view.is_behind):
            self._shown_at = now
            listing.sync(len(view))
        if not view.is_behind:  # The last row was gone to.
            listing.follow &= listing.can_follow
        listing.renew()
        if listing.follow or not self._loader.is_live:
            self._seen = view.processed


class Navigation:
    """Ways from the row under the cursor to another; None where there is none. A step is 1 or -1."""

    def __init__(self, model: SessionModel, view: FilteredView, listing: MessageList) -> None:
        self._model = model
        self._view = view
        self._listing = listing

    def next_of(self, some: Iterable[int], step: int) -> int | None:
        """Return the next row that is one of some, or whose answer is. It may be the answer of a request further up."""
        index, exchanges = self._model.index, self._view.options.exchanges
        wanted = set(some)
        for row in self._rows_from_cursor(step) if wanted else ():
            if row in wanted or (exchanges and index.request(row) == row and index.pair(row) in wanted):
                return row
        return None

    def same_target(self, step: int) -> int | None:
        """Return the next row about the same tool, or method."""
        index, here = self._model.index, self._listing.row
        if here is None:
            return None
        method, subject = index.method, index.subject
        about = method[here], subject[here]
        return next(
            (row for row in self._rows_from_cursor(step) if (method[row], subject[row]) == about), None
        )

    def marked(self, step: int) -> int | None:
        """Return the next row that a person marked."""
        here = self._listing.row
        if here is None:
            return None
        return min(
            (row for row in self._listing.marked if (row - here) * step > 0),
            key=lambda row: row * step,
            default=None,
        )

    def linked(self, step: int) -> int | None:
        """Return the request that answers the question of this one's answer; or the one whose question it answers."""
        index, here = self._model.index, self._listing.row
        request = None if here is None else index.request(here)
        links = index.continued_by if step > 0 else index.continues
        return None if request is None else links.get(request)

    def _rows_from_cursor(self, step: int) -> Iterable[int]:
        """Return the rows that are shown below the cursor, or above it, the nearest first."""
        rows, cursor = self._view.rows, self._listing.cursor
        places = range(cursor + step, len(rows) if step > 0 else -1, step)
        return (rows[place] for place in places)


MOST_SORTED = 200_000
"""Rows that can be sorted: more would keep keys waiting."""

ROW_KINDS = {
    "notifications": "notifications",
    "events": "stderr and other asides",
    "http": "HTTP exchanges",
}
"""Members of a wish that let rows in, and what these are."""


def changed_options(options: ViewOptions, what: str, count: int) -> tuple[ViewOptions, str]:
    """Return a wish with something else about it, of so many rows, and the words for that."""
    if what in ROW_KINDS:
        on = not getattr(options, what)
        return replace(options, **{what: on}), f"{ROW_KINDS[what]} are {'shown' if on else 'hidden'}"
    if what == "exchanges":
        options = replace(options, exchanges=not options.exchanges)
        return (
            options,
            "one row an exchange" if options.exchanges else "one row a message, in the order of the wire",
        )
    if what == "order":
        wanted = replace(options, order=options.order.following, reverse=False)
    else:
        wanted = replace(options, reverse=not options.reverse)
    if wanted.is_sorted and count > MOST_SORTED:
        return options, f"more than {MOST_SORTED:,} rows: filter first, then sort"
    return wanted, ordered(wanted)


def ordered(options: ViewOptions) -> str:
    if not options.is_sorted:
        return "in the order of time"
    way = "last" if options.order is SortOrder.TIME else "smallest" if options.reverse else "largest"
    return f"sorted by {options.order}, {way} first"
