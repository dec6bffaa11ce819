"""The OpenTelemetry spans of a session, and their trace contexts.

The parent of a span is the peer's own (`_meta.traceparent`: W3C Trace Context, MCP SEP-414), or the request
to which its progress or HTTP stream belongs. Other ids derive from the recording's id, so they are equal in
every export. Every span is of kind CLIENT, as its sender would have reported it. Pending requests have no
span yet.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from hashlib import blake2b
from typing import Any, NamedTuple

from mcpspy.analysis.export.base import RecordedSession, WallClock
from mcpspy.analysis.export.otlp.attributes import (
    StreamAttributes,
    attributes,
    carried_by,
    error_of,
    said_of,
    span_name,
)
from mcpspy.core.protocol.message import Failure, Notification, Request, Result, decoded, meta_raw
from mcpspy.core.protocol.peers import Peer, Peers
from mcpspy.core.protocol.spec import CLIENT
from mcpspy.core.recording.decode import Header, Note
from mcpspy.core.session.exchange import Exchange, State
from mcpspy.core.session.session import Change

_TRACEPARENT = re.compile(
    r"(?!ff)([0-9a-f]{2})-(?!0{32})([0-9a-f]{32})-(?!0{16})([0-9a-f]{16})-([0-9a-f]{2})(-.*)?"
)

SAMPLED = 0x01
REMOTE = 0x300
"""The parent is known to be in another process (trace.proto, SpanFlags)."""


class SpanContext(NamedTuple):
    """Trace and parent of a span."""

    trace: str
    """32 hex digits."""
    parent: str = ""
    """16 hex digits; empty if it has none."""
    flags: int = SAMPLED
    state: str = ""
    """`tracestate`, unchanged."""


def own_trace(header: Header) -> str:
    """Return the trace id of messages without a peer's trace context."""
    return _digits(header, "trace", 16)


def span_id(header: Header, what: str, number: int) -> str:
    """Return the id of a span: `what` is its kind, `number` is unique for this kind."""
    return _digits(header, f"{what} {number}", 8)


def said_context(message: Request | Notification) -> SpanContext | None:
    """Return the trace context in a message; None if there is no valid one."""
    meta = message.body.meta
    said = decoded(meta_raw(meta, "traceparent")) if bytes(meta) else None
    found = _TRACEPARENT.fullmatch(said) if isinstance(said, str) else None
    if found is None or (found[1] == "00" and found[5]):  # Only later versions may say more.
        return None
    state = decoded(meta_raw(meta, "tracestate"))
    return SpanContext(
        found[2], found[3], int(found[4], 16) & 0xFF | REMOTE, state if isinstance(state, str) else ""
    )


def _digits(header: Header, what: str, size: int) -> str:
    text = f"{header.id} {header.started} {what}".encode("utf-8", "surrogatepass")
    return blake2b(text, digest_size=size, person=b"mcpspy otlp").hexdigest()


Span = dict[str, Any]

KIND_CLIENT = 3
STATUS_ERROR = 2
"""Numbers of trace.proto: OTLP/JSON has no names for them."""

SESSION_ID = "mcp-session-id"


