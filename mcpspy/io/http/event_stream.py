"""The events of a response, forwarded as they arrive.

An event is recorded before its blank line is forwarded; nothing else is delayed, except the beginning of a stream that
may name an address. A chunk that is an event like the one before, as nearly all are, is forwarded without a coroutine,
inside the callback for which it arrived.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mcpspy.core.recording.capped_body import CappedStream
from mcpspy.core.recording.encode import SERVER
from mcpspy.core.recording.encode_body import SseEncoder
from mcpspy.io.http.context import ENCODING, JOIN_LIMIT, SESSION
from mcpspy.io.network.outgoing import Turns

if TYPE_CHECKING:
    from collections.abc import Callable

    from mcpspy.core.framing import SseEvent
    from mcpspy.io.http.context import ExchangeContext, ExchangeHead
    from mcpspy.io.http.intercepted_exchange import InterceptedExchange
    from mcpspy.io.http.interception import HttpInterception
    from mcpspy.io.http.upstream_connection import UpstreamResponse

ENDPOINT_LIMIT = 1 << 16
"""Maximum size, in bytes, of the beginning of a stream that is held because its first event may name an address."""


class EventStream:
    """The response of an exchange, which is a stream of events."""

    def __init__(
        self,
        context: ExchangeContext,
        interception: HttpInterception,
        head: ExchangeHead,
        response: UpstreamResponse,
        intercept: Callable[[], InterceptedExchange],
    ) -> None:
        """Prepare the stream. `intercept` begins the interception of its exchange."""
        self._context = context
        self._interception = interception
        self._head = head
        self._request = head.request
        self._response = response
        self._intercept = intercept
        self._intercepted: InterceptedExchange | None = None
        self._encoding = response.header(ENCODING)
        fields, limit = head.fields, context.max_body
        self._encoder = SseEncoder(SERVER, fields, limit)
        self._decoded = CappedStream(SERVER, fields, self._encoding, limit)
        self._may_name_endpoint = self._request.method == "GET" and SESSION not in self._request.headers
        """HTTP+SSE (2024-11-05) names the address for messages in the first event of its GET."""

    async def forward(self, intercepted: InterceptedExchange | None) -> None:
        """Forward the stream to its end. Raises the error that ended it, or what `InterceptedExchange.events` raises."""
        self._intercepted = intercepted
        routes = self._interception.routes
        try:
            if intercepted is None:
                await self._forward_chunks()
            else:
                routes.open_stream(intercepted)
            if self._intercepted is not None:
                await self._intercepted.events(
                    self._response,
                    self._request,
                    self._decoded,
                    may_name_endpoint=self._may_name_endpoint,
                )
        finally:
            routes.remove_uninspected(self)
            if self._head.address is not None:
                self._context.streams.end_address(self._head.address)

    def inspect(self) -> None:
        """Decide on all events of this stream from the next one on; immediately if the next one is being awaited."""
        self._intercepted = self._intercept()
        self._interception.routes.open_stream(self._intercepted)
        self._response.body.interrupt()

    async def _forward_chunks(self) -> None:
        """Forward chunks until the end, or until each event needs a decision."""
        body, encoder, decoded = self._response.body, self._encoder, self._decoded
        held = b""
        if self._encoding is None:  # Compressed streams cannot be changed in part.
            self._interception.routes.add_uninspected(self)
        try:
            while self._intercepted is None or held or encoder.is_inside_event:
                is_simple = not (decoded.is_decoding or self._may_name_endpoint or self._head.lists_tools)
                chunk = await body.next(self._forward_at_once if is_simple else None)
                if chunk is None:
                    await self._request.write(held)
                    break
                first = await self._record(chunk) if chunk else None
                held += chunk
                if self._may_name_endpoint:
                    if first is None and encoder.is_inside_event and len(held) < ENDPOINT_LIMIT:
                        continue
                    self._may_name_endpoint = first is None and len(held) < ENDPOINT_LIMIT
                    if first is not None and first.event == "endpoint":
                        held = self._head.redirect(held, b"".join(first.data or ()))
                await self._request.write(held)
                held = b""
        finally:
            at = self._context.recorder.now()
            await self._context.record(decoded.close(at) if decoded.is_over else encoder.close(at), 0)

    def _forward_at_once(self, chunk: bytes) -> bool:
        """Record and forward a chunk like the one before. Return False, before anything, for any other.

        Also if that could mean to wait: for the client to read, or for a write to the recording.
        """
        context, request = self._context, self._request
        if not request.is_writable or len(chunk) > JOIN_LIMIT:
            return False
        line = self._encoder.known_line(context.recorder.now(), chunk)
        if line is None or not context.record_at_once(line, len(line)):
            return False
        request.send(chunk)
        return True

    async def _record(self, chunk: bytes) -> SseEvent | None:
        """Record the events that end in a chunk. Return the first one."""
        first: SseEvent | None = None
        async for data in Turns(self._decoded.steps(chunk)):
            events, lines = self._encoder.feed(self._context.recorder.now(), data)
            if lines:
                await self._context.record(lines, sum(map(len, lines)))
            if events and first is None:
                first = events[0]
            for event in events if self._head.lists_tools else ():
                self._interception.learn_tools(b"".join(event.data or ()))
        return first
