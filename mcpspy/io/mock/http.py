"""`mcpspy mock --http`: a recording in the place of its server, in HTTP's forms.

Owns methods, paths, headers and status codes of every transport over HTTP: sessions (2025-03-26
to 2025-11-25), the pair of `/sse` and `/messages` (2024-11-05), and single requests (2026-07-28).
Sources: basic/transports of these revisions. What is said is `core.mock`'s, on which stream is
`visitor`'s; `posted` reads what clients send, `events` writes the streams.
"""

from __future__ import annotations

import asyncio
import secrets
import socket
from collections.abc import Callable, Sequence
from urllib.parse import urlsplit

from aiohttp import hdrs, web

from mcpspy.core.mock import responses
from mcpspy.core.mock.clients import Guests
from mcpspy.core.mock.matching import version
from mcpspy.core.mock.recordings import Library
from mcpspy.core.mock.selector import Choice
from mcpspy.core.mock.session import BATCHES, Options, Outgoing, Patient
from mcpspy.core.protocol.http_headers import refusal
from mcpspy.core.protocol.mcp_headers import VERSION, mismatch
from mcpspy.core.protocol.message import Failure, Request, meta_raw, read_frame
from mcpspy.core.protocol.spec import META, MODERN, REVISIONS
from mcpspy.core.recording.decode import Frame
from mcpspy.io.http.listener import accepting, origin, stop_on_signals
from mcpspy.io.mock import http_messages
from mcpspy.io.mock.http_client import Stream, Visitor
from mcpspy.io.mock.http_messages import EVENTS, JSON, SERVER_ERROR, Post, Refused, read_post
from mcpspy.io.mock.upstream import Real
from mcpspy.io.recording.recorder import say

SESSION = "Mcp-Session-Id"
ENDPOINT, SSE, MESSAGES = "/mcp", "/sse", "/messages"

SESSIONS = 4096
"""Sessions that are kept: most clients never end theirs. The client of one that was dropped gets a 404 and begins another."""

SESSION_NOT_FOUND, HEADER_MISMATCH, INVALID_PARAMS = -32001, -32020, -32602

STATUS = {
    responses.PARSE_ERROR: 400,
    responses.INVALID_REQUEST: 400,
    INVALID_PARAMS: 400,
    HEADER_MISMATCH: 400,
    -32021: 400,
    responses.UNSUPPORTED_VERSION: 400,
    responses.METHOD_NOT_FOUND: 404,
}
"""Of an error in 2026-07-28."""


