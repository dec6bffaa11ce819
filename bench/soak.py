"""Half an hour under load, with failures of all kinds: finds lost messages and growing memory.

Two sessions, one on stdio and one over HTTP, get calls from the first minute to the last, and their memory is
sampled. Meanwhile short sessions run and end in different ways: orderly, by a kill of mcpspy or of the
server in the middle of a flood, by a full disk, under rules that drop, delay and fail. After each, every message that
the client has received must be in the file, and no process may be left.

    .venv/bin/python bench/soak.py [--minutes 30] [--seed N]

Exits with 1 if a message was lost, a process was left behind, or private memory grew by more than a megabyte an hour
(measured over ten minutes at least). Private memory (RssAnon) is what a process has allocated. The pages of programs
and libraries (RssFile) are shown beside it and are not part of the slope: the kernel drops and maps them as other
processes need memory, and mcpspy maps no file that grows.

The proxy over HTTP remembers sessions and connections up to fixed numbers. A run of ten minutes or more fills these
tables before its first sample, so a slope is growth without an end. The client starts a new session every
hundred calls and ends the old one, as hosts do.

Linux only: it reads /proc and sets limits of other processes.
"""

from __future__ import annotations

import argparse
import os
import random
import re
import resource
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

# Not this folder: its `http.py` would shadow the standard library's.
sys.path[0] = str(Path(__file__).resolve().parent.parent)

from bench.clients import Connection, Echo  # noqa: E402 - the line above must come first.
from bench.http import Endpoint, sdk_server, started  # noqa: E402
from bench.measure import machine, mcpspy_command  # noqa: E402
from mcpspy.core.recording.decode import Frame, Note, read_entry  # noqa: E402
from mcpspy.io.http.context import MAX_CLIENTS, MAX_ENDED  # noqa: E402
from mcpspy.io.http.routes import MAX_REMEMBERED  # noqa: E402

HERE = Path(__file__).resolve().parent
MCPSPY = mcpspy_command()
SERVER = [sys.executable, "-P", str(HERE / "echo_tool.py")]
CALL = b'{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"echo","arguments":{"text":"%b"}}}\n'
TEXT = b"x" * 200
FLOOD = 4000
"""Number of calls in a flood; a process is killed in the middle of it."""
SLOPE = 1.0
"""Maximum growth of a session, in megabytes per hour."""
ENOUGH = 600
"""Minimum seconds for a meaningful slope."""
REMEMBERED = 2 * MAX_CLIENTS + max(MAX_CLIENTS, MAX_ENDED, MAX_REMEMBERED)
"""Sessions over HTTP before sampling, in a run that is long enough for a slope.

The processes of the first MAX_CLIENTS are looked at in vain, as they end at once; the next ones fill all tables, and
the last ones take the place of the oldest, for which Python copies each table once.
"""
WARM_UP = 10
"""Parts of the samples, of which the first is left out."""


