"""An HTTP session that somebody may reach into: rules, a watchdog, viewers.

Owns the order of things for messages that are decided on: the decision, the
entry and its notes in the recording, then what is done. With nothing to decide
no exchange comes by here. What becomes of one exchange is `io.detour`'s, how
each side is reached `io.ways`'.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable
from contextlib import asynccontextmanager
from time import monotonic
from typing import TYPE_CHECKING, Any, TypeAlias

from mcpspy.core.envelope import MCPSPY, frame_prefix, note, splice
from mcpspy.core.intercept.steps import OrderError, Pass, Remark, Ruling, Speak, Step, Tell
from mcpspy.core.message import Result, read_frame
from mcpspy.core.mirrored import Tools
from mcpspy.core.record import Frame
from mcpspy.core.spec import CLIENT, SERVER
from mcpspy.io.control.looped import Looped
from mcpspy.io.past import frames
from mcpspy.io.recorder import say
from mcpspy.io.ways import Lane, Way, Ways

if TYPE_CHECKING:
    from mcpspy.core.envelope import Value
    from mcpspy.core.intercept.desk import Desk
    from mcpspy.io.http import Proxy
    from mcpspy.io.interception import Interception
Lines: TypeAlias = list[bytes | bytearray]
"""Of the recording, in pieces."""

Deeds: TypeAlias = list[tuple[Lane | None, Step]]
"""What is done once that is written, and by whom."""


class Board:
    """The desk of one proxy, and what it needs of HTTP."""

    def __init__(self, proxy: Proxy, interception: Interception, name: str) -> None:
        self._proxy = proxy
        self._asked_for = interception
        self._name = name
        self._desk: Desk | None = None
        self._recorder = proxy.recorder
        self._epoch = monotonic() - proxy.recorder.now()
        self._lanes: set[Lane] = set()
        self._alarm: asyncio.TimerHandle | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        """What goes on until it is over, or we are."""
        self._deeds: set[asyncio.Task[None]] = set()
        """What is soon done, and seen through."""
        self._failed = ""
        self._undecided = 0
        """Counts down what goes by without a desk: tickets that no desk gives."""
        self._known_until = 0.0
        self.is_on = False
        """Whether messages are decided on."""
        self.ways = Ways()
        self.tools = Tools()
        """What the server's tools want in the headers of a call."""
        self.session = proxy.recorder.id or os.urandom(4).hex()
        self.tell: Callable[[str | None, dict[str, Any]], None] = _nobody
        """How a viewer is reached; None: all of them."""

    @property
    def has_watchdog(self) -> bool:
        """Whether requests may be answered that have gone to the server."""
        return self._asked_for.call_timeout is not None

    @asynccontextmanager
    async def reachable(self) -> AsyncIterator[None]:
        """Do what was asked for on the command line, and let viewers in, while the context lasts."""
        if self._asked_for.is_active:
            self._desk = self._asked_for.desk()
            opening = self._desk.opening()
            await self._proxy.note(opening.kind, opening.fields)
            self._settle()
        control = await Looped.open(self, say) if self._proxy.is_reachable else None
        if control is not None:
            self.tell = control.tell
        try:
            yield
        finally:
            self.end()
            if control is not None:
                await control.close()
            await self._finish()

    # What exchanges say.

    def hear_tools(self, data: bytes) -> None:
        """Learn from the answer to a `tools/list` what a call of ours has to say in headers."""
        for message in read_frame(Frame(0.0, SERVER, data)):
            if isinstance(message, Result):
                self.tools.learn(message)

    async def take(
        self, lane: Lane, side: str, data: bytes, fields: dict[str, Value], kept: Callable[[int], None]
    ) -> None:
        """Have a message decided on, and in the recording, and the lane told what becomes of it.

        `kept` is told its ticket before that.
        """
        if lane.lists_tools and side == SERVER:
            self.hear_tools(data)
        at = self.now()
        ruling, lines, deeds = self._decided(at, lane, side, data)
        kept(ruling.ticket)
        if ruling.to_mcpspy:
            fields = {**fields, "to": MCPSPY}
        await self._keep(at, side, data, fields, lines)
        self._do(deeds)
        self._settle()

    def enters(self, lane: Lane) -> None:
        """An exchange comes by here."""
        self._lanes.add(lane)

    def left(self, lane: Lane) -> None:
        """An exchange is over."""
        self._lanes.discard(lane)
        self._run(lambda desk, at: desk.lane_left(at, lane))

    def failed(self, id: str, why: str) -> None:  # noqa: A002
        """A request of ours could not be delivered."""
        self._run(lambda desk, at: desk.failed(at, id, why))

    def end(self) -> None:
        """Nothing more will come: what is held goes on."""
        self._run(lambda desk, at: desk.end(at))
        self.is_on = False

    async def _finish(self) -> None:
        """Stop what is still going on."""
        if self._alarm is not None:
            self._alarm.cancel()
        while self._tasks or self._deeds:
            for task in self._tasks:
                task.cancel()
            await asyncio.gather(*self._tasks, *self._deeds, return_exceptions=True)

    # What viewers say.

    def hello(self) -> dict[str, Any]:
        """Return what a viewer is told first."""
        recorder = self._proxy.recorder
        return {
            "session": self.session,
            "file": recorder.path,
            "name": self._name,
            "transport": "http",
            "pid": os.getpid(),
            "state": {} if self._desk is None else self._desk.describe(self.now()),
        }

    def order(self, viewer: str, order: dict[str, Any]) -> dict[str, Any]:
        """Do as a viewer wants, and return the answer; raise OrderError."""
        if self._failed:
            raise OrderError(self._failed)
        try:
            desk = self._learned()
            self._check(order)
            answer, steps = desk.order(self.now(), viewer, order)
        except OrderError:
            raise
        except Exception as error:
            self._give_up(error)
            raise OrderError(self._failed) from None
        self._settle()
        self._see_through(self._perform(self.now(), steps))
        return answer

    def viewer_left(self, viewer: str) -> None:
        """Let go of what this viewer held."""
        self._run(lambda desk, at: desk.viewer_left(at, viewer))

    def _check(self, order: dict[str, Any]) -> None:
        """Raise OrderError if nobody can be told."""
        if order.get("order") not in ("request", "notify"):
            return
        stream = order.get("stream")
        if order.get("to", SERVER) == CLIENT:
            self.ways.turn()
            found = self.ways.to_client(stream)
            if found is None:
                raise OrderError("the client has no stream open on which it could be told anything")
            if order["order"] == "request" and not self.ways.has_session(found.stream):
                raise OrderError("the client has no session, and so takes no requests")
        elif self.ways.to_server(stream) is None:
            raise OrderError("no client has said anything yet: there is no way to the server to go after")

    def _learned(self) -> Desk:
        """Return a desk that knows from the recording what was said while nobody asked it."""
        desk = self._desk
        if desk is None:
            desk = self._desk = self._asked_for.desk()
        if not self.is_on:
            for frame in frames(self._proxy.recorder, self._known_until):
                desk.hear(frame.at, frame.side, frame.data, stream=frame.stream)
        return desk

    # How it is done.

    def now(self) -> float:
        """Return the seconds since the session began, whether it is recorded or not."""
        recorder = self._proxy.recorder
        if recorder is not self._recorder:  # What may be a session is recorded once it is one.
            self._recorder, self._epoch = recorder, monotonic() - recorder.now()
        return monotonic() - self._epoch

    def spawn(self, work: Coroutine[Any, Any, None]) -> None:
        """Do something beside all exchanges, at most until we end."""
        _start(work, self._tasks)

    def _see_through(self, work: Coroutine[Any, Any, None]) -> None:
        _start(work, self._deeds)

    def _run(self, decide: Callable[[Desk, float], list[Step]]) -> None:
        """Do what the desk wants done, without a message."""
        if self._desk is None:
            return
        at = self.now()
        try:
            steps = decide(self._desk, at)
        except Exception as error:
            self._give_up(error)
            return
        if steps:
            self._see_through(self._perform(at, steps))
        self._settle()

    def _decided(self, at: float, lane: Lane, side: str, data: bytes) -> tuple[Ruling, Lines, Deeds]:
        """Return what becomes of a message: what is to be recorded behind it, and then done."""
        if self._desk is not None:
            try:
                ruling = self._desk.take(at, side, _one(data), stream=lane.stream, lane=lane)
                return ruling, *self._performed(at, ruling.steps)
            except Exception as error:
                self._give_up(error)
        self._undecided -= 1
        step = Pass(side, data, lane, self._undecided)
        return Ruling(self._undecided, False, [step], False), [], [(lane, step)]

    async def _perform(self, at: float, steps: Iterable[Step]) -> None:
        try:
            lines, deeds = self._performed(at, steps)
        except Exception as error:
            self._give_up(error)
            return
        await self.keep_lines(lines)
        self._do(deeds)

    def _performed(self, at: float, steps: Iterable[Step]) -> tuple[Lines, Deeds]:
        """Return what is to be recorded for these steps, and what is then done, and by whom."""
        lines: Lines = []
        deeds: Deeds = []
        for step in steps:
            if isinstance(step, Remark):
                lines.append(_note(at, step, step.lane))
                continue
            lane: Lane | None = None
            if isinstance(step, Speak):
                lane = self._speaker(step)
                if lane is None:  # Whoever it was for has gone.
                    if step.id is not None:
                        self.failed(step.id, "there is no way to it any more")
                    continue
                prefix = frame_prefix(step.side, {**lane.fields, "by": MCPSPY})
                lines += splice(prefix % at, [step.data], body=True)
            elif not isinstance(step, Tell):
                lane = step.lane  # type: ignore[assignment]  # What we gave it.
            deeds.append((lane, step))
        return lines, deeds

    def _do(self, deeds: Deeds) -> None:
        for lane, step in deeds:
            if isinstance(step, Tell):
                self.tell(step.viewer, step.event)
            elif lane is not None:
                lane.deliver(step)

    def _speaker(self, step: Speak) -> Lane | None:
        """Return who says something of ours."""
        if step.side == CLIENT:
            way = self.ways.to_server(step.stream)
            return None if way is None else self._errand(way)
        lane: Any = step.lane
        if lane is not None and lane.is_answered_here:
            return lane  # type: ignore[no-any-return]
        return self.ways.to_client(step.stream if lane is None else lane.stream)

    def _errand(self, way: Way) -> Lane:
        from mcpspy.io.errand import Errand

        return Errand(self._proxy, self, way)

    async def keep_lines(self, lines: Iterable[bytes | bytearray]) -> None:
        """Have lines in the recording."""
        entry = list(lines)
        if entry:
            await self._proxy.keep(entry, sum(map(len, entry)))

    async def _keep(self, at: float, side: str, data: bytes, fields: dict[str, Value], lines: Lines) -> None:
        """Have a message in the recording, and its notes directly after it."""
        size = len(data) + sum(map(len, lines))
        entry = [*splice(frame_prefix(side, fields) % at, [data], body=True), *lines]
        await self._proxy.keep(entry, size)

    def _settle(self) -> None:
        """Be there if there is something to decide, and ring when something is due."""
        desk = self._desk
        is_on = desk is not None and not desk.is_idle
        if self.is_on and not is_on:
            self._known_until = self.now()
        self.is_on = is_on
        if is_on:
            self.ways.turn()
        if self._alarm is not None:
            self._alarm.cancel()
            self._alarm = None
        if desk is not None and (next_at := desk.next_at) is not None:
            delay = max(next_at - self.now(), 0.0)
            self._alarm = asyncio.get_running_loop().call_later(delay, self._ring)

    def _ring(self) -> None:
        self._alarm = None
        self._run(lambda desk, at: desk.wake(at))
        self._settle()

    def _give_up(self, error: Exception) -> None:
        """Let everything pass from here on: a bug of ours costs the rules, not the traffic."""
        self._desk = None
        self._failed = f"a bug in mcpspy: {type(error).__name__}: {error}; rules and holds are off"
        say(self._failed)
        for lane in list(self._lanes):  # One that was kept by what is held leaves.
            lane.let_go()
        self._see_through(self._proxy.note("error", {"text": self._failed}))
        self._settle()


def is_message(data: bytes) -> bool:
    """Whether the outer brackets are those of an object or array."""
    data = data.strip()
    return data[:1] + data[-1:] in (b"{}", b"[]")


def _one(data: bytes) -> bytes:
    """Return a body without the line end that it may have."""
    return data.removesuffix(b"\n").removesuffix(b"\r")


def _note(at: float, remark: Remark, lane: Any) -> bytes:
    http = {} if lane is None else {"http": lane.fields.get("http")}
    return note(at, remark.kind, http | remark.fields)


def _start(work: Coroutine[Any, Any, None], among: set[asyncio.Task[None]]) -> None:
    task = asyncio.ensure_future(work)
    among.add(task)
    task.add_done_callback(among.discard)


def _nobody(viewer: str | None, event: dict[str, Any]) -> None:
    """Nobody is there to be told."""
