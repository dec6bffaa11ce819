"""mcpspy compared with the other MCP recorders and mocks on PyPI, each with its fastest settings.

Owns the figures by which users compare such tools, and the commands and file formats of each tool. The bar of each
figure is to be first; a tool without a feature is not in its row.

    .venv/bin/python bench/field.py [--quick] [--check] [--json FILE]
"""

from __future__ import annotations

import json
import sqlite3
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TypeVar

# Not this folder: its `http.py` would shadow the standard library's.
sys.path[0] = str(Path(__file__).resolve().parent.parent)

from bench.clients import Connection, Echo, Pipe, flood  # noqa: E402 - the line above must come first.
from bench.http import PEERS, Endpoint, free_port, sdk_server, started, until_it_listens  # noqa: E402
from bench.measure import (  # noqa: E402
    Chain,
    Flow,
    Report,
    Row,
    alternate,
    deadline,
    high,
    low,
    main,
    mcpspy_command,
    running,
)

HERE = Path(__file__).resolve().parent
MCPSPY = mcpspy_command()
OWN = "mcpspy"
DIRECT = "direct"
SERVER = [sys.executable, "-P", str(HERE / "echo_tool.py")]
BIG = 5_000_000
"""Bytes of the large result."""
SECONDS = 300
"""A bound for one process."""
_BIG = (
    b'{"jsonrpc":"2.0","id":"big","method":"tools/call",'
    b'"params":{"name":"echo","arguments":{"text":"lorem ipsum","times":%d}}}\n' % (BIG // 11)
)


@dataclass(frozen=True)
class Size:
    """Amounts to measure."""

    rounds: int
    calls: int
    """Number of sequential calls."""
    pipelined: int
    http_calls: int
    http_flood: int


FULL = Size(5, 2000, 5000, 300, 900)
QUICK = Size(2, 500, 2000, 100, 300)


def rival(name: str) -> str | None:
    """Return the program of another tool, or None if it is not installed here."""
    path = PEERS / name / "bin" / name
    return str(path) if (PEERS / name / "installed").exists() else None


Message = tuple[str, object]
"""Sender (`c` or `s`), and message."""


@dataclass(frozen=True)
class Recorder:
    """A tool that wraps a server on stdio: `{}` is replaced by a separate folder."""

    command: list[str]
    file: str
    """Pattern of its recordings, relative to the folder."""
    messages: Callable[[Path], Iterable[Message]]
    """Reader of the messages in a recording, in order."""


def _mcpspy_messages(path: Path) -> Iterator[Message]:
    for line in path.read_bytes().splitlines()[1:]:
        entry = json.loads(line)
        if "msg" in entry:
            yield entry["from"][0], entry["msg"]


def _rec(path: Path) -> Iterator[Message]:
    for line in path.read_bytes().splitlines():
        entry = json.loads(line)
        yield entry["dir"][0], entry["msg"]


def _cassette(path: Path) -> Iterator[Message]:
    for entry in json.loads(path.read_bytes())["messages"]:
        yield entry["sender"][0], entry["payload"]


def _vcr(path: Path) -> Iterator[Message]:
    for line in path.read_bytes().splitlines():
        entry = json.loads(line)
        if "payload" in entry:
            yield entry["dir"][0], entry["payload"]


def _hawk(path: Path) -> Iterator[Message]:
    with closing(sqlite3.connect(path)) as database:
        for way, body in database.execute("SELECT direction, body FROM messages ORDER BY id"):
            yield way[0], json.loads(body)


def recorders() -> dict[str, Recorder]:
    """Return the installed tools."""
    found = {
        OWN: Recorder([*MCPSPY, "run", "--record", "{}/session.jsonl"], "session.jsonl", _mcpspy_messages),
    }
    if path := rival("mcp-rec"):
        found["mcp-rec"] = Recorder([path, "record", "-o", "{}/session"], "session", _rec)
    if path := rival("mcphawk"):
        found["mcphawk"] = Recorder(["env", "HOME={}", path, "wrap"], ".mcphawk/mcphawk.db", _hawk)
    if path := rival("mcp-cassette"):
        fastest = ["--no-default-redactions", "--checkpoint-interval", "0"]
        found["mcp-cassette"] = Recorder(
            [path, "record", "--cassette", "{}/session", *fastest], "session", _cassette
        )
    if path := rival("mcp-vcr"):
        found["mcp-vcr"] = Recorder(
            [path, "record", "--no-redact", "--format", "ndjson", "-o", "{}/session.ndjson"],
            "session.ndjson",
            _vcr,
        )
    return found


@dataclass
class Wrapped:
    """One session on stdio, in figures."""

    start: float
    """Seconds from the command to the answered `initialize`."""
    p50: float
    """Seconds of a call, of sequential calls."""
    rate: float
    """Calls per second, of concurrent calls."""
    big: float
    """Seconds of a call with a result of 5 MB."""
    memory: float | None
    """Megabytes in use after all of it."""
    exit: float
    """Seconds from the end of its input to its own."""
    pending: int = 0
    """Requests without a later response in the file, although each was answered."""
    bytes: int = 0
    """Bytes of the file."""


def wrapped(name: str, recorder: Recorder | None, size: Size) -> Wrapped:
    """Run a session and measure it."""
    command = SERVER if recorder is None else [*recorder.command, "--", *SERVER]
    with tempfile.TemporaryDirectory(prefix="mcpspy-bench-") as folder, deadline(SECONDS, name):
        started_at = time.perf_counter()
        flow = Flow(Chain(name, [command]), folder, sockets=False)
        try:
            echo = Echo("text", size.calls)
            pipe = Pipe(flow)
            start = time.perf_counter() - started_at
            p50 = _median(partial(echo.call, pipe), size.calls)
            calls = b"".join(echo.request(number) + b"\n" for number in range(size.pipelined))
            rate = size.pipelined / _seconds(lambda: flow.exchange(calls, size.pipelined))
            big = low([_seconds(lambda: flow.exchange(_BIG, 1)) for _ in range(3)])
            memory = flow.memory()
            leaving = _seconds(flow.finish)
        except BaseException:
            flow.kill()
            raise
        found = Wrapped(start, p50, rate, big, memory and memory[0], leaving)
        if recorder is not None:
            path = flow.folder / recorder.file
            found.pending = _pending(recorder.messages(path))
            found.bytes = path.stat().st_size
    return found


def _seconds(do: Callable[[], object]) -> float:
    started_at = time.perf_counter()
    do()
    return time.perf_counter() - started_at


def _median(call: Callable[[int], object], count: int) -> float:
    return sorted(_seconds(partial(call, number)) for number in range(count))[count // 2]


def _pending(messages: Iterable[Message]) -> int:
    """Return the number of client requests without a later response."""
    waiting: set[object] = set()
    for side, message in messages:
        if not isinstance(message, dict) or "id" not in message:
            continue
        if side == "c" and "method" in message:
            waiting.add(message["id"])
        elif side == "s" and "method" not in message:
            waiting.discard(message["id"])
    return len(waiting)


def stdio(report: Report, size: Size) -> None:
    """Measure one session on pipes through each tool."""
    subjects: dict[str, Recorder | None] = {DIRECT: None, **recorders()}
    samples = alternate(
        {name: partial(wrapped, name, recorder, size) for name, recorder in subjects.items()}, size.rounds
    )
    compare = partial(_compare, report, samples)
    compare("stdio: from the command to `initialize` answered", lambda w: w.start, unit="ms", factor=1e3)
    compare("stdio: a call, p50", lambda w: w.p50, unit="µs", factor=1e6)
    compare(f"stdio: {size.pipelined:,} calls at once", lambda w: w.rate, unit="calls/s", best=high)
    compare("stdio: a result of 5 MB", lambda w: w.big, unit="ms", factor=1e3)
    compare("stdio: memory after that", lambda w: w.memory, unit="MB")
    compare("stdio: from EOF to exit", lambda w: w.exit, unit="ms", factor=1e3)
    recorded = {name: of for name, of in samples.items() if name != DIRECT}
    _compare(
        report, recorded, "stdio: answered calls shown as pending", lambda w: w.pending, unit="", best=max
    )
    _compare(report, recorded, "stdio: the file", lambda w: w.bytes, unit="MB", factor=1e-6)


@contextmanager
def _mcpspy_proxy(upstream: Endpoint, folder: Path) -> Iterator[Endpoint]:
    url = f"http://127.0.0.1:{upstream.port}{upstream.path}"
    command = [*MCPSPY, "http", "--upstream", url, "--listen", ":0", "--record", str(folder / "s.jsonl")]
    with started(command, r"http://127\.0\.0\.1:(\d+)/mcp") as process:
        yield Endpoint(int(process.output), upstream.path)


@contextmanager
def _other_proxy(command: list[str], path: str, folder: Path, upstream: Endpoint) -> Iterator[Endpoint]:
    port = free_port()
    words = {
        "{url}": f"http://127.0.0.1:{upstream.port}{upstream.path}",
        "{origin}": f"http://127.0.0.1:{upstream.port}",
        "{port}": str(port),
        "{}": str(folder),
    }
    for word, value in words.items():
        command = [each.replace(word, value) for each in command]
    with started(["sh", "-c", 'exec "$@" >/dev/null 2>&1', "sh", *command], HOME=str(folder)):
        until_it_listens(port)
        yield Endpoint(port, path)


def http(report: Report, size: Size) -> None:
    """Measure calls over HTTP through each tool that can record them."""
    with ExitStack() as open_ones:
        folder = Path(open_ones.enter_context(tempfile.TemporaryDirectory(prefix="mcpspy-bench-")))
        direct = open_ones.enter_context(sdk_server())
        endpoints = {DIRECT: direct, OWN: open_ones.enter_context(_mcpspy_proxy(direct, folder))}
        commands = {
            "mcphawk": (["proxy", "--target", "{url}", "--port", "{port}"], "/p/server"),
            "mcp-recorder": (
                ["record", "--target", "{origin}", "--port", "{port}", "--output", "{}/r.json"],
                "/mcp",
            ),
            "mcp-cassette": (
                ["record", "--cassette", "{}/c.json", "--url", "{url}", "--port", "{port}",
                 "--no-default-redactions", "--checkpoint-interval", "0"],
                "/mcp",
            ),
        }  # fmt: skip
        for name, (arguments, path) in commands.items():
            if program := rival(name):
                proxy = _other_proxy([program, *arguments], path, folder, direct)
                endpoint = open_ones.enter_context(proxy)
                try:
                    Connection(endpoint).close()
                except RuntimeError as error:
                    reason = str(error).partition("HTTP/1.1 ")[2][:30].partition("\\r")[0]
                    report.add(Row("HTTP", "", f"{name} is skipped: {reason or error}", None))
                    continue
                endpoints[name] = endpoint
        _over_http(report, "HTTP", endpoints, size)


def _over_http(report: Report, what: str, endpoints: Mapping[str, Endpoint], size: Size) -> None:
    echo = Echo("text", size.http_calls)

    def call(endpoint: Endpoint) -> float:
        with closing(Connection(endpoint)) as connection:
            return _median(partial(echo.call, connection), size.http_calls)

    times = alternate({name: partial(call, endpoint) for name, endpoint in endpoints.items()}, size.rounds)
    rates = alternate(
        {name: partial(flood, endpoint, echo, size.http_flood) for name, endpoint in endpoints.items()},
        size.rounds,
    )
    _compare(report, times, f"{what}: a call, p50", lambda seconds: seconds, unit="ms", factor=1e3)
    _compare(report, rates, f"{what}: 64 clients at once", lambda rate: rate, unit="calls/s", best=high)


def mocks(report: Report, size: Size) -> None:
    """Measure the same session, served by each tool from its own recording."""
    serve = {
        OWN: [*MCPSPY, "mock"],
        "mcp-rec": [rival("mcp-rec") or "", "replay"],
        "mcp-cassette": [rival("mcp-cassette") or "", "serve", "--ordering", "none"],
    }
    with tempfile.TemporaryDirectory(prefix="mcpspy-bench-") as recordings:
        chains = {}
        for name, recorder in recorders().items():
            if name in serve:
                folder_of_tool = Path(recordings) / name
                folder_of_tool.mkdir()
                command = [word.replace("{}", str(folder_of_tool)) for word in recorder.command]
                with running(Chain(name, [[*command, "--", *SERVER]]), seconds=SECONDS) as flow:
                    Echo("text", size.calls).results(Pipe(flow))
                chains[name] = Chain(name, [[*serve[name], str(folder_of_tool / recorder.file)]])

        def answer(chain: Chain) -> float:
            # One process per round: one of the tools answers each call only once.
            with running(chain, seconds=SECONDS) as flow:
                return Pipe(flow).flood(Echo("text", size.calls), size.calls)

        rates = alternate({name: partial(answer, chain) for name, chain in chains.items()}, size.rounds)
    _compare(report, rates, "mock on stdio: 64 at once", lambda rate: rate, unit="calls/s", best=high)


T = TypeVar("T")


def _compare(
    report: Report,
    samples: Mapping[str, Sequence[T]],
    figure: str,
    of: Callable[[T], float | None],
    *,
    unit: str,
    factor: float = 1.0,
    best: Callable[[Sequence[float]], float] = low,
) -> None:
    """Add a row: mcpspy, all others, and the ratio to the best of them. The bar is to be first."""
    values: dict[str, float] = {}
    for name, each in samples.items():
        found = [value for sample in each if (value := of(sample)) is not None]
        if found:
            values[name] = best(found) * factor
    own_value = values.pop(OWN, None)
    if own_value is None:
        report.add(Row(figure, "not measured on this system", "", None))
        return
    others = sorted(values.items(), key=lambda item: item[1], reverse=best is high)
    shown = "; ".join(f"{name} {_number(value)}" for name, value in others)
    rivals = [value for name, value in others if name != DIRECT]
    row = partial(Row, figure, f"{_number(own_value)} {unit}".rstrip(), shown)
    if not rivals:
        report.add(row(None))
    elif best is max:  # A count of errors, which should be 0.
        report.add(row(own_value, most=0, unit=""))
    elif best is high:
        report.add(row(own_value / rivals[0], least=1))
    else:
        report.add(row(own_value / rivals[0], most=1))


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 or value == int(value) else f"{value:.3g}"


if __name__ == "__main__":
    sys.exit(
        main(
            "the field",
            __doc__.splitlines()[0],
            full=FULL,
            quick=QUICK,
            figures={"stdio": stdio, "http": http, "mocks": mocks},
            lacks=None if recorders().keys() > {OWN} else "no other tool found: run bench/rivals.sh",
        )
    )
