"""A session for one pass over a recording: it keeps the data for correlation, and no messages.

It reports the same changes as `session`, except that it forgets exchanges older than some thousands
of requests: it cannot recognise a second response or a reused id after that.
"""

from __future__ import annotations

from msgspec import Raw

from mcpspy.core.protocol.message import AnyMessage, Body, Failure, Request, Result
from mcpspy.core.recording.decode import Damaged, Entry, Frame, Header, Note
from mcpspy.core.session.exchange import Exchange
from mcpspy.core.session.session import Change, Session

KEPT = 4096
"""Completed requests that are remembered: a second response to an older one is only unexpected."""

HEAVY = 1 << 12
"""Bytes above which an answered request or its response is not kept completely."""

EVERY = 1024
"""Entries between two removals of old exchanges."""


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
        self._numbered = 0
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

    def _changed(
        self,
        what: AnyMessage | Note | Damaged,
        exchange: Exchange | None = None,
        flaw: str | None = None,
        effect: str | None = None,
    ) -> Change:
        change = Change(self._numbered, what, exchange, flaw, effect)
        self._numbered += 1
        self.changes.append(change)
        return change


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
