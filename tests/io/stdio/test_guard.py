"""The guard, which survives mcpspy for a moment after `kill -9`."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

if sys.platform == "win32":
    pytest.skip("POSIX only", allow_module_level=True)

from mcpspy.io.stdio.guard import Guard, descendants

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.io.conftest import Processes, Start

OWNER = """
import os, select, signal, subprocess, sys
from mcpspy.io.stdio.guard import Guard
null = subprocess.DEVNULL
server = subprocess.Popen(sys.argv[1:], stdin=null, stdout=subprocess.PIPE, stderr=null)
server.stdout.readline()
guard = Guard.start(server.pid, [signal.SIGTERM, signal.SIGUSR1])
print(server.pid, guard.pid, flush=True)
while True:
    ready, _, _ = select.select([0, guard.seen], [], [])
    if guard.seen in ready:
        print(*os.read(guard.seen, 100), flush=True)
    if 0 in ready:
        os.kill(os.getpid(), signal.SIGKILL)
"""
"""Guards a server, repeats the signals of the guard, and dies by SIGKILL when requested on stdin."""


class Owner:
    """A process that guards a server."""

    def __init__(self, command: list[str]) -> None:
        argv = [sys.executable, "-c", OWNER, *command]
        pipe = subprocess.PIPE
        self.process = subprocess.Popen(argv, stdin=pipe, stdout=pipe, start_new_session=True)
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.stdin, self.stdout = self.process.stdin, self.process.stdout
        self.server, self.guard = map(int, self.stdout.readline().split())

    def end(self) -> None:
        """Kill the process."""
        self.stdin.close()
        self.process.wait(20)
        self.stdout.close()


@pytest.fixture
def deaf(start: Start, processes: Processes) -> Iterator[Owner]:
    """The owner of a server that ignores EOF and SIGTERM."""
    owner = Owner(start.command("deaf.py"))
    yield owner
    owner.end()
    processes.gone(owner.server, owner.guard)


def test_the_guard_ends_a_server_whose_owner_was_killed(deaf: Owner, processes: Processes) -> None:
    os.kill(deaf.process.pid, signal.SIGKILL)
    deaf.process.wait(20)
    processes.gone(deaf.server, deaf.guard)


def test_the_guard_ends_what_a_launcher_started(start: Start, processes: Processes) -> None:
    owner = Owner(start.command("launcher.py", *start.command("deaf.py")))
    below = processes.family(owner.server)
    assert len(below) == 1
    owner.end()
    processes.gone(owner.server, owner.guard, *below)


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux lets this process adopt the orphan")
def test_the_guard_asks_before_it_kills(start: Start, processes: Processes) -> None:
    owner = Owner(start.command("goodbye.py"))
    owner.end()
    _, status = os.waitpid(owner.server, 0)
    assert os.WIFEXITED(status)
    processes.gone(owner.guard)


def test_the_guard_holds_nobodys_pipes_open(deaf: Owner) -> None:
    os.kill(deaf.process.pid, signal.SIGKILL)
    # The server has separate pipes; the guard runs for another second. Neither makes the host wait.
    ready, _, _ = select.select([deaf.stdout], [], [], 20)
    assert ready
    assert deaf.stdout.read() == b""
    assert not _has_ended(deaf.guard)


def _has_ended(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    return False


def test_the_guard_reports_a_signal_to_the_group_and_survives_it(deaf: Owner, processes: Processes) -> None:
    os.kill(deaf.guard, signal.SIGUSR1)
    assert deaf.stdout.readline().split() == [b"%d" % signal.SIGUSR1]
    os.kill(deaf.guard, signal.SIGTERM)
    assert deaf.stdout.readline().split() == [b"%d" % signal.SIGTERM]
    os.kill(deaf.process.pid, signal.SIGKILL)
    deaf.process.wait(20)
    processes.gone(deaf.server)


def test_a_dismissed_guard_is_reaped_and_the_server_left_alone() -> None:
    with subprocess.Popen(["sleep", "20"]) as server:
        watcher = Guard.start(server.pid, [])
        assert watcher is not None
        watcher.dismiss()
        with pytest.raises(ChildProcessError):
            os.waitpid(watcher.pid, os.WNOHANG)
        assert server.poll() is None
        server.kill()
        os.close(watcher.seen)
        os.close(watcher._alive)


def test_a_failed_fork_leaves_neither_a_guard_nor_a_descriptor(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse() -> int:
        raise BlockingIOError

    first = os.open(os.devnull, os.O_RDONLY)
    os.close(first)
    monkeypatch.setattr(os, "fork", refuse)
    assert Guard.start(1, []) is None
    second = os.open(os.devnull, os.O_RDONLY)
    os.close(second)
    assert second == first  # The lowest free descriptor.


@pytest.mark.parametrize("proc", [True, False], ids=["proc", "ps"])
def test_descendants_are_all_below_and_none_beside(
    start: Start, processes: Processes, monkeypatch: pytest.MonkeyPatch, proc: bool
) -> None:
    if not proc:
        monkeypatch.setattr(os.path, "isdir", lambda _: False)
    argv = start.command("launcher.py", *start.command("launcher.py", *start.command("deaf.py")))
    pipe = subprocess.PIPE
    with subprocess.Popen(argv, stdin=pipe, stdout=pipe) as top, subprocess.Popen(["sleep", "20"]) as beside:
        assert top.stdout is not None
        top.stdout.readline()
        below = descendants(top.pid)
        assert len(below) == 2
        assert set(below) == set(processes.family(top.pid))
        assert beside.pid not in below
        assert {top.pid, beside.pid} <= set(descendants(os.getpid()))
        assert descendants(beside.pid) == []
        beside.kill()
        top.kill()
        for pid in below:
            os.kill(pid, signal.SIGKILL)
    processes.gone(*below)
