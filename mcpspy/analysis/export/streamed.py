"""The exchanges of a recording in constant memory, for formats with one line per exchange.

The recording is read twice. The first pass finds the outcome of each exchange that changes after it has left the window
of the newest exchanges; the second yields the exchanges in their final state.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from itertools import islice

from msgspec import structs

from mcpspy.core.recording.decode import Entry, Header
from mcpspy.core.session.exchange import Exchange
from mcpspy.core.session.session import Change
from mcpspy.core.session.streaming import StreamingSession

NEWEST = 4096
"""Maximum number of exchanges in the window."""

BYTES = 16 << 20
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
        while len(self.newest) > NEWEST or (self._size > BYTES and len(self.newest) > 1):
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