class Mock:
    """A recorded server, for any number of clients."""

    def __init__(
        self,
        library: Library,
        options: Options,
        complain: Callable[[str], None],
        allowed: Sequence[str] = (),
        real: Real | None = None,
    ) -> None:
        self.choices: list[Choice] = []
        """What each client asked for."""
        self.name = library.name
        self.path = endpoint(library)
        self._library = library
        self._options = options
        self._complain = complain
        self._allowed = allowed
        self._real = real
        self._sessions: dict[str, Visitor] = {}
        self._guests: Guests[Visitor] = Guests()
        self._visitors: set[Visitor] = set()
        """All of them, with a session or without."""
        self._is_read = asyncio.Event()
        self._is_over = False

    async def read(self, read_on: Callable[[], bool]) -> None:
        """Read the rest of the recording, and answer what waited for it; `read_on` reads some, while there is more."""
        while not self._library.is_whole and read_on():
            for visitor in self._visitors:
                visitor.go_on()
            await asyncio.sleep(0)
        self._is_read.set()

    async def close(self) -> None:
        """End every stream, and leave nothing of what was connected for the clients."""
        self._is_over = True
        self._is_read.set()
        await asyncio.gather(*map(self._end, list(self._visitors)))

    async def handle(self, request: web.BaseRequest) -> web.StreamResponse:
        """Answer one HTTP request."""
        headers = request.headers
        try:
            why = refusal(headers.get(hdrs.HOST), headers.get(hdrs.ORIGIN), self._allowed)
            if why is not None:
                raise Refused(403, SERVER_ERROR, why)
            self._expect_more()
            if request.path == SSE:
                return await self._sse(request)
            if request.path == MESSAGES:
                return await self._message(request)
            if request.path not in (self.path, ENDPOINT, "/"):
                raise Refused(
                    404, SERVER_ERROR, f"nothing is at {request.path}: the server is at {self.path}"
                )
            if request.method == hdrs.METH_POST:
                return await self._post(await read_post(request))
            if self._library.is_modern and not self._library.introductions.get("initialize"):
                raise Refused(405, SERVER_ERROR, "this server takes POST only", Allow="POST")
            if request.method == hdrs.METH_GET:
                return await self._get(request, self._visitor(request))
            if request.method == hdrs.METH_DELETE:
                visitor = self._visitor(request)
                del self._sessions[headers[SESSION]]
                await self._end(visitor)
                return web.Response()
            raise Refused(
                405, SERVER_ERROR, f"{request.method} is not a method of MCP", Allow="GET, POST, DELETE"
            )
        except Refused as refused_:
            return refused_.response
        except ConnectionError:  # The client is gone in the middle of a stream.
            return web.Response()

    async def _post(self, post: Post) -> web.StreamResponse:
        if not (post.takes(JSON) or post.takes(EVENTS)):
            raise Refused(406, SERVER_ERROR, f"Accept must name {JSON} and {EVENTS}")
        said = post.request.headers.get(VERSION)
        message = post.only
        if isinstance(message, Request) and version(message) is not None:
            return await self._single(post, message)
        if isinstance(message, Request) and message.method == "initialize":
            return await self._begin(post)
        if said is not None and said not in REVISIONS:
            raise Refused(
                400, SERVER_ERROR, f"unsupported {VERSION} {said}; supported: {', '.join(REVISIONS)}"
            )
        if said == MODERN and self._library.is_modern and SESSION not in post.request.headers:
            if post.ids or any(not hasattr(message, "method") for message in post.messages):
                raise Refused(400, INVALID_PARAMS, f"_meta lacks {META}protocolVersion, or it is no request")
            return web.Response(status=202)
        visitor = self._visitor(post.request)
        if message is None and visitor.conversation.revision not in BATCHES:
            raise Refused(
                400, responses.INVALID_REQUEST, f"batches are not part of {visitor.conversation.revision}"
            )
        return await self._answer(post, visitor, visitor.post(post.body, post.ids))

    async def _begin(self, post: Post) -> web.StreamResponse:
        """Take `initialize`: it opens a session, if it succeeds."""
        visitor, name = self._new(), secrets.token_hex(16)
        stream = visitor.post(post.body, post.ids)
        while visitor.conversation.waits and not stream.is_over:
            await stream.more(None)
        if visitor.conversation.revision is None:
            try:
                return await self._answer(post, visitor, stream, is_modern=True)
            finally:
                await self._end(visitor)
        self._sessions[name] = visitor
        if len(self._sessions) > SESSIONS:
            await self._end(self._sessions.pop(next(iter(self._sessions))))
        return await self._answer(post, visitor, stream, {SESSION: name})

    async def _single(self, post: Post, message: Request) -> web.StreamResponse:
        """Take a request of 2026-07-28, which belongs to no session."""
        if not self._library.is_modern and not self._library.is_whole:
            await self._is_read.wait()  # What is modern in it may come last.
            self._expect_more()
        if not self._library.is_modern:
            raise Refused(400, SERVER_ERROR, "Bad Request: Server not initialized")
        if (why := mismatch(post.request.headers, message)) is not None:
            raise Refused(400, HEADER_MISMATCH, why)
        name = bytes(meta_raw(message.body.meta, META + "clientInfo")).decode("utf-8", "replace")
        name += post.request.headers.get(hdrs.USER_AGENT, "")
        connection = post.request.transport and post.request.transport.get_extra_info("peername")
        is_new = message.method == "server/discover"
        visitor = self._guests.find(name, message.id, connection, is_new=is_new)
        if visitor is None:
            visitor = self._new()
            for forgotten in self._guests.add(visitor, name, message.id, connection):
                await self._end(forgotten)
        return await self._answer(post, visitor, visitor.post(post.body, post.ids), is_modern=True)

    async def _answer(
        self,
        post: Post,
        visitor: Visitor,
        stream: Stream,
        headers: dict[str, str] | None = None,
        *,
        is_modern: bool = False,
    ) -> web.StreamResponse:
        if not post.ids and not stream.messages:
            return web.Response(status=202, headers=headers)
        try:
            while not stream.is_over and not (post.takes(EVENTS) and (stream.messages or not is_modern)):
                # Until its first message a modern stream may still become an error with a status.
                if not await stream.more(http_messages.PATIENCE if post.takes(EVENTS) else None):
                    break
            if stream.is_over and not stream.messages:
                raise Refused(404, SESSION_NOT_FOUND, "the session has ended, and this had no answer yet")
            answers = [message for _, message in stream.messages if message.is_answer]
            if not post.takes(EVENTS) or (
                post.takes(JSON) and answers and len(stream.messages) == 1 and not stream.owed
            ):
                data = [message.data for message in answers]
                body = data[0] if post.only is not None else b"[" + b",".join(data) + b"]"
                status = _status(answers[0], is_modern=is_modern) if post.only is not None else 200
                return web.Response(status=status, body=body, content_type=JSON, headers=headers)
            preface = b"" if is_modern else http_messages.naming(visitor, stream)
            return await http_messages.write(
                post.request, stream, 0, preface, headers, is_numbered=not is_modern
            )
        except (asyncio.CancelledError, ConnectionError):
            if is_modern and not stream.is_over:
                visitor.hang_up(post.ids)
            raise

    async def _get(self, request: web.BaseRequest, visitor: Visitor) -> web.StreamResponse:
        """Open the stream of what belongs to no request, or go on with one that was lost."""
        if EVENTS not in request.headers.get(hdrs.ACCEPT, ""):
            raise Refused(406, SERVER_ERROR, f"Accept must name {EVENTS}")
        last = request.headers.get("Last-Event-ID")
        if last is None:
            if visitor.general.reader is not None:
                raise Refused(409, SERVER_ERROR, "this session has a GET stream already")
            return await http_messages.write(
                request, visitor.general, 0, http_messages.naming(visitor, visitor.general)
            )
        stream = visitor.stream_of(int(last)) if last.isascii() and last.isdigit() else None
        if stream is None:
            raise Refused(400, SERVER_ERROR, f"no stream has the event {last}, or not any more")
        return await http_messages.write(request, stream, int(last))

    async def _sse(self, request: web.BaseRequest) -> web.StreamResponse:
        """Serve the stream of 2024-11-05: all there is to say to one client."""
        if request.method != hdrs.METH_GET:
            raise Refused(405, SERVER_ERROR, f"{SSE} takes GET only", Allow="GET")
        visitor, name = self._new(one_stream=True), secrets.token_hex(16)
        self._sessions[name] = visitor
        preface = f"event: endpoint\ndata: {MESSAGES}?session_id={name}\n\n".encode()
        try:
            return await http_messages.write(request, visitor.general, 0, preface, is_numbered=False)
        finally:
            self._sessions.pop(name, None)
            await self._end(visitor)

    async def _message(self, request: web.BaseRequest) -> web.Response:
        """Take a message of a client that listens at `/sse`."""
        if request.method != hdrs.METH_POST:
            raise Refused(405, SERVER_ERROR, f"{MESSAGES} takes POST only", Allow="POST")
        visitor = self._sessions.get(request.query.get("session_id", ""))
        if visitor is None:
            raise Refused(404, SESSION_NOT_FOUND, "Session not found")
        post = await read_post(request)
        visitor.post(post.body, [])
        return web.Response(status=202, text="Accepted")

    def _expect_more(self) -> None:
        if self._is_over:
            raise Refused(503, SERVER_ERROR, "the mock is ending")

    def _new(self, *, one_stream: bool = False) -> Visitor:
        conversation = Patient(self._library, self._options, asyncio.get_running_loop().time())
        self.choices.append(conversation.choice)
        visitor = Visitor(conversation, self._complain, self._real, one_stream=one_stream)
        self._visitors.add(visitor)
        return visitor

    async def _end(self, visitor: Visitor) -> None:
        self._visitors.discard(visitor)
        visitor.close()
        if visitor.elsewhere is not None:
            await visitor.elsewhere.close()

    def _visitor(self, request: web.BaseRequest) -> Visitor:
        """Return whose session a request is of."""
        name = request.headers.get(SESSION)
        if name is None:
            raise Refused(
                400, SERVER_ERROR, f"Bad Request: {SESSION} is missing; a session begins with initialize"
            )
        visitor = self._sessions.get(name)
        if visitor is None:
            raise Refused(404, SESSION_NOT_FOUND, "Session not found")
        return visitor


