"""The order of an exchange: its events, and the calls of its machine while something takes long.

While a call takes long (a large write, the turn of another exchange, a late decision), the calls after it wait, then the
next events, and nothing more is read from their sides.
"""

from __future__ import annotations

import asyncio
from collections import deque
from functools import partial
from typing import TYPE_CHECKING, Any, cast

from mcpspy.core.exchange.states import OVER
from mcpspy.core.recording.encode import CLIENT, SERVER

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from mcpspy.core.exchange.machine import ExchangeMachine
    from mcpspy.core.exchange.shell import Shell
    from mcpspy.io.http.context import ExchangeContext

WAITING = "calls wait"
"""A reason for which nothing is read from a side."""

NO_SHELL = cast("Shell", None)
"""The shell of an exchange that is over. Otherwise they refer to each other: the cycle would wait for the collector."""


class LaterCalls:
    """The shell of an exchange while something takes long: keeps the calls."""

    def __init__(self, shell: Any) -> None:
        self._shell = shell
        self.calls: deque[Callable[[], object]] = deque()

    def __getattr__(self, name: str) -> Callable[..., None]:
        method = getattr(self._shell, name)
        return lambda *arguments: self.calls.append(partial(method, *arguments))

    def decide(self, *arguments: Any) -> bool:
        self.calls.append(partial(self._shell.decide_later, *arguments))
        return False


class EventQueue:
    """An exchange whose machine takes one event at a time. The class above it creates the machine."""

    machine: ExchangeMachine
    _context: ExchangeContext
    _is_plain: bool
    """False once there is more to do after an event than to end the exchange: then nothing of what follows is asked."""
    _is_busy: bool
    """True while the machine takes an event, or its calls wait."""
    _is_gone = False
    """True once the client is lost."""
    _waiting: asyncio.Future[Any] | asyncio.Handle | None = None
    """The work for which the calls wait."""
    _events: tuple[Callable[[], None], ...] = ()
    """Events that wait for the calls."""
    _holds: frozenset[tuple[str, str]] = frozenset()
    """The sides from which nothing is read, each with the reason."""

    # The class above it has these.

    def _regulate(self) -> None:
        """Read from both sides what no reason holds."""

    def _settle(self) -> None:
        """Free what an exchange has that is over."""

    def _fail(self, error: BaseException) -> None:
        """End the exchange because of a bug in mcpspy."""

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
        if not isinstance(self.machine.shell, LaterCalls):
            self.machine.shell = cast("Shell", LaterCalls(self))

    def _has_waited(self, work: asyncio.Future[None], done: Callable[[], None] | None) -> None:
        if not work.cancelled() and (error := work.exception()) is not None:
            self._fail(error)
        else:
            self._continue(None if self._is_gone else done)

    def _continue(self, done: Callable[[], None] | None) -> None:
        """Make the calls that have waited, then take the events that have."""
        self._waiting, later = None, self.machine.shell
        assert isinstance(later, LaterCalls)
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

    def take_turn(self, long_step: Callable[[], None] | None) -> None:
        proceed = self.machine.proceed
        if long_step is not None:
            self._wait_for(asyncio.to_thread(long_step), proceed)
            return
        self._waiting = asyncio.get_running_loop().call_soon(self._continue, proceed)
        self._put_off()

    def pause(self, side: str, is_paused: bool) -> None:
        self._hold(side, "the scripts decide", is_held=is_paused)

    def _hold(self, side: str, why: str, *, is_held: bool) -> None:
        """Read nothing from a side for this reason, or no longer for this one."""
        hold = side, why
        if is_held != (hold in self._holds):
            self._holds, self._is_plain = self._holds | {hold} if is_held else self._holds - {hold}, False
            self._regulate()
