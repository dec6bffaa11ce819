"""The process of the host: the one that started mcpspy, or a client that connected on this machine.

Its pid, the name of its program and its start are recorded; its arguments never are. Linux has them in /proc
(proc(5)); elsewhere only the pid of the parent is known. Nothing here raises.
"""

from __future__ import annotations

import os
import sys
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    Fields = dict[str, str | int]
    """`pid`, and `program` and `started` if they are known."""

_LAUNCHERS = frozenset(
    "ash bash dash env fish ksh mcpspy mksh nohup npm npx pipx sh timeout uv uvx xargs zsh".split()
)
"""Programs between a host and the servers that it starts. An interactive shell is the host of what it starts."""

LOOPBACK = ("127.", "::1", "::ffff:127.")
"""Beginnings of the addresses of clients on this machine."""

MOST = 8
"""Launchers that are passed on the way to the host."""


class _Process:
    """A line of /proc/PID/stat."""

    def __init__(self, pid: int) -> None:
        """Read it. Raises OSError or ValueError."""
        with open(f"/proc/{pid}/stat", "rb") as file:
            head, _, rest = file.read(4096).rpartition(b")")
        fields = rest.split()
        self.pid = pid
        self.program = head.partition(b"(")[2].decode("utf-8", "replace")
        self.parent, ticks = int(fields[1]), int(fields[19])
        self._is_interactive = int(fields[3]) == pid and int(fields[4]) != 0
        """True if it leads the session of a terminal."""
        self.age = time.clock_gettime(time.CLOCK_BOOTTIME) - ticks / os.sysconf("SC_CLK_TCK")
        """Seconds since its start."""

    @property
    def is_launcher(self) -> bool:
        is_known = self.program in _LAUNCHERS or self.program.startswith("npm ")
        return is_known and not self._is_interactive

    def fields(self) -> Fields:
        started = time.time() - self.age
        written = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(started))
        return {
            "pid": self.pid,
            "program": self.program,
            "started": f"{written}.{int(started % 1 * 100):02}0Z",
        }


def parent() -> Fields:
    """Return the fields of the note about the process that started mcpspy, without shells and launchers between."""
    pid = os.getppid()
    if sys.platform != "linux":
        return {"pid": pid}
    try:
        process = _Process(pid)
        for _ in range(MOST):
            if not process.is_launcher or process.parent <= 1:
                break
            process = _Process(process.parent)
        return process.fields()
    except (OSError, ValueError, IndexError):
        return {"pid": pid}


def start_of(pid: int) -> float | None:
    """Return the start of a process that is running, in seconds since the epoch; None if it is not known."""
    if sys.platform != "linux":
        return None
    try:
        return time.time() - _Process(pid).age
    except (OSError, ValueError, IndexError):
        return None


def client_of(address: object) -> Fields | None:
    """Return the fields of the note about the process that connected from an address; None if it is not known.

    It takes some milliseconds, because the sockets of all processes of the user are looked at.
    """
    if sys.platform != "linux" or not isinstance(address, tuple) or len(address) < 2:
        return None
    if not str(address[0]).startswith(LOOPBACK):
        return None
    try:
        inode = _inode(address[1])
        return None if inode is None else next(_owners(inode), None)
    except (OSError, ValueError, IndexError):
        return None


def _inode(port: int) -> bytes | None:
    """Return the inode of the socket on loopback with this local port, which is connected."""
    for table, loopback in (("tcp", b"0100007F"), ("tcp6", b"00000000000000000000000001000000")):
        with open(f"/proc/net/{table}", "rb") as file:
            for line in file:
                if b":%04X " % port in line:
                    _, local, _, state, *rest = line.split()
                    ends_here = local.partition(b":")[0].endswith((loopback, b"0100007F"))
                    if local.endswith(b":%04X" % port) and ends_here and state == b"01":
                        return rest[5]
    return None


def _owners(inode: bytes) -> Iterator[Fields]:
    wanted = f"socket:[{inode.decode()}]"
    for name in os.listdir("/proc"):
        if not name.isdigit() or int(name) == os.getpid():
            continue
        try:
            folder = f"/proc/{name}/fd"
            if any(os.readlink(f"{folder}/{each}") == wanted for each in os.listdir(folder)):
                yield _Process(int(name)).fields()
        except OSError:  # It ended, or is another user's.
            continue
