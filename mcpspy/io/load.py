"""Load tests: many runs of a recording, at a rate or by a number of clients.

It also measures itself. A latency includes the work of this process on a request, and the time until its event loop
noticed the response: the report names them where they are a large part of it.
"""

from __future__ import annotations

import asyncio
import itertools
import signal
import threading
from collections.abc import Callable, Iterator
from math import sqrt
from time import monotonic, process_time

from msgspec import Struct

from mcpspy.analysis.load import Histogram, LoadResult
from mcpspy.errors import CannotStart, UsageError
from mcpspy.io.client import prepare
from mcpspy.io.recording.recorder import RecordingTarget
from mcpspy.io.replay import ReplayOptions, ReplayRun, cancelled_by_signals, play

RATE_CLIENTS = 100
"""Maximum number of concurrent runs at a rate, unless the user names another one."""

COLLECTED_RUNS = 10
"""Number of first runs of a load test whose sessions are collected, to be compared."""


class LoadOptions(Struct, frozen=True):
    """A load test: each client starts its next run after the last one, or `rate` decides when runs start."""

    clients: int
    """Maximum number of concurrent runs."""
    repeat: int | None = None
    """Number of runs: of each client, or with `rate` of all of them; None for no limit."""
    rate: float | None = None
    """Runs that start per second, whether or not earlier ones are over."""
    duration: float | None = None
    """Seconds after which no run starts."""
    ramp: float = 0.0
    """Seconds until all clients have started, or until `rate` is reached."""

    def due_times(self) -> Iterator[float]:
        """Yield the due time of each run at a rate, in seconds from the start."""
        assert self.rate is not None
        for number in itertools.count() if self.repeat is None else range(self.repeat):
            # The rate rises linearly, so the number of runs is the area of a triangle until the end of the ramp.
            rising = sqrt(2 * number * self.ramp / self.rate)
            due = rising if rising < self.ramp else self.ramp / 2 + number / self.rate
            if self.duration is not None and due >= self.duration:
                return
            yield due


def load_options(
    clients: int | None, repeat: int | None, rate: float | None, duration: float | None, ramp: float
) -> LoadOptions:
    """Return a load test with the defaults of what the user did not choose. Raise UsageError if it would never end."""
    if rate is not None and duration is None and repeat is None:
        raise UsageError("a rate needs an end", "add a duration, or a number of runs")
    return LoadOptions(
        clients or (1 if rate is None else RATE_CLIENTS),
        repeat or (1 if duration is None else None),
        rate,
        duration,
        ramp,
    )


PROBE_INTERVAL = 0.02
"""Seconds between two measurements of the event loop's lateness."""


class LoopLateness:
    """Measures how late the event loop notices what happens, in seconds.

    A thread wakes the loop at certain times, as a socket does when a response arrives. The time that the thread needs
    to wake up counts, too: on a busy machine, a response waits for the processor in the same way. A timer of the loop
    would not do: it is up to a millisecond late even in an idle process.
    """

    def __init__(self, histogram: Histogram) -> None:
        self._histogram = histogram
        self._loop = asyncio.get_running_loop()
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._probe, name="mcpspy-lateness", daemon=True)

    def __enter__(self) -> LoopLateness:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._is_over.set()
        self._thread.join()

    def _probe(self) -> None:
        due = monotonic() + PROBE_INTERVAL
        while not self._is_over.wait(due - monotonic()):
            self._loop.call_soon_threadsafe(self._notice, due)
            due = max(due, monotonic()) + PROBE_INTERVAL

    def _notice(self, due: float) -> None:
        self._histogram.add(monotonic() - due)


