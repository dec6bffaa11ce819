"""Proxies of the environment, and the errors of connections."""

from __future__ import annotations

import asyncio
import errno
import threading
from typing import TYPE_CHECKING

import pytest
from yarl import URL

from mcpspy.core.compression import Steps
from mcpspy.io.network.outgoing import Turns, environment_proxy, in_turns, reason

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("http://example.org/", "http://proxy:8080"),
        ("http://127.0.0.1:3000/", None),
        ("http://inside.example.net/", None),
        ("https://example.org/", None),
    ],
)
def test_the_proxy_of_the_environment_is_used_for_remote_servers_only(
    url: str, expected: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("http_proxy", "http://proxy:8080")
    monkeypatch.setenv("no_proxy", "inside.example.net")
    monkeypatch.delenv("https_proxy", raising=False)
    found = environment_proxy(URL(url))

    assert found == (None if expected is None else URL(expected))


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (
            ConnectionRefusedError(errno.ECONNREFUSED, "Connect call failed ('127.0.0.1', 9)"),
            "Connection refused",
        ),
        (
            OSError("Multiple exceptions: [Errno 111] Connect call failed, [Errno 111] …"),
            "Connection refused",
        ),
        (OSError(-2, "Name or service not known"), "[Errno -2] Name or service not known"),
        (TimeoutError(), "TimeoutError"),
    ],
)
def test_a_reason_is_short(error: Exception, expected: str) -> None:
    assert reason(error) == expected


async def test_other_tasks_run_between_two_steps() -> None:
    log = list[str]()

    def steps() -> Iterator[int]:
        for number in range(4):
            log.append("step")
            yield number

    async def other() -> None:
        for _ in range(3):
            log.append("other")
            await asyncio.sleep(0)

    running = asyncio.ensure_future(other())
    assert [number async for number in Turns(Steps(steps(), are_long=False))] == [0, 1, 2, 3]
    await running
    assert log == ["step", "step", "other", "step", "other", "step", "other"]


async def test_other_tasks_run_during_a_long_step() -> None:
    has_run = threading.Event()

    def steps() -> Iterator[None]:
        assert has_run.wait(10)
        yield

    asyncio.get_running_loop().call_soon(has_run.set)
    await in_turns(Steps(steps(), are_long=True))


async def test_a_long_step_ends_before_its_cancellation() -> None:
    has_begun, may_end, log = threading.Event(), threading.Event(), list[str]()

    def steps() -> Iterator[None]:
        has_begun.set()
        assert may_end.wait(10)
        log.append("step")
        yield

    running = asyncio.ensure_future(in_turns(Steps(steps(), are_long=True)))
    await asyncio.to_thread(has_begun.wait, 10)
    running.cancel()
    await asyncio.sleep(0)
    may_end.set()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert log == ["step"]