class Wrapped:
    """mcpspy in front of a server, on pipes, and a client that stores the messages it receives."""

    def __init__(self, folder: Path, *options: str) -> None:
        self.file = folder / f"{time.monotonic_ns()}.jsonl"
        self.process = subprocess.Popen(
            [*MCPSPY, "run", "--record", str(self.file), *options, "--", *SERVER],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        self.responses: list[bytes] = []
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            if line.endswith(b"\n"):
                self.responses.append(line[:-1])

    def send(self, numbers: range) -> bool:
        """Send calls; return False if the pipe is closed."""
        assert self.process.stdin is not None
        try:
            for number in numbers:
                self.process.stdin.write(CALL % (number, TEXT))
            self.process.stdin.flush()
        except BrokenPipeError:
            return False
        return True

    def wait_for(self, count: int, seconds: float = 30) -> bool:
        """Wait until `count` responses arrived."""
        until = time.monotonic() + seconds
        while len(self.responses) < count and time.monotonic() < until and self._reader.is_alive():
            time.sleep(0.01)
        return len(self.responses) >= count

    def server(self) -> int:
        """Return the server's pid."""
        children = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children")
        for child in children.read_text(encoding="ascii").split():
            if b"echo_tool" in Path(f"/proc/{child}/cmdline").read_bytes():
                return int(child)
        raise RuntimeError("no server")

    def end(self) -> int:
        """Close its stdin, wait for its end; return its exit code."""
        assert self.process.stdin is not None
        try:
            self.process.stdin.close()
        except BrokenPipeError:
            pass
        code = self.process.wait(20)
        self._reader.join(20)
        return code

    def entries(self) -> Iterator[Frame | Note]:
        """Return the content of the file."""
        for line in self.file.read_bytes().split(b"\n")[1:-1]:
            entry = read_entry(line)
            if isinstance(entry, Frame | Note):
                yield entry

    def lost(self) -> int:
        """Return the number of messages that the client received and that are not in the file."""
        recorded = Counter(
            entry.data for entry in self.entries() if isinstance(entry, Frame) and entry.side == "server"
        )
        return sum((Counter(self.responses) - recorded).values())


@dataclass
class Tally:
    """Results of one way to end."""

    runs: int = 0
    calls: int = 0
    answers: int = 0
    lost: int = 0
    wrong: list[str] = field(default_factory=list)


Way = Callable[[Path, random.Random, Tally], None]


def orderly(folder: Path, chance: random.Random, tally: Tally) -> None:
    """End with EOF after a flood and all responses."""
    session, count = Wrapped(folder), chance.randrange(500, 5000)
    session.send(range(count))
    if not session.wait_for(count):
        tally.wrong.append(f"{count - len(session.responses)} calls of {count} without a response")
    if code := session.end():
        tally.wrong.append(f"exit {code}")
    _add_to(session, count, tally)


def killed(folder: Path, chance: random.Random, tally: Tally) -> None:
    """End with `kill -9` of mcpspy in the middle of a flood: the guard ends the server."""
    session, server = _struck(folder, chance, tally, lambda session, _: session.process.kill())
    session.end()
    _gone(server, tally)
    _add_to(session, FLOOD, tally)


def bereft(folder: Path, chance: random.Random, tally: Tally) -> None:
    """End with a kill of the server: mcpspy ends the same way."""
    session, _ = _struck(folder, chance, tally, lambda _, server: os.kill(server, signal.SIGKILL))
    if (code := session.end()) != -signal.SIGKILL:
        tally.wrong.append(f"exit {code} after the server's SIGKILL")
    _add_to(session, FLOOD, tally)


def _struck(
    folder: Path, chance: random.Random, tally: Tally, strike: Callable[[Wrapped, int], None]
) -> tuple[Wrapped, int]:
    """Return a session in which a process was killed in the middle of a flood, and its server's pid."""
    session = Wrapped(folder)
    session.send(range(200))
    session.wait_for(chance.randrange(1, 200))
    server = session.server()
    feeder = threading.Thread(target=session.send, args=(range(200, FLOOD),), daemon=True)
    feeder.start()
    time.sleep(chance.random() / 20)
    strike(session, server)
    feeder.join(20)
    if feeder.is_alive():
        tally.wrong.append("the writer to it is stuck")
    return session, server


def terminated(folder: Path, chance: random.Random, tally: Tally) -> None:
    """End with SIGTERM in the middle of a flood."""
    session, count = Wrapped(folder), 1000
    session.send(range(count))
    session.wait_for(chance.randrange(1, count))
    session.process.terminate()
    session.process.wait(20)  # With its stdin still open: an EOF would end the server first.
    if (code := session.end()) != -signal.SIGTERM:
        tally.wrong.append(f"exit {code} after SIGTERM")
    _add_to(session, count, tally)


def full(folder: Path, chance: random.Random, tally: Tally) -> None:
    """Fill the disk for a while: traffic continues, and the file reports the missing entries."""
    session, count = Wrapped(folder), 1500
    session.send(range(500))
    session.wait_for(500)
    resource.prlimit(session.process.pid, resource.RLIMIT_FSIZE, (session.file.stat().st_size, -1))
    session.send(range(500, 1000))
    if not session.wait_for(1000):
        tally.wrong.append("the traffic stopped while the disk was full")
    resource.prlimit(session.process.pid, resource.RLIMIT_FSIZE, (-1, -1))
    time.sleep(chance.random())
    session.send(range(1000, count))
    session.wait_for(count)
    session.end()
    reported = sum(
        int(e.fields.get("entries", 0)) for e in session.entries() if isinstance(e, Note) and e.kind == "lost"
    )
    missing = session.lost()
    if missing > reported:  # Entries of the time without room waited in memory, or are counted.
        tally.wrong.append(f"{missing} responses are missing, {reported} entries are reported lost")
    tally.runs += 1
    tally.calls += count
    tally.answers += len(session.responses)


def faulty(folder: Path, chance: random.Random, tally: Tally) -> None:
    """Apply rules that drop, delay and fail: drops are noted, all other messages arrive."""
    seed, count = chance.randrange(1 << 30), 1000
    session = Wrapped(
        folder,
        *("--rule", f"kind:request tool:echo => 5% seed={seed} drop"),
        *("--rule", f"kind:request tool:echo => 5% seed={seed} error -32000 boom"),
        *("--rule", f"kind:result tool:echo => 5% seed={seed} delay 20ms"),
    )
    session.send(range(count))
    time.sleep(0.5)
    session.wait_for(count, 3)
    session.end()
    rules = Counter(
        str(entry.fields.get("action"))
        for entry in session.entries()
        if isinstance(entry, Note) and entry.kind == "rule"
    )
    if len(session.responses) + rules["drop"] != count:
        tally.wrong.append(f"{len(session.responses)} responses and {rules['drop']} dropped, of {count}")
    if min(rules["drop"], rules["error"], rules["delay"]) == 0:
        tally.wrong.append(f"rules without effect: {dict(rules)}")
    tally.runs += 1
    tally.calls += count
    tally.answers += len(session.responses)


WAYS: dict[str, Way] = {
    "EOF": orderly,
    "kill -9 mcpspy": killed,
    "kill -9 server": bereft,
    "SIGTERM": terminated,
    "disk full": full,
    "rules": faulty,
}


def _add_to(session: Wrapped, count: int, tally: Tally) -> None:
    tally.runs += 1
    tally.calls += count
    tally.answers += len(session.responses)
    tally.lost += session.lost()
    session.file.unlink()


def _gone(pid: int, tally: Tally) -> None:
    until = time.monotonic() + 5
    while Path(f"/proc/{pid}").exists():
        if time.monotonic() > until:
            tally.wrong.append(f"server {pid} was left behind")
            os.kill(pid, signal.SIGKILL)
            return
        time.sleep(0.02)


@dataclass
class Sample:
    """The memory of a process, in megabytes, some seconds after the start."""

    at: float
    private: float
    mapped: float
    """Resident pages of programs and libraries."""


class Steady:
    """A session under constant load, and its memory."""

    def __init__(self, pid: int, call: Callable[[int], object]) -> None:
        self.calls = 0
        self.error: Exception | None = None
        self._samples: list[Sample] = []
        self._pid = pid
        self._call = call
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        started_at = sampled = time.monotonic()
        try:
            while not self._over.wait(0.005):
                self._call(self.calls)
                self.calls += 1
                if (now := time.monotonic()) - sampled >= 1:
                    sampled = now
                    self._samples.append(Sample(now - started_at, *_resident(self._pid)))
        except Exception as error:
            self.error = error

    def end(self) -> None:
        """Stop the calls."""
        self._over.set()
        self._thread.join(30)

    @property
    def samples(self) -> list[Sample]:
        """The samples after the warm-up, in which modules are imported."""
        return self._samples[len(self._samples) // WARM_UP :]

    @property
    def has_grown(self) -> bool:
        """Return whether it grew by more than `SLOPE` in a time that is long enough."""
        samples, slope = self.samples, slope_of(self.samples)
        return slope is not None and slope > SLOPE and samples[-1].at >= ENOUGH


def slope_of(samples: list[Sample]) -> float | None:
    """Return the growth of private memory in megabytes per hour, by least squares; None for too few samples."""
    if len(samples) < 3:
        return None
    mean_at = sum(sample.at for sample in samples) / len(samples)
    mean = sum(sample.private for sample in samples) / len(samples)
    spread = sum((sample.at - mean_at) ** 2 for sample in samples)
    return sum((sample.at - mean_at) * (sample.private - mean) for sample in samples) / spread * 3600


def _resident(pid: int) -> tuple[float, float]:
    """Return the private and the mapped memory of a process, in megabytes."""
    status = Path(f"/proc/{pid}/status").read_text(encoding="ascii")
    private, mapped = (re.search(rf"{name}:\s+(\d+)", status) for name in ("RssAnon", "RssFile"))
    return (int(private[1]) / 1024, int(mapped[1]) / 1024) if private and mapped else (0.0, 0.0)


def on_stdio(folder: Path) -> tuple[Wrapped, Steady]:
    """Begin the session on pipes."""
    session = Wrapped(folder)

    def call(number: int) -> None:
        before = len(session.responses)
        session.send(range(number, number + 1))
        if not session.wait_for(before + 1):
            raise RuntimeError(f"call {number} has no response")
        session.responses.clear()

    return session, Steady(session.process.pid, call)


def over_http(endpoint: Endpoint, pid: int, remembered: int) -> Steady:
    """Begin sessions over HTTP, of a hundred calls on one connection, after `remembered` ones without a call."""
    echo = Echo("text", 1000)
    for _ in range(remembered):
        Connection(endpoint).close()
    connection = [Connection(endpoint)]

    def call(number: int) -> None:
        if number % 100 == 99:
            connection.append(Connection(endpoint))
            connection.pop(0).close()
        echo.call(connection[0], number)

    return Steady(pid, call)


def main() -> int:
    """Run, and print the results."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--minutes", type=float, default=30)
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 30))
    arguments = parser.parse_args()
    chance, tallies = random.Random(arguments.seed), {name: Tally() for name in WAYS}
    with ExitStack() as open_ones:
        folder = Path(open_ones.enter_context(tempfile.TemporaryDirectory(prefix="mcpspy-soak-")))
        upstream = open_ones.enter_context(sdk_server())
        url = f"http://127.0.0.1:{upstream.port}{upstream.path}"
        command = [
            *MCPSPY,
            "http",
            "--upstream",
            url,
            "--listen",
            ":0",
            "--record",
            str(folder / "http.jsonl"),
        ]
        proxy = open_ones.enter_context(started(command, r"http://127\.0\.0\.1:(\d+)/mcp"))
        session, stdio = on_stdio(folder)
        remembered = REMEMBERED if arguments.minutes * 60 >= ENOUGH else 0
        http = over_http(Endpoint(int(proxy.output), upstream.path), proxy.pid, remembered)
        until = time.monotonic() + arguments.minutes * 60
        while time.monotonic() < until:
            name = chance.choice(list(WAYS))
            WAYS[name](folder, chance, tallies[name])
            print(
                f"\r{max(0.0, until - time.monotonic()):6.0f} s left, {name:20}",
                end="",
                file=sys.stderr,
                flush=True,
            )
        stdio.end()
        http.end()
        code = session.end()
    print(file=sys.stderr)
    return report(arguments, tallies, {"stdio": stdio, "HTTP": http}, code)


def report(
    arguments: argparse.Namespace, tallies: dict[str, Tally], steady: dict[str, Steady], code: int
) -> int:
    """Print the tables; return the exit code."""
    print(f"soak, {arguments.minutes:g} min, seed {arguments.seed}, {machine()}\n")
    print("| a session ends by | runs | calls | responses received | of those not in the file | errors |")
    print("|---|---|---|---|---|---|")
    for name, tally in tallies.items():
        wrong = "; ".join(dict.fromkeys(tally.wrong)) or "nothing"
        lost = "reported ones" if name == "disk full" else str(tally.lost)
        print(f"| {name} | {tally.runs} | {tally.calls:,} | {tally.answers:,} | {lost} | {wrong} |")
    print(
        "\n| steady session | calls | private memory, after the warm-up and at the end | libraries | slope | |"
    )
    print("|---|---|---|---|---|---|")
    for name, session in steady.items():
        samples, slope = session.samples or [Sample(0, 0, 0)], slope_of(session.samples)
        first, last = samples[0], samples[-1]
        grown = "**more than 1**" if session.has_grown else ""
        print(
            f"| {name} | {session.calls:,} | {first.private:.2f} MB, {last.private:.2f} MB "
            f"| {first.mapped:.1f} MB, {last.mapped:.1f} MB "
            f"| {'too short' if slope is None else f'{slope:+.2f} MB/h'} | {session.error or grown} |"
        )
    failed = any(tally.lost or tally.wrong for tally in tallies.values())
    return int(failed or code != 0 or any(session.error or session.has_grown for session in steady.values()))


if __name__ == "__main__":
    sys.exit(main())
