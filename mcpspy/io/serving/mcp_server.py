"""An MCP server over HTTP: methods, paths, headers, bodies, status codes and sessions.

Sessions (2025-03-26 to 2025-11-25), `/sse` with `/messages` (2024-11-05), and single requests (2026-07-28). A subclass
makes the clients, whose sessions have the responses: a mock, or the process of a server.
Sources: basic/transports of these revisions.
"""

from __future__ import annotations

import asyncio
import secrets
from abc import ABC, abstractmethod
from collections.abc import Coroutine, Sequence
from typing import NamedTuple
from urllib.parse import parse_qs, unquote

from mcpspy.core.jsontools import one_line, replaced
from mcpspy.core.mock.http_replies import HttpReply
from mcpspy.core.mock.matching import modern_version
from mcpspy.core.mock.session import BATCHES, Outgoing
from mcpspy.core.protocol import responses
from mcpspy.core.protocol.http_headers import EVENTS, JSON, SESSION, rejection_reason
from mcpspy.core.protocol.mcp_headers import VERSION, mismatch
from mcpspy.core.protocol.message import AnyMessage, Failure, Malformed, Notification, Request, read_frame
from mcpspy.core.protocol.spec import (
    CLIENT,
    HEADER_MISMATCH,
    INVALID_PARAMS,
    INVALID_REQUEST,
    META,
    METHOD_NOT_FOUND,
    MODERN,
    PARSE_ERROR,
    REVISIONS,
    UNSUPPORTED_VERSION,
)
from mcpspy.core.recording.decode import Frame
from mcpspy.io.http.request import HttpRequest, Response
from mcpspy.io.serving import client as served
from mcpspy.io.serving.client import ClientStream, ServedClient, priming_event, write_stream

LOOPBACK_HOST = "127.0.0.1"
ENDPOINT, SSE, MESSAGES = "/mcp", "/sse", "/messages"

SESSIONS = 4096
"""Number of sessions kept: most clients never end theirs. The client of a dropped one gets a 404 and starts another."""

SESSION_NOT_FOUND = -32001

STATUS = {
    PARSE_ERROR: 400,
    INVALID_REQUEST: 400,
    INVALID_PARAMS: 400,
    HEADER_MISMATCH: 400,
    -32021: 400,
    UNSUPPORTED_VERSION: 400,
    METHOD_NOT_FOUND: 404,
}

LARGEST = 64 << 20
"""Maximum size of a body in bytes."""

SERVER_ERROR = -32000
"""Code for errors that have no code in JSON-RPC."""


class ParsedPost(NamedTuple):
    request: HttpRequest
    body: bytes
    messages: Sequence[AnyMessage]

    @property
    def ids(self) -> list[bytes]:
        return [message.id.encode() for message in self.messages if isinstance(message, Request)]

    @property
    def only(self) -> AnyMessage | None:
        """The message, or None for a batch."""
        return self.messages[0] if len(self.messages) == 1 and self.messages[0].index is None else None

    def takes(self, kind: str) -> bool:
        """Return whether the client accepts this content type. Without `Accept`, it accepts all."""
        accept = self.request.headers.get("Accept", "*/*").lower()
        return kind in accept or "*/*" in accept or f"{kind.partition('/')[0]}/*" in accept


class HttpRefusal(Exception):  # noqa: N818 - the name reads well at every raise.
    """An HTTP exchange that ends with an error."""

    def __init__(self, status: int, why: str, code: int = SERVER_ERROR, **headers: str) -> None:
        super().__init__(why)
        self.response = Response(
            status=status, body=responses.error(b"null", code, why), content_type=JSON, headers=headers
        )


