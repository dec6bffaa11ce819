"""A small process that survives a killed mcpspy by one second (POSIX).

It does two things that mcpspy cannot do. If mcpspy gets SIGKILL, the guard ends the server and its children,
even a server that ignores EOF and SIGTERM. The guard is also in mcpspy's process group: if the guard received
a signal, the server has received it too and needs no copy.
"""

from __future__ import annotations

import os
import select
import signal
import sys
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    assert sys.platform != "win32"

GRACE = 1.0
"""Seconds between SIGTERM and SIGKILL for the server of a killed mcpspy. The server already got EOF."""

TICK = 0.02
"""Seconds between two checks of a process without a pidfd."""

ANSWER = 0
"""The number of no signal: on `Guard.seen`, it comes after all signals that the guard received before a question."""

_MOST_DESCRIPTORS = 65536


class Guard:
    """Handle of the guard process. `seen` yields the number of each signal that the group received, as one byte."""

    def __init__(self, pid: int, alive: int, seen: int) -> None:
        self.pid = pid
        self.seen = seen
        self._alive = alive

    @classmethod
    def start(cls, server: int, signals: Iterable[int]) -> Guard | None:
        """Fork the guard for the process `server`. Return None if fork fails."""
        alive_read, alive_write = os.pipe()
        seen_read, seen_write = os.pipe()
        signals = tuple(signals)
        # Block signals until each process has its own wakeup descriptor; else the guard would write to mcpspy's.
        blocked = signal.pthread_sigmask(signal.SIG_BLOCK, signals)
        try:
            pid = os.fork()
            if pid == 0:
                try:
                    _watch(server, alive_read, seen_write, signals, blocked)
                finally:
                    os._exit(0)
        except OSError:  # Without a guard, the server still gets EOF when mcpspy dies.
            for fd in (alive_read, alive_write, seen_read, seen_write):
                os.close(fd)
            return None
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, blocked)
        os.close(alive_read)
        os.close(seen_write)
        os.set_blocking(seen_read, False)
        return cls(pid, alive_write, seen_read)

    def ask(self) -> None:
        """Request an ANSWER on `seen`."""
        try:
            os.write(self._alive, b"?")
        except OSError:  # The guard was killed, which `seen` reports too.
            pass

    def dismiss(self) -> None:
        """End and reap the guard. Call this when the server has ended, because its pid may be reused."""
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)


def _watch(server: int, alive: int, seen: int, signals: Iterable[int], blocked: Iterable[int]) -> None:
    os.set_blocking(seen, False)
    signal.set_wakeup_fd(seen, warn_on_full_buffer=False)
    for number in signals:
        signal.signal(number, lambda *_: None)
    signal.pthread_sigmask(signal.SIG_SETMASK, blocked)
    signal.signal(signal.SIGPIPE, signal.SIG_IGN)
    # The guard must not keep the pipes of the host and the server open.
    keep = sorted((alive, seen))
    for low, high in ((0, keep[0]), (keep[0] + 1, keep[1]), (keep[1] + 1, _most_descriptors())):
        os.closerange(low, high)
    handle = _open_process(server)
    try:
        while os.read(alive, 1):
            os.write(seen, bytes((ANSWER,)))
    except OSError:  # mcpspy was killed after its question.
        pass
    signal.set_wakeup_fd(-1)
    if not _runs(server, handle):
        return
    family = [server, *descendants(server)]
    os.kill(server, signal.SIGTERM)
    deadline = time.monotonic() + GRACE
    while time.monotonic() < deadline and any(_runs(pid) for pid in family):
        time.sleep(TICK)
    for pid in family:
        if _runs(pid):
            os.kill(pid, signal.SIGKILL)


def descendants(pid: int) -> list[int]:
    """Return the pids of all descendants of `pid`, such as those started by `npx` or `sh -c`."""
    children: dict[int, list[int]] = {}
    for child, parent in _processes():
        children.setdefault(parent, []).append(child)
    found: list[int] = []
    queue = [pid]
    while queue:
        below = children.get(queue.pop(), [])
        found += below
        queue += below
    return found


def _processes() -> Iterable[tuple[int, int]]:
    """Yield (pid, parent) for every process, from /proc or, if there is no /proc, from `ps`."""
    if os.path.isdir("/proc/self"):
        for name in os.listdir("/proc"):
            if name.isdigit():
                try:
                    with open(f"/proc/{name}/stat", "rb") as stat:
                        # The name in brackets may itself contain spaces and brackets.
                        yield int(name), int(stat.read().rpartition(b")")[2].split()[1])
                except OSError:  # The process has ended.
                    pass
        return
    import subprocess

    listing = subprocess.run(["ps", "-axo", "pid=,ppid="], stdin=-3, capture_output=True, check=False)
    for line in listing.stdout.splitlines():
        pid, parent = line.split()
        yield int(pid), int(parent)


def _open_process(pid: int) -> int | None:
    try:
        return os.pidfd_open(pid)
    except (AttributeError, OSError):  # macOS, or a kernel before 5.3.
        return None


def _runs(pid: int, handle: int | None = None) -> bool:
    """Return whether the process exists. Use its pidfd if there is one, because pids are reused."""
    if handle is not None:
        poller = select.poll()
        poller.register(handle, select.POLLIN)
        return not poller.poll(0)
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:  # The process of another user: a setuid server, or a reused pid.
        return False
    return True


def _most_descriptors() -> int:
    try:
        return min(os.sysconf("SC_OPEN_MAX"), _MOST_DESCRIPTORS)
    except (OSError, ValueError):
        return _MOST_DESCRIPTORS
