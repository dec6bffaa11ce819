"""Real processes for tests of forwarding: mcpspy between this process, the host, and a sample server.

Every wait has a limit, and no test may leave a process behind.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import select
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import pytest

from mcpspy.io.recording.writer import Writer
from tests.io.http_spy import proxy_fixture  # noqa: F401 - a fixture for all tests here.

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from tests.conftest import Entry

BOUND = 20.0
"""Seconds after which a wait counts as a failure, far more than anything takes on a busy machine."""

SERVERS = Path(__file__).parent.parent / "servers"

_PR_SET_CHILD_SUBREAPER = 36


class Processes:
    """Inspects processes and waits for them."""

    def children(self, pid: int) -> list[int]:
        """Return the pids of a process's children, including zombies."""
        return [child for child, parent in self._all() if parent == pid]

    def family(self, pid: int) -> list[int]:
        """Return the pids of all descendants of a process."""
        pairs = self._all()
        found = [pid]
        for above in found:
            found += [child for child, parent in pairs if parent == above]
        return found[1:]

    def gone(self, *pids: int, bound: float = BOUND) -> None:
        """Wait until these processes have ended. Reap those that became children of this process."""
        self.eventually(lambda: all(map(self._is_gone, pids)), bound)

    def eventually(self, condition: Callable[[], object], bound: float = BOUND) -> None:
        """Wait until the condition holds."""
        deadline = time.monotonic() + bound
        while not condition():
            assert time.monotonic() < deadline, "the condition did not hold in time"
            select.select([], [], [], 0.005)

    def _is_gone(self, pid: int) -> bool:
        try:
            os.waitpid(pid, os.WNOHANG)
        except ChildProcessError:
            pass
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return True
        return False

    def _all(self) -> list[tuple[int, int]]:
        with subprocess.Popen(["ps", "-axo", "pid=,ppid="], stdout=subprocess.PIPE) as ps:
            listing, _ = ps.communicate(timeout=BOUND)
        pairs = [(int(child), int(parent)) for child, parent in map(bytes.split, listing.splitlines())]
        return [(child, parent) for child, parent in pairs if child != ps.pid]


class Stream:
    """The host's end of stdout or stderr, read with a time limit."""

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._held = b""

    def line(self) -> bytes:
        """Return the next line with its LF; less only at EOF."""
        while b"\n" not in self._held and (data := self._some()):
            self._held += data
        line, lf, self._held = self._held.partition(b"\n")
        return line + lf

    def rest(self) -> bytes:
        """Return everything up to EOF."""
        pieces = [self._held]
        self._held = b""
        while data := self._some():
            pieces.append(data)
        return b"".join(pieces)

    def some(self) -> bytes:
        """Return the available bytes; wait for some."""
        held, self._held = self._held, b""
        return held or self._some()

    def is_ready(self, bound: float = 0) -> bool:
        """Return whether there is something to read."""
        return bool(self._held or select.select([self._fd], [], [], bound)[0])

    def _some(self) -> bytes:
        assert select.select([self._fd], [], [], BOUND)[0], "no data in time"
        try:
            return os.read(self._fd, 1 << 20)
        except OSError:  # A terminal that no other process has open.
            return b""


class Spy:
    """A running `mcpspy run`, and the host's side of it."""

    def __init__(
        self, process: subprocess.Popen[bytes], recording: Path, read: Callable[[bytes], list[Entry]]
    ) -> None:
        self.process = process
        self.pid = process.pid
        self.recording = recording
        self._read = read
        self.out = Stream(process.stdout.fileno() if process.stdout else -1)
        self.err = Stream(process.stderr.fileno() if process.stderr else -1)

    def send(self, data: bytes) -> None:
        """Write to the server, through mcpspy."""
        assert self.process.stdin is not None
        rest = memoryview(data)
        while rest:
            rest = rest[self.process.stdin.write(rest) :]

    def close(self, stream: str = "stdin") -> None:
        """Close a pipe at the host's end."""
        getattr(self.process, stream).close()

    def finish(self, data: bytes = b"") -> tuple[bytes, bytes]:
        """Send this, close stdin, and return stdout and stderr up to the end."""
        return self.process.communicate(data, timeout=BOUND)

    def wait(self, bound: float = BOUND) -> int:
        """Return the exit code of mcpspy, negative for a signal."""
        return self.process.wait(bound)

    def seconds_until_exit(self) -> float:
        """Read stdout until mcpspy exits, at most 20 seconds. Return how long that took."""
        began = time.monotonic()
        while self.process.poll() is None and time.monotonic() < began + 20:
            if self.out.is_ready(0.01):
                self.out.some()
        return time.monotonic() - began

    def stays(self, bound: float) -> None:
        """Assert that mcpspy does not end within this time."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            code = self.process.wait(bound)
            said = self.err.rest() if self.process.stderr else b""
            pytest.fail(f"mcpspy ended with {code} within {bound} s: {said!r}")

    def kill(self, number: int = signal.SIGKILL) -> None:
        """Send a signal to mcpspy alone."""
        os.kill(self.pid, number)

    def entries(self) -> list[Entry]:
        """Return the entries of the recording, without its header."""
        return self._read(self.recording.read_bytes())[1:]

    def header(self) -> dict[str, Any]:
        """Return the first line of the recording."""
        return self._read(self.recording.read_bytes())[0].fields

    def notes(self, kind: str) -> list[dict[str, Any]]:
        """Return the notes of this kind, without their time."""
        fields = [entry.fields for entry in self.entries() if entry.note == kind]
        return [{key: value for key, value in note.items() if key not in ("t", "note")} for note in fields]

    def said(self, side: str) -> bytes:
        """Return everything that one side sent, byte for byte, rebuilt from the recording."""
        return b"".join(entry.payload for entry in self.entries() if entry.side == side)

    def told(self) -> bytes:
        """Return the server's stderr, byte for byte, rebuilt from the recording."""
        return b"".join(entry.payload for entry in self.entries() if entry.note == "stderr")

    def relays(self) -> list[int]:
        """Return the processes that forward for this mcpspy, which has exited (Linux: this process adopts them)."""
        assert isinstance(self.process.args, list)
        command = "\0".join([*self.process.args, ""]).encode()
        forks = [(pid, _command(pid)) for pid in _own_children() if pid != self.pid]
        return [pid for pid, own in forks if b"\0run\0" in own and command.endswith(own)]

    def peak_memory(self) -> int:
        """Return the peak resident memory of mcpspy, in bytes (Linux)."""
        status = Path(f"/proc/{self.pid}/status").read_text(encoding="utf-8")
        (line,) = [line for line in status.splitlines() if line.startswith("VmHWM:")]
        return int(line.split()[1]) * 1024