class LoadRunner:
    """Starts the runs of a load test, and adds up their results; collects the first runs."""

    def __init__(
        self, replay: ReplayOptions, load: LoadOptions, watch: Callable[[ReplayRun, float], None]
    ) -> None:
        """`watch` gets each run, and its delay in seconds."""
        self.result = LoadResult()
        """Its `seconds` are up to date once a run is over, the rest of what is measured at the end."""
        self.collected: list[ReplayRun] = []
        self.started = 0.0
        self._replay, self._load, self._watch = replay, load, watch
        self._failed: list[ReplayRun] = []
        """Collected runs with an error."""
        self._unrecorded = RecordingTarget()
        self._unrecorded.recording, self._unrecorded.redaction = False, replay.where.redaction
        self._numbers = itertools.count()
        self._has_succeeded = self._has_failed = False

    def run(self) -> int | None:
        """Return the number of the signal that ended it, or None. Raise CannotStart if the first run cannot start."""
        return asyncio.run(self._run_until_signal())

    async def _run_until_signal(self) -> int | None:
        signals = cancelled_by_signals()
        return (signals[0] if signals else signal.SIGINT) if await self.play() else None

    def compare(self, is_same: Callable[[ReplayRun], bool]) -> None:
        """Count the collected runs that differ from the recording among those with an error."""
        succeeded = [run for run in self.collected if not any(run is failed for failed in self._failed)]
        self.result.different = self.result.failed_runs + sum(not is_same(run) for run in succeeded)

    async def play(self) -> bool:
        """Return whether it was cancelled. Raise CannotStart if the first run cannot start."""
        prepare(self._replay.target)
        self.started = monotonic()
        shared = self._load.due_times() if self._load.rate is not None else None
        count = self._load.clients
        due_times = (shared or self._successive(self._load.ramp * place / count) for place in range(count))
        clients = [asyncio.create_task(self._run_client(each)) for each in due_times]
        interrupted = False
        began = process_time()
        with LoopLateness(self.result.lateness):
            try:
                await asyncio.wait(clients, return_when=asyncio.FIRST_EXCEPTION)
            except asyncio.CancelledError:
                interrupted = True
        self.result.cpu, self.result.seconds = process_time() - began, monotonic() - self.started
        for each in clients:
            each.cancel()
        outcomes = await asyncio.gather(*clients, return_exceptions=True)
        for outcome in outcomes:
            if isinstance(outcome, Exception):
                raise outcome
        if shared is not None and not interrupted and self._load.duration is not None:
            self.result.unstarted += sum(1 for _ in shared)
        return interrupted

    def _successive(self, first: float) -> Iterator[float]:
        """Yield the due times of one client, which waits for nothing but its last run."""
        for _ in itertools.count() if self._load.repeat is None else range(self._load.repeat):
            due = max(first, monotonic() - self.started)
            if self._load.duration is not None and due >= self._load.duration:
                return
            yield due

    async def _run_client(self, due_times: Iterator[float]) -> None:
        for due in due_times:
            # A client that is free waits for the due time, and a timer may wake it late: the server did not cause that.
            delay = max(0.0, monotonic() - self.started - due)
            await asyncio.sleep(due - (monotonic() - self.started))
            is_over = self._load.duration is not None and monotonic() - self.started >= self._load.duration
            if is_over or (self._has_failed and not self._has_succeeded):
                self.result.unstarted += 1
                return
            await self._run_once(delay)

    async def _run_once(self, delay: float) -> None:
        number = next(self._numbers)
        collects = number < COLLECTED_RUNS
        played: list[ReplayRun] = []
        try:
            where = self._unrecorded if number else self._replay.where
            await play(self._replay, where, played, collects=collects, is_reachable=self._has_succeeded)
        except CannotStart as error:
            if not self._has_succeeded:
                raise
            played[0].stopped = str(error)
        (run,) = played
        if run.failed:
            self._has_failed = True
        else:
            self._has_succeeded = True
        if collects:
            self.collected.append(run)
        is_failed = self.result.add_run(run.sent, run.unsent, run.stopped, started=self.started, delay=delay)
        if is_failed and collects:
            self._failed.append(run)
        self.result.seconds = monotonic() - self.started
        self._watch(run, delay)
