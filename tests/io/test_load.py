"""Load tests: when runs start, what is kept of them, and how late this process itself was."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
from typing import TYPE_CHECKING

import pytest

from mcpspy.analysis.load import Histogram
from mcpspy.core.session.exchange import State
from mcpspy.io.load import PROBE_INTERVAL, LoadOptions, LoadRunner, LoopLateness
from mcpspy.io.replay import ReplayOptions, ReplayRun
from tests.io.changing import read, record
from tests.io.test_replay import request_key, states

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from mcpspy.core.session.session import Session


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Session:
    return read(record(tmp_path_factory.mktemp("recorded") / "changing.jsonl"))


def loaded(options: ReplayOptions, load: LoadOptions) -> tuple[LoadRunner, list[tuple[ReplayRun, float]]]:
    """Return the runner of a load test, and the runs with their delays."""
    taken: list[tuple[ReplayRun, float]] = []
    runner = LoadRunner(options, load, lambda played, delay: taken.append((played, delay)))
    assert runner.run() is None
    return runner, taken


def test_several_play_at_once_and_again_and_only_the_first_of_them_is_recorded(
    recorded: Session, tmp_path: Path
) -> None:
    runner, taken = loaded(
        request_key(recorded, "same", tmp_path / "new.jsonl"), LoadOptions(clients=3, repeat=2)
    )

    assert [states(played) for played, _ in taken] == [[State.OK] * 8] * 6
    assert len(runner.collected) == 6
    assert len([played for played, _ in taken if played.path is not None]) == 1
    assert [path.name for path in tmp_path.glob("new*.jsonl")] == ["new.jsonl"]


def test_only_the_first_runs_of_a_load_test_keep_their_sessions(
    recorded: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mcpspy.io.load.COLLECTED_RUNS", 1)

    runner, taken = loaded(request_key(recorded, "same"), LoadOptions(clients=1, repeat=3))

    assert len(runner.collected) == 1
    assert sorted(len(played.session.changes) > 0 for played, _ in taken) == [False, False, True]
    assert [len(played.sent) for played, _ in taken] == [8, 8, 8]


def test_runs_that_are_due_while_all_clients_are_busy_count_their_delay(recorded: Session) -> None:
    _, taken = loaded(request_key(recorded, "same"), LoadOptions(clients=1, repeat=3, rate=1000.0))

    delays = [delay for _, delay in taken]
    assert delays == sorted(delays)
    assert delays[2] > delays[1] > 0.02


def test_a_run_whose_client_is_free_has_no_delay_however_late_a_timer_wakes_it(recorded: Session) -> None:
    _, taken = loaded(request_key(recorded, "same"), LoadOptions(clients=3, repeat=3, rate=8.0))

    assert [delay for _, delay in taken][1:] == [0.0, 0.0]


def test_no_run_starts_after_the_duration_and_those_that_were_due_are_counted(recorded: Session) -> None:
    runner, taken = loaded(request_key(recorded, "same"), LoadOptions(clients=1, rate=1000.0, duration=0.05))

    assert len(taken) + runner.result.unstarted == 50


def test_a_signal_ends_a_load_test_and_the_completed_runs_count(recorded: Session) -> None:
    runner = LoadRunner(
        request_key(recorded, "same"),
        LoadOptions(clients=1, repeat=5),
        lambda *_: os.kill(os.getpid(), signal.SIGTERM),
    )

    assert runner.run() == signal.SIGTERM
    assert [states(played) for played in runner.collected] == [[State.OK] * 8]


def test_a_server_that_never_responds_ends_a_load_test(recorded: Session) -> None:
    runner, taken = loaded(request_key(recorded, "garbage"), LoadOptions(clients=1, repeat=5))

    assert len(taken) == 1
    assert runner.collected[0].failed is not None


@pytest.mark.parametrize(
    ("load", "due"),
    [
        (LoadOptions(1, 3, rate=2.0), [0.0, 0.5, 1.0]),
        (LoadOptions(1, None, rate=2.0, duration=1.0), [0.0, 0.5]),
        (LoadOptions(1, 5, rate=2.0, ramp=2.0), [0.0, 2**0.5, 2.0, 2.5, 3.0]),
    ],
)
def test_runs_are_due_at_the_rate_after_a_linear_ramp(load: LoadOptions, due: list[float]) -> None:
    assert list(load.due_times()) == pytest.approx(due)


def test_a_loop_that_is_busy_notices_late_and_its_lateness_is_measured(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    lateness, probes = Histogram(), threading.Semaphore(0)

    async def busy() -> None:
        loop = asyncio.get_running_loop()
        wake = loop.call_soon_threadsafe

        def woken(notice: Callable[[float], None], due: float) -> asyncio.Handle:
            probes.release()
            return wake(notice, due)

        monkeypatch.setattr(loop, "call_soon_threadsafe", woken)
        with LoopLateness(lateness):
            for _ in range(4):  # The loop does nothing else meanwhile.
                assert probes.acquire(timeout=10)
        monkeypatch.undo()
        await asyncio.sleep(0)

    asyncio.run(busy())

    assert lateness.count >= 4
    assert lateness.most >= 3 * PROBE_INTERVAL
