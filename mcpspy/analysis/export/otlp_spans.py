"""The OpenTelemetry spans of a session: trace context and attributes.

A session is one trace: its root is the session, and each request of a peer is a span of kind CLIENT, as its sender would
have reported it. If a peer sent its trace context (`_meta.traceparent`: W3C Trace Context, MCP SEP-414), its message is
also a span of kind SERVER in the peer's trace, as its receiver would have reported it. Ids derive from the recording's
id, so they are equal in every export. Attributes follow semantic-conventions-genai (docs/gen-ai/mcp.md, status
Development), without opt-in ones. Pending requests have no span yet.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from hashlib import blake2b
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from mcpspy import __version__
from mcpspy.analysis.export.base import WallClock
from mcpspy.core.protocol.message import Failure, Notification, Request, Result, decoded, loads, meta_raw
from mcpspy.core.protocol.peers import Peer, Peers
from mcpspy.core.protocol.spec import CLIENT, SERVER, other
from mcpspy.core.recording.decode import Header, Note
from mcpspy.core.session import outcome
from mcpspy.core.session.exchange import Exchange, State
from mcpspy.core.session.session import Change
from mcpspy.core.session.tasks import read_report

KIND_INTERNAL, KIND_SERVER, KIND_CLIENT = 1, 2, 3
STATUS_ERROR = 2
"""Numbers of trace.proto: OTLP/JSON has no names for them."""

SESSION_ID = "mcp-session-id"
CANCELLED = "notifications/cancelled"

EXIT_CODE = "exit_code"
"""`error.type` of a session whose server failed."""

Value = str | int | bool | list[str]

_LARGEST = 1 << 63

_TRACEPARENT = re.compile(
    r"(?!ff)([0-9a-f]{2})-(?!0{32})([0-9a-f]{32})-(?!0{16})([0-9a-f]{16})-([0-9a-f]{2})(-.*)?"
)

MAX_EVENTS = 128
"""Events of a span, the limit of the OpenTelemetry SDK."""

SAMPLED = 0x01
REMOTE = 0x300
"""The parent is known to be in another process (trace.proto, SpanFlags)."""

_RESOURCES = (
    "resources/read",
    "resources/subscribe",
    "resources/unsubscribe",
    "notifications/resources/updated",
)


class SpanContext(NamedTuple):
    trace: str
    parent: str = ""
    """16 hex digits; empty if it has none."""
    flags: int = SAMPLED
    state: str = ""


class StreamAttributes(NamedTuple):
    revision: str | None
    session: str | None


class SpanEvent(NamedTuple):
    at: int
    """Nanoseconds since 1970."""
    name: str
    attributes: dict[str, Value]


class SpanData(NamedTuple):
    side: str
    """The peer that would have reported it."""
    name: str
    kind: int
    id: str
    context: SpanContext
    start: int
    end: int
    """Nanoseconds since 1970."""
    attributes: dict[str, Value]
    error: str | None = None
    """Message of its error, possibly empty; None for a success."""
    links: tuple[tuple[str, str], ...] = ()
    """Trace and span ids."""
    events: tuple[SpanEvent, ...] = ()
    """The requests about its task."""
    left_out: int = 0
    """Events beyond `MAX_EVENTS`."""


class SessionSpans:
    """Makes the spans of a session from its changes, in the order of the file."""

    def __init__(self, header: Header) -> None:
        self.clock = WallClock(header.started)
        self.trace = default_trace_id(header)
        self.root_id = span_id(header, "session", 0)
        self.last = 0.0
        """Time of the last change."""
        self._header = header
        self._peers: dict[str | None, Peers] = {}
        self._sessions: dict[str | None, str] = {}
        self._posted: dict[int, str | None] = {}
        """The span of the request of each POST; None for a batch, in which it may be any."""
        self._closed: dict[int, float] = {}
        self._exit: Note | None = None

    def peer(self, side: str) -> Peer | None:
        """Return the first peer that introduced itself on a side."""
        peers = (each.client if side == CLIENT else each.server for each in self._peers.values())
        return next(filter(None, peers), None)

    @property
    def revision(self) -> str | None:
        return next((peers.revision for peers in self._peers.values() if peers.revision is not None), None)

    @property
    def exit_code(self) -> int | None:
        """Return the exit code of the server; None if it is not known, or a signal ended the server."""
        code = None if self._exit is None else self._exit.fields.get("code")
        return code if isinstance(code, int) else None

    def look(self, change: Change) -> None:
        """Take what later spans need from a change."""
        what, exchange = change.what, change.exchange
        self.last = max(self.last, what.at)
        if isinstance(what, Note):
            if what.kind == "http":
                self._take_session_id(what)
            elif what.kind == "exit":
                self._exit = what
            if exchange is not None:
                self._closed[exchange.number] = what.at
            return
        if isinstance(what, Notification) and what.method == CANCELLED and exchange is not None:
            self._closed.setdefault(exchange.number, what.at)
        if not isinstance(what, Request | Result | Failure):
            return
        peers = self._peers.setdefault(what.frame.stream, Peers())
        if isinstance(what, Request):
            peers.add_request(what)
            if what.side == CLIENT and (number := what.frame.http) is not None and exchange is not None:
                # In a batch, the request of a response stream is unknown.
                owner = exchange.poll_of or exchange
                self._posted[number] = None if number in self._posted else self._id_of(owner)
        elif exchange is not None:
            peers.add_response(what, exchange.request.method)

    def forget(self, exchange: Exchange | None = None, http: int | None = None) -> None:
        """Forget an exchange that has its spans, or an HTTP exchange that has ended."""
        if exchange is not None:
            self._closed.pop(exchange.number, None)
        if http is not None:
            self._posted.pop(http, None)

    def _take_session_id(self, note: Note) -> None:
        for side in ("request", "response"):
            headers = note.fields.get(side)
            found = headers.get(SESSION_ID) if isinstance(headers, dict) else None
            if isinstance(found, str):
                self._sessions.setdefault(note.fields.get("stream"), found)

    def root(self) -> SpanData:
        """Return the span of the whole session."""
        values: dict[str, Value | None] = {
            "mcp.protocol.version": self.revision,
            "mcp.session.id": next(iter(self._sessions.values()), None),
            **transport_attributes(self._header, CLIENT),
        }
        if self.exit_code:
            values["error.type"] = EXIT_CODE
        return SpanData(
            CLIENT,
            f"session {self._header.name}".rstrip(),
            KIND_INTERNAL,
            self.root_id,
            SpanContext(self.trace),
            self.clock.nanoseconds(0),
            self.clock.nanoseconds(self.last),
            _present(values),
            f"the server exited with {self.exit_code}" if self.exit_code else None,
        )

    def of_notification(self, change: Change, message: Notification) -> Iterator[SpanData]:
        number = span_id(self._header, "change", change.number)
        yield from self._spans(message, number, message.at, about=change.exchange)

    def of_exchange(self, exchange: Exchange) -> Iterator[SpanData]:
        before = exchange.continues
        links = () if before is None else ((self.trace, self._id_of(before)),)
        number, end = self._id_of(exchange), self.end_of(exchange)
        values, error = error_attributes(exchange)
        if exchange.is_injected:  # A viewer sent it, so its failure is none of the session.
            values, error = {**values, "mcpspy.injected": True}, None
        for span in self._spans(exchange.request, number, end, error=(values, error), links=links):
            polls = exchange.polls
            yield span._replace(
                events=tuple(map(self._event, polls[:MAX_EVENTS])), left_out=max(len(polls) - MAX_EVENTS, 0)
            )

    def _event(self, poll: Exchange) -> SpanEvent:
        """Return a request about the task of a call as an event of the call's span."""
        answer = poll.answer
        report = read_report(answer) if isinstance(answer, Result) else None
        values = {
            "jsonrpc.request.id": _id(poll.request.id),
            "mcpspy.task.status": None if report is None else report.status,
            **error_attributes(poll)[0],
        }
        return SpanEvent(self.clock.nanoseconds(poll.request.at), poll.request.method, _present(values))

    def end_of(self, exchange: Exchange) -> float:
        """Return the time of a request's outcome."""
        if exchange.cancel is not None and exchange.state is State.CANCELLED:
            return exchange.cancel.at
        if exchange.ended_at is not None:
            return exchange.ended_at
        if exchange.answer is not None and exchange.state is not State.UNFINISHED:
            return exchange.answer.at
        return self._closed.get(exchange.number, self.last)

    def _id_of(self, exchange: Exchange) -> str:
        return span_id(self._header, "exchange", exchange.number)

    def _parent(self, message: Request | Notification, about: Exchange | None) -> str:
        """Return the parent in the session's trace; `about` is the request that a notification reports on."""
        if about is not None:
            return self._id_of(about)
        if message.side != CLIENT and message.frame.http is not None:
            # Messages in the response stream of a POST belong to its request (2025-11-25, transports).
            return self._posted.get(message.frame.http) or self.root_id
        return self.root_id

    def _spans(
        self,
        message: Request | Notification,
        number: str,
        end: float,
        *,
        about: Exchange | None = None,
        error: tuple[dict[str, Value | None], str | None] = ({}, None),
        links: tuple[tuple[str, str], ...] = (),
    ) -> Iterator[SpanData]:
        stream = message.frame.stream
        peers = self._peers.get(stream)
        of = StreamAttributes(peers.revision if peers is not None else None, self._sessions.get(stream))
        theirs = trace_context(message)
        values = {**message_attributes(message, of), **error[0]}
        start, finish = self.clock.nanoseconds(message.at), self.clock.nanoseconds(max(end, message.at))
        span = SpanData(
            message.side,
            span_name(message),
            KIND_CLIENT,
            number,
            SpanContext(self.trace, self._parent(message, about)),
            start,
            finish,
            _present({**values, **transport_attributes(self._header, message.side)}),
            error[1],
            links if theirs is None else (*links, (theirs.trace, theirs.parent)),
        )
        yield span
        if theirs is not None and theirs.flags & SAMPLED:
            yield span._replace(
                side=other(message.side),
                kind=KIND_SERVER,
                id=span_id(self._header, "received", int(number, 16)),
                context=theirs,
                attributes=_present({**values, **transport_attributes(self._header, SERVER)}),
                links=((self.trace, number),),
            )


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


