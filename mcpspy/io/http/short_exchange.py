"""Exchanges without a coroutine: short messages whose heads are known.

Nearly all calls are such. They are recorded as other exchanges are, and nothing is forwarded before that. Whatever
else happens until the response is sent (another head, a stream, a hang-up, a decision to change a message) turns one
into an `HttpExchange`, which continues from there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mcpspy.core.recording.encode import CLIENT, SERVER, JsonText, json_object
from mcpspy.core.recording.encode_body import body_line
from mcpspy.io.http.context import ENCODING, SESSION
from mcpspy.io.http.exchange_record import SHORT
from mcpspy.io.http.intercepted_exchange import InterceptedExchange
from mcpspy.io.http.routes import Route
from mcpspy.io.http.upstream_connection import UpstreamResponse

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from mcpspy.core.recording.encode import Value
    from mcpspy.io.http.context import ExchangeContext, ExchangeHead
    from mcpspy.io.http.interception import HttpInterception
    from mcpspy.io.http.server import DownstreamConnection, HttpRequest, Response
    from mcpspy.io.http.upstream_connection import ResponseHead, UpstreamConnection

    Continue = Callable[[HttpRequest, "ShortExchange"], Awaitable[Response | None]]
    """Continues an exchange whose request has been sent."""


class ShortExchanges:
    """The exchanges of one connection whose requests have the same head."""

    def __init__(
        self,
        context: ExchangeContext,
        interception: HttpInterception,
        head: ExchangeHead,
        continue_: Continue,
    ) -> None:
        """Prepare for requests with the head of an exchange that was forwarded."""
        self.context = context
        self.interception = interception
        self.continue_ = continue_
        request = head.request
        self.head = request.head
        self.target = head.target
        self.session = request.headers.get(SESSION)
        self.public_origin = head.public_origin
        self.key = (self.head.version, self.head.keeps_alive, head.public_origin)
        """The key of the head that is sent to the client."""
        self.recorded = json_object({"method": request.method, "path": head.target})[1:-1]
        self.most = min(SHORT, context.max_body)

    @staticmethod
    def fit(context: ExchangeContext, head: ExchangeHead) -> bool:
        """Return whether requests with this head may be short exchanges."""
        request = head.request
        return (
            request.method == "POST"
            and context.is_mcp
            and request.head.forwarded is not None
            and head.is_mcp
            and not head.is_address
            and not head.lists_tools
            and request.keeps_alive
            and not request.head.waits
            and ENCODING not in request.headers
        )

    def begin(self, connection: DownstreamConnection, body: bytes) -> ShortExchange | None:
        """Record and send a request with this head. Return None for one that is not short."""
        context, interception = self.context, self.interception
        if not body or len(body) > self.most or context.is_writing or context.is_stopping:
            return None
        if interception.is_on:
            if interception.changes_heads(CLIENT) or interception.has_watchdog:
                return None
            if interception.decides(CLIENT, body):
                return InterceptedShortExchange(self, connection, body) if context.client.has_short else None
        upstream = context.client.take()
        return None if upstream is None else ShortExchange(self, connection, body, upstream)


class ShortExchange:
    """One exchange, after its request was recorded and sent."""

    __slots__ = ("_connection", "_fields", "_of", "body", "number", "started_at", "stream", "upstream")

    intercepted: InterceptedExchange | None = None
    """The messages of the exchange, if they are decided on."""
    has_head = False
    """True once the heads are recorded."""

    def __init__(
        self,
        exchanges: ShortExchanges,
        connection: DownstreamConnection,
        body: bytes,
        upstream: UpstreamConnection | None = None,
    ) -> None:
        """Begin an exchange. `upstream` sends the request, unless that is decided on."""
        self._of = exchanges
        self._connection = connection
        self.upstream = upstream
        self.body = body
        context, head = exchanges.context, exchanges.head
        number = self.number = context.next_number()
        stream = self.stream = context.streams.of(exchanges.session, exchanges.target, number)
        exchanges.interception.routes.add_post(
            Route(
                stream, exchanges.target, head.headers, exchanges.public_origin, exchanges.session is not None
            )
        )
        self._fields = JsonText(b'{"stream":"%b","http":%d}' % (stream.encode(), number))
        recorder = context.recorder
        at = self.started_at = recorder.now()
        if recorder.writer is not None:
            context.clients.look(connection.peer, stream)
        self.upstream = upstream
        if upstream is not None:
            recorder.write(body_line(at, CLIENT, self._fields, body))
            self._post(upstream)

    def respond(self, head: ResponseHead, body: bytes) -> bool:
        """Record and send a whole response. Return False, before anything, if that needs more."""
        exchanges, interception = self._of, self._of.interception
        prepared = head.forwarded.get(exchanges.key)
        if (
            prepared is None
            or not self._takes(head, body)
            or (interception.is_on and interception.decides_responses)
        ):
            return False
        at = exchanges.context.recorder.now()
        line = body_line(at, SERVER, self._fields, body) if body else b""
        exchanges.context.recorder.write(self._head_note(at, head) + line + self._end_note(at))
        self._connection.end_short(prepared + body)
        return True

    def _post(self, upstream: UpstreamConnection) -> None:
        head = self._of.head.forwarded
        assert head is not None
        upstream.post(head + self.body, self)

    def _takes(self, head: ResponseHead, body: bytes) -> bool:
        """Return whether a response needs no more than to be decided on, recorded and forwarded."""
        exchanges, context, interception = self._of, self._of.context, self._of.interception
        return (
            head.is_ordinary
            and len(body) <= exchanges.most
            and not context.is_writing
            and context.oauth.is_between_flows
            and not (interception.is_on and interception.changes_heads(SERVER))
        )

    def _head_note(self, at: float, head: ResponseHead) -> bytes:
        exchanges, context = self._of, self._of.context
        assert head.recorded is not None
        assert exchanges.head.recorded is not None
        if (session := head.named.get("mcp-session-id")) is not None:
            context.streams.bind(session, self.stream)
        found = context.clients.take(self._connection.peer, self.stream)
        client = b"" if found is None else b',"client":' + json_object(found)
        return b'{"t":%.6f,"note":"http",%b,%b,"status":%d,"asked_at":%.6f,"request":%b,"response":%b%b}\n' % (
            at, self._fields[1:-1], exchanges.recorded, head.status, self.started_at, exchanges.head.recorded, head.recorded, client
        )  # fmt: skip

    def _end_note(self, at: float) -> bytes:
        return b'{"t":%.6f,"note":"http-end",%b,"hung_up":null}\n' % (at, self._fields[1:-1])

    async def response(self) -> UpstreamResponse:
        """Return the response, for the `HttpExchange` that continues this one. Raises UpstreamError."""
        assert self.upstream is not None
        return await self.upstream.response()

    def settle(self) -> None:
        """Continue as an `HttpExchange` with what has arrived of the response."""
        assert self.upstream is not None
        self.upstream.fall_back()

    def fall_back(self) -> None:
        """Continue as an `HttpExchange` that waits for the response."""
        self._connection.continue_short(self._of.head, self._continue)

    def _continue(self, request: HttpRequest) -> Awaitable[Response | None]:
        request.target = self._of.target
        return self._of.continue_(request, self)


class InterceptedShortExchange(ShortExchange):
    """A short exchange whose messages are decided on. It ends as one if they are forwarded unchanged."""

    __slots__ = ("_response", "has_head", "intercepted")

    lists_tools = is_address = is_get = False
    intercepted: InterceptedExchange
    has_head: bool

    def __init__(self, exchanges: ShortExchanges, connection: DownstreamConnection, body: bytes) -> None:
        super().__init__(exchanges, connection, body)
        self.has_head = False
        self._response: tuple[ResponseHead, bytes] | None = None
        """The response, while it is decided on."""
        self.intercepted = InterceptedExchange(exchanges.context, exchanges.interception, self, body, self)
        self.intercepted.take_at_once(CLIENT, body, self._fields)

    @property
    def fields(self) -> dict[str, Value]:
        return {"stream": self.stream, "http": self.number}

    def respond(self, head: ResponseHead, body: bytes) -> bool:
        """Record a whole response, and let it be decided on. Return False, before anything, if that needs more."""
        exchanges, interception = self._of, self._of.interception
        if not (
            self.intercepted.short is self
            and exchanges.key in head.forwarded
            and self._takes(head, body)
            and interception.decides(SERVER, body)
        ):
            return False
        self._response, self.has_head = (head, body), True
        note = self._head_note(exchanges.context.recorder.now(), head)
        self.intercepted.take_at_once(SERVER, body, self._fields, note)
        return True

    def forward(self) -> bool:
        """Forward the message that was decided on. Return False, before anything, if that needs a coroutine."""
        context = self._of.context
        if context.is_writing:
            return False
        if self._response is None:
            self.upstream = context.client.take()
            if self.upstream is None:
                return False
            self._post(self.upstream)
            return True
        head, body = self._response
        context.recorder.write(self._end_note(context.recorder.now()))
        self.intercepted.finish()
        self._connection.end_short(head.forwarded[self._of.key] + body)
        return True

    async def response(self) -> UpstreamResponse:
        if self._response is None:
            return await super().response()
        assert self.upstream is not None
        return CompleteResponse(self.upstream, *self._response)

    def interrupt(self) -> None:
        self._connection.settle()

    def settle(self) -> None:
        if self.upstream is None or self._response is not None:
            self.fall_back()
        else:
            super().settle()

    def fall_back(self) -> None:
        self.intercepted.short = None
        super().fall_back()


class CompleteResponse(UpstreamResponse):
    """A whole response, whose connection has been freed."""

    def __init__(self, connection: UpstreamConnection, head: ResponseHead, body: bytes) -> None:
        super().__init__(connection, head)
        self.body.feed(body)
        self.body.end()

    def close(self) -> None: ...
