"""A session for one pass over a recording: it keeps the data for correlation, and no messages.

It reports the same changes as `session`, except that it forgets exchanges older than some thousands
of requests: it cannot recognise a second response or a reused id after that.
"""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Raw

from mcpspy.core.protocol.message import Body, Failure, Request, Result
from mcpspy.core.recording.decode import Entry, Frame, Header
from mcpspy.core.session.exchange import Exchange, State
from mcpspy.core.session.session import Change, Session

KEPT = 4096
"""Completed requests that are remembered: a second response to an older one is only unexpected."""

HEAVY = 1 << 12
"""Bytes above which an answered request or its response is not kept completely."""

EVERY = 1024
"""Entries between two removals of old exchanges."""


LATEST = 60.0
"""Seconds for which a late response is awaited, or the result of a task that has ended."""


class _Counted(list[Exchange]):
    """A list that only counts."""

    counted = 0

    def append(self, _: Exchange) -> None:
        self.counted += 1

    def __len__(self) -> int:
        return self.counted


class StreamingSession(Session):
    """A session that keeps only the exchanges that later entries may refer to."""

    def __init__(self, header: Header | None = None) -> None:
        super().__init__(header, forgets=True)
        self.exchanges = _Counted()
        self._entries = 0

    def add(self, entry: Entry) -> list[Change]:
        """Add the next entry; return its changes, which are valid until the next call."""
        for change in self.changes:
            if change.exchange is not None:
                self._release(change.exchange)
        self.changes.clear()
        self._entries += 1
        if self._entries % EVERY == 0:
            self._pairing.forget_but(KEPT)
        return super().add(entry)

    def _release(self, exchange: Exchange) -> None:
        """Drop what only the caller of `add` needed."""
        exchange.progress.clear()
        answer = exchange.answer
        if answer is not None and (len(exchange.request.data) > HEAVY or len(answer.data) > HEAVY):
            _lighten(exchange, answer)


class FinalOutcomes:
    """Finds the requests of a streaming session whose outcome is final, each once; polls of tasks are none."""

    def __init__(self) -> None:
        self._open: dict[int, Exchange] = {}
        """Number → request whose outcome may change."""
        self._since: dict[int, float] = {}
        """Number of a request with an outcome that may change → since when, the oldest first."""

    def take(self, change: Change) -> Iterator[Exchange]:
        """Yield the requests whose outcome is final after a change."""
        exchange = change.exchange
        if exchange is None:
            return
        if (opened := change.opened) is not None and opened.poll_of is None:
            self._open[opened.number] = opened
            if opened.continues is not None:
                yield from self._settle(opened.continues)
        exchange = exchange.poll_of or exchange
        if not exchange.may_change:
            yield from self._settle(exchange)
        elif exchange.is_open or exchange.state in (State.INPUT_REQUIRED, State.UNKNOWN):
            self._since.pop(exchange.number, None)
        elif exchange.number in self._open:
            self._since.setdefault(exchange.number, change.what.at)

    def overdue(self, at: float) -> Iterator[Exchange]:
        """Yield the requests for which no late response is awaited any more at a time."""
        while self._since:
            number, since = next(iter(self._since.items()))
            if since >= at - LATEST:
                return
            yield from self._settle(self._open[number])

    def end(self) -> Iterator[Exchange]:
        """Yield all others, when the session has ended."""
        yield from (exchange for exchange in self._open.values() if not exchange.is_open)
        self._open.clear()
        self._since.clear()

    def _settle(self, exchange: Exchange) -> Iterator[Exchange]:
        self._since.pop(exchange.number, None)
        if self._open.pop(exchange.number, None) is not None:
            yield exchange


def _lighten(exchange: Exchange, answer: Result | Failure) -> None:
    """Drop large messages of an answered exchange."""
    request = exchange.request
    if len(request.data) > HEAVY:
        exchange.request = Request(
            frame=_bare(request.frame),
            data=b"",
            id=request.id,
            method=request.method,
            raw_params=Raw(b""),
            body=Body(name=Raw(bytes(request.body.name)), uri=Raw(bytes(request.body.uri))),
        )
    if len(answer.data) > HEAVY:
        frame = _bare(answer.frame)
        if isinstance(answer, Failure):
            exchange.answer = Failure(frame=frame, data=b"", id=answer.id, raw_error=Raw(b""))
        else:
            task = Raw(b"1" if answer.is_task else b"")
            exchange.answer = Result(
                frame=frame, data=b"", id=answer.id, raw_result=Raw(b""), body=Body(task=task)
            )


def _bare(frame: Frame) -> Frame:
    return Frame(frame.at, frame.side, b"", frame.stream, frame.http, by=frame.by, to=frame.to)
