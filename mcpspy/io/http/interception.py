"""Interception of an HTTP session: rules, the watchdog and viewers.

Each decision is recorded before it is executed. While there is nothing to decide, exchanges do not use this
module. `io.http.exchange` takes the steps of one exchange, and `io.http.routes` finds the exchange
that reaches a side.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from functools import partial
from time import monotonic
from typing import TYPE_CHECKING, Any, Protocol

from mcpspy.core.framing import is_message
from mcpspy.core.intercept.actions import CommandError, Decision, Forward, HeadDecided
from mcpspy.core.protocol.mcp_headers import ToolParamHeaders
from mcpspy.core.protocol.message import Result, read_frame
from mcpspy.core.protocol.spec import CLIENT, SERVER
from mcpspy.core.recording.decode import Frame
from mcpspy.core.recording.encode import MCPSPY, frame_prefix, splice
from mcpspy.io.control.server_asyncio import AsyncioServer
from mcpspy.io.http.routes import ExchangeRoute, Route, RouteTable
from mcpspy.io.intercept.asyncio_interception import AsyncioInterception
from mcpspy.io.recording.recorder import say

if TYPE_CHECKING:
    from mcpspy.core.intercept import actions
    from mcpspy.core.intercept.heads import HttpHead
    from mcpspy.core.intercept.interceptor import Interceptor
    from mcpspy.core.intercept.trust_guard import TrustGuard
    from mcpspy.core.protocol.http_headers import Headers
    from mcpspy.core.recording.encode import Value
    from mcpspy.io.http.context import ExchangeContext
    from mcpspy.io.intercept.executor import Effect, Lines
    from mcpspy.io.intercept.interception import InterceptionOptions
    from mcpspy.io.recording.recorder import Recorder


_HEAD_HOOKS = ((CLIENT, "http_request"), (SERVER, "http_response"))


class PendingHead:
    """The route of the decision on a head to the exchange that waits for it."""

    is_answered_here = lists_tools = False

    def __init__(
        self, fields: dict[str, Value], headers: Headers, decided: Callable[[HeadDecided], None]
    ) -> None:
        self.fields = fields
        self.stream = str(fields["stream"])
        self._headers = headers
        self._decided = decided

    def deliver(self, step: actions.ExchangeStep) -> None:
        assert isinstance(step, HeadDecided)
        self._decided(step)

    def release_all(self) -> None:
        self.deliver(HeadDecided(self._headers, self))


class UnattendedExchange(Protocol):
    """An exchange for which no client waits."""

    def client_gone(self) -> None:
        """End the exchange."""

    def ended(self) -> asyncio.Future[None]:
        """Return a future that is done at the end."""


class HttpInterception(AsyncioInterception):
    """The interception of one proxy."""

    transport = "http"

    def __init__(
        self,
        context: ExchangeContext,
        interception: InterceptionOptions,
        name: str,
        inject: Callable[[ExchangeContext, HttpInterception, Route], ExchangeRoute],
    ) -> None:
        """Prepare the interception. `inject` creates the exchange that sends an injected message to the server."""
        super().__init__(context.recorder, interception, name)
        self._context, context.policy = context, self
        self._inject = inject
        self.changed_heads: frozenset[str] = frozenset()
        """The sides whose heads a script may change."""
        self._exchanges: set[ExchangeRoute] = set()
        self._unattended: set[UnattendedExchange] = set()
        """Exchanges for which no client waits."""
        self._critical_tasks: set[asyncio.Task[None]] = set()
        """Short tasks that are awaited at the end."""
        self._only_check: TrustGuard | None = None
        """The check of trust while nothing else may concern a message."""
        self._wakeups: list[Callable[[], None]] = []
        """Exchanges that continue once nothing else of this module is in progress."""
        self._control: AsyncioServer | None = None
        self._next_free_ticket = 0
        """Next ticket without an interceptor. Counts down, because an interceptor assigns positive ones."""
        self.routes = RouteTable()
        self.tools = ToolParamHeaders()
        """Headers that calls of the server's tools require."""

    @asynccontextmanager
    async def serving_viewers(self) -> AsyncIterator[None]:
        """Apply the rules of the command line and accept viewers while the context is open."""
        if self._options.is_active:
            self._interceptor = self._options.interceptor()
            opening = self._interceptor.rules_note()
            await self._context.note(opening.kind, opening.fields)
            self._settle()
        if self._context.is_reachable:
            self._control = AsyncioServer.open(self, say)
        try:
            yield
        finally:
            self.end()
            if self._control is not None:
                await self._control.close()
            await self._finish()

    def learn_tools(self, data: bytes) -> None:
        """Learn the headers of tool calls from the response to a `tools/list`."""
        for message in read_frame(Frame(0.0, SERVER, data)):
            if isinstance(message, Result):
                self.tools.learn(message)

    def decides(self, side: str, body: bytes) -> bool:
        """Return whether a whole body needs a decision; otherwise it is forwarded as without interception."""
        if not self.is_on or self._interceptor is None:
            return False
        try:
            passes = self._only_check is not None and self._only_check.passes(side, body)
            return not passes and is_message(body)
        except Exception as error:
            self._give_up(error)
            return False

    @property
    def decides_responses(self) -> bool:
        """True if a message of the server may need a decision, while messages are intercepted."""
        return self._only_check is None or not self._only_check.passes_server

    def take(
        self,
        exchange: ExchangeRoute,
        side: str,
        data: bytes,
        fields: dict[str, Value],
        on_ticket: Callable[[int], None],
    ) -> Coroutine[Any, Any, None] | None:
        """Decide on a message, record it, and deliver the steps to the exchange.

        `on_ticket` is called with its ticket first. Return what is left to be awaited if the recording takes longer.
        """
        if exchange.lists_tools and side == SERVER:
            self.learn_tools(data)
        at = self.now()
        decision, lines, effects = self._decide(at, exchange, side, data)
        on_ticket(decision.ticket)
        if decision.to_mcpspy:
            fields = {**fields, "to": MCPSPY}
        size = len(data) + sum(map(len, lines))
        entry = [*splice(frame_prefix(side, fields) % at, [data], body=True), *lines]
        if not self._context.record_at_once(entry, size):
            return self._take_later(entry, size, effects)
        self._execute(effects)
        self._settle()
        return None

    async def _take_later(self, entry: Lines, size: int, effects: list[Effect]) -> None:
        await self._context.record(entry, size)
        self._execute(effects)
        self._settle()

    def decide_head(self, head: HttpHead, waiting: PendingHead) -> None:
        """Let the scripts decide on a head. `waiting` gets the headers to continue with."""
        self._exchanges.add(waiting)
        self._run(lambda interceptor, _: interceptor.process_head(head))
        self._settle()

    def forget_head(self, head: HttpHead, waiting: PendingHead) -> None:
        """Handle the end of the wait for the decision on a head."""
        self._exchanges.discard(waiting)
        if self._interceptor is not None and self._interceptor.scripts is not None:
            self._interceptor.scripts.forget(head)

    def wake_later(self, wake: Callable[[], None]) -> None:
        """Call a function of an exchange after the command or the message that is being processed."""
        if not self._wakeups:
            self._waking = asyncio.get_running_loop().call_soon(self._wake_exchanges)
        self._wakeups.append(wake)

    def order(self, viewer: str, order: dict[str, Any]) -> dict[str, Any]:
        """Execute a viewer's command and continue the exchanges on which it decides. Raise CommandError."""
        try:
            return super().order(viewer, order)
        finally:
            self._wake_exchanges()

    def _wake_exchanges(self) -> None:
        if self._wakeups:
            self._waking.cancel()
            wakeups, self._wakeups = self._wakeups, []
            for wake in wakeups:
                wake()

    def add_exchange(self, exchange: ExchangeRoute) -> None:
        self._exchanges.add(exchange)

    def remove_delivered(self, exchange: ExchangeRoute) -> None:
        """Remove an exchange none of whose messages waits."""
        self._exchanges.discard(exchange)

    def remove_exchange(self, exchange: ExchangeRoute) -> None:
        self._exchanges.discard(exchange)
        self._run(lambda interceptor, at: interceptor.exchange_ended(at, exchange))
        self._settle()

    def failed(self, id: str, why: str) -> None:  # noqa: A002
        """Handle an injected request that could not be delivered."""
        self._run(lambda interceptor, at: interceptor.injection_failed(at, id, why))
        self._settle()

    def end(self) -> None:
        """Release all held messages, because the session ends."""
        self._run(lambda interceptor, at: interceptor.end(at))
        self._settle()
        self.is_on = False

    async def _finish(self) -> None:
        self._cancel_alarm()
        while self._unattended or self._critical_tasks:
            for exchange in tuple(self._unattended):
                exchange.client_gone()
            ends = [exchange.ended() for exchange in self._unattended]
            await asyncio.gather(*ends, *self._critical_tasks, return_exceptions=True)

    def _check_deliverable(self, interceptor: Interceptor, order: dict[str, Any]) -> None:
        stream = order.get("stream")
        if order.get("to", SERVER) == CLIENT:
            self.routes.inspect()
            found = self.routes.to_client(stream)
            if found is None:
                raise CommandError("cannot send to the client: it has no open stream")
            if order["order"] == "request" and not self.routes.has_session(found.stream):
                raise CommandError("the client has no session, so it cannot receive requests")
        elif self.routes.to_server(stream) is None:
            raise CommandError("cannot send to the server: no client has sent a message yet")

    def record_to(self, recorder: Recorder) -> None:
        """Continue in another recording, and accept viewers: a probe has turned out to be a session."""
        self._recorder, self._epoch = recorder, monotonic() - recorder.now()
        self.session = recorder.id or self.session
        self._control = AsyncioServer.open(self, say)

    def keep_exchange(self, exchange: UnattendedExchange) -> None:
        """Keep an exchange for which no client waits, at most until the end."""
        self._unattended.add(exchange)

    def drop_exchange(self, exchange: UnattendedExchange) -> None:
        """Forget an exchange that has ended."""
        self._unattended.discard(exchange)

    def _carry_out(self, at: float, steps: list[actions.Step]) -> None:
        if not steps:
            return
        lines, effects = self._planned(at, steps)
        # Without a task if nothing waits for its turn to be recorded.
        if not self._critical_tasks and (
            not lines or self._context.record_at_once(lines, sum(map(len, lines)))
        ):
            self._execute(effects)
        else:
            task = asyncio.ensure_future(self._take_later(lines, sum(map(len, lines)), effects))
            self._critical_tasks.add(task)
            task.add_done_callback(self._critical_tasks.discard)

    def _decide(
        self, at: float, exchange: ExchangeRoute, side: str, data: bytes
    ) -> tuple[Decision, Lines, list[Effect]]:
        """Return the decision on a message, the lines to record after it, and the effects that follow."""
        if self._interceptor is not None:
            try:
                decision = self._interceptor.process(
                    at, side, _without_line_end(data), stream=exchange.stream, exchange=exchange
                )
                return decision, *self._planned(at, decision.steps)
            except Exception as error:
                self._give_up(error)
        self._next_free_ticket -= 1
        step = Forward(side, data, exchange, self._next_free_ticket)
        return Decision(step.ticket, False, [step], False), [], [partial(exchange.deliver, step)]

    def forward(self, step: Forward | actions.Substitute | actions.Dropped | actions.Disconnect) -> None:
        """Let the exchange of a message execute the step. It keeps the message until then."""
        if step.exchange is not None:
            step.exchange.deliver(step)

    substitute = drop = disconnect = forward

    def injection(self, at: float, step: actions.Inject) -> tuple[Lines, Effect] | None:
        exchange = self._injection_route(step)
        if exchange is None:
            return None
        prefix = frame_prefix(step.side, {**exchange.fields, "by": MCPSPY})
        return list(splice(prefix % at, [step.data], body=True)), partial(exchange.deliver, step)

    def _injection_route(self, step: actions.Inject) -> actions.StepReceiver | None:
        """Return the exchange that sends an injected message."""
        if step.side == CLIENT:
            route = self.routes.to_server(step.stream)
            return None if route is None else self._inject(self._context, self, route)
        exchange = step.exchange
        if exchange is not None and exchange.is_answered_here:
            return exchange
        return self.routes.to_client(step.stream if exchange is None else exchange.stream)

    def _switch(self, *, is_wanted: bool) -> bool:
        if is_wanted:
            self.routes.inspect()
        return is_wanted

    def _settle(self) -> None:
        super()._settle()
        interceptor = self._interceptor
        self._only_check = None if interceptor is None else interceptor.only_check
        scripts = None if interceptor is None else interceptor.scripts
        self.changed_heads = frozenset(
            side for side, hook in _HEAD_HOOKS if scripts is not None and scripts.takes_heads(hook)
        )

    def _give_up(self, error: Exception) -> None:
        self._discard(error)
        for exchange in list(self._exchanges):  # Releasing its messages may remove an exchange.
            exchange.release_all()
        self._context.note_soon("error", {"text": self._failure})
        self._settle()


def _without_line_end(data: bytes) -> bytes:
    return data.removesuffix(b"\n").removesuffix(b"\r")
