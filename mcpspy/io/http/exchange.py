"""One HTTP exchange on its way through us.

Owns what happens between a request's head and a response's end: the body is in
the recording before its last byte goes on, an event of a stream before its
blank line does, and neither waits for anything else. Bytes go on as they came;
who hangs up is passed on at once, in both directions.

An answer of a server as it goes on: under the head it came with, its body readable for the record.

Owns what aiohttp would add to a head, and takes it out again, and how what is
compressed is read without being changed.
"""

from __future__ import annotations

import asyncio
import zlib
from collections.abc import AsyncIterator, Callable
from typing import TYPE_CHECKING, Any

import aiohttp
import orjson
from aiohttp import hdrs, web
from multidict import CIMultiDict

from mcpspy.core.protocol.http_headers import (
    is_metadata,
    moved_metadata,
    noted,
    towards_client,
    towards_server,
)
from mcpspy.core.protocol.message import Request, read_frame
from mcpspy.core.recording.decode import Frame
from mcpspy.core.recording.encode import CLIENT, MCPSPY, SERVER, BodyEncoder, SseEncoder
from mcpspy.io.client.aiohttp_session import reason
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

if TYPE_CHECKING:
    from mcpspy.core.framing import SseEvent
    from mcpspy.core.protocol.http_headers import Headers
    from mcpspy.core.recording.encode import Value
    from mcpspy.io.http.context import Decoder, ExchangeContext
    from mcpspy.io.http.interception import HttpInterception

ADDED = (hdrs.USER_AGENT, hdrs.ACCEPT, hdrs.CONTENT_TYPE, hdrs.ACCEPT_ENCODING, hdrs.SERVER, hdrs.DATE)
"""Headers that aiohttp adds where there is none."""


class ProxiedResponse(web.StreamResponse):
    """A response with the headers it came with, and no others."""

    def __init__(self, response: aiohttp.ClientResponse, headers: Headers) -> None:
        super().__init__(status=response.status, reason=response.reason, headers=CIMultiDict(headers))
        self._given = response.headers
        # A body that is all there goes in one packet with its head; for another the head does not wait.
        self._send_headers_immediately = not response.content.is_eof()

    async def _write_headers(self) -> None:
        for name in ADDED:
            if name not in self._given:
                self.headers.popall(name, None)
        await super()._write_headers()


def decoder(response: aiohttp.ClientResponse) -> Decoder:
    """Return what makes a compressed body readable for the record, chunk by chunk; it goes on compressed."""
    encoding = response.headers.get(hdrs.CONTENT_ENCODING, "identity").lower()
    if encoding not in ("gzip", "x-gzip", "deflate"):
        return lambda data: data
    inflate: Callable[[bytes], bytes] = zlib.decompressobj(zlib.MAX_WBITS | 32).decompress

    def decode(data: bytes) -> bytes:
        nonlocal inflate
        try:
            return inflate(data)
        except zlib.error:  # Not what it says it is: recorded as it came from here on.
            inflate = bytes
            return data

    return decode


SMALL = 1 << 18
"""Bytes up to which a request's body is sent as one piece; a longer one is not copied whole."""


