"""Overhead of `mcpspy http`, compared with a direct connection and with other proxies.

Owns the figures over HTTP and their bars. The servers are the Python SDK's, with
JSON responses, and a fast one, which shows the time of a proxy alone. The other
proxies are a gateway of httpx and starlette, and mitmproxy, which write the
traffic to a file like mcpspy; and HAProxy, which does not, if it is installed.

    .venv/bin/python bench/http.py [--quick] [--check] [--json FILE]
"""

from __future__ import annotations

import json
import os
import re
import resource
import selectors
import shutil
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
from typing import NamedTuple, TypeVar

# Not this folder: this file would shadow the standard library's `http`.
sys.path[0] = str(Path(__file__).resolve().parent.parent)

from bench.measure import Report, Row, alternate, deadline, high, low, main, mcpspy_command  # noqa: E402

T = TypeVar("T")

HERE = Path(__file__).resolve().parent
PEERS = HERE.parent / ".peers"
RIVALS = PEERS / "mitmproxy"
SDK_SERVER = HERE.parent / "tests" / "peers" / "servers" / "sdk_server.py"
SECONDS = 60
"""Maximum seconds of every wait."""

META = "io.modelcontextprotocol/"
TEXT = "x" * 100


@dataclass(frozen=True)
class Size:
    """Amounts to measure."""

    rounds: int
    calls: int
    flood: int
    events: int
    bytes: int
    """Size of a long body."""
    streams: int
    """Idle event streams."""


FULL = Size(9, 400, 1200, 400, 1 << 30, 5000)
QUICK = Size(3, 200, 600, 250, 1 << 28, 1000)
CONNECTIONS = 32
CLIENTS, EACH = 64, 100
"""Clients that call at the same time, and the calls of each."""


@dataclass(frozen=True)
class Endpoint:
    """The port and the recording of a subject, if it records."""

    port: int
    path: str
    recording: Path | None = None
    pid: int | None = None


Subjects = Mapping[str, Endpoint]
"""`direct`, `mcpspy`, and the other proxies."""

HAPROXY = """
global
    maxconn {most}
defaults
    mode http
    option http-no-delay
    timeout connect 5s
    timeout client 300s
    timeout server 300s
frontend clients
    bind 127.0.0.1:{port}
    default_backend servers
backend servers
    http-reuse always
    server server {upstream}
"""


class Started(NamedTuple):
    """A process, and the match in its first line on stderr, if a pattern was given."""

    pid: int
    output: str


@contextmanager
def started(command: list[str], pattern: str | None = None, **environment: str) -> Iterator[Started]:
    """Run a process; yield it with the match of the pattern in its first line on stderr."""
    process = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stderr=subprocess.PIPE if pattern else None,
        env={**os.environ, **environment},
    )
    try:
        output = ""
        if pattern and process.stderr is not None:
            with deadline(SECONDS, command[0]):
                line = process.stderr.readline().decode()
            found = re.search(pattern, line)
            if found is None:
                raise RuntimeError(f"{command[0]} did not start: {line.strip() or 'nothing on stderr'}")
            output = found[1]
        yield Started(process.pid, output)
    finally:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(5)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        if process.stderr is not None:
            process.stderr.close()


def free_port() -> int:
    """Return a free port."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port: int = free.getsockname()[1]
    return port


def until_it_listens(port: int) -> None:
    """Wait for a server that does not report that it is ready."""
    with deadline(SECONDS, "a server that should listen"):
        while True:
            try:
                socket.create_connection(("127.0.0.1", port)).close()
                return
            except ConnectionRefusedError:
                time.sleep(0.02)


@contextmanager
def sdk_server() -> Iterator[Endpoint]:
    """Run the Python SDK's server."""
    port = free_port()
    command = [str(PEERS / "venv" / "bin" / "python"), str(SDK_SERVER)]
    with started([*command, "--transport", "streamable-http", "--port", str(port)], "(ready)"):
        until_it_listens(port)  # It reports that it is ready before it listens.
        yield Endpoint(port, "/mcp")


@contextmanager
def fast_server() -> Iterator[Endpoint]:
    """Run the fast server."""
    with started([sys.executable, "-P", str(HERE / "http_server.py")], r"^(\d+)$") as server:
        yield Endpoint(int(server.output), "/mcp")