def attributes(values: dict[str, Value]) -> list[dict[str, Any]]:
    """Return attributes in OTLP/JSON."""
    return [{"key": key, "value": _value(value)} for key, value in values.items()]


def as_json(span: SpanData) -> dict[str, Any]:
    """Return a span in OTLP/JSON."""
    context = span.context
    return {
        "traceId": context.trace,
        "spanId": span.id,
        "flags": context.flags,
        "name": span.name,
        "kind": span.kind,
        "startTimeUnixNano": str(span.start),
        "endTimeUnixNano": str(span.end),
        "attributes": attributes(span.attributes),
        **({"parentSpanId": context.parent} if context.parent else {}),
        **({"traceState": context.state} if context.state else {}),
        **({"status": _status(span.error)} if span.error is not None else {}),
        **({"events": [_event_json(each) for each in span.events]} if span.events else {}),
        **({"droppedEventsCount": span.left_out} if span.left_out else {}),
        **({"links": [{"traceId": trace, "spanId": of} for trace, of in span.links]} if span.links else {}),
    }


def _event_json(event: SpanEvent) -> dict[str, Any]:
    return {
        "timeUnixNano": str(event.at),
        "name": event.name,
        "attributes": attributes(event.attributes),
    }


def _status(message: str) -> dict[str, Any]:
    return {"code": STATUS_ERROR, **({"message": message} if message else {})}


