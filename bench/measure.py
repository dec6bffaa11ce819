"""Shared code of the benchmarks: process chains, fair timing, the table of results.

Owns fairness: subjects take turns in rounds, and the better quartile of each
counts, since a busy machine only ever adds time. It does not depend on the
measured subjects: the other files of this folder define them. POSIX only.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import platform
import select
import shutil
import signal
import socket
import sys
import tempfile
import time
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TypeVar

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

T = TypeVar("T")
S = TypeVar("S")

MOST = 1 << 16
"""Bytes of a read: the capacity of a pipe. More causes page faults and gains nothing."""


@dataclass(frozen=True, slots=True)
class Chain:
    """Processes in a row between the writing end and the reading end of the benchmark. `{}` in an argument is a folder."""

    name: str
    stages: Sequence[Sequence[str]]
    server: int | None = None
    """The stage that is the server itself, whose work does not count for the proxy; None if a proxy starts it."""


class Flow:
    """A running chain."""

    def __init__(self, chain: Chain, folder: str, *, sockets: bool) -> None:
        self.folder = Path(folder)
        self._chain = chain
        self.pids: list[int] = []
        source, self.write = _channel(sockets=sockets)
        try:
            for number, stage in enumerate(chain.stages):
                last = number == len(chain.stages) - 1
                following, out = _channel(sockets=sockets and last)
                try:
                    self.pids.append(
                        spawn([word.replace("{}", folder) for word in stage], source, out, folder)
                    )
                finally:
                    os.close(source)
                    os.close(out)
                    source = following
        except BaseException:
            self.kill()
            raise
        self.read = source

    def rate(self, size: int) -> float:
        """Read until `size` bytes arrived; return bytes per second, counted from the first byte."""
        got = len(os.read(self.read, MOST))
        first, start = got, time.perf_counter()
        while got < size:
            data = os.read(self.read, MOST)
            if not data:
                raise RuntimeError(f"{self._chain.name}: {got} bytes of {size} arrived; {self.words()}")
            got += len(data)
        return (got - first) / (time.perf_counter() - start)

    def send(self, data: bytes | memoryview) -> None:
        """Write all of it, blocking."""
        data = memoryview(data)
        while data:
            data = data[os.write(self.write, data) :]

    def exchange(self, data: bytes, size: int) -> bytes:
        """Write `data` while reading until `size` LFs arrived; return the bytes read."""
        rest = memoryview(data)
        os.set_blocking(self.write, False)
        poller = select.poll()
        poller.register(self.read, select.POLLIN)
        poller.register(self.write, select.POLLOUT)
        pieces: list[bytes] = []
        while size > 0:
            for fd, _ in poller.poll():
                if fd == self.write:
                    rest = rest[os.write(fd, rest[: 1 << 16]) :]
                    if not rest:
                        poller.unregister(fd)
                else:
                    pieces.append(os.read(fd, MOST))
                    if not pieces[-1]:
                        raise RuntimeError(f"{self._chain.name} ended early; {self.words()}")
                    size -= pieces[-1].count(b"\n")
        return b"".join(pieces)

    def cpu(self) -> float | None:
        """Return the CPU seconds of all stages except the server so far; None outside Linux."""
        pids = [pid for number, pid in enumerate(self.pids) if number != self._chain.server]
        try:
            return sum(int(Path(f"/proc/{pid}/schedstat").read_text().split()[0]) for pid in pids) / 1e9
        except OSError:
            return None

    def memory(self) -> tuple[float, float] | None:
        """Return the resident and the proportional megabytes of the first stage; None outside Linux."""
        try:
            lines = Path(f"/proc/{self.pids[0]}/smaps_rollup").read_text().splitlines()
        except OSError:
            return None
        sizes = {words[0]: int(words[1]) / 1024 for line in lines[1:] if (words := line.split())}
        return sizes["Rss:"], sizes["Pss:"]

    def line(self) -> None:
        """Read to the end of a line."""
        while not (data := os.read(self.read, MOST)).endswith(b"\n"):
            if not data:
                raise RuntimeError(f"{self._chain.name} ended early; {self.words()}")

    def end(self) -> None:
        """Close the input of the chain."""
        if self.write >= 0:
            os.close(self.write)
            self.write = -1

    def expect_recorded(self, count: int) -> None:
        """Raise if mcpspy recorded fewer messages: a proxy that skips some would be faster."""
        path = self.folder / "session.jsonl"
        found = path.read_bytes().count(b'"msg":') if path.exists() else count
        if found < count:
            raise RuntimeError(f"{self._chain.name} recorded {found} of {count} messages; {self.words()}")

    def words(self) -> str:
        """Return the stderr of the chain."""
        stderr = (self.folder / "stderr").read_text(errors="replace").strip()
        return stderr or "nothing on stderr"

    def finish(self) -> None:
        """Wait until the chain ends by itself; raise if it failed."""
        self.end()
        while os.read(self.read, MOST):
            pass
        os.close(self.read)
        codes = [os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in self.pids]
        self.pids = []
        if any(codes):
            raise RuntimeError(f"{self._chain.name} ended with {codes}; {self.words()}")

    def kill(self) -> None:
        """Kill the remaining processes."""
        for pid in self.pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
            with contextlib.suppress(ChildProcessError):
                os.waitpid(pid, 0)


@contextlib.contextmanager
def running(
    chain: Chain, *, seconds: float = 30, sockets: bool = False, folder: str | None = None
) -> Iterator[Flow]:
    """Run a chain in `folder`, or in a temporary one, for at most `seconds`."""
    with tempfile.TemporaryDirectory(prefix="mcpspy-bench-") as temporary, deadline(seconds, chain.name):
        flow = Flow(chain, folder or temporary, sockets=sockets)
        try:
            yield flow
        except BaseException:
            flow.kill()
            raise
        flow.finish()


def spawn(command: list[str], stdin: int, stdout: int, folder: str) -> int:
    """Start a process on these two descriptors; stderr is a file, as no host gives a server a terminal."""
    stderr = os.open(os.path.join(folder, "stderr"), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    actions = [(os.POSIX_SPAWN_DUP2, fd, number) for number, fd in enumerate((stdin, stdout, stderr))]
    defaults = [signal.SIGPIPE, signal.SIGXFSZ]
    environment = {**os.environ, "MCPSPY_DIR": folder}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)  # Users do not compile the package at every start.
    try:
        return os.posix_spawnp(command[0], command, environment, file_actions=actions, setsigdef=defaults)
    finally:
        os.close(stderr)


@contextlib.contextmanager
def deadline(seconds: float, what: str) -> Iterator[None]:
    """Raise TimeoutError even in a blocking call."""

    def late(*_: object) -> None:
        raise TimeoutError(f"{what}: not done after {seconds:g} s")

    before = signal.signal(signal.SIGALRM, late)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


@contextlib.contextmanager
def pinned() -> Iterator[None]:
    """Pin this process and its children to one CPU: measures the path without effects of the scheduler."""
    if not hasattr(os, "sched_setaffinity"):
        yield
        return
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {max(before)})
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


def alternate(subjects: Mapping[str, Callable[[], T]], rounds: int) -> dict[str, list[T]]:
    """Measure each subject once per round, beginning with another one each time."""
    samples: dict[str, list[T]] = {name: [] for name in subjects}
    names = list(subjects)
    for _ in range(rounds):
        for name in names:
            samples[name].append(subjects[name]())
        names.append(names.pop(0))
    return samples


def low(samples: Sequence[float]) -> float:
    """Return the better quartile of samples that should be small."""
    return sorted(samples)[(len(samples) - 1) // 4]


def high(samples: Sequence[float]) -> float:
    """Return the better quartile of samples that should be large."""
    return -low([-sample for sample in samples])


@dataclass(frozen=True, slots=True)
class Row:
    """One figure: measurement, baseline and bar."""

    figure: str
    measured: str
    baseline: str
    value: float | None
    """The value for the bar, in `unit`, `x` for a ratio; None if it cannot be measured here."""
    most: float | None = None
    least: float | None = None
    unit: str = "x"

    @property
    def bar(self) -> str:
        """The bar as text."""
        if self.most is not None:
            return f"≤ {self.most:g} {self.unit}"
        return f"≥ {self.least:g} {self.unit}" if self.least is not None else ""

    @property
    def holds(self) -> bool | None:
        """True if the bar is met; None without a bar or a value."""
        if self.value is None or not self.bar:
            return None
        return (self.most is None or self.value <= self.most) and (
            self.least is None or self.value >= self.least
        )

    def cells(self) -> list[str]:
        """The row of the table."""
        value = "-" if self.value is None else f"{self.value:.3g} {self.unit}"
        verdict = {True: "pass", False: "MISS", None: ""}[self.holds]
        return [self.figure, self.measured, self.baseline, value, self.bar, verdict]


@dataclass(slots=True)
class Report:
    """The rows of one run."""

    title: str
    rows: list[Row] = field(default_factory=list)
    started: float = field(default_factory=time.monotonic)

    def add(self, *rows: Row) -> None:
        """Append rows, and print their figures as progress."""
        self.rows += rows
        for row in rows:
            print(f"  {time.monotonic() - self.started:5.1f} s  {row.figure}", file=sys.stderr)

    def show(self) -> None:
        """Print the table as aligned Markdown."""
        heads = ["figure", "mcpspy", "baseline", "ratio", "bar", ""]
        table = [heads, *(row.cells() for row in self.rows)]
        widths = [max(len(cells[column]) for cells in table) for column in range(len(heads))]
        rule = ["-" * width for width in widths]
        print(f"{self.title}, {machine()}, {time.monotonic() - self.started:.0f} s\n")
        for cells in (heads, rule, *table[1:]):
            line = " | ".join(cell.ljust(width) for cell, width in zip(cells, widths, strict=True))
            print(f"| {line} |")

    def save(self, path: str) -> None:
        """Write the rows as JSON."""
        rows = [{**asdict(row), "holds": row.holds} for row in self.rows]
        content = {"title": self.title, "machine": machine(), "rows": rows}
        Path(path).write_text(json.dumps(content, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")

    @property
    def missed(self) -> bool:
        """True if a bar was missed."""
        return any(row.holds is False for row in self.rows)


def main(
    title: str,
    about: str,
    *,
    full: S,
    quick: S,
    huge: S | None = None,
    figures: Mapping[str, Callable[[Report, S], None]],
    lacks: str | None,
) -> int:
    """Measure and print the table; with --check return 1 if a bar was missed. `lacks`: a missing requirement.

    `huge` is the size for --huge, which exists only with it.
    """
    parser = argparse.ArgumentParser(description=about)
    sizes = parser.add_mutually_exclusive_group()
    sizes.add_argument("--quick", action="store_true", help="fewer rounds: a quarter of the time")
    if huge is not None:
        sizes.add_argument("--huge", action="store_true", help="ten times the amount, for an hour or more")
    parser.add_argument("--check", action="store_true", help="exit with 1 if a figure misses its bar")
    parser.add_argument("--json", metavar="FILE", help="write the rows to this file too")
    parser.add_argument("--only", choices=figures, action="append", help="measure only this; may be repeated")
    arguments = parser.parse_args()
    if lacks is not None:
        parser.error(lacks)
    name, size = ("quick", quick) if arguments.quick else ("full", full)
    if huge is not None and arguments.huge:
        name, size = "huge", huge
    report = Report(f"{title}, {name}")
    for figure in arguments.only or figures:
        figures[figure](report, size)
    report.show()
    if arguments.json:
        report.save(arguments.json)
    return 1 if arguments.check and report.missed else 0


def machine() -> str:
    """Return a description of the machine."""
    python = f"{platform.python_implementation()} {platform.python_version()}"
    return f"{os.cpu_count()} CPUs {platform.machine()}, {platform.system()} {platform.release()}, {python}"


def mcpspy_command() -> list[str]:
    """Return the console script of this environment, else the module."""
    script = shutil.which("mcpspy", path=os.path.dirname(sys.executable))
    return [script] if script else [sys.executable, "-m", "mcpspy"]


def _channel(*, sockets: bool) -> tuple[int, int]:
    if sockets:
        source, destination = socket.socketpair()
        return source.detach(), destination.detach()
    return os.pipe()
