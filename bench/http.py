"""What `mcpspy http` costs, beside talking to the server directly.

Owns the figures over HTTP and the bars they are held to. The server is the
Python SDK's, answering in JSON; how long an event takes is measured with one
that says in each event when it left. Another proxy is a line in `Subjects`.

    .venv/bin/python bench/http.py [--quick] [--check] [--json FILE]
"""

from __future__ import annotations

import argparse
import json
import re
import selectors
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

# Not this folder: this file would stand in for the standard library's `http`.
sys.path[0] = str(Path(__file__).resolve().parent.parent)

from bench.measure import Report, Row, alternate, deadline, high, low, mcpspy_command  # noqa: E402

HERE = Path(__file__).resolve().parent
PEERS = HERE.parent / ".peers"
SDK_SERVER = HERE.parent / "tests" / "peers" / "servers" / "sdk_server.py"
SECONDS = 60
"""A bound for everything that is waited for."""

META = "io.modelcontextprotocol/"
TEXT = "x" * 100


@dataclass(frozen=True)
class Size:
    """How much is measured."""

    rounds: int
    calls: int
    flood: int
    events: int


FULL = Size(15, 400, 2000, 500)
QUICK = Size(5, 200, 800, 250)
CONNECTIONS = 32


@dataclass(frozen=True)
class Place:
    """Where a subject listens, and where it records, if it does."""

    port: int
    path: str
    recording: Path | None = None


Subjects = Mapping[str, Place]
"""`direct`, `mcpspy`, and whoever else is compared."""


@contextmanager
def started(command: list[str], pattern: str | None) -> Iterator[str]:
    """Run a process; yield what the pattern finds in its first line on stderr."""
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE)
    assert process.stderr is not None
    try:
        with deadline(SECONDS, command[0]):
            line = process.stderr.readline().decode()
        found = re.search(pattern, line) if pattern else None
        if pattern and found is None:
            raise RuntimeError(f"{command[0]} did not start: {line.strip() or 'nothing on stderr'}")
        yield found[1] if found else ""
    finally:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(5)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        process.stderr.close()


