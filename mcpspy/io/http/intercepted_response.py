"""The server's response in an intercepted exchange, as it is read.

Its messages go to the interceptor, all other bytes to the exchange that forwards them. It is read to its end even if
the client got another response from mcpspy: before 2026-07-28, closing a request does not cancel it.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Protocol

from mcpspy.core.framing import collect
from mcpspy.core.intercept.http import SseUnit, SseUnits
from mcpspy.core.protocol.http_headers import EVENTS
from mcpspy.core.recording.capped_body import CappedBody, CappedStream
from mcpspy.core.recording.encode import SERVER
from mcpspy.core.recording.encode_body import REST, SseEncoder
from mcpspy.io.http.upstream_connection import UpstreamError
from mcpspy.io.intercept.interception import is_message
from mcpspy.io.network.outgoing import Turns, in_turns

if TYPE_CHECKING:
    from mcpspy.core.framing import Pieces, SseEvent
    from mcpspy.core.recording.encode import Value
    from mcpspy.io.http.context import ExchangeContext, ExchangeHead
    from mcpspy.io.http.interception import HttpInterception
    from mcpspy.io.http.upstream_connection import UpstreamResponse


class RawBytes(bytes):
    """Bytes of a stream that are not a message and are forwarded in order."""


class PartialEvent(RawBytes):
    """The beginning of an event, which continues with the next bytes."""


class StreamEnd:
    """The end of the server's stream."""

    def __init__(self, error: Exception | None) -> None:
        self.error = error


class ReceivingExchange(Protocol):
    """The exchange that forwards what is read."""

    head: ExchangeHead

    @property
    def fields(self) -> dict[str, Value]:
        """The fields of its entries in the recording."""

    async def take(
        self, side: str, raw: bytes, data: bytes, event: SseEvent | None, fields: dict[str, Value]
    ) -> None:
        """Let the interceptor decide on a message, which arrived as `raw`."""

    def enqueue(self, step: RawBytes | StreamEnd) -> None:
        """Forward this after all that was read before."""

    async def wait_until_forwarded(self) -> None:
        """Wait until the client got all that was read, if it still waits for it."""


class InterceptedResponse:
    """Reads the response of one exchange."""

    def __init__(
        self, context: ExchangeContext, interception: HttpInterception, exchange: ReceivingExchange
    ) -> None:
        self._context = context
        self._interception = interception
        self._exchange = exchange

    async def read_body(self, response: UpstreamResponse, body: CappedBody, pieces: Pieces) -> None:
        """Read a body, up to the limit. `pieces` takes it as it was sent."""
        async for piece in response.body.chunks():
            collect(pieces, piece)
            await in_turns(body.feed(piece))
            if body.is_over:
                return

    async def record_body(self, body: CappedBody, *, lacks: str = "") -> None:
        """Record a body that is not a message, or is one without its end."""
        await self._interception.record_lines(body.close(self._interception.now(), lacks=lacks))

    async def read_events(
        self, response: UpstreamResponse, decoded: CappedStream, *, may_name_endpoint: bool
    ) -> Exception | None:
        """Read events no faster than they are forwarded. Return the error that ended the stream.

        A compressed stream ends where it is no longer decoded: no message is forwarded without a decision.
        """
        events = SseUnits(self._context.max_body)
        error: Exception | None = None
        try:
            async for chunk in response.body.chunks():
                async for data in Turns(decoded.steps(chunk)):
                    for unit in events.feed(data):
                        may_name_endpoint = await self._take_unit(unit, may_name_endpoint=may_name_endpoint)
                    await self._exchange.wait_until_forwarded()
                if decoded.is_over:
                    raise UpstreamError("its compressed events are those of an attack")
        except Exception as broken:  # Raised by the exchange that forwards the stream, or by `drain_events`.
            error = broken
        finally:
            torn = None if decoded.is_over else events.close()
            if torn is not None and torn.event is not None:
                await self._record_event(torn.event)
            await self._interception.record_lines(decoded.close(self._interception.now()))
        if torn is not None:
            self._exchange.enqueue(RawBytes(torn.raw))
        self._exchange.enqueue(StreamEnd(error))
        return error

    async def _take_unit(self, unit: SseUnit, *, may_name_endpoint: bool) -> bool:
        """Handle one unit. Return whether the event that names an address (2024-11-05) may still arrive."""
        message, event, raw = unit.message, unit.event, unit.raw
        if message is not None and is_message(message):
            assert event is not None
            named = {"event": event.event, "id": event.id, "retry": event.retry}
            fields = self._exchange.fields | {key: value for key, value in named.items() if value is not None}
            await self._exchange.take(SERVER, raw, message, event, fields)
            return False
        if event is not None:
            await self._record_event(event)
            if may_name_endpoint and event.event == "endpoint":
                raw = self._exchange.head.redirect(raw, b"".join(event.data or ()))
        self._exchange.enqueue(PartialEvent(raw) if unit.is_part else RawBytes(raw))
        return may_name_endpoint and event is None

    async def _record_event(self, event: SseEvent) -> None:
        lines = SseEncoder(SERVER, self._exchange.fields).line(self._interception.now(), event)
        await self._interception.record_lines(lines)

    async def drain(self, sending: asyncio.Future[UpstreamResponse]) -> None:
        """Read a response that has not begun."""
        try:
            response = await sending
        except UpstreamError:
            return
        encoding = response.header("content-encoding")
        if response.content_type == EVENTS:
            decoded = CappedStream(SERVER, self._exchange.fields, encoding, self._context.max_body)
            events = self.read_events(response, decoded, may_name_endpoint=False)
            await self.drain_events(asyncio.ensure_future(events), response)
        else:
            body = CappedBody(SERVER, self._exchange.fields, encoding, self._context.max_body)
            reading = asyncio.ensure_future(self.read_body(response, body, []))
            await self.drain_body(reading, body, response)

    async def drain_body(
        self, reading: asyncio.Future[None], body: CappedBody, response: UpstreamResponse
    ) -> None:
        """Read the rest of a body."""
        try:
            await reading
            if body.is_over:
                await self.record_body(body, lacks=REST)
            elif is_message(data := body.data()):
                await self._exchange.take(SERVER, data, data, None, self._exchange.fields)
        except UpstreamError:  # The server hung up, and nothing waits for it.
            pass
        finally:
            response.close()

    async def drain_events(
        self, reading: asyncio.Future[Exception | None], response: UpstreamResponse
    ) -> None:
        """Read the rest of a stream."""
        try:
            error = await reading
            if error is not None and not isinstance(error, UpstreamError):
                raise error
        finally:
            reading.cancel()
            response.close()
