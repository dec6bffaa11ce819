"""One HTTP exchange whose messages are intercepted: its request, its response, each event of a stream.

Keeps HTTP valid after every decision: lengths and headers match the forwarded body, a held event does not block
others, and a response is sent where the client waits for it. Steps are executed in the order of their delivery.
Decisions are made elsewhere, and `io.http.intercepted_response` reads the response.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from functools import cached_property
from typing import TYPE_CHECKING, Any, NoReturn, Protocol, TypeVar

from mcpspy.core.intercept import actions
from mcpspy.core.intercept.http import format_event, headers_for_changed_body
from mcpspy.core.protocol.message import Request, read_frame
from mcpspy.core.recording.decode import Frame
from mcpspy.core.recording.encode import CLIENT, SERVER
from mcpspy.io.http.inline_task import Wakeup
from mcpspy.io.http.intercepted_response import InterceptedResponse, PartialEvent, RawBytes, StreamEnd
from mcpspy.io.http.upstream_connection import UpstreamError
from mcpspy.io.intercept.interception import is_message

if TYPE_CHECKING:
    from mcpspy.core.framing import Pieces, SseEvent
    from mcpspy.core.recording.capped_body import CappedBody, CappedStream
    from mcpspy.core.recording.encode import JsonText, Value
    from mcpspy.io.http.context import ExchangeContext, ExchangeHead
    from mcpspy.io.http.interception import HttpInterception
    from mcpspy.io.http.server import HttpRequest
    from mcpspy.io.http.upstream_connection import UpstreamResponse

T = TypeVar("T")


class ClientAnswered(Exception):  # noqa: N818 - an outcome, not an error.
    """The client gets its response from mcpspy, or needs none."""


class ClientDisconnected(Exception):  # noqa: N818
    """The connection to the client must be closed."""


class ExchangeInfo(Protocol):
    """The facts about an exchange by which its messages are recorded and routed."""

    @property
    def fields(self) -> dict[str, Value]:
        """The fields of its entries."""

    @property
    def stream(self) -> str:
        """The session to which it belongs."""

    @property
    def lists_tools(self) -> bool:
        """Return whether its response is a list of tools (2026-07-28)."""

    @property
    def is_get(self) -> bool:
        """Return whether the client has sent no message."""

    @property
    def is_address(self) -> bool:
        """Return whether the response arrives on another stream (2024-11-05)."""


class FastPath(Protocol):
    """An exchange that forwards an unchanged message without a coroutine (`io.http.short_exchange`)."""

    def forward(self) -> bool:
        """Forward the message that was decided on. Return False, before anything, if that needs a coroutine."""

    def interrupt(self) -> None:
        """Continue with a coroutine."""


class InterceptedExchange:
    """One exchange with an interceptor between client and server."""

    head: ExchangeHead
    """Set before the coroutine starts."""

    def __init__(
        self,
        context: ExchangeContext,
        interception: HttpInterception,
        info: ExchangeInfo,
        body: bytes = b"",
        short: FastPath | None = None,
    ) -> None:
        """Prepare the exchange. `body` is the client's message, if there is one."""
        self._context = context
        self._interception = interception
        self._info = info
        self._body = body
        self.short = short
        """The exchange that forwards unchanged messages, until anything else is to be done."""
        self._is_taken = False
        """True while a message waits for its decision that `take_at_once` has passed on."""
        self._wakeup: Wakeup | None = None
        """Set with the next step, while this exchange waits for one."""
        self._deferred: list[actions.Step] = []
        """Steps that arrived inside an event above the limit, which nothing may interrupt."""
        self._is_in_event = False
        self._held: dict[int, tuple[bytes, SseEvent | None]] = {}
        """Bytes and event of each message that is not forwarded yet, by ticket."""
        self._answers: list[bytes] = []
        self._is_open = True
        self.is_draining = False
        """True if the server's response is still read after the client got another one."""
        self.is_get = info.is_get
        self.stream = info.stream
        interception.add_exchange(self)

    @cached_property
    def _steps(self) -> asyncio.Queue[actions.Step | RawBytes | StreamEnd]:
        """The steps that are not executed yet."""
        return asyncio.Queue()

    @property
    def _response(self) -> InterceptedResponse:
        """A new one for each use: if it were kept, both would refer to each other, and wait for the cycle collector."""
        return InterceptedResponse(self._context, self._interception, self)

    @cached_property
    def _unanswered(self) -> int:
        """The number of requests in the client's message."""
        messages = read_frame(Frame(0.0, CLIENT, self._body)) if self._body else []
        return sum(isinstance(message, Request) for message in messages)

    @property
    def fields(self) -> dict[str, Value]:
        """The fields of this exchange's entries in the recording."""
        return self._info.fields

    @property
    def lists_tools(self) -> bool:
        return self._info.lists_tools

    @property
    def is_answered_here(self) -> bool:
        """Return whether the client waits here for its response; in HTTP+SSE (2024-11-05) it waits on another stream."""
        return self._is_open and not self.is_get and not self._info.is_address

    def deliver(self, step: actions.Step) -> None:
        """Execute a step without a coroutine, or queue it. Ignored if the client has disconnected."""
        short = self.short
        if short is not None:
            if isinstance(step, actions.Forward):
                if step.ticket not in self._held:  # It was released.
                    return
                self._held.clear()
                self._is_taken = False
                if short.forward():
                    return
                self._is_taken = True
            self.short = None
            self._interception.wake_later(short.interrupt)
        self.enqueue(step)

    def release_all(self) -> None:
        """Forward all held messages unchanged."""
        for ticket, (raw, _) in sorted(self._held.items()):
            self.deliver(actions.Forward("", raw, self, ticket))

    def close(self) -> None:
        """Handle the end of the client's connection."""
        if self._is_open:
            self._is_open = False
            self._interception.routes.close_stream(self)
            self._interception.remove_exchange(self)

    def finish(self) -> None:
        """Handle the end of the exchange after its messages were forwarded unchanged."""
        self._is_open, self.short = False, None
        self._interception.remove_delivered(self)

    async def request(self) -> bytes:
        """Return the body to send to the server. Raises ClientAnswered or ClientDisconnected."""
        return await self._decided(CLIENT, self._body)

    def take_at_once(self, side: str, data: bytes, fields: JsonText, before: bytes = b"") -> None:
        """Let the interceptor decide on a whole message, as `HttpInterception.take_at_once` does."""
        self._is_taken = True
        held = data, None
        self._interception.take_at_once(
            self,
            side,
            data,
            fields,
            on_ticket=lambda ticket: self._held.__setitem__(ticket, held),
            before=before,
        )

    async def _decided(self, side: str, data: bytes) -> bytes:
        """Return the body to forward in place of a message. Raises ClientAnswered or ClientDisconnected."""
        if not self._is_taken:
            await self.take(side, data, data, None, self.fields)
        self._is_taken = False
        return await self._decided_body(data)

    async def _send(self, sent: bytes) -> UpstreamResponse:
        head, context, interception = self.head, self._context, self._interception
        if sent is self._body and not interception.changes_heads(CLIENT):
            return await context.send("POST", head.forwarded(sent), sent)
        headers = head.headers
        if sent is not self._body:
            headers = headers_for_changed_body(headers, self._body, sent, interception.tools)
        headers = await interception.decided_headers(self.fields, headers, ("POST", head.target))
        return await context.send_request("POST", head.target, headers, sent)

    async def send_request(self, sent: bytes) -> UpstreamResponse:
        """Return the server's response, unless one is injected first. Raises ClientAnswered or ClientDisconnected."""
        if not self._interception.has_watchdog:  # Only the watchdog answers a forwarded request.
            return await self._send(sent)
        sending = asyncio.ensure_future(self._send(sent))
        try:
            return await self._or_injected(sending)
        except ClientAnswered:
            self._drain(self._response.drain(sending))
            raise
        finally:
            if not self.is_draining:
                sending.cancel()

    async def message(
        self, response: UpstreamResponse, body: CappedBody, pieces: Pieces
    ) -> tuple[bytes, bool]:
        """Return the body for the client, and whether it is unchanged. `pieces` takes the body as it was sent.

        A body above the limit is not read to its end, and not decided on: then `body.is_over` is true, and all
        messages of this exchange that follow must be forwarded.
        Raises ClientAnswered, ClientDisconnected, or the error that ended the server's body.
        """
        try:
            if self._interception.has_watchdog:
                await self._read_or_injected(response, body, pieces)
            else:
                await self._response.read_body(response, body, pieces)
        except (UpstreamError, asyncio.CancelledError):
            await self._response.record_body(body, lacks=response.lacks)
            raise
        if body.is_over:
            self.close()
            return b"", True
        received = b"".join(pieces)
        data = body.data()
        if not is_message(data):
            await self._response.record_body(body)
            return received, True
        decided = await self._decided(SERVER, data)
        return (received, True) if decided is data else (decided, False)

    async def _read_or_injected(self, response: UpstreamResponse, body: CappedBody, pieces: Pieces) -> None:
        reading = asyncio.ensure_future(self._response.read_body(response, body, pieces))
        try:
            await self._or_injected(reading)
        except ClientAnswered:
            self._drain(self._response.drain_body(reading, body, response))
            raise
        finally:
            if not self.is_draining:
                reading.cancel()

    async def events(
        self,
        response: UpstreamResponse,
        proxied: HttpRequest,
        decoded: CappedStream,
        *,
        may_name_endpoint: bool,
    ) -> None:
        """Forward events in order. Raises ClientAnswered, ClientDisconnected, or the error that ended the stream."""
        events = self._response.read_events(response, decoded, may_name_endpoint=may_name_endpoint)
        reading = asyncio.ensure_future(events)
        end: StreamEnd | None = None
        try:
            while end is None or self._held or self._deferred:
                step = await self._write_next(proxied)
                if isinstance(step, StreamEnd):
                    end = step
                if isinstance(step, actions.Inject) and step.exchange is self and self._is_answered():
                    raise ClientAnswered
            if end.error is not None:
                raise end.error
        except ClientAnswered:
            self._drain(self._response.drain_events(reading, response))
            raise
        finally:
            if not self.is_draining:
                reading.cancel()
                await asyncio.gather(reading, return_exceptions=True)

    async def _write_next(self, proxied: HttpRequest) -> actions.Step | RawBytes | StreamEnd | None:
        """Execute and return the next step. Return None for one that must not interrupt an event."""
        if self._deferred and not self._is_in_event:
            deferred = self._deferred.pop(0)
            await proxied.write(self._stream_bytes(deferred))
            return deferred
        step = await self._get()
        try:
            if isinstance(step, StreamEnd):
                self._is_in_event = False
            elif self._is_in_event and not isinstance(step, RawBytes | actions.Disconnect):
                self._deferred.append(step)
                return None
            else:
                await proxied.write(self._stream_bytes(step))
                if isinstance(step, RawBytes):
                    self._is_in_event = isinstance(step, PartialEvent)
        finally:
            self._steps.task_done()
        return step

    def answer(self) -> tuple[int, bytes]:
        """Return the status and the body of a response from mcpspy."""
        if not self._answers:
            return 202, b""
        first, *more = self._answers
        return 200, b"[" + b",".join(self._answers) + b"]" if more else first

    async def take(
        self, side: str, raw: bytes, data: bytes, event: SseEvent | None, fields: dict[str, Value]
    ) -> None:
        """Let the interceptor decide on a message, which arrived as `raw`."""

        def keep(ticket: int) -> None:
            if self._is_open:
                self._held[ticket] = (raw, event)

        await self._interception.take(self, side, data, fields, keep)

    async def _decided_body(self, data: bytes) -> bytes:
        """Return the body after the decision on its message. Raises ClientAnswered or ClientDisconnected."""
        while True:
            step = await self._next()
            if isinstance(step, actions.Forward):
                self._held.clear()
                return data
            if isinstance(step, actions.Substitute):
                self._held.clear()
                return step.data
            if isinstance(step, actions.Dropped):
                self._held.clear()
                if step.side == CLIENT and (not self._unanswered or self._info.is_address):
                    raise ClientAnswered
                await self._forever()  # A dropped message has no response: wait until a side hangs up.
            self._apply(step)

    async def _forever(self) -> NoReturn:
        while True:
            self._apply(await self._next())

    async def _next(self) -> actions.Step | RawBytes | StreamEnd:
        step = await self._get()
        self._steps.task_done()
        return step

    async def _get(self) -> actions.Step | RawBytes | StreamEnd:
        while self._steps.empty():
            self._wakeup = Wakeup()
            await self._wakeup
        return self._steps.get_nowait()

    def enqueue(self, step: actions.Step | RawBytes | StreamEnd) -> None:
        if self._is_open:
            self._steps.put_nowait(step)
            if self._wakeup is not None:
                self._interception.wake_later(self._wakeup.set)
                self._wakeup = None

    async def wait_until_forwarded(self) -> None:
        """Wait until the client got all that was read, if it still waits for it."""
        if self._is_open:
            await self._steps.join()

    async def _or_injected(self, work: asyncio.Future[T]) -> T:
        """Await `work`, unless a response is injected first. Raises ClientAnswered or ClientDisconnected."""
        while not work.done():
            injected = asyncio.ensure_future(self._next())
            try:
                await asyncio.wait((work, injected), return_when=asyncio.FIRST_COMPLETED)
            finally:
                injected.cancel()
            if injected.done() and not injected.cancelled():
                self._apply(injected.result())
        return work.result()

    def _apply(self, step: object) -> None:
        """Execute the steps that have the same effect in every state. Raises ClientAnswered or ClientDisconnected."""
        if isinstance(step, actions.Disconnect):
            raise ClientDisconnected
        if isinstance(step, actions.Inject):
            self._answers.append(step.data)
            if len(self._answers) >= self._unanswered:
                raise ClientAnswered

    def _stream_bytes(self, step: object) -> bytes:
        """Return the bytes that a step sends on the stream. Raises ClientDisconnected."""
        if isinstance(step, RawBytes):
            return step
        if isinstance(step, actions.Inject):
            self._answers.append(step.data)
            return format_event(step.data)
        if isinstance(step, actions.Disconnect):
            raise ClientDisconnected
        # After `release_all`, an earlier decision on the same message may still arrive.
        if (
            isinstance(step, actions.Forward | actions.Substitute | actions.Dropped)
            and (on_ticket := self._held.pop(step.ticket, None)) is not None
        ):
            raw, event = on_ticket
            if isinstance(step, actions.Forward):
                return raw
            if isinstance(step, actions.Substitute):
                return format_event(step.data, event)
        return b""

    def _is_answered(self) -> bool:
        return bool(self._unanswered) and len(self._answers) >= self._unanswered

    def _drain(self, draining: Coroutine[Any, Any, None]) -> None:
        """Read the rest of the server's response: before 2026-07-28, closing a request does not cancel it."""
        is_aborted = False
        while not self._steps.empty():
            is_aborted |= isinstance(self._steps.get_nowait(), actions.AbortUpstream)
            self._steps.task_done()
        self.close()
        if is_aborted:
            draining.close()
            return
        self.is_draining = True
        self._interception.spawn(draining)
