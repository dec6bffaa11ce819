"""Speed of `mcpspy mock`, compared with the recorded server and with another mock.

Owns the figures of the mock and their bars. The servers are the Python SDK's
and server-everything, on Node; the other mock is mcp-cassette, with a recording
of the same session by its own recorder and its fastest settings. Every response
of each is first compared with that of the server.

    .venv/bin/python bench/mock.py [--quick] [--check] [--json FILE]
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager, nullcontext
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import NamedTuple

# Not this folder: its `http.py` would shadow the standard library's.
sys.path[0] = str(Path(__file__).resolve().parent.parent)

from bench import sessions  # noqa: E402 - the line above must come first.
from bench.clients import AT_ONCE, Connection, Echo, Pipe, Session, flood  # noqa: E402
from bench.http import PEERS, SDK_SERVER, Endpoint, free_port, sdk_server, started  # noqa: E402
from bench.measure import Chain, Report, Row, alternate, high, low, main, mcpspy_command, running  # noqa: E402

HERE = Path(__file__).resolve().parent
MCPSPY = mcpspy_command()
CASSETTE = str(PEERS / "mcp-cassette" / "bin" / "mcp-cassette")
NODE_SERVER = str(
    PEERS / "node_modules" / "@modelcontextprotocol" / "server-everything" / "dist" / "index.js"
)
OWN, OTHER = "mcpspy", "mcp-cassette"
PYTHON, AIOHTTP, PARSING = "python -c pass", "importing aiohttp", "CPU of json.loads of each line"
SECONDS = 600
"""Maximum seconds for the figures of one server."""


@dataclass(frozen=True)
class Size:
    """Amounts to measure."""

    rounds: int
    distinct: int
    """Calls in the recording."""
    calls: int
    flood: int
    starts: int
    long_starts: int
    other_is_long: bool
    """True if the other mock gets the long recording, too: recording it takes minutes."""


FULL = Size(5, 1000, 400, 1500, 6, 3, True)
QUICK = Size(3, 300, 200, 900, 3, 2, False)


class Server(NamedTuple):
    """A recorded server."""

    name: str
    parameter: str
    """Name of the text argument of its `echo`."""
    command: list[str]
    """Command on stdio."""
    listening: Callable[[], AbstractContextManager[Endpoint]]
    """The server over HTTP."""


@contextmanager
def node_server() -> Iterator[Endpoint]:
    """Run server-everything over HTTP, without its log of requests on stdout."""
    port = free_port()
    command = ["sh", "-c", 'exec "$@" >/dev/null', "sh", "node", NODE_SERVER, "streamableHttp"]
    with started(command, "(listening)", PORT=str(port)):
        yield Endpoint(port, "/mcp")


SERVERS = (
    Server("Python SDK", "text", [str(PEERS / "venv" / "bin" / "python"), str(SDK_SERVER)], sdk_server),
    Server("server-everything", "message", ["node", NODE_SERVER, "stdio"], node_server),
)


Sessions = Callable[[], AbstractContextManager[Session]]
"""Opens sessions."""


class Subject(NamedTuple):
    """A measured subject: a session, and a function for concurrent calls.

    A session over HTTP begins just before it is used: the servers close a connection that is idle for five seconds.
    """

    session: Sessions
    flood: Callable[[int], float]


def _on_pipes(pipe: Pipe, echo: Echo) -> Subject:
    return Subject(lambda: nullcontext(pipe), partial(pipe.flood, echo))


def _on_connections(endpoint: Endpoint, echo: Echo) -> Subject:
    return Subject(partial(_connected, endpoint), partial(flood, endpoint, echo))


def _connected(endpoint: Endpoint) -> AbstractContextManager[Connection]:
    return closing(Connection(endpoint))


def stdio(report: Report, size: Size) -> None:
    """Measure calls on pipes."""
    has_other = _has_other(report)
    for server in SERVERS:
        with tempfile.TemporaryDirectory(prefix="mcpspy-bench-") as folder, ExitStack() as open_ones:
            echo = Echo(server.parameter, size.distinct)
            recording, other = str(Path(folder) / "ours.jsonl"), str(Path(folder) / "other.json")
            results = _recorded([*MCPSPY, "run", "--record", recording, "--", *server.command], echo)
            commands = {server.name: server.command, OWN: [*MCPSPY, "mock", recording]}
            if has_other:
                _recorded([*_record(other), "--", *server.command], echo)
                commands[OTHER] = _serve(other)
            subjects = {}
            for name, command in commands.items():
                flow = open_ones.enter_context(running(Chain(name, [command]), seconds=SECONDS))
                subjects[name] = _on_pipes(Pipe(flow), echo)
            _expect_same(subjects, echo, results)
            _compare(report, f"stdio, {server.name}'s echo", subjects, echo, size)


def http(report: Report, size: Size) -> None:
    """Measure calls over HTTP."""
    has_other = _has_other(report)
    for server in SERVERS:
        with tempfile.TemporaryDirectory(prefix="mcpspy-bench-") as folder, ExitStack() as open_ones:
            echo = Echo(server.parameter, size.distinct)
            recording, other = str(Path(folder) / "ours.jsonl"), str(Path(folder) / "other.json")
            endpoints = {server.name: open_ones.enter_context(server.listening())}
            url = f"http://127.0.0.1:{endpoints[server.name].port}/mcp"
            with _proxy(
                [*MCPSPY, "http", "--upstream", url, "--listen", ":0", "--record", recording]
            ) as endpoint:
                results = _results(partial(_connected, endpoint), echo)
            endpoints[OWN] = open_ones.enter_context(_proxy([*MCPSPY, "mock", recording, "--http", "0"]))
            if has_other:
                with _proxy([*_record(other), "--url", url]) as endpoint:
                    _results(partial(_connected, endpoint), echo)
                endpoints[OTHER] = open_ones.enter_context(_proxy(_serve(other)))
            subjects = {name: _on_connections(endpoint, echo) for name, endpoint in endpoints.items()}
            _expect_same(subjects, echo, results)
            _compare(report, f"HTTP, {server.name}'s echo", subjects, echo, size)


def _record(path: str) -> list[str]:
    """Return the command of the other recorder, without redaction: otherwise its mock would redact each request."""
    return [CASSETTE, "record", "--cassette", path, "--no-default-redactions", "--checkpoint-interval", "0"]


def _serve(path: str) -> list[str]:
    """Return the command of the other mock, with repeated responses enabled."""
    return [CASSETTE, "serve", path, "--ordering", "none"]


def _has_other(report: Report) -> bool:
    """Return True if another mock is installed; otherwise add a note to the report."""
    has_other = (PEERS / OTHER / "installed").exists()
    if not has_other:
        report.add(Row(OTHER, "", "not installed: run bench/rivals.sh, with a Python 3.12", None))
    return has_other


def _recorded(command: list[str], echo: Echo) -> list[object]:
    """Record a session on stdio; return its results."""
    with running(Chain(command[0], [command]), seconds=SECONDS) as flow:
        return echo.results(Pipe(flow))


@contextmanager
def _proxy(command: list[str]) -> Iterator[Endpoint]:
    """Run a server that prints its address."""
    with started(command, r"http://127\.0\.0\.1:(\d+)/mcp") as process:
        yield Endpoint(int(process.output), "/mcp", pid=process.pid)


def _results(session: Sessions, echo: Echo) -> list[object]:
    with session() as open_one:
        return echo.results(open_one)


def _expect_same(subjects: Mapping[str, Subject], echo: Echo, results: list[object]) -> None:
    """Raise if one of the subjects responds differently from the recording."""
    for name, subject in subjects.items():
        for number, (response, recorded) in enumerate(
            zip(_results(subject.session, echo), results, strict=True)
        ):
            if response != recorded:
                raise RuntimeError(f"{name} answers call {number} with {response}, recorded was {recorded}")


def _compare(report: Report, what: str, subjects: Mapping[str, Subject], echo: Echo, size: Size) -> None:
    p50 = alternate({n: partial(_p50, s.session, echo, size.calls) for n, s in subjects.items()}, size.rounds)
    rate = alternate({n: partial(s.flood, size.flood) for n, s in subjects.items()}, size.rounds)
    times, rates = {n: low(of) for n, of in p50.items()}, {n: high(of) for n, of in rate.items()}
    shown = {name: f"{value:.3f} ms" for name, value in times.items()}
    others = [name for name in subjects if name != OWN]
    for name in others:
        ratio = times[OWN] / times[name]
        report.add(Row(f"{what}: one call, p50", shown[OWN], f"{name} {shown[name]}", ratio, most=1))
    shown = {name: f"{value:.0f} calls/s" for name, value in rates.items()}
    for name in others:
        ratio = rates[OWN] / rates[name]
        report.add(Row(f"{what}: {AT_ONCE} at once", shown[OWN], f"{name} {shown[name]}", ratio, least=1))


def _p50(session: Sessions, echo: Echo, count: int) -> float:
    """Return the median time of sequential calls, in milliseconds."""
    times = []
    with session() as open_one:
        for number in range(count):
            start = time.perf_counter_ns()
            echo.call(open_one, number)
            times.append(time.perf_counter_ns() - start)
    return sorted(times)[count // 2] / 1e6


class RecordedCall(NamedTuple):
    """A request of a recording, and its response."""

    request: bytes
    answer: object


class Long(NamedTuple):
    """A recording of a long session."""

    recording: str
    other: str | None
    calls: list[RecordedCall]
    """The first and the last call."""


Seconds = tuple[float, ...]
"""Seconds from the start to the responses to the handshake, the first and the last call, each with the CPU seconds of
the mock until then; and its peak memory in megabytes."""


def start(report: Report, size: Size) -> None:
    """Measure the time from the command to its responses, and memory."""
    has_other = _has_other(report)
    for is_long in (False, True):
        with tempfile.TemporaryDirectory(prefix="mcpspy-bench-") as folder:
            with_other = has_other and (size.other_is_long or not is_long)
            session = _long(Path(folder), 220_000 if is_long else 11_000, with_other=with_other)
            mock = [*MCPSPY, "mock", session.recording]
            subjects: dict[str, Callable[[], Seconds]] = {
                "stdio": partial(_start_stdio, mock, session.calls),
                "HTTP": partial(_start_http, [*mock, "--http", "0"], session.calls),
                PARSING: partial(_parse, session.recording),
                PYTHON: partial(_python, "pass"),
                AIOHTTP: partial(_python, "import aiohttp.web"),
            }
            if session.other is not None:
                subjects[OTHER] = partial(_start_stdio, _serve(session.other), session.calls)
            if not is_long:
                subjects |= {server.name: partial(_start_stdio, server.command, []) for server in SERVERS}
            found = alternate(subjects, size.long_starts if is_long else size.starts)
            best = {name: [low(column) for column in zip(*of, strict=True)] for name, of in found.items()}
            _add_starts(report, best, Path(session.recording).stat().st_size / 1e6, is_long=is_long)


def _add_starts(report: Report, best: Mapping[str, list[float]], megabytes: float, *, is_long: bool) -> None:
    for transport, baselines, short in (("stdio", [OTHER], 0.25), ("HTTP", [AIOHTTP], 0.15)):
        most = 2 if is_long else short
        what = f"{megabytes:.0f} MB on {transport}"
        for at, (until, others, bar) in enumerate(
            (
                ("handshake", [*(server.name for server in SERVERS), PYTHON], most),
                ("first call", [], most),
                ("last call", [PARSING], None),
            )
        ):
            wall, cpu = best[transport][2 * at : 2 * at + 2]
            seconds = {n: best[n][2 * at if n == OTHER else 0] for n in baselines + others if n in best}
            base = "; ".join(f"{name} {value:.2f} s" for name, value in seconds.items())
            figure = f"{what}: start to {until}"
            report.add(Row(figure, f"{wall:.2f} s, CPU {cpu:.2f} s", base, wall, bar, unit="s"))
        peak = best[transport][-1]
        base = f"{OTHER} {best[OTHER][-1]:.0f} MB" if OTHER in baselines and OTHER in best else ""
        bar = 1.5 if is_long else None
        report.add(
            Row(f"{what}: most memory", f"{peak:.0f} MB", base, peak / megabytes, bar, unit="x the file")
        )


def _long(folder: Path, messages: int, *, with_other: bool) -> Long:
    """Record a long session with each tool, four calls in flight at a time."""
    source = folder / "source.jsonl"
    sessions.write_long(source, messages)
    by_sender: dict[bytes, list[bytes]] = {b"client": [], b"server": []}
    for line in source.read_bytes().splitlines():
        _, found, rest = line.partition(b'"from":"')
        if found:
            sender, _, message = rest.partition(b'","msg":')
            by_sender[sender].append(message[:-1])
    requests, answered = by_sender[b"client"], by_sender[b"server"]
    server = ["--", sys.executable, "-P", str(HERE / "recorded_server.py"), str(source)]
    recording, other = str(folder / "ours.jsonl"), str(folder / "other.json") if with_other else None
    for command in [[*MCPSPY, "run", "--record", recording]] + ([_record(other)] if other else []):
        with running(Chain(command[0], [[*command, *server]]), seconds=SECONDS) as flow:
            flow.exchange(requests[0] + b"\n", 1)
            flow.exchange(b"\n".join(requests[1:3]) + b"\n", 1)
            for at in range(3, len(requests), 4):
                flow.exchange(b"\n".join(requests[at : at + 4]) + b"\n", 4)
    answers = {answer["id"]: answer for answer in map(json.loads, answered)}
    return Long(
        recording,
        other,
        [RecordedCall(call, answers[json.loads(call)["id"]]) for call in (requests[3], requests[-1])],
    )


def _start_stdio(command: list[str], calls: list[RecordedCall]) -> Seconds:
    started_at = time.perf_counter()
    with running(Chain(command[0], [command]), seconds=120) as flow:
        pipe = Pipe(flow)
        return _answered(started_at, flow.pids[0], pipe, calls)


def _start_http(command: list[str], calls: list[RecordedCall]) -> Seconds:
    started_at = time.perf_counter()
    with _proxy(command) as endpoint, closing(Connection(endpoint)) as connection:
        return _answered(started_at, endpoint.pid, connection, calls)


def _answered(started_at: float, pid: int | None, session: Session, calls: list[RecordedCall]) -> Seconds:
    """Make these calls in a new session of a new process."""
    seconds = [time.perf_counter() - started_at, _cpu(pid)]
    for call in calls:
        answer = session.post(call.request)
        seconds += time.perf_counter() - started_at, _cpu(pid)
        if json.loads(answer) != call.answer:
            raise RuntimeError(f"different from the recording: {answer[:400]!r}")
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    peak = next(int(line.split()[1]) for line in lines if line.startswith("VmHWM:"))
    return *seconds, peak * 1024 / 1e6


def _cpu(pid: int | None) -> float:
    threads = Path(f"/proc/{pid}/task").glob("*/schedstat")
    return sum(int(thread.read_text().split()[0]) for thread in threads) / 1e9


def _parse(path: str) -> Seconds:
    started_at = time.process_time()
    with open(path, "rb") as file:
        for line in file:
            json.loads(line)
    return (time.process_time() - started_at,)


def _python(code: str) -> Seconds:
    started_at = time.perf_counter()
    subprocess.run([sys.executable, "-c", code], check=True)
    return (time.perf_counter() - started_at,)


FIGURES: dict[str, Callable[[Report, Size], None]] = {"stdio": stdio, "http": http, "start": start}


if __name__ == "__main__":
    lacks = None
    if not Path("/proc/self/status").exists():
        lacks = "this needs Linux: /proc"
    elif not (PEERS / "installed").exists():
        lacks = "peers are missing: run make peers and bench/rivals.sh"
    about = "Speed of `mcpspy mock`, compared with the recorded server and with another mock."
    sys.exit(main("mcpspy mock", about, full=FULL, quick=QUICK, figures=FIGURES, lacks=lacks))
