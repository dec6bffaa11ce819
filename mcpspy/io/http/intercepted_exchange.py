"""An exchange under interception: the route of its steps, and the calls of the machine."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mcpspy.core.exchange.events import Taken
from mcpspy.core.intercept import actions
from mcpspy.core.intercept.heads import HttpHead
from mcpspy.core.recording.encode import CLIENT, SERVER
from mcpspy.io.http.event_queue import EventQueue
from mcpspy.io.http.interception import PendingHead

if TYPE_CHECKING:
    from mcpspy.core.framing import SseEvent
    from mcpspy.core.protocol.http_headers import Headers
    from mcpspy.core.recording.encode import Value
    from mcpspy.io.http.interception import HttpInterception


class InterceptedExchange(EventQueue):
    """An exchange that carries out steps of the interception. The class above it ends it."""

    _interception: HttpInterception
    _is_deciding = False
    """True while a decision delivers its steps."""
    _pending_head: tuple[HttpHead, PendingHead] | None = None
    _steps: tuple[actions.ExchangeStep, ...] = ()
    """Steps of the interception that are not taken yet."""
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

    def intercept(self) -> None:
        self._interception.add_exchange(self)

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
