"""A task that continues inside the callback for which it waits, and otherwise behaves as a task of asyncio."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from mcpspy.io.http.inline_task import InlineTask, Wakeup

pytestmark = pytest.mark.timeout(60)


async def called(callback: Callable[[], object]) -> None:
    """Run a function as a protocol's method runs: outside every task."""
    done = asyncio.get_running_loop().create_future()

    def run() -> None:
        try:
            callback()
            done.set_result(None)
        except BaseException as error:
            done.set_exception(error)

    asyncio.get_running_loop().call_soon(run)
    await done


async def started(work: Coroutine[Any, Any, Any]) -> InlineTask[Any]:
    tasks: list[InlineTask[Any]] = []
    await called(lambda: tasks.append(InlineTask(work)))
    return tasks[0]


async def test_it_runs_inside_the_callback() -> None:
    order: list[str] = []
    wakeup = Wakeup()

    async def work() -> str:
        order.append("begun")
        await wakeup
        order.append("woken")
        return "result"

    def callback() -> None:
        order.append("before")
        wakeup.set()
        wakeup.set()
        order.append("after")

    task = await started(work())
    assert order == ["begun"]
    await called(callback)
    assert order == ["begun", "before", "woken", "after"]
    assert await task == "result"


async def test_it_awaits_everything_that_a_task_awaits() -> None:
    async def work() -> list[Any]:
        await asyncio.sleep(0)
        slept = await asyncio.wait_for(asyncio.sleep(0.001, "slept"), 30)
        queue: asyncio.Queue[str] = asyncio.Queue()
        asyncio.get_running_loop().call_soon(queue.put_nowait, "queued")
        threaded = await asyncio.to_thread(lambda: "threaded")
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.001):
                await Wakeup()
        assert asyncio.current_task() is not None
        return [slept, await queue.get(), threaded]

    assert await (await started(work())) == ["slept", "queued", "threaded"]


async def test_an_ordinary_task_awaits_a_wakeup_too() -> None:
    wakeup = Wakeup()

    async def work() -> str:
        await wakeup
        return "woken"

    task = asyncio.create_task(work())
    await asyncio.sleep(0)
    wakeup.set()
    assert await task == "woken"


async def test_it_does_not_run_inside_another_task() -> None:
    order: list[str] = []
    wakeup = Wakeup()

    async def work() -> None:
        order.append("begun")
        await wakeup
        order.append("woken")

    task = InlineTask(work())
    order.append("created")
    await asyncio.sleep(0)
    wakeup.set()
    order.append("set")
    await task
    assert order == ["created", "begun", "set", "woken"]


@pytest.mark.parametrize("waits_for", ["wakeup", "sleep", "iteration"])
async def test_a_cancellation_reaches_the_coroutine(waits_for: str) -> None:
    cancelled = asyncio.Event()

    async def work() -> None:
        try:
            for _ in range(1000 if waits_for == "iteration" else 0):
                await asyncio.sleep(0)
            await (Wakeup() if waits_for == "wakeup" else asyncio.sleep(30))
        except asyncio.CancelledError:
            cancelled.set()
            raise

    task = await started(work())
    assert task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert cancelled.is_set()
    assert task.cancelled()
    assert not task.cancel()


async def test_an_error_is_its_result() -> None:
    async def work() -> None:
        raise ValueError("wrong")

    with pytest.raises(ValueError, match="wrong"):
        await (await started(work()))


async def test_it_can_cancel_itself() -> None:
    tasks: list[InlineTask[None]] = []

    async def work() -> None:
        await asyncio.sleep(0)
        tasks[0].cancel()
        await Wakeup()

    await called(lambda: tasks.append(InlineTask(work())))
    with pytest.raises(asyncio.CancelledError):
        await tasks[0]
