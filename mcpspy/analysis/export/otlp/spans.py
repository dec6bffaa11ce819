"""The OpenTelemetry spans of a session, in OTLP/JSON: trace context and attributes.

The parent of a span is the peer's own (`_meta.traceparent`: W3C Trace Context, MCP SEP-414), or the request
to which its progress or HTTP stream belongs. Other ids derive from the recording's id, so they are equal in
every export. Attributes follow semantic-conventions-genai (docs/gen-ai/mcp.md, status Development), without
opt-in ones. Every span is of kind CLIENT, as its sender would have reported it. Pending requests have no span
yet.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from hashlib import blake2b
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from mcpspy import __version__
from mcpspy.analysis.export.base import RecordedSession, WallClock
from mcpspy.core.protocol.message import Failure, Notification, Request, Result, decoded, loads, meta_raw
from mcpspy.core.protocol.peers import Peer, Peers
from mcpspy.core.protocol.spec import CLIENT
from mcpspy.core.recording.decode import Header, Note
from mcpspy.core.session.exchange import Exchange, State
from mcpspy.core.session.session import Change

Span = dict[str, Any]

KIND_CLIENT = 3
STATUS_ERROR = 2
"""Numbers of trace.proto: OTLP/JSON has no names for them."""

SESSION_ID = "mcp-session-id"

Value = str | int | bool | list[str]

_LARGEST = 1 << 63

_TRACEPARENT = re.compile(
    r"(?!ff)([0-9a-f]{2})-(?!0{32})([0-9a-f]{32})-(?!0{16})([0-9a-f]{16})-([0-9a-f]{2})(-.*)?"
)

SAMPLED = 0x01
REMOTE = 0x300
"""The parent is known to be in another process (trace.proto, SpanFlags)."""

_RESOURCES = (
    "resources/read",
    "resources/subscribe",
    "resources/unsubscribe",
    "notifications/resources/updated",
)

_ERRORS = {
    State.TOOL_ERROR: "tool_error",
    State.CANCELLED: "cancelled",
    State.UNANSWERED: "no_answer",
    State.REFUSED: "refused",
    State.DROPPED: "dropped",
    State.ABANDONED: "abandoned",
}
"""`error.type` of errors without a code. The convention defines the first and allows custom ones."""


class SpanContext(NamedTuple):
    trace: str
    parent: str = ""
    """16 hex digits; empty if it has none."""
    flags: int = SAMPLED
    state: str = ""


class StreamAttributes(NamedTuple):
    revision: str | None
    session: str | None


class SessionSpans:
    """The spans of a session, each with the side that reports it."""

    def __init__(self, session: RecordedSession) -> None:
        self._session = session
        self._header = session.header
        self._clock = WallClock(session.header.started)
        self._changes = list(session.changes)
        self._peers: dict[str | None, Peers] = {}
        self._sessions: dict[str | None, str] = {}
        self._posted: dict[int, Exchange | None] = {}
        self._closed: dict[int, float] = {}
        self._last = 0.0
        for change in self._changes:
            self._look(change)

    def peer(self, side: str) -> Peer | None:
        """Return the first peer that introduced itself on a side."""
        peers = (each.client if side == CLIENT else each.server for each in self._peers.values())
        return next(filter(None, peers), None)

    def __iter__(self) -> Iterator[tuple[str, Span]]:
        for change in filter(self._session.keep, self._changes):
            what, exchange = change.what, change.exchange
            if isinstance(what, Notification):
                number = span_id(self._header, "change", change.number)
                context = self._context(what, exchange)
                yield what.side, self._span(what, number, context, what.at, {})
            elif isinstance(what, Request) and exchange is not None and not exchange.is_open:
                yield what.side, self._of_exchange(exchange)

    def _look(self, change: Change) -> None:
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
        peers = self._peers.setdefault(what.frame.stream, Peers())
        if isinstance(what, Request):
            peers.add_request(what)
            if what.side == CLIENT and (number := what.frame.http) is not None:
                # In a batch, the request of a response stream is unknown.
                self._posted[number] = None if number in self._posted else exchange
        elif exchange is not None:
            peers.add_response(what, exchange.request.method)

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
        error, message = error_attributes(exchange)
        span = self._span(request, self._id_of(exchange), self._context(request, None), end, error)
        if message is not None:
            span["status"] = {"code": STATUS_ERROR, **({"message": message} if message else {})}
        if exchange.continues is not None:
            before = exchange.continues
            trace = self._context(before.request, None).trace
            span["links"] = [{"traceId": trace, "spanId": self._id_of(before)}]
        return span

    def _id_of(self, exchange: Exchange) -> str:
        return span_id(self._header, "exchange", exchange.number)

    def _context(self, message: Request | Notification, about: Exchange | None) -> SpanContext:
        """Return the trace context of a message; `about` is the request that a notification reports on."""
        context = trace_context(message)
        if context is not None:
            return context
        if about is None and message.side != CLIENT and message.frame.http is not None:
            # Messages in the response stream of a POST belong to its request (2025-11-25, transports).
            about = self._posted.get(message.frame.http)
        if about is None:
            return SpanContext(default_trace_id(self._header))
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
        peers = self._peers.get(stream)
        of = StreamAttributes(peers.revision if peers is not None else None, self._sessions.get(stream))
        transport = transport_attributes(self._header, message.side)
        span = {
            "traceId": context.trace,
            "spanId": number,
            "flags": context.flags,
            "name": span_name(message),
            "kind": KIND_CLIENT,
            "startTimeUnixNano": str(self._clock.nanoseconds(message.at)),
            "endTimeUnixNano": str(self._clock.nanoseconds(max(end, message.at))),
            "attributes": attributes({**message_attributes(message, of), **transport, **error}),
        }
        if context.parent:
            span["parentSpanId"] = context.parent
        if context.state:
            span["traceState"] = context.state
        return span


def default_trace_id(header: Header) -> str:
    """Return the trace id of messages without a peer's trace context."""
    return _digits(header, "trace", 16)


