"""One proxied exchange: the shell of `core.exchange.machine`, between its two connections.

Callbacks of the connections, and steps of the interception, become events; the commands are executed in their order.
While one of them takes long (a large write, the turn of another exchange), events wait, and nothing more is read.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from mcpspy.core.exchange import commands as c
from mcpspy.core.exchange.heads import RequestHead
from mcpspy.core.exchange.machine import ExchangeMachine
from mcpspy.core.exchange.prepared import PreparedRequest
from mcpspy.core.exchange.states import ExchangeState
from mcpspy.core.intercept.actions import ExchangeStep, Forward, Inject
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
    from mcpspy.core.recording.encode import Value
    from mcpspy.io.http.context import ExchangeContext
    from mcpspy.io.http.interception import HttpInterception
    from mcpspy.io.http.server import HttpRequest
    from mcpspy.io.http.upstream_connection import UpstreamConnection

IDEMPOTENT = frozenset("DELETE GET HEAD OPTIONS PUT TRACE".split())

WAITED, WORKED, INSPECT = c.Waited(), c.Worked(), c.Inspect()


class ProxiedExchange:
    """One exchange between its connections."""

    _connection: UpstreamConnection | None = None
    """The connection to the server, while the response is not over."""
    _connecting: asyncio.Task[UpstreamConnection] | None = None
    _asked: c.Ask | None = None
    """The request that was sent, while it may be sent again."""
    _is_busy = False
    """True while commands are executed, or wait."""
    _waiting: asyncio.Future[Any] | asyncio.Handle | None = None
    """The work that the commands wait for."""
    _rest: list[c.Command] | None = None
    """The commands that wait."""
    _is_deciding = False
    _pending_head: tuple[HttpHead, PendingHead] | None = None
    _is_half_closed = False
    _is_cut = False
    """True once the client is lost, or has its whole response: nothing is sent to it."""
    _is_gone = False
    """True once the client is lost."""
    _ended: asyncio.Future[None] | None = None
    _events: tuple[c.Event, ...] = ()
    """Events that wait for commands."""
    _steps: tuple[c.Event, ...] = ()
    """Steps of the interception that are not taken yet."""
    _unsent: tuple[c.ToServer, ...] = ()
    """Parts of the request that wait for the connection."""
    _holds: frozenset[tuple[str, str]] = frozenset()
    """The sides from which nothing is read, each with the reason."""
    _is_kept = False
    """True if the interception keeps it until it ends, because no client waits."""

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
        number, now = context.next_number(), context.recorder.now()
        self._route = route
        if request is None:
            stream = route.stream if route is not None and route.is_session else str(number)
            machine = ExchangeMachine(context, interception, prepared, number, now, stream=stream)
        else:
            machine = ExchangeMachine(context, interception, prepared, number, now, client=request.peer)
            if machine.is_mcp:
                self._enter(prepared, request, machine.stream)
        self.machine = machine

    def _enter(self, prepared: PreparedRequest, request: HttpRequest, stream: str) -> None:
        context, head = self._context, prepared.head
        if context.recorder.writer is not None:
            context.clients.look(request.peer, stream)
        routes = self._interception.routes
        if head.method == "POST" and head.has_body and not routes.is_last(stream, head.headers):
            is_session = prepared.session is not None or context.streams.is_address(prepared.target)
            routes.add_post(Route(stream, prepared.target, head.headers, prepared.public_origin, is_session))

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

    def deliver(self, step: ExchangeStep) -> None:
        """Execute a step, in order. Never waits."""
        event: c.Event
        if isinstance(step, Inject):
            if self._request is None and step.side == CLIENT:
                event = c.Injected(step.data, step.id)
            else:
                event = c.Answer(step.data) if step.exchange is self else c.Insert(step.data)
        else:
            event = step
        self._steps += (event,)
        if len(self._steps) == 1 and not self._is_deciding:
            self._interception.wake_later(self._take_steps)

    def _take_steps(self) -> None:
        steps, self._steps = self._steps, ()
        for step in steps:
            self._take(step)

    def release_all(self) -> None:
        """Forward all held messages unchanged."""
        for ticket, data in self.machine.held():
            self.deliver(Forward("", data, self, ticket))

    def inspect(self) -> None:
        """Decide on all events of this stream from the next one on."""
        self._take(INSPECT)

    # The client's side.

    def request_data(self, data: bytes, is_last: bool) -> None:
        self._take(c.RequestData(data, is_last))

    def half_close(self) -> bool:
        """Pass on that the client sends nothing more. Return False if that is a hang-up here."""
        if not (self.machine.may_half_close and self._context.client.can_half_close):
            return False
        self._take(c.HalfClosed())
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
            self._waiting, self._rest, self._is_busy = None, None, False
        is_ours = self._context.is_stopping or self._request is None
        self._take(c.ClientGone(MCPSPY if is_ours else CLIENT, lacks))

    def ended(self) -> asyncio.Future[None]:
        """Return a future that is done at the end."""
        if self._ended is None:
            self._ended = asyncio.get_running_loop().create_future()
            self._settle()
        return self._ended

    # The server's side.

    def response_begins(self, head: ResponseHead, data: bytes, *, keeps_alive: bool, is_last: bool) -> None:
        self._take(c.ResponseBegins(head, keeps_alive, data, is_last))
        if is_last:
            self._connection = None

    def response_data(self, data: bytes, is_last: bool) -> None:
        self._take(c.ResponseData(data, is_last))
        if is_last:
            self._connection = None

    def server_waits(self, *, is_paused: bool) -> None:
        self._hold(CLIENT, "the server has not read", is_held=is_paused)

    def server_gone(self, error: UpstreamError) -> None:
        connection, self._connection, asked = self._connection, None, self._asked
        assert connection is not None
        self._hold(CLIENT, "the server has not read", is_held=False)  # It reads no more.
        # A request that a server did not begin to answer, because it closed an idle connection, is sent again only if
        # its method is idempotent (RFC 9110, 9.2.2).
        may_repeat = asked is not None and asked.method in IDEMPOTENT and asked.is_last and not asked.body
        if asked is not None and may_repeat and connection.is_stale:
            self._connect(asked)
            return
        self._take(c.ServerGone(str(error), lacks=connection.lacks))

    def _connect(self, asked: c.Ask) -> None:
        self._asked, self._unsent = None, ()
        self._connecting = asyncio.ensure_future(self._context.client.connect())
        self._connecting.add_done_callback(lambda task: self._connected(task, asked))

    def _connected(self, connecting: asyncio.Task[UpstreamConnection], asked: c.Ask) -> None:
        self._connecting = None
        self._hold(CLIENT, "there is no connection", is_held=False)
        if connecting.cancelled() or self.machine.state is ExchangeState.OVER:
            if not (connecting.cancelled() or connecting.exception()):
                connecting.result().abandon()
            return
        error = connecting.exception()
        if isinstance(error, UpstreamError):
            self._context.connect_failed(error)
            self._take(c.ServerGone(str(error), is_connected=False))
            return
        if error is not None:
            self._fail(error)
            return
        try:
            self._use(connecting.result(), asked)
            unsent, self._unsent = self._unsent, ()
            for data, is_last in unsent:
                if self._connection is not None:
                    self._connection.send(data, is_last=is_last)
        except Exception as bug:
            self._fail(bug)

    def _use(self, connection: UpstreamConnection, asked: c.Ask) -> None:
        self._connection = connection
        connection.ask(self, asked.method, asked.head, asked.body, is_last=asked.is_last)
        if self._is_half_closed and self._connection is connection:  # The end follows the request.
            connection.half_close()
        if (CLIENT, "the server has not read") not in self._holds and self._holds:
            self._regulate()

    # Events and commands.

    def _take(self, event: c.Event) -> None:
        """Let the machine take an event, unless it has to wait."""
        if self._is_busy:
            self._events += (event,)
            if self._waiting is not None and isinstance(event, c.RequestData | c.ResponseData):
                side = CLIENT if isinstance(event, c.RequestData) else SERVER
                self._hold(side, "commands wait", is_held=True)
            return
        self._is_busy = True
        try:
            self._execute(self.machine.take(event, self._context.recorder.now()))
            if self._events or self._waiting is not None or self._holds or self._ended is not None:
                self._take_events()
                return
        except Exception as error:
            self._fail(error)
            return
        self._is_busy = False
        if self.machine.state is ExchangeState.OVER and (
            self._is_gone or self._is_kept or self._pending_head
        ):
            self._settle()

    def _execute(self, commands: list[c.Command]) -> None:
        position = 0
        while position < len(commands):
            command = commands[position]
            position += 1
            kind = type(command)
            if kind is c.RecordLines:
                if not self._context.record_at_once(command.lines, command.size):  # type: ignore[union-attr]
                    self._wait_for(self._context.record(command.lines, command.size), commands[position:])  # type: ignore[union-attr,arg-type]
                    return
            elif kind is c.ToClient:
                self.send_to_client(command.data)  # type: ignore[union-attr]
            elif kind is c.Ask:
                self._ask(command)  # type: ignore[arg-type]
            elif kind is c.Finish:
                self._finish(keeps_alive=command.keeps_alive)  # type: ignore[union-attr]
            elif isinstance(command, c.ToServer):
                self._send(command)
            elif isinstance(command, c.Continue):
                if command.in_turn:
                    self._give_turn(command.long_step, commands[position:])
                    return
                commands = self._after(WORKED, commands[position:])
                position = 0
            elif isinstance(command, c.Decide):
                late, commands, position = self._decide(command), commands[position:], 0
                if late is not None:
                    self._wait_for(late, commands)
                    return
                commands = [*self._taken_steps(), *commands]
            else:
                self._do(command)

    def send_to_client(self, data: bytes) -> None:
        request = self._request
        if request is not None and not self._is_cut:
            request.has_started = True
            request.connection.transport.write(data)

    def _after(self, event: c.Event, rest: list[c.Command]) -> list[c.Command]:
        return [*self.machine.take(event, self._context.recorder.now()), *rest]

    def _taken_steps(self) -> list[c.Command]:
        """Return the commands of the steps that a decision has delivered."""
        steps, self._steps = self._steps, ()
        return [each for step in steps for each in self.machine.take(step, self._context.recorder.now())]

    def _do(self, command: c.Command) -> None:
        """Execute a command that is rare."""
        connection = self._connection
        match command:
            case c.Wait():
                if connection is not None and connection.has_waited:
                    self._events = (WAITED, *self._events)
                else:
                    asyncio.get_running_loop().call_later(HEAD_WAIT, self._take, WAITED)
            case c.CloseServer():
                self._close_server()
            case c.HalfCloseServer():
                self._is_half_closed = True
                if connection is not None:
                    connection.half_close()
            case c.Pause(side, is_paused):
                self._hold(side, "the scripts decide", is_held=is_paused)
            case c.AcceptBody() | c.Respond() | c.HangUp():
                if self._request is not None and not self._is_cut:
                    self._do_for_client(self._request, command)
            case c.ReportOnce(what, value, keeps_method):
                self._report(what, value, keeps_method=keeps_method)
            case _:
                self._do_for_interception(command)

    def _do_for_client(self, request: HttpRequest, command: c.AcceptBody | c.Respond | c.HangUp) -> None:
        if isinstance(command, c.AcceptBody):
            request.send_continue()
            return
        self._is_cut = True
        if isinstance(command, c.HangUp):
            transport = request.connection.transport
            (transport.abort if command.at_once else transport.close)()
            request.connection.end(request)
            return
        request.keeps_alive = request.keeps_alive and not self._is_half_closed
        kind = JSON if command.body else None
        request.connection.respond(request, Response(command.status, command.body, kind))
        self._say_hint()
        if self.machine.state is not ExchangeState.OVER:
            self._keep()

    def _keep(self) -> None:
        self._is_kept = True
        self._interception.keep_exchange(self)

    def _report(self, what: str, value: object, *, keeps_method: bool) -> None:
        if what == "encoding":
            self._context.report_encoding(str(value))
        elif what == "unrecorded":
            self._context.report_unrecorded(str(value))
        elif isinstance(value, Location):
            self._context.report_redirect(value, keeps_method=keeps_method)

    def _do_for_interception(self, command: c.Command) -> None:
        interception, routes = self._interception, self._interception.routes
        match command:
            case c.DecideHead(headers, status):
                self._decide_head(headers, status)
            case c.Intercept():
                interception.add_exchange(self)
                if self._request is None:
                    self._keep()
            case c.Leave(True):
                interception.remove_delivered(self)
            case c.Leave(False):
                interception.remove_exchange(self)
            case c.OpenStream(True):
                routes.remove_uninspected(self)
                routes.open_stream(self)
            case c.OpenStream(False):
                routes.add_uninspected(self)
            case c.CloseStream():
                routes.remove_uninspected(self)
                routes.close_stream(self)
            case c.Fail(id, why):
                interception.failed(id, why)
            case c.ToStream(data):
                assert self._route is not None
                client = routes.to_client(self._route.stream)
                if client is not None:
                    client.deliver(Inject(SERVER, data, None, self._route.stream))

    def _ask(self, command: c.Ask) -> None:
        if self._is_cut:
            return
        connection = self._context.client.take()
        if connection is None:
            self._connect(command)
            return
        self._asked = command if connection.idle_since else None
        self._use(connection, command)

    def _send(self, command: c.ToServer) -> None:
        if self._connection is not None:
            self._connection.send(command.data, is_last=command.is_last)
        elif self._connecting is not None:
            self._unsent += (command,)
            if sum(len(each.data) for each in self._unsent) > BUFFERED:
                self._hold(CLIENT, "there is no connection", is_held=True)

    def _finish(self, *, keeps_alive: bool) -> None:
        request = self._request
        if request is not None and not self._is_cut:
            self._is_cut = True
            request.keeps_alive = keeps_alive
            if self._holds:
                self._release_holds()
            request.connection.end(request)
            if self._context.oauth.hint is not None:
                self._say_hint()

    def _say_hint(self) -> None:
        oauth = self._context.oauth
        if oauth.hint is not None:
            say(oauth.hint)
            oauth.hint = None

    def _close_server(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.abandon()
        if self._connecting is not None:
            self._connecting.cancel()

    def _decide(self, command: c.Decide) -> Awaitable[None] | None:
        def hold(ticket: int) -> None:
            raw = command.raw if self._request is not None else command.data
            taken = c.Taken(ticket, raw, command.event)
            self.machine.take(taken, self._context.recorder.now())

        self._is_deciding = True
        try:
            return self._interception.take(self, command.side, command.data, command.fields, hold)
        finally:
            self._is_deciding = False

    def _decide_head(self, headers: list[tuple[str, str]], status: int | None) -> None:
        def decided(step: c.Event) -> None:
            self._forget_head()
            self._take(step)

        side = CLIENT if status is None else SERVER
        waiting = PendingHead(self.fields, headers, decided)
        prepared = self.machine.prepared
        now = self._interception.now()
        head = HttpHead(0, now, side, waiting, prepared.head.method, prepared.target, headers, status)
        self._pending_head = head, waiting
        self._interception.decide_head(head, waiting)

    def _forget_head(self) -> None:
        pending, self._pending_head = self._pending_head, None
        if pending is not None:
            self._interception.forget_head(*pending)

    def _wait_for(self, work: Awaitable[None], rest: list[c.Command], event: c.Event | None = None) -> None:
        """Execute the rest of the commands after what takes long, then take an event."""
        self._rest = rest
        self._waiting = asyncio.ensure_future(work)
        self._waiting.add_done_callback(lambda work: self._waited(work, event))

    def _give_turn(self, long_step: Callable[[], None] | None, rest: list[c.Command]) -> None:
        """Execute the rest of the commands when other exchanges had their turn, and after a long step in a thread."""
        if long_step is not None:
            self._wait_for(asyncio.to_thread(long_step), rest, WORKED)
            return
        self._rest = rest
        self._waiting = asyncio.get_running_loop().call_soon(self._proceed, WORKED)

    def _waited(self, work: asyncio.Future[None], event: c.Event | None) -> None:
        if not work.cancelled() and (error := work.exception()) is not None:
            self._waiting = None
            self._fail(error)
            return
        self._proceed(None if self._is_gone else event)

    def _proceed(self, event: c.Event | None) -> None:
        """Execute the commands that have waited, then take the events that have."""
        rest, self._rest, self._waiting = self._rest or [], None, None
        try:
            self._execute([*self._taken_steps(), *rest])
            if event is not None:
                self._events = (event, *self._events)
            self._take_events()
        except Exception as error:
            self._fail(error)

    def _take_events(self) -> None:
        """Take the events that have waited."""
        while self._events and self._waiting is None:
            event, *events = self._events
            self._events = tuple(events)
            self._execute(self.machine.take(event, self._context.recorder.now()))
        if self._waiting is None:
            self._is_busy = False
            if self._holds:
                self._hold(CLIENT, "commands wait", is_held=False)
                self._hold(SERVER, "commands wait", is_held=False)
            if self.machine.state is ExchangeState.OVER:
                self._settle()

    def _fail(self, error: BaseException) -> None:
        """End the exchange because of a bug in mcpspy."""
        say(f"a bug in mcpspy: {type(error).__name__}: {str(error)!a}")
        self._is_busy, self._waiting, self._rest = False, None, None
        self._events = ()
        self._close_server()
        request, was_cut, self._is_cut = self._request, self._is_cut, True
        self._take(c.ClientGone(MCPSPY))
        if request is not None and not was_cut:
            if request.has_started:
                request.connection.transport.abort()
                request.connection.end(request)
            else:
                request.connection.respond(request, Response(500))

    def _settle(self) -> None:
        """Free what an exchange has that is over."""
        if self.machine.state is not ExchangeState.OVER or self._is_busy:
            return
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

    def _release_holds(self) -> None:
        if self._holds:
            self._holds = frozenset()
            self._regulate()


def injected(context: ExchangeContext, interception: HttpInterception, route: Route) -> ProxiedExchange:
    """Return the exchange of an injected request, which is sent like the last POST of its session's client."""
    head = RequestHead("POST", route.target, route.headers, "1.1", keeps_alive=True)
    prepared = PreparedRequest(context, head, route.target)
    prepared.public_origin = route.public_origin
    return ProxiedExchange(context, interception, prepared, None, route)
