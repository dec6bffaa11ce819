"""An injected request to a server over HTTP: its POST and the response.

The client never receives the response, which belongs to the viewer. Other messages of the response's stream are
forwarded to a stream on which the client listens, if there is one.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, assert_never

from mcpspy.core.intercept import actions
from mcpspy.core.intercept.http import SseUnit, SseUnits, headers_for_injected
from mcpspy.core.protocol import mcp_headers
from mcpspy.core.protocol.http_headers import EVENTS, JSON, recorded_headers, request_headers
from mcpspy.core.protocol.mcp_headers import LIST
from mcpspy.core.protocol.refusal import RefusalBody, is_refusal
from mcpspy.core.recording.capped_body import CappedBody, CappedStream
from mcpspy.core.recording.encode import MCPSPY, SERVER
from mcpspy.core.recording.encode_body import REST, SseEncoder
from mcpspy.io.http.upstream_connection import UpstreamError
from mcpspy.io.intercept.interception import is_message
from mcpspy.io.network.outgoing import Turns, in_turns

if TYPE_CHECKING:
    from mcpspy.core.recording.encode import Value
    from mcpspy.io.http.context import ExchangeContext
    from mcpspy.io.http.interception import HttpInterception
    from mcpspy.io.http.routes import Route
    from mcpspy.io.http.upstream_connection import UpstreamResponse


class InjectedRequest:
    is_answered_here = False

    def __init__(self, context: ExchangeContext, interception: HttpInterception, route: Route) -> None:
        self._context = context
        self._interception = interception
        self._route = route
        self._number = context.next_number()
        self.stream = route.stream if route.is_session else str(self._number)
        self._started_at = interception.now()
        self._request_id: str | None = None
        self._is_stream = False
        self._is_over = False
        self._refusal: RefusalBody | None = None
        """The body of the response, if it is not a message."""
        self._held: dict[int, bytes] = {}
        """Messages that arrived with the response and are not forwarded yet, by ticket."""
        self.lists_tools = False

    @property
    def fields(self) -> dict[str, Value]:
        """The fields of this exchange's entries in the recording."""
        return {"stream": self.stream, "http": self._number}

    def deliver(self, step: actions.ExchangeStep) -> None:
        """Send the injected message, or forward a message that arrived with the response."""
        match step:
            case actions.Inject():
                self._request_id = step.id
                self._interception.spawn(self._run(step.data))
                return
            case actions.Forward() | actions.Substitute():
                if self._held.pop(step.ticket, None) is not None and self._is_stream:
                    client = self._interception.routes.to_client(self._route.stream)
                    if client is not None:
                        client.deliver(actions.Inject(SERVER, step.data, None, self._route.stream))
            case actions.Dropped():
                self._held.pop(step.ticket, None)
            case actions.Disconnect():  # No client is connected here, and no message that waits is forwarded.
                self._held.clear()
            case actions.AbortUpstream() | actions.HeadDecided():  # The viewer still waits for the response.
                pass
            case _:
                assert_never(step)
        self._leave()

    def release_all(self) -> None:
        """Forward all held messages unchanged."""
        for ticket, data in sorted(self._held.items()):
            self.deliver(actions.Forward(SERVER, data, self, ticket))

    def _leave(self) -> None:
        """Remove the exchange once the response has ended and none of its messages is held."""
        if self._is_over and not self._held:
            self._interception.remove_exchange(self)

    async def _run(self, data: bytes) -> None:
        self._interception.add_exchange(self)
        context, route = self._context, self._route
        forwarded = request_headers(route.headers.items(), context.upstream, route.public_origin)
        headers = headers_for_injected(forwarded, data, self._interception.tools)
        self.lists_tools = (mcp_headers.METHOD, LIST) in headers
        hung_up: str | None = None
        try:
            try:
                line = "POST", route.target
                headers = await self._interception.decided_headers(self.fields, headers, line)
                response = await context.send_request("POST", route.target, headers, data)
            except UpstreamError as error:
                await self._record_head(headers, None, {}, error=str(error))
                self._report_failure(f"the server cannot be reached: {error}")
                return
            try:
                is_odd = is_refusal("POST", response.status, response.content_type)
                recorded = recorded_headers(response.headers, is_refusal=is_odd)
                await self._record_head(headers, response.status, recorded)
                if is_odd and response.content_type not in (JSON, EVENTS):
                    self._refusal = RefusalBody(response.header("content-encoding"))
                await self._receive(response)
                if response.status != 202:  # A no-op if the request was answered.
                    self._report_failure(f"no response, only HTTP {response.status}")
            except UpstreamError as error:
                hung_up = SERVER
                self._report_failure(f"the response broke off: {error}")
            finally:
                response.close()
        except asyncio.CancelledError:
            hung_up = MCPSPY
            raise
        finally:
            self._is_over = True
            self._leave()
            words = {} if self._refusal is None else self._refusal.fields()
            await context.note("http-end", {**self.fields, "hung_up": hung_up, "by": MCPSPY, **words})

    async def _receive(self, response: UpstreamResponse) -> None:
        self._is_stream = response.content_type == EVENTS
        encoding, limit = response.header("content-encoding"), self._context.max_body
        if self._is_stream:
            events, decoded = SseUnits(limit), CappedStream(SERVER, self.fields, encoding, limit)
            async for chunk in response.body.chunks():
                async for data in Turns(decoded.steps(chunk)):
                    for unit in events.feed(data):
                        await self._take_unit(unit)
                if decoded.is_over:
                    await self._interception.record_lines(decoded.close(self._interception.now()))
                    self._report_failure("the events of the response are compressed as those of an attack")
                    return
            return
        body = CappedBody(SERVER, self.fields, encoding, limit)
        async for chunk in response.body.chunks():
            await in_turns(body.feed(chunk))
            if self._refusal is not None:
                self._refusal.feed(chunk)
            if body.is_over:
                now = self._interception.now()
                await self._interception.record_lines(body.close(now, lacks=REST))
                self._report_failure("the response is larger than --max-body")
                return
        if is_message(message := body.data()):
            await self._take(message, self.fields)

    async def _take_unit(self, unit: SseUnit) -> None:
        event = unit.event
        if event is None:
            return
        if (message := unit.message) is not None and is_message(message):
            await self._take(message, self.fields | ({} if event.id is None else {"id": event.id}))
        elif event.oversized is not None:
            lines = SseEncoder(SERVER, self.fields).line(self._interception.now(), event)
            await self._interception.record_lines(lines)

    async def _take(self, data: bytes, fields: dict[str, Value]) -> None:
        def keep(ticket: int) -> None:
            self._held[ticket] = data

        await self._interception.take(self, SERVER, data, fields, keep)

    def _report_failure(self, why: str) -> None:
        if self._request_id is not None:
            self._interception.failed(self._request_id, why)

    async def _record_head(
        self,
        headers: list[tuple[str, str]],
        status: int | None,
        response_headers: dict[str, str],
        **more: Value,
    ) -> None:
        fields: dict[str, Value] = {
            **self.fields,
            "method": "POST",
            "path": self._route.target,
            "status": status,
            "asked_at": round(self._started_at, 6),
            "request": recorded_headers(headers),
            "response": response_headers,
            "by": MCPSPY,
            **more,
        }
        await self._context.note("http", fields)
