"""One proxied exchange: the shell of `core.exchange.machine`, between its two connections.

Callbacks of the connections, and steps of the interception, become events of the machine, which calls the methods of
`core.exchange.shell.Shell` here. While one of them takes long (a large write, the turn of another exchange), the calls
after it and the next events wait, and nothing more is read.
"""

from __future__ import annotations

import asyncio
from collections import deque
from functools import partial
from typing import TYPE_CHECKING, Any, cast

from mcpspy.core.exchange.events import Taken
from mcpspy.core.exchange.heads import RequestHead
from mcpspy.core.exchange.machine import ExchangeMachine
from mcpspy.core.exchange.prepared import PreparedRequest
from mcpspy.core.exchange.states import ExchangeState
from mcpspy.core.intercept import actions
from mcpspy.core.intercept.heads import HttpHead
from mcpspy.core.protocol.http_headers import JSON, Location
from mcpspy.core.recording.encode import CLIENT, MCPSPY, SERVER
from mcpspy.io.http.body_stream import BUFFERED
from mcpspy.io.http.interception import PendingHead
from mcpspy.io.http.routes import Route
from mcpspy.io.http.server import Response
from mcpspy.io.http.upstream_connection import HEAD_WAIT, UpstreamError
from mcpspy.io.recording.recorder import say

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from mcpspy.core.exchange.heads import ResponseHead
    from mcpspy.core.exchange.shell import Shell
    from mcpspy.core.framing import SseEvent
    from mcpspy.core.protocol.http_headers import Headers
    from mcpspy.core.recording.encode import Lines, Value
    from mcpspy.io.http.context import ExchangeContext
    from mcpspy.io.http.interception import HttpInterception
    from mcpspy.io.http.server import HttpRequest
    from mcpspy.io.http.upstream_connection import UpstreamConnection

IDEMPOTENT = frozenset("DELETE GET HEAD OPTIONS PUT TRACE".split())

UNREAD = "the server has not read"

OVER = ExchangeState.OVER

NO_SHELL = cast("Shell", None)
"""The shell of an exchange that is over. Otherwise they refer to each other: the cycle would wait for the collector."""


class _Later:
    """The shell of an exchange while something takes long: keeps the calls."""

    def __init__(self, shell: ProxiedExchange) -> None:
        self._shell = shell
        self.calls: deque[Callable[[], object]] = deque()

    def __getattr__(self, name: str) -> Callable[..., None]:
        method = getattr(self._shell, name)
        return lambda *arguments: self.calls.append(partial(method, *arguments))

    def decide(self, *arguments: Any) -> bool:
        self.calls.append(partial(self._shell.decide_later, *arguments))
        return False


