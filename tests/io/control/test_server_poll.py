"""Viewers on a poll loop that never waits for any of them."""

from __future__ import annotations

import select
import socket
import sys
from typing import TYPE_CHECKING

import pytest

if sys.platform == "win32":
    pytest.skip("needs poll()", allow_module_level=True)

from mcpspy.io.control import server_poll
from mcpspy.io.control.server_poll import READABLE, WRITABLE, PollServer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from tests.io.control.conftest import ControlTarget


class Loop:
    """A poll loop without channels."""

    def __init__(self) -> None:
        self.routes: dict[int, Callable[[int], None]] = {}
        self._poller = select.poll()

    def route(self, fd: int, handler: Callable[[int], None], events: int) -> None:
        self.routes[fd] = handler
        self._poller.register(fd, events)

    def unroute(self, fd: int) -> None:
        del self.routes[fd]
        self._poller.unregister(fd)

    def turn(self, bound: int = 10_000) -> None:
        """Handle everything that is ready; wait for something."""
        ready = self._poller.poll(bound)
        assert ready or not bound, "no data in time"
        for fd, events in ready:
            self.routes[fd](events)


@pytest.fixture
def loop() -> Loop:
    return Loop()


@pytest.fixture
def opened(loop: Loop, live: ControlTarget, runtime: Path) -> Iterator[PollServer]:
    opened = PollServer(loop, live)
    yield opened
    opened.close()
    assert loop.routes == {}
    assert list(runtime.iterdir()) == []


def connected(loop: Loop, opened: PollServer) -> socket.socket:
    connection = socket.socket(socket.AF_UNIX)
    connection.settimeout(30)
    connection.connect(opened.path)
    loop.turn()
    return connection


def test_the_events_are_those_of_poll() -> None:
    assert (READABLE, WRITABLE) == (select.POLLIN, select.POLLOUT)


def test_a_viewer_is_greeted_and_answered_and_missed(
    loop: Loop, opened: PollServer, live: ControlTarget
) -> None:
    with connected(loop, opened) as connection:
        assert connection.recv(4096).startswith(b'{"mcpspy":1,"session":"0badcafe"')
        connection.sendall(b'{"n":1,"order":"list"}\n')
        loop.turn()
        assert connection.recv(4096) == b'{"n":1,"ok":true,"did":"list"}\n'
        live.tell(None, {"event": "held"})
        assert connection.recv(4096) == b'{"event":"held"}\n'
    loop.turn()
    assert live.gone == ["viewer"]
    assert len(loop.routes) == 1


def test_events_that_a_viewer_does_not_read_are_kept_for_it(
    loop: Loop, opened: PollServer, live: ControlTarget
) -> None:
    with connected(loop, opened) as connection:
        text = "x" * 1_000_000
        live.tell(None, {"event": "held", "text": text})
        got = b""
        while not got.endswith(b'"}\n'):
            loop.turn(0)
            got += connection.recv(1 << 20)
        assert got.endswith(b'{"event":"held","text":"' + text.encode() + b'"}\n')
    loop.turn()


def test_a_viewer_that_never_reads_is_disconnected(
    loop: Loop, opened: PollServer, live: ControlTarget, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server_poll, "MAX_UNSENT", 1_000_000)
    with connected(loop, opened):
        for _ in range(4):
            live.tell(None, {"event": "held", "text": "x" * 1_000_000})
        assert live.gone == [], "viewers do not disconnect while events are sent"
        loop.turn()
        assert live.gone == ["viewer"]


def test_a_viewer_that_left_in_the_middle_of_an_event_is_noticed_later(
    loop: Loop, opened: PollServer, live: ControlTarget
) -> None:
    connected(loop, opened).close()
    live.tell(None, {"event": "held"})
    live.tell(None, {"event": "held"})
    assert live.gone == []
    loop.turn()
    assert live.gone == ["viewer"]


def test_the_end_is_reported(loop: Loop, live: ControlTarget, runtime: Path) -> None:
    opened = PollServer(loop, live)
    with connected(loop, opened) as connection:
        connection.recv(4096)
        opened.close()
        assert connection.recv(4096) == b'{"event":"end"}\n'
        assert connection.recv(4096) == b""
    assert live.gone == ["viewer"]
