"""Finding a session, and talking to it."""

from __future__ import annotations

import asyncio
import json
import socket
import threading
from typing import TYPE_CHECKING

import pytest

from mcpspy.errors import CannotStart
from mcpspy.io.control import visit
from mcpspy.io.control.door import Door
from mcpspy.io.control.threaded import Threaded
from mcpspy.io.control.visit import AsyncVisit, Refused, Visit, find, sessions

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.io.control.conftest import Live


@pytest.fixture
def opened(live: Live, runtime: Path) -> Iterator[Threaded]:
    lock = threading.Lock()
    with lock:
        opened = Threaded(live, lock)
    yield opened
    with lock:
        opened.close()


@pytest.fixture
def silent(runtime: Path) -> Iterator[str]:
    """A session whose process is stopped: it listens, and says nothing."""
    door = Door.open("deadbeef")
    yield door.path
    door.close()


def test_a_session_is_found_by_its_id_and_by_its_recording(opened: Threaded, tmp_path: Path) -> None:
    recording = tmp_path / "weather.jsonl"
    recording.write_text(
        '{"mcpspy":1,"id":"0badcafe","started":"2026-11-21T08:00:00.000Z"}\n', encoding="utf-8"
    )
    assert find("0badcafe") == find(recording) == find(str(recording)) == opened.path


def test_a_session_that_is_not_live_says_what_to_do(runtime: Path) -> None:
    with pytest.raises(CannotStart, match="mcpspy send --list"):
        find("0badcafe")


def test_the_live_sessions_are_listed_and_the_dead_ones_removed(opened: Threaded, runtime: Path) -> None:
    dead = Door.open("deadbeef")
    dead.listening.close()
    (runtime / "notes.txt").touch()
    assert [(path, hello["name"]) for path, hello in sessions()] == [(opened.path, "weather")]
    assert sorted(file.name for file in runtime.iterdir()) == ["0badcafe.sock", "notes.txt"]


def test_a_stopped_session_is_left_alone_and_left_out(
    silent: str, opened: Threaded, runtime: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(visit, "GREETING", 0.05)
    assert [path for path, _ in sessions()] == [opened.path]
    assert (runtime / "deadbeef.sock").exists()
    with pytest.raises(CannotStart, match="is its mcpspy stopped"):
        Visit(silent)


def test_nothing_is_listed_from_a_folder_that_others_can_write_to(opened: Threaded, runtime: Path) -> None:
    runtime.chmod(0o777)
    assert sessions() == []
    runtime.chmod(0o700)


def test_an_order_is_answered_or_refused(opened: Threaded, live: Live) -> None:
    with Visit(opened.path, "send") as session:
        assert session.hello["session"] == "0badcafe"
        assert session.order("list", x=10**30, y="\ud800") == {"did": "list"}
        with pytest.raises(Refused, match=r"^not this$"):
            session.order("refuse")
    assert live.orders == [("send", {"n": 2, "order": "list", "x": 10**30, "y": "\ud800"})]


def test_events_that_come_before_an_answer_are_kept(opened: Threaded) -> None:
    with Visit(opened.path) as session:
        session.order("tell", text="one")
        session.order("tell", text="two")
        assert [event["text"] for event in session.events(0.05)] == ["one", "two"]
        assert list(session.events(0)) == []


def test_an_answer_that_never_comes_is_not_waited_for(
    silent: str, monkeypatch: pytest.MonkeyPatch, runtime: Path
) -> None:
    monkeypatch.setattr(visit, "ANSWER", 0.05)
    session, other = socket.socketpair()
    other.sendall(b'{"mcpspy":1}\n')
    monkeypatch.setattr(visit, "knock", lambda _path, _seconds: session)
    with Visit(silent) as asking, pytest.raises(CannotStart, match=r"not answered for 0\.05 s"):
        asking.order("list")
    other.close()


@pytest.mark.parametrize(
    ("hello", "why"),
    [
        (b"SSH-2.0-OpenSSH\n", "no session of mcpspy"),
        (b"{}\n", "does not answer as a session does"),
        (b'{"mcpspy":2}\n', "a newer mcpspy"),
        (b"", "the session has ended"),
    ],
)
def test_what_is_no_session_is_told_in_a_line(
    hello: bytes, why: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    session, other = socket.socketpair()
    other.sendall(hello)
    other.close()
    monkeypatch.setattr(visit, "knock", lambda _path, _seconds: session)
    with pytest.raises(CannotStart, match=why):
        Visit("x.sock")


def test_the_end_is_the_last_event_even_if_nobody_says_it(monkeypatch: pytest.MonkeyPatch) -> None:
    session, other = socket.socketpair()
    other.sendall(b'{"mcpspy":1}\n{"event":"held"}\n')
    other.close()
    monkeypatch.setattr(visit, "knock", lambda _path, _seconds: session)
    with Visit("x.sock") as visiting:
        assert [event["event"] for event in visiting.events()] == ["held", "end"]
        with pytest.raises(CannotStart, match="the session has ended"):
            visiting.order("list")


async def test_on_a_loop_orders_overlap_and_events_are_a_stream(opened: Threaded, live: Live) -> None:
    session = await AsyncVisit.open(opened.path, "tui")
    assert session.hello["name"] == "weather"
    orders = [session.order("tell", text=str(n)) for n in range(20)]
    assert await asyncio.gather(*orders) == [{"did": "tell"}] * 20
    with pytest.raises(Refused):
        await session.order("refuse")
    texts = []
    async with asyncio.timeout(10):
        async for event in session.events():
            texts.append(event["text"])
            if len(texts) == 20:
                break
    assert texts == [str(n) for n in range(20)]
    assert {viewer for viewer, _ in live.orders} == {"tui"}
    await session.close()


async def test_on_a_loop_an_order_fails_once_the_session_has_ended(live: Live, runtime: Path) -> None:
    lock = threading.Lock()
    with lock:
        opened = Threaded(live, lock)
    session = await AsyncVisit.open(opened.path)
    with lock:
        opened.close()
    assert [event["event"] async for event in session.events()][-1] == "end"
    with pytest.raises(CannotStart, match="the session has ended"):
        await session.order("list")
    await session.close()


def test_an_order_is_one_line_whatever_is_in_it() -> None:
    line = visit.order_line(3, "request", {"method": "x\ny", "params": {"n": 10**30}})
    assert line.count(b"\n") == 1
    assert json.loads(line) == {"n": 3, "order": "request", "method": "x\ny", "params": {"n": 10**30}}
