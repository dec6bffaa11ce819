"""Comparison of two sessions, or of two exchanges of one session, in a background thread.

The thread is a daemon, so that neither leaving the screen nor quitting waits
for it: `asyncio.to_thread` would, and a comparison can take a minute.
"""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Callable, Collection, Iterable
from contextlib import suppress
from datetime import datetime
from functools import partial
from threading import Thread
from typing import NamedTuple, Protocol, TypeVar

from mcpspy.analysis import rows
from mcpspy.analysis.diff import (
    ChangePosition,
    DiffOptions,
    SessionDiff,
    compare,
    compare_chosen,
)
from mcpspy.core.protocol.message import Notification, Request
from mcpspy.core.sanitize import sanitize
from mcpspy.core.session.exchange import Exchange
from mcpspy.core.session.session import Session, change_lines
from mcpspy.errors import CannotStart
from mcpspy.io.recording.reader import Recording, RecordingState, Summary
from mcpspy.ui.model.session_model import GONE, SessionModel
from mcpspy.ui.tui.session.labels import moment

T = TypeVar("T")

MayContinue = Callable[[], bool]
"""Polled by the work; returns False once the result is no longer needed."""


async def run_in_thread(work: Callable[[MayContinue], T]) -> T:
    loop = asyncio.get_running_loop()
    future: asyncio.Future[T] = loop.create_future()

    def settle(result: Callable[[asyncio.Future[T]], None]) -> None:
        if not future.done():
            result(future)

    def run() -> None:
        # Garbage collection over large sessions finds nothing and would freeze the screen.
        gc.disable()
        try:
            done = work(lambda: not future.cancelled())
        except Exception as error:
            failed = error
            result: Callable[[asyncio.Future[T]], None] = lambda waiting: waiting.set_exception(failed)  # noqa: E731
        else:
            result = lambda waiting: waiting.set_result(done)  # noqa: E731
        finally:
            gc.enable()
        with suppress(RuntimeError):  # The loop is closed: the program has ended.
            loop.call_soon_threadsafe(settle, result)

    Thread(target=run, daemon=True, name="mcpspy-diff").start()
    return await future


COMPARISON_SLICE = 2000
"""Entries or rows processed between two polls of `MayContinue`."""

Rows = dict[ChangePosition, int]


class ComparisonRun(NamedTuple):
    """A diff, with the rows of its changes on both sides."""

    difference: SessionDiff
    old: Rows
    new: Rows
    warning: str = ""
    """Problems with the files."""


class ComparablePair(Protocol):
    progress: str

    @property
    def titles(self) -> tuple[str, str]:
        """Sanitized names of the old and the new side."""

    @property
    def summaries(self) -> tuple[Summary, Summary] | None:
        """The two sessions; None for two exchanges of the session on the screen below."""

    @property
    def reversed(self) -> ComparablePair:
        """The pair with old and new swapped."""

    async def compare(self, options: DiffOptions) -> ComparisonRun:
        """Compare in a thread; raise McpspyError if a side cannot be read."""


