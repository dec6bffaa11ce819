"""`mcpspy replay`: plays a recorded client against a live server.

Connects `core.replay`, which decides what to send, with `io.client`, which sends it, and records the run. No server
process is left at the end.
"""

from __future__ import annotations

import asyncio
import itertools
import signal
from collections.abc import Callable, Mapping, Sequence
from time import monotonic
from typing import TYPE_CHECKING, Protocol

from msgspec import Struct, convert

from mcpspy.core.recording import encode
from mcpspy.core.recording.decode import Header, read_entry
from mcpspy.core.recording.encode import FORMAT
from mcpspy.core.redact.display import redacted_text
from mcpspy.core.replay.plan import ReplayPlan
from mcpspy.core.replay.player import Player, PlayerOptions, SentRequest
from mcpspy.core.replay.substitution import Substitutions
from mcpspy.core.session.session import Session
from mcpspy.errors import CannotStart
from mcpspy.io.client import (
    ConnectionEnded,
    ExchangeLost,
    ExchangeRefused,
    InboundEvent,
    ReceivedMessage,
    ServerCommand,
    ServerConnection,
    ServerTarget,
    StderrLine,
    connect,
)
from mcpspy.io.recording.recorder import Recorder, RecordingTarget, say
from mcpspy.io.recording.redaction import redactor
from mcpspy.io.session_name import session_name

if TYPE_CHECKING:
    from mcpspy.core.recording.encode import Lines, Value


PROGRESS_INTERVAL = 1.0
"""Seconds between progress reports to the user."""


class RecordingObserver(Recorder):
    """Records the traffic, if a recording is wanted, and collects it as a session, unless it is one of many runs."""

    def __init__(self, where: RecordingTarget, fields: Mapping[str, Value], *, collects: bool = True) -> None:
        super().__init__(where, fields)
        self._collects = collects
        self.session = Session(_header(fields, self.writer.id if self.writer is not None else ""))
        self._epoch = monotonic()
        self._redactor = redactor(where.redaction, say)

    def now(self) -> float:
        return self.writer.now() if self.writer is not None else monotonic() - self._epoch

    def write(self, lines: Lines) -> None:
        data = lines if isinstance(lines, bytes) else b"".join(lines)
        super().write(data)
        if not self._collects:
            return
        # The session is shown and reported, so it must not contain secrets either.
        for line in (data if self._redactor is None else self._redactor.lines(data)).split(b"\n"):
            if line:
                self.session.add(read_entry(line))

    def note(self, kind: str, **fields: Value) -> None:
        self.write(encode.note(self.now(), kind, fields))


class ReplayWatcher(Protocol):
    """A viewer of a single replay, which may change its course. Called in the event loop of the replay."""

    def connected(self, player: Player, session: Session, wake: Callable[[], None]) -> None:
        """Called for each plan. `wake` lets the replay look at the player again at once, after it was changed."""

    async def looked(self) -> None:
        """Called after each change of the player. The replay waits until it returns."""

    def stderr(self, line: bytes) -> None:
        """Called for each line of the server's stderr."""


class ReplayRun(Struct):
    session: Session
    path: str | None
    sent: list[SentRequest]
    warnings: list[str]
    substitutions: list[Substitutions]
    stopped: str | None = None
    unsent: int = 0
    failed: str | None = None
    """The reason, if the server never answered anything."""
    last_words: list[str] = []


class ReplayOptions(Struct, frozen=True):
    target: ServerTarget
    plans: Sequence[ReplayPlan]
    options: PlayerOptions
    where: RecordingTarget
    """Destination of each run; of a load test, only the first one is recorded."""
    name: str = ""
    repeat: int = 1
    watch: Callable[[str, float], None] | None = None
    """Called every second with the pending work and its duration in seconds."""
    watcher: ReplayWatcher | None = None


class ReplayInterrupted(Exception):  # noqa: N818 - not an error: the user ended it.
    """A signal ended the replay. `played` contains the runs so far."""

    def __init__(self, number: int, played: list[ReplayRun]) -> None:
        super().__init__(number)
        self.number = number
        self.played = played


class ReplayStopped(CannotStart):
    """A later run could not start. `played` contains the runs so far."""

    def __init__(self, error: CannotStart, played: list[ReplayRun]) -> None:
        super().__init__(error.args[0], error.hint)
        self.played = played


def run(replay: ReplayOptions) -> list[ReplayRun]:
    """Return the runs in the order of their ends. Raise CannotStart, ReplayStopped or ReplayInterrupted."""
    return asyncio.run(_run(replay))


async def _run(replay: ReplayOptions) -> list[ReplayRun]:
    played: list[ReplayRun] = []
    done = 0
    signals = cancelled_by_signals()
    try:
        for _ in range(replay.repeat):
            done = len(played)
            await play(replay, replay.where, played)
            if all(each.failed for each in played):
                break
    except CannotStart as error:
        if not done:
            raise
        raise ReplayStopped(error, played[:done]) from None
    except asyncio.CancelledError:
        raise ReplayInterrupted(signals[0] if signals else signal.SIGINT, played) from None
    return played