def endpoint(library: Library) -> str:
    """Return the path of the server: the recorded one, if it was HTTP's and of one endpoint."""
    path = urlsplit(library.upstream or "").path
    return path if path not in ("", "/", SSE) else ENDPOINT


def _status(answer: Outgoing, *, is_modern: bool) -> int:
    if not is_modern and answer.request is not None:
        return 200
    (message,) = read_frame(Frame(0.0, "server", answer.data))
    if not isinstance(message, Failure):
        return 200
    return STATUS.get(message.code or 0, 200) if is_modern else 400


async def serve(mock: Mock, listener: socket.socket, host: str, read_on: Callable[[], bool]) -> None:
    """Serve on a socket until SIGTERM or SIGINT. Raises what `read_on` raises: there is no server in what it read."""
    stop = asyncio.Event()
    stop_on_signals(lambda _: stop.set())
    async with accepting(mock.handle, listener):
        say(f"{origin(host, listener)}{mock.path} plays {mock.name}")
        reading = asyncio.ensure_future(mock.read(read_on))
        stopping = asyncio.ensure_future(stop.wait())
        try:
            await asyncio.wait((reading, stopping), return_when=asyncio.FIRST_COMPLETED)
            if reading.done():
                await reading
            await stopping
        finally:
            reading.cancel()
            stopping.cancel()
            await mock.close()
