"""The list of exchanges or messages, and its updates.

The cursor stays on its row when rows are added or removed above it. New rows that
are out of view are added in batches, as every change of height needs a layout.
"""

from __future__ import annotations

import time
from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from typing import ClassVar

from mcpspy.analysis import rows
from mcpspy.core.query.fields import SLOW
from mcpspy.core.sanitize import sanitize
from mcpspy.core.session import outcome
from mcpspy.core.session.exchange import MAY_CHANGE, Exchange
from mcpspy.ui.model.apps import AppsModel
from mcpspy.ui.model.intercept_connection import HeldMessage
from mcpspy.ui.model.row_filter import FilteredView
from mcpspy.ui.model.session_loader import SessionLoader
from mcpspy.ui.text.numbers import TimeFormat, latency_bar, start_time, time_text, time_width
from mcpspy.ui.text.width import cells, shorten_status
from mcpspy.ui.tui.intercept.labels import cell
from mcpspy.ui.tui.session.labels import SEVERITY_ROLES
from mcpspy.ui.tui.widgets.columns import EXCHANGES, MESSAGES, SERVER, Column, Piece, PlacedColumn
from mcpspy.ui.tui.widgets.virtual_list import VirtualList
from mcpspy.ui.views.extension import MAX_EXCHANGE

OTHER = "▹"
"""Mark of the request or response that matches the row under the cursor."""

MARKED = "*"

LETTERS = {"error": "E", "warning": "W", "info": "i"}
"""Severity of a finding, worst first → mark of its row."""

NARROW_STATUS = 48
"""Columns of a status below which only the reason of an error is shown."""

KEPT = 2000
"""Maximum rows with cached text: a few screens."""

LONG = 1000
"""Maximum characters of a cell: no screen is wider."""

OWN = "own "
"""Beginning of the names of the user's columns."""

SHORT_METHOD = 11
"""Columns of a method and a gap; what is longer needs the column of the targets."""

BAR_FROM = 140
"""Minimum columns of the list to show the latency bar."""


