"""One exchange over HTTP, from the head of its request to the end of its response.

Theory of operation
-------------------
`ExchangeMachine.take` gets what has happened (an event, and the time) and returns what is to be done about it (commands,
in order). It reads no clock and waits for nothing. What an event means depends on the state; `states.TRANSITIONS` has
the moves. Every exchange takes the same way: the first call of a connection and all others, messages and streams,
with a client and (if a viewer sent the request) without one.

What must hold, and how it does:

- *Nothing of a message's end is forwarded before the message is recorded.* The part of a body that completes it is
  returned behind the `RecordLines`, and the shell executes commands in order. Parts before it are forwarded as they arrive:
  a client that uploads slowly, or a server that streams, is not delayed.
- *Nothing is forwarded twice.* Each part is forwarded by the command of one event. What waits (for the scripts' head,
  for a decision, for the address in a stream's first event) is kept in one attribute, and given up with the move.
- *Every exchange ends,* with the note `http-end`, in the last `RecordLines` before the last bytes for the client. After
  `ExchangeState.OVER` no event has an effect.
- *The loss of a side is the loss of the other at once.* A client that hangs up ends the server's side, which would work
  for nobody (an event stream would stay open for hours). After a server's body that breaks off, the client's connection
  is closed without the last chunk; else the client would take the body for whole (RFC 9112, 8).
- *A response may begin before the request has ended* (RFC 9112, 9.3): the rest of the request is not sent on, and is
  recorded as incomplete. The connection of the client is used again only if the server reads the rest too.

A body is handled by a generator, which runs until it has to wait: for other exchanges while a compressed body is
decoded (a kilobyte may decode to a gigabyte), or for the steps of a decision. `Continue` says so. A whole short message
and an event like the one before it, which are nearly all of the traffic, take no generator.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar
from urllib.parse import urljoin, urlsplit

import orjson

from mcpspy.core.exchange import commands as c
from mcpspy.core.exchange.events import CONTINUE, DecidedEvents, ForwardedEvents, Output, in_turns
from mcpspy.core.exchange.heads import ENCODING, ClientHead, client_head
from mcpspy.core.exchange.record import ExchangeRecord
from mcpspy.core.exchange.states import TRANSITIONS, ExchangeState, Input
from mcpspy.core.framing import collect, is_message
from mcpspy.core.intercept import actions
from mcpspy.core.intercept.http import format_event, headers_for_changed_body, headers_for_injected
from mcpspy.core.protocol import mcp_headers
from mcpspy.core.protocol.http_headers import (
    EVENTS,
    JSON,
    REDIRECTS,
    Headers,
    location_at_proxy,
    names_only,
    rewritten_url,
)  # fmt: skip
from mcpspy.core.protocol.mcp_headers import LIST
from mcpspy.core.protocol.message import Request, read_frame
from mcpspy.core.protocol.oauth_flows import FORM_LIMIT
from mcpspy.core.recording.capped_body import CappedBody
from mcpspy.core.recording.decode import Frame
from mcpspy.core.recording.encode import CLIENT, MCPSPY, SERVER, JsonText
from mcpspy.core.recording.encode_body import LAST_CHUNK, REST, body_line
from mcpspy.core.redact.display import redacted_url
from mcpspy.core.sanitize import sanitize

if TYPE_CHECKING:
    from mcpspy.core.exchange.prepared import PreparedRequest, PreparedResponse
    from mcpspy.core.exchange.scope import DecisionPolicy, Scope
    from mcpspy.core.framing import Pieces

SHORT = 1 << 18
"""Maximum size, in bytes, of a request that is kept until the server has responded, and of what is recorded in one go."""

METADATA_LIMIT = 1 << 20
"""Maximum size, in bytes, of a metadata document that is read; a larger one is forwarded unchanged."""

NOTHING: list[c.Command] = []
ACCEPT = c.AcceptBody()
CLOSE_SERVER = c.CloseServer()
WAIT = c.Wait()
FINISHES = {keeps_alive: c.Finish(keeps_alive) for keeps_alive in (True, False)}


class ExchangeMachine:
    """One request, from its head to the end of its response."""

    state = ExchangeState.NEW
    message: bytes | None = None
    """The client's message, if it is complete and not long."""
    is_intercepted = False
    _is_received = False
    """True once the whole request has arrived."""
    _asked: CappedBody | None = None
    """The message of the request while it arrives."""
    _pieces: tuple[bytes, ...] | Pieces = ()
    """The parts of a body that is not forwarded as it arrives."""
    _parts: tuple[c.ToServer, ...] = ()
    """Parts of the request that wait for the decision of the scripts on its head."""
    _waiting: tuple[c.Event, ...] = ()
    """What arrives while the scripts decide on the head of the response, or a generator has not ended."""
    _sent: bytes | None = None
    """The body whose head the scripts decide on; None for one that is sent in parts."""
    _response: PreparedResponse | None = None
    _client_head: ClientHead | None = None
    _unsent = b""
    """The head of the response, until it is sent with what follows it."""
    _headers: Headers
    """The headers for the client, after the decision of the scripts."""
    _body: CappedBody | None = None
    """The message of the response while it arrives."""
    _events: ForwardedEvents | DecidedEvents | None = None
    _collected = b""
    """The server's message as it arrived, while it is decided on."""
    _has_ended = False
    """True once the server's response has ended, while some of it waits."""
    _error = ""
    """Why the server's side ended, while the client's is open."""
    _ticket: int | None = None
    """The number of the message that waits for its decision."""
    _answers: tuple[bytes, ...] = ()
    _inserted = b""
    """Messages for a stream that passes an event."""
    _wants_decisions = False
    """True once the events of a stream are to be decided on."""
    _address: str | None = None
    """The address for messages that this HTTP+SSE stream (2024-11-05) has named."""
    _id: str | None = None
    """The id of an injected request, as JSON text."""
    _injected_headers: Headers
    _kept: Mapping[int, bytes] = MappingProxyType({})
    """Messages that came with the response to an injected request and are not forwarded yet, by ticket."""
    _work: Output | None = None

    _handlers: ClassVar[dict[type, Callable[[ExchangeMachine, Any], list[c.Command]]]]

    def __init__(
        self,
        scope: Scope,
        policy: DecisionPolicy,
        request: PreparedRequest,
        number: int,
        now: float,
        *,
        client: object = None,
        stream: str | None = None,
    ) -> None:
        """Begin an exchange. `stream` is given in one without a client."""
        self._scope = scope
        self._policy = policy
        self.prepared = request
        """What was made of the request's head."""
        self._now = now
        self._has_client = stream is None
        streams = scope.streams
        self.is_mcp = stream is not None or streams.is_endpoint(request.target)
        if stream is None:
            stream = streams.of(request.session, request.target, number)
        self.stream = stream
        """The session to which it belongs."""
        self.record = ExchangeRecord(scope, stream, number, now, client)
        self.is_listing = request.is_listing
        """True if its response is a list of tools (2026-07-28)."""
        self._short = min(SHORT, scope.max_body)
        self._keeps_alive = request.head.keeps_alive

    def take(self, event: c.Event, now: float) -> list[c.Command]:
        """Return what is to be done about an event."""
        if self.state is ExchangeState.OVER:
            return NOTHING
        self._now = now
        if self._work is not None and isinstance(event, _IN_ORDER):
            self._waiting += (event,)
            return NOTHING
        return self._handlers[type(event)](self, event)

    @property
    def may_half_close(self) -> bool:
        """Return whether the end of the client's sending side is not that of the exchange.

        A message that is decided on, and a stream of events, end with it, as in most servers.
        """
        return not self.is_intercepted and self.state not in (ExchangeState.STREAMING, ExchangeState.SIFTING)

    @property
    def is_answered_here(self) -> bool:
        """Return whether the client waits here for its response; in HTTP+SSE (2024-11-05) it waits on another stream."""
        return (
            self._has_client
            and self.is_intercepted
            and self.state not in (ExchangeState.DRAINING, ExchangeState.OVER)
            and self.prepared.head.method != "GET"
            and not self._scope.streams.is_address(self.prepared.target)
        )

    def held(self) -> list[tuple[int, bytes]]:
        """Return the messages that wait for a decision, by ticket, as they arrived."""
        if self._has_client and isinstance(self._events, DecidedEvents):
            return [(taken.ticket, taken.raw) for taken in self._events.held]
        if self._ticket is not None:
            return [(self._ticket, self._collected or self.message or b"")]
        return sorted(self._kept.items())

    def _move(self, meaning: Input) -> None:
        state = self.state = TRANSITIONS[self.state][meaning]
        if state is ExchangeState.OVER:
            self._work = None  # It refers to this exchange: the cycle would wait for the collector.

    # The request.

    def _request_data(self, event: c.RequestData) -> list[c.Command]:
        state = self.state
        if self._is_received or not self._has_client:
            return NOTHING
        self._is_received = event.is_last
        if state is ExchangeState.NEW:
            return self._begin(event)
        if state is ExchangeState.RECEIVING:
            return self._run(self._receive(*event))
        if state in (ExchangeState.UPLOADING, ExchangeState.ASKING):
            return self._run(self._upload(*event))
        if state is ExchangeState.UNREACHABLE:
            return self._run(self._record_rest(*event))
        return NOTHING

    def _begin(self, event: c.RequestData) -> list[c.Command]:
        request, (data, is_last) = self.prepared, event
        head = request.head
        if not head.has_body:
            self._is_received = True
            return self._ask(None, is_whole=True)
        if self.is_mcp and head.method == "POST":
            if is_last and request.encoding is None and len(data) <= self._short:
                self.message = data
                if self._policy.decides(CLIENT, data):
                    return self._decide_request(data)
                if not data:
                    return self._ask(data, is_whole=True)
                line = body_line(self._now, CLIENT, self.record.json, data)
                return [c.RecordLines(line, len(line)), *self._ask(data, is_whole=True)]
            self._move(Input.PART)
            self._asked = CappedBody(CLIENT, self.record.fields, request.encoding, self._scope.max_body)
            commands = self._run(self._receive(data, is_last)) if data or is_last else NOTHING
        else:
            commands = [*self._ask(None, is_whole=False), *self._run(self._upload(data, is_last))]
        return [ACCEPT, *commands] if head.waits and not data and not is_last else commands

    def _receive(self, data: bytes, is_last: bool) -> Output:
        """Take a message whole if messages are intercepted, else in parts; one above the limit is always in parts."""
        assert self._asked is not None
        yield from in_turns(self._asked.feed(data))
        self._collect_piece(data)
        if self._policy.is_on and not (self._asked.is_over or is_last):
            return
        pieces, self._pieces = [*self._pieces], ()
        if is_last and not self._asked.is_over:
            message = self.message = bytes(pieces[0]) if len(pieces) == 1 else b"".join(pieces)
            if self._policy.decides(CLIENT, message):
                self._asked = None
                yield from self._decide_request(message)
            else:
                yield from self._request_record()
                yield from self._ask(message, is_whole=True)
            return
        yield from self._ask(None, is_whole=False)
        last = pieces.pop() if is_last else b""
        for piece in pieces:
            yield from self._part(bytes(piece), is_last=False)
        if is_last:
            yield from self._request_record()
            yield from self._part(bytes(last), is_last=True)

    def _upload(self, data: bytes, is_last: bool) -> Output:
        """Send a part on. Only the last part of a message waits for the recording."""
        if self._asked is not None:
            yield from in_turns(self._asked.feed(data))
            if is_last:
                yield from self._request_record()
        elif not (self.is_mcp and self.prepared.head.method == "POST"):
            record = self.record
            limit = FORM_LIMIT if self._scope.oauth.step(self.prepared.target) is not None else 0
            record.form += data[: max(limit - len(record.form), 0)]
        yield from self._part(data, is_last=is_last)

    def _part(self, data: bytes, *, is_last: bool) -> list[c.Command]:
        """Return a part of the request as it is sent, unless it waits for the decision on the head."""
        part = c.ToServer(data, is_last)
        if self.state is ExchangeState.ASKING:
            self._parts += (part,)
            return NOTHING
        if is_last:
            self._move(Input.SEND)
        return [part] if data or is_last else NOTHING

    def _request_record(self, lacks: str = "") -> list[c.Command]:
        """Return the record of the request's message. `lacks` is what is missing of its end."""
        body, self._asked = self._asked, None
        if body is None or not body.sent:
            return NOTHING
        if self.message is None and body.size <= SHORT:
            self.message = body.data()
        return [*self.record.body(body.close(self._now, lacks=lacks), body.size)]

    def _ask(self, body: bytes | None, *, is_whole: bool) -> list[c.Command]:
        """Return the request to the server, with the client's own body; None for none, or one that follows."""
        if self._policy.changes_heads(CLIENT):
            self._sent = body
            self._move(Input.HEADS)
            pause = [] if is_whole else [c.Pause(CLIENT, is_paused=True)]
            return [c.DecideHead(self.prepared.headers, None), *pause]
        self._move(Input.SEND if is_whole else Input.UPLOAD)
        return [c.Ask(self.prepared.head.method, self.prepared.forwarded(body), body or b"", is_whole)]

    def _ask_changed(self, body: bytes) -> list[c.Command]:
        """Return the request with a message that the interception has changed."""
        headers = self.prepared.headers
        assert self.message is not None
        headers = headers_for_changed_body(headers, self.message, body, self._policy.tools)
        if self._policy.changes_heads(CLIENT):
            self._sent = body
            self._move(Input.HEADS)
            return [c.DecideHead(headers, None)]
        return self._ask_with(headers, body)

    def _ask_with(self, headers: Headers, body: bytes | None) -> list[c.Command]:
        request, has_body = self.prepared, self.prepared.head.has_body
        method = request.head.method
        is_whole = body is not None or not has_body
        head = self._scope.upstream_head(
            method, request.target, headers, body, has_body=has_body or bool(body)
        )
        self._move(Input.SEND if is_whole else Input.UPLOAD)
        return [c.Ask(method, head, body or b"", is_whole)]

    def _head_decided(self, event: actions.HeadDecided) -> list[c.Command]:
        if self.state is ExchangeState.ASKING:
            self._injected_headers = event.headers
            commands = self._ask_with(event.headers, self._sent)
            if self._sent is None and self.prepared.head.has_body:
                parts, self._parts = self._parts, ()
                for data, is_last in parts:
                    commands += self._part(data, is_last=is_last)
                commands.append(c.Pause(CLIENT, is_paused=False))
            return commands
        if self.state is not ExchangeState.ANSWERING:
            return NOTHING
        (first, *more), self._waiting = self._waiting, ()
        assert isinstance(first, c.ResponseData)
        commands = self._forward(event.headers, *first)
        return [*commands, *self._take_all(more), c.Pause(SERVER, is_paused=False)]

    def _take_all(self, waiting: Iterable[c.Event]) -> list[c.Command]:
        commands: list[c.Command] = []
        for event in waiting:
            commands += self.take(event, self._now)
        return commands

    def _collect_piece(self, data: bytes) -> None:
        if not isinstance(self._pieces, list):
            self._pieces = []
        collect(self._pieces, data)

    # The response.

    def _response_begins(self, event: c.ResponseBegins) -> list[c.Command]:
        head, keeps_alive, data, is_last = event
        if self._response is not None:
            return NOTHING
        response = self._response = self.prepared.response(head)
        if self.state is ExchangeState.DRAINING:
            return self._drain_begins(data, is_last=is_last)
        if not self._has_client and self.state is ExchangeState.ASKED:
            self._move(Input.DRAIN)
            return self._drain_begins(data, is_last=is_last)
        if self.state is not ExchangeState.ASKED and self.state is not ExchangeState.UPLOADING:
            return NOTHING
        if not (keeps_alive or self._is_received):  # The server reads no more of the request.
            self._keeps_alive = False
        if response.session is not None and head.status < 400:
            self._scope.streams.bind(response.session, self.stream)
        request = self.prepared
        if request.session is not None and self.is_mcp:
            is_deleted = request.head.method == "DELETE" and head.status < 400
            if is_deleted or head.status == 404:
                self._scope.streams.end(request.session)
        if "www-authenticate" in head.named:
            self.record.facts = self._scope.oauth.learn(head.headers)
        if data or is_last:
            return self._open(data, is_last=is_last)
        self._move(Input.HEAD)
        return [WAIT]

    def _waited(self, _: c.Waited) -> list[c.Command]:
        return self._open(b"", is_last=False) if self.state is ExchangeState.HEADED else NOTHING

    def _open(self, data: bytes, *, is_last: bool) -> list[c.Command]:
        """Take the response's head, with the beginning of its body."""
        response, policy, record = self._response, self._policy, self.record
        assert response is not None
        head = response.head
        commands: list[c.Command] = []
        kind = response.kind if self.is_mcp else ""
        is_short = kind == JSON and is_last and response.encoding is None and len(data) <= self._short
        is_message = policy.is_on and not self.is_intercepted and kind in (EVENTS, JSON)
        # A long body or a stream is decided on before it has arrived.
        if is_message and (not is_short or (policy.decides_responses and policy.decides(SERVER, data))):
            self.is_intercepted = True
            commands.append(c.Intercept())
        if kind and response.encoding is not None:
            commands.append(c.ReportOnce("encoding", response.encoding))
        if head.content_type == EVENTS and not self.is_mcp:
            commands.append(c.ReportOnce("unrecorded", self.prepared.target))
        is_whole = is_short and not self.is_intercepted and not policy.changes_heads(SERVER)
        if is_whole and (written := record.whole(self._now, self.prepared, response, data)) is not None:
            if self.is_listing:
                policy.learn_tools(data)
            self._move(Input.WHOLE)
            sent = self._begun(response.headers) + data
            return [*commands, written, c.ToClient(sent), FINISHES[self._keeps_alive]]
        record.add_head(self._now, self.prepared, head.status, response, is_mcp=self.is_mcp)
        if not response.is_ordinary:
            commands += self._follow_redirect(response)
        if policy.changes_heads(SERVER):
            self._waiting = (c.ResponseData(data, is_last),)
            self._move(Input.HEADS)
            commands += [*record.written(), c.DecideHead(response.headers, head.status)]
            return [*commands, c.Pause(SERVER, is_paused=True)]
        if is_whole:
            record.add_message(self._now, SERVER, data)
            if self.is_listing:
                policy.learn_tools(data)
            self._move(Input.WHOLE)
            return commands + self._end(self._begun(response.headers), data)
        return commands + self._forward(response.headers, data, is_last)

    def _begun(self, headers: Headers) -> bytes:
        """Begin the response to the client with these headers. Return its head."""
        response = self._response
        assert response is not None
        is_usual = headers is response.headers and response.is_ordinary
        is_usual = is_usual and self._keeps_alive and self.prepared.head.keeps_alive
        prepared = response.whole if is_usual else None
        if prepared is None:
            has_length = any(name.lower() == "content-length" for name, _ in headers)
            head = response.head
            prepared = client_head(
                self.prepared.head, head.status, head.reason, headers,
                has_length=has_length, keeps_alive=self._keeps_alive,
            )  # fmt: skip
            if is_usual:
                response.whole = prepared
        self._client_head = prepared
        self._keeps_alive = prepared.keeps_alive
        return prepared.data

    def _send(self, data: bytes, *, is_last: bool = False) -> list[c.Command]:
        """Return a part of the response, with what is not sent of its head."""
        assert self._client_head is not None
        unsent, self._unsent = self._unsent, b""
        data = unsent + self._client_head.framed(data, is_last=is_last)
        return [c.ToClient(data)] if data else NOTHING

    def _end(self, unsent: bytes, last: bytes) -> list[c.Command]:
        """Return the end of the exchange: recorded, then sent, because some clients stop reading early."""
        assert self._client_head is not None
        commands: list[c.Command] = [*self._record_end(None)]
        data = unsent + self._client_head.framed(last, is_last=True)
        if data:
            commands.append(c.ToClient(data))
        commands.append(FINISHES[self._keeps_alive])
        if self.is_intercepted:
            commands.append(self._leave())
        return commands

    def _forward(self, headers: Headers, data: bytes, is_last: bool) -> list[c.Command]:
        """Begin to forward a response whose head was decided on."""
        response, request = self._response, self.prepared
        assert response is not None
        kind = response.kind if self.is_mcp else ""
        fields, limit = self.record.fields, self._scope.max_body
        commands: list[c.Command] = [*self.record.written()]
        self._headers = headers
        may_name_endpoint = request.head.method == "GET" and request.session is None
        if (
            request.head.method == "GET"
            and response.head.is_ok
            and self._scope.oauth.is_metadata(request.target)
        ):
            self._move(Input.COLLECT)
            return commands + self._run(self._collect_metadata(data, is_last))
        if kind == JSON:
            self._body = CappedBody(SERVER, fields, response.encoding, limit)
            if self.is_intercepted:
                self._move(Input.COLLECT)
                return commands + self._run(self._collect(data, is_last))
            self._move(Input.BODY)
        elif kind == EVENTS:
            if self.is_intercepted:  # Events are sent one by one, uncompressed.
                self._headers = headers = without(headers, ENCODING, "content-length")
                self._move(Input.SIFT)
                self._events = DecidedEvents(
                    fields, response.encoding, limit, may_name_endpoint=may_name_endpoint
                )
                commands.append(c.OpenStream(is_inspected=True))
            else:
                self._move(Input.EVENTS)
                learn = self._policy.learn_tools if self.is_listing else None
                self._events = ForwardedEvents(
                    fields, response.encoding, limit, may_name_endpoint=may_name_endpoint, learn=learn
                )
                if response.encoding is None:  # Compressed streams cannot be changed in part.
                    commands.append(c.OpenStream(is_inspected=False))
        else:
            self._move(Input.BODY)
            self.record.begin_unrecorded(response, request.target, is_mcp=self.is_mcp)
        self._unsent = self._begun(headers)
        if self.state is ExchangeState.SIFTING:
            self._work = self._sift(data, is_last)
            return [*commands, *self._flush_head(), CONTINUE]
        if data or is_last:
            commands += self._response_data(c.ResponseData(data, is_last))
        return commands if self._work is not None else [*commands, *self._flush_head()]

    def _flush_head(self) -> list[c.Command]:
        return self._send(b"") if self._unsent and self.state is not ExchangeState.OVER else NOTHING

    def _response_data(self, event: c.ResponseData) -> list[c.Command]:
        state, (data, is_last) = self.state, event
        if state is ExchangeState.STREAMING:
            assert isinstance(self._events, ForwardedEvents)
            if not is_last and not self._wants_decisions:
                line = self._events.known(self._now, data)
                if line is not None:
                    return [c.RecordLines(line, len(line)), *self._send(data)]
            return self._run(self._stream(data, is_last))
        if state is ExchangeState.HEADED:
            return self._open(data, is_last=is_last)
        if state is ExchangeState.ANSWERING:
            self._waiting += (event,)
            return NOTHING
        if state is ExchangeState.DRAINING and (self._response is None or self._has_ended):
            return NOTHING
        handler = _BODIES.get(state)
        return NOTHING if handler is None else self._run(handler(self, data, is_last))

    def _pass(self, data: bytes, is_last: bool) -> Output:
        """Forward a part of a message, or of a body that is not recorded."""
        body = self._body
        if body is not None:
            yield from in_turns(body.feed(data))
        else:
            self.record.take_unrecorded(data)
        if not is_last:
            yield from self._send(data)
            return
        if body is not None:
            if self.is_listing and not body.is_over:
                self._policy.learn_tools(body.data())
            yield from self._body_record()
        self._move(Input.END)
        yield from self._end(self._unsent, data)

    def _body_record(self, lacks: str = "") -> list[c.Command]:
        """Return the record of the response's message. `lacks` is what is missing of its end."""
        body, self._body = self._body, None
        if body is None or not body.sent:
            return NOTHING
        return [*self.record.body(body.close(self._now, lacks=lacks), body.size)]

    def _collect_metadata(self, data: bytes, is_last: bool) -> Output:
        """Forward a document about the server with the proxy's addresses in it."""
        if self._body is not None:
            yield from self._collect(data, is_last)
            return
        self._collect_piece(data)
        size = sum(map(len, self._pieces))
        if size <= METADATA_LIMIT and not is_last:
            return
        pieces, self._pieces = self._pieces, ()
        body, headers = b"".join(pieces), self._headers
        if size > METADATA_LIMIT:
            self._move(Input.BODY)
            assert self._response is not None
            self.record.begin_unrecorded(self._response, self.prepared.target, is_mcp=self.is_mcp)
            self._unsent = self._begun(headers)
            yield from self._pass(body, is_last)
            return
        body, self.record.facts = self._scope.oauth.rewritten(
            self.prepared.target, body, self.prepared.public_origin
        )
        self._move(Input.END)
        yield from self._end(self._begun(_with_length(headers, body)), body)

    def _collect(self, data: bytes, is_last: bool) -> Output:
        """Read a message up to the limit, and let it be decided on."""
        body = self._body
        assert body is not None
        self._collect_piece(data)
        yield from in_turns(body.feed(data))
        if (
            body.is_over
        ):  # It is not read to its end, and not decided on, as all that follows in this exchange.
            pieces, self._pieces = self._pieces, ()
            self._move(Input.BODY)
            yield self._leave()
            self.is_intercepted = False
            self._unsent = self._begun(self._headers)
            for piece in pieces[: -1 if is_last else None]:
                yield from self._send(bytes(piece))
            if is_last:
                yield from self._body_record()
                self._move(Input.END)
                yield from self._end(self._unsent, bytes(pieces[-1]))
            return
        if not is_last:
            return
        received, self._pieces = b"".join(self._pieces), ()
        message = body.data()
        if not is_message(message):
            yield from self._body_record()
            self._move(Input.END)
            yield from self._end(self._begun(self._headers), received)
            return
        self._body = None
        self._collected = received
        self._move(Input.DECIDE)
        yield c.Decide(SERVER, message, received, None, self.record.fields)

    def _stream(self, data: bytes, is_last: bool) -> Output:
        """RecordLines and forward events, until each needs a decision."""
        events = self._events
        assert isinstance(events, ForwardedEvents)
        if data:
            yield from events.feed(self._now, data, self._redirect)
        if is_last:
            record, held = events.close(self._now)
            if record.lines:
                yield record
            self._move(Input.END)
            yield from self._end(self._unsent, held)
            yield from self._close_stream()
        elif self._wants_decisions and events.is_between_events:
            yield from self._sift_from_here()

    def _sift_from_here(self) -> Output:
        assert self._response is not None
        self._move(Input.SIFT)
        may_name_endpoint = isinstance(self._events, ForwardedEvents) and self._events.may_name_endpoint
        self._events = DecidedEvents(
            self.record.fields, None, self._scope.max_body, may_name_endpoint=may_name_endpoint
        )
        inserted, self._inserted = self._inserted, b""
        yield inserted

    def _sift(self, data: bytes, is_last: bool) -> Output:
        """Let the events be decided on, and forward what is between them."""
        events = self._events
        assert isinstance(events, DecidedEvents)
        yield from events.feed(self._now, data, self._redirect)
        if events.is_over:  # It ends here for the client too: no message is forwarded without a decision.
            yield CLOSE_SERVER
            yield from self._sift_breaks("its compressed events are those of an attack")
            return
        if is_last:
            yield from events.close(self._now)
            self._has_ended = True
            yield CONTINUE
            yield from self._end_if_settled()

    def _end_if_settled(self) -> list[c.Command]:
        """Return the end of a stream once none of its messages is held, or all of the client's requests are answered."""
        events = self._events
        assert isinstance(events, DecidedEvents)
        if self.state is not ExchangeState.SIFTING:
            return NOTHING
        if self._is_answered and events.is_between_events:
            self._move(Input.END if self._has_ended else Input.DRAIN)
            return [*self._end(self._unsent, b""), *self._close_stream()]
        if not (self._has_ended and events.is_settled):
            return NOTHING
        if not self._error:
            self._move(Input.END)
            return [*self._end(self._unsent, b""), *self._close_stream()]
        self._move(Input.FAIL)
        return [*self._record_end(SERVER), c.HangUp(at_once=False), self._leave(), *self._close_stream()]

    def _close_stream(self) -> list[c.Command]:
        if self._address is not None:
            self._scope.streams.end_address(self._address)
        return [c.CloseStream()]

    def _redirect(self, chunk: bytes, data: bytes) -> bytes:
        """Learn the address for messages, and replace the server's origin in it with the proxy's."""
        origin, request = self._scope.upstream.origin, self.prepared
        try:
            address = data.decode()
            target = urljoin(request.target, rewritten_url(address, origin, ""))
        except ValueError:  # Not an address: the client will reject it.
            return chunk
        self._address = target.partition("#")[0]
        self._scope.streams.bind_address(self._address, self.stream)
        return chunk.replace(data, rewritten_url(address, origin, request.public_origin).encode(), 1)

    def _follow_redirect(self, response: PreparedResponse) -> list[c.Command]:
        """Learn another path of the endpoint from a redirect of it, or report that it leads past the proxy."""
        head = response.head
        named = head.named.get("location")
        if named is None or not self.is_mcp or head.status not in REDIRECTS:
            return NOTHING
        location = location_at_proxy(named, self._scope.upstream.origin, self.prepared.public_origin)
        keeps_method = head.status in (307, 308)
        if location.origin is not None:
            fields = {"to": location.origin, "location": names_only(location.value)}
            self.record.add(self._now, "redirect", {**fields})
            return [c.ReportOnce("redirect", location, keeps_method)]
        if keeps_method:
            path = urlsplit(urljoin(self.prepared.target, location.value)).path or "/"
            self._scope.streams.add_endpoint(path)
        return NOTHING

    # Decisions.

    def _decide_request(self, message: bytes) -> list[c.Command]:
        self.is_intercepted = True
        self._move(Input.DECIDE)
        return [c.Intercept(), c.Decide(CLIENT, message, message, None, self.record.fields)]

    def _taken(self, event: c.Taken) -> list[c.Command]:
        if self.state in (ExchangeState.DECIDING, ExchangeState.JUDGING):
            self._ticket = event.ticket
        elif self.state is ExchangeState.SIFTING:
            assert isinstance(self._events, DecidedEvents)
            self._events.hold(event)
        elif not self._has_client:
            self._kept = {**self._kept, event.ticket: event.raw}
        return NOTHING

    def _decided(self, step: actions.Forward | actions.Substitute | actions.Dropped) -> list[c.Command]:
        if self.state is ExchangeState.SIFTING:
            assert isinstance(self._events, DecidedEvents)
            return [*self._send(self._events.decided(step)), *self._end_if_settled()]
        if not self._has_client:
            return self._decided_for_stream(step)
        if (
            step.ticket != self._ticket
        ):  # After all messages were released, an earlier decision may still arrive.
            return NOTHING
        self._ticket = None
        if isinstance(step, actions.Dropped):
            self._move(Input.DROP)
            is_unanswerable = not self._unanswered or self._scope.streams.is_address(self.prepared.target)
            # A dropped message has no response: its client waits until a side hangs up.
            return self._respond() if step.side == CLIENT and is_unanswerable else NOTHING
        if self.state is ExchangeState.DECIDING:
            if isinstance(step, actions.Forward):
                return self._ask(self.message, is_whole=True)
            return self._ask_changed(step.data)
        received, self._collected = self._collected, b""
        self._move(Input.END)
        if isinstance(step, actions.Forward):
            return self._end(self._begun(self._headers), received)
        headers = without(self._headers, ENCODING)
        return self._end(self._begun(_with_length(headers, step.data)), step.data)

    @property
    def _unanswered(self) -> int:
        """The number of requests in the client's message."""
        messages = read_frame(Frame(0.0, CLIENT, self.message)) if self.message else []
        return sum(isinstance(message, Request) for message in messages)

    @property
    def _is_answered(self) -> bool:
        return bool(self._answers) and 0 < self._unanswered <= len(self._answers)

    def _answer(self, event: c.Answer) -> list[c.Command]:
        if self.state is ExchangeState.SIFTING:
            assert isinstance(self._events, DecidedEvents)
            self._answers += (event.data,)
            return [
                *self._send(self._events.insert(format_event(event.data))), *self._end_if_settled()
            ]  # fmt: skip
        if self.state in _STARTED or not (self.is_intercepted and self._has_client):
            return NOTHING
        self._answers += (event.data,)
        return self._respond() if len(self._answers) >= self._unanswered else NOTHING

    def _insert(self, event: c.Insert) -> list[c.Command]:
        if self.state is ExchangeState.SIFTING:
            assert isinstance(self._events, DecidedEvents)
            return self._send(self._events.insert(format_event(event.data)))
        if self.state is ExchangeState.STREAMING:
            self._inserted += format_event(event.data)
        return NOTHING

    def _inspect(self, _: c.Inspect) -> list[c.Command]:
        if self.state is not ExchangeState.STREAMING or self._wants_decisions:
            return NOTHING
        assert isinstance(self._events, ForwardedEvents)
        self._wants_decisions = self.is_intercepted = True
        commands: list[c.Command] = [c.Intercept(), c.OpenStream(is_inspected=True)]
        return commands + (self._run(self._sift_from_here()) if self._events.is_between_events else NOTHING)

    def _respond(self) -> list[c.Command]:
        """Return a response in place of the server. The messages are already recorded."""
        status, body = 202, b""
        if self._answers:
            status, body = 200, self._answers[0]
            if len(self._answers) > 1:
                body = b"[" + b",".join(self._answers) + b"]"
        if not self.record.has_head:
            self.record.add_head(self._now, self.prepared, status, is_mcp=self.is_mcp, by=MCPSPY)
        state = self.state
        self._move(Input.DRAIN if state in _WAITS_FOR_SERVER else Input.ANSWER)
        commands: list[c.Command] = [*self._record_end(None), c.Respond(status, body), self._leave()]
        if state in (ExchangeState.HEADED, ExchangeState.ANSWERING):
            commands += self._drain_begins(b"", is_last=False)
            waiting, self._waiting = self._waiting, ()
            commands += self._take_all(waiting)
        return commands

    def _leave(self) -> c.Leave:
        is_settled = self._ticket is None and not isinstance(self._events, DecidedEvents)
        self._ticket = None
        return c.Leave(is_settled)

    def _disconnect(self, _: actions.Disconnect) -> list[c.Command]:
        if self._has_client:
            return self._lose(MCPSPY, "", c.HangUp(at_once=True))
        self._kept = {}  # No client is connected here, and no message that waits is forwarded.
        if not self._has_ended:
            return NOTHING
        self._move(Input.END)
        return [self._leave()]

    # The ends.

    def _record_end(self, hung_up: str | None) -> list[c.RecordLines]:
        return self.record.end(self._now, self.prepared, hung_up, is_mcp=self.is_mcp)

    def _half_closed(self, _: c.HalfClosed) -> list[c.Command]:
        self.record.half_closed = self._now
        self._keeps_alive = False
        return [c.HalfCloseServer()]

    def _client_gone(self, event: c.ClientGone) -> list[c.Command]:
        if not self._has_client:
            self._move(Input.LEAVE)
            return [self._leave()] if self._has_ended else [CLOSE_SERVER, *self._end_injected(event.by)]
        if self.state is ExchangeState.DRAINING:
            if event.by == CLIENT:  # It has its response.
                return NOTHING
            self._move(Input.LEAVE)
            return [CLOSE_SERVER]
        return self._lose(event.by, event.lacks)

    def _lose(self, by: str, lacks: str, *more: c.Command) -> list[c.Command]:
        """Return the end of an exchange whose client is lost."""
        if self.state is ExchangeState.DRAINING:
            return NOTHING
        commands: list[c.Command] = [CLOSE_SERVER]
        if self._asked is not None:
            commands += self._request_record(self._lacks_of_request)
        commands += self._torn(lacks)
        is_stream = self._events is not None
        self._move(Input.LEAVE)
        commands += [*self._record_end(by), *more]
        if self.is_intercepted:
            commands.append(self._leave())
        return commands + self._close_stream() if is_stream else commands

    @property
    def _lacks_of_request(self) -> str:
        return LAST_CHUNK if self.prepared.head.is_chunked else REST

    def _torn(self, lacks: str) -> list[c.Command]:
        """Return the record of what has arrived of the response; nothing of it is sent after that."""
        self._work = None
        events = self._events
        if isinstance(events, ForwardedEvents):
            record, _ = events.close(self._now)
            return [record] if record.lines else NOTHING
        if isinstance(events, DecidedEvents):
            return [each for each in events.close(self._now) if isinstance(each, c.RecordLines)]
        return self._body_record(lacks)

    def _server_gone(self, event: c.ServerGone) -> list[c.Command]:
        state = self.state
        if state in (ExchangeState.ASKED, ExchangeState.UPLOADING):
            return self._unreachable(event)
        if state is ExchangeState.HEADED:
            return [*self._open(b"", is_last=False), *self.take(event, self._now)]
        if state is ExchangeState.ANSWERING:
            self._waiting += (event,)
        if state is ExchangeState.DRAINING:
            return self._drain_breaks(event)
        if state is ExchangeState.SIFTING:
            return self._run(self._sift_breaks(event.error))
        if state not in (ExchangeState.FORWARDING, ExchangeState.COLLECTING, ExchangeState.STREAMING):
            return NOTHING
        commands = self._torn(event.lacks)
        self._move(Input.FAIL)
        # After a normal end, the client would treat this as the whole body.
        commands = [*commands, *self._record_end(SERVER), c.HangUp(at_once=False)]
        if self.is_intercepted:
            commands.append(self._leave())
        return commands if state is not ExchangeState.STREAMING else commands + self._close_stream()

    def _sift_breaks(self, error: str) -> Output:
        assert isinstance(self._events, DecidedEvents)
        yield from self._events.close(self._now)
        self._has_ended, self._error = True, error
        yield CONTINUE
        yield from self._end_if_settled()

    def _unreachable(self, event: c.ServerGone) -> list[c.Command]:
        """Return a JSON-RPC error, because the server cannot be reached or does not respond."""
        if not self._has_client:
            self._move(Input.FAIL)
            error, target = event.error, self.prepared.target
            self.record.add_injected_head(
                self._now, target, self._injected_headers, None, JsonText(b"{}"), error=error
            )
            return [*self._fail(f"the server cannot be reached: {error}"), *self._end_injected(None)]
        if self.record.half_closed is not None and event.is_connected:
            # The server took the half-close for the end, so the client's side ends too.
            self._move(Input.FAIL)
            return [*self._record_end(CLIENT), c.HangUp(at_once=True)]
        upstream = self._scope.upstream
        line = f"mcpspy: cannot reach {redacted_url(upstream.origin + upstream.path)}: {event.error}"
        if self._asked is not None and not self._is_received:
            self._error = line
            self._move(Input.LOSE)
            return NOTHING
        return [*self._request_record(), *self._respond_unreachable(line)]

    def _record_rest(self, data: bytes, is_last: bool) -> Output:
        """RecordLines a message that is not sent on, up to its end."""
        assert self._asked is not None
        yield from in_turns(self._asked.feed(data))
        if is_last:
            yield from self._request_record()
            yield from self._respond_unreachable(self._error)

    def _respond_unreachable(self, line: str) -> list[c.Command]:
        self._move(Input.FAIL)
        self.record.add_head(self._now, self.prepared, 502, is_mcp=self.is_mcp, error=line)
        messages = read_frame(Frame(0.0, CLIENT, self.message)) if self.message else []
        request_id = messages[0].id if len(messages) == 1 and isinstance(messages[0], Request) else None
        commands: list[c.Command] = [*self._record_end(None), c.Respond(502, json_error(request_id, line))]
        return [*commands, self._leave()] if self.is_intercepted else commands

    # Without a client.

    def _injected(self, event: c.Injected) -> list[c.Command]:
        if self._has_client or self.state is not ExchangeState.NEW:
            return NOTHING
        self._id, self.message, self.is_intercepted = event.id, event.data, True
        policy = self._policy
        headers = headers_for_injected(self.prepared.headers, event.data, policy.tools)
        self._injected_headers = headers
        self.is_listing = (mcp_headers.METHOD, LIST) in headers
        if policy.changes_heads(CLIENT):
            self._sent = event.data
            self._move(Input.HEADS)
            return [c.Intercept(), c.DecideHead(headers, None)]
        return [c.Intercept(), *self._ask_with(headers, event.data)]

    def _fail(self, why: str) -> list[c.Command]:
        return [] if self._id is None else [c.Fail(self._id, why)]

    def _end_injected(self, hung_up: str | None) -> list[c.Command]:
        return [self._leave(), *self.record.end_injected(self._now, hung_up)]

    def _drain_begins(self, data: bytes, *, is_last: bool) -> list[c.Command]:
        """Take the head of a response that no client waits for.

        It is read to its end: before 2026-07-28, closing a request does not cancel it.
        """
        response, record = self._response, self.record
        assert response is not None
        commands: list[c.Command] = []
        if not self._has_client:
            target, status = self.prepared.target, response.head.status
            record.add_injected_head(self._now, target, self._injected_headers, status, response.recorded)
            commands += record.written()
        fields, limit = record.fields, self._scope.max_body
        if response.head.content_type == EVENTS:
            self._events = DecidedEvents(fields, response.encoding, limit, may_name_endpoint=False)
        else:
            self._body = CappedBody(SERVER, fields, response.encoding, limit)
            if not self._has_client and response.head.content_type != JSON:
                record.begin_unrecorded(response, self.prepared.target, is_mcp=True)
        return commands + self._run(self._drain(data, is_last))

    def _drain(self, data: bytes, is_last: bool) -> Output:
        """Let the messages be decided on, up to the end of the response."""
        events, body = self._events, self._body
        if isinstance(events, DecidedEvents):
            yield from events.feed(self._now, data, self._redirect)
            if events.is_over:
                yield from self._fail("the events of the response are compressed as those of an attack")
                yield CLOSE_SERVER
                is_last = True
            if is_last:
                yield from events.close(self._now)
        elif body is not None:
            yield from in_turns(body.feed(data))
            self.record.take_unrecorded(data)
            if body.is_over:
                yield from self._body_record(REST)
                yield from self._fail("the response is larger than --max-body")
                yield CLOSE_SERVER
                is_last = True
            elif is_last and is_message(message := body.data()):
                yield c.Decide(SERVER, message, message, None, self.record.fields)
        if is_last:
            yield from self._drained(None)

    def _drained(self, hung_up: str | None) -> list[c.Command]:
        """Return the end of a response that no client waits for."""
        commands: list[c.Command] = []
        if not self._has_client:
            assert self._response is not None
            status = self._response.head.status
            if status != 202:  # Ignored if the request was answered.
                commands += self._fail(f"no response, only HTTP {status}")
            self._has_ended = True
            commands += self.record.end_injected(self._now, hung_up)
            if self._kept:
                return commands
            commands.insert(0, self._leave())
        self._move(Input.END)
        return commands

    def _drain_breaks(self, event: c.ServerGone) -> list[c.Command]:
        if self._has_ended:
            return NOTHING
        commands: list[c.Command] = []
        if isinstance(self._events, DecidedEvents):
            commands += [each for each in self._events.close(self._now) if isinstance(each, c.RecordLines)]
        return [
            *commands, *self._fail(f"the response broke off: {event.error}"), *self._drained(SERVER)
        ]  # fmt: skip

    def _decided_for_stream(
        self, step: actions.Forward | actions.Substitute | actions.Dropped
    ) -> list[c.Command]:
        """Forward a message that came with the response to an injected request to a stream of the client."""
        commands: list[c.Command] = []
        was_kept = step.ticket in self._kept
        self._kept = {ticket: data for ticket, data in self._kept.items() if ticket != step.ticket}
        if was_kept and self._events is not None and not isinstance(step, actions.Dropped):
            commands.append(c.ToStream(step.data))
        if self._has_ended and not self._kept:
            self._move(Input.END)
            commands.append(self._leave())
        return commands

    def _abort(self, _: actions.AbortUpstream) -> list[c.Command]:
        if self.state is not ExchangeState.DRAINING or not self._has_client:
            return NOTHING
        self._move(Input.END)
        return [CLOSE_SERVER]

    # The generators.

    def _run(self, work: Output) -> list[c.Command]:
        self._work = work
        return self._proceed(work)

    def _worked(self, _: c.Worked) -> list[c.Command]:
        if self._events is not None:
            self._events.now = self._now
        return NOTHING if self._work is None else self._proceed(self._work)

    def _proceed(self, work: Output) -> list[c.Command]:
        """Return what a generator yields until it has to wait."""
        commands: list[c.Command] = []
        for item in work:
            if isinstance(item, bytes):
                if item and self.state is not ExchangeState.DRAINING:
                    commands += self._send(item)
                continue
            commands.append(item)
            if type(item) is c.Continue:
                return commands
            if type(item) is c.Decide:
                commands.append(CONTINUE)
                return commands
        self._work = None
        if self._waiting and self.state is not ExchangeState.ANSWERING:
            waiting, self._waiting = self._waiting, ()
            commands += self._take_all(waiting)
        return commands


