"""The shell of an exchange: its events, its server, and its interception.

Callbacks of the connections, and steps of the interception, become events of `core.exchange.machine`, which calls the
methods here. While one of them takes long (a large write, the turn of another exchange), the calls after it and the
next events wait, and nothing more is read. `io.http.exchange` adds the client's side.
"""

from __future__ import annotations

import asyncio
from collections import deque
from functools import partial
from typing import TYPE_CHECKING, Any, cast

from mcpspy.core.exchange.events import Taken
from mcpspy.core.exchange.states import OVER
from mcpspy.core.intercept import actions
from mcpspy.core.intercept.heads import HttpHead
from mcpspy.core.protocol.http_headers import Location
from mcpspy.core.recording.encode import CLIENT, MCPSPY, SERVER
from mcpspy.io.http.body_stream import BUFFERED
from mcpspy.io.http.interception import PendingHead
from mcpspy.io.http.upstream_connection import HEAD_WAIT, UpstreamError
from mcpspy.io.recording.recorder import say

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from mcpspy.core.exchange.heads import ResponseHead
    from mcpspy.core.exchange.machine import ExchangeMachine
    from mcpspy.core.exchange.shell import Shell
    from mcpspy.core.framing import SseEvent
    from mcpspy.core.protocol.http_headers import Headers
    from mcpspy.core.recording.encode import Lines, Value
    from mcpspy.io.http.context import ExchangeContext
    from mcpspy.io.http.interception import HttpInterception
    from mcpspy.io.http.upstream_connection import UpstreamConnection

IDEMPOTENT = frozenset("DELETE GET HEAD OPTIONS PUT TRACE".split())

UNREAD, UNCONNECTED, WAITING = "unread data", "no connection", "waiting calls"
"""Reasons for which nothing is read from a side."""

NO_SHELL = cast("Shell", None)
"""The shell of an exchange that is over. Otherwise they refer to each other: the cycle would wait for the collector."""


class _Later:
    """The shell of an exchange while something takes long: keeps the calls."""

    def __init__(self, shell: ExchangeShell) -> None:
        self._shell = shell
        self.calls: deque[Callable[[], object]] = deque()

    def __getattr__(self, name: str) -> Callable[..., None]:
        method = getattr(self._shell, name)
        return lambda *arguments: self.calls.append(partial(method, *arguments))

    def decide(self, *arguments: Any) -> bool:
        self.calls.append(partial(self._shell.decide_later, *arguments))
        return False


