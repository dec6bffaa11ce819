"""The shell of an exchange: its server, and its end.

Callbacks of the connections, and steps of the interception (`io.http.intercepted_exchange`), become events of
`core.exchange.machine`, one at a time (`io.http.event_queue`). The machine calls the methods here. `io.http.exchange`
adds the client's side.
"""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING, Any

from mcpspy.core.exchange.states import OVER
from mcpspy.core.protocol.http_headers import Location
from mcpspy.core.recording.encode import CLIENT, MCPSPY, SERVER
from mcpspy.io.http.event_queue import NO_SHELL
from mcpspy.io.http.intercepted_exchange import InterceptedExchange
from mcpspy.io.http.request import BUFFERED
from mcpspy.io.http.upstream_connection import HEAD_WAIT, UpstreamError
from mcpspy.io.recording.recorder import say

if TYPE_CHECKING:
    from mcpspy.core.exchange.heads import ResponseHead
    from mcpspy.core.recording.encode import Lines
    from mcpspy.io.http.upstream_connection import UpstreamConnection

IDEMPOTENT = frozenset("DELETE GET HEAD OPTIONS PUT TRACE".split())

UNREAD, UNCONNECTED = "unread data", "no connection"
"""Reasons for which nothing is read from a side."""


class ExchangeShell(InterceptedExchange):
    """One exchange and its connection to the server. The class above it creates the machine."""

    _connection: UpstreamConnection | None
    """The connection to the server, while the response is not over."""
    _repeatable: tuple[str, bytes, bytes, bool] | None = None
    """The request that was sent, while it may be sent again."""
    _connecting: asyncio.Task[UpstreamConnection] | None = None
    _ended: asyncio.Future[None] | None = None
    _unsent_parts: tuple[tuple[bytes, bool], ...] = ()
    """Parts of the request that wait for the connection."""
    _is_kept = False
    """True if the interception keeps it until it ends, because no client waits."""

    # The server's side.

    def response_begins(self, head: ResponseHead, data: bytes, keeps_alive: bool, is_last: bool) -> None:
        machine = self.machine
        if self._is_busy:
            self._take(machine.response_begins, head, data, keeps_alive, is_last)
        else:  # As `_take` does, for every response.
            self._is_busy = True
            machine.now = self._context.recorder.now()
            try:
                machine.response_begins(head, data, keeps_alive, is_last)
                self._end_event()
            except Exception as error:
                self._fail(error)
        if is_last:
            self._connection = None

    def response_data(self, data: bytes, is_last: bool) -> None:
        self._take(self.machine.response_data, data, is_last)
        if is_last:
            self._connection = None

    def server_waits(self, *, is_paused: bool) -> None:
        self._hold(CLIENT, UNREAD, is_held=is_paused)

    def server_gone(self, error: UpstreamError) -> None:
        connection, self._connection = self._connection, None
        assert connection is not None
        self._hold(CLIENT, UNREAD, is_held=False)  # It reads no more.
        # A request that a server did not begin to answer, because it closed an idle connection, is sent again only if
        # its method is idempotent (RFC 9110, 9.2.2).
        if self._repeatable is not None and connection.is_stale:
            self._connect(*self._repeatable)
        else:
            self._take(self.machine.server_gone, str(error), True, connection.lacks)

    def _connect(self, *asked: Any) -> None:
        self._repeatable, self._unsent_parts = None, ()
        self._connecting = asyncio.ensure_future(self._context.client.connect())
        self._connecting.add_done_callback(partial(self._connected, asked))

    def _connected(self, asked: tuple[Any, ...], connecting: asyncio.Task[UpstreamConnection]) -> None:
        self._connecting = None
        self._hold(CLIENT, UNCONNECTED, is_held=False)
        if connecting.cancelled() or self.machine.state is OVER:
            if not (connecting.cancelled() or connecting.exception()):
                connecting.result().abandon()
            return
        error = connecting.exception()
        if isinstance(error, UpstreamError):
            self._context.connect_failed(error)
            self._take(self.machine.server_gone, str(error), False)
            return
        try:
            self._use(connecting.result(), *asked)
            unsent, self._unsent_parts = self._unsent_parts, ()
            for part in unsent:
                self.to_server(*part)
        except Exception as bug:
            self._fail(bug)

    def _use(
        self, connection: UpstreamConnection, method: str, head: bytes, body: bytes, is_last: bool
    ) -> None:
        self._connection = connection
        connection.ask(self, method, head, body, is_last=is_last)
        if not self._is_plain:
            if (
                self.machine.half_closed_at is not None and self._connection is connection
            ):  # The end follows the request.
                connection.half_close()
            if self._holds and (CLIENT, UNREAD) not in self._holds:
                self._regulate()

    # The end.

    def client_gone(self) -> None:
        """End the exchange at once, because the client is lost, or the proxy stops."""
        self._is_gone, self._is_plain = True, False
        connection = self._connection
        self.close_server()
        self._events = ()
        if isinstance(self._waiting, asyncio.Handle):
            self._waiting.cancel()
            self._stop_waiting()
        lacks = "" if connection is None else connection.lacks
        self._take(self.machine.client_gone, self._loser, lacks)

    @property
    def _loser(self) -> str:
        """The side that ends an exchange whose client is gone."""
        return MCPSPY

    def _fail(self, error: BaseException) -> None:
        """End the exchange because of a bug in mcpspy."""
        say(f"a bug in mcpspy: {type(error).__name__}: {str(error)!a}")
        self._stop_waiting()
        self._events = ()
        self.close_server()
        self._take(self.machine.client_gone, MCPSPY)

    def ended(self) -> asyncio.Future[None]:
        """Return a future that is done at the end."""
        if self._ended is None:
            self._ended = asyncio.get_running_loop().create_future()
            self._is_plain = False
            self._settle()
        return self._ended

    def _keep(self) -> None:
        self._is_kept, self._is_plain = True, False
        self._interception.keep_exchange(self)

    def _settle(self) -> None:
        """Free what an exchange has that is over."""
        if self.machine.state is not OVER or self._is_busy:
            return
        self.machine.shell = NO_SHELL
        if self._ended is not None and not self._ended.done():
            self._ended.set_result(None)
        if self._is_kept:
            self._interception.drop_exchange(self)
        self._forget_head()
        if self._is_gone:
            self._end_client()

    def _end_client(self) -> None:
        """End the connection of a client that is gone."""

    # The calls of the machine.

    def record(self, lines: Lines, size: int) -> None:
        if not self._context.record_at_once(lines, size):
            self._wait_for(self._context.record(lines, size))

    def ask(self, method: str, head: bytes, body: bytes, is_last: bool) -> None:
        if not self._is_plain and self._is_gone:
            return
        connection = self._context.client.take()
        if connection is None:
            self._connect(method, head, body, is_last)
            return
        if not body and is_last and method in IDEMPOTENT:
            self._repeatable = method, head, body, is_last
        self._use(connection, method, head, body, is_last)

    def to_server(self, data: bytes, is_last: bool) -> None:
        if self._connection is not None:
            self._connection.send(data, is_last=is_last)
        elif self._connecting is not None:
            self._unsent_parts += ((data, is_last),)
            if sum(len(part) for part, _ in self._unsent_parts) > BUFFERED:
                self._hold(CLIENT, UNCONNECTED, is_held=True)

    def half_close_server(self) -> None:
        self._is_plain = False
        if self._connection is not None:
            self._connection.half_close()

    def close_server(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.abandon()
        if self._connecting is not None:
            self._connecting.cancel()

    def wait(self) -> None:
        waited = self.machine.waited
        if self._connection is not None and self._connection.has_waited:
            self._events, self._is_plain = (waited, *self._events), False
        else:
            asyncio.get_running_loop().call_later(HEAD_WAIT, self._take, waited)

    def report_once(self, what: str, value: object, keeps_method: bool) -> None:
        if what == "encoding":
            self._context.report_encoding(str(value))
        elif what == "unrecorded":
            self._context.report_unrecorded(str(value))
        elif isinstance(value, Location):
            self._context.report_redirect(value, keeps_method=keeps_method)

    def _regulate(self) -> None:
        """Read from both sides what no reason holds."""
        if self._connection is not None:
            self._connection.pause_reading(is_paused=any(side == SERVER for side, _ in self._holds))
