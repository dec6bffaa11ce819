"""A request of ours to a server over HTTP: its POST, and what comes back.

Owns that nothing of it reaches the client that did not ask: the answer is for
whoever asked us, and the rest of what such a stream carries goes where the client
listens, if it does.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import aiohttp
from aiohttp import hdrs

from mcpspy.core.intercept.actions import Dropped, Forward, Inject, Step, Substitute
from mcpspy.core.intercept.http import SseUnits, of_ours
from mcpspy.core.protocol import mcp_headers
from mcpspy.core.protocol.http_headers import noted, towards_server
from mcpspy.core.protocol.mcp_headers import LIST
from mcpspy.core.recording.encode import MCPSPY, SERVER
from mcpspy.io.client.aiohttp_session import reason
from mcpspy.io.interception import is_message

if TYPE_CHECKING:
    from mcpspy.core.recording.encode import Value
    from mcpspy.io.http.context import ExchangeContext
    from mcpspy.io.http.interception import HttpInterception
    from mcpspy.io.http.routes import Route


class InjectedRequest:
    """One POST of ours."""

    is_answered_here = False

    def __init__(self, context: ExchangeContext, board: HttpInterception, way: Route) -> None:
        self._context = context
        self._board = board
        self._way = way
        self._number = context.next_number()
        self.stream = way.stream if way.is_session else str(self._number)
        self._begun = board.now()
        self._request_id: str | None = None
        self._is_stream = False
        self._is_over = False
        self._kept: dict[int, bytes] = {}
        """By ticket what has come with the answer, and has not gone on yet."""
        self.lists_tools = False

    @property
    def fields(self) -> dict[str, Value]:
        """What the entries of this exchange say of it."""
        return {"stream": self.stream, "http": self._number}

    def deliver(self, step: Step) -> None:
        """Say what is to be said; pass on what comes back and is not for us."""
        if isinstance(step, Inject):
            self._request_id = step.id
            self._board.spawn(self._run(step.data))
            return
        if isinstance(step, Forward | Substitute | Dropped):
            was_kept = self._kept.pop(step.ticket, None) is not None
            if was_kept and self._is_stream and not isinstance(step, Dropped):
                client = self._board.ways.to_client(self._way.stream)
                if client is not None:
                    client.deliver(Inject(SERVER, step.data, None, self._way.stream))
        self._leave()

    def let_go(self) -> None:
        """Let all that is held go on as it came."""
        for ticket, data in sorted(self._kept.items()):
            self.deliver(Forward(SERVER, data, self, ticket))

    def _leave(self) -> None:
        """End, once the answer has, and nothing of what came with it is held."""
        if self._is_over and not self._kept:
            self._board.left(self)

    async def _run(self, data: bytes) -> None:
        self._board.enters(self)
        context, way = self._context, self._way
        theirs = towards_server(way.headers.items(), context.upstream, way.ours)
        headers = of_ours(theirs, data, self._board.tools)
        self.lists_tools = (mcp_headers.METHOD, LIST) in headers
        hung_up: str | None = None
        try:
            try:
                response = await context.ask(hdrs.METH_POST, way.target, headers, data)
            except (aiohttp.ClientError, OSError) as error:
                await self._head(headers, None, {}, error=reason(error))
                self._fail(f"the server cannot be reached: {reason(error)}")
                return
            try:
                await self._head(headers, response.status, noted(response.headers.items()))
                await self._hear(response)
                if response.status != 202:  # Of what was answered this is no news.
                    self._fail(f"no answer, and HTTP {response.status}")
            except aiohttp.ClientError as error:
                hung_up = SERVER
                self._fail(f"the server hung up: {reason(error)}")
            finally:
                response.close()
        except asyncio.CancelledError:
            hung_up = MCPSPY
            raise
        finally:
            self._is_over = True
            self._leave()
            await context.note("http-end", {**self.fields, "hung_up": hung_up, "by": MCPSPY})

    async def _hear(self, response: aiohttp.ClientResponse) -> None:
        """Take what comes back."""
        self._is_stream = response.content_type == "text/event-stream"
        if self._is_stream:
            events = SseUnits()
            async for chunk in response.content.iter_any():
                for unit in events.feed(chunk):
                    if (message := unit.message) is not None and is_message(message):
                        assert unit.event is not None
                        fields = self.fields | ({} if unit.event.id is None else {"id": unit.event.id})
                        await self._take(message, fields)
        elif is_message(body := await response.read()):
            await self._take(body, self.fields)

    async def _take(self, data: bytes, fields: dict[str, Value]) -> None:
        def keep(ticket: int) -> None:
            self._kept[ticket] = data

        await self._board.take(self, SERVER, data, fields, keep)

    def _fail(self, why: str) -> None:
        if self._request_id is not None:
            self._board.failed(self._request_id, why)

    async def _head(
        self, headers: list[tuple[str, str]], status: int | None, answered: dict[str, str], **more: Value
    ) -> None:
        fields: dict[str, Value] = {
            **self.fields,
            "method": hdrs.METH_POST,
            "path": self._way.target,
            "status": status,
            "asked_at": round(self._begun, 6),
            "request": noted(headers),
            "response": answered,
            "by": MCPSPY,
            **more,
        }
        await self._context.note("http", fields)
