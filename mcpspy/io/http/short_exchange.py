"""Exchanges without a coroutine: short messages whose heads are known.

Nearly all calls are such. They are recorded as other exchanges are, and nothing is forwarded before that. Whatever
else happens until the response has arrived (another head, a stream, a hang-up, a message to decide on) turns one into
an `HttpExchange`, which continues after the request.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mcpspy.core.recording.encode import CLIENT, SERVER, JsonText, body_line, json_object
from mcpspy.io.http.context import ENCODING, SESSION
from mcpspy.io.http.exchange_record import SHORT
from mcpspy.io.http.routes import Route

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

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
        upstream = None
        if (
            body
            and len(body) <= self.most
            and not (context.is_writing or context.is_stopping)
            and not (
                interception.is_on
                and (interception.changes_heads(CLIENT) or interception.decides(CLIENT, body))
            )
        ):
            upstream = context.client.take()
        if upstream is None:
            return None
        return ShortExchange(self, connection, upstream, body)


class ShortExchange:
    """One exchange, after its request was recorded and sent."""

    __slots__ = ("_connection", "_fields", "_of", "body", "number", "started_at", "stream", "upstream")

    def __init__(
        self,
        exchanges: ShortExchanges,
        connection: DownstreamConnection,
        upstream: UpstreamConnection,
        body: bytes,
    ) -> None:
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
        recorder.write(body_line(at, CLIENT, self._fields, body))
        assert head.forwarded is not None
        upstream.post(head.forwarded + body, self)

    def respond(self, head: ResponseHead, body: bytes) -> bool:
        """Record and send a whole response. Return False, before anything, if that needs more."""
        exchanges = self._of
        context, interception = exchanges.context, exchanges.interception
        prepared = head.forwarded.get(exchanges.key)
        if (
            prepared is None
            or not head.is_ordinary
            or len(body) > exchanges.most
            or context.is_writing
            or not context.oauth.is_between_flows
            or (interception.is_on and (interception.decides_responses or interception.changes_heads(SERVER)))
        ):
            return False
        assert head.recorded is not None
        assert exchanges.head.recorded is not None
        streams, recorder, connection = context.streams, context.recorder, self._connection
        if (session := head.named.get("mcp-session-id")) is not None:
            streams.bind(session, self.stream)
        found = context.clients.take(connection.peer, self.stream)
        client = b"" if found is None else b',"client":' + json_object(found)
        at, fields = recorder.now(), self._fields[1:-1]
        note = b'{"t":%.6f,"note":"http",%b,%b,"status":%d,"asked_at":%.6f,"request":%b,"response":%b%b}\n' % (
            at, fields, exchanges.recorded, head.status, self.started_at, exchanges.head.recorded, head.recorded, client
        )  # fmt: skip
        end = b'{"t":%.6f,"note":"http-end",%b,"hung_up":null}\n' % (at, fields)
        line = body_line(at, SERVER, self._fields, body) if body else b""
        recorder.write(note + line + end)
        connection.end_short(prepared + body)
        return True

    def settle(self) -> None:
        """Continue as an `HttpExchange` with what has arrived of the response."""
        self.upstream.fall_back()

    def fall_back(self) -> None:
        """Continue as an `HttpExchange` that waits for the response."""
        self._connection.continue_short(self._of.head, self._continue)

    def _continue(self, request: HttpRequest) -> Awaitable[Response | None]:
        request.target = self._of.target
        return self._of.continue_(request, self)