class Start:
    """Starts mcpspy around a command."""

    def __init__(self, folder: Path, read: Callable[[bytes], list[Entry]]) -> None:
        self.recording = folder / "recording.jsonl"
        self.started: list[Spy] = []
        self._read = read

    def __call__(
        self,
        *command: object,
        options: Sequence[str] | None = None,
        through: Sequence[str] = (),
        interpreter: Sequence[str] = ("-m", "mcpspy"),
        stdin: int | IO[bytes] = subprocess.PIPE,
        stdout: int | IO[bytes] = subprocess.PIPE,
        stderr: int | IO[bytes] = subprocess.PIPE,
        **more: Any,
    ) -> Spy:
        """Start mcpspy around a sample server (`x.py`) or another command.

        `through` is the command that starts mcpspy, `interpreter` has the arguments after Python's own name, `options`
        replaces `--record` and a path.
        """
        if options is None:
            options = ["--record", str(self.recording)]
        server = self.command(*command)
        argv = [*through, sys.executable, *interpreter, "run", *options, "--", *server]
        process = subprocess.Popen(argv, stdin=stdin, stdout=stdout, stderr=stderr, bufsize=0, **more)
        spy = Spy(process, self.recording, self._read)
        self.started.append(spy)
        return spy

    def command(self, name: object, *arguments: object) -> list[str]:
        """Return a command, or that of a sample server if it is the name of one."""
        text = str(name)
        is_sample = text.endswith(".py") and os.sep not in text
        program = [sys.executable, "-I", "-S", str(SERVERS / text)] if is_sample else [text]
        return [*program, *map(str, arguments)]


@pytest.fixture
def start(
    tmp_path: Path, read_entries: Callable[[bytes], list[Entry]], processes: Processes
) -> Iterator[Start]:
    """Start `mcpspy run`, as often as a test needs. Everything ends with the test, also its relays."""
    starter = Start(tmp_path, read_entries)
    yield starter
    for spy in starter.started:
        process = spy.process
        if process.poll() is None:
            process.kill()
        for pipe in (process.stdin, process.stdout, process.stderr):
            if pipe is not None:
                pipe.close()
        process.wait(BOUND)
        processes.gone(*spy.relays())


@pytest.fixture(scope="session")
def processes() -> Processes:
    """Inspect processes and wait for them."""
    return Processes()


@pytest.fixture(scope="session", autouse=True)
def _adopt_orphans() -> None:
    """Make every orphan a child of this process, where it is visible (Linux)."""
    if sys.platform == "linux":
        assert ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == 0


@pytest.fixture(autouse=True)
def _nothing_is_left(_adopt_orphans: None, processes: Processes) -> Iterator[None]:
    """Assert that a test leaves no process behind.

    A relay that ends becomes a zombie only because this process adopts orphans in place of init: it is reaped.
    """
    before, begun = set(_own_children()), _ticks()
    yield
    processes.gone(*(pid for pid in set(_own_children()) - before if not _command(pid)))
    # Orphans of another test's browser or server, adopted in the meantime, were started earlier.
    left = {pid for pid in set(_own_children()) - before if _started(pid) >= begun}
    for pid in left:
        os.kill(pid, signal.SIGKILL)
    processes.gone(*left)
    assert not left, "processes were left behind"


def _ticks() -> int:
    """Return the time since the machine was started, as the kernel counts it for processes."""
    if sys.platform != "linux":
        return 0
    return int(time.clock_gettime(time.CLOCK_BOOTTIME) * os.sysconf("SC_CLK_TCK"))


def _started(pid: int) -> int:
    """Return the start time of a process; zero if it has ended, so that it does not count as left behind."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return -1
    return int(stat.rpartition(")")[2].split()[19])


def _command(pid: int) -> bytes:
    """Return the command line of a process, with a NUL after each argument; empty if it has ended."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


def _own_children() -> list[int]:
    try:
        threads = os.listdir("/proc/self/task")
        lists = [Path(f"/proc/self/task/{thread}/children").read_text(encoding="ascii") for thread in threads]
    except OSError:  # Without /proc, or with one that lacks this, only the tests' own checks apply.
        return []
    return [int(pid) for text in lists for pid in text.split()]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "session.jsonl"


@pytest.fixture
def writer(path: Path) -> Iterator[Writer]:
    """Hold a recording open, as `mcpspy run` does."""
    writer = Writer(None, str(path), {"transport": "stdio", "name": "srv"}, say=pytest.fail)
    writer._is_file = False  # Tests of readers delete and truncate it; it does not continue in a part.
    yield writer
    writer.close()