@contextmanager
def through(upstream: Endpoint, *rivals: str) -> Iterator[Subjects]:
    """Run mcpspy and the named rivals in front of a server; all of them by default, HAProxy only if it is installed."""
    origin = f"http://127.0.0.1:{upstream.port}"
    with tempfile.TemporaryDirectory(prefix="mcpspy-bench-") as folder, ExitStack() as running:
        path = Path(folder) / "session.jsonl"
        url = origin + upstream.path
        command = [*mcpspy_command(), "http", "--upstream", url, "--listen", ":0", "--record", str(path)]
        own = running.enter_context(started(command, r"mcpspy: http://127\.0\.0\.1:(\d+)/"))
        subjects = {"direct": upstream, "mcpspy": Endpoint(int(own.output), upstream.path, path, own.pid)}
        for name in rivals or RIVAL_COMMANDS:
            port, path = free_port(), Path(folder) / f"{name.split()[0]}.jsonl"
            command = RIVAL_COMMANDS[name](origin, port, path)
            if shutil.which(command[0]) is None:
                print(f"  {name} is missing ({INSTALL[name]}): no rows of it", file=sys.stderr)
                continue
            found = running.enter_context(started(command, RECORD=str(path)))
            until_it_listens(port)
            record = None if name == "HAProxy" else path
            subjects[name] = Endpoint(port, upstream.path, record, found.pid)
        yield subjects


def haproxy(origin: str, port: int, path: Path) -> list[str]:
    """Return the command of HAProxy, and write its configuration beside the recordings of the others."""
    configuration = path.with_suffix(".cfg")
    upstream = origin.removeprefix("http://")
    text = HAPROXY.format(most=FULL.streams + 100, port=port, upstream=upstream)
    configuration.write_text(text, encoding="utf-8")
    return ["haproxy", "-f", str(configuration), "-db", "-q"]


def gateway(origin: str, port: int, path: Path) -> list[str]:
    """Return the command of the gateway in this folder."""
    python = str(PEERS / "venv" / "bin" / "python")
    return [python, "-P", str(HERE / "http_gateway.py"), origin, str(port), str(path)]


def mitmproxy(origin: str, port: int, _path: Path) -> list[str]:
    """Return the command of mitmproxy as a reverse proxy that records."""
    addon = str(HERE / "http_mitmproxy.py")
    listen = ["--listen-host", "127.0.0.1", "--listen-port", str(port)]
    return [str(RIVALS / "bin" / "mitmdump"), "-q", "-s", addon, "--mode", f"reverse:{origin}", *listen]


RIVAL_COMMANDS: dict[str, Callable[[str, int, Path], list[str]]] = {
    "httpx + starlette": gateway,
    "mitmproxy": mitmproxy,
    "HAProxy": haproxy,
}
"""Functions of the server's origin, the port to listen on, and the file to write."""

INSTALL = {
    "httpx + starlette": "make peers",
    "mitmproxy": "bench/rivals.sh",
    "HAProxy": "apt install haproxy",
}
"""Commands that install the other proxies."""


def call(endpoint: Endpoint, number: int = 1, text: str = TEXT) -> bytes:
    """Return a request of `echo`, as a 2026-07-28 client sends it: without a session."""
    about = {f"{META}protocolVersion": "2026-07-28", f"{META}clientCapabilities": {}}
    params = {"name": "echo", "arguments": {"text": text}, "_meta": about}
    message = {"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": params}
    body = json.dumps(message, separators=(",", ":")).encode()
    head = (
        f"POST {endpoint.path} HTTP/1.1\r\nHost: 127.0.0.1:{endpoint.port}\r\n"
        "Accept: application/json, text/event-stream\r\nContent-Type: application/json\r\n"
        "MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: tools/call\r\nMcp-Name: echo\r\n"
        f"Content-Length: {len(body)}\r\n\r\n"
    )
    return head.encode() + body


