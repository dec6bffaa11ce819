"""The response of an exchange, on its way from the server through the recording to the client."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING
from urllib.parse import urljoin, urlsplit

from mcpspy.core.exchange.base import METADATA_LIMIT, with_length, without
from mcpspy.core.exchange.events import Decide, DecidedEvents, ForwardedEvents, Output, in_turns
from mcpspy.core.exchange.heads import ENCODING, ResponseHead
from mcpspy.core.exchange.states import (
    ANSWERING,
    ASKED,
    COLLECTING,
    DRAINING,
    FORWARDING,
    HEADED,
    OVER,
    SIFTING,
    STREAMING,
    UPLOADING,
    ExchangeState,
    Input,
)  # fmt: skip
from mcpspy.core.exchange.unattended import Unattended
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

_WHOLE = Input.WHOLE


class ResponseSide(Unattended):
    """An exchange that takes the response of the server."""

    def response_begins(self, head: ResponseHead, data: bytes, keeps_alive: bool, is_last: bool) -> None:
        """Take the head of the response, with as much of its body as has arrived.

        `keeps_alive` is False if the server has announced that it closes the connection.
        """
        state = self.state
        if self._response is not None:
            return
        response = self._response = self.prepared.response(head)
        if state is not ASKED and state is not UPLOADING:
            if state is DRAINING:
                self._drain_begins(data, is_last)
            return
        if not self._has_client:
            self._move(Input.DRAIN)
            self._drain_begins(data, is_last)
            return
        if not (keeps_alive or self._is_received):  # The server reads no more of the request.
            self._keeps_alive = False
        if response.is_of_session:
            self._learn_session(response)
        if data or is_last:
            self._open(data, is_last)
        else:
            self._move(Input.HEAD)
            self.shell.wait()

    def _learn_session(self, response: PreparedResponse) -> None:
        """Learn from a head that a session begins or ends, or that it asks for authorization."""
        request, head, streams = self.prepared, response.head, self._scope.streams
        if response.session is not None and head.status < 400:
            streams.bind(response.session, self.stream)
        if request.session is not None and self.is_mcp:
            is_deleted = request.head.method == "DELETE" and head.status < 400
            if is_deleted or head.status == 404:
                streams.end(request.session)
        if "www-authenticate" in head.named:
            self._facts = self._scope.oauth.learn(head.headers)

    def waited(self) -> None:
        """Take the end of the moment for which a head waits for its body."""
        if self.state is HEADED:
            self._open(b"", False)

    def _open(self, data: bytes, is_last: bool) -> None:
        """Take the response's head, with the beginning of its body."""
        response, policy = self._response, self._policy
        assert response is not None
        is_whole = is_last and self.is_mcp and len(data) <= response.max_whole and not self.is_intercepted
        changes_head = SERVER in policy.changed_heads
        # A long body or a stream is decided on before it has arrived.
        if policy.is_on and self._kind in (EVENTS, JSON) and not self.is_intercepted and (
            not is_whole or (policy.decides_responses and policy.decides(SERVER, data))
        ):  # fmt: skip
            self.is_intercepted, is_whole = True, False
            self.shell.intercept()
        if is_whole and not changes_head:
            if self.is_listing:
                policy.learn_tools(data)
            self._move(_WHOLE)
            lines = self._whole(response, data)
            if lines is not None:
                sent = (response.whole if self._keeps_alive else None) or self._begin_response(
                    response.headers
                )
                self.shell.record(lines, len(lines))
                self.shell.to_client(sent.data + sent.framed(data, is_last=True))
                self.shell.finish(self._keeps_alive)
                return
        self._report(response)
        self._add_head(response.head.status, response)
        if not response.is_ordinary:
            self._follow_redirect(response)
        if changes_head:
            self._begun_with = data, is_last
            self._move(Input.HEADS)
            self._write()
            self.shell.decide_head(response.headers, response.head.status)
            self.shell.pause(SERVER, True)
        elif is_whole:
            self._add_message(SERVER, data)
            self._end_whole(response.headers, data)
        else:
            self._forward(response.headers, data, is_last)

    @property
    def _kind(self) -> str:
        """The media type of the response, if it may contain messages."""
        return self._response.kind if self._response is not None and self.is_mcp else ""

    def _report(self, response: PreparedResponse) -> None:
        """Print once what is not recorded, or not readable."""
        if self._kind and response.encoding is not None:
            self.shell.report_once("encoding", response.encoding, False)
        if response.head.content_type == EVENTS and not self.is_mcp:
            self.shell.report_once("unrecorded", self.prepared.target, False)

    def _forward(self, headers: Headers, data: bytes, is_last: bool) -> None:
        """Begin to forward a response whose head was decided on."""
        response, request = self._response, self.prepared
        assert response is not None
        kind, fields, limit = self._kind, self.fields, self._scope.max_body
        self._write()
        self._headers = headers
        is_get = request.head.method == "GET"
        may_name_endpoint = is_get and request.session is None
        if is_get and response.head.is_ok and self._scope.oauth.is_metadata(request.target):
            self._move(Input.COLLECT)
            self._run(self._collect_metadata(data, is_last))
            return
        if kind == JSON:
            self._body = CappedBody(SERVER, fields, response.encoding, limit)
            if self.is_intercepted:
                self._move(Input.COLLECT)
                self._run(self._collect(data, is_last))
                return
            self._move(Input.BODY)
        elif kind == EVENTS and self.is_intercepted:  # Events are sent one by one, uncompressed.
            self._headers = headers = without(headers, ENCODING, "content-length")
            self._move(Input.SIFT)
            self._events = DecidedEvents(
                fields, response.encoding, limit, may_name_endpoint=may_name_endpoint
            )
            self.shell.open_stream(True)
            self._unsent = self._begin_response(headers).data
            self._send(b"")
            self._run(self._sift(data, is_last))
            return
        elif kind == EVENTS:
            self._move(Input.EVENTS)
            learn = self._policy.learn_tools if self.is_listing else None
            self._events = ForwardedEvents(
                fields, response.encoding, limit, may_name_endpoint=may_name_endpoint, learn=learn
            )
            if response.encoding is None:  # Compressed streams cannot be changed in part.
                self.shell.open_stream(False)
        else:
            self._move(Input.BODY)
            self._begin_unrecorded(response)
        self._unsent = self._begin_response(headers).data
        if data or is_last:
            self.response_data(data, is_last)
        if self._unsent and self._work is None and self.state is not OVER:
            self._send(b"")

    def response_data(self, data: bytes, is_last: bool) -> None:
        """Take a part of the response's body."""
        state = self.state
        if state is STREAMING:
            assert isinstance(self._events, ForwardedEvents)
            if not is_last and not self._wants_decisions:
                line = self._events.known(self.now, data)
                if line is not None:
                    self.shell.record(line, len(line))
                    self._send(data)
                    return
            self._run(self._stream(data, is_last))
        elif state is HEADED:
            self._open(data, is_last)
        elif state is ANSWERING:
            self._waiting += (partial(self.response_data, data, is_last),)
        elif state is DRAINING and (self._response is None or self._has_ended):
            pass
        elif (handler := _BODIES.get(state)) is not None:
            self._run(handler(self, data, is_last))

    def _pass(self, data: bytes, is_last: bool) -> Output:
        """Forward a part of a message, or of a body that is not recorded."""
        body = self._body
        if body is not None:
            yield from in_turns(body.feed(data))
        else:
            yield from self._take_unrecorded(data)
        if not is_last:
            self._send(data)
            return
        if body is not None:
            if self.is_listing and not body.is_over:
                self._policy.learn_tools(body.data())
            self._record_body()
        self._move(Input.END)
        self._end(self._unsent, data)

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
            self._begin_unrecorded(self._response)
            self._unsent = self._begin_response(headers).data
            yield from self._pass(body, is_last)
            return
        body, self._facts = self._scope.oauth.rewritten(
            self.prepared.target, body, self.prepared.public_origin
        )
        self._move(Input.END)
        self._end_whole(with_length(headers, body), body)

    def _collect(self, data: bytes, is_last: bool) -> Output:
        """Read a message up to the limit, and let it be decided on."""
        body = self._body
        assert body is not None
        self._collect_piece(data)
        yield from in_turns(body.feed(data))
        if body.is_over:  # It is not read to its end, and not decided on, as all that follows here.
            pieces, self._pieces = self._pieces, ()
            self._move(Input.BODY)
            self._leave()
            self.is_intercepted = False
            self._unsent = self._begin_response(self._headers).data
            for piece in pieces[: -1 if is_last else None]:
                self._send(bytes(piece))
            if is_last:
                self._record_body()
                self._move(Input.END)
                self._end(self._unsent, bytes(pieces[-1]))
            return
        if not is_last:
            return
        received, self._pieces = b"".join(self._pieces), ()
        message = body.data()
        if not is_message(message):
            self._record_body()
            self._move(Input.END)
            self._end_whole(self._headers, received)
            return
        self._body = None
        self._collected = received
        self._move(Input.DECIDE)
        yield Decide(SERVER, message, received, None, self.fields)

    def _stream(self, data: bytes, is_last: bool) -> Output:
        """Record and forward events, until each needs a decision."""
        events = self._events
        assert isinstance(events, ForwardedEvents)
        if data:
            yield from events.feed(self.now, data, self._redirect)
        if is_last:
            record, held = events.close(self.now)
            if record.lines:
                yield record
            self._move(Input.END)
            self._end(self._unsent, held)
            self._close_stream()
        elif self._wants_decisions and events.is_between_events:
            yield from self._sift_from_here()

    def _sift_from_here(self) -> Output:
        assert self._response is not None
        self._move(Input.SIFT)
        may_name_endpoint = isinstance(self._events, ForwardedEvents) and self._events.may_name_endpoint
        self._events = DecidedEvents(
            self.fields, None, self._scope.max_body, may_name_endpoint=may_name_endpoint
        )
        inserted, self._inserted = self._inserted, b""
        yield inserted

    def _sift(self, data: bytes, is_last: bool) -> Output:
        """Let the events be decided on, and forward what is between them."""
        events = self._events
        assert isinstance(events, DecidedEvents)
        yield from events.feed(self.now, data, self._redirect)
        if events.is_over:  # It ends here for the client too: no message is forwarded without a decision.
            self.shell.close_server()
            yield from self._sift_breaks("its compressed events are those of an attack")
            return
        if is_last:
            yield from events.close(self.now)
            self._has_ended = True
            self._end_if_settled()

    def _sift_breaks(self, error: str) -> Output:
        assert isinstance(self._events, DecidedEvents)
        yield from self._events.close(self.now)
        self._has_ended, self._error = True, error
        self._end_if_settled()

    def _end_if_settled(self) -> None:
        """End a stream once none of its messages is held, or all of the client's requests are answered."""
        events = self._events
        assert isinstance(events, DecidedEvents)
        if self.state is not SIFTING:
            return
        is_answered = self._is_answered and events.is_between_events
        if not is_answered and not (self._has_ended and events.is_settled):
            return
        if is_answered or not self._error:
            self._move(Input.END if self._has_ended else Input.DRAIN)
            self._end(self._unsent, b"")
        else:
            self._move(Input.FAIL)
            self._write_end(SERVER)
            self.shell.hang_up(False)
            self._leave()
        self._close_stream()

    def _follow_redirect(self, response: PreparedResponse) -> None:
        """Learn another path of the endpoint from a redirect of it, or report that it leads past the proxy."""
        head = response.head
        named = head.named.get("location")
        if named is None or not self.is_mcp or head.status not in REDIRECTS:
            return
        location = location_at_proxy(named, self._scope.upstream.origin, self.prepared.public_origin)
        keeps_method = head.status in (307, 308)
        if location.origin is not None:
            fields = {"to": location.origin, "location": names_only(location.value)}
            self._add("redirect", {**fields})
            self.shell.report_once("redirect", location, keeps_method)
        elif keeps_method:
            path = urlsplit(urljoin(self.prepared.target, location.value)).path or "/"
            self._scope.streams.add_endpoint(path)


_BODIES: dict[ExchangeState, Callable[[ResponseSide, bytes, bool], Output]] = {
    FORWARDING: ResponseSide._pass,
    COLLECTING: ResponseSide._collect_metadata,
    SIFTING: ResponseSide._sift,
    DRAINING: ResponseSide._drain,
}