class SessionPair:
    """Two recordings."""

    def __init__(self, old: Summary, new: Summary) -> None:
        self.summaries = old, new
        self.progress = ""

    @property
    def titles(self) -> tuple[str, str]:
        now = datetime.now().astimezone()
        old, new = (
            f"{sanitize(one.header.name) or 'session'} {sanitize(one.header.id[:8])} · {moment(one.header.started, now)}"
            f"{' · live' if one.state is RecordingState.LIVE else ''}"
            for one in self.summaries
        )
        return old, new

    @property
    def reversed(self) -> SessionPair:
        old, new = self.summaries
        return SessionPair(new, old)

    async def compare(self, options: DiffOptions) -> ComparisonRun:
        return await run_in_thread(partial(self._compare, options))

    def _compare(self, options: DiffOptions, may_continue: MayContinue) -> ComparisonRun:
        (old, torn), (new, torn_too) = (self._whole(summary, may_continue) for summary in self.summaries)
        if not may_continue():
            return ComparisonRun(SessionDiff(()), {}, {})
        self.progress = "comparing …"
        difference = compare(old, new, options)
        changed = difference.changed
        return ComparisonRun(
            difference,
            _rows_of(old, (case.old for case in changed)),
            _rows_of(new, (case.new for case in changed)),
            "; ".join(text for text in (torn, torn_too) if text),
        )

    def _whole(self, summary: Summary, may_continue: MayContinue) -> tuple[Session, str]:
        try:
            return self._read(summary, may_continue)
        except OSError as error:  # The file failed while reading, or was deleted.
            raise CannotStart(f"{summary.path}: {error.strerror}") from None

    def _read(self, summary: Summary, may_continue: MayContinue) -> tuple[Session, str]:
        """Return a session as far as it can be read, and the problems with its file."""
        name = sanitize(summary.header.name) or "session"
        recording = Recording(summary.path)
        session = Session(recording.header)
        for count, entry in enumerate(recording):
            session.add(entry)
            if count % COMPARISON_SLICE == 0:
                # A live session has grown since its summary.
                share = min(count * 100 // max(summary.entries, 1), 99)
                self.progress = f"reading {name}, {rows.size(summary.size)}B … {share} %"
                if not may_continue():
                    break
        if recording.state is not RecordingState.LIVE:
            session.end()
        torn = f"{name}: incomplete last line skipped ({recording.torn} bytes)" if recording.torn else ""
        return session, torn


class ExchangePair:
    """Two exchanges of one session, identified by the rows of their requests."""

    summaries = None

    def __init__(self, model: SessionModel, old: int, new: int) -> None:
        self._model = model
        self._old, self._new = old, new
        self.progress = ""

    @property
    def titles(self) -> tuple[str, str]:
        index = self._model.index
        old, new = (
            f"at {rows.moment(index.at[row])} s, id {sanitize((index.id(row) or 'null')[:40])}"
            if row < len(index)
            else "no longer in the file"
            for row in (self._old, self._new)
        )
        return old, new

    @property
    def reversed(self) -> ExchangePair:
        return ExchangePair(self._model, self._new, self._old)

    async def compare(self, options: DiffOptions) -> ComparisonRun:
        self.progress = "reading …"
        old, new = await self._whole(self._old), await self._whole(self._new)
        self.progress = "comparing …"
        case = await run_in_thread(lambda _: compare_chosen(old, new, options))
        return ComparisonRun(
            SessionDiff((case,)),
            {} if case.old is None else {case.old: self._old},
            {} if case.new is None else {case.new: self._new},
        )

    async def _whole(self, row: int) -> Exchange:
        """Return an exchange with all its progress notifications; the model keeps only the last one."""
        # Not in the thread: the screen reads the same file while drawing.
        model, index = self._model, self._model.index
        change = model.get(row)
        exchange = None if change is None else change.exchange
        if exchange is None or not isinstance(getattr(change, "what", None), Request):
            raise CannotStart(f"{GONE}: it was truncated or replaced", "press q to go back to the session")
        # The index does not record notifications of a subscription as progress: they may be anywhere.
        last = len(model) - 1 if exchange.is_subscription else index.progress.get(row, row)
        exchange.progress = []
        for begin in range(row + 1, last + 1, COMPARISON_SLICE):
            if begin > row + 1:
                await asyncio.sleep(0)
            end = min(begin + COMPARISON_SLICE, last + 1, len(model))
            for place in model.notifications_of(row, begin, end):
                entry = model.message(place)
                if isinstance(entry, Notification) and entry.method != "notifications/cancelled":
                    exchange.progress.append(entry)
        return exchange


def _rows_of(session: Session, places: Iterable[ChangePosition | None]) -> Rows:
    """Return the row of each position."""
    wanted: dict[int, list[ChangePosition]] = {}
    for place in places:
        if place is not None:
            wanted.setdefault(place.line, []).append(place)
    found: Rows = {}
    for line, change in zip(change_lines(session), session.changes, strict=True):
        for place in wanted.get(line, ()):
            exchange = None if change.exchange is None else change.exchange.number
            if place.exchange in (None, exchange):
                found.setdefault(place, change.number)
    return found


CHOICE_SLICE = 20_000
"""Rows searched between two turns of the event loop."""


async def choose_exchanges(
    model: SessionModel, row: int | None, marked: Collection[int]
) -> tuple[int, int] | str:
    """Return the rows of two requests, the earlier first, or the reason why there are none.

    The pair is two marked requests; the marked and the current one; or the current one and the previous
    request with the same side, method and subject.
    """
    index = model.index
    here = None if row is None else index.request(row)
    rows = (one for one in marked if one < len(index))  # The file may have been restarted.
    others = {request for one in rows if (request := index.request(one)) is not None}
    if len(others) > 2:
        return f"{len(others)} exchanges are marked: mark two to compare (m removes a mark)"
    if len(others) < 2:
        others -= {here}
        if here is None:
            return "nothing to compare: this row belongs to no request"
        before = next(iter(others)) if others else await _before(model, here)
        if before is None:
            name = f"{index.texts[index.method[here]]} {index.texts[index.subject[here]]}".rstrip()
            return f"no earlier {sanitize(name[:60])}: mark another exchange (m), then press d"
        others = {before, here}
    old, new = sorted(others)
    return old, new


async def _before(model: SessionModel, here: int) -> int | None:
    """Return the last request before this one with the same side, method and subject."""
    index = model.index
    methods, subjects = index.method, index.subject
    side, method, subject = index.side(here), methods[here], subjects[here]
    for end in range(here, 0, -CHOICE_SLICE):
        for row in range(end - 1, max(end - CHOICE_SLICE, 0) - 1, -1):
            if (
                methods[row] == method
                and subjects[row] == subject
                and index.side(row) == side
                and index.request(row) == row
            ):
                return row
        await asyncio.sleep(0)
        if model.index is not index:  # The file was restarted.
            return None
    return None
