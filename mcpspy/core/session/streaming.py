"""A session for one pass over a recording: it keeps the data for correlation, and no messages.

It reports the same changes as `session`, except that it forgets exchanges older than some thousands
of requests: it cannot recognise a second response or a reused id after that.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from msgspec import Raw

from mcpspy.core.protocol.message import Body, Failure, Request, Result, text
from mcpspy.core.protocol.plain_line import (
    ABSENT,
    PlainHead,
    UnreadNotification,
    UnreadRequest,
    UnreadResult,
    has_any,
    progress_token,
)
from mcpspy.core.recording.decode import Entry, Frame, Header, read_entry
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


_UNUSED = Body()

_PENDING = State.PENDING  # Reading a member of an Enum runs Python code; reading a name does not.


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
        self.exchanges: _Counted = _Counted()
        self._entries = 0
        self._take: Callable[[Change, int], None] = lambda _, __: None
        self._line = 0
        """Number of the next plain line among those of `add_lines`."""

    def add_lines(self, lines: Sequence[bytes], take: Callable[[Change, int], None]) -> None:
        """Add consecutive lines; call `take` with each change, before the next one, and the number of its line, from 0.

        The message of a plain line is a `UnreadRequest`, `UnreadNotification` or `UnreadResult`: it is only read if that is needed.
        """
        begin, self._take = 0, take
        while True:
            self._line = begin
            place = self.take_plain(lines, begin)
            self._count(place - begin)
            if place == len(lines):
                return
            for change in self.add(read_entry(lines[place])):
                take(change, place)
            begin = place + 1

    def add(self, entry: Entry) -> list[Change]:
        """Add the next entry; return its changes, which are valid until the next call."""
        for change in self.changes:
            if change.exchange is not None:
                self._release(change.exchange)
        self.changes.clear()
        self._count(1)
        return super().add(entry)

    def _count(self, entries: int) -> None:
        before, self._entries = self._entries, self._entries + entries
        if self._entries // EVERY != before // EVERY:
            self._pairing.forget_but(KEPT)

    def _plain_request(  # noqa: PLR0917 - by name takes longer, and a million are read.
        self, head: PlainHead, method: str, subject: str, number: int, data: bytes, is_modern: bool
    ) -> Exchange:
        message = UnreadRequest(
            frame=Frame(head.t, head.side, data, head.stream, head.http, head.eol),
            data=data,
            id=str(number),
            method=method,
            raw_params=ABSENT,
            body=_UNUSED,
            about=subject,
        )
        exchange = Exchange(self.exchanges.counted, message)
        self.exchanges.counted += 1
        self._pass_on(Change(self._numbered, message, exchange))
        return exchange

    def _plain_result(self, head: PlainHead, request: Exchange, data: bytes, is_error: bool) -> None:
        frame = Frame(head.t, head.side, data, head.stream, head.http, head.eol)
        request.answer = answer = UnreadResult(
            frame=frame,
            data=data,
            id=request.request.id,
            raw_result=ABSENT,
            body=_UNUSED,
            is_tool_error=is_error,
        )
        self._pass_on(Change(self._numbered, answer, request))
        self._release(request)

    def _plain_notification(self, head: PlainHead, method: str, data: bytes) -> bool:
        if has_any(data, b"_meta", b"\\u"):  # It may be one for a subscription.
            return False
        frame = Frame(head.t, head.side, data, head.stream, head.http, head.eol)
        exchange = flaw = None
        message = UnreadNotification(frame=frame, data=data, method=method, raw_params=ABSENT, body=_UNUSED)
        if method == "notifications/progress":
            exchange, flaw = self._pairing.progress(frame, text(progress_token(data)))
        self._pass_on(Change(self._numbered, message, exchange, flaw))
        return True

    def _pass_on(self, change: Change) -> None:
        self._numbered += 1
        line = self._line
        self._line = line + 1
        self._take(change, line)

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
        self.since: dict[int, float] = {}
        """Number of a request with an outcome that may change → since when, the oldest first."""

    def take(self, change: Change) -> Sequence[Exchange]:
        """Return the requests whose outcome is final after a change."""
        exchange, over = change.exchange, None
        if exchange is None:
            return ()
        state, number = exchange.state, exchange.number
        if change.what is exchange.request and exchange.poll_of is None:
            self._open[number] = exchange
            if state is _PENDING and exchange.continues is None:
                return ()
            over = exchange.continues
        elif exchange.poll_of is not None:
            exchange = exchange.poll_of
            state, number = exchange.state, exchange.number
        settled = () if over is None else self.settle(over)
        if not exchange.may_change:
            return (*settled, *self.settle(exchange)) if settled else self.settle(exchange)
        if exchange.is_open or state in (State.INPUT_REQUIRED, State.UNKNOWN):
            self.since.pop(number, None)
        elif number in self._open:
            self.since.setdefault(number, change.what.at)
        return settled

    def begin(self, exchange: Exchange) -> None:
        """Take a request that continues no other."""
        self._open[exchange.number] = exchange

    def overdue(self, at: float) -> Sequence[Exchange]:
        """Return the requests for which no late response is awaited any more at a time."""
        over: list[Exchange] = []
        while self.since:
            number, since = next(iter(self.since.items()))
            if since >= at - LATEST:
                break
            over += self.settle(self._open[number])
        return over

    def end(self) -> Iterator[Exchange]:
        """Yield all others, when the session has ended."""
        yield from (exchange for exchange in self._open.values() if not exchange.is_open)
        self._open.clear()
        self.since.clear()

    def settle(self, exchange: Exchange) -> tuple[Exchange, ...]:
        """Take that the outcome of a request is final; return the request, if it was not settled before."""
        number = exchange.number
        if self.since:
            self.since.pop(number, None)
        return () if self._open.pop(number, None) is None else (exchange,)


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
