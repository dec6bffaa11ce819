"""Exchanges of the proxy: one with a client, and one for the request of a viewer."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Raw
from msgspec.json import encode

from mcpspy.core.exchange.machine import ExchangeMachine
from mcpspy.core.exchange.states import NEW, OVER
from mcpspy.core.intercept import actions
from mcpspy.core.jsontools import members_of
from mcpspy.core.protocol.http_headers import JSON
from mcpspy.core.recording.encode import CLIENT, MCPSPY, SERVER
from mcpspy.io.http.request import ClientConnection, HttpRequest, Response
from mcpspy.io.http.shell import ExchangeShell
from mcpspy.io.recording.recorder import say

if TYPE_CHECKING:
    from mcpspy.core.exchange.prepared import PreparedRequest
    from mcpspy.core.framing import SseEvent
    from mcpspy.core.recording.encode import Lines, Value
    from mcpspy.io.http.context import ExchangeContext
    from mcpspy.io.http.interception import HttpInterception
    from mcpspy.io.http.routes import Route


class ProxiedExchange(ExchangeShell, HttpRequest):
    """One exchange between its connections."""

    def __init__(
        self,
        context: ExchangeContext,
        interception: HttpInterception,
        prepared: PreparedRequest,
        connection: ClientConnection,
    ) -> None:
        self._context, self._interception, self._connection = context, interception, None
        self._is_plain, self._is_busy = True, False
        self.connection, self.head = connection, prepared.head
        self.keeps_alive = self.head.keeps_alive
        self.is_over = self.has_started = False
        self.arrived = []
        self._is_cut = False
        """True once the client is lost, or has its whole response: nothing is sent to it."""
        recorder, peer = context.recorder, connection.peer
        number, now = next(context.numbers), recorder.now()
        machine = self.machine = ExchangeMachine(self, prepared, number, now, peer)
        if machine.is_mcp:
            if recorder.writer is not None:
                context.clients.look(peer, machine.stream)
            if prepared.is_message:
                interception.routes.add_post(machine.stream, prepared)

    @property
    def is_get(self) -> bool:  # type: ignore[override]
        return self.head.method == "GET"

    # The client's side.

    def request_data(self, data: bytes, is_last: bool) -> None:
        machine = self.machine
        if machine.state is not NEW:
            self._take(machine.request_data, data, is_last)
            return
        self._is_busy = True  # As `_take` does, at the time of the head.
        try:
            machine.request_data(data, is_last)
            self._end_event()
        except Exception as error:
            self._fail(error)

    def half_close(self) -> bool:
        if not (self.machine.may_half_close and self._context.client.can_half_close):
            return False
        self._take(self.machine.half_closed)
        return True

    def client_waits(self, *, is_paused: bool) -> None:
        self._hold(SERVER, "the client has not read", is_held=is_paused)

    def client_gone(self) -> None:
        self._is_cut = True
        ExchangeShell.client_gone(self)

    def break_off(self, _: str) -> None:
        self.client_gone()

    @property
    def _loser(self) -> str:
        return MCPSPY if self._context.is_stopping else CLIENT

    def _fail(self, error: BaseException) -> None:
        was_cut, self._is_cut = self._is_cut, True
        super()._fail(error)
        if was_cut:
            return
        if self.has_started:
            self.connection.transport.abort()
            self.connection.end(self)
        else:
            self.connection.respond(self, Response(500))

    def _end_client(self) -> None:
        self.connection.give_up()
        self.connection.end(self)

    def _regulate(self) -> None:
        super()._regulate()
        if not self._is_cut:
            self.connection.pause_reading(is_paused=any(side == CLIENT for side, _ in self._holds))

    # The calls of the machine.

    def accept_body(self) -> None:
        if not self._is_cut:
            self.send_continue()

    def to_client(self, data: bytes) -> None:
        if not self._is_cut:
            self.has_started = True
            self.connection.transport.write(data)

    def respond(self, status: int, body: bytes) -> None:
        if self._is_cut:
            return
        self._is_cut = True
        self.keeps_alive = self.keeps_alive and self.machine.half_closed_at is None
        self.connection.respond(self, Response(status, body, JSON if body else None))
        self._say_hint()
        if self.machine.state is not OVER:
            self._keep()

    def finish(self, keeps_alive: bool) -> None:
        if self._is_cut:
            return
        self.keeps_alive = keeps_alive
        if not self._is_plain and self._holds:
            self._holds = frozenset()
            self._regulate()
        self._is_cut = True
        self.connection.end(self)
        if self._context.oauth.hint is not None:
            self._say_hint()

    def hang_up(self, at_once: bool) -> None:
        if self._is_cut:
            return
        self._is_cut = True
        transport = self.connection.transport
        (transport.abort if at_once else transport.close)()
        self.connection.end(self)

    def _say_hint(self) -> None:
        oauth = self._context.oauth
        if oauth.hint is not None:
            say(oauth.hint)
            oauth.hint = None

    def fail(self, id: str, why: str) -> None: ...  # noqa: A002
    def to_stream(self, data: bytes) -> None: ...


NO_ENDPOINT = frozenset((404, 405, 410))
"""Statuses by which a server has no endpoint at a path."""

MAX_COPY = 1 << 16
"""Bytes of entries above which an exchange is not copied."""


class FirstExchange(ProxiedExchange):
    """The first exchange at another path. It keeps its entries, because the server may have no endpoint there."""

    _kept: bytes | None = b""

    def record(self, lines: Lines, size: int) -> None:
        lines = lines if isinstance(lines, bytes) else b"".join(lines)
        is_short = self._kept is not None and len(self._kept) + len(lines) <= MAX_COPY
        self._kept = self._kept + lines if self._kept is not None and is_short else None
        super().record(lines, size)

    @property
    def is_missing(self) -> bool:
        """True if the server has no endpoint at this path. A session that is lost gets 404 from one."""
        request = self.machine.prepared
        return self.machine.status in NO_ENDPOINT and request.is_post and request.session is None

    def copied(self, number: int, later: float) -> bytes:
        """Return its entries, with another number and later times by these seconds; empty if they were long."""
        lines = []
        for line in (self._kept or b"").splitlines():
            members = members_of(Raw(line))
            members |= {"http": Raw(b"%d" % number), "stream": Raw(b'"%d"' % number)}
            for name in members.keys() & {"t", "asked_at"}:
                members[name] = Raw(b"%.6f" % (float(bytes(members[name])) + later))
            lines.append(encode(members) + b"\n")
        return b"".join(lines)


class InjectedExchange(ExchangeShell):
    """A request of a viewer, which is sent like the last POST of its session's client."""

    def __init__(self, context: ExchangeContext, interception: HttpInterception, route: Route) -> None:
        self._context, self._interception, self._connection = context, interception, None
        self._is_plain, self._is_busy = True, False
        self._stream = route.stream
        number = next(context.numbers)
        stream = route.stream if route.is_session else str(number)
        now = context.recorder.now()
        self.machine = ExchangeMachine(self, route.prepared, number, now, stream=stream)

    def _execute(self, step: actions.ExchangeStep) -> None:
        if isinstance(step, actions.Inject) and step.side == CLIENT:
            self.machine.injected(step.data, step.id)
        else:
            super()._execute(step)

    def intercept(self) -> None:
        super().intercept()
        self._keep()

    def decide(
        self, side: str, data: bytes, raw: bytes, event: SseEvent | None, fields: dict[str, Value]
    ) -> bool:
        return super().decide(side, data, data, event, fields)

    def fail(self, id: str, why: str) -> None:  # noqa: A002
        self._interception.failed(id, why)

    def to_stream(self, data: bytes) -> None:
        client = self._interception.routes.to_client(self._stream)
        if client is not None:
            client.deliver(actions.Inject(SERVER, data, None, self._stream))

    # No client gets anything.

    def accept_body(self) -> None: ...
    def to_client(self, data: bytes) -> None: ...
    def respond(self, status: int, body: bytes) -> None: ...
    def finish(self, keeps_alive: bool) -> None: ...
    def hang_up(self, at_once: bool) -> None: ...
