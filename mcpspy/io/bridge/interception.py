"""Interception of a bridged session: the lockfile, scripts and viewers.

The host's stdio determines the order of each direction, whatever HTTP exchanges carry its messages. Each message
is recorded with the fields of its exchange, before its decision is executed. While there is nothing to decide, a message
is only recorded and forwarded.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

from mcpspy.core.framing import is_message
from mcpspy.core.intercept.actions import CommandError
from mcpspy.core.protocol.spec import CLIENT, SERVER
from mcpspy.core.recording.encode import MCPSPY, frame_prefix, splice
from mcpspy.io.control.server_asyncio import AsyncioServer
from mcpspy.io.intercept.asyncio_interception import AsyncioInterception
from mcpspy.io.recording.recorder import say

if TYPE_CHECKING:
    from mcpspy.core.intercept.actions import Disconnect, Dropped, Forward, Inject, Step, Substitute
    from mcpspy.core.intercept.interceptor import Interceptor
    from mcpspy.core.recording.encode import Value
    from mcpspy.io.client.http_exchange import ClientExchange
    from mcpspy.io.intercept.executor import Effect, Lines
    from mcpspy.io.intercept.interception import InterceptionOptions
    from mcpspy.io.recording.recorder import Recorder


class _Received(NamedTuple):
    """A message that is not forwarded yet."""

    side: str
    data: bytes
    exchange: ClientExchange | None


class BridgeInterception(AsyncioInterception):
    """The interception of one bridge. Only `order` raises."""

    transport = "http"

    def __init__(
        self,
        recorder: Recorder,
        options: InterceptionOptions,
        name: str,
        *,
        to_host: Callable[[bytes], None],
        to_server: Callable[[bytes, ClientExchange | None], None],
        exchange_for: Callable[[bytes], ClientExchange | None],
        is_connected: Callable[[], bool],
    ) -> None:
        """Prepare the interception. `to_host` and `to_server` forward a message, in order.

        `exchange_for` returns the exchange of an injected message, None if it only closes another exchange.
        """
        super().__init__(recorder, options, name)
        self._to_host = to_host
        self._to_server = to_server
        self._exchange_for = exchange_for
        self._is_connected = is_connected
        self._received: dict[int, _Received] = {}
        """Held messages by ticket, in order of arrival."""
        self._has_room = {CLIENT: asyncio.Event(), SERVER: asyncio.Event()}
        self._is_decided = {CLIENT: asyncio.Event(), SERVER: asyncio.Event()}

    @asynccontextmanager
    async def serving_viewers(self) -> AsyncIterator[None]:
        """Start the lockfile and the scripts, and accept viewers while the context is open."""
        self.begin()
        control = AsyncioServer.open(self, say)
        try:
            yield
        finally:
            self._finish()
            if control is not None:
                await control.close()

    async def wait_for_room(self, side: str) -> None:
        """Wait while too many messages of a side wait for the scripts."""
        await self._has_room[side].wait()

    async def wait_for_scripts(self, side: str) -> None:
        """Wait until no message of a side waits for the scripts."""
        await self._is_decided[side].wait()

    def record(self, side: str, data: bytes, fields: dict[str, Value]) -> None:
        """Record a message that is not inspected."""
        self._recorder.write(self._entry(self.now(), side, data, fields))

    def take(
        self,
        side: str,
        data: bytes,
        fields: dict[str, Value],
        *,
        exchange: ClientExchange | None = None,
        original: bytes | None = None,
        notes: Iterable[bytes] = (),
    ) -> None:
        """Record a message with these fields, and decide on it. `original` is recorded in its place, with `notes`."""
        at, decision = self.now(), None
        stream = fields.get("stream")
        if self._interceptor is not None and self.is_on and is_message(data):
            try:
                decision = self._interceptor.process(
                    at, side, data, stream=None if stream is None else str(stream)
                )
                lines, effects = self._planned(at, decision.steps)
                if decision.to_mcpspy:
                    fields = {**fields, "to": MCPSPY}
            except Exception as error:
                decision = None
                self._give_up(error)
        entry = [*self._entry(at, side, data if original is None else original, fields), *notes]
        received = _Received(side, data, exchange)
        if decision is None:
            self._recorder.write(entry)
            self._send(received, data)
            return
        self._recorder.write([*entry, *lines])
        self._received[decision.ticket] = received
        self._execute(effects)
        if not decision.is_held:
            self._received.pop(decision.ticket, None)
        self._settle()

    def failed(self, id: str, why: str) -> bool:  # noqa: A002
        """Report to its viewer a request that gets no response; return False if the request was not injected."""
        found: list[Step] = []

        def fail(interceptor: Interceptor, at: float) -> list[Step]:
            found.extend(interceptor.injection_failed(at, id, why))
            return found

        self._run(fail)
        self._settle()
        return bool(found)

    def end_side(self, side: str) -> None:
        """Release the held messages of a side that has ended."""
        self._run(lambda interceptor, at: interceptor.end(at, side))
        self._settle()

    def _finish(self) -> None:
        self._run(lambda interceptor, at: interceptor.end(at))
        self._release_all()
        self._settle()
        self.is_on = False
        self._cancel_alarm()

    def _check_deliverable(self, interceptor: Interceptor, order: dict[str, Any]) -> None:
        if order.get("to", SERVER) == SERVER and not self._is_connected():
            raise CommandError("cannot send to the server: it is not connected")
        # Without a recording, earlier messages are unknown.
        is_silent = self._recorder.writer is not None and not interceptor.injected.has_client_message
        if interceptor.injected.is_initializing or is_silent:
            raise CommandError("the session has not started: try again after the handshake")

    def _carry_out(self, at: float, steps: Iterable[Step]) -> None:
        lines, effects = self._planned(at, steps)
        if lines:
            self._recorder.write(lines)
        self._execute(effects)

    def forward(self, step: Forward | Substitute) -> None:
        self._send(self._received.pop(step.ticket), step.data)

    substitute = forward

    def drop(self, step: Dropped) -> None:
        del self._received[step.ticket]

    def disconnect(self, step: Disconnect) -> None:
        raise AssertionError("only rules disconnect, and a bridge has none")

    def injection(self, at: float, step: Inject) -> tuple[Lines, Effect]:
        exchange = self._exchange_for(step.data) if step.side == CLIENT else None
        stream: dict[str, Value] = {} if step.stream is None else {"stream": step.stream}
        fields = stream if exchange is None else exchange.fields
        injected = _Received(step.side, step.data, exchange)
        entry = self._entry(at, step.side, step.data, {**fields, "by": MCPSPY})
        return entry, lambda: self._send(injected, step.data)

    def _entry(self, at: float, side: str, data: bytes, fields: dict[str, Value]) -> Lines:
        return list(splice(frame_prefix(side, fields) % at, [data], body=True))

    def _send(self, received: _Received, data: bytes) -> None:
        if received.side == SERVER:
            self._to_host(data)
            return
        if received.exchange is not None:
            received.exchange.is_request_recorded = True
        self._to_server(data, received.exchange)

    def _switch(self, *, is_wanted: bool) -> bool:
        return is_wanted

    def _settle(self) -> None:
        super()._settle()
        for side in (CLIENT, SERVER):
            number, _ = self.waiting_for_scripts(side)
            _set(self._is_decided[side], number == 0)
            _set(self._has_room[side], not self.is_crowded(side))

    def _release_all(self) -> None:
        received, self._received = self._received, {}
        for each in received.values():
            self._send(each, each.data)

    def _give_up(self, error: Exception) -> None:
        self._discard(error)
        self._release_all()
        self._recorder.note("error", text=self._failure)
        self._settle()


def _set(event: asyncio.Event, value: bool) -> None:
    if value:
        event.set()
    else:
        event.clear()