@contextmanager
def sdk_server() -> Iterator[Place]:
    """Run the Python SDK's server."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    command = [str(PEERS / "venv" / "bin" / "python"), str(SDK_SERVER)]
    with started([*command, "--transport", "streamable-http", "--port", str(port)], "(ready)"):
        with deadline(SECONDS, "the SDK's server"):
            while True:  # It says that it is ready before it listens.
                try:
                    socket.create_connection(("127.0.0.1", port)).close()
                    break
                except ConnectionRefusedError:
                    continue
        yield Place(port, "/mcp")


@contextmanager
def event_server() -> Iterator[Place]:
    """Run the server of one stream."""
    with started([sys.executable, "-P", str(HERE / "sse_server.py")], r"^(\d+)$") as port:
        yield Place(int(port), "/mcp")


@contextmanager
def through(upstream: Place) -> Iterator[Subjects]:
    """Run every proxy in front of a server."""
    url = f"http://127.0.0.1:{upstream.port}{upstream.path}"
    with tempfile.TemporaryDirectory(prefix="mcpspy-bench-") as folder, ExitStack() as running:
        path = Path(folder) / "session.jsonl"
        command = [*mcpspy_command(), "http", "--upstream", url, "--listen", ":0", "--record", str(path)]
        port = running.enter_context(started(command, r"mcpspy: http://127\.0\.0\.1:(\d+)/"))
        yield {"direct": upstream, "mcpspy": Place(int(port), upstream.path, path)}


def call(place: Place) -> bytes:
    """Return a request of `echo`, as a 2026-07-28 client sends it: without a session."""
    about = {f"{META}protocolVersion": "2026-07-28", f"{META}clientCapabilities": {}}
    params = {"name": "echo", "arguments": {"text": TEXT}, "_meta": about}
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
    body = json.dumps(message, separators=(",", ":")).encode()
    head = (
        f"POST {place.path} HTTP/1.1\r\nHost: 127.0.0.1:{place.port}\r\n"
        "Accept: application/json, text/event-stream\r\nContent-Type: application/json\r\n"
        "MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: tools/call\r\nMcp-Name: echo\r\n"
        f"Content-Length: {len(body)}\r\n\r\n"
    )
    return head.encode() + body


class Connection:
    """A connection that is kept, and what has come of the answer that is under way."""

    def __init__(self, place: Place) -> None:
        self.socket = socket.create_connection(("127.0.0.1", place.port))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._request = call(place)
        self._got = b""

    def ask(self) -> None:
        """Send the request."""
        self._got = b""
        self.socket.sendall(self._request)

    def hear(self) -> bool:
        """Read once; return whether the answer is complete. Anything but the echo is an error."""
        data = self.socket.recv(1 << 16)
        self._got += data
        head, found, body = self._got.partition(b"\r\n\r\n")
        if not data:
            raise RuntimeError(f"the connection was closed after {self._got[:200]!r}")
        if not found:
            return False
        length = re.search(rb"(?i)\r\ncontent-length: *(\d+)", head)
        if length is None or not head.startswith(b"HTTP/1.1 200 "):
            raise RuntimeError(f"not the answer that is measured: {self._got[:400]!r}")
        if len(body) < int(length[1]):
            return False
        if TEXT.encode() not in body:
            raise RuntimeError(f"not an echo: {body[:400]!r}")
        return True

    def close(self) -> None:
        """Hang up."""
        self.socket.close()


def _p50(place: Place, count: int) -> float:
    """Return the median of calls one after the other, in milliseconds."""
    times = []
    with closing(Connection(place)) as connection:
        for _ in range(count + 20):
            start = time.perf_counter_ns()
            connection.ask()
            while not connection.hear():
                pass
            times.append(time.perf_counter_ns() - start)
    return sorted(times[20:])[count // 2] / 1e6


def _rate(place: Place, count: int) -> float:
    """Return the calls a second of many connections, each with one call under way."""
    with ExitStack() as open_ones, selectors.DefaultSelector() as selector:
        for _ in range(CONNECTIONS):
            connection = open_ones.enter_context(closing(Connection(place)))
            selector.register(connection.socket, selectors.EVENT_READ, connection)
            connection.ask()
        answered = -2 * CONNECTIONS  # The first ones open connections upstream.
        start = 0.0
        while answered < count:
            for key, _ in selector.select():
                if key.data.hear():
                    answered += 1
                    if answered == 0:
                        start = time.perf_counter()
                    key.data.ask()
        return answered / (time.perf_counter() - start)


def _delay(place: Place, count: int) -> float:
    """Return the median of the time that events are under way, in milliseconds."""
    delays: list[int] = []
    with closing(socket.create_connection(("127.0.0.1", place.port))) as connection:
        request = f"GET {place.path}?{count} HTTP/1.1\r\nHost: 127.0.0.1:{place.port}\r\nAccept: text/event-stream\r\n\r\n"
        connection.sendall(request.encode())
        while len(delays) < count:
            data = connection.recv(1 << 16)
            now = time.perf_counter_ns()
            if not data:
                raise RuntimeError(f"{len(delays)} of {count} events came")
            delays += [now - int(sent) for sent in re.findall(rb'"data":(\d+)\}', data)]
    return sorted(delays)[len(delays) // 2] / 1e6


def measured(
    measure: Callable[[Place, int], float], subjects: Subjects, count: int, rounds: int
) -> dict[str, list[float]]:
    """Measure every subject, in turns."""
    with deadline(SECONDS * 3, "a figure"):
        return alternate({name: partial(measure, place, count) for name, place in subjects.items()}, rounds)


def calls(report: Report, size: Size) -> None:
    """One call after the other, and many at once."""
    with sdk_server() as server, through(server) as subjects:
        times = {n: low(of) for n, of in measured(_p50, subjects, size.calls, size.rounds).items()}
        rates = {n: high(of) for n, of in measured(_rate, subjects, size.flood, size.rounds).items()}
        _expect_recorded(subjects, (size.calls + size.flood) * size.rounds)
    shown = {name: f"{value:.2f} ms" for name, value in times.items()}
    for name in subjects:
        if name != "mcpspy":
            report.add(
                Row(
                    "tools/call, JSON: p50",
                    shown["mcpspy"],
                    f"{name} {shown[name]}",
                    times["mcpspy"] / times[name],
                    most=1.6 if name == "direct" else None,
                )
            )
    shown = {name: f"{value:.0f} calls/s" for name, value in rates.items()}
    for name in subjects:
        if name != "mcpspy":
            report.add(
                Row(
                    f"tools/call, JSON, {CONNECTIONS} connections",
                    shown["mcpspy"],
                    f"{name} {shown[name]}",
                    rates["mcpspy"] / rates[name],
                    least=0.85 if name == "direct" else None,
                )
            )


def events(report: Report, size: Size) -> None:
    """How much later an event comes."""
    with event_server() as server, through(server) as subjects:
        delays = {n: low(of) for n, of in measured(_delay, subjects, size.events, size.rounds).items()}
        _expect_recorded(subjects, size.events * size.rounds)
    for name, value in delays.items():
        if name != "direct":
            report.add(
                Row(
                    "SSE event: added p50" if name == "mcpspy" else f"SSE event: added p50, {name}",
                    f"{value:.3f} ms",
                    f"direct {delays['direct']:.3f} ms",
                    value - delays["direct"],
                    most=0.3 if name == "mcpspy" else None,
                    unit="ms",
                )
            )


def _expect_recorded(subjects: Subjects, count: int) -> None:
    """Raise if fewer messages were recorded: a proxy that skips some is fast too."""
    for name, place in subjects.items():
        if place.recording is not None:
            found = place.recording.read_bytes().count(b'"msg":')
            if found < count:
                raise RuntimeError(f"{name} recorded {found} of {count} messages")


FIGURES: dict[str, Callable[[Report, Size], None]] = {"calls": calls, "events": events}


def main() -> int:
    """Measure, print the table; 1 if --check was given and a bar was missed."""
    parser = argparse.ArgumentParser(description="What `mcpspy http` costs, beside no proxy.")
    parser.add_argument("--quick", action="store_true", help="fewer rounds: under 40 s")
    parser.add_argument("--check", action="store_true", help="exit with 1 if a bar is missed")
    parser.add_argument("--json", metavar="FILE", help="write the rows there too")
    parser.add_argument(
        "--only", choices=FIGURES, action="append", help="measure this alone; may be repeated"
    )
    arguments = parser.parse_args()
    if not (PEERS / "installed").exists():
        parser.error("the peers are not installed: run make peers")
    size = QUICK if arguments.quick else FULL
    report = Report("mcpspy http, " + ("quick" if arguments.quick else "full"))
    for name in arguments.only or FIGURES:
        FIGURES[name](report, size)
    report.show()
    if arguments.json:
        report.save(arguments.json)
    return 1 if arguments.check and report.missed else 0


if __name__ == "__main__":
    sys.exit(main())
