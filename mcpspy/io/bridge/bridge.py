"""Connects a host that uses stdio to a server that uses HTTP: the messages of both directions.

Forwards the lines of stdin unchanged and writes each received message as one line of stdout. A request that
cannot get a response gets an error with the reason. If the server loses the session, the bridge starts a new
one with the host's own `initialize`. HTTP is handled by `io.client`, and decisions on messages by
`io.bridge.interception`.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable, Coroutine, Iterable

from mcpspy.core.era.commands import AUTO, SendToServer
from mcpspy.core.jsontools import one_line, replaced
from mcpspy.core.protocol import responses
from mcpspy.core.protocol.message import AnyMessage, Failure, Notification, Request, Result, read_frame, text
from mcpspy.core.protocol.spec import CLIENT, INTERNAL_ERROR, SERVER
from mcpspy.core.recording.decode import Frame
from mcpspy.core.redact.display import redacted_text
from mcpspy.errors import CannotStart, McpspyError
from mcpspy.io.bridge.interception import BridgeInterception
from mcpspy.io.bridge.translation import Translation
from mcpspy.io.client import (
    ConnectionEnded,
    ExchangeLost,
    ExchangeRefused,
    ReceivedMessage,
    ServerAddress,
    ServerConnection,
)
from mcpspy.io.client.base import INITIALIZE_ID, INITIALIZED, with_mcpspy_id
from mcpspy.io.client.http import HttpConnection, open_http, uses_sse
from mcpspy.io.client.http_exchange import ClientExchange
from mcpspy.io.client.oauth import OAuthClient, OAuthOptions
from mcpspy.io.extras import install_command
from mcpspy.io.intercept.interception import InterceptionOptions
from mcpspy.io.recording.recorder import Recorder, RecordingTarget, say

SUBSCRIPTION = "subscriptions/listen"
"""A request that stays open by design (2026-07-28), so the bridge does not wait for its response at the end."""

DRAIN = 10.0
"""Seconds to wait for responses after the host closed stdin. Hosts send SIGTERM after two."""

HANDSHAKE = 60.0
"""Seconds for the response to an `initialize` that the bridge repeats: hosts wait as long for a request."""

UNAUTHORIZED, NOT_FOUND = 401, 404

MAX_QUEUED = 1 << 20
"""Bytes that may be queued for the host before the server has to wait, and for the server before the host has to."""


class BridgeOptions(RecordingTarget):
    def __init__(self, address: ServerAddress, name: str) -> None:
        super().__init__()
        self.address = address
        self.name = name
        self.interception = InterceptionOptions(self.redaction.unsafe_regex)
        self.oauth: OAuthOptions | None = OAuthOptions()
        """None if the server's demand to sign in is only reported."""
        self.translate = AUTO
        """The policy for translation between the eras of the host and of the server: one of `core.era.commands.POLICIES`."""


class BridgedRequest:
    def __init__(self, request: Request, data: bytes) -> None:
        self.data = data
        self.is_subscription = request.method == SUBSCRIPTION
        self.was_repeated = False