class ProxiedExchange:
    """One exchange between its connections."""

    _connection: UpstreamConnection | None = None
    """The connection to the server, while the response is not over."""
    _connecting: asyncio.Task[UpstreamConnection] | None = None
    _asked: tuple[str, bytes, bytes, bool] | None = None
    """The request that was sent, while it may be sent again."""
    _is_busy = False
    """True while the machine takes an event, or its calls wait."""
    _waiting: asyncio.Future[Any] | asyncio.Handle | None = None
    """The work for which the calls wait."""
    _is_deciding = False
    _pending_head: tuple[HttpHead, PendingHead] | None = None
    _is_half_closed = False
    _is_cut = False
    """True once the client is lost, or has its whole response: nothing is sent to it."""
    _is_gone = False
    """True once the client is lost."""
    _ended: asyncio.Future[None] | None = None
    _events: tuple[Callable[[], None], ...] = ()
    """Events that wait for the calls."""
    _steps: tuple[actions.ExchangeStep, ...] = ()
    """Steps of the interception that are not taken yet."""
    _unsent: tuple[tuple[bytes, bool], ...] = ()
    """Parts of the request that wait for the connection."""
    _holds: frozenset[tuple[str, str]] = frozenset()
    """The sides from which nothing is read, each with the reason."""
    _is_kept = False
    """True if the interception keeps it until it ends, because no client waits."""
    _route: Route | None = None

    def __init__(
        self,
        context: ExchangeContext,
        interception: HttpInterception,
        prepared: PreparedRequest,
        request: HttpRequest | None,
        route: Route | None = None,
    ) -> None:
        """Prepare an exchange; one without a client has the route to the server of a client's session."""
        self._context = context
        self._interception = interception
        self._request = request
        number, recorder = next(context.numbers), context.recorder
        now = recorder.now()
        if request is None:
            self._route = route
            stream = route.stream if route is not None and route.is_session else str(number)
            self.machine = ExchangeMachine(self, interception, prepared, number, now, stream=stream)
            return
        peer = request.connection.peer
        machine = self.machine = ExchangeMachine(self, interception, prepared, number, now, client=peer)
        if machine.is_mcp:
            stream = machine.stream
            if recorder.writer is not None:
                context.clients.look(peer, stream)
            if prepared.is_message and not interception.routes.is_last(stream, prepared.head.headers):
                self._add_post(prepared, stream)

    def _add_post(self, prepared: PreparedRequest, stream: str) -> None:
        is_session = prepared.session is not None or self._context.streams.is_address(prepared.target)
        route = Route(stream, prepared.target, prepared.head.headers, prepared.public_origin, is_session)
        self._interception.routes.add_post(route)

    # The route of the interception.

    @property
    def is_get(self) -> bool:
        """Return whether the client has sent no message."""
        return self._request is not None and self.machine.prepared.head.method == "GET"

    @property
    def fields(self) -> dict[str, Value]:
        """The fields of this exchange's entries in the recording."""
        return self.machine.record.fields

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
            case actions.Inject(side, data, exchange, _, id):
                if self._request is None and side == CLIENT:
                    machine.injected(data, id)
                else:
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

    # The client's side.

    def request_data(self, data: bytes, is_last: bool) -> None:
        self._take(self.machine.request_data, data, is_last)

    def half_close(self) -> bool:
        """Pass on that the client sends nothing more. Return False if that is a hang-up here."""
        if not (self.machine.may_half_close and self._context.client.can_half_close):
            return False
        self._take(self.machine.half_closed)
        return True

    def client_waits(self, *, is_paused: bool) -> None:
        self._hold(SERVER, "the client has not read", is_held=is_paused)

    def client_gone(self) -> None:
        """End the exchange at once, because the client is lost, or the proxy stops."""
        self._is_cut = self._is_gone = True
        if self._connecting is not None:
            self._connecting.cancel()
        lacks = ""
        if self._connection is not None:
            self._connection.abandon()
            lacks = self._connection.lacks
            self._connection = None
        self._events = ()
        if isinstance(self._waiting, asyncio.Handle):
            self._waiting.cancel()
            self._stop_waiting()
        is_ours = self._context.is_stopping or self._request is None
        self._take(self.machine.client_gone, MCPSPY if is_ours else CLIENT, lacks)

    def ended(self) -> asyncio.Future[None]:
        """Return a future that is done at the end."""
        if self._ended is None:
            self._ended = asyncio.get_running_loop().create_future()
            self._settle()
        return self._ended

    # The server's side.

    def response_begins(self, head: ResponseHead, data: bytes, *, keeps_alive: bool, is_last: bool) -> None:
        self._take(self.machine.response_begins, head, data, keeps_alive, is_last)
        if is_last:
            self._connection = None

    def response_data(self, data: bytes, is_last: bool) -> None:
        self._take(self.machine.response_data, data, is_last)
        if is_last:
            self._connection = None

    def server_waits(self, *, is_paused: bool) -> None:
        self._hold(CLIENT, UNREAD, is_held=is_paused)

    def server_gone(self, error: UpstreamError) -> None:
        connection, self._connection, asked = self._connection, None, self._asked
        assert connection is not None
        self._hold(CLIENT, UNREAD, is_held=False)  # It reads no more.
        # A request that a server did not begin to answer, because it closed an idle connection, is sent again only if
        # its method is idempotent (RFC 9110, 9.2.2).
        if asked is not None and connection.is_stale:
            method, _, body, is_last = asked
            if method in IDEMPOTENT and is_last and not body:
                self._connect(asked)
                return
        self._take(self.machine.server_gone, str(error), True, connection.lacks)

    def _connect(self, asked: tuple[str, bytes, bytes, bool]) -> None:
        self._asked, self._unsent = None, ()
        self._connecting = asyncio.ensure_future(self._context.client.connect())
        self._connecting.add_done_callback(lambda task: self._connected(task, asked))

    def _connected(
        self, connecting: asyncio.Task[UpstreamConnection], asked: tuple[str, bytes, bytes, bool]
    ) -> None:
        self._connecting = None
        self._hold(CLIENT, "there is no connection", is_held=False)
        if connecting.cancelled() or self.machine.state is OVER:
            if not (connecting.cancelled() or connecting.exception()):
                connecting.result().abandon()
            return
        error = connecting.exception()
        if isinstance(error, UpstreamError):
            self._context.connect_failed(error)
            self._take(self.machine.server_gone, str(error), False)
            return
        if error is not None:
            self._fail(error)
            return
        try:
            self._use(connecting.result(), asked)
            unsent, self._unsent = self._unsent, ()
            for part in unsent:
                self.to_server(*part)
        except Exception as bug:
            self._fail(bug)

    def _use(self, connection: UpstreamConnection, asked: tuple[str, bytes, bytes, bool]) -> None:
        self._connection = connection
        method, head, body, is_last = asked
        connection.ask(self, method, head, body, is_last=is_last)
        if self._is_half_closed and self._connection is connection:  # The end follows the request.
            connection.half_close()
        if self._holds and (CLIENT, UNREAD) not in self._holds:
            self._regulate()

    # Events.

    def _take(self, event: Callable[..., None], *arguments: Any) -> None:
        """Let the machine take an event, unless it has to wait."""
        machine = self.machine
        if self._is_busy:
            self._events += (partial(event, *arguments),)
            if self._waiting is not None and event in (machine.request_data, machine.response_data):
                side = CLIENT if event == machine.request_data else SERVER
                self._hold(side, "calls wait", is_held=True)
            return
        self._is_busy = True
        if machine.state is not ExchangeState.NEW:
            machine.now = self._context.recorder.now()
        try:
            event(*arguments)
            if self._events or self._waiting is not None or self._holds:
                self._take_events()
                return
        except Exception as error:
            self._fail(error)
            return
        self._is_busy = False
        if machine.state is OVER:
            machine.shell = NO_SHELL
            if self._is_gone or self._is_kept or self._pending_head or self._ended:
                self._settle()

    def _take_events(self) -> None:
        """Take the events that have waited."""
        while self._events and self._waiting is None:
            event, *events = self._events
            self._events = tuple(events)
            self.machine.now = self._context.recorder.now()
            event()
        if self._waiting is None:
            self._is_busy = False
            if self._holds:
                self._hold(CLIENT, "calls wait", is_held=False)
                self._hold(SERVER, "calls wait", is_held=False)
            if self.machine.state is OVER:
                self._settle()

    def _wait_for(self, work: Awaitable[None], done: Callable[[], None] | None = None) -> None:
        """Let the next calls wait for what takes long, and what is done then for those calls."""
        self._waiting = asyncio.ensure_future(work)
        self._waiting.add_done_callback(lambda work: self._has_waited(work, done))
        self._put_off()

    def _put_off(self) -> None:
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
                self.machine.shell = self
                self._take_events()
        except Exception as error:
            self._fail(error)

    def _stop_waiting(self) -> None:
        self._waiting, self._is_busy, self.machine.shell = None, False, self

    def _fail(self, error: BaseException) -> None:
        """End the exchange because of a bug in mcpspy."""
        say(f"a bug in mcpspy: {type(error).__name__}: {str(error)!a}")
        self._stop_waiting()
        self._events = ()
        self.close_server()
        request, was_cut, self._is_cut = self._request, self._is_cut, True
        self._take(self.machine.client_gone, MCPSPY)
        if request is not None and not was_cut:
            if request.has_started:
                request.connection.transport.abort()
                request.connection.end(request)
            else:
                request.connection.respond(request, Response(500))

    def _settle(self) -> None:
        """Free what an exchange has that is over."""
        if self.machine.state is not OVER or self._is_busy:
            return
        self.machine.shell = NO_SHELL
        if self._ended is not None and not self._ended.done():
            self._ended.set_result(None)
        if self._is_kept:
            self._interception.drop_exchange(self)
        if self._pending_head is not None:
            self._forget_head()
        if self._is_gone and self._request is not None:
            connection = self._request.connection
            connection.give_up()
            connection.end(self._request)

    # The calls of the machine.

    def record(self, lines: Lines, size: int) -> None:
        if not self._context.record_at_once(lines, size):
            self._wait_for(self._context.record(lines, size))

    def ask(self, method: str, head: bytes, body: bytes, is_last: bool) -> None:
        if self._is_cut:
            return
        asked = method, head, body, is_last
        connection = self._context.client.take()
        if connection is None:
            self._connect(asked)
            return
        self._asked = asked
        self._use(connection, asked)

    def to_server(self, data: bytes, is_last: bool) -> None:
        if self._connection is not None:
            self._connection.send(data, is_last=is_last)
        elif self._connecting is not None:
            self._unsent += ((data, is_last),)
            if sum(len(part) for part, _ in self._unsent) > BUFFERED:
                self._hold(CLIENT, "there is no connection", is_held=True)

    def half_close_server(self) -> None:
        self._is_half_closed = True
        if self._connection is not None:
            self._connection.half_close()

    def close_server(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.abandon()
        if self._connecting is not None:
            self._connecting.cancel()

    def accept_body(self) -> None:
        if self._request is not None and not self._is_cut:
            self._request.send_continue()

    def to_client(self, data: bytes) -> None:
        request = self._request
        if request is not None and not self._is_cut:
            request.has_started = True
            request.connection.transport.write(data)

    def respond(self, status: int, body: bytes) -> None:
        request = self._request
        if request is None or self._is_cut:
            return
        self._is_cut = True
        request.keeps_alive = request.keeps_alive and not self._is_half_closed
        request.connection.respond(request, Response(status, body, JSON if body else None))
        self._say_hint()
        if self.machine.state is not OVER:
            self._keep()

    def finish(self, keeps_alive: bool) -> None:
        request = self._request
        if request is None or self._is_cut:
            return
        self._is_cut = True
        request.keeps_alive = keeps_alive
        if self._holds:
            self._holds = frozenset()
            self._regulate()
        request.connection.end(request)
        if self._context.oauth.hint is not None:
            self._say_hint()

    def hang_up(self, at_once: bool) -> None:
        request = self._request
        if request is None or self._is_cut:
            return
        self._is_cut = True
        transport = request.connection.transport
        (transport.abort if at_once else transport.close)()
        request.connection.end(request)

    def wait(self) -> None:
        waited = self.machine.waited
        if self._connection is not None and self._connection.has_waited:
            self._events = (waited, *self._events)
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

    def _say_hint(self) -> None:
        oauth = self._context.oauth
        if oauth.hint is not None:
            say(oauth.hint)
            oauth.hint = None

    # The calls about the interception.

    def intercept(self) -> None:
        self._interception.add_exchange(self)
        if self._request is None:
            self._keep()

    def _keep(self) -> None:
        self._is_kept = True
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

    def fail(self, id: str, why: str) -> None:  # noqa: A002
        self._interception.failed(id, why)

    def to_stream(self, data: bytes) -> None:
        assert self._route is not None
        client = self._interception.routes.to_client(self._route.stream)
        if client is not None:
            client.deliver(actions.Inject(SERVER, data, None, self._route.stream))

    def decide(
        self, side: str, data: bytes, raw: bytes, event: SseEvent | None, fields: dict[str, Value]
    ) -> bool:
        def hold(ticket: int) -> None:
            self.machine.taken(Taken(ticket, raw if self._request is not None else data, event))

        self._is_deciding = True
        try:
            late = self._interception.take(self, side, data, fields, hold)
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
        self._pending_head = head, waiting
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
            self._holds = self._holds | {hold} if is_held else self._holds - {hold}
            self._regulate()

    def _regulate(self) -> None:
        sides = {side for side, _ in self._holds}
        if self._connection is not None:
            self._connection.pause_reading(is_paused=SERVER in sides)
        if self._request is not None and not self._is_cut:
            self._request.connection.pause_reading(is_paused=CLIENT in sides)


def injected(context: ExchangeContext, interception: HttpInterception, route: Route) -> ProxiedExchange:
    """Return the exchange of an injected request, which is sent like the last POST of its session's client."""
    head = RequestHead("POST", route.target, route.headers, "1.1", keeps_alive=True)
    prepared = PreparedRequest(context, head, route.target)
    prepared.public_origin = route.public_origin
    return ProxiedExchange(context, interception, prepared, None, route)
