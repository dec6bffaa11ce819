"""One proxied HTTP exchange.

A body is recorded before its last byte is forwarded, and an event of a stream before its blank line; nothing
else is delayed. Bytes and headers are forwarded unchanged. If one side disconnects, the other is disconnected
at once.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from typing import TYPE_CHECKING, Any

import aiohttp
import orjson
from aiohttp import hdrs, web
from multidict import CIMultiDict

from mcpspy.core.compression import BodyDecoder
from mcpspy.core.framing import collect
from mcpspy.core.protocol.http_headers import (
    recorded_headers,
    request_headers,
    response_headers,
)
from mcpspy.core.protocol.message import Request, read_frame
from mcpspy.core.protocol.oauth import FORM_LIMIT, OAuthRequest
from mcpspy.core.recording.capped_body import CappedBody, CappedStream
from mcpspy.core.recording.decode import Frame
from mcpspy.core.recording.encode import CLIENT, MCPSPY, SERVER, SseEncoder
from mcpspy.core.redact.display import redacted_url
from mcpspy.io.client.aiohttp_session import in_turns, reason
from mcpspy.io.http.context import SESSION, ExchangeHead
from mcpspy.io.http.intercepted_exchange import (
    EVENTS,
    JSON,
    ClientAnswered,
    ClientDisconnected,
    InterceptedExchange,
)
from mcpspy.io.http.routes import Route
from mcpspy.io.interception import is_message
from mcpspy.io.recording.recorder import say

if TYPE_CHECKING:
    from mcpspy.core.framing import Pieces, SseEvent
    from mcpspy.core.protocol.http_headers import Headers
    from mcpspy.core.recording.encode import Value
    from mcpspy.io.http.context import ExchangeContext
    from mcpspy.io.http.interception import HttpInterception

ADDED = (hdrs.USER_AGENT, hdrs.ACCEPT, hdrs.CONTENT_TYPE, hdrs.ACCEPT_ENCODING, hdrs.SERVER, hdrs.DATE)
"""Headers that aiohttp adds if they are missing."""

JOIN_LIMIT = 1 << 18
"""Maximum size, in bytes, of a request body that is sent in one piece. A larger one is not copied as a whole."""


ENDPOINT_LIMIT = 1 << 16
"""Maximum size, in bytes, of the beginning of a stream that is held because its first event may name an address."""

METADATA_LIMIT = 1 << 20
"""Maximum size, in bytes, of a metadata document that is read; a larger one is forwarded unchanged."""


class ProxiedResponse(web.StreamResponse):
    """A response with exactly the headers that the server sent."""

    def __init__(self, response: aiohttp.ClientResponse, headers: Headers) -> None:
        super().__init__(status=response.status, reason=response.reason, headers=CIMultiDict(headers))
        self._given = response.headers
        # A complete body is sent in one packet with its head; otherwise the head is sent at once.
        self._send_headers_immediately = not response.content.is_eof()

    async def _write_headers(self) -> None:
        for name in ADDED:
            if name not in self._given:
                self.headers.popall(name, None)
        await super()._write_headers()


class HttpExchange:
    """One request, from its head to the end of its response."""

    def __init__(
        self, context: ExchangeContext, interception: HttpInterception, request: web.BaseRequest
    ) -> None:
        self._context = context
        self._interception = interception
        self._request = request
        self._started_at = self._now()
        self._head = ExchangeHead(context, request)
        self._request_body: bytes | None = None
        self._unrecorded: CappedBody | None = None
        """A request above the limit, until its note is written."""
        self._intercepted: InterceptedExchange | None = None
        self._waiting_task: asyncio.Task[Any] | None = None
        self._form = b""
        """The beginning of the body of a request that is a step of OAuth."""
        self._facts: dict[str, Any] = {}
        """Facts of the response, for the note of its OAuth step."""
        self._has_head = False
        self._status: int | None = None
        self._is_over = False

    async def run(self) -> web.StreamResponse:
        """Proxy the exchange. Cancelled when the client hangs up and when the proxy stops."""
        try:
            data = await self._take_request()
            try:
                response = await self._send_request(data)
            except (aiohttp.ClientError, OSError) as error:
                return await self._respond_unreachable(error)
            except ClientAnswered:
                return await self._respond()
            except ClientDisconnected:
                return await self._disconnect(web.Response())
            try:
                return await self._forward_response(response)
            finally:
                # The server should stop sending when the client has hung up: close(), not release().
                if self._intercepted is None or not self._intercepted.is_draining:
                    response.close()
        except (asyncio.CancelledError, ConnectionResetError):
            await self._end(MCPSPY if self._context.is_stopping else CLIENT)
            raise
        except Exception:  # A bug in mcpspy: `io.http.listener` reports it and hangs up.
            await self._end(MCPSPY)
            raise
        finally:
            if self._intercepted is not None:
                self._intercepted.close()

    async def _take_request(self) -> bytes | AsyncIterator[bytes] | None:
        """Return the body to send: a recorded message, or the stream of any other body."""
        request, context, head = self._request, self._context, self._head
        if request.headers.get(hdrs.EXPECT, "").lower() == "100-continue" and request.transport is not None:
            request.transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        if not request.body_exists:
            return None
        if not (head.is_mcp and request.method == hdrs.METH_POST):
            is_step = context.oauth.step(head.target) is not None
            return self._with_form(request.content.iter_any()) if is_step else request.content.iter_any()
        is_session = SESSION in request.headers or head.is_address
        self._interception.routes.add_post(
            Route(head.stream, head.target, request.headers, head.public_origin, is_session)
        )
        body = CappedBody(CLIENT, head.fields, request.headers.get(hdrs.CONTENT_ENCODING), context.max_body)
        pieces: Pieces = []
        chunks = request.content.iter_any()
        torn = True
        try:
            async for piece in chunks:
                collect(pieces, piece)
                await in_turns(body.feed(piece))
                if body.is_over:
                    break
            torn = False
        finally:
            if body.is_over:
                self._unrecorded = body
            elif torn or not self._is_intercepted(pieces):
                await context.record(body.close(self._now(), torn=torn), body.size)
        if body.is_over:
            return self._rest_of_request(pieces, chunks, body)
        if self._intercepted is not None:
            return None
        if body.sent > JOIN_LIMIT:
            return _iterate(pieces)
        self._request_body = b"".join(pieces)
        return self._request_body

    async def _with_form(self, chunks: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
        """Yield the chunks of a body, and keep its beginning."""
        async for chunk in chunks:
            self._form += chunk[: FORM_LIMIT - len(self._form)]
            yield chunk

    async def _rest_of_request(
        self, pieces: Pieces, chunks: AsyncIterator[bytes], body: CappedBody
    ) -> AsyncIterator[bytes]:
        """Yield a body above the limit as it arrives. Its last chunk waits for the note."""
        last = pieces.pop()
        pieces.reverse()
        while pieces:
            yield bytes(pieces.pop())
        async for chunk in chunks:
            yield bytes(last)
            last = chunk
            await in_turns(body.feed(chunk))
        await self._record_oversized(torn=False)
        yield bytes(last)

    async def _record_oversized(self, *, torn: bool) -> None:
        body, self._unrecorded = self._unrecorded, None
        if body is not None:
            await self._context.record(body.close(self._now(), torn=torn), 0)

    def _is_intercepted(self, pieces: Pieces) -> bool:
        """Return whether a complete body is a message to decide on."""
        if self._interception.is_on and is_message(body := b"".join(pieces)):
            self._request_body = body
            self._intercept()
        return self._intercepted is not None

    def _intercept(self) -> InterceptedExchange:
        body = self._request_body or b""
        self._intercepted = InterceptedExchange(self._context, self._interception, self._head, body)
        return self._intercepted

    async def _send_request(self, data: bytes | AsyncIterator[bytes] | None) -> aiohttp.ClientResponse:
        if self._intercepted is not None:
            return await self._intercepted.send_request(await self._intercepted.request())
        request, context, head = self._request, self._context, self._head
        headers = request_headers(request.headers.items(), context.upstream, head.public_origin)
        return await context.send_request(request.method, head.target, headers, data)

    async def _forward_response(self, response: aiohttp.ClientResponse) -> web.StreamResponse:
        request, context, head = self._request, self._context, self._head
        session = response.headers.get(SESSION)
        if session is not None and response.ok:
            context.streams.bind(session, head.stream)
        self._end_session(response)
        if hdrs.WWW_AUTHENTICATE in response.headers:
            self._facts = context.oauth.learn(response.headers.items())
        await self._record_head(response.status, recorded_headers(response.headers.items()))
        if not response.content.is_eof():
            # Most servers send a short response in two packets: let the loop read the second one if it has arrived.
            await asyncio.sleep(0)
        headers = response_headers(response.headers.items(), context.upstream, head.public_origin)
        headers = context.oauth.response_headers(head.target, headers, head.public_origin)
        kind = response.content_type if head.is_mcp and request.method != hdrs.METH_HEAD else ""
        if kind in (EVENTS, JSON) and self._interception.is_on and self._intercepted is None:
            self._intercept()
        proxied = ProxiedResponse(response, headers)
        try:
            if request.method == hdrs.METH_GET and response.ok and context.oauth.is_metadata(head.target):
                return await self._forward_metadata(response, proxied)
            await self._forward_body(response, proxied, kind)
            # Recorded before the last byte is forwarded, because some clients stop reading early.
            await self._end(None)
            await proxied.write_eof()
        except ConnectionError:  # To the client; aiohttp's own subclass for the server is also a ClientError.
            await self._end(CLIENT)
        except aiohttp.ClientError:
            # After a normal end, the client would treat this as the whole body.
            await self._end(SERVER)
            if request.transport is not None:
                request.transport.close()
        except ClientAnswered:
            if not proxied.prepared:
                return await self._respond()
            await self._end(None)
            await proxied.write_eof()
        except ClientDisconnected:
            return await self._disconnect(proxied)
        return proxied

    async def _forward_body(
        self, response: aiohttp.ClientResponse, proxied: ProxiedResponse, kind: str
    ) -> None:
        """Forward the body as it arrives, unless its messages are intercepted."""
        if self._intercepted is not None:
            await self._forward_intercepted(response, proxied, kind, self._intercepted)
            return
        await proxied.prepare(self._request)
        if kind == EVENTS:
            await self._forward_events(response, proxied)
        elif kind == JSON:
            await self._forward_message(response, proxied)
        else:
            async for chunk in response.content.iter_any():
                await proxied.write(chunk)

    async def _forward_intercepted(
        self,
        response: aiohttp.ClientResponse,
        proxied: ProxiedResponse,
        kind: str,
        intercepted: InterceptedExchange,
    ) -> None:
        """Forward the messages after the decisions on them, with a matching head."""
        if kind == JSON:
            received = self._response_body(response)
            pieces: Pieces = []
            body, is_unchanged = await intercepted.message(response, received, pieces)
            if received.is_over:
                await proxied.prepare(self._request)
                await self._forward_oversized(response, proxied, received, pieces)
                return
            if not is_unchanged:
                proxied.headers.popall(hdrs.CONTENT_ENCODING, None)
                proxied.content_length = len(body)
            await proxied.prepare(self._request)
            await proxied.write(body)
            return
        if kind == EVENTS:
            proxied.headers.popall(hdrs.CONTENT_ENCODING, None)  # Events are sent one by one, uncompressed.
        await proxied.prepare(self._request)
        if kind == EVENTS:
            await self._forward_events(response, proxied)
            return
        async for chunk in response.content.iter_any():
            await proxied.write(chunk)

    async def _forward_oversized(
        self, response: aiohttp.ClientResponse, proxied: ProxiedResponse, body: CappedBody, pieces: Pieces
    ) -> None:
        """Forward a body above the limit, which begins with `pieces`. Its last chunk waits for the note."""
        torn = True
        try:
            held = pieces.pop()
            pieces.reverse()
            while pieces:
                await proxied.write(pieces.pop())
            async for chunk in response.content.iter_any():
                await proxied.write(held)
                held = chunk
                await in_turns(body.feed(chunk))
            torn = False
        finally:
            await self._context.record(body.close(self._now(), torn=torn), 0)
        await proxied.write(held)

    async def _respond(self) -> web.StreamResponse:
        """Respond in place of the server. The messages are already recorded."""
        assert self._intercepted is not None
        status, body = self._intercepted.answer()
        if not self._has_head:
            await self._record_head(status, {}, by=MCPSPY)
        await self._end(None)
        return web.Response(status=status, body=body, content_type=JSON if body else None)

    async def _disconnect(self, response: web.StreamResponse) -> web.StreamResponse:
        """Close the connection without a response."""
        await self._end(MCPSPY)
        if self._request.transport is not None:
            self._request.transport.abort()
        return response

    def _end_session(self, response: aiohttp.ClientResponse) -> None:
        """Forget a session that the server has ended."""
        request = self._request
        session = request.headers.get(SESSION)
        is_deleted = request.method == hdrs.METH_DELETE and response.ok
        if session is not None and self._head.is_mcp and (is_deleted or response.status == 404):
            self._context.streams.end(session)

    async def _forward_metadata(
        self, response: aiohttp.ClientResponse, proxied: ProxiedResponse
    ) -> ProxiedResponse:
        """Forward a document about the server with the proxy's addresses in it."""
        body = b""
        async for chunk in response.content.iter_any():
            body += chunk
            if len(body) > METADATA_LIMIT:
                break
        else:
            body, self._facts = self._context.oauth.rewritten(
                self._head.target, body, self._head.public_origin
            )
            proxied.content_length = len(body)
        await proxied.prepare(self._request)
        await proxied.write(body)
        async for chunk in response.content.iter_any():
            await proxied.write(chunk)
        await self._end(None)
        await proxied.write_eof()
        return proxied

    async def _forward_message(self, response: aiohttp.ClientResponse, proxied: ProxiedResponse) -> None:
        """Forward a message. Only its last chunk waits for the recording."""
        body = self._response_body(response)
        held = b""
        torn = True
        try:
            async for chunk in response.content.iter_any():
                if held:
                    await proxied.write(held)
                await in_turns(body.feed(chunk))
                held = chunk
            torn = False
        finally:
            listed = body.data() if self._head.lists_tools and not torn else b""
            await self._context.record(body.close(self._now(), torn=torn), body.size)
        if listed:
            self._interception.learn_tools(listed)
        if held:
            await proxied.write(held)

    def _response_body(self, response: aiohttp.ClientResponse) -> CappedBody:
        encoding = response.headers.get(hdrs.CONTENT_ENCODING)
        return CappedBody(SERVER, self._head.fields, encoding, self._context.max_body)

    async def _forward_events(self, response: aiohttp.ClientResponse, proxied: ProxiedResponse) -> None:
        """Forward each chunk as it arrives, after its events are recorded."""
        # HTTP+SSE (2024-11-05) names the address for messages in the first event of its GET.
        may_name_endpoint = self._request.method == hdrs.METH_GET and SESSION not in self._request.headers
        routes = self._interception.routes
        try:
            if self._intercepted is None:
                may_name_endpoint = await self._forward_chunks(
                    response, proxied, may_name_endpoint=may_name_endpoint
                )
            else:
                routes.open_stream(self._intercepted)
            if self._intercepted is not None:
                await self._intercepted.events(
                    response,
                    proxied,
                    BodyDecoder(response.headers.get(hdrs.CONTENT_ENCODING)),
                    may_name_endpoint=may_name_endpoint,
                )
        finally:
            routes.remove_uninspected(self)
            if self._head.address is not None:
                self._context.streams.end_address(self._head.address)

    async def _forward_chunks(
        self, response: aiohttp.ClientResponse, proxied: ProxiedResponse, *, may_name_endpoint: bool
    ) -> bool:
        """Forward chunks until the end, or until each event needs a decision.

        Return whether the event that names the address may still arrive.
        """
        fields, limit = self._head.fields, self._context.max_body
        encoder = SseEncoder(SERVER, fields, limit)
        stream = CappedStream(SERVER, fields, response.headers.get(hdrs.CONTENT_ENCODING), limit)
        held = b""
        if hdrs.CONTENT_ENCODING not in response.headers:  # Compressed streams cannot be changed in part.
            self._interception.routes.add_uninspected(self)
        chunks = response.content.iter_any()
        try:
            while True:
                is_between = not held and not encoder.is_inside_event
                if is_between and self._intercepted is not None:
                    break
                self._waiting_task = asyncio.current_task() if is_between else None
                chunk = await anext(chunks, None)
                self._waiting_task = None
                if chunk is None:
                    await proxied.write(held)
                    break
                first = await self._record_events(stream.steps(chunk), encoder)
                held += chunk
                if (
                    may_name_endpoint
                    and first is None
                    and encoder.is_inside_event
                    and len(held) < ENDPOINT_LIMIT
                ):
                    continue
                if may_name_endpoint and (first is not None or len(held) >= ENDPOINT_LIMIT):
                    may_name_endpoint = False
                    if first is not None and first.event == "endpoint":
                        held = self._head.redirect(held, b"".join(first.data or ()))
                await proxied.write(held)
                held = b""
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if self._waiting_task is None or self._intercepted is None or task is None or task.uncancel() > 0:
                raise
        finally:
            self._waiting_task = None
            rest = stream.close(self._now()) if stream.is_over else encoder.close(self._now())
            await self._context.record(rest, 0)
        return may_name_endpoint

    async def _record_events(self, steps: Iterator[bytes], encoder: SseEncoder) -> SseEvent | None:
        """Record the events that end in a chunk. Return the first one."""
        first: SseEvent | None = None
        for number, data in enumerate(steps):
            if number:
                await asyncio.sleep(0)
            events, lines = encoder.feed(self._now(), data)
            if lines:
                await self._context.record(lines, sum(map(len, lines)))
            for event in events:
                first = first or event
                if self._head.lists_tools:
                    self._interception.learn_tools(b"".join(event.data or ()))
        return first

    def inspect(self) -> None:
        """Decide on all events of this stream from the next one on; immediately if the next one is being awaited."""
        self._interception.routes.open_stream(self._intercept())
        if self._waiting_task is not None:
            self._waiting_task.cancel()

    async def _respond_unreachable(self, error: Exception) -> web.StreamResponse:
        """Respond with a JSON-RPC error because the server cannot be reached."""
        upstream = self._context.upstream
        line = f"mcpspy: cannot reach {redacted_url(upstream.origin + upstream.path)}: {reason(error)}"
        await self._record_head(502, {}, error=line)
        await self._end(None)
        messages = read_frame(Frame(0.0, CLIENT, self._request_body)) if self._request_body else []
        request_id = messages[0].id if len(messages) == 1 and isinstance(messages[0], Request) else None
        return json_error(502, request_id, line)

    def _now(self) -> float:
        return self._context.recorder.now()

    async def _record_head(self, status: int | None, response_headers: dict[str, str], **more: Value) -> None:
        request = self._request
        fields: dict[str, Value] = {
            **self._head.fields,
            "method": request.method,
            "path": self._head.target
            if self._head.is_mcp
            else self._context.oauth.recorded(self._head.target),
            "status": status,
            "asked_at": round(self._started_at, 6),
            "request": recorded_headers(request.headers.items()),
            "response": response_headers,
            **more,
        }
        await self._context.note("http", fields)
        self._has_head = True
        self._status = status

    async def _end(self, hung_up: str | None) -> None:
        if self._is_over:
            return
        if not self._has_head:
            await self._record_head(None, {})
        await self._record_oversized(torn=True)
        await self._record_oauth_step()
        await self._context.note("http-end", {**self._head.fields, "hung_up": hung_up})
        self._is_over = True

    async def _record_oauth_step(self) -> None:
        head, oauth = self._head, self._context.oauth
        request = OAuthRequest(head.target, self._request.headers, self._form, is_mcp=head.is_mcp)
        fields = None if self._status is None else oauth.step_fields(request, self._status, self._facts)
        if fields is not None:
            await self._context.note("oauth", {**head.fields, **fields})
        if oauth.hint is not None:
            say(oauth.hint)
            oauth.hint = None


def json_error(status: int, request_id: str | None, line: str) -> web.Response:
    """Return a JSON-RPC error from mcpspy. `request_id` is JSON text."""
    body = {
        "jsonrpc": "2.0",
        "id": orjson.Fragment(request_id) if request_id is not None else None,
        "error": {"code": -32000, "message": line},
    }
    return web.Response(status=status, body=orjson.dumps(body), content_type=JSON)


async def _iterate(pieces: Pieces) -> AsyncIterator[bytes]:
    for piece in pieces:
        yield bytes(piece)
