"""A session that viewers can control."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

import pytest

from mcpspy.core.intercept.actions import CommandError
from mcpspy.io.control.server_poll import ThreadedServer
from mcpspy.io.control.socket import ControlSocket

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path


class ControlTarget:
    """A live session that repeats the commands it gets."""

    def __init__(self) -> None:
        self.session = "0badcafe"
        self.orders: list[tuple[str, dict[str, Any]]] = []
        self.gone: list[str] = []
        self.on_gone: Callable[[], None] = lambda: None
        self.tell: Callable[[str | None, dict[str, Any]], None] = lambda _viewer, _event: None

    def listening(self, path: str | None) -> None: ...

    def closing(self) -> None: ...

    def closed(self) -> None: ...

    def hello(self) -> dict[str, Any]:
        return {
            "session": self.session,
            "name": "weather",
            "file": None,
            "pid": 1,
            "transport": "stdio",
            "state": {},
        }

    def order(self, viewer: str, order: dict[str, Any]) -> dict[str, Any]:
        """Respond with the command; `refuse` is refused, `tell` sends an event to all viewers."""
        if order["order"] == "refuse":
            raise CommandError("not\nthis")
        self.orders.append((viewer, order))
        if order["order"] == "tell":
            self.tell(order.get("viewer"), {"event": "told", "text": order["text"]})
        return {"did": order["order"]}

    def viewer_left(self, viewer: str) -> None:
        self.gone.append(viewer)
        self.on_gone()


@pytest.fixture
def live() -> ControlTarget:
    return ControlTarget()


@pytest.fixture
def opened(live: ControlTarget, runtime: Path) -> Iterator[ThreadedServer]:
    lock = threading.Lock()
    with lock:
        opened = ThreadedServer(live, lock)
    yield opened
    with lock:
        opened.close()


@pytest.fixture
def silent(runtime: Path) -> Iterator[str]:
    """A session whose process is suspended: it listens and sends nothing."""
    control_socket = ControlSocket.open("deadbeef")
    yield control_socket.path
    control_socket.close()
