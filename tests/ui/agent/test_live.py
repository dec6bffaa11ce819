"""`wait_for`, `replay` and `send`."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Iterator
from pathlib import Path

import pytest

from mcpspy.errors import UsageError
from mcpspy.io.recording.scan import LineBlock
from mcpspy.io.recording.tail import follow_lines
from mcpspy.io.recording.writer import Writer
from mcpspy.ui.agent import live
from mcpspy.ui.agent.live import (
    AgentPermissions,
    ReplayArguments,
    SendArguments,
    WaitArguments,
    replay,
    send,
    wait_for,
)
from mcpspy.ui.agent.sessions import SessionStore
from tests.io.files import BOUND, frame

Make = Callable[..., Path]

SECRET = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SessionStore]:
    store = SessionStore(str(tmp_path))
    yield store
    store.close()


@pytest.fixture
def writer(tmp_path: Path) -> Iterator[Writer]:
    writer = begin(tmp_path)
    yield writer
    writer.close()


@pytest.fixture
def following(monkeypatch: pytest.MonkeyPatch) -> asyncio.Event:
    """Return an event that is set once `wait_for` has found the session and begins to follow it."""
    begun = asyncio.Event()

    def follow(path: Path) -> AsyncGenerator[LineBlock, None]:
        begun.set()
        return follow_lines(path, poll=0.001)

    monkeypatch.setattr(live, "follow_lines", follow)
    return begun


def begin(folder: Path, **header: bool) -> Writer:
    return Writer(str(folder), None, {"name": "tested", **header}, say=pytest.fail)


def call(number: int, tool: str) -> bytes:
    params = {"name": tool}
    return frame(number, "client", {"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": params})


def failure(number: int, text: str = "no") -> bytes:
    return frame(number, "server", {"jsonrpc": "2.0", "id": number, "error": {"code": -1, "message": text}})


async def test_a_message_that_comes_later_is_waited_for(
    writer: Writer, store: SessionStore, following: asyncio.Event
) -> None:
    writer.write(call(1, "old") + failure(1))
    waiting = asyncio.ensure_future(wait_for(store, WaitArguments("status:error", "tested")))
    async with asyncio.timeout(BOUND):
        await following.wait()
        writer.write(call(2, "new") + failure(2))
        answer = await waiting

    assert (answer.facts.matched, answer.facts.line) == (True, 5)  # type: ignore[attr-defined]


async def test_lines_after_a_given_one_are_searched_at_once(writer: Writer, store: SessionStore) -> None:
    writer.write(call(1, "x") + failure(1) + call(2, "x") + failure(2))

    async with asyncio.timeout(BOUND):
        answer = await wait_for(store, WaitArguments("status:error", "last", after=3))

    assert answer.facts.matched  # type: ignore[attr-defined]
    assert answer.facts.line == 5  # type: ignore[attr-defined]
    assert [block.text.split()[0] for block in answer.blocks] == ["#5"]


async def test_a_session_may_begin_while_it_is_waited_for(tmp_path: Path, store: SessionStore) -> None:
    waiting = asyncio.ensure_future(wait_for(store, WaitArguments("tool:x", "tested")))
    await asyncio.sleep(0)
    writer = begin(tmp_path)
    writer.write(call(1, "x"))

    async with asyncio.timeout(BOUND):
        answer = await waiting
    writer.close()

    assert answer.facts.matched  # type: ignore[attr-defined]
    assert [block.text for block in answer.blocks] == ["#2 1.000s → tools/call x 0 µs… pending"]


async def test_the_last_messages_are_shown_if_the_session_ends_without_a_match(
    tmp_path: Path, store: SessionStore, following: asyncio.Event
) -> None:
    writer = begin(tmp_path)
    writer.write(call(1, "x"))
    waiting = asyncio.ensure_future(wait_for(store, WaitArguments("tool:y", "tested")))
    async with asyncio.timeout(BOUND):
        await following.wait()
        writer.note(2.0, "exit", code=1, signal=None)
        writer.close()
        answer = await waiting

    assert not answer.facts.matched  # type: ignore[attr-defined]
    assert answer.summary.startswith("no match before the session ended")
    assert [block.text for block in answer.blocks][-1] == "#3 2.000s · exit 1"


async def test_a_wait_has_an_end(writer: Writer, store: SessionStore) -> None:
    writer.write(call(1, "x"))

    answer = await wait_for(store, WaitArguments("tool:y", "tested", timeout=0.05))

    assert answer.summary.startswith("no match within the time limit")
    with pytest.raises(UsageError, match=r"no live session other within 0\.05 s"):
        await wait_for(store, WaitArguments("tool:y", "other", timeout=0.05))


async def test_a_filter_cannot_find_secrets_of_a_session_that_has_them(
    tmp_path: Path, store: SessionStore
) -> None:
    writer = begin(tmp_path, redacted=False)
    writer.write(call(1, "x") + failure(1, f"bad token {SECRET}") + call(2, "end"))

    async with asyncio.timeout(BOUND):
        answer = await wait_for(store, WaitArguments(f"text:{SECRET[:12]} or tool:end", "tested", after=1))
    writer.close()

    assert answer.facts.line == 4  # type: ignore[attr-defined]


async def test_nothing_is_sent_or_replayed_without_permission(
    make_recording: Make, store: SessionStore
) -> None:
    make_recording()
    allowed = AgentPermissions(["python a.py"], ["other"])

    with pytest.raises(
        UsageError, match=r"send: session tested is not allowed \(the user allows it with --allow-send"
    ):
        await send(store, allowed, SendArguments("ping", "tested"))
    with pytest.raises(UsageError, match=r"server 'python a\.py; rm' is not allowed, only 'python a\.py'"):
        await replay(store, allowed, ReplayArguments("tested", "python a.py; rm"))
    with pytest.raises(UsageError, match="is not allowed, only none"):
        await replay(store, AgentPermissions(), ReplayArguments("tested"))


async def test_a_failure_of_the_command_is_recorded_text(
    make_recording: Make, store: SessionStore, tmp_path: Path
) -> None:
    make_recording()
    missing = str(tmp_path / "no-such-server")

    answer = await replay(store, AgentPermissions([missing]), ReplayArguments("tested"))

    assert answer.is_error
    assert answer.summary == "replay failed"
    assert missing in next(iter(answer.blocks)).text


async def test_a_command_ends_at_its_time_limit(
    make_recording: Make, store: SessionStore, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    make_recording()
    deaf = tmp_path / "deaf"
    deaf.write_text("#!/bin/sh\nexec cat >/dev/null\n", encoding="utf-8")
    deaf.chmod(0o700)
    monkeypatch.setattr(live, "ENDING", 3.0)

    async with asyncio.timeout(BOUND):
        answer = await replay(store, AgentPermissions([str(deaf)]), ReplayArguments("tested", timeout=0.7))

    assert answer.is_error