async def read_post(request: HttpRequest) -> ParsedPost:
    """Read the messages of a body. Raise HttpRefusal."""
    if JSON not in request.headers.get("Content-Type", "").lower():
        raise HttpRefusal(415, f"Content-Type must be {JSON}")
    pieces, size = [], 0
    async for piece in request.chunks():
        pieces.append(piece)
        size += len(piece)
        if size > LARGEST:
            raise HttpRefusal(413, f"the body exceeds {LARGEST} bytes")
    body = b"".join(pieces)
    post = ParsedPost(request, body, read_frame(Frame(0.0, CLIENT, body)))
    for message in post.messages:
        if isinstance(message, Malformed):
            refusal = HttpRefusal(400, "", PARSE_ERROR)
            refusal.response.body = responses.rejection(message)
            raise refusal
    return post


class McpServer(ABC):
    """The exchanges with all clients."""

    def __init__(self, path: str, allowed: Sequence[str] = ()) -> None:
        """Create a server whose endpoint is at `path`. `allowed` are the hosts that requests may name, too."""
        self.path = path
        self._allowed = allowed
        self._sessions: dict[str, ServedClient] = {}
        self._clients: set[ServedClient] = set()
        """All clients, with or without a session."""
        self._ending: set[asyncio.Future[None]] = set()
        self.most_sessions = 0
        """Number of sessions kept, if fewer than `SESSIONS`."""
        self._is_over = False

    @property
    def is_stateless(self) -> bool:
        """Return whether the server has no sessions: it accepts only POST (2026-07-28)."""
        return False

    @property
    @abstractmethod
    def _is_modern(self) -> bool:
        """True if requests of 2026-07-28 get a response."""

    @abstractmethod
    def _new(self, *, one_stream: bool = False) -> ServedClient:
        """Return a new client."""

    @abstractmethod
    def _sender(self, post: ParsedPost, message: Request) -> ServedClient:
        """Return the client that sent a request of 2026-07-28, which has no session."""

    def _recorded(self, http_method: str, method: str, *, has_session: bool) -> HttpReply | None:
        """Return the response that a recording has to a request of this shape, in place of the server's own."""
        return None

    def _reply(self, request: HttpRequest, message: Request | Notification | None = None) -> Response | None:
        """Return the recorded response to a GET, a DELETE or a POST that no session answers; None if there is none."""
        name = request.headers.get(SESSION)
        client = None if name is None else self._sessions.get(name)
        if name is not None and (client is None or (request.method == "GET" and client.general.messages)):
            return None
        method = "" if message is None else message.method
        reply = self._recorded(request.method, method, has_session=client is not None)
        if reply is None:
            return None
        body = reply.body
        if reply.has_id and isinstance(message, Request):
            body = replaced(one_line(body), ("id",), message.id.encode())
        return Response(reply.status, body, headers=reply.headers)

    def _answered(self, client: ServedClient) -> None:
        """Take the end of the response to such a request."""
        return

    async def _wait_for_modern(self) -> None:
        """Wait until it is known whether requests of 2026-07-28 get a response."""
        return

    async def close(self) -> None:
        self._is_over = True
        for client in list(self._clients):
            self._end(client)
        await asyncio.gather(*self._ending)

    async def handle(self, request: HttpRequest) -> Response | None:
        headers = request.headers
        try:
            why = rejection_reason(headers.get("Host"), headers.get("Origin"), self._allowed)
            if why is not None:
                raise HttpRefusal(403, why)
            self._expect_more()
            path = unquote(request.target.partition("?")[0])
            if path == SSE:
                return await self._sse(request)
            if path == MESSAGES:
                return await self._message(request)
            if path not in (self.path, ENDPOINT, "/"):
                raise HttpRefusal(404, f"no endpoint at {path}: use {self.path}")
            if request.method == "POST":
                return await self._post(await read_post(request))
            reply = self._reply(request)
            if reply is not None and reply.status >= 400:
                return reply
            if self.is_stateless:
                raise HttpRefusal(405, "this server accepts only POST", Allow="POST")
            if request.method == "GET":
                return await self._get(request, self._client(request))
            if request.method == "DELETE":
                client = self._client(request)
                del self._sessions[headers[SESSION]]
                self._end(client)
                return reply or Response()
            raise HttpRefusal(405, f"MCP does not use {request.method}", Allow="GET, POST, DELETE")
        except HttpRefusal as refused:
            return refused.response

    async def _post(self, post: ParsedPost) -> Response | None:
        if not (post.takes(JSON) or post.takes(EVENTS)):
            raise HttpRefusal(406, f"Accept must name {JSON} and {EVENTS}")
        named_version = post.request.headers.get(VERSION)
        message = post.only
        if isinstance(message, Request) and modern_version(message) is not None:
            return await self._single(post, message)
        if isinstance(message, Request) and message.method == "initialize":
            return await self._begin(post)
        if isinstance(message, Notification) or (
            isinstance(message, Request) and SESSION not in post.request.headers
        ):
            reply = self._reply(post.request, message)
            if reply is not None:
                return reply
        if named_version is not None and named_version not in REVISIONS:
            raise HttpRefusal(
                400, f"unsupported {VERSION} {named_version}; supported: {', '.join(REVISIONS)}"
            )
        if named_version == MODERN and self._is_modern and SESSION not in post.request.headers:
            if post.ids or any(not hasattr(message, "method") for message in post.messages):
                raise HttpRefusal(400, f"not a request, or _meta lacks {META}protocolVersion", INVALID_PARAMS)
            return Response(status=202)
        client = self._client(post.request)
        if message is None and client.session.revision not in BATCHES:
            raise HttpRefusal(400, f"{client.session.revision} does not support batches", INVALID_REQUEST)
        return await self._answer(post, client, client.post(post.body, post.ids, post.messages))

    async def _begin(self, post: ParsedPost) -> Response | None:
        """Handle `initialize`, which opens a session if it succeeds."""
        client, name = self._new(), secrets.token_hex(16)
        stream = client.post(post.body, post.ids, post.messages)
        while client.session.waits and not stream.is_over:
            await stream.more(None)
        if client.session.revision is None:
            try:
                return await self._answer(post, client, stream, is_modern=True)
            finally:
                self._end(client)
        if client in self._clients:  # Its server may have ended meanwhile: then the session is unknown, too.
            self._sessions[name] = client
        if len(self._sessions) > (self.most_sessions or SESSIONS):
            self._end(self._sessions.pop(next(iter(self._sessions))))
        return await self._answer(post, client, stream, {SESSION: name})

    async def _single(self, post: ParsedPost, message: Request) -> Response | None:
        """Handle a request of 2026-07-28, which has no session."""
        await self._wait_for_modern()
        self._expect_more()
        if not self._is_modern:
            if (reply := self._reply(post.request, message)) is not None:
                return reply
            raise HttpRefusal(400, "Bad Request: Server not initialized")
        if (why := mismatch(post.request.headers, message)) is not None:
            raise HttpRefusal(400, why, HEADER_MISMATCH)
        client = self._sender(post, message)
        try:
            stream = client.post(post.body, post.ids, post.messages)
            return await self._answer(post, client, stream, is_modern=True)
        finally:
            self._answered(client)

    async def _answer(
        self,
        post: ParsedPost,
        client: ServedClient,
        stream: ClientStream,
        headers: dict[str, str] | None = None,
        *,
        is_modern: bool = False,
    ) -> Response | None:
        if not post.ids and not stream.messages:
            return Response(status=202, headers=headers)
        try:
            while not stream.is_over and not (post.takes(EVENTS) and (stream.messages or not is_modern)):
                # Until its first message, a modern stream may still become an error with a status.
                if not await stream.more(served.KEEPALIVE_SECONDS if post.takes(EVENTS) else None):
                    break
            if stream.is_over and not stream.messages and not stream.is_cancelled:
                raise HttpRefusal(404, "the session ended before the response", SESSION_NOT_FOUND)
            answers = [message for _, message in stream.messages if message.is_answer]
            if not post.takes(EVENTS) or (
                post.takes(JSON) and answers and len(stream.messages) == 1 and not stream.owed
            ):
                data = [message.data for message in answers]
                body = data[0] if post.only is not None else b"[" + b",".join(data) + b"]"
                status = _status(answers[0], is_modern=is_modern) if post.only is not None else 200
                return Response(status=status, body=body, content_type=JSON, headers=headers)
            preface = b"" if is_modern or stream.is_cancelled else priming_event(client, stream)
            await write_stream(post.request, stream, 0, preface, headers, is_numbered=not is_modern)
            return None
        except (asyncio.CancelledError, ConnectionError):
            if is_modern and not stream.is_over:
                client.hang_up(post.ids)
            raise

    async def _get(self, request: HttpRequest, client: ServedClient) -> Response | None:
        """Open the stream of messages that belong to no request, or resume a stream that was lost."""
        if EVENTS not in request.headers.get("Accept", ""):
            raise HttpRefusal(406, f"Accept must name {EVENTS}")
        last = request.headers.get("Last-Event-ID")
        if last is None:
            if client.general.reader is not None:
                raise HttpRefusal(409, "this session already has a GET stream")
            await write_stream(request, client.general, 0, priming_event(client, client.general))
            return None
        stream = client.stream_of(int(last)) if last.isascii() and last.isdigit() else None
        if stream is None:
            raise HttpRefusal(400, f"event {last} is unknown or no longer stored")
        await write_stream(request, stream, int(last))
        return None

    async def _sse(self, request: HttpRequest) -> Response | None:
        """Serve the stream of 2024-11-05, which carries all messages for one client."""
        if request.method != "GET":
            raise HttpRefusal(405, f"{SSE} accepts only GET", Allow="GET")
        client, name = self._new(one_stream=True), secrets.token_hex(16)
        self._sessions[name] = client
        preface = f"event: endpoint\ndata: {MESSAGES}?session_id={name}\n\n".encode()
        try:
            await write_stream(request, client.general, 0, preface, is_numbered=False)
            return None
        finally:
            self._sessions.pop(name, None)
            self._end(client)

    async def _message(self, request: HttpRequest) -> Response:
        """Handle a message of a client whose stream is `/sse`."""
        if request.method != "POST":
            raise HttpRefusal(405, f"{MESSAGES} accepts only POST", Allow="POST")
        client = self._sessions.get(parse_qs(request.target.partition("?")[2]).get("session_id", [""])[0])
        if client is None:
            raise HttpRefusal(404, "Session not found", SESSION_NOT_FOUND)
        post = await read_post(request)
        client.post(post.body, [], post.messages)
        return Response(202, b"Accepted", "text/plain; charset=utf-8")

    def _expect_more(self) -> None:
        if self._is_over:
            raise HttpRefusal(503, "the server is shutting down")

    def _end(self, client: ServedClient) -> None:
        """End a session. Its real server ends later: a client that waits for that would open its streams again."""
        self._clients.discard(client)
        client.close()
        if client.real_server is not None:
            self._end_soon(client.real_server.close())

    def _end_soon(self, closing: Coroutine[None, None, None]) -> None:
        """Close a connection to a server, for which no client waits."""
        ending = asyncio.ensure_future(closing)
        self._ending.add(ending)
        ending.add_done_callback(self._ending.discard)

    def _client(self, request: HttpRequest) -> ServedClient:
        name = request.headers.get(SESSION)
        if name is None:
            raise HttpRefusal(400, f"Bad Request: {SESSION} is missing; a session begins with initialize")
        client = self._sessions.get(name)
        if client is None:
            raise HttpRefusal(404, "Session not found", SESSION_NOT_FOUND)
        self._sessions[name] = self._sessions.pop(name)  # The least recently used one is first.
        return client


def _status(answer: Outgoing, *, is_modern: bool) -> int:
    if not is_modern and answer.request is not None:
        return 200
    (message,) = read_frame(Frame(0.0, "server", answer.data))
    if not isinstance(message, Failure):
        return 200
    return STATUS.get(message.code or 0, 200) if is_modern else 400
