"""Executors for work on many sessions: processes of this machine, or a Dask cluster."""

from __future__ import annotations

import logging
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import BrokenExecutor, CancelledError, Executor
from contextlib import contextmanager
from typing import Any, TypeVar

from mcpspy.core.sanitize import sanitize
from mcpspy.errors import CannotStart
from mcpspy.io.extras import require

Item = TypeVar("Item")
Result = TypeVar("Result")

CONNECT_SECONDS = 10
"""Maximum time to reach the scheduler of a cluster."""

TASK_BYTES = 4 << 20
"""Bytes of recordings from which on a task is complete: `lake add` needs a second for them, Dask 8 ms for each task."""


@contextmanager
def executor_of(workers: int, scheduler: str | None) -> Iterator[Executor | None]:
    """Return a context manager: a Dask cluster, N processes, or None for this process. It raises CannotStart."""
    if scheduler is not None:
        with cluster(scheduler) as executor:
            yield executor
    elif workers > 1:
        with pool(workers) as processes:
            yield processes
    else:
        yield None


@contextmanager
def cluster(scheduler: str) -> Iterator[Executor]:
    """Return a context manager: the workers of a Dask scheduler, `tcp://HOST:8786`. It raises CannotStart."""
    require("distributed", "--on", "cluster")
    import distributed

    connect: Any = distributed.Client  # Its methods have no types.

    for name in [*logging.root.manager.loggerDict]:
        if name.partition(".")[0] == "distributed":  # Lost workers are reported in one line.
            logging.getLogger(name).setLevel(logging.CRITICAL)
    try:
        client = connect(scheduler, timeout=CONNECT_SECONDS, set_as_default=False)
    except (OSError, ValueError) as error:
        reason = sanitize(str(error).partition("\n")[0])
        raise CannotStart(
            f"--on {sanitize(scheduler)}: no Dask scheduler: {reason}", "start one with dask scheduler"
        ) from None
    with client:
        if not client.scheduler_info()["workers"]:
            raise CannotStart(
                f"--on {sanitize(scheduler)}: this cluster has no workers",
                f"start one with dask worker {sanitize(scheduler)}",
            )
        with client.get_executor(pure=False) as executor:
            yield executor


def grouped(items: Iterable[Item], size: Callable[[Item], int], least: int) -> Iterator[list[Item]]:
    """Yield the items in groups of at least this size, and the rest."""
    group, total = list[Item](), 0
    for item in items:
        group.append(item)
        total += size(item)
        if total >= least:
            yield group
            group, total = [], 0
    if group:
        yield group


def mapped(
    executor: Executor,
    function: Callable[[Item], Result],
    items: Iterable[Item],
    size: Callable[[Item], int] = lambda _: TASK_BYTES,
) -> Iterator[Result]:
    """Yield the result of each item, in their order; small items share a task.

    Raise the error of an item after the results before it, or CannotStart for a lost worker.
    """
    futures = [executor.submit(_each, function, group) for group in grouped(items, size, TASK_BYTES)]
    try:
        for future in futures:
            results, error = future.result()
            yield from results
            if error is not None:
                raise error
    except _lost_workers():
        raise CannotStart(
            "a worker process was killed, or the scheduler of the cluster",
            "run it again; with --workers, use fewer if memory is short",
        ) from None
    finally:
        for future in futures:
            future.cancel()


def _each(function: Callable[[Item], Result], group: list[Item]) -> tuple[list[Result], Exception | None]:
    """Return the results of a task, and the error that ended it."""
    results: list[Result] = []
    try:
        results.extend(map(function, group))
    except Exception as error:  # `mapped` raises it.
        return results, error
    return results, None


def _lost_workers() -> tuple[type[BaseException], ...]:
    """Return the exceptions of a task whose worker or scheduler was killed."""
    distributed = sys.modules.get("distributed")
    killed: tuple[type[BaseException], ...] = () if distributed is None else (distributed.KilledWorker,)
    return (BrokenExecutor, CancelledError, *killed)


def pool(workers: int) -> Executor:
    """Return an executor of N processes, which end with this one, however it ends."""
    from concurrent.futures import ProcessPoolExecutor  # With multiprocessing 10 ms.
    from multiprocessing import get_context

    return ProcessPoolExecutor(workers, mp_context=get_context("spawn"), initializer=_end_with_parent)


def _end_with_parent() -> None:
    """Workers hold both ends of their queue, so they would wait for ever for a parent that was killed."""
    from multiprocessing import parent_process

    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C interrupts the parent, which cancels their tasks.
    parent = parent_process()

    def wait() -> None:
        if parent is not None:
            parent.join()
        os._exit(1)

    threading.Thread(target=wait, daemon=True).start()
