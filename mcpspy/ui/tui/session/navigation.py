"""The rows to which the navigation keys of a session lead."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable

from mcpspy.core.query.parser import Query
from mcpspy.ui.model.filter_items import RowItem
from mcpspy.ui.model.row_filter import FilteredView
from mcpspy.ui.model.session_model import SessionModel
from mcpspy.ui.tui.session.background import SLICE
from mcpspy.ui.tui.session.message_list import MessageList


class Navigation:
    """Targets of the navigation keys: a row, or None if there is none. A step is 1 or -1."""

    def __init__(self, model: SessionModel, view: FilteredView, listing: MessageList) -> None:
        self._model = model
        self._view = view
        self._listing = listing

    def next_of(self, some: Iterable[int], step: int) -> int | None:
        """Return the next row in a set; a request also matches by its response, which may be much further down."""
        index, exchanges = self._model.index, self._view.options.exchanges
        wanted = set(some)
        for row in self._rows_from_cursor(step) if wanted else ():
            if row in wanted or (exchanges and index.request(row) == row and index.pair(row) in wanted):
                return row
        return None

    def same_target(self, step: int) -> int | None:
        index, here = self._model.index, self._listing.row
        if here is None:
            return None
        method, subject = index.method, index.subject
        target = method[here], subject[here]
        return next(
            (row for row in self._rows_from_cursor(step) if (method[row], subject[row]) == target), None
        )

    def marked(self, step: int) -> int | None:
        here = self._listing.row
        if here is None:
            return None
        return min(
            (row for row in self._listing.marked if (row - here) * step > 0),
            key=lambda row: row * step,
            default=None,
        )

    def linked(self, step: int) -> int | None:
        """Return the next request in an `input_required` chain, or the previous one; else the page of a call to an
        app, and from a page its first call.
        """
        index, here = self._model.index, self._listing.row
        request = None if here is None else index.request(here)
        links = index.continued_by if step > 0 else index.continues
        if request is None:
            return None
        apps = self._listing.apps
        linked = links.get(request)
        return linked if linked is not None else (apps.page_of if step > 0 else apps.call_of)(request)

    async def next_match(self, query: Query, step: int) -> int | None:
        """Return the next row that matches a filter. Rows are tested in slices; a change of the list ends it."""
        view, end = self._view, time.perf_counter() + SLICE
        item, generation = RowItem(self._model, exchanges=view.options.exchanges), view.generation
        place = self._listing.cursor + step
        while 0 <= place < len(view) and view.generation == generation:
            item.row = view.rows[place]
            if query.matches(item):
                return item.row
            place += step
            if time.perf_counter() > end:
                await asyncio.sleep(0)
                end = time.perf_counter() + SLICE
        return None

    def _rows_from_cursor(self, step: int) -> Iterable[int]:
        rows = self._view.rows
        cursor = min(self._listing.cursor, len(rows))  # The list may not show the rows of the view yet.
        places = range(cursor + step, len(rows) if step > 0 else -1, step)
        return (rows[place] for place in places)
