"""A session or a run that the web server shows: its rows by filter, in windows, while its file grows.

The server keeps the index of the session and the row numbers of the latest filters, and a browser only the rows in
view. Rows are filtered in slices, between which other requests are answered and the file is read.
"""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import islice
from typing import Any

from mcpspy.analysis import rows
from mcpspy.analysis.export.html.rows import NONE, PageRow, body_text, page_row, target
from mcpspy.core.protocol.message import Request
from mcpspy.core.query.fields import ERRORS
from mcpspy.core.query.parser import Query, parse
from mcpspy.core.recording.decode import Damaged, Note
from mcpspy.core.sanitize import sanitize
from mcpspy.core.session.exchange import Exchange
from mcpspy.core.session.session import Change
from mcpspy.io.recording.reader import RecordingState, Summary
from mcpspy.ui.model.apps import AppsModel
from mcpspy.ui.model.filter_items import RowItem
from mcpspy.ui.model.notes import flow_steps, trust_differences, trust_note
from mcpspy.ui.model.row_filter import FilteredView, SortOrder, ViewOptions
from mcpspy.ui.model.session_loader import MergedLoader, SessionLoader
from mcpspy.ui.model.timeline import PARTS, TimelineModel
from mcpspy.ui.report.explanation import first_cause
from mcpspy.ui.views.content import PENDING, Piece
from mcpspy.ui.views.extension import MAX_EXCHANGE, Extension

WINDOW = 500
"""Maximum rows of one response."""

SLICE = 0.01
"""Seconds of filtering between two turns of the event loop."""

PATIENCE = 1.0
"""Seconds after which a page gets the rows that were found so far."""

VIEWS = 4
"""Filters of one session whose rows are kept: an array of 4 bytes per row each."""

LONG = 1000
"""Maximum characters of a cell: no screen is wider."""

ALONG = 100
"""Maximum notifications shown with their request, and rows around it in which they are looked for, in thousands."""

SHORTEST = 2e-5
"""Seconds of the shortest window of a timeline."""

ERROR = parse(ERRORS)