def resource(header: Header, peer: Peer | None, side: str) -> dict[str, Value]:
    """Return the attributes of one side's resource (semantic conventions, resource/service)."""
    name = peer.name if peer is not None else side if side == CLIENT else header.name or side
    version = peer.version if peer is not None else None
    return _present(
        {
            "service.name": name,
            "service.version": version or None,
            "service.instance.id": header.id,
            "mcpspy.recording.id": header.id,
            "mcpspy.recording.name": header.name or None,
        }
    )


def _present(values: dict[str, Value | None]) -> dict[str, Value]:
    return {key: value for key, value in values.items() if value is not None}


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
    answer, judged = outcome.reported_by(exchange), outcome.of(exchange.state)
    if isinstance(answer, Failure) and judged.failed:
        code = answer.code_text
        return {"error.type": code or "_OTHER", "rpc.response.status_code": code}, answer.text
    if judged.failed or judged.unanswered:
        kind = exchange.state.value.removeprefix("late ").replace(" ", "_")
        return {"error.type": kind}, outcome.error_text(exchange)
    if judged.is_withheld or exchange.state is State.CANCELLED:
        return {"error.type": exchange.state.value}, ""
    return {}, None


def _id(text: str) -> str | None:
    """Return an id as text: `a` for `"a"`; None for null."""
    value = loads(text.encode("utf-8", "surrogatepass"))
    return value if isinstance(value, str) else None if value is None else text