class Connection:
    """A kept connection, and the part of the current response that has arrived."""

    def __init__(self, endpoint: Endpoint) -> None:
        self.socket = socket.create_connection(("127.0.0.1", endpoint.port))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._endpoint = endpoint
        self._sent = 1, TEXT
        self._request = call(endpoint)
        self._got = b""

    def send(self, number: int = 1, text: str = TEXT) -> None:
        """Send a call."""
        if (number, text) != self._sent:
            self._sent = number, text
            self._request = call(self._endpoint, number, text)
        self._got = b""
        self.socket.sendall(self._request)

    def is_answer(self, number: int, text: str) -> bool:
        """Return whether the complete response is the echo of a call."""
        message = json.loads(self._got.partition(b"\r\n\r\n")[2])
        return bool(message["id"] == number and message["result"]["content"][0]["text"] == text)

    def hear(self) -> bool:
        """Read once; return True if the response is complete. Anything but the echo is an error."""
        data = self.socket.recv(1 << 16)
        self._got += data
        head, found, body = self._got.partition(b"\r\n\r\n")
        if not data:
            raise RuntimeError(f"the connection was closed after {self._got[:200]!r}")
        if not found:
            return False
        length = re.search(rb"(?i)\r\ncontent-length: *(\d+)", head)
        if length is None or not head.startswith(b"HTTP/1.1 200 "):
            raise RuntimeError(f"not the measured response: {self._got[:400]!r}")
        if len(body) < int(length[1]):
            return False
        if TEXT.encode() not in body:
            raise RuntimeError(f"not an echo: {body[:400]!r}")
        return True

    def close(self) -> None:
        """Disconnect."""
        self.socket.close()


class Times(NamedTuple):
    """Latencies of sequential calls, in milliseconds."""

    p50: float
    p95: float


class Flood(NamedTuple):
    """Calls per second, and CPU milliseconds of the proxy per call."""

    rate: float
    cpu: float | None


