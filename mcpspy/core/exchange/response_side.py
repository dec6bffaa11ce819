"""The response of an exchange, on its way from the server through the recording to the client."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING
from urllib.parse import urljoin, urlsplit

from mcpspy.core.exchange import commands as c
from mcpspy.core.exchange.events import CONTINUE, DecidedEvents, ForwardedEvents, Output, in_turns
from mcpspy.core.exchange.heads import ENCODING
from mcpspy.core.exchange.states import ExchangeState, Input
from mcpspy.core.framing import is_message
from mcpspy.core.protocol.http_headers import (
    EVENTS,
    JSON,
    REDIRECTS,
    Headers,
    location_at_proxy,
    names_only,
)  # fmt: skip
from mcpspy.core.recording.capped_body import CappedBody
from mcpspy.core.recording.encode import SERVER

if TYPE_CHECKING:
    from mcpspy.core.exchange.prepared import PreparedResponse

from mcpspy.core.exchange.base import (
    CLOSE_SERVER,
    FINISHES,
    METADATA_LIMIT,
    NOTHING,
    WAIT,
    with_length,
    without,
)
from mcpspy.core.exchange.unattended import Unattended


class ResponseSide(Unattended):
    """An exchange that takes the response of the server."""

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
        is_short = kind == JSON and is_last and response.encoding is None and len(data) <= self.prepared.short
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
            begun = self._begun(response.headers)
            assert self._client_head is not None
            sent = begun + self._client_head.framed(data, is_last=True)
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
        yield from self._end(self._begun(with_length(headers, body)), body)

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

    def _sift_breaks(self, error: str) -> Output:
        assert isinstance(self._events, DecidedEvents)
        yield from self._events.close(self._now)
        self._has_ended, self._error = True, error
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


_BODIES: dict[ExchangeState, Callable[[ResponseSide, bytes, bool], Output]] = {
    ExchangeState.FORWARDING: ResponseSide._pass,
    ExchangeState.COLLECTING: ResponseSide._collect_metadata,
    ExchangeState.SIFTING: ResponseSide._sift,
    ExchangeState.DRAINING: ResponseSide._drain,
}