class SessionSpans:
    """The spans of a session, each with the side that reports it."""

    def __init__(self, session: RecordedSession) -> None:
        self._session = session
        self._header = session.header
        self._clock = WallClock(session.header.started)
        self._changes = list(session.changes)
        self._parties: dict[str | None, Peers] = {}
        self._sessions: dict[str | None, str] = {}
        self._posted: dict[int, Exchange | None] = {}
        self._closed: dict[int, float] = {}
        self._last = 0.0
        for change in self._changes:
            self._look(change)

    def parties(self, side: str) -> Peer | None:
        """Return the first peer that introduced itself on a side."""
        every = self._parties.values()
        return next(
            (found for each in every if (found := each.client if side == CLIENT else each.server)), None
        )

    def __iter__(self) -> Iterator[tuple[str, Span]]:
        for change in filter(self._session.keep, self._changes):
            what, exchange = change.what, change.exchange
            if isinstance(what, Notification):
                yield what.side, self._of_notification(change, what)
            elif isinstance(what, Request) and exchange is not None and not exchange.is_open:
                yield what.side, self._of_exchange(exchange)

    def _look(self, change: Change) -> None:
        """Collect data of the whole session."""
        what, exchange = change.what, change.exchange
        self._last = max(self._last, what.at)
        if isinstance(what, Note):
            if what.kind == "http":
                self._take_session_id(what)
            if exchange is not None:
                self._closed[exchange.number] = what.at
            return
        if not isinstance(what, Request | Result | Failure):
            return
        parties = self._parties.setdefault(what.frame.stream, Peers())
        if isinstance(what, Request):
            parties.hear_request(what)
            if what.side == CLIENT and (number := what.frame.http) is not None:
                self._posted[number] = (
                    None if number in self._posted else exchange
                )  # Of a batch it may be any.
        elif exchange is not None:
            parties.hear_answer(what, exchange.request.method)

    def _take_session_id(self, note: Note) -> None:
        for side in ("request", "response"):
            headers = note.fields.get(side)
            found = headers.get(SESSION_ID) if isinstance(headers, dict) else None
            if isinstance(found, str):
                self._sessions.setdefault(note.fields.get("stream"), found)

    def _of_exchange(self, exchange: Exchange) -> Span:
        request, answer = exchange.request, exchange.answer
        if answer is not None:
            end = answer.at
        elif exchange.state is State.CANCELLED and exchange.cancel is not None:
            end = exchange.cancel.at
        else:
            end = self._closed.get(exchange.number, self._last)
        error, message = error_of(exchange)
        span = self._span(request, self._id_of(exchange), self._context(request, None), end, error)
        if message is not None:
            span["status"] = {"code": STATUS_ERROR, **({"message": message} if message else {})}
        if exchange.continues is not None:
            before = exchange.continues
            trace = self._context(before.request, None).trace
            span["links"] = [{"traceId": trace, "spanId": self._id_of(before)}]
        return span

    def _of_notification(self, change: Change, what: Notification) -> Span:
        number = span_id(self._header, "change", change.number)
        return self._span(what, number, self._context(what, change.exchange), what.at, {})

    def _id_of(self, exchange: Exchange) -> str:
        return span_id(self._header, "exchange", exchange.number)

    def _context(self, message: Request | Notification, about: Exchange | None) -> SpanContext:
        """Return the trace context of a message; `about` is the request that a notification reports on."""
        said = said_context(message)
        if said is not None:
            return said
        if about is None and message.side != CLIENT and message.frame.http is not None:
            # What comes in the stream that answers a POST belongs to its request (2025-11-25, transports).
            about = self._posted.get(message.frame.http)
        if about is None:
            return SpanContext(own_trace(self._header))
        above = self._context(about.request, None)
        return above._replace(parent=self._id_of(about))

    def _span(
        self,
        message: Request | Notification,
        number: str,
        context: SpanContext,
        end: float,
        error: dict[str, Any],
    ) -> Span:
        stream = message.frame.stream
        parties = self._parties.get(stream)
        of = StreamAttributes(parties.revision if parties is not None else None, self._sessions.get(stream))
        carried = carried_by(self._header, message.side)
        span = {
            "traceId": context.trace,
            "spanId": number,
            "flags": context.flags,
            "name": span_name(message),
            "kind": KIND_CLIENT,
            "startTimeUnixNano": str(self._clock.nanoseconds(message.at)),
            "endTimeUnixNano": str(self._clock.nanoseconds(max(end, message.at))),
            "attributes": attributes({**said_of(message, of), **carried, **error}),
        }
        if context.parent:
            span["parentSpanId"] = context.parent
        if context.state:
            span["traceState"] = context.state
        return span