def _times(endpoint: Endpoint, count: int) -> Times:
    """Make sequential calls."""
    times = []
    with closing(Connection(endpoint)) as connection:
        for _ in range(count + 20):
            start = time.perf_counter_ns()
            connection.send()
            while not connection.hear():
                pass
            times.append(time.perf_counter_ns() - start)
    times = sorted(times[20:])
    return Times(times[count // 2] / 1e6, times[count * 95 // 100] / 1e6)


def _flood(endpoint: Endpoint, count: int) -> Flood:
    """Keep one call in flight on each of many connections."""
    with ExitStack() as open_ones, selectors.DefaultSelector() as selector:
        for _ in range(CONNECTIONS):
            connection = open_ones.enter_context(closing(Connection(endpoint)))
            selector.register(connection.socket, selectors.EVENT_READ, connection)
            connection.send()
        answered = -2 * CONNECTIONS  # The first ones open connections upstream.
        start, before = 0.0, None
        while answered < count:
            for key, _ in selector.select():
                if key.data.hear():
                    answered += 1
                    if answered == 0:
                        start, before = time.perf_counter(), _cpu(endpoint)
                    key.data.send()
        rate = answered / (time.perf_counter() - start)
        after = _cpu(endpoint)
        return Flood(rate, None if before is None or after is None else (after - before) / answered)


def _cpu(endpoint: Endpoint) -> float | None:
    """Return the CPU milliseconds of all threads of a proxy so far; None without a proxy or outside Linux."""
    if endpoint.pid is None:
        return None
    try:
        tasks = [
            path.read_text().split()[0] for path in Path(f"/proc/{endpoint.pid}/task").glob("*/schedstat")
        ]
    except OSError:
        return None
    return sum(map(int, tasks)) / 1e6 if tasks else None


def _delay(endpoint: Endpoint, count: int) -> float:
    """Return the median transit time of events, in milliseconds."""
    delays: list[int] = []
    with closing(socket.create_connection(("127.0.0.1", endpoint.port))) as connection:
        request = f"GET {endpoint.path}?events={count} HTTP/1.1\r\nHost: 127.0.0.1:{endpoint.port}\r\nAccept: text/event-stream\r\n\r\n"
        connection.sendall(request.encode())
        while len(delays) < count:
            data = connection.recv(1 << 16)
            now = time.perf_counter_ns()
            if not data:
                raise RuntimeError(f"{len(delays)} of {count} events came")
            delays += [now - int(sent) for sent in re.findall(rb'"data":(\d+)\}', data)]
    return sorted(delays)[len(delays) // 2] / 1e6


def measured(
    measure: Callable[[Endpoint, int], T], subjects: Subjects, count: int, rounds: int
) -> dict[str, list[T]]:
    """Measure every subject, in alternation."""
    with deadline(SECONDS * 5, "a figure"):
        return alternate(
            {name: partial(measure, endpoint, count) for name, endpoint in subjects.items()}, rounds
        )


def calls(report: Report, size: Size) -> None:
    """Measure sequential and concurrent calls."""
    with sdk_server() as server, through(server) as subjects:
        times = measured(_times, subjects, size.calls, size.rounds)
        floods = measured(_flood, subjects, size.flood, size.rounds)
        _expect_recorded(subjects, 2 * (size.calls + size.flood) * size.rounds, b'"msg":')
    p50 = {name: low([one.p50 for one in of]) for name, of in times.items()}
    p95 = {name: low([one.p95 for one in of]) for name, of in times.items()}
    rates = {name: high([one.rate for one in of]) for name, of in floods.items()}
    cpu = {name: low(found) for name, of in floods.items() if (found := [one.cpu for one in of if one.cpu])}
    many = f"{CONNECTIONS} connections"
    compare(report, "tools/call, JSON: p50", p50, "{:.2f} ms", most=1.25)
    compare(report, "tools/call, JSON: p95", p95, "{:.2f} ms")
    compare(report, f"tools/call, JSON, {many}", rates, "{:.0f} calls/s", least=0.98)
    compare(report, f"CPU of the proxy a call, {many}", cpu, "{:.2f} ms")


def added(report: Report, size: Size) -> None:
    """Measure what a proxy adds to calls of a fast server."""
    with fast_server() as server, through(server) as subjects:
        times = measured(_times, subjects, size.calls, size.rounds)
        floods = measured(_flood, subjects, 4 * size.flood, size.rounds)
        _expect_recorded(subjects, (size.calls + 4 * size.flood) * 2 * size.rounds, b'"msg":')
    p50 = {name: low([one.p50 for one in of]) * 1000 for name, of in times.items()}
    cpu = {name: low(found) for name, of in floods.items() if (found := [one.cpu for one in of if one.cpu])}
    direct = p50.pop("direct")
    adds = {name: value - direct for name, value in p50.items()}
    for name, value in adds.items():
        if name != "mcpspy":
            shown = f"{name} {value:.0f} µs; direct takes {direct:.0f} µs"
            most = 2 if name == "HAProxy" else None
            ratio = adds["mcpspy"] / value
            report.add(
                Row("fast server, tools/call: added p50", f"{adds['mcpspy']:.0f} µs", shown, ratio, most)
            )
    compare(report, f"fast server: CPU of the proxy a call, {CONNECTIONS} connections", cpu, "{:.3f} ms")


def events(report: Report, size: Size) -> None:
    """Measure the added delay of an event."""
    with fast_server() as server, through(server) as subjects:
        delays = {n: low(of) for n, of in measured(_delay, subjects, size.events, size.rounds).items()}
        _expect_recorded(subjects, size.events * size.rounds, b"notifications/message")
    direct = delays.pop("direct")
    adds = {name: value - direct for name, value in delays.items()}
    own = f"{adds['mcpspy']:.3f} ms"
    base = f"direct takes {direct:.3f} ms"
    report.add(Row("SSE event: added p50", own, base, adds["mcpspy"], most=0.08, unit="ms"))
    compare(report, "SSE event: added p50", adds, "{:.3f} ms")


def clients(report: Report, _: Size) -> None:
    """Count wrong responses to many clients that call at the same time."""
    with fast_server() as server, through(server, "HAProxy") as subjects, deadline(SECONDS, "64 clients"):
        wrong = {name: _wrong(endpoint) for name, endpoint in subjects.items()}
        _expect_recorded(subjects, 2 * CLIENTS * EACH, b'"msg":')
    figure = f"{CLIENTS} clients, {EACH} calls of each: wrong or missing responses"
    base = ", ".join(f"{name} {count}" for name, count in wrong.items() if name != "mcpspy")
    report.add(Row(figure, f"{wrong['mcpspy']} of {CLIENTS * EACH}", base, wrong["mcpspy"], most=0, unit=""))


def _wrong(endpoint: Endpoint) -> int:
    """Return how many calls did not get the response with their own id and text."""
    right = 0
    with ExitStack() as open_ones, selectors.DefaultSelector() as selector:
        for client in range(CLIENTS):
            connection = open_ones.enter_context(closing(Connection(endpoint)))
            selector.register(connection.socket, selectors.EVENT_READ, (connection, client))
            connection.send(*_own(client, 0))
        waiting = {key.fd: 0 for key in selector.get_map().values()}
        while waiting:
            for key, _ in selector.select():
                connection, client = key.data
                if connection.hear():
                    number, text = _own(client, waiting[key.fd])
                    right += connection.is_answer(number, text)
                    waiting[key.fd] += 1
                    if waiting[key.fd] == EACH:
                        del waiting[key.fd]
                        selector.unregister(key.fileobj)
                    else:
                        connection.send(*_own(client, waiting[key.fd]))
    return CLIENTS * EACH - right


def _own(client: int, number: int) -> tuple[int, str]:
    """Return the id and the text of a call: ids are the same for all clients."""
    return number, f"{TEXT}_{client}_{number}"


def bodies(report: Report, size: Size) -> None:
    """Measure memory and time of a long body in each direction."""
    megabytes = size.bytes >> 20
    for direction, transfer in {"down": _download, "up": _upload}.items():
        with (
            fast_server() as server,
            through(server, "HAProxy") as subjects,
            deadline(SECONDS * 5, "a long body"),
        ):
            taken, grown = {}, {}
            for name, endpoint in subjects.items():
                before = _reset_peak(endpoint.pid)
                start = time.perf_counter()
                transfer(endpoint, size.bytes)
                taken[name] = time.perf_counter() - start
                if before is not None and endpoint.pid is not None:
                    grown[name] = _memory(endpoint.pid, "VmHWM") - before
        if "mcpspy" in grown:
            base = ", ".join(f"{name} {value:.0f} MB" for name, value in grown.items() if name != "mcpspy")
            what = f"{megabytes} MB {direction}: growth of the proxy's peak memory"
            report.add(Row(what, f"{grown['mcpspy']:.0f} MB", base, grown["mcpspy"], most=100, unit="MB"))
        compare(report, f"{megabytes} MB {direction}: time", taken, "{:.2f} s")


def _download(endpoint: Endpoint, count: int) -> None:
    with closing(socket.create_connection(("127.0.0.1", endpoint.port))) as connection:
        head = f"GET {endpoint.path}?bytes={count} HTTP/1.1\r\nHost: 127.0.0.1:{endpoint.port}\r\n\r\n"
        connection.sendall(head.encode())
        data, buffer = b"", bytearray(1 << 18)
        while b"\r\n\r\n" not in data:
            data += connection.recv(1 << 16)
        got = len(data.partition(b"\r\n\r\n")[2])
        while got < count:
            if not (size := connection.recv_into(buffer)):
                raise RuntimeError(f"{got} of {count} bytes came")
            got += size


def _upload(endpoint: Endpoint, count: int) -> None:
    with closing(socket.create_connection(("127.0.0.1", endpoint.port))) as connection:
        head = (
            f"POST {endpoint.path} HTTP/1.1\r\nHost: 127.0.0.1:{endpoint.port}\r\nContent-Length: {count}\r\n"
        )
        connection.sendall(f"{head}Content-Type: application/json\r\n\r\n".encode() + b'"')
        piece, rest = memoryview(b"0" * (1 << 18)), count - 2
        while rest:
            sent = piece[: min(rest, len(piece))]
            connection.sendall(sent)
            rest -= len(sent)
        connection.sendall(b'"')
        answer = connection.recv(1 << 16)
        if not answer.startswith(b"HTTP/1.1 200 "):
            raise RuntimeError(f"not the response to {count} bytes: {answer[:200]!r}")


def idle(report: Report, size: Size) -> None:
    """Measure the memory of a proxy for each open, idle event stream."""
    limit = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(
        resource.RLIMIT_NOFILE, (limit[1], limit[1])
    )  # Also for the processes that are started.
    count = min(size.streams, (limit[1] - 200) // 2)
    with (
        fast_server() as server,
        through(server, "HAProxy") as subjects,
        deadline(SECONDS * 5, "idle streams"),
    ):
        each, held = {}, {}
        for name, endpoint in subjects.items():
            if endpoint.pid is None or not Path(f"/proc/{endpoint.pid}").exists():
                continue
            before = _memory(endpoint.pid, "VmRSS")
            with ExitStack() as open_ones:
                held[name] = sum(_is_open(endpoint, open_ones) for _ in range(count))
                each[name] = (_memory(endpoint.pid, "VmRSS") - before) * 1024 / count
    resource.setrlimit(resource.RLIMIT_NOFILE, limit)
    if "mcpspy" in each:
        base = ", ".join(f"{name} {value:.1f} kB" for name, value in each.items() if name != "mcpspy")
        report.add(
            Row(
                "idle SSE streams held",
                str(held["mcpspy"]),
                f"{count} opened",
                held["mcpspy"],
                least=count,
                unit="",
            ),
            Row(
                "memory of the proxy for an idle SSE stream",
                f"{each['mcpspy']:.1f} kB",
                base,
                each["mcpspy"],
                unit="kB",
            ),
        )


def _is_open(endpoint: Endpoint, open_ones: ExitStack) -> bool:
    """Open a stream, and return whether its first event came."""
    connection = open_ones.enter_context(closing(socket.create_connection(("127.0.0.1", endpoint.port))))
    head = f"GET {endpoint.path}?idle HTTP/1.1\r\nHost: 127.0.0.1:{endpoint.port}\r\nAccept: text/event-stream\r\n\r\n"
    connection.sendall(head.encode())
    data = b""
    while b"\n\n" not in data:
        if not (piece := connection.recv(1 << 12)):
            return False
        data += piece
    return True


def _reset_peak(pid: int | None) -> float | None:
    """Reset the peak of a process; return its resident megabytes. None without a process or outside Linux."""
    try:
        Path(f"/proc/{pid}/clear_refs").write_text("5", encoding="ascii")
    except OSError:
        return None
    return _memory(pid, "VmRSS") if pid is not None else None


def _memory(pid: int, name: str) -> float:
    """Return a size from /proc in megabytes."""
    found = re.search(rf"{name}:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text(encoding="ascii"))
    if found is None:
        raise RuntimeError(f"/proc/{pid}/status has no {name}")
    return int(found[1]) / 1024


def compare(
    report: Report,
    figure: str,
    values: Mapping[str, float],
    form: str,
    *,
    most: float | None = None,
    least: float | None = None,
) -> None:
    """Add a row for each subject that mcpspy is compared with; the bar applies to `direct`.

    Each value is followed by its ratio to the direct one.
    """
    shown = {name: form.format(value) for name, value in values.items()}
    if "direct" in values:
        shown |= {name: f"{shown[name]} ({values[name] / values['direct']:.2f})" for name in values}
        shown["direct"] = form.format(values["direct"])
    for name in values:
        if name != "mcpspy":
            held = (most, least) if name == "direct" else (None, None)
            ratio = values["mcpspy"] / values[name]
            report.add(Row(figure, shown["mcpspy"], f"{name} {shown[name]}", ratio, *held))


def _expect_recorded(subjects: Subjects, count: int, what: bytes) -> None:
    """Raise if a call was not recorded: a proxy that skips some would be faster."""
    for name, endpoint in subjects.items():
        if endpoint.recording is not None:
            found = endpoint.recording.read_bytes().count(what)
            if found < count:
                raise RuntimeError(f"{name} recorded {found} of {count} messages")


FIGURES: dict[str, Callable[[Report, Size], None]] = {
    "calls": calls,
    "added": added,
    "events": events,
    "clients": clients,
    "bodies": bodies,
    "idle": idle,
}


if __name__ == "__main__":
    lacks = None if (PEERS / "installed").exists() else "peers are missing: run make peers"
    about = "Overhead of `mcpspy http`, compared with no proxy and with others."
    sys.exit(main("mcpspy http", about, full=FULL, quick=QUICK, figures=FIGURES, lacks=lacks))