class MessageList(VirtualList):
    COLUMNS: ClassVar[tuple[Column, ...]] = EXCHANGES

    def __init__(self, loader: SessionLoader, view: FilteredView, *, id: str | None = None) -> None:  # noqa: A002
        super().__init__(id=id)
        self._loader = loader
        self._model = loader.model
        self.apps = AppsModel(loader.model)
        """The links of rows to apps; the screen advances it."""
        self.view = view
        self.time = TimeFormat.RELATIVE
        self.marked: set[int] = set()
        self.notes: dict[int, str] = {}
        """The user's notes on rows; a row with a note is marked."""
        self.held: Mapping[int, HeldMessage] = {}
        self._row = 0
        """The row of the cursor, or the hidden row it returns to."""
        self._above = 0
        """Lines between the top of the list and the cursor."""
        self._is_settled = True
        """True if the cursor is on its row."""
        self._generation = view.generation
        """Generation of the view at the last sync."""
        self._version = view.version
        self._order = view.options.order, view.options.reverse
        """The sort order at the last sync."""
        self._row_texts: dict[object, rows.Row] = {}
        self._waiting: set[int] = set()

    @property
    def row(self) -> int | None:
        """The selected row of the model; None if the list is empty."""
        if self._is_settled and self._generation == self.view.generation:
            return self._under
        # Its position is unknown or outdated.
        return self._row if self.count and self._row < len(self._model) else None

    @property
    def runs(self) -> bool:
        return bool(self._waiting) and self._loader.is_live

    @property
    def columns(self) -> Sequence[Column]:
        """The columns. The time is as wide as needed, and rare columns appear only if they have content."""
        index = self._model.index
        wide, options = time_width(self.time, index.last_at), self.view.options
        columns = EXCHANGES if options.exchanges else MESSAGES
        left_out = {
            *(() if len(index.streams) > 1 or self._model.is_merged else ("stream",)),
            *(() if self._model.findings.count else ("finding",)),
            *(() if self.size.width >= BAR_FROM else ("bar",)),
        }
        kept = {column.name: column for column in columns if column.name not in left_out}
        if self._model.is_merged:
            kept["stream"] = SERVER
        kept["time"] = kept["time"]._replace(least=wide, most=wide)
        if index.is_over:  # No latency has an ellipsis.
            kept["latency"] = kept["latency"].needing(8)
        own = [Column(OWN + name, name, max(cells(name), 4), 40, 4) for name in self._own_columns]
        *first, status = kept.values()
        return [self._sorted(column) for column in (*first, *own, status)]

    @property
    def _own_columns(self) -> Iterable[str]:
        """The headings of the user's columns."""
        extension = getattr(self.app, "extension", None)
        return () if extension is None else extension.columns

    def growing(self, index: int) -> Iterable[tuple[str, str]]:
        """Yield method, target, id and status, of merged sessions also the server. Without a target, a method also uses the column of the targets.

        A notification uses the columns up to the size, which it leaves empty.
        """
        columns = self._model.index
        if index >= len(self.view):
            return
        row = self.view.rows[index]
        if self._model.is_merged:
            yield "stream", columns.texts[columns.stream[row]][:LONG]
        if self._model.is_text(row) or self._model.is_notification(row):
            return
        method, subject = (
            columns.texts[columns.method[row]][:LONG],
            columns.texts[columns.subject[row]][:LONG],
        )
        if subject:
            yield "method", method
            yield "subject", subject
        else:
            yield "method", method[: SHORT_METHOD - 1]
            yield "subject", method[SHORT_METHOD:]
        yield "id", (columns.id(row) or "")[:LONG]
        yield "status", shorten_status(self._row_text(row).status, LONG)
        for name in self._own_columns:
            yield OWN + name, self._own_cell(name, row)[0]

    def cells(self, index: int, placed: list[PlacedColumn]) -> list[Piece]:
        if index >= len(self.view):  # The file was just truncated, and the old rows are still shown.
            return [("…" if self.view.is_behind else "", rows.QUIET)]
        row = self.view.rows[index]
        if row in self.held or self._model.index.state(row) in MAY_CHANGE:
            self._waiting.add(index)
        row_text = self._row_text(row)
        is_whole = self._model.is_text(row)  # Its text uses the whole line.
        cells: list[Piece] = []
        for column, wide in placed:
            if is_whole and column.name == "method":
                text = f"{row_text.method:<6}  {row_text.subject}  {row_text.status}".rstrip()
                return [*cells, (text, self._tone(row, row_text.tone))]
            cells.append(self._cell(column.name, wide, row_text, row, index))
        return cells

    def _tone(self, row: int, tone: str) -> str | None:
        """Return the tone of a row; lines on stderr before an error or a crash are not quiet."""
        index = self._model.index
        if tone == rows.QUIET and self._model.note(row) == "stderr":
            return None if row in index.last_stderr or index.is_before_error(row) else tone
        return tone

    def mark(self, index: int) -> str:
        row = self.view.rows[index] if index < len(self.view) else -1
        own = MARKED if row in self.marked else " "
        if index != self.cursor and (here := self.row) is not None and self._model.other(here) == row:
            return OTHER + own
        return super().mark(index) + own

    def sync(self, count: int) -> None:
        """Show the current rows of the view. The cursor keeps its row and screen line, except in a new sort order."""
        view = self.view
        if self._is_settled:
            self._above = self.cursor - self.scroll_offset.y
        self._generation = view.generation
        if not self.follow and count:
            if self._order != (order := (view.options.order, view.options.reverse)):
                self._order = order
                if view.options.is_sorted:  # The first rows are those that the user wants to see.
                    self._row, self._is_settled = view.rows[0], False
            place = view.place_of(self._row)
            if place != self.cursor or not self._is_settled:
                self.extend(count + 1)
                self.count = count
                self.cursor = place
                self.jump(max(place - min(self._above, self._page() - 1), 0))
                self.refresh()
        super().sync(count)
        if self._version != view.version:
            self._version = view.version
            self.refresh()
        # While filtering continues, the wanted row may still appear.
        row = self._under
        is_past = row is not None and not view.options.is_sorted and row >= self._row
        self._is_settled = row is not None and (self.follow or is_past or not view.is_behind)
        self._remember()

    def move_to(self, index: int) -> None:
        if self._generation != self.view.generation:
            self.sync(len(self.view))
        before = self.cursor
        super().move_to(index)
        # Resizing must not change the wanted row.
        self._is_settled |= self.cursor != before
        self._remember()

    def go_to(self, row: int) -> None:
        self._row = row
        self.move_to(self.view.place_of(row))

    def hold(self, rows: Mapping[int, HeldMessage]) -> None:
        """Mark these rows as held, and no others."""
        if rows != self.held:
            self.held = rows
            self.refresh()

    def renew(self) -> None:
        """Redraw the rows that wait for a response, as their latency grows."""
        waiting, self._waiting = self._waiting, set()
        for index in waiting:
            super()._repaint(index)

    def _sorted(self, column: Column) -> Column:
        """Return a column with an arrow in its heading if the list is sorted by it; then it is never left out."""
        options = self.view.options
        if not options.is_sorted or column.name != options.order:
            return column
        return column._replace(head=column.head + ("↓" if options.is_downward else "↑"), rank=-1)

    @property
    def _under(self) -> int | None:
        return self.view.rows[self.cursor] if self.cursor < len(self.view) else None

    def _remember(self) -> None:
        if self._is_settled and (row := self._under) is not None:
            self._row = row

    def _repaint(self, index: int) -> None:
        super()._repaint(index)
        row = self.view.rows[index] if index < len(self.view) else None
        if row is not None and (other := self._model.other(row)) is not None and self.view.contains(other):
            super()._repaint(self.view.place_of(other))

    def _cell(self, name: str, wide: int, label: rows.Row, row: int, place: int) -> Piece:
        index = self._model.index
        if name == "time":
            if self._model.is_damaged(row):
                return "", rows.QUIET
            before = index.at[self.view.rows[place - 1]] if place else 0.0
            return time_text(
                self.time, index.at[row], before, start_time(self._model.header.started)
            ), rows.QUIET
        if name == "stream":
            stream = index.texts[index.stream[row]]
            return sanitize(stream if self._model.is_merged else index.client_label(stream)), rows.QUIET
        if name == "finding":
            found = self._model.findings.of_both(index, row, exchanges=self.view.options.exchanges)
            severities = {each.severity for each in found}
            return next(
                ((LETTERS[one], SEVERITY_ROLES[one]) for one in LETTERS if one in severities), ("", None)
            )
        if name.startswith(OWN):
            return self._own_cell(name.removeprefix(OWN), row)
        if name == "bar":
            return latency_bar(index.latency(row)), label.tone
        if name == "latency" and (index.latency(row) or 0.0) > SLOW:
            return label.latency, rows.OPEN
        if name == "status" and row in self.held:
            return cell(self.held[row], time.monotonic())
        text: str = getattr(label, name)
        if self._model.is_notification(row) and self._needs_target(label):
            text = {"method": f"{label.method}  {label.subject}", "subject": ""}.get(name, text)
        if name == "status" and wide < NARROW_STATUS:
            text = shorten_status(text, wide)
        return text, _role(name, label)

    def _own_cell(self, name: str, row: int) -> Piece:
        """Return the cell of a user's column: in the list of messages, only at the end of an exchange."""
        index, model = self._model.index, self._model
        request, answer = index.request(row), index.pair(row)
        is_request = model.is_request(row)
        if request is None or (is_request and answer is not None and not self.view.options.exchanges):
            return "", None
        key = model.generation, request, index.pair(request), index.state(row)

        def exchange() -> Exchange | None:
            size = index.size[row] + (0 if answer is None else index.size[answer])
            change = model.get(request) if size <= MAX_EXCHANGE else None
            return None if change is None else change.exchange

        piece: Piece = self.app.extension.cell(name, key, exchange)  # type: ignore[attr-defined]
        return piece

    def _needs_target(self, label: rows.Row) -> bool:
        """Return whether the method of a notification needs the columns of the target, which then follows it."""
        time_width = next((wide for column, wide in self._placed if column.name == "method"), 0)
        return bool(label.subject) and len(label.method) > time_width

    def _row_text(self, row: int) -> rows.Row:
        """Return the texts of a row, cached by all they depend on, except a pending request, whose latency grows."""
        index = self._model.index
        state = index.state(row)
        pair = index.pair(row)
        done = index.effects.get(row), None if pair is None else index.effects.get(pair)
        link = self.apps.words(row)
        key = (self._model.generation, row, self.view.options.exchanges, state, pair, done, link)
        is_open = state is not None and outcome.of(state).is_open
        waits = is_open and self._model.is_request(row) and self.view.options.exchanges
        text = None if waits else self._row_texts.get(key)
        if text is None:
            if len(self._row_texts) > KEPT:
                self._row_texts.clear()
            drawn = self._row_of(row)
            drawn = drawn._replace(status=rows.with_link(drawn.status, link))
            text = rows.Row(*(cell[:LONG] for cell in drawn))
            if not waits:
                self._row_texts[key] = text
        return text

    def _row_of(self, row: int) -> rows.Row:
        index, change = self._model.index, self._model.shown(row)
        if self._model.is_request(row) and self.view.options.exchanges:
            answer = index.pair(row)
            sizes = index.size[row], None if answer is None else index.size[answer]
            return rows.exchange_row(change, sizes, self._loader.now)
        row_text = rows.row(change)
        return row_text if not row_text.size else row_text._replace(size=rows.size(index.size[row]))


def _role(column: str, text: rows.Row) -> str | None:
    if column == "status" or (column == "latency" and text.latency.endswith("…")):
        return text.tone
    return rows.QUIET if text.tone == rows.QUIET or column in ("id", "size") else None


PAUSED = 0.5
"""Seconds between two extensions of a list whose end is not visible."""

SORTED_EVERY = 1.0


class ListUpdates:
    def __init__(self, loader: SessionLoader, view: FilteredView, listing: MessageList) -> None:
        self._loader = loader
        self._view = view
        self._listing = listing
        self._seen = 0
        """Number of rows when the list last followed the end."""
        self._shown_at = 0.0
        self._sorted_at = 0.0
        self._generation = 0

    @property
    def unseen(self) -> int:
        """The number of rows added since then; rows that a filter shows again do not count."""
        view = self._view
        return 0 if view.options.is_sorted else len(view) - bisect_left(view.rows, self._seen)

    def show(self, *, at_once: bool = False) -> None:
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
        if not view.is_behind:  # The cursor is on the last row.
            listing.follow &= listing.can_follow
        listing.renew()
        if listing.follow or not self._loader.is_live:
            self._seen = view.processed