class HttpExchange:
    """One request, from its head to its answer's end."""

    def __init__(self, context: ExchangeContext, board: HttpInterception, request: web.BaseRequest) -> None:
        self._context = context
        self._board = board
        self._request = request
        self._begun = self._now()
        self._about = ExchangeHead(context, request)
        self._asked: bytes | None = None
        self._detour: InterceptedExchange | None = None
        self._turning: asyncio.Task[Any] | None = None
        self._has_head = False
        self._is_over = False

    async def run(self) -> web.StreamResponse:
        """Carry it through. Cancelled when the client hangs up, and when we have to stop."""
        try:
            data = await self._take_request()
            try:
                response = await self._ask(data)
            except (aiohttp.ClientError, OSError) as error:
                return await self._unreachable(error)
            except ClientAnswered:
                return await self._answer()
            except ClientDisconnected:
                return await self._cut_off(web.Response())
            try:
                return await self._pass_on(response)
            finally:
                # What the client no longer wants, the server should stop making: close() and not release().
                if self._detour is None or not self._detour.is_overhearing:
                    response.close()
        except (asyncio.CancelledError, ConnectionResetError):
            await self._end(MCPSPY if self._context.is_stopping else CLIENT)
            raise
        except Exception:  # A bug of ours: `io.http.listener` says it, and hangs up.
            await self._end(MCPSPY)
            raise
        finally:
            if self._detour is not None:
                self._detour.close()

    async def _take_request(self) -> bytes | AsyncIterator[bytes] | None:
        """Return the body to send: recorded first if it is a message, a stream as it comes if not."""
        request, context, about = self._request, self._context, self._about
        if request.headers.get(hdrs.EXPECT, "").lower() == "100-continue" and request.transport is not None:
            request.transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        if not request.body_exists:
            return None
        if not (about.is_mcp and request.method == hdrs.METH_POST):
            return request.content.iter_any()
        is_session = SESSION in request.headers or about.is_address
        self._board.ways.posts(Route(about.stream, about.target, request.headers, about.ours, is_session))
        lane = BodyEncoder(CLIENT, about.fields)
        pieces: list[bytes] = []
        torn = True
        try:
            async for piece in request.content.iter_any():
                pieces.append(piece)
                lane.feed(piece)
            torn = False
        finally:
            if torn or not self._is_decided_on(pieces):
                size = sum(map(len, pieces))
                await context.keep(lane.close(self._now(), torn=torn), size)
        if self._detour is not None:
            return None
        if size > SMALL:
            return _each(pieces)
        self._asked = b"".join(pieces)
        return self._asked

    def _is_decided_on(self, pieces: list[bytes]) -> bool:
        """Whether somebody wants to decide what becomes of a body that has come."""
        if self._board.is_on and is_message(body := b"".join(pieces)):
            self._asked = body
            self._detour = InterceptedExchange(self._context, self._board, self._about, body)
        return self._detour is not None

    async def _ask(self, data: bytes | AsyncIterator[bytes] | None) -> aiohttp.ClientResponse:
        if self._detour is not None:
            return await self._detour.ask(await self._detour.request())
        request, context, about = self._request, self._context, self._about
        headers = towards_server(request.headers.items(), context.upstream, about.ours)
        return await context.ask(request.method, about.target, headers, data)

    async def _pass_on(self, response: aiohttp.ClientResponse) -> web.StreamResponse:
        request, context, about = self._request, self._context, self._about
        session = response.headers.get(SESSION)
        if session is not None and response.ok:
            context.streams.bind(session, about.stream)
        self._forget_session(response)
        await self._head(response.status, noted(response.headers.items()))
        if not response.content.is_eof():
            # Most servers send a short answer in two packets: let the loop take the second, if it is there.
            await asyncio.sleep(0)
        headers = towards_client(response.headers.items(), context.upstream, about.ours)
        kind = response.content_type if about.is_mcp and request.method != hdrs.METH_HEAD else ""
        if kind in (EVENTS, JSON) and self._board.is_on and self._detour is None:
            self._detour = InterceptedExchange(self._context, self._board, self._about, self._asked or b"")
        passed = ProxiedResponse(response, headers)
        try:
            if request.method == hdrs.METH_GET and response.ok and is_metadata(about.target):
                return await self._pass_metadata(response, passed)
            await self._pass_body(response, passed, kind)
            # Recorded before the last byte goes on, which some clients do not wait for.
            await self._end(None)
            await passed.write_eof()
        except ConnectionError:  # Ours to the client: aiohttp's own class of it is a ClientError, too.
            await self._end(CLIENT)
        except aiohttp.ClientError:
            # A clean end would tell the client that this was all. It was not.
            await self._end(SERVER)
            if request.transport is not None:
                request.transport.close()
        except ClientAnswered:
            if not passed.prepared:
                return await self._answer()
            await self._end(None)
            await passed.write_eof()
        except ClientDisconnected:
            return await self._cut_off(passed)
        return passed

    async def _pass_body(self, response: aiohttp.ClientResponse, passed: ProxiedResponse, kind: str) -> None:
        """Pass on what comes behind the head, as it comes, unless somebody decides on it."""
        if self._detour is not None:
            await self._pass_decided(response, passed, kind, self._detour)
            return
        await passed.prepare(self._request)
        if kind == EVENTS:
            await self._pass_events(response, passed)
        elif kind == JSON:
            await self._pass_message(response, passed)
        else:
            async for chunk in response.content.iter_any():
                await passed.write(chunk)

    async def _pass_decided(
        self,
        response: aiohttp.ClientResponse,
        passed: ProxiedResponse,
        kind: str,
        detour: InterceptedExchange,
    ) -> None:
        """Pass on what somebody decides on, under a head that fits."""
        if kind == JSON:
            body, is_as_it_came = await detour.message(response, decoder(response))
            if not is_as_it_came:
                passed.headers.popall(hdrs.CONTENT_ENCODING, None)
                passed.content_length = len(body)
            await passed.prepare(self._request)
            await passed.write(body)
            return
        if kind == EVENTS:
            passed.headers.popall(hdrs.CONTENT_ENCODING, None)  # Events are cut apart, and not put back in.
        await passed.prepare(self._request)
        if kind == EVENTS:
            await self._pass_events(response, passed)
            return
        async for chunk in response.content.iter_any():
            await passed.write(chunk)

    async def _answer(self) -> web.StreamResponse:
        """Answer in the server's place; what is said is in the recording already."""
        assert self._detour is not None
        status, body = self._detour.answer()
        if not self._has_head:
            await self._head(status, {}, by=MCPSPY)
        await self._end(None)
        return web.Response(status=status, body=body, content_type=JSON if body else None)

    async def _cut_off(self, response: web.StreamResponse) -> web.StreamResponse:
        """Leave the client without an answer, and without a connection."""
        await self._end(MCPSPY)
        if self._request.transport is not None:
            self._request.transport.abort()
        return response

    def _forget_session(self, response: aiohttp.ClientResponse) -> None:
        """Let go of a session that the server says is over."""
        request = self._request
        session = request.headers.get(SESSION)
        is_deleted = request.method == hdrs.METH_DELETE and response.ok
        if session is not None and self._about.is_mcp and (is_deleted or response.status == 404):
            self._context.streams.end(session)

    async def _pass_metadata(
        self, response: aiohttp.ClientResponse, passed: ProxiedResponse
    ) -> ProxiedResponse:
        """Pass on a document about the server as one about us."""
        body = moved_metadata(
            self._about.target, await response.read(), self._context.upstream.origin, self._about.ours
        )
        passed.content_length = len(body)
        await passed.prepare(self._request)
        await passed.write(body)
        await self._end(None)
        await passed.write_eof()
        return passed

    async def _pass_message(self, response: aiohttp.ClientResponse, passed: ProxiedResponse) -> None:
        """Hold back the last chunk, and only that, until the message is in the recording."""
        lane = BodyEncoder(SERVER, self._about.fields)
        decode = decoder(response)
        held = b""
        size = 0
        listed: list[bytes] = []
        torn = True
        try:
            async for chunk in response.content.iter_any():
                if held:
                    await passed.write(held)
                data = decode(chunk)
                lane.feed(data)
                if self._about.lists_tools:
                    listed.append(data)
                size += len(chunk)
                held = chunk
            torn = False
        finally:
            await self._context.keep(lane.close(self._now(), torn=torn), size)
        if listed:
            self._board.hear_tools(b"".join(listed))
        if held:
            await passed.write(held)

    async def _pass_events(self, response: aiohttp.ClientResponse, passed: ProxiedResponse) -> None:
        """Pass each chunk on as it comes, its events in the recording before it."""
        # HTTP+SSE (2024-11-05) names the address for messages in the first event of its one GET.
        opening = self._request.method == hdrs.METH_GET and SESSION not in self._request.headers
        ways = self._board.ways
        try:
            if self._detour is None:
                opening = await self._pass_chunks(response, passed, opening=opening)
            else:
                ways.opens(self._detour)
            if self._detour is not None:
                await self._detour.events(response, passed, decoder(response), opening=opening)
        finally:
            ways.passed(self)
            if self._about.address is not None:
                self._context.streams.end_address(self._about.address)

    async def _pass_chunks(
        self, response: aiohttp.ClientResponse, passed: ProxiedResponse, *, opening: bool
    ) -> bool:
        """Pass chunks on until the end, or until somebody wants to decide on each event.

        Return whether the event that names the address may still come.
        """
        lane = SseEncoder(SERVER, self._about.fields)
        decode = decoder(response)
        held = b""
        if hdrs.CONTENT_ENCODING not in response.headers:  # Of a compressed stream no part can be changed.
            self._board.ways.passes(self)
        chunks = response.content.iter_any()
        try:
            while True:
                is_between = not held and not lane.is_inside_event
                if is_between and self._detour is not None:
                    break
                self._turning = asyncio.current_task() if is_between else None
                chunk = await anext(chunks, None)
                self._turning = None
                if chunk is None:
                    await passed.write(held)
                    break
                events, lines = lane.feed(self._now(), decode(chunk))
                if lines:
                    await self._context.keep(lines, len(chunk))
                self._learn(events)
                held += chunk
                if opening and not events and lane.is_inside_event:
                    continue
                if opening and events:
                    opening = False
                    if events[0].event == "endpoint":
                        held = self._about.redirect(held, b"".join(events[0].data or ()))
                await passed.write(held)
                held = b""
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if self._turning is None or self._detour is None or task is None or task.uncancel() > 0:
                raise
        finally:
            self._turning = None
            await self._context.keep(lane.close(self._now()), 0)
        return opening

    def _learn(self, events: list[SseEvent]) -> None:
        """Have it kept what tools want in headers."""
        if self._about.lists_tools:
            for event in events:
                self._board.hear_tools(b"".join(event.data or ()))

    def turn(self) -> None:
        """Have the stream that goes by decided on, from its next event on: now, if it is waited for."""
        self._detour = InterceptedExchange(self._context, self._board, self._about, self._asked or b"")
        self._board.ways.opens(self._detour)
        if self._turning is not None:
            self._turning.cancel()

    async def _unreachable(self, error: Exception) -> web.StreamResponse:
        """Answer for a server that cannot be reached, by name, in the client's own terms."""
        upstream = self._context.upstream
        line = f"mcpspy: cannot reach {upstream.origin}{upstream.path}: {reason(error)}"
        await self._head(502, {}, error=line)
        await self._end(None)
        said = read_frame(Frame(0.0, CLIENT, self._asked)) if self._asked else []
        asked = said[0].id if len(said) == 1 and isinstance(said[0], Request) else None
        return json_error(502, asked, line)

    def _now(self) -> float:
        return self._context.recorder.now()

    async def _head(self, status: int | None, answered: dict[str, str], **more: Value) -> None:
        request = self._request
        fields: dict[str, Value] = {
            **self._about.fields,
            "method": request.method,
            "path": self._about.target,
            "status": status,
            "asked_at": round(self._begun, 6),
            "request": noted(request.headers.items()),
            "response": answered,
            **more,
        }
        await self._context.note("http", fields)
        self._has_head = True

    async def _end(self, hung_up: str | None) -> None:
        if self._is_over:
            return
        if not self._has_head:
            await self._head(None, {})
        await self._context.note("http-end", {**self._about.fields, "hung_up": hung_up})
        self._is_over = True


def json_error(status: int, asked: str | None, line: str) -> web.Response:
    """Return an answer of our own, in the client's terms; `asked` is the JSON text of an id."""
    body = {
        "jsonrpc": "2.0",
        "id": orjson.Fragment(asked) if asked is not None else None,
        "error": {"code": -32000, "message": line},
    }
    return web.Response(status=status, body=orjson.dumps(body), content_type=JSON)


async def _each(pieces: list[bytes]) -> AsyncIterator[bytes]:
    for piece in pieces:
        yield piece
