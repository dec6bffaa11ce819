"""Tests of work in a thread: its result, its exception, and its cancellation."""

from __future__ import annotations

import asyncio
import gc
import threading
from collections.abc import Callable

import pytest

from mcpspy.ui.tui.diff.comparison import run_in_thread

BOUND = 30.0


async def test_the_event_loop_runs_while_the_work_is_done() -> None:
    may_end = threading.Event()

    def work(may_continue: Callable[[], bool]) -> int:
        assert may_end.wait(BOUND)
        assert not gc.isenabled()
        return 7

    waiting = asyncio.create_task(run_in_thread(work))
    await asyncio.sleep(0)
    assert not waiting.done()
    may_end.set()
    assert await asyncio.wait_for(waiting, BOUND) == 7
    assert gc.isenabled()


async def test_an_exception_of_the_work_is_raised_by_the_caller() -> None:
    def work(may_continue: Callable[[], bool]) -> int:
        raise OSError(5, "Input/output error")

    with pytest.raises(OSError, match="Input/output error"):
        await asyncio.wait_for(run_in_thread(work), BOUND)
    assert gc.isenabled()


async def test_cancelled_work_stops_and_does_not_delay_the_exit() -> None:
    begun, stopped, done = threading.Event(), threading.Event(), threading.Event()
    threads: list[threading.Thread] = []

    def work(may_continue: Callable[[], bool]) -> None:
        threads.append(threading.current_thread())
        begun.set()
        while may_continue():
            done.wait(0.001)
        stopped.set()

    waiting = asyncio.create_task(run_in_thread(work))
    assert await asyncio.to_thread(begun.wait, BOUND)
    (thread,) = threads
    assert thread.daemon
    assert thread.name == "mcpspy-diff"
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    assert await asyncio.to_thread(stopped.wait, BOUND)
    await asyncio.to_thread(thread.join, BOUND)
