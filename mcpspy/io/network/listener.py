"""A listening socket that is served until a signal arrives, for every server of mcpspy."""

from __future__ import annotations

import asyncio
import errno
import os
import signal
import socket
import stat
import sys
from collections.abc import Callable, Coroutine
from importlib import import_module
from typing import Any, TypeVar

from mcpspy.errors import CannotStart

T = TypeVar("T")

GRACE = 0.5
"""Seconds that open exchanges get at the end, before and after they are cancelled."""


def run_server(work: Coroutine[Any, Any, T]) -> T:
    """Run a server to its end, on uvloop (Windows: winloop) if that is installed, because its calls are shorter."""
    try:
        factory = import_module("winloop" if sys.platform == "win32" else "uvloop").new_event_loop
    except ImportError:
        factory = None
    with asyncio.Runner(loop_factory=factory) as runner:
        return runner.run(work)


UNIX = "unix:"
"""The beginning of the address of a Unix socket, before its path."""


def listening(host: str, port: int, other: str) -> socket.socket:
    """Return a listening socket. Raise CannotStart with the hint `other`."""
    if host.startswith(UNIX):
        return _listening_at(host.removeprefix(UNIX))
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        return socket.create_server((host, port), family=family, backlog=1024)
    except OSError as error:
        reason = os.strerror(error.errno) if error.errno and error.errno > 0 else str(error)
        raise CannotStart(f"cannot listen on {host}:{port}: {reason}", other) from None


def _listening_at(path: str) -> socket.socket:
    """Return a Unix socket that only this user can connect to, in place of one that no process listens on."""
    if sys.platform == "win32":
        raise CannotStart(
            f"cannot listen on {UNIX}{path}: Python has no Unix sockets on Windows", "use HOST:PORT"
        )
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    mask = os.umask(0o177)
    try:
        if _is_stale(path):
            os.unlink(path)
        listener.bind(path)
        listener.listen(1024)
    except OSError as error:
        listener.close()
        why = os.strerror(error.errno) if error.errno else str(error)
        raise CannotStart(f"cannot listen on {UNIX}{path}: {why}", "use another path") from None
    finally:
        os.umask(mask)
    return listener


def _is_stale(path: str) -> bool:
    """Return whether a path is a Unix socket that no process listens on."""
    if not os.path.exists(path) or not stat.S_ISSOCK(os.stat(path).st_mode):
        return False
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        return probe.connect_ex(path) == errno.ECONNREFUSED


def origin(host: str, listener: socket.socket, scheme: str = "http") -> str:
    """Return the origin under which clients reach a listener."""
    if host.startswith(UNIX):
        return "http://localhost"
    name = f"[{host}]" if ":" in host else host
    return f"{scheme}://{name}:{listener.getsockname()[1]}"


def stop_on_signals(stop: Callable[[int], None]) -> None:
    """Call `stop` with the number of the signal on SIGTERM and SIGINT, in the running loop."""
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        try:
            loop.add_signal_handler(number, stop, number)
        except NotImplementedError:  # Windows: Ctrl-C arrives between two steps of the loop.
            signal.signal(number, lambda number, _: loop.call_soon_threadsafe(stop, number))
