"""One HTTP exchange whose messages are decided on: its request, its answer, each event of a stream.

Owns that HTTP stays right whatever is decided: lengths and headers are those of
the body that goes on, a held event stops no other, who waits for an answer is
answered where it waits. Steps come in the order in which they are to be done;
nothing is decided here.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

import aiohttp
from aiohttp import hdrs, web

from mcpspy.core.intercept.actions import (
    AbortUpstream,
    Disconnect,
    Dropped,
    Forward,
    Inject,
    Step,
    Substitute,
)
from mcpspy.core.intercept.http import SseUnit, SseUnits, for_body, written
from mcpspy.core.protocol.http_headers import towards_server
from mcpspy.core.protocol.message import Request, read_frame
from mcpspy.core.recording.decode import Frame
from mcpspy.core.recording.encode import CLIENT, SERVER, BodyEncoder, SseEncoder
from mcpspy.io.interception import is_message

if TYPE_CHECKING:
    from mcpspy.core.framing import SseEvent
    from mcpspy.core.recording.encode import Value
    from mcpspy.io.http.context import Decoder, ExchangeContext, ExchangeHead
    from mcpspy.io.http.interception import HttpInterception

T = TypeVar("T")

EVENTS, JSON = "text/event-stream", "application/json"


class ClientAnswered(Exception):  # noqa: N818 - an outcome, not an error.
    """The client has had, or gets, its answer from us; nothing if there was nothing to answer."""


class ClientDisconnected(Exception):  # noqa: N818
    """The connection to the client ends here."""


class _Raw(bytes):
    """What goes on in its turn, and is no message."""


class _End:
    """The server has said all."""

    def __init__(self, error: Exception | None) -> None:
        self.error = error


class InterceptedExchange:
    """The way of one exchange past the desk."""

    def __init__(
        self, context: ExchangeContext, board: HttpInterception, about: ExchangeHead, body: bytes = b""
    ) -> None:
        """`body` is what the client has said, if it said something."""
        self._context = context
        self._board = board
        self._about = about
        self._body = body
        self._steps: asyncio.Queue[Step | _Raw | _End] = asyncio.Queue()
        self._kept: dict[int, tuple[bytes, SseEvent | None]] = {}
        """By ticket what has not gone on yet: its bytes, and the event that carried it."""
        messages = read_frame(Frame(0.0, CLIENT, body)) if body else []
        self._unanswered = sum(isinstance(message, Request) for message in messages)
        self._answers: list[bytes] = []
        self._is_open = True
        self.is_overhearing = False
        """Whether the server's response is still read, though the client has its answer."""
        self.is_get = about.request.method == hdrs.METH_GET
        self.stream = about.stream
        board.enters(self)

    @property
    def fields(self) -> dict[str, Value]:
        """What the entries of this exchange say of it."""
        return self._about.fields

    @property
    def lists_tools(self) -> bool:
        """Whether it asks what tools there are."""
        return self._about.lists_tools

    @property
    def is_answered_here(self) -> bool:
        """Whether its client waits here for what it asked. In HTTP+SSE (2024-11-05) it waits elsewhere."""
        return self._is_open and not self.is_get and not self._about.is_address

    def deliver(self, step: Step) -> None:
        """Do this, in its turn; when the client has gone there is nothing left to do."""
        if self._is_open:
            self._steps.put_nowait(step)

    def let_go(self) -> None:
        """Let all that is held go on as it came."""
        for ticket, (raw, _) in sorted(self._kept.items()):
            self.deliver(Forward("", raw, self, ticket))

    def close(self) -> None:
        """The client is there no more."""
        if self._is_open:
            self._is_open = False
            self._board.ways.closes(self)
            self._board.left(self)

    async def request(self) -> bytes:
        """Return the body that goes to the server. Raises Answered, CutOff."""
        await self._take(CLIENT, self._body, self._body, None, self.fields)
        return await self._fate(self._body)

    def headers(self, sent: bytes) -> list[tuple[str, str]]:
        """Return the headers that go with it."""
        about = self._about
        headers = towards_server(about.request.headers.items(), self._context.upstream, about.ours)
        return headers if sent is self._body else for_body(headers, self._body, sent, self._board.tools)

    async def ask(self, sent: bytes) -> aiohttp.ClientResponse:
        """Return the server's response, unless something is said before it. Raises Answered, CutOff."""
        asking = asyncio.ensure_future(
            self._context.ask(hdrs.METH_POST, self._about.target, self.headers(sent), sent)
        )
        try:
            return await self._meanwhile(asking)
        except ClientAnswered:
            self._overhear(self._hear_out(asking))
            raise
        finally:
            if not self.is_overhearing:
                asking.cancel()

    async def message(self, response: aiohttp.ClientResponse, decode: Decoder) -> tuple[bytes, bool]:
        """Return the body that goes to the client, and whether it is the one that came, as it came.

        Raises Answered, CutOff, and what kept it from coming.
        """
        pieces: list[bytes] = []
        reading = asyncio.ensure_future(_read_into(pieces, response))
        try:
            await self._meanwhile(reading)
        except ClientAnswered:
            self._overhear(self._hear_body(reading, pieces, response))
            raise
        except (aiohttp.ClientError, asyncio.CancelledError):
            await self._keep_body(b"".join(map(decode, pieces)), torn=True)
            raise
        finally:
            if not self.is_overhearing:
                reading.cancel()
        came = b"".join(pieces)
        data = decode(came)
        if not is_message(data):
            await self._keep_body(data)
            return came, True
        await self._take(SERVER, data, data, None, self.fields)
        fate = await self._fate(data)
        return (came, True) if fate is data else (fate, False)

    async def events(
        self, response: aiohttp.ClientResponse, passed: web.StreamResponse, decode: Decoder, *, opening: bool
    ) -> None:
        """Pass events on, each in its turn. Raises Answered, CutOff, and what the server's end was."""
        reading = asyncio.ensure_future(self._read(response, decode, opening=opening))
        end: _End | None = None
        try:
            while end is None or self._kept:
                step = await self._steps.get()
                try:
                    if isinstance(step, _End):
                        end = step
                    else:
                        await passed.write(self._going(step))
                finally:
                    self._steps.task_done()
                if isinstance(step, Inject) and step.lane is self and self._is_answered():
                    raise ClientAnswered
            if end.error is not None:
                raise end.error
        except ClientAnswered:
            self._overhear(self._hear_stream(reading, response))
            raise
        finally:
            if not self.is_overhearing:
                reading.cancel()
                await asyncio.gather(reading, return_exceptions=True)

    def answer(self) -> tuple[int, bytes]:
        """Return the status and the body for a client that is answered by us."""
        if not self._answers:
            return 202, b""
        first, *more = self._answers
        return 200, b"[" + b",".join(self._answers) + b"]" if more else first

    # How it is done.

    async def _take(
        self, side: str, raw: bytes, data: bytes, event: SseEvent | None, fields: dict[str, Value]
    ) -> None:
        def keep(ticket: int) -> None:
            if self._is_open:
                self._kept[ticket] = (raw, event)

        await self._board.take(self, side, data, fields, keep)

    async def _fate(self, data: bytes) -> bytes:
        """Return what goes on of the one message there is. Raises Answered, CutOff."""
        while True:
            step = await self._next()
            if isinstance(step, Forward):
                self._kept.clear()
                return data
            if isinstance(step, Substitute):
                self._kept.clear()
                return step.data
            if isinstance(step, Dropped):
                self._kept.clear()
                if step.side == CLIENT and (not self._unanswered or self._about.is_address):
                    raise ClientAnswered
                await self._forever()  # What is dropped has no answer, until somebody gives up.
            self._heed(step)

    async def _forever(self) -> NoReturn:
        while True:
            self._heed(await self._next())

    async def _next(self) -> Step | _Raw | _End:
        step = await self._steps.get()
        self._steps.task_done()
        return step

    async def _meanwhile(self, work: asyncio.Future[T]) -> T:
        """Return what something comes to, unless something is said before it. Raises Answered, CutOff."""
        if not self._board.has_watchdog:  # Nobody else answers a request that has gone.
            return await work
        while not work.done():
            saying = asyncio.ensure_future(self._next())
            try:
                await asyncio.wait((work, saying), return_when=asyncio.FIRST_COMPLETED)
            finally:
                saying.cancel()
            if saying.done() and not saying.cancelled():
                self._heed(saying.result())
        return work.result()

    def _heed(self, step: object) -> None:
        """Do what is the same wherever we are. Raises Answered, CutOff."""
        if isinstance(step, Disconnect):
            raise ClientDisconnected
        if isinstance(step, Inject):
            self._answers.append(step.data)
            if len(self._answers) >= self._unanswered:
                raise ClientAnswered

    def _going(self, step: object) -> bytes:
        """Return what goes on the stream for a step. Raises CutOff."""
        if isinstance(step, _Raw):
            return step
        if isinstance(step, Inject):
            self._answers.append(step.data)
            return written(step.data)
        if isinstance(step, Disconnect):
            raise ClientDisconnected
        # Of what `let_go` has had go on, what was decided before may come as well.
        if (
            isinstance(step, Forward | Substitute | Dropped)
            and (kept := self._kept.pop(step.ticket, None)) is not None
        ):
            raw, event = kept
            if isinstance(step, Forward):
                return raw
            if isinstance(step, Substitute):
                return written(step.data, event)
        return b""

    def _is_answered(self) -> bool:
        return bool(self._unanswered) and len(self._answers) >= self._unanswered

    async def _read(self, response: aiohttp.ClientResponse, decode: Decoder, *, opening: bool) -> None:
        """Take events as they come, no faster than they are passed on."""
        events = SseUnits()
        error: Exception | None = None
        try:
            async for chunk in response.content.iter_any():
                for unit in events.feed(decode(chunk)):
                    opening = await self._unit(unit, opening=opening)
                if self._is_open:
                    await self._steps.join()
        except Exception as broken:  # Raised again where the events are waited for.
            error = broken
        finally:
            torn = events.close()
            if torn is not None:
                lane = SseEncoder(SERVER, self.fields)
                lane.feed(self._board.now(), torn.raw)
                await self._board.keep_lines(lane.close(self._board.now()))
        if torn is not None:
            self._say(torn.raw)
        if self._is_open:
            self._steps.put_nowait(_End(error))
        elif error is not None and not isinstance(error, aiohttp.ClientError):
            raise error

    async def _unit(self, unit: SseUnit, *, opening: bool) -> bool:
        """Take what came; return whether the event that names an address (2024-11-05) may still come."""
        message, event, raw = unit.message, unit.event, unit.raw
        if message is not None and is_message(message):
            assert event is not None
            named = {"event": event.event, "id": event.id, "retry": event.retry}
            fields = self.fields | {key: value for key, value in named.items() if value is not None}
            await self._take(SERVER, raw, message, event, fields)
            return False
        if event is not None:
            _, lines = SseEncoder(SERVER, self.fields).feed(self._board.now(), raw)
            await self._board.keep_lines(lines)
            if opening and event.event == "endpoint":
                raw = self._about.redirect(raw, b"".join(event.data or ()))
        self._say(raw)
        return opening and event is None

    def _say(self, raw: bytes) -> None:
        if self._is_open:
            self._steps.put_nowait(_Raw(raw))

    # After the client has its answer.

    def _overhear(self, hearing: Coroutine[Any, Any, None]) -> None:
        """Hear what the server says all the same: closing the request would not cancel it before 2026-07-28."""
        is_aborted = False
        while not self._steps.empty():
            is_aborted |= isinstance(self._steps.get_nowait(), AbortUpstream)
            self._steps.task_done()
        self.close()
        if is_aborted:
            hearing.close()
            return
        self.is_overhearing = True
        self._board.spawn(hearing)

    async def _hear_out(self, asking: asyncio.Future[aiohttp.ClientResponse]) -> None:
        try:
            response = await asking
        except (aiohttp.ClientError, OSError):
            return
        if response.content_type == EVENTS:
            await self._hear_stream(
                asyncio.ensure_future(self._read(response, bytes, opening=False)), response
            )
        else:
            pieces: list[bytes] = []
            reading = asyncio.ensure_future(_read_into(pieces, response))
            await self._hear_body(reading, pieces, response)

    async def _hear_body(
        self, reading: asyncio.Future[None], pieces: list[bytes], response: aiohttp.ClientResponse
    ) -> None:
        try:
            await reading
            data = b"".join(pieces)
            if is_message(data):
                await self._take(SERVER, data, data, None, self.fields)
        except aiohttp.ClientError:  # It has hung up, and nobody waits for it.
            pass
        finally:
            response.close()

    async def _hear_stream(self, reading: asyncio.Future[None], response: aiohttp.ClientResponse) -> None:
        try:
            await reading
        finally:
            reading.cancel()
            response.close()

    async def _keep_body(self, data: bytes, *, torn: bool = False) -> None:
        lane = BodyEncoder(SERVER, self.fields)
        lane.feed(data)
        await self._board.keep_lines(lane.close(self._board.now(), torn=torn))


async def _read_into(pieces: list[bytes], response: aiohttp.ClientResponse) -> None:
    async for piece in response.content.iter_any():
        pieces.append(piece)  # noqa: PERF401 - one by one: what came before an error is kept.
