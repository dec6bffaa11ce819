"""The process of an engine: its orders and events, its end, and the end of its viewer."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mcpspy.errors import CannotStart
from mcpspy.io import engine
from mcpspy.io.engine import EngineProcess
from tests.io.conftest import Processes
from tests.io.files import POSIX

ROOT = str(Path(__file__).parent.parent.parent)

COUNTING = "tests.io.counting_engine"


class Watch:
    """A viewer that keeps the events, and how the engine ended."""

    def __init__(self, module: str = COUNTING) -> None:
        self.events: list[dict[str, Any]] = []
        self.ended: list[str] = []
        self._changed = asyncio.Event()
        self.engine = EngineProcess(module, self._keep(self.events), self._keep(self.ended))

    def _keep(self, where: list[Any]) -> Callable[[Any], None]:
        def keep(what: object) -> None:
            where.append(what)
            self._changed.set()

        return keep

    async def until(self, condition: Callable[[], object]) -> None:
        async with asyncio.timeout(20):
            while not condition():
                self._changed.clear()
                await self._changed.wait()

    async def event(self, kind: str) -> dict[str, Any]:
        await self.until(lambda: any(each["event"] == kind for each in self.events))
        return next(each for each in self.events if each["event"] == kind)


@pytest.fixture(autouse=True)
def _importable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", ROOT)


async def test_an_engine_gets_its_configuration_and_ends_by_itself() -> None:
    watch = Watch()
    await watch.engine.start({"name": "weather"})
    assert (await watch.event("hello"))["config"] == {"name": "weather"}
    watch.engine.send("end")
    await watch.until(lambda: watch.ended)
    assert watch.ended == [""]
    assert watch.engine.pid is None
    await watch.engine.stop()


async def test_output_of_an_engine_is_not_an_event() -> None:
    watch = Watch()
    await watch.engine.start({})
    watch.engine.send("print")
    await watch.event("printed")
    await watch.engine.stop()
    assert [each["event"] for each in watch.events] == ["hello", "printed"]
    assert watch.ended == [""]


async def test_the_reason_of_a_failure_is_its_last_line() -> None:
    watch = Watch()
    await watch.engine.start({})
    watch.engine.send("fail")
    await watch.until(lambda: watch.ended)
    assert watch.ended == ["ValueError: broken on purpose"]


async def test_an_engine_waits_for_a_viewer_that_does_not_read() -> None:
    watch = Watch()
    await watch.engine.start({})
    watch.engine.send("many", count=50_000)
    await watch.until(lambda: len(watch.events) > 50_000)
    assert [each["number"] for each in watch.events[1:]] == list(range(50_000))
    await watch.engine.stop()


async def test_an_engine_that_hangs_is_killed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine, "END", 0.2)
    watch = Watch()
    await watch.engine.start({})
    watch.engine.send("block")
    await watch.event("blocking")
    await watch.engine.stop()
    assert watch.engine.pid is None
    assert watch.ended == [""]


async def test_a_process_that_cannot_start_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", "/no/such/python")
    with pytest.raises(CannotStart, match="No such file"):
        await Watch().engine.start({})


VIEWER = """
import asyncio, sys
from mcpspy.io.engine import EngineProcess

async def main():
    def received(event):
        print(event.get("pid", engine.pid), flush=True)
        if event["event"] == "hello":
            engine.send("child")
    engine = EngineProcess(sys.argv[1], received, print)
    await engine.start({})
    await asyncio.sleep(60)

asyncio.run(main())
"""


@POSIX
def test_nothing_is_left_of_an_engine_whose_viewer_was_killed(processes: Processes) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", VIEWER, COUNTING], stdout=subprocess.PIPE, text=True
    ) as viewer:
        assert viewer.stdout is not None
        pids = [int(viewer.stdout.readline()) for _ in range(2)]
        for pid in pids:
            os.kill(pid, 0)  # They run.
        viewer.send_signal(signal.SIGKILL)
    processes.gone(*pids)