class ExchangeShell:
    """One exchange and its connection to the server. The class above it creates the machine."""

    machine: ExchangeMachine
    _context: ExchangeContext
    _interception: HttpInterception
    _is_plain: bool
    """False once there is more to do after an event than to end the exchange: then nothing of what follows is asked."""
    _is_busy = False
    """True while the machine takes an event, or its calls wait."""
    _is_gone = False
    """True once the client is lost."""
    _connection: UpstreamConnection | None = None
    """The connection to the server, while the response is not over."""
    _repeatable: tuple[str, bytes, bytes, bool] | None = None
    """The request that was sent, while it may be sent again."""
    _connecting: asyncio.Task[UpstreamConnection] | None = None
    _waiting: asyncio.Future[Any] | asyncio.Handle | None = None
    """The work for which the calls wait."""
    _is_deciding = False
    _pending_head: tuple[HttpHead, PendingHead] | None = None
    _ended: asyncio.Future[None] | None = None
    _events: tuple[Callable[[], None], ...] = ()
    """Events that wait for the calls."""
    _steps: tuple[actions.ExchangeStep, ...] = ()
    """Steps of the interception that are not taken yet."""
    _unsent_parts: tuple[tuple[bytes, bool], ...] = ()
    """Parts of the request that wait for the connection."""
    _holds: frozenset[tuple[str, str]] = frozenset()
    """The sides from which nothing is read, each with the reason."""
    _is_kept = False
    """True if the interception keeps it until it ends, because no client waits."""

    # The route of the interception.

    is_get = False
    """True if the client has sent no message."""

    @property
    def fields(self) -> dict[str, Value]:
        """The fields of this exchange's entries in the recording."""
        return self.machine.fields

    @property
    def stream(self) -> str:
        """The session to which it belongs."""
        return self.machine.stream

    @property
    def lists_tools(self) -> bool:
        return self.machine.is_listing

    @property
    def is_answered_here(self) -> bool:
        """Return whether its client waits here for its response."""
        return self.machine.is_answered_here

    def deliver(self, step: actions.ExchangeStep) -> None:
        """Execute a step, in order. Never waits."""
        self._steps += (step,)
        if len(self._steps) == 1 and not self._is_deciding:
            self._interception.wake_later(self._take_steps)

    def _take_steps(self) -> None:
        steps, self._steps = self._steps, ()
        for step in steps:
            self._take(self._execute, step)

    def _execute(self, step: actions.ExchangeStep) -> None:
        machine = self.machine
        match step:
            case actions.Inject(_, data, exchange, _, _):
                (machine.answer if exchange is self else machine.insert)(data)
            case actions.HeadDecided(headers, _):
                machine.head_decided(headers)
            case actions.Disconnect(_):
                machine.disconnect()
            case actions.AbortUpstream(_):
                machine.abort()
            case _:
                machine.decided(step)

    def release_all(self) -> None:
        """Forward all held messages unchanged."""
        for ticket, data in self.machine.held():
            self.deliver(actions.Forward("", data, self, ticket))

    def inspect(self) -> None:
        """Decide on all events of this stream from the next one on."""
        self._take(self.machine.inspect)

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

    # Events.

    def _take(self, event: Callable[..., None], *arguments: Any) -> None:
        """Let the machine take an event, unless it has to wait."""
        machine = self.machine
        if self._is_busy:
            self._events += (partial(event, *arguments),)
            self._is_plain = False
            if self._waiting is not None and event in (machine.request_data, machine.response_data):
                self._hold(CLIENT if event == machine.request_data else SERVER, WAITING, is_held=True)
            return
        self._is_busy = True
        machine.now = self._context.recorder.now()
        try:
            event(*arguments)
            self._end_event()
        except Exception as error:
            self._fail(error)

    def _end_event(self) -> None:
        """Take the events that have waited for one."""
        if self._is_plain:
            self._is_busy = False
            if self.machine.state is OVER:
                self.machine.shell = NO_SHELL
            return
        while self._events and self._waiting is None:
            event, *events = self._events
            self._events = tuple(events)
            self.machine.now = self._context.recorder.now()
            event()
        if self._waiting is None:
            self._is_busy = False
            self._hold(CLIENT, WAITING, is_held=False)
            self._hold(SERVER, WAITING, is_held=False)
            self._settle()

    def _wait_for(self, work: Awaitable[None], done: Callable[[], None] | None = None) -> None:
        """Let the next calls wait for what takes long, and what is done then for those calls."""
        self._waiting = asyncio.ensure_future(work)
        self._waiting.add_done_callback(lambda work: self._has_waited(work, done))
        self._put_off()

    def _put_off(self) -> None:
        self._is_plain = False
        if not isinstance(self.machine.shell, _Later):
            self.machine.shell = cast("Shell", _Later(self))

    def _has_waited(self, work: asyncio.Future[None], done: Callable[[], None] | None) -> None:
        if not work.cancelled() and (error := work.exception()) is not None:
            self._fail(error)
        else:
            self._continue(None if self._is_gone else done)

    def _continue(self, done: Callable[[], None] | None) -> None:
        """Make the calls that have waited, then take the events that have."""
        self._waiting, later = None, self.machine.shell
        assert isinstance(later, _Later)
        self.machine.now = self._context.recorder.now()
        if done is not None:
            later.calls.append(done)
        try:
            while later.calls and self._waiting is None:
                later.calls.popleft()()
            if self._waiting is None:
                self.machine.shell = cast("Shell", self)
                self._end_event()
        except Exception as error:
            self._fail(error)

    def _stop_waiting(self) -> None:
        self._waiting, self._is_busy, self.machine.shell = None, False, cast("Shell", self)

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

    def take_turn(self, long_step: Callable[[], None] | None) -> None:
        proceed = self.machine.proceed
        if long_step is not None:
            self._wait_for(asyncio.to_thread(long_step), proceed)
            return
        self._waiting = asyncio.get_running_loop().call_soon(self._continue, proceed)
        self._put_off()

    def pause(self, side: str, is_paused: bool) -> None:
        self._hold(side, "the scripts decide", is_held=is_paused)

    def report_once(self, what: str, value: object, keeps_method: bool) -> None:
        if what == "encoding":
            self._context.report_encoding(str(value))
        elif what == "unrecorded":
            self._context.report_unrecorded(str(value))
        elif isinstance(value, Location):
            self._context.report_redirect(value, keeps_method=keeps_method)

    # The calls about the interception.

    def intercept(self) -> None:
        self._interception.add_exchange(self)

    def _keep(self) -> None:
        self._is_kept, self._is_plain = True, False
        self._interception.keep_exchange(self)

    def leave(self, is_settled: bool) -> None:
        interception = self._interception
        (interception.remove_delivered if is_settled else interception.remove_exchange)(self)

    def open_stream(self, is_inspected: bool) -> None:
        routes = self._interception.routes
        if is_inspected:
            routes.remove_uninspected(self)
            routes.open_stream(self)
        else:
            routes.add_uninspected(self)

    def close_stream(self) -> None:
        routes = self._interception.routes
        routes.remove_uninspected(self)
        routes.close_stream(self)

    def decide(
        self, side: str, data: bytes, raw: bytes, event: SseEvent | None, fields: dict[str, Value]
    ) -> bool:
        self._is_deciding = True
        try:
            late = self._interception.take(
                self, side, data, fields, lambda ticket: self.machine.taken(Taken(ticket, raw, event))
            )
        finally:
            self._is_deciding = False
        if late is not None:
            self._wait_for(late, self._take_decision)
            return False
        self._execute_steps()
        return True

    def decide_later(self, *arguments: Any) -> None:
        """Let the interception decide on a message that has waited."""
        if self.decide(*arguments):
            self.machine.proceed()

    def _take_decision(self) -> None:
        self._execute_steps()
        self.machine.proceed()

    def _execute_steps(self) -> None:
        """Execute the steps that a decision has delivered, after its entry was recorded."""
        self.machine.now = self._context.recorder.now()
        steps, self._steps = self._steps, ()
        for step in steps:
            self._execute(step)

    def decide_head(self, headers: Headers, status: int | None) -> None:
        def decided(step: actions.HeadDecided) -> None:
            self._forget_head()
            self._take(self.machine.head_decided, step.headers)

        waiting = PendingHead(self.fields, headers, decided)
        side = CLIENT if status is None else SERVER
        prepared, now = self.machine.prepared, self._interception.now()
        head = HttpHead(0, now, side, waiting, prepared.head.method, prepared.target, headers, status)
        self._pending_head, self._is_plain = (head, waiting), False
        self._interception.decide_head(head, waiting)

    def _forget_head(self) -> None:
        pending, self._pending_head = self._pending_head, None
        if pending is not None:
            self._interception.forget_head(*pending)

    # Flow control.

    def _hold(self, side: str, why: str, *, is_held: bool) -> None:
        """Read nothing from a side for this reason, or no longer for this one."""
        hold = side, why
        if is_held != (hold in self._holds):
            self._holds, self._is_plain = self._holds | {hold} if is_held else self._holds - {hold}, False
            self._regulate()

    def _regulate(self) -> None:
        """Read from both sides what no reason holds."""
        if self._connection is not None:
            self._connection.pause_reading(is_paused=any(side == SERVER for side, _ in self._holds))
