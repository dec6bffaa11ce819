"""A client connection over HTTP, for all revisions.

Covers the streams of Streamable HTTP and their resumption (2025-03-26 to 2025-11-25), the two endpoints of
HTTP+SSE (2024-11-05), and the independent exchanges of 2026-07-28. Sources: MCP basic/transports of these
revisions; where they are open, the behaviour of the SDK clients.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from time import monotonic
from typing import TYPE_CHECKING, Any, TypeAlias

import aiohttp
from yarl import URL

from mcpspy.core.protocol.http_headers import EVENTS, JSON, SESSION
from mcpspy.core.protocol.message import (
    AnyMessage,
    Failure,
    Malformed,
    Notification,
    Result,
    read_frame,
    text,
)
from mcpspy.core.recording.decode import Frame
from mcpspy.core.recording.encode import CLIENT, SERVER
from mcpspy.core.redact.display import redacted_url
from mcpspy.errors import CannotStart, McpspyError
from mcpspy.io.client.aiohttp_session import check_reachable, client, reason
from mcpspy.io.client.base import (
    ConnectionEnded,
    ExchangeLost,
    ExchangeRefused,
    ReceivedMessage,
    ServerAddress,
    ServerConnection,
)
from mcpspy.io.client.http_exchange import BodyTooLarge, ClientExchange, ResponsePart, excerpt
from mcpspy.io.client.http_state import BodyState, HttpState
from mcpspy.io.recording.recorder import say

if TYPE_CHECKING:
    from mcpspy.io.client.oauth import OAuthClient
    from mcpspy.io.recording.recorder import Recorder

Receive: TypeAlias = Callable[[ReceivedMessage], Awaitable[None]]
"""Handles a message. Its exchange continues when this returns."""

LISTEN_TIMEOUT = 1.0
"""Seconds to wait for the GET stream to open. Messages that a server sends before that may be lost."""

ENDPOINT_TIMEOUT = 5.0
"""Seconds that an HTTP+SSE server has to name its endpoint."""

DELETE_TIMEOUT = 2.0
"""Seconds for the DELETE of a session, the time that a stdio server has to exit."""

RETRY = 1.0
"""Seconds before a stream is resumed, if the server does not specify them."""

SIGN_INS = 2
"""Number of new tokens for one request: a renewed one, and one that the user has signed in for."""

ATTEMPTS = 2
"""Number of consecutive attempts to resume a stream, as in the SDKs."""


async def open_http(
    address: ServerAddress,
    recorder: Recorder | None = None,
    numbers: Iterator[int] | None = None,
    oauth: OAuthClient | None = None,
    *,
    receive: Receive | None = None,
    is_reachable: bool = False,
) -> HttpConnection:
    """Connect to a server. Raise CannotStart if it cannot be reached or uses another transport.

    `receive` records and handles each message, which is then not among the events.
    """
    if not is_reachable:
        await check_reachable(address)
    connection = HttpConnection(address, client(address), recorder, numbers, oauth, receive=receive)
    if uses_sse(address):
        try:
            await connection.begin_sse()
        except BaseException:
            await connection.close()
            raise
    return connection


def uses_sse(address: ServerAddress) -> bool:
    """Return whether a server is reached by HTTP+SSE (2024-11-05)."""
    if address.is_sse is not None:
        return address.is_sse
    return URL(address.url).path.rstrip("/").lower().endswith("sse")


class HttpConnection(ServerConnection):
    """A client's session with one server, and its exchanges."""

    def __init__(
        self,
        address: ServerAddress,
        client: aiohttp.ClientSession,
        recorder: Recorder | None,
        numbers: Iterator[int] | None,
        oauth: OAuthClient | None = None,
        *,
        receive: Receive | None = None,
    ) -> None:
        super().__init__(address.shown, recorder)
        self._receive = receive
        self._oauth = oauth
        self._sign_in_failure = ""
        self._url = URL(address.url)
        self._client = client
        self._numbers = numbers or itertools.count(1)
        self._tasks: set[asyncio.Task[None]] = set()
        self._posts: dict[str, tuple[asyncio.Task[None], bool]] = {}
        """Requests in progress by id, each with whether its revision has no sessions."""
        self._max_body = address.max_body
        self._state = HttpState(dict(address.headers))
        self._messages_to: URL | None = None
        """HTTP+SSE: the endpoint for messages."""
        self._listening: asyncio.Task[None] | None = None

    @property
    def is_in_session(self) -> bool:
        """Return whether requests belong to a session that the server may forget."""
        return self._state.session is not None and not self._state.is_modern

    @property
    def stream(self) -> str | None:
        """Return the stream of the session with a handshake; None before one begins."""
        return self._state.stream

    def exchange_for(self, first: AnyMessage) -> ClientExchange | None:
        """Return the exchange in which to send a body; None if its first message closes another exchange instead."""
        is_closing, _ = self._closing(first)
        return None if is_closing else self._exchange(self._state.stream_of(first))

    async def send(self, data: bytes, exchange: ClientExchange | None = None) -> None:
        if self.ended is not None:
            return
        messages = read_frame(Frame(0.0, CLIENT, data))
        first = messages[0]
        is_closing, post = self._closing(first)
        if is_closing:
            if post is not None:
                post.cancel()
            return
        state = self._state
        if state.begins(first) and self._listening is not None and not state.is_sse:
            self._listening.cancel()
        if exchange is None:
            exchange = self._exchange(None if state.is_modern else state.stream)
        if not state.is_modern and state.stream is None:
            state.stream = exchange.stream
        body_state = BodyState(messages, None if state.is_modern else state.session)
        task = self._start(self._post(exchange, body_state, state.headers(first), data))
        for request_id in body_state.requests:
            self._posts[request_id] = task, state.is_modern
        if body_state.requests:
            await asyncio.sleep(0)  # The task records the request before this returns.
        else:
            await asyncio.wait([task])
            if isinstance(first, Notification) and first.method == "notifications/initialized":
                await self._listen()

    async def close(self) -> None:
        if self._client.closed:
            return
        try:
            for task in self._tasks:
                task.cancel()
            if self._tasks:
                await asyncio.wait(self._tasks)
            if self._state.session is not None:
                await self._delete()
        finally:
            await self._client.close()
            self._enqueue(ConnectionEnded(monotonic(), why="closed"))

    async def begin_sse(self) -> None:
        """Open the stream of HTTP+SSE and learn the endpoint for messages. Raise CannotStart."""
        found: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        exchange = self._exchange(None)
        self._state.stream = exchange.stream
        self._listening = self._start(self._read_sse(exchange, found))
        both: list[asyncio.Future[Any]] = [self._listening, found]
        await asyncio.wait(both, timeout=ENDPOINT_TIMEOUT, return_when=asyncio.FIRST_COMPLETED)
        if not found.done():
            why = (
                self.ended.why
                if self.ended is not None
                else f"it did not name an endpoint within {ENDPOINT_TIMEOUT:.0f} s"
            )
            raise CannotStart(f"{self.name} is not an HTTP+SSE server: {why}", "is it Streamable HTTP?")
        self._state.is_sse = True
        self._messages_to = self._url.join(URL(found.result()))
        if self._messages_to.origin() != self._url.origin():
            elsewhere = redacted_url(str(self._messages_to))
            raise CannotStart(f"{self.name} names an endpoint at another origin: {elsewhere}")

    def _start(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    def _exchange(self, stream: str | None) -> ClientExchange:
        number = next(self._numbers)
        name = stream or str(number)
        defers = self._receive is not None
        return ClientExchange(self._recorder, number, name, self._max_body, records_messages=not defers)

    def _closing(self, first: AnyMessage) -> tuple[bool, asyncio.Task[None] | None]:
        """Return whether a message is a cancellation by closing the exchange of a request, and that exchange.

        From 2026-07-28 on, closing the exchange cancels it, and servers do not accept the notification. Of HTTP+SSE,
        which the Python SDK 2 also serves with 2026-07-28, the exchange of a request has ended with 202.
        """
        if (
            not isinstance(first, Notification)
            or first.method != "notifications/cancelled"
            or self._state.is_sse
        ):
            return False, None
        post, is_modern = self._posts.get(text(first.body.request_id) or "", (None, self._state.is_modern))
        return is_modern, post

    async def _send(
        self,
        exchange: ClientExchange,
        method: str,
        url: URL,
        headers: dict[str, str],
        data: bytes | None = None,
    ) -> ClientExchange:
        """Send a request. If the server wants another token, get one and send the request again, in a new exchange."""
        oauth = self._oauth
        if oauth is None:
            await exchange.send_request(self._client, method, url, headers, data)
            return exchange
        if oauth.is_expiring:
            await self._renew_token(oauth, oauth.token, "")
        for renewals in range(SIGN_INS + 1):
            token = oauth.token
            bearer = {} if token is None else {"Authorization": f"Bearer {token}"}
            response = await exchange.send_request(self._client, method, url, headers | bearer, data)
            challenge = response.headers.get("WWW-Authenticate", "")
            if response.status != 401 and not (response.status == 403 and "insufficient_scope" in challenge):
                break
            if renewals == SIGN_INS or not await self._renew_token(oauth, token, challenge):
                break
            exchange.close(None)
            is_recorded = exchange.is_request_recorded
            exchange = self._exchange(exchange.stream)
            exchange.is_request_recorded = is_recorded
        return exchange

    async def _renew_token(self, oauth: OAuthClient, refused: str | None, challenge: str) -> bool:
        try:
            await oauth.renew(refused, challenge)
        except McpspyError as error:
            self._sign_in_failure = str(error)
            say(str(error))
            return False
        return True

    async def _post(
        self, exchange: ClientExchange, body_state: BodyState, headers: dict[str, str], data: bytes
    ) -> None:
        hung_up: str | None = CLIENT
        try:
            exchange = await self._send(exchange, "POST", self._messages_to or self._url, headers, data)
            await self._read_response(exchange, body_state)
            hung_up = None
        except BodyTooLarge as error:
            self._report_lost(body_state, exchange, str(error))
        except (aiohttp.ClientError, OSError) as error:
            hung_up = SERVER if exchange.status is not None else None
            if exchange.status is None:
                exchange.close(None, f"cannot reach {self.name}: {reason(error)}")
                self._report_lost(body_state, exchange, f"cannot reach {self.name}: {reason(error)}")
            elif body_state.pending and not await self._resume_stream(body_state):
                self._report_lost(body_state, exchange, f"the stream broke off: {reason(error)}")
        finally:
            exchange.close(hung_up)
            for request_id in body_state.requests:
                self._posts.pop(request_id, None)

    async def _read_response(self, exchange: ClientExchange, body_state: BodyState) -> None:
        response = exchange.response
        if (
            response.ok
            and (session := response.headers.get(SESSION)) is not None
            and body_state.is_initialize
        ):
            self._state.session = session
        if self._messages_to is not None and response.ok:
            return  # HTTP+SSE: the response arrives on the stream.
        body = b""
        async for event in exchange.events():
            if body_state.is_repeated(event) or event.data is None:
                exchange.record(event)
                continue
            body = event.data
            if response.content_type in (EVENTS, JSON) and (response.ok or _is_message(body)):
                await self._take(event, body_state, exchange)
            else:
                exchange.record(event)
        if not response.ok:
            self._report_refused(exchange, body_state, body)
        elif body_state.pending and not await self._resume_stream(body_state):
            why = "the stream ended" if response.content_type == EVENTS else f"HTTP {response.status}"
            self._report_lost(body_state, exchange, f"{why} without a response")

    async def _take(self, part: ResponsePart, body_state: BodyState, exchange: ClientExchange) -> None:
        """Pass a message to the receiver, or queue it and wait for space."""
        if part.data is None:
            return
        for message in read_frame(Frame(0.0, SERVER, part.data)):
            if isinstance(message, Result):
                self._state.learn(message, body_state.requests.get(message.id or ""))
            if isinstance(message, Result | Failure):
                body_state.settle(message, exchange.response.status)
        request, status = body_state.only_request_id, exchange.response.status
        received = ReceivedMessage(monotonic(), part.data, request, exchange.number, status, part.fields)
        if self._receive is not None:
            await self._receive(received)
        else:
            self._enqueue(received)
            await self._inbox.wait_for_space()

    def _report_refused(self, exchange: ClientExchange, body_state: BodyState, body: bytes) -> None:
        """Report an error status once for each request that it answers."""
        status, requests = exchange.response.status, body_state.requests
        # No batch is repeated.
        is_lost = status == 404 and body_state.session is not None and len(requests) < 2
        waiting: list[str | None] = [*body_state.pending]
        if is_lost or not requests:
            waiting = [body_state.only_request_id]
        body_state.pending.clear()
        is_page = exchange.response.content_type == "text/html"
        text_excerpt = f": {excerpt(body)}" if body and not is_page else ""
        why = f"HTTP {status} {exchange.response.reason or ''}".rstrip() + text_excerpt
        if status == 401 and self._sign_in_failure:
            why += f"; {self._sign_in_failure}"
        for request_id in waiting:
            self._enqueue(ExchangeRefused(monotonic(), request_id, exchange.number, status, why, is_lost))

    def _report_lost(self, body_state: BodyState, exchange: ClientExchange, why: str) -> None:
        """Report once that the pending requests get no response."""
        waiting: list[str | None] = [*body_state.pending] if body_state.requests else [None]
        body_state.pending.clear()
        for request_id in waiting:
            self._enqueue(ExchangeLost(monotonic(), request_id, exchange.number, why))

    async def _resume_stream(self, body_state: BodyState) -> bool:
        """Resume a broken stream. Return whether all pending requests were answered."""
        attempts = 0
        while body_state.pending and body_state.last_id is not None and attempts < ATTEMPTS:
            before = body_state.last_id
            await asyncio.sleep(RETRY if body_state.retry is None else body_state.retry / 1000)
            if await self._get(body_state) is None:
                return False
            attempts = 0 if body_state.last_id != before else attempts + 1
        return not body_state.pending

    async def _get(self, body_state: BodyState, opened: asyncio.Event | None = None) -> bool | None:
        """Read one GET stream to its end. Return True if it ended normally, None if the server offers none."""
        exchange = self._exchange(self._state.stream)
        headers = {**self._state.headers(None), "Accept": EVENTS}
        if body_state.last_id is not None:
            headers["Last-Event-ID"] = body_state.last_id
        hung_up: str | None = CLIENT
        try:
            exchange = await self._send(exchange, "GET", self._url, headers)
            response = exchange.response
            if opened is not None:
                opened.set()
            if not response.ok or response.content_type != EVENTS:
                hung_up = None
                if response.status == 404 and self._state.session is not None:
                    # No ExchangeRefused: the server has received the request, so it must not be sent again.
                    self._report_lost(body_state, exchange, "the server has ended the session")
                return None
            async for event in exchange.events():
                if body_state.is_repeated(event):
                    exchange.record(event)
                else:
                    await self._take(event, body_state, exchange)
            hung_up = None
        except BodyTooLarge as error:  # Resuming would receive the same event again.
            self._report_lost(body_state, exchange, str(error))
            return None
        except (aiohttp.ClientError, OSError) as error:
            hung_up = SERVER if exchange.status is not None else None
            exchange.close(hung_up, reason(error))
            return False
        finally:
            exchange.close(hung_up)
        return True

    async def _listen(self) -> None:
        """Open the stream for messages without a request, if there is a session."""
        if self._state.session is None or self._state.is_modern or self._messages_to is not None:
            return
        opened = asyncio.Event()
        self._listening = task = self._start(self._keep_listening(opened))
        waiting = asyncio.create_task(opened.wait())
        await asyncio.wait([task, waiting], timeout=LISTEN_TIMEOUT, return_when=asyncio.FIRST_COMPLETED)
        waiting.cancel()

    async def _keep_listening(self, opened: asyncio.Event) -> None:
        body_state, attempts = BodyState([], self._state.session), 0
        while attempts < ATTEMPTS:
            ended = await self._get(body_state, opened)
            if ended is None:
                return
            attempts = 0 if ended else attempts + 1
            await asyncio.sleep(RETRY if body_state.retry is None else body_state.retry / 1000)
        self._enqueue(
            ExchangeLost(monotonic(), None, None, "the stream for the server's own messages was lost")
        )

    async def _read_sse(self, exchange: ClientExchange, found: asyncio.Future[str]) -> None:
        """Read the HTTP+SSE stream to its end, which ends the connection."""
        body_state, hung_up, why = BodyState([], None), CLIENT, "closed"
        try:
            headers = {**self._state.headers(None), "Accept": EVENTS}
            exchange = await self._send(exchange, "GET", self._url, headers)
            response = exchange.response
            if not response.ok or response.content_type != EVENTS:
                why = f"HTTP {response.status} {response.reason or ''}".rstrip()
                return
            async for event in exchange.events():
                if event.kind == "endpoint" and not found.done():
                    found.set_result(event.text)
                else:
                    await self._take(event, body_state, exchange)
            hung_up, why = SERVER, "the server ended the stream"
        except BodyTooLarge as error:
            why = str(error)
        except (aiohttp.ClientError, OSError) as error:
            hung_up, why = SERVER, reason(error)
        finally:
            exchange.close(hung_up, why)
            self._enqueue(ConnectionEnded(monotonic(), why=why))

    async def _delete(self) -> None:
        """End the session, if the server allows that."""
        exchange = self._exchange(self._state.stream)
        try:
            async with asyncio.timeout(DELETE_TIMEOUT):
                await exchange.send_request(self._client, "DELETE", self._url, self._state.headers(None))
        except (aiohttp.ClientError, OSError, TimeoutError) as error:
            exchange.close(None, reason(error))
        finally:
            exchange.close(None)


def _is_message(body: bytes) -> bool:
    """Return whether the body of an error is a JSON-RPC message; `{"error": "invalid_token"}` (RFC 6750) is not."""
    return any(
        not isinstance(message, Malformed)
        and not (isinstance(message, Failure) and not bytes(message.raw_error).startswith(b"{"))
        for message in read_frame(Frame(0.0, SERVER, body))
    )