_IN_ORDER = (c.RequestData, c.ResponseBegins, c.ResponseData, c.ServerGone, c.Waited)
"""Events that wait until a generator has ended."""

_STARTED = frozenset((ExchangeState.FORWARDING, ExchangeState.STREAMING, ExchangeState.DRAINING))
"""States in which the client has a part of a response, or all of it."""

_WAITS_FOR_SERVER = frozenset(
    (ExchangeState.ASKED, ExchangeState.HEADED, ExchangeState.ANSWERING, ExchangeState.COLLECTING)
)

_BODIES: dict[ExchangeState, Callable[[ExchangeMachine, bytes, bool], Output]] = {
    ExchangeState.FORWARDING: ExchangeMachine._pass,
    ExchangeState.COLLECTING: ExchangeMachine._collect_metadata,
    ExchangeState.SIFTING: ExchangeMachine._sift,
    ExchangeState.DRAINING: ExchangeMachine._drain,
}

ExchangeMachine._handlers = {
    c.RequestData: ExchangeMachine._request_data,
    c.Injected: ExchangeMachine._injected,
    c.ResponseBegins: ExchangeMachine._response_begins,
    c.ResponseData: ExchangeMachine._response_data,
    c.Waited: ExchangeMachine._waited,
    c.Worked: ExchangeMachine._worked,
    c.Taken: ExchangeMachine._taken,
    c.Answer: ExchangeMachine._answer,
    c.Insert: ExchangeMachine._insert,
    c.Inspect: ExchangeMachine._inspect,
    c.HalfClosed: ExchangeMachine._half_closed,
    c.ClientGone: ExchangeMachine._client_gone,
    c.ServerGone: ExchangeMachine._server_gone,
    actions.Forward: ExchangeMachine._decided,
    actions.Substitute: ExchangeMachine._decided,
    actions.Dropped: ExchangeMachine._decided,
    actions.Disconnect: ExchangeMachine._disconnect,
    actions.AbortUpstream: ExchangeMachine._abort,
    actions.HeadDecided: ExchangeMachine._head_decided,
}


def without(headers: Headers, *names: str) -> Headers:
    """Return the headers except those with these names, in lower case."""
    return [(name, value) for name, value in headers if name.lower() not in names]


def _with_length(headers: Headers, body: bytes) -> Headers:
    return [*without(headers, "content-length"), ("Content-Length", str(len(body)))]


def json_error(request_id: str | None, line: str) -> bytes:
    """Return a JSON-RPC error from mcpspy. `request_id` is JSON text."""
    body = {
        "jsonrpc": "2.0",
        "id": orjson.Fragment(request_id) if request_id is not None else None,
        "error": {"code": -32000, "message": sanitize(line)},  # A Host may not be UTF-8.
    }
    return orjson.dumps(body)
