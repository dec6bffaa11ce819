"""One proxied HTTP exchange.

A body is recorded before its last byte is forwarded; nothing else is delayed, except for decisions and by
`io.http.event_stream`. Bytes and headers are forwarded unchanged. If one side disconnects, the other is disconnected
at once.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import TYPE_CHECKING
from urllib.parse import urljoin, urlsplit

import orjson

from mcpspy.core.protocol.http_headers import (
    EVENTS,
    JSON,
    REDIRECTS,
    location_at_proxy,
    names_only,
    response_headers,
)
from mcpspy.core.protocol.message import Request, read_frame
from mcpspy.core.recording.capped_body import CappedBody
from mcpspy.core.recording.decode import Frame
from mcpspy.core.recording.encode import CLIENT, MCPSPY, SERVER
from mcpspy.core.recording.encode_body import REST
from mcpspy.core.redact.display import redacted_url
from mcpspy.core.sanitize import sanitize
from mcpspy.io.http.context import ENCODING, SESSION, ExchangeHead
from mcpspy.io.http.event_stream import EventStream
from mcpspy.io.http.exchange_record import SHORT, ExchangeRecord
from mcpspy.io.http.intercepted_exchange import (
    ClientAnswered,
    ClientDisconnected,
    InterceptedExchange,
)
from mcpspy.io.http.message_head import MAX_KNOWN
from mcpspy.io.http.request_body import RequestBody
from mcpspy.io.http.routes import Route
from mcpspy.io.http.server import Response
from mcpspy.io.http.short_exchange import ShortExchanges
from mcpspy.io.http.upstream_connection import HEAD_WAIT, UpstreamError
from mcpspy.io.network.outgoing import in_turns

if TYPE_CHECKING:
    from mcpspy.core.framing import Pieces
    from mcpspy.core.protocol.http_headers import Headers
    from mcpspy.io.http.context import ExchangeContext
    from mcpspy.io.http.interception import HttpInterception
    from mcpspy.io.http.server import HttpRequest
    from mcpspy.io.http.short_exchange import ShortExchange
    from mcpspy.io.http.upstream_connection import Body, UpstreamConnection, UpstreamResponse

METADATA_LIMIT = 1 << 20
"""Maximum size, in bytes, of a metadata document that is read; a larger one is forwarded unchanged."""


class HttpExchange:
    """One request, from its head to the end of its response."""

    def __init__(
        self,
        context: ExchangeContext,
        interception: HttpInterception,
        request: HttpRequest,
        short: ShortExchange | None = None,
    ) -> None:
        """Prepare an exchange, or the rest of a short one, whose request was sent."""
        self._context = context
        self._interception = interception
        self._request = request
        self._short = short
        self._head = ExchangeHead(context, request, None if short is None else short.number)
        self._record = ExchangeRecord(context, self._head, request)
        self._body = RequestBody(context, interception, self._record, self._head, request)
        self._intercepted: InterceptedExchange | None = None
        self._is_stream = False
        self._connection: UpstreamConnection | None = None if short is None else short.upstream
        request.half_close = self._half_close
        if short is not None:
            self._record.started_at, self._record.request = short.started_at, short.body
            self._record.has_head = short.has_head
            self._intercepted = short.intercepted
            if self._intercepted is not None:
                self._intercepted.head = self._head

    async def run(self) -> Response | None:
        """Proxy the exchange. Cancelled when the client hangs up and when the proxy stops."""
        try:
            try:
                if self._short is not None and self._short.upstream is not None:
                    response = await self._short.response()
                else:
                    response = await self._send_request(await self._take_body())
            except UpstreamError as error:
                if self._record.half_closed is not None and self._connection is not None:
                    raise ConnectionResetError from error
                return await self._respond_unreachable(error)
            except ClientAnswered:
                return await self._respond()
            except ClientDisconnected:
                await self._disconnect()
                return None
            try:
                return await self._forward_response(response)
            finally:
                # The server should stop sending when the client has hung up.
                if self._intercepted is None or not self._intercepted.is_draining:
                    response.close()
        except (asyncio.CancelledError, ConnectionResetError):
            await self._record.end(MCPSPY if self._context.is_stopping else CLIENT)
            raise
        except Exception:  # A bug in mcpspy: `io.http.server` reports it and hangs up.
            await self._record.end(MCPSPY)
            raise
        finally:
            self._request.half_close = None  # It would be a cycle, which waits for the collector.
            if self._intercepted is not None:
                self._intercepted.close()

    async def _take_body(self) -> Body:
        """Return the body to send, or None if the message in it is intercepted."""
        request, head = self._request, self._head
        if not request.has_body or self._intercepted is not None:
            return None
        request.accept_body()
        if not (head.is_mcp and request.method == "POST"):
            return self._body.unrecorded()
        is_session = SESSION in request.headers or head.is_address
        self._interception.routes.add_post(
            Route(head.stream, head.target, request.headers, head.public_origin, is_session)
        )
        body = await self._body.message()
        if not self._body.needs_decision:
            return body
        self._intercept()
        return None

    def _intercept(self) -> InterceptedExchange:
        body = self._record.request or b""
        head = self._head
        self._intercepted = InterceptedExchange(self._context, self._interception, head, body)
        self._intercepted.head = head
        return self._intercepted

    async def _send_request(self, body: Body) -> UpstreamResponse:
        if self._intercepted is not None:
            return await self._intercepted.send_request(await self._intercepted.request())
        request, context, head = self._request, self._context, self._head
        if self._interception.changes_heads(CLIENT):
            line = request.method, head.target
            headers = await self._interception.decided_headers(head.fields, head.headers, line)
            forwarded = context.client.head(request.method, head.target, headers, body)
        else:
            forwarded = head.forwarded(body)
        return await context.send(
            request.method, forwarded, body, request.body.interrupt, self._use_connection
        )

    def _use_connection(self, connection: UpstreamConnection) -> None:
        self._connection = connection
        if self._record.half_closed is not None:
            connection.half_close()

    def _half_close(self) -> bool:
        """Pass on that the client sends nothing more. Return False if that is a hang-up here.

        Messages that are decided on, and streams of events, end with it, as in most servers.
        """
        context = self._context
        if self._intercepted is not None or self._is_stream or not context.client.can_half_close:
            return False
        self._record.half_closed = self._record.now()
        if self._connection is not None:
            self._connection.half_close()
        return True

    def _continue(self, request: HttpRequest, short: ShortExchange) -> Awaitable[Response | None]:
        """Continue a short exchange of an equal request."""
        return HttpExchange(self._context, self._interception, request, short).run()

    async def _forward_response(self, response: UpstreamResponse) -> Response | None:
        request, context, head = self._request, self._context, self._head
        self._learn(response)
        kind = response.content_type if head.is_mcp and request.method != "HEAD" else ""
        if not response.body.has_data:
            await self._wait_for_body(response)
        is_short = kind == JSON and self._record.is_short(response.body, response.header(ENCODING))
        if (
            self._interception.is_on
            and self._intercepted is None
            and kind in (EVENTS, JSON)
            and await self._needs_decision(response, is_short=is_short)
        ):
            self._intercept()
        if kind:
            context.report_encoding(response.header(ENCODING))
        if response.content_type == EVENTS and not head.is_mcp:
            context.report_unrecorded(head.target)
        self._record.add_head(response.status, response.head)
        self._follow_redirect(response)
        if is_short and self._intercepted is None and not self._interception.changes_heads(SERVER):
            await self._forward_whole(response)
            return None
        headers = await self._response_headers(response)
        try:
            if request.method == "GET" and response.is_ok and context.oauth.is_metadata(head.target):
                last = await self._forward_metadata(response, headers)
            else:
                last = await self._forward_body(response, headers, kind)
            # Recorded before the last byte is forwarded, because some clients stop reading early.
            await self._record.end(None)
            request.send(last, is_last=True)
        except ConnectionError:
            await self._record.end(CLIENT)
        except UpstreamError:
            # After a normal end, the client would treat this as the whole body.
            await self._record.end(SERVER)
            request.hang_up()
        except ClientAnswered:
            if not request.has_started:
                return await self._respond()
            await self._record.end(None)
            request.finish()
        except ClientDisconnected:
            await self._disconnect()
        return None

    async def _needs_decision(self, response: UpstreamResponse, *, is_short: bool) -> bool:
        """Return whether the messages of a response are intercepted. A long body or a stream is, before it arrives."""
        if not is_short:
            return True
        interception = self._interception
        return interception.decides_responses and interception.decides(
            SERVER, await response.body.preview(SHORT)
        )

    async def _forward_whole(self, response: UpstreamResponse) -> None:
        """Forward a short message that has arrived, after one write to the recording."""
        request, head = self._request, self._head
        body = await response.body.next() or b""
        self._record.add_message(SERVER, body)
        await self._record.end(None)
        if head.lists_tools:
            self._interception.learn_tools(body)
        prepared = response.head.forwarded.get(self._head_key)
        if prepared is not None:
            self._prepare_short()
            request.respond(prepared, body)
            return
        self._start_short(response, await self._response_headers(response))
        request.send(body, is_last=True)

    @property
    def _head_key(self) -> object:
        """Return what the head that the client gets depends on."""
        return (self._request.head.version, self._request.keeps_alive, self._head.public_origin)

    def _prepare_short(self) -> None:
        """Let later requests with this head be short exchanges."""
        head = self._request.head
        if head.begin is None and ShortExchanges.fit(self._context, self._head):
            head.begin = ShortExchanges(self._context, self._interception, self._head, self._continue).begin

    def _start_short(self, response: UpstreamResponse, headers: Headers) -> None:
        """Begin the response to the client, and remember its head for short exchanges."""
        self._prepare_short()
        head, key = response.head, self._head_key
        prepared = self._start(response, headers)
        if head.length is not None and len(head.forwarded) < MAX_KNOWN:
            head.forwarded[key] = prepared
            head.is_ordinary = response.status == 200 and not any(
                name in head.named for name in ("location", "www-authenticate")
            )

    async def _response_headers(self, response: UpstreamResponse) -> Headers:
        """Return the headers for the client, after the decision of the scripts."""
        context, head = self._context, self._head
        headers = response_headers(response.headers, context.upstream, head.public_origin)
        headers = context.oauth.response_headers(head.target, headers, head.public_origin)
        if not self._interception.changes_heads(SERVER):
            return headers
        await self._record.flush()  # The notes follow that of the head.
        line = self._request.method, head.target
        return await self._interception.decided_headers(head.fields, headers, line, response.status)

    async def _wait_for_body(self, response: UpstreamResponse) -> None:
        """Wait a moment, because most servers send a short body right after the head."""
        timer = asyncio.get_running_loop().call_later(HEAD_WAIT, response.body.interrupt)
        try:
            await response.body.wait()
        finally:
            timer.cancel()

    def _start(self, response: UpstreamResponse, headers: Headers) -> bytes:
        """Begin the response to the client with the server's head. Return it."""
        has_length = any(name.lower() == "content-length" for name, _ in headers)
        return self._request.prepare(response.status, response.head.reason, headers, has_length=has_length)

    async def _write(self, data: bytes | bytearray) -> None:
        """Send a part of the response after what is recorded of it. Raises ConnectionResetError."""
        await self._record.flush()
        await self._request.write(bytes(data))

    async def _forward_body(self, response: UpstreamResponse, headers: Headers, kind: str) -> bytes:
        """Forward the body as it arrives, unless its messages are intercepted. Return its last part."""
        if self._intercepted is not None:
            return await self._forward_intercepted(response, headers, kind, self._intercepted)
        self._start(response, headers)
        if kind == JSON:
            return await self._forward_message(response)
        await self._write(b"")
        return await self._forward_rest(response, kind)

    async def _forward_rest(self, response: UpstreamResponse, kind: str = "") -> bytes:
        """Forward a stream of events, or a body that is not recorded. Return its last part."""
        if kind == EVENTS:
            stream = EventStream(self._context, self._interception, self._head, response, self._intercept)
            await stream.forward(self._intercepted)
            return b""
        self._record.begin_unrecorded()
        while (piece := await response.body.next()) is not None:
            self._record.take_unrecorded(piece)
            if response.body.is_complete:
                return piece
            await self._write(piece)
        return b""

    async def _forward_intercepted(
        self, response: UpstreamResponse, headers: Headers, kind: str, intercepted: InterceptedExchange
    ) -> bytes:
        """Forward the messages after the decisions on them, with a matching head. Return the last part."""
        await self._record.flush()
        if kind == JSON:
            received = self._response_body(response)
            pieces: Pieces = []
            body, is_unchanged = await intercepted.message(response, received, pieces)
            if received.is_over:
                self._start(response, headers)
                return await self._forward_oversized(response, received, pieces)
            if not is_unchanged:
                headers = without(headers, ENCODING, "content-length")
                headers.append(("Content-Length", str(len(body))))
            elif response.header(ENCODING) is None and not self._interception.changes_heads(SERVER):
                self._start_short(response, headers)
                return body
            self._start(response, headers)
            return body
        if kind == EVENTS:  # Events are sent one by one, uncompressed.
            headers = without(headers, ENCODING, "content-length")
        self._start(response, headers)
        await self._write(b"")
        return await self._forward_rest(response, kind)

    async def _forward_oversized(self, response: UpstreamResponse, body: CappedBody, pieces: Pieces) -> bytes:
        """Forward a body above the limit, which begins with `pieces`. Return its last part, once it is recorded."""
        lacks = REST
        try:
            held = pieces.pop()
            pieces.reverse()
            while pieces:
                await self._write(pieces.pop())
            while (piece := await response.body.next()) is not None:
                await self._write(held)
                held = piece
                await in_turns(body.feed(piece))
            lacks = ""
        finally:
            await self._context.record(body.close(self._record.now(), lacks=lacks), 0)
        return bytes(held)

    async def _respond(self) -> Response:
        """Respond in place of the server. The messages are already recorded."""
        assert self._intercepted is not None
        status, body = self._intercepted.answer()
        if not self._record.has_head:
            self._record.add_head(status, by=MCPSPY)
        await self._record.end(None)
        return Response(status, body, JSON if body else None)

    async def _disconnect(self) -> None:
        """Close the connection without a response."""
        await self._record.end(MCPSPY)
        self._request.hang_up(at_once=True)

    def _learn(self, response: UpstreamResponse) -> None:
        """Remember the session that begins or has ended, a challenge of OAuth, and how the exchange may end."""
        request, streams = self._request, self._context.streams
        self._is_stream = response.content_type == EVENTS
        if not (response.keeps_alive or request.body.is_over):  # The server reads no more of the request.
            request.keeps_alive = False
        begun, session = response.header("mcp-session-id"), request.headers.get(SESSION)
        if begun is not None and response.is_ok:
            streams.bind(begun, self._head.stream)
        is_deleted = request.method == "DELETE" and response.is_ok
        if session is not None and self._head.is_mcp and (is_deleted or response.status == 404):
            streams.end(session)
        if response.header("www-authenticate") is not None:
            self._record.facts = self._context.oauth.learn(response.headers)

    def _follow_redirect(self, response: UpstreamResponse) -> None:
        """Learn another path of the endpoint from a redirect of it, or report that it leads past the proxy."""
        named, head, context = response.header("location"), self._head, self._context
        if named is None or not head.is_mcp or response.status not in REDIRECTS:
            return
        location = location_at_proxy(named, context.upstream.origin, head.public_origin)
        keeps_method = response.status in (307, 308)
        if location.origin is not None:
            self._record.add("redirect", {"to": location.origin, "location": names_only(location.value)})
            context.report_redirect(location, keeps_method=keeps_method)
        elif keeps_method:
            context.streams.add_endpoint(urlsplit(urljoin(head.target, location.value)).path or "/")

    async def _forward_metadata(self, response: UpstreamResponse, headers: Headers) -> bytes:
        """Forward a document about the server with the proxy's addresses in it. Return its last part."""
        body = b""
        while len(body) <= METADATA_LIMIT and (piece := await response.body.next()) is not None:
            body += piece
        if not response.body.is_complete:
            self._start(response, headers)
            await self._write(body)
            return await self._forward_rest(response)
        body, self._record.facts = self._context.oauth.rewritten(
            self._head.target, body, self._head.public_origin
        )
        self._start(response, [*without(headers, "content-length"), ("Content-Length", str(len(body)))])
        return body

    async def _forward_message(self, response: UpstreamResponse) -> bytes:
        """Forward a message. Return its last part, once it is recorded."""
        body = self._response_body(response)
        held = b""
        is_whole = False
        try:
            while not response.body.is_complete:
                if held or not response.body.has_data:
                    await self._write(held)
                held = await response.body.next() or b""
                await in_turns(body.feed(held))
            is_whole = True
        finally:
            listed = body.data() if self._head.lists_tools and is_whole else b""
            lacks = "" if is_whole else response.lacks
            await self._record.write(body.close(self._record.now(), lacks=lacks), body.size)
        if listed:
            self._interception.learn_tools(listed)
        return held

    def _response_body(self, response: UpstreamResponse) -> CappedBody:
        encoding = response.header(ENCODING)
        return CappedBody(SERVER, self._head.fields, encoding, self._context.max_body)

    async def _respond_unreachable(self, error: UpstreamError) -> Response:
        """Respond with a JSON-RPC error because the server cannot be reached."""
        await self._body.record_rest()
        upstream = self._context.upstream
        line = f"mcpspy: cannot reach {redacted_url(upstream.origin + upstream.path)}: {error}"
        self._record.add_head(502, error=line)
        await self._record.end(None)
        message = self._record.request
        messages = read_frame(Frame(0.0, CLIENT, message)) if message else []
        request_id = messages[0].id if len(messages) == 1 and isinstance(messages[0], Request) else None
        return json_error(502, request_id, line)


def without(headers: Headers, *names: str) -> Headers:
    """Return the headers except those with these names, in lower case."""
    return [(name, value) for name, value in headers if name.lower() not in names]


def json_error(status: int, request_id: str | None, line: str) -> Response:
    """Return a JSON-RPC error from mcpspy. `request_id` is JSON text."""
    body = {
        "jsonrpc": "2.0",
        "id": orjson.Fragment(request_id) if request_id is not None else None,
        "error": {"code": -32000, "message": sanitize(line)},  # A Host may not be UTF-8.
    }
    return Response(status, orjson.dumps(body), JSON)
