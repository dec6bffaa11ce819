"""Input and helpers of every exporter: sessions, in memory or streamed, wall-clock times, strict JSON.

`StreamedSession` has the exchanges of a recording in constant memory, for formats with one line per exchange. The
recording is read twice. The first pass finds the outcome of each exchange that changes after it has left the window of
the newest exchanges; the second yields the exchanges in their final state.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from itertools import islice
from typing import Any, NamedTuple, Protocol

import orjson
from msgspec import DecodeError, structs
from msgspec.json import format as lay_out

from mcpspy.core.protocol.message import Message
from mcpspy.core.recording.decode import Damaged, Entry, Header, Note
from mcpspy.core.session.exchange import Exchange
from mcpspy.core.session.session import Change
from mcpspy.core.session.streaming import StreamingSession


class UserViews(Protocol):
    """The user's columns and views (docs/scripting.md). All texts are sanitized, and have a style or None."""

    @property
    def headings(self) -> Sequence[str]: ...

    def cells(self, exchange: Exchange) -> list[tuple[str, str | None]]:
        """Return a cell for each heading."""

    def views(self, data: bytes) -> list[dict[str, Any]]:
        """Return the views of a message: `pointer`, `label`, and `lines` of texts with their styles."""


class RecordedSession(NamedTuple):
    header: Header
    name: str
    """Display name; a peer's text, not sanitized."""
    changes: Iterable[Change]
    """All changes in the order of the file; each exchange is in its final state."""
    keep: Callable[[Change], bool]
    """Returns whether a change is selected; the same for a request and its response."""
    is_live: bool = False
    """True if it is still being recorded."""
    user_views: UserViews | None = None
    """For formats that show them."""

    def selected(self) -> Iterator[Change]:
        return filter(self.keep, self.changes)

    def exchanges(self) -> Iterator[Exchange]:
        """Yield the selected exchanges, in the order of their requests."""
        for change in self.changes:
            if (exchange := change.opened) is not None and self.keep(change):
                yield exchange


class ExchangeTable(Protocol):
    """A session for formats with one line per exchange: `RecordedSession`, `streamed.StreamedSession`."""

    @property
    def header(self) -> Header: ...

    @property
    def changes(self) -> Iterable[Change]:
        """All changes in the order of the file."""

    def exchanges(self) -> Iterator[Exchange]: ...


CARRIERS = ("http", "http-end", "sse", "part")
"""Kinds of notes that only describe how messages were transported."""


def http_number(what: Message | Note | Damaged) -> int | None:
    """Return the number of the HTTP exchange that a message or note belongs to."""
    number = (
        None
        if isinstance(what, Damaged)
        else what.fields.get("http")
        if isinstance(what, Note)
        else what.frame.http
    )
    return number if isinstance(number, int) else None


def exchange_flaws(exchange: Exchange) -> list[str]:
    answer = exchange.answer
    flaws = (*exchange.flaws, *exchange.request.flaws, *(() if answer is None else answer.flaws))
    return list(dict.fromkeys(flaws))


_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

_LONGEST = 1e12
"""Seconds; a recording may have any number as a time."""