def span_id(header: Header, what: str, number: int) -> str:
    """Return the id of a span: `what` is its kind, `number` is unique for this kind."""
    return _digits(header, f"{what} {number}", 8)


def trace_context(message: Request | Notification) -> SpanContext | None:
    """Return the trace context in a message; None if there is no valid one."""
    meta = message.body.meta
    value = decoded(meta_raw(meta, "traceparent")) if bytes(meta) else None
    found = _TRACEPARENT.fullmatch(value) if isinstance(value, str) else None
    if found is None or (found[1] == "00" and found[5]):  # Only later versions may have more fields.
        return None
    state = decoded(meta_raw(meta, "tracestate"))
    state = state if isinstance(state, str) else ""
    return SpanContext(found[2], found[3], int(found[4], 16) & 0xFF | REMOTE, state)


def _digits(header: Header, what: str, size: int) -> str:
    text = f"{header.id} {header.started} {what}".encode("utf-8", "surrogatepass")
    return blake2b(text, digest_size=size, person=b"mcpspy otlp").hexdigest()


def attributes(values: dict[str, Value | None]) -> list[dict[str, Any]]:
    """Return attributes in OTLP/JSON, without those that are None."""
    return [{"key": key, "value": _value(value)} for key, value in values.items() if value is not None]


def resource(header: Header, peer: Peer | None, side: str) -> dict[str, Any]:
    """Return the resource of one side (semantic conventions, resource/service)."""
    name = peer.name if peer is not None else side if side == CLIENT else header.name or side
    version = peer.version if peer is not None else None
    values: dict[str, Value | None] = {
        "service.name": name,
        "service.version": version or None,
        "mcpspy.recording.id": header.id,
        "mcpspy.recording.name": header.name or None,
    }
    return {"attributes": attributes(values)}


def scope() -> dict[str, str]:
    return {"name": "mcpspy", "version": __version__}


def _value(value: Value) -> dict[str, Any]:
    if isinstance(value, bool):
        return {"boolValue": value}
    if isinstance(value, int):
        # 64-bit integers are texts in the JSON of Protocol Buffers.
        return {"intValue": str(value)} if abs(value) < _LARGEST else {"stringValue": str(value)}
    if isinstance(value, list):
        return {"arrayValue": {"values": [_value(each) for each in value]}}
    return {"stringValue": value}


def span_name(message: Request | Notification) -> str:
    """Return `{mcp.method.name} {target}`; only tools and prompts are targets, because of the cardinality."""
    if message.method in ("tools/call", "prompts/get") and message.subject:
        return f"{message.method} {message.subject}"
    return message.method


def message_attributes(message: Request | Notification, of: StreamAttributes) -> dict[str, Value | None]:
    method, subject = message.method, message.subject
    revision = message.revision if isinstance(message, Request) else None
    return {
        "mcp.method.name": method,
        "mcp.protocol.version": revision or of.revision,
        "mcp.session.id": of.session,
        "gen_ai.operation.name": "execute_tool" if method == "tools/call" else None,
        "gen_ai.tool.name": subject if method == "tools/call" else None,
        "gen_ai.prompt.name": subject if method == "prompts/get" else None,
        "mcp.resource.uri": subject if method in _RESOURCES else None,
        "jsonrpc.request.id": _id(message.id) if isinstance(message, Request) else None,
    }


def transport_attributes(header: Header, side: str) -> dict[str, Value | None]:
    """Return transport attributes. The address is the server's, so only spans of the client have it."""
    if header.transport != "http":
        return {"network.transport": "pipe"}
    host = port = None
    if side == CLIENT:
        try:
            parts = urlsplit(header.upstream or "")
            host, port = parts.hostname, parts.port or {"http": 80, "https": 443}.get(parts.scheme)
        except ValueError:  # Invalid address.
            host = None
    return {
        "network.transport": "tcp",
        "network.protocol.name": "http",
        "server.address": host,
        "server.port": port if host else None,
    }


def error_attributes(exchange: Exchange) -> tuple[dict[str, Value | None], str | None]:
    """Return the attributes of an error and its message; ({}, None) if there is none."""
    answer = exchange.answer
    if isinstance(answer, Failure):
        code = answer.code_text
        return {"error.type": code or "_OTHER", "rpc.response.status_code": code}, answer.text
    kind = _ERRORS.get(exchange.state)
    if kind is None:
        return {}, None
    return {"error.type": kind}, "; ".join(exchange.flaws) if exchange.state is State.REFUSED else ""


def _id(text: str) -> str | None:
    """Return an id as text: `a` for `"a"`; None for null."""
    value = loads(text.encode("utf-8", "surrogatepass"))
    return value if isinstance(value, str) else None if value is None else text
