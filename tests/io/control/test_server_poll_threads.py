"""Viewers in a thread, under the session's lock."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import pytest

from mcpspy.io.control import socket
from mcpspy.io.control.client import ControlClient
from mcpspy.io.control.server_poll import ThreadedServer

if TYPE_CHECKING:
    from pathlib import Path

    from tests.io.control.conftest import ControlTarget


@pytest.mark.parametrize("has_unix", [True, False], ids=["unix", "loopback"])
def test_a_viewer_comes_hears_and_goes(
    live: ControlTarget, runtime: Path, has_unix: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(socket, "HAS_UNIX", has_unix and socket.HAS_UNIX)
    lock = threading.Lock()
    on_disconnect = threading.Event()
    monkeypatch.setattr(live, "viewer_left", lambda viewer: on_disconnect.set() if viewer == "tui" else None)
    with lock:
        opened = ThreadedServer(live, lock)
    with ControlClient(opened.path, "tui") as client:
        assert client.order("list") == {"did": "list"}
        with lock:  # As a forwarding thread does it.
            live.tell("tui", {"event": "held", "text": "x" * 3_000_000})
        event = next(client.events(10))
        assert len(event["text"]) == 3_000_000
    assert on_disconnect.wait(30)
    with ControlClient(opened.path) as client:
        with lock:
            opened.close()
        assert [event["event"] for event in client.events(10)] == ["end"]
    assert list(runtime.iterdir()) == []


def test_while_the_pump_has_the_lock_nothing_is_done(live: ControlTarget, runtime: Path) -> None:
    lock = threading.Lock()
    with lock:
        opened = ThreadedServer(live, lock)
    with ControlClient(opened.path) as client:
        asking = threading.Thread(target=client.order, args=("list",))
        with lock:
            asking.start()
            asking.join(0.05)
            assert (asking.is_alive(), live.orders) == (True, [])
        asking.join(30)
        assert [viewer for viewer, _ in live.orders] == ["viewer"]
    with lock:
        opened.close()