async def play(
    replay: ReplayOptions,
    where: RecordingTarget,
    played: list[ReplayRun],
    *,
    collects: bool = True,
    is_reachable: bool = False,
) -> None:
    """Run all plans, one after the other. The run is added to `played` even if this is cancelled."""
    observer = RecordingObserver(where, header_fields(replay.target, replay.name), collects=collects)
    path = observer.writer.path if observer.writer is not None else None
    unsent = sum(len(plan.requests) for plan in replay.plans)
    run = ReplayRun(observer.session, path, [], [], [], unsent=unsent)
    ids, numbers = itertools.count(1), itertools.count(1)
    ended: ConnectionEnded | None = None
    try:
        for plan in replay.plans:
            recorder = observer if collects or path is not None else None
            connection = await connect(replay.target, recorder, numbers, is_reachable=is_reachable)
            try:
                player = Player(plan, replay.options, ids, monotonic())
                playback = _Playback(connection, player, replay, run)
                if replay.watcher is not None:
                    replay.watcher.connected(player, observer.session, playback.wake)
                await playback.play()
            finally:
                await connection.close()
                ended = connection.ended
            if run.stopped is not None:
                break
    except CannotStart as error:
        observer.note("error", text=str(error))
        raise
    finally:
        if isinstance(replay.target, ServerCommand):
            observer.finish(ended.code if ended else None, ended.signal if ended else None)
        else:
            observer.finish(0, None)
        observer.session.end()
        played.append(run)


class _Playback:
    """One plan on one connection."""

    def __init__(
        self, connection: ServerConnection, player: Player, replay: ReplayOptions, run: ReplayRun
    ) -> None:
        self._connection = connection
        self._player = player
        self._timeout = replay.options.timeout
        self._watch = replay.watch
        self._watcher = replay.watcher
        self._run = run
        self._invalid_output = ""
        self._waiting: asyncio.Timeout | None = None
        self._is_woken = False

    def wake(self) -> None:
        """Do not wait any longer for the server before looking at the player."""
        self._is_woken = True
        if self._waiting is not None:
            self._waiting.reschedule(asyncio.get_running_loop().time())

    async def play(self) -> None:
        player = self._player
        try:
            while not player.is_over:
                if self._watcher is not None:
                    await self._watcher.looked()  # It may pause the replay because of what was received.
                for data in player.take(monotonic()):
                    await self._send(data)
                if self._watcher is not None:
                    await self._watcher.looked()
                if not player.is_over:
                    self._take(await self._receive(player.next_at))
        finally:
            run = self._run
            run.sent += player.sent.values()
            run.warnings += player.warnings
            run.substitutions.append(player.substitutions)
            run.last_words = list(self._connection.last_words)
            run.unsent -= len(player.sent)
            run.stopped = player.stopped
            run.failed = self._failure()

    async def _send(self, data: bytes) -> None:
        try:
            async with asyncio.timeout(self._timeout):
                await self._connection.send(data)
        except TimeoutError:
            why = f"the server did not accept a message within {self._timeout:g} s"
            self._player.refused(None, why, monotonic())

    async def _receive(self, until: float | None) -> InboundEvent | None:
        """Return the next event, or None if there is none before the time `until` or `wake`."""
        start = monotonic()
        while True:
            if self._is_woken:
                self._is_woken = False
                return None
            left = PROGRESS_INTERVAL if until is None else max(0.0, until - monotonic())
            try:
                async with asyncio.timeout(min(PROGRESS_INTERVAL, left)) as self._waiting:
                    return await self._connection.hear()
            except TimeoutError:
                now = monotonic()
                if until is not None and now >= until:
                    return None
                if self._watch is not None:
                    self._watch(self._player.waiting, now - start)
            finally:
                self._waiting = None

    def _take(self, event: InboundEvent | None) -> None:
        player = self._player
        if isinstance(event, ReceivedMessage):
            if not player.received(event.data, event.at, event.request, event.status):
                text = event.data.decode("utf-8", "backslashreplace").strip()
                self._invalid_output = self._invalid_output or text
        elif isinstance(event, ExchangeRefused | ExchangeLost):
            about = "" if event.request is not None else "the server did not accept a message: "
            player.refused(
                event.request, about + event.why, event.at, is_gone=isinstance(event, ExchangeLost)
            )
        elif isinstance(event, ConnectionEnded):
            player.end(f"the server {event.why}", event.at)
        elif isinstance(event, StderrLine) and self._watcher is not None:
            self._watcher.stderr(event.line)

    def _failure(self) -> str | None:
        player = self._player
        refused = (
            f"{sent.about}: {sent.failed}"
            for sent in player.sent.values()
            if sent.failed and sent.step.exchange is not None and sent.step.exchange.answer is not None
        )
        why = player.stopped or next(refused, None)
        if why is None or player.is_answered:
            return None
        output = (
            f"; its output is not JSON-RPC: {redacted_text(self._invalid_output)[:80]}"
            if self._invalid_output
            else ""
        )
        return f"{self._connection.name}: {why}{output}"


def cancelled_by_signals() -> list[int]:
    """Cancel this task on SIGINT and SIGTERM. Return the list of signals received.

    A second signal does not wait for servers.
    """
    loop, task, signals = asyncio.get_running_loop(), asyncio.current_task(), list[int]()
    assert task is not None

    def end(number: int) -> None:
        signals.append(number)
        task.cancel()

    for number in (signal.SIGINT, signal.SIGTERM):
        try:
            loop.add_signal_handler(number, end, number)
        except NotImplementedError:  # Windows: asyncio's own handler cancels the task on Ctrl-C.
            pass
    return signals


def header_fields(target: ServerTarget, name: str = "") -> dict[str, Value]:
    """Return the fields of the header of a recording in which mcpspy is the client of a server."""
    if isinstance(target, ServerCommand):
        name = name or session_name(target.arguments)
        return {"transport": "stdio", "command": target.arguments, "name": name}
    return {"transport": "http", "upstream": target.url, "name": name}


def _header(fields: Mapping[str, Value], id: str) -> Header:  # noqa: A002
    return convert({"mcpspy": FORMAT, "id": id, "started": "", **fields}, Header)