class WallClock:
    """Convert seconds since the start to UTC."""

    def __init__(self, started: str) -> None:
        """Take a header's `started`; 1970-01-01 if it is not a valid time in UTC."""
        try:
            start = datetime.fromisoformat(started)
        except ValueError:
            start = _EPOCH
        self._start = (start - _EPOCH) // timedelta(microseconds=1) if start.tzinfo is UTC else 0

    def nanoseconds(self, at: float) -> int:
        """Return nanoseconds since 1970, UTC; never negative."""
        return max(self._start + round(min(at, _LONGEST) * 1e6), 0) * 1000

    def iso(self, at: float) -> str:
        """Return a time as `2026-11-21T08:13:03.745123Z`."""
        try:
            time = _EPOCH + timedelta(microseconds=self.nanoseconds(at) // 1000)
        except OverflowError:  # After the year 9999.
            time = datetime.max
        return time.replace(tzinfo=None).isoformat(timespec="microseconds") + "Z"


def dumps(value: Any) -> str:
    """Return one line of JSON; fragments (orjson) are spliced in, integers beyond 64 bits become text."""
    try:
        return orjson.dumps(value).decode()
    except TypeError:
        return orjson.dumps(_strict(value)).decode()


def fragment(data: bytes) -> orjson.Fragment | None:
    """Return JSON that can be spliced into a line; None if it is not strict JSON."""
    try:
        orjson.loads(data)
        # JSON may contain line breaks between members, but they would end the line here.
        return orjson.Fragment(lay_out(data, indent=-1) if b"\n" in data or b"\r" in data else data)
    except (ValueError, DecodeError, RecursionError):
        return None


def _strict(value: Any) -> Any:
    if isinstance(value, str):
        return value.encode("utf-8", "backslashreplace").decode()
    if isinstance(value, dict):
        return {key: _strict(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_strict(item) for item in value]
    if isinstance(value, int) and not -(1 << 63) <= value < 1 << 64:
        return str(value)
    return value


NEWEST = 4096
"""Maximum number of exchanges in the window."""

WINDOW_BYTES = 16 << 20
"""Maximum size of their requests and responses, unless it is a single exchange."""


class StreamedSession:
    """An `ExchangeTable` for recordings of any length.

    After some thousands of requests, it recognises neither a second response nor a reused id.
    """

    def __init__(
        self,
        header: Header,
        entries: Callable[[bool], Iterable[Entry]],
        keep: Callable[[Exchange], bool],
        *,
        is_live: bool,
    ) -> None:
        """`entries` reads the recording, with True the second time; `keep` returns whether an exchange is selected."""
        self.header = header
        self._entries = entries
        self._keep = keep
        self._is_live = is_live
        self._first: _Window | None = None
        self._count = 0
        """Entries in the first pass: a live session may have more in the second."""

    @property
    def changes(self) -> Iterator[Change]:
        """The first pass: the changes in the order of the file, with exchanges that are not in their final state."""
        self._first, self._count = _Window(self.header), 0
        for entry in self._entries(False):
            self._count += 1
            yield from self._first.add(entry)
            for _ in self._first.leaving():
                pass
        if not self._is_live:
            self._first.end()

    def exchanges(self) -> Iterator[Exchange]:
        """Yield the selected exchanges in the order of their requests. Each is valid until the next."""
        if self._first is None:
            for _ in self.changes:
                pass
        return filter(self._keep, map(self._final, self._recorded()))

    def _recorded(self) -> Iterator[Exchange]:
        """Yield the exchanges without their later changes: the second pass."""
        window = _Window(self.header)
        for entry in islice(self._entries(True), self._count):
            window.add(entry)
            yield from window.leaving()
        if not self._is_live:
            window.end()
        yield from window.newest

    def _final(self, exchange: Exchange) -> Exchange:
        later = None if self._first is None else self._first.later.get(exchange.number)
        if later is None:
            return exchange
        answer = exchange.answer or later.answer
        progress = [*exchange.progress, *later.progress]
        return structs.replace(later, request=exchange.request, answer=answer, progress=progress)


class _Window(StreamingSession):
    """Keeps the newest exchanges completely, and those that change later without what they had before."""

    def __init__(self, header: Header) -> None:
        super().__init__(header)
        self.newest = deque[Exchange]()
        self.later: dict[int, Exchange] = {}
        """Number of an exchange that changed after it left the window, or may → its later state."""
        self._gone = 0
        """Exchanges that have left the window."""
        self._size = 0

    def add(self, entry: Entry) -> list[Change]:
        changes = super().add(entry)
        for change in changes:
            what, exchange = change.what, change.exchange
            if exchange is None:
                continue
            if exchange.number < self._gone:
                self.later[exchange.number] = exchange
            elif what is exchange.request:
                self.newest.append(exchange)
                self._size += len(exchange.request.data)
            elif what is exchange.answer:
                self._size += len(exchange.answer.data)
        return changes

    def leaving(self) -> Iterator[Exchange]:
        """Yield the exchanges that leave the window; each loses its messages with the next."""
        while len(self.newest) > NEWEST or (self._size > WINDOW_BYTES and len(self.newest) > 1):
            exchange = self.newest.popleft()
            self._gone += 1
            self._size -= len(exchange.request.data)
            self._size -= 0 if exchange.answer is None else len(exchange.answer.data)
            yield exchange
            if exchange.may_change:
                self.later[exchange.number] = exchange
            super()._release(exchange)

    def _release(self, exchange: Exchange) -> None:
        """Do nothing: exchanges are released when they leave the window."""