class WebSession:
    def __init__(
        self, summaries: Sequence[Summary], extension: Extension, run: dict[str, Any] | None = None
    ) -> None:
        """`run` has the facts of a run (`runs.facts`), whose sessions are shown as one; None for a session."""
        self._extension = extension
        self._identity = object()
        """Distinguishes the rows of this session in the results of the extension."""
        self.path = summaries[0].path
        self.paths = [summary.path for summary in summaries]
        self._run = run
        self._loader = SessionLoader(summaries[0]) if run is None else MergedLoader(summaries)
        self._loader.uses_cache = run is None
        self.model = self._loader.model
        self._apps = AppsModel(self.model)
        self.readers = 0
        """Event streams that are open: a session that a page shows is not closed."""
        self._timeline: TimelineModel | None = None
        self._views: OrderedDict[tuple[str, str, bool], FilteredView] = OrderedDict()
        self._cause = ""
        """The first cause of a session that failed, once it has ended."""
        self._task = asyncio.create_task(self._read())

    async def close(self) -> None:
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)
        self._loader.close()

    async def _read(self) -> None:
        await self._loader.read()
        counts, end = self.model.index.counts, self.model.index.exit
        if self._run is None and (counts.errors or counts.unanswered or self._tone(end) == rows.BAD):
            cause = await asyncio.to_thread(first_cause, self.path)
            self._cause = "" if cause is None else cause.title

    @property
    def is_live(self) -> bool:
        return self._loader.state is RecordingState.LIVE

    @property
    def is_controllable(self) -> bool:
        """True for a live session; the sessions of a run are controlled one by one."""
        return self.is_live and self._run is None

    @property
    def is_behind(self) -> bool:
        """True while a long file is read."""
        return self._loader.is_behind and not self._task.done()

    @property
    def version(self) -> list[Any]:
        """A value that changes whenever the rows, their contents or the facts may have changed."""
        loader, model = self._loader, self.model
        return [model.generation, len(model), model.is_over, str(loader.state), loader.trouble, self._cause]

    def facts(self) -> dict[str, Any]:
        """Return what the head of the page shows."""
        header, index, loader = self.model.header, self.model.index, self._loader
        return {
            "id": sanitize(header.id),
            "name": sanitize(header.name) or "session",
            "started": sanitize(header.started),
            "transport": sanitize(header.transport),
            "target": target(header),
            "redacted": header.redacted is True,
            "client": sanitize(str(index.client or "")),
            "server": sanitize(str(index.server or "")),
            "revision": sanitize(index.revision_text),
            "state": str(loader.state),
            "ending": rows.ending(index.exit),
            "endingTone": self._tone(index.exit),
            "cause": self._cause,
            "trouble": sanitize(loader.trouble),
            "read": min(loader.done / max(loader.size, 1), 1.0) if loader.is_behind else 1.0,
            "lasted": loader.now,
            **index.counts._asdict(),
            "tracks": list(map(sanitize, self.model.sessions)),
            "columns": list(self._extension.columns),
            **(self._run or {}),
        }

    def _tone(self, end: Note | None) -> str:
        """Return the tone of the end, or of the state of a session that has not ended."""
        state = self._loader.state
        if end is not None:
            return rows.BAD if rows.ended_badly(end) else rows.QUIET
        return rows.BAD if state is RecordingState.DIED else rows.OK if self.is_live else rows.QUIET

    async def view(self, query: Query, order: str = "time", *, http: bool = False) -> FilteredView:
        """Return the rows that match a filter, of those read so far; after `PATIENCE`, of those filtered so far.

        `order` is time, latency or size, and `-reverse` after it turns it round. Raises ValueError for another one.
        """
        key = (query.text, order, http)
        view = self._views.pop(key, None)
        if view is None:
            name, _, direction = order.partition("-")
            options = ViewOptions(query=query, http=http, order=SortOrder(name), reverse=bool(direction))
            view = FilteredView(self.model, options)
        self._views[key] = view
        while len(self._views) > VIEWS:
            self._views.popitem(last=False)
        is_early = _for_seconds(PATIENCE)
        view.advance(_for_seconds(SLICE))
        while view.is_behind and is_early():
            await asyncio.sleep(0)
            view.advance(_for_seconds(SLICE))
        if view.is_stale:
            view.sort()
        while self._apps.is_behind and is_early():
            self._apps.advance(_for_seconds(SLICE))
            await asyncio.sleep(0)
        return view

    def window(self, view: FilteredView, first: int, count: int) -> Sequence[int]:
        """Return the numbers of at most `WINDOW` rows of a view, the first at place `first`."""
        return view.rows[max(first, 0) : first + min(count, WINDOW)]

    def row(self, row: int) -> dict[str, Any]:
        """Return a row as a list shows it, of the index alone if its message is large; its bodies are rows."""
        members = self._page_row(self.model.shown(row))._asdict()
        return {name: each[:LONG] if isinstance(each, str) else each for name, each in members.items()}

    async def reach(self, row: int) -> None:
        """Wait until a row is read, or the whole file as it was when it was opened; at most `PATIENCE`."""
        is_early, loader = _for_seconds(PATIENCE), self._loader
        while row >= len(self.model) and loader.done < loader.size and is_early():
            if self._task.done():
                break
            await asyncio.sleep(SLICE)

    def listed_row(self, row: int) -> int:
        """Return the row that shows a message in a list: for a response, that of its request."""
        index = self.model.index
        request = index.request(row) if 0 <= row < len(index) and index.is_answer(row) else None
        return row if request is None else request

    def message(self, row: int) -> dict[str, Any] | None:
        """Return a row with its bodies and the rows that belong to it; None if it does not exist."""
        change, index = self.model.get(row), self.model.index
        if change is None:
            return None
        request = index.request(row)
        is_request = request == row
        answer = index.answer(row) if is_request else None
        number = index.http(row) if answer is None else index.http(row) or index.http(answer)
        carriers = self._carriers(row, number) if not self.model.note(row) else []
        related = {
            "request": None if is_request else request,
            "before": index.continues.get(row),
            "after": index.continued_by.get(row),
            "page": self._apps.page_of(row),
            "call": self._apps.call_of(row),
        }
        bodies = [row, *([] if answer is None else [answer]), *carriers]
        return {
            "row": self._page_row(change)._asdict(),
            "bodies": {str(each): body_text(self.model.message(each)) for each in bodies},
            "along": [
                self.row(each) for each in (self._along(row) if is_request else flow_steps(self.model, row))
            ],
            "carriers": [self.row(each) for each in carriers],
            "related": {name: None if each is None else self.row(each) for name, each in related.items()},
        }

    async def cells(self, rows: Iterable[int]) -> list[list[Piece]]:
        """Return the cells of the user's columns; those that are not ready are pending."""
        found, may_continue = [], _for_seconds(SLICE)
        for row in rows if self._extension.columns else ():
            found.append(self._cells(row))
            if not may_continue():
                await asyncio.sleep(0)
                may_continue = _for_seconds(SLICE)
        return found

    def _cells(self, row: int) -> list[Piece]:
        index, model = self.model.index, self.model
        request, answer = index.request(row), index.answer(row)
        if request is None or (row != request and not index.is_answer(row)):
            return []
        key = self._identity, model.generation, request, answer, index.state(request)

        def exchange() -> Exchange | None:
            size = index.size[request] + (0 if answer is None else index.size[answer])
            change = model.get(request) if size <= MAX_EXCHANGE else None
            return None if change is None else change.exchange

        return [self._extension.cell(heading, key, exchange) for heading in self._extension.columns]

    async def views(self, row: int) -> dict[str, Any]:
        """Return the cells of a row, and the views of its message and of its response by the numbers of their rows."""
        index, model = self.model.index, self.model
        answer = index.answer(row) if index.request(row) == row else None
        messages = {each: model.message(each) for each in (row, *([] if answer is None else [answer]))}
        found = {
            each: await asyncio.to_thread(self._extension.views, what.data, PATIENCE)
            for each, what in messages.items()
            if not isinstance(what, Note | Damaged)
        }
        (cells,) = await self.cells([row]) or [[]]
        waits = is_pending(cells) or any(view.lines is PENDING for views in found.values() for view in views)
        shown = {str(each): [view._asdict() for view in views] for each, views in found.items()}
        return {"cells": cells, "views": shown, "waits": waits}

    async def timeline(self, view: FilteredView, query: Mapping[str, str]) -> dict[str, Any]:
        """Return a window of the timeline: `begin` and `end` in seconds, in a number of `parts`."""
        if self._timeline is None:
            self._timeline = TimelineModel(self.model)
        timeline, is_early = self._timeline, _for_seconds(PATIENCE)
        while timeline.is_behind and is_early():
            timeline.advance(_for_seconds(SLICE))
            await asyncio.sleep(0)
        whole = max(self._loader.now, SHORTEST)
        begin = min(max(float(query.get("begin", 0)), 0.0), whole - SHORTEST)
        end = min(max(float(query.get("end", whole)), begin + SHORTEST), whole)
        parts = min(max(int(query.get("parts", 200)), 1), PARTS)
        found = await asyncio.to_thread(timeline.window, view.rows, begin, end, parts, whole)
        return {
            **found,
            "whole": whole,
            "behind": timeline.is_behind or view.is_behind or self._loader.is_behind,
        }

    async def differences(self, ticket: int) -> list[str]:
        """Return the differences of a held message from the lockfile, when the note about it was read."""
        is_early = _for_seconds(PATIENCE)
        while (row := self.model.index.held.get(ticket)) is None and is_early():
            if self._task.done():
                break
            await asyncio.sleep(SLICE)
        note = None if row is None else trust_note(self.model, row)
        return [] if note is None else [line for line, _ in trust_differences(note)]

    async def seek(self, view: FilteredView, place: int, step: int) -> int | None:
        """Return the next place of an error in a view from a place, without it; None if there is none."""
        item, may_continue = RowItem(self.model, exchanges=True), _for_seconds(SLICE)
        place += step
        while 0 <= place < len(view):
            item.row = view.rows[place]
            if ERROR.matches(item):
                return place
            place += step
            if not may_continue():
                await asyncio.sleep(0)
                may_continue = _for_seconds(SLICE)
        return None

    def _page_row(self, change: Change) -> PageRow:
        index, row = self.model.index, change.number
        answer = index.answer(row) if isinstance(change.what, Request) else None
        sizes = index.size[row], None if answer is None else index.size[answer]
        flaw = None if answer is None else index.flaws.get(answer)
        bodies = row, NONE if answer is None else answer
        found = page_row(change, bodies, sizes, self._loader.now, flaw)
        return found._replace(status=rows.with_link(found.status, self._apps.words(row)))

    def _along(self, request: int) -> Iterable[int]:
        """Yield the notifications that belong to a request: its progress, and its cancellation."""
        index = self.model.index
        until = min(index.answer(request) or len(index), request + ALONG * 1000, len(index))
        return islice(self.model.notifications_of(request, request + 1, until), ALONG)

    def _carriers(self, row: int, number: int | None) -> list[int]:
        """Return the notes with the HTTP headers of a message, and with the text of a refusal."""
        index = self.model.index
        found = () if number is None else (index.heads.get(number), index.refusals.get(number))
        return [row for row in found if row is not None]


def is_pending(cells: Iterable[Piece]) -> bool:
    """Return whether any of the user's cells is not ready."""
    return any(cell == PENDING[0][0] for cell in cells)


def _for_seconds(seconds: float) -> Callable[[], bool]:
    """Return a function that is true for this time."""
    end = time.perf_counter() + seconds
    return lambda: time.perf_counter() < end