class Bridge:
    """Forwards the messages of one host over its current connection."""

    def __init__(
        self,
        options: BridgeOptions,
        recorder: Recorder,
        write: Callable[[bytes], None],
        oauth: OAuthClient | None = None,
    ) -> None:
        """Create a bridge. `write` sends a message to the host; `oauth` signs in if the server requires it."""
        self._address = options.address
        self._oauth = oauth
        self._recorder = recorder
        self._write = write
        self._numbers = itertools.count(1)
        self._connection: HttpConnection | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._initialize: bytes | None = None
        self._handshake: asyncio.Future[None] | None = None
        self._renewed_at = 0.0
        self._pending: dict[str, BridgedRequest] = {}
        """Pending requests by id, as JSON text."""
        self._sending: asyncio.Task[None] | None = None
        """The last message that is being sent."""
        self._lock = asyncio.Lock()
        self._may_read = asyncio.Event()
        self._may_read.set()
        self._idle = asyncio.Event()
        self._idle.set()
        self._ready = asyncio.Event()
        self._ready.set()
        self.interception = BridgeInterception(
            recorder,
            options.interception,
            options.name,
            to_host=lambda data: write(one_line(data)),
            to_server=self._send_later,
            exchange_for=self._exchange_for,
            is_connected=self._is_connected,
        )
        self._translation = Translation(
            self, recorder, options.translate, has_handshake=uses_sse(options.address)
        )

    async def forward(self, data: bytes) -> None:
        """Forward a line of the host. Returns when the next one may be read."""
        messages = read_frame(Frame(0.0, CLIENT, data))
        requests = _requests(messages)
        await self._ready.wait()  # Later messages belong to the session that the server will name.
        translation = self._translation
        if translation.is_active and len(messages) > 1:
            # 2026-07-28 has no batches, 2025-03-26 allows either form.
            for message in messages:
                await self.forward(message.data)
            return
        if _initializes(requests) and not translation.is_active:
            self._initialize = data
        try:
            async with self._lock:
                connection = await self._connected(initializes=not _initializes(requests))
                exchange = translation.exchange_for(connection, messages[0])
                fields = translation.fields(messages[0], exchange)
                self._forget_cancelled(messages)
                if fields is None:
                    await connection.send(data)
                    return
        except McpspyError as error:
            self._fail(requests, error)
            return
        self.interception.take(CLIENT, data, fields, exchange=exchange)
        if self._sending is not None:
            await asyncio.wait(
                [self._sending]
            )  # Tasks get the lock in order, so earlier ones have ended, too.
        await self.interception.wait_for_room(CLIENT)

    def _forget_cancelled(self, messages: Iterable[AnyMessage]) -> None:
        """Expect no response to requests that the host gives up.

        Servers should not send one (basic/utilities/cancellation), and servers on the TypeScript SDK do not: `drain`
        would wait for it, until the host kills the bridge.
        """
        for message in messages:
            if isinstance(message, Notification) and message.method == "notifications/cancelled":
                self._pending.pop(text(message.body.request_id) or "", None)
                self._update_state()

    def _send_later(self, data: bytes, exchange: ClientExchange | None) -> None:
        """Send a message of the host, or of a viewer, to the server."""
        commands = self._translation.client(data, exchange)
        is_sent = any(isinstance(each, SendToServer) and each.carrier is not None for each in commands)
        if not is_sent:  # It waits, or is answered now.
            self._expect(_requests(read_frame(Frame(0.0, CLIENT, data))), data)
        self._translation.run(commands)

    def _expect(self, requests: Iterable[Request], data: bytes) -> None:
        for request in requests:
            self._pending[request.id] = BridgedRequest(request, data)
        self._update_state()

    def post(self, data: bytes, exchange: ClientExchange | None) -> None:
        self._sending = self._start(self._send(data, exchange))

    async def _send(self, data: bytes, exchange: ClientExchange | None) -> None:
        requests = _requests(read_frame(Frame(0.0, CLIENT, data)))
        async with self._lock:
            is_own = exchange is None
            if _initializes(requests):
                self._initialize = data
            try:
                connection = await self._connected(initializes=not _initializes(requests))
            except McpspyError as error:
                self._recorder.note("error", text=str(error))
                for request in requests:
                    self._translation.failed(request.id, str(error), None)
                return
            self._expect((each for each in requests if not is_own or each.id in self._pending), data)
            if self._initialize is data and not is_own:
                self._ready.clear()
            if exchange is None:
                exchange = self._translation.own_exchange(connection, data)
            await connection.send(data, exchange)

    def give(self, data: bytes) -> None:
        self._write(one_line(data))

    def _fail(self, requests: list[Request], error: McpspyError) -> None:
        """Answer requests that cannot be sent."""
        self._recorder.note("error", text=str(error))
        for request in requests:
            self.fail(request.id, str(error))

    def _exchange_for(self, data: bytes) -> ClientExchange | None:
        """Return the exchange of an injected message; None if it has none: it only closes another one."""
        assert self._connection is not None
        return self._translation.exchange_for(self._connection, read_frame(Frame(0.0, CLIENT, data))[0])

    def _is_connected(self) -> bool:
        return self._connection is not None and self._connection.ended is None

    async def drain(self) -> None:
        """Wait for decisions and responses after the host has closed stdin."""
        await self.interception.wait_for_scripts(CLIENT)
        self.interception.end_side(CLIENT)
        if self._sending is not None:
            await asyncio.wait([self._sending])
        try:
            await asyncio.wait_for(self._idle.wait(), DRAIN)
        except TimeoutError:
            left = sum(not request.is_subscription for request in self._pending.values())
            say(f"{left} requests still had no response {DRAIN:.0f} s after stdin was closed")
        await self.interception.wait_for_scripts(SERVER)

    async def close(self) -> None:
        self._pending.clear()
        self._translation.close()
        if self._connection is not None:
            await self._connection.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def pause(self, *, is_full: bool) -> None:
        """Pause or resume reading from the server, depending on whether the host reads."""
        if is_full:
            self._may_read.clear()
        else:
            self._may_read.set()

    async def _connected(self, *, initializes: bool) -> HttpConnection:
        """Return the connection; open a new one if there is none or it has ended."""
        if self._connection is None or self._connection.ended is not None:
            if self._connection is not None:  # Its sockets are open: HTTP+SSE ends with the stream alone.
                await self._connection.close()
            self._connection = await open_http(
                self._address, self._recorder, self._numbers, self._oauth, receive=self._receive_message
            )
            self._start(self._receive(self._connection))
            if self._translation.is_active:  # The host's handshake was with mcpspy.
                self._initialize = self._translation.initialize or None
            if self._initialize is not None and initializes:
                await self._begin_session(self._connection)
        return self._connection

    async def _begin_session(self, connection: ServerConnection) -> None:
        """Initialize a session as the host did. Raise CannotStart if the server refuses."""
        assert self._initialize is not None
        self._handshake = asyncio.get_running_loop().create_future()
        await connection.send(with_mcpspy_id(self._initialize))
        try:
            await asyncio.wait_for(self._handshake, HANDSHAKE)
        except (CannotStart, TimeoutError) as error:
            self._connection = None
            await connection.close()
            if isinstance(error, CannotStart):
                raise
            why = f"no response to initialize within {HANDSHAKE:.0f} s, in place of the session that was lost"
            raise CannotStart(f"{self._address.shown}: {why}") from None
        finally:
            self._handshake = None
        await connection.send(INITIALIZED)
        if connection.ended is not None:
            raise CannotStart(f"{self._address.shown}: {connection.ended.why or 'the connection ended'}")
        self._renewed_at = asyncio.get_running_loop().time()
        self._translation.restored()

    async def _renew(self, id: str, lost: ExchangeRefused) -> None:  # noqa: A002
        """Send a request again in a new session, because the server has lost the old one."""
        async with self._lock:
            try:
                connection = await self._connected(initializes=True)
                if lost.at > self._renewed_at:  # Only the first of several requests starts a session.
                    await self._begin_session(connection)
                    say(f"{self._address.shown} ended the session; started a new one")
            except McpspyError as error:
                self.fail(id, str(error))
                return
            if (request := self._pending.get(id)) is not None:
                await connection.send(request.data)

    async def _receive(self, connection: ServerConnection) -> None:
        async for event in connection:
            if isinstance(event, ExchangeRefused | ExchangeLost):
                self._handle_failure(event)
            elif isinstance(event, ConnectionEnded):
                why = event.why or "the connection ended"
                self._end_handshake(why)
                self._translation.lost(f"{self._address.shown}: {why}")
                for id in list(self._pending):  # noqa: A001
                    self.fail(id, f"{self._address.shown}: {why}")

    async def _receive_message(self, event: ReceivedMessage) -> None:
        """Forward a message. Returns when the next one may be read."""
        self._forward_to_host(event)
        await self._may_read.wait()
        await self.interception.wait_for_room(SERVER)

    def _forward_to_host(self, event: ReceivedMessage) -> None:
        data, fields = event.data, event.fields or {}
        if event.status >= 400 and event.request is not None:
            data = replaced(data, ("id",), event.request.encode())
        for message in read_frame(Frame(0.0, SERVER, data)):
            if isinstance(message, Result | Failure) and message.id is not None:
                if message.id == INITIALIZE_ID:
                    self.interception.record(SERVER, event.data, fields)
                    self._end_handshake(
                        f"refused initialize: {message.text}" if isinstance(message, Failure) else None
                    )
                    return
                if event.status == NOT_FOUND and self._can_renew(self._pending.get(message.id)):
                    self.interception.record(SERVER, event.data, fields)
                    return  # An ExchangeRefused event follows.
        self._translation.server(event, data, fields)

    def settle(self, message: AnyMessage) -> None:
        if isinstance(message, Result | Failure) and message.id is not None:
            self._pending.pop(message.id, None)
            self._update_state()

    def _handle_failure(self, event: ExchangeRefused | ExchangeLost) -> None:
        why = event.why
        if isinstance(event, ExchangeRefused) and event.status == UNAUTHORIZED and self._oauth is None:
            is_refused = self._address.has_authorization
            why += "; the Authorization header was refused" if is_refused else f"; {_sign_in_advice()}"
        if event.request == INITIALIZE_ID:
            self._end_handshake(why)
            return
        request = self._pending.get(event.request or "")
        if event.request is None or (request is None and not self._translation.has(event.request)):
            say(f"{self._address.shown}: {why}")
        elif (
            isinstance(event, ExchangeRefused)
            and event.is_session_lost
            and request is not None
            and self._can_renew(request)
        ):
            request.was_repeated = True
            self._start(self._renew(event.request, event))
        else:
            status = event.status if isinstance(event, ExchangeRefused) else None
            self._translation.failed(event.request, f"{self._address.shown}: {why}", status)

    def _can_renew(self, request: BridgedRequest | None) -> bool:
        """Return whether a request that got a 404 can be sent again in another session."""
        is_in_session = self._connection is not None and self._connection.is_in_session
        return request is not None and not request.was_repeated and bool(self._initialize) and is_in_session

    def _end_handshake(self, why: str | None) -> None:
        """End the handshake that the bridge started; `why` is the reason if it failed."""
        if self._handshake is not None and not self._handshake.done():
            if why is None:
                self._handshake.set_result(None)
            else:
                self._handshake.set_exception(CannotStart(f"{self._address.shown}: {why}"))

    def fail(self, id: str, why: str) -> bytes:  # noqa: A002
        """Answer a request of the host with an error. Return it; empty for a request of a viewer."""
        self._pending.pop(id, None)
        self._update_state()
        if self.interception.failed(id, why):
            return b""
        data = responses.error(id.encode(), INTERNAL_ERROR, f"mcpspy bridge: {redacted_text(why)}")
        self._write(data)
        return data

    def _update_state(self) -> None:
        if all(request.is_subscription for request in self._pending.values()):
            self._idle.set()
        else:
            self._idle.clear()
        if not any(request.data is self._initialize for request in self._pending.values()):
            self._ready.set()

    def _start(self, work: Coroutine[None, None, None]) -> asyncio.Task[None]:
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task


def _requests(messages: Iterable[AnyMessage]) -> list[Request]:
    return [message for message in messages if isinstance(message, Request)]


def _initializes(requests: Iterable[Request]) -> bool:
    return any(request.method == "initialize" for request in requests)


def _sign_in_advice() -> str:
    return f"sign in with the extra oauth ({install_command('oauth')}), or send a token with --bearer-env VARIABLE"
