"""Overhead of `mcpspy run`, compared with `tee FILE | server | tee FILE`.

Owns the figures of docs/benchmarks.md and their bars. tee is the baseline because
it does the minimum of a recording proxy, in C; the asyncio proxy in this folder
is the simple alternative in Python. tee does not search for secrets: so mcpspy is
measured with its default redaction, and without it.

    .venv/bin/python bench/stdio.py [--quick] [--check] [--json FILE]
"""

from __future__ import annotations

import importlib.util
import json
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from pathlib import Path
from statistics import median

# Not this folder: its `http.py` would shadow the standard library's.
sys.path[0] = str(Path(__file__).resolve().parent.parent)

from bench.measure import (  # noqa: E402 - the line above must come first.
    Chain,
    Flow,
    Report,
    Row,
    alternate,
    high,
    low,
    main,
    mcpspy_command,
    pinned,
    running,
    spawn,
)

HERE = Path(__file__).resolve().parent
MCPSPY = mcpspy_command()
DEFAULT, BARE = "redacting as by default", "--no-redact"
SEARCH = 1.3
"""Maximum ratio of the time with the search for secrets to that without: the bar of `redact.py`."""
WAYS = {DEFAULT: SEARCH, BARE: 1.0}
"""Mode of redaction → the factor that applies to its bar."""
PING = b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","arguments":{"text":"%b"}}}\n'
PING = PING % (b"x" * (200 - len(PING) + 2))


@dataclass(frozen=True)
class Size:
    """Amounts to measure."""

    rounds: int
    pings: int
    lines: int
    naive_lines: int
    slow_rounds: int
    megabytes: int
    starts: int
    calls: int
    fold: int


FULL = Size(25, 5000, 200_000, 20_000, 4, 128, 40, 5_000, 100_000)
QUICK = Size(7, 3000, 100_000, 5_000, 2, 64, 15, 5_000, 20_000)


def direct(*server: str) -> Chain:
    """Return the server alone."""
    return Chain("direct", [server], 0)


def tee(*server: str) -> Chain:
    """Return the server between two tees."""
    return Chain("tee", [["tee", "{}/client"], server, ["tee", "{}/server"]], 1)


def mcpspy(*server: str, way: str = DEFAULT) -> Chain:
    """Return the server under mcpspy."""
    how = ["--no-redact"] if way == BARE else []
    return Chain(f"mcpspy, {way}", [[*MCPSPY, "run", "--record", "{}/session.jsonl", *how, "--", *server]])


def unchecked(*server: str) -> Chain:
    """Return the server under mcpspy without the check for strict JSON."""
    script = [sys.executable, "-P", str(HERE / "unchecked.py"), "run", "--record", "{}/session.jsonl"]
    return Chain("mcpspy, unchecked", [[*script, "--", *server]])


def checked(*server: str) -> Chain:
    """Return the server under mcpspy, started like `unchecked`."""
    script = [sys.executable, "-P", "-m", "mcpspy", "run", "--record", "{}/session.jsonl"]
    return Chain("mcpspy", [[*script, "--", *server]])


def naive(way: str, *server: str) -> Chain:
    """Return the server under the asyncio proxy."""
    script = [sys.executable, "-P", str(HERE / "asyncio_proxy.py")]
    return Chain(f"asyncio + {way}", [[*script, way, "{}/session.jsonl", *server]])


def round_trips(report: Report, size: Size) -> None:
    """Figures 1, 4: round trips of 200 bytes, one at a time, all on one CPU."""
    chains = {
        "direct": direct("cat"),
        "tee": tee("cat"),
        **{way: mcpspy("cat", way=way) for way in WAYS},
    }
    with pinned():
        pipes = alternate(
            {name: partial(_ping, chain, size.pings) for name, chain in chains.items()}, size.rounds
        )
        sockets = alternate(
            {name: partial(_ping, chain, size.pings, sockets=True) for name, chain in chains.items()},
            max(3, size.rounds // 2),
        )
    for way, allowed in WAYS.items():
        report.add(
            _added(f"round trip 200 B, pipes: added p50, {way}", pipes, way, most=round(1.2 * allowed, 2)),
            _added(f"round trip 200 B, sockets (Node hosts): added p50, {way}", sockets, way),
            _slowest(f"round trip 200 B, pipes: p99, {way}", pipes, way),
            _computed(
                f"CPU per 100,000 messages, server left out, {way}", pipes, way, most=round(1.3 * allowed, 2)
            ),
        )


@dataclass(frozen=True)
class Pings:
    """The round trips of one process, in nanoseconds, and the CPU seconds the proxy spent on them."""

    times: list[int]
    cpu: float | None

    def percentile(self, percent: int) -> float:
        """Return a percentile, in microseconds."""
        return self.times[len(self.times) * percent // 100] / 1000


def _ping(chain: Chain, count: int, *, sockets: bool = False) -> Pings:
    with running(chain, sockets=sockets) as flow:
        _round_trips(flow, 300)
        before = flow.cpu()
        times = _round_trips(flow, count)
        after = flow.cpu()
        cpu = None if before is None or after is None else after - before
    return Pings(sorted(times), cpu)


def _round_trips(flow: Flow, count: int) -> list[int]:
    clock, write, read = time.perf_counter_ns, os.write, os.read
    times = []
    for _ in range(count):
        start = clock()
        write(flow.write, PING)
        missing = len(PING)
        while missing:
            got = len(read(flow.read, 65536))
            if not got:
                raise RuntimeError(f"the echo ended early; {flow.words()}")
            missing -= got
        times.append(clock() - start)
    return times


def _added(figure: str, samples: dict[str, list[Pings]], way: str, most: float | None = None) -> Row:
    p50 = {each: low([sample.percentile(50) for sample in of]) for each, of in samples.items()}
    mcpspy_adds, tee_adds = p50[way] - p50["direct"], p50["tee"] - p50["direct"]
    return Row(
        figure,
        f"{p50[way]:.1f} µs, adds {mcpspy_adds:.1f}",
        f"tee {p50['tee']:.1f} µs, adds {tee_adds:.1f}; direct {p50['direct']:.1f}",
        mcpspy_adds / tee_adds,
        most=most,
    )


def _slowest(figure: str, samples: dict[str, list[Pings]], way: str) -> Row:
    p99 = {each: low([sample.percentile(99) for sample in samples[each]]) for each in ("tee", way)}
    return Row(figure, f"{p99[way]:.0f} µs", f"tee {p99['tee']:.0f} µs", p99[way] / p99["tee"])


def _computed(figure: str, samples: dict[str, list[Pings]], way: str, most: float) -> Row:
    cpu = {
        each: [
            sample.cpu / (2 * len(sample.times)) * 1e5 for sample in samples[each] if sample.cpu is not None
        ]
        for each in ("tee", way)
    }
    if not cpu[way]:
        return Row(figure, "not measured on this system", "", None, most=most)
    per = {each: low(of) for each, of in cpu.items()}
    return Row(figure, f"{per[way]:.2f} s", f"tee {per['tee']:.2f} s", per[way] / per["tee"], most=most)


def throughput(report: Report, size: Size) -> None:
    """Figures 2, 3: floods of small and of large lines, in each direction."""
    naives = [way for way in ("aiofiles", "plain") if way == "plain" or importlib.util.find_spec(way)]
    chains: dict[str, Build] = {
        "direct": direct,
        "tee": tee,
        **{way: partial(mcpspy, way=way) for way in WAYS},
    }
    for whither, measure in (("server→client", _from_server), ("client→server", _to_server)):
        figure = f"throughput 300 B lines, {whither}"
        rate = _rates(measure, chains, _lines(300, size.lines), size)
        slow = _rates(measure, {w: partial(naive, w) for w in naives}, _lines(300, size.naive_lines), size)
        shown = {
            name: f"{value / 300e3:.{0 if value > 3e7 else 1}f} k lines/s"
            for name, value in (rate | slow).items()
        }
        base = f"tee {shown['tee']}; direct {shown['direct']}"
        for way in WAYS:
            report.add(Row(f"{figure}, {way}", shown[way], base, rate[way] / rate["tee"], least=0.5))
        for name, least in (("aiofiles", 50.0), ("plain", None)):
            if name in slow:
                base = f"asyncio, json, {name.replace('plain', 'plain file')} {shown[name]}"
                ratio = rate[DEFAULT] / slow[name]
                report.add(Row(f"{figure}, {DEFAULT}", shown[DEFAULT], base, ratio, least=least))
    for whither, measure in (("server→client", _from_server), ("client→server", _to_server)):
        rate = _rates(measure, chains, _lines(1 << 20, size.megabytes), size)
        shown = {name: f"{value / 1e6:.0f} MB/s" for name, value in rate.items()}
        base = f"tee {shown['tee']}; direct {shown['direct']}"
        for way, allowed in WAYS.items():
            figure = f"throughput 1 MB lines, {whither}, {way}"
            report.add(Row(figure, shown[way], base, rate[way] / rate["tee"], least=round(0.7 / allowed, 2)))


Build = Callable[..., Chain]


def _rates(
    measure: Callable[[Build, bytes], float], chains: dict[str, Build], data: bytes, size: Size
) -> dict[str, float]:
    """Return the bytes per second of each chain."""
    rounds = size.slow_rounds if "plain" in chains else max(3, size.rounds // 2)
    rates = alternate({name: partial(measure, chain, data) for name, chain in chains.items()}, rounds)
    return {name: high(of) for name, of in rates.items()}


def _lines(length: int, count: int) -> bytes:
    line = b'{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"%b"}}\n'
    return line % (b"x" * (length - len(line) + 2)) * count


def _from_server(chain: Build, data: bytes) -> float:
    with tempfile.NamedTemporaryFile(prefix="mcpspy-bench-") as file:
        file.write(data)
        file.flush()
        with running(chain("cat", file.name)) as flow:
            rate = flow.rate(len(data))
            flow.expect_recorded(data.count(b"\n"))
    return rate


def _to_server(chain: Build, data: bytes) -> float:
    with running(chain("sh", "-c", "echo 1; cat >/dev/null; echo 2")) as flow:
        flow.line()
        started_at = time.perf_counter()
        flow.send(data)
        flow.end()
        flow.line()
        rate = len(data) / (time.perf_counter() - started_at)
        flow.expect_recorded(data.count(b"\n"))
    return rate


def validation(report: Report, size: Size) -> None:
    """Figure 9: the price of the check that each message is strict JSON, in one process in turns with and without it.

    Each turn is compared with the next one, and the median of all pairs counts. The ratio is of the CPU time of
    mcpspy. The time on the clock is shown beside it: other processes of the chain may be slower than mcpspy.
    """
    for way in WAYS:
        bar = way == DEFAULT
        with pinned():
            turns = [_pings_in_turns(way, size.pings) for _ in range(size.rounds)]
        cpu, time_ = ([2e6 * found for found in _added_per_chunk(turns, column)] for column in (CPU, TIME))
        base = f"unchecked {cpu[0]:.1f} µs; adds {time_[1]:.2f} µs to the time"
        name, shown = f"check: CPU of a round trip 200 B, {way}", f"{cpu[0] + cpu[1]:.1f} µs"
        report.add(Row(name, shown, base, cpu[1], most=0.4 if bar else None, unit="µs"))
        floods: dict[str, tuple[bytes, float | None]] = {
            "300 B lines": (_lines(300, size.lines), 0.93),
            "1 MB lines": (_lines(1 << 20, size.megabytes), 0.93),
        }
        if way == DEFAULT:
            floods |= {
                "300 B lines, results": (_results(size.lines), None),
                "1 MB lines, a source file": (_file(size.megabytes), None),
                "1 MB lines, many members": (_members(size.megabytes), None),
            }
        for figure, (data, least) in floods.items():
            chunks = 16 if data.find(b"\n") < CHUNK else 64
            turns = [_flood_in_turns(way, data, chunks) for _ in range(max(3, size.rounds // 3))]
            ratio, rate = _ratio(turns, CPU)
            base = f"unchecked {rate / 1e6:.0f} MB; time {_ratio(turns, TIME)[0]:.2f} x"
            shown = f"{rate * ratio / 1e6:.0f} MB per CPU s"
            report.add(Row(f"check: {figure}, {way}", shown, base, ratio, least=least if bar else None))
    ways = {"checked": checked, "unchecked": unchecked}
    starts = alternate({name: partial(_first_byte, way("cat")) for name, way in ways.items()}, size.starts)
    ms = {name: low(samples) * 1000 for name, samples in starts.items()}
    ratio = ms["checked"] / ms["unchecked"]
    base = f"unchecked {ms['unchecked']:.1f} ms"
    report.add(Row("check: exec → first byte", f"{ms['checked']:.1f} ms", base, ratio, most=1.05))


Turns = list[list[float]]
"""The turns of one process, as `unchecked.py` writes them."""

CHECKED, CHUNKS, BYTES, CPU, TIME = range(5)
"""Columns of a turn."""

CHUNK = 65536
"""Bytes that mcpspy reads at once."""


def _in_turns(chunks: int, way: str, *server: str) -> Chain:
    how = ["--no-redact"] if way == BARE else []
    script = [sys.executable, "-P", str(HERE / "unchecked.py"), str(chunks), "{}/turns.json", "run"]
    return Chain("mcpspy in turns", [[*script, "--record", "{}/session.jsonl", *how, "--", *server]])


def _pings_in_turns(way: str, count: int) -> Turns:
    """Return turns of 100 round trips, which are 200 chunks."""
    with tempfile.TemporaryDirectory(prefix="mcpspy-bench-") as folder:
        with running(_in_turns(200, way, "cat"), folder=folder) as flow:
            _round_trips(flow, 1)
            time.sleep(QUIET)
            _round_trips(flow, count)
        return _turns(folder)


def _flood_in_turns(way: str, data: bytes, chunks: int) -> Turns:
    with tempfile.TemporaryDirectory(prefix="mcpspy-bench-") as folder:
        path = Path(folder, "data")
        path.write_bytes(data)
        server = ("sh", "-c", f"sleep {QUIET}; exec cat {path}")
        with running(_in_turns(chunks, way, *server), folder=folder) as flow:
            flow.rate(len(data))
            flow.expect_recorded(data.count(b"\n"))
        return _turns(folder)


QUIET = 0.3
"""Seconds without traffic in which mcpspy imports modules."""


def _turns(folder: str) -> Turns:
    """Return the turns without the first two, in which messages were read without msgspec."""
    turns: Turns = json.loads(Path(folder, "turns.json").read_text(encoding="utf-8"))
    return turns[2:]


def _pairs(turns: list[Turns], column: int, per: int) -> Iterator[tuple[float, float]]:
    """Yield the value of `column` per `per` of neighbouring turns, checked and unchecked."""
    for of_process in turns:
        for turn, following in pairwise(of_process):
            on, off = (turn, following) if turn[CHECKED] else (following, turn)
            yield on[column] / on[per], off[column] / off[per]


def _added_per_chunk(turns: list[Turns], column: int) -> tuple[float, float]:
    """Return the median of unchecked seconds per chunk, and the median of what the check adds."""
    pairs = list(_pairs(turns, column, CHUNKS))
    return median(off for _, off in pairs), median(on - off for on, off in pairs)


def _ratio(turns: list[Turns], column: int) -> tuple[float, float]:
    """Return the median ratio of checked to unchecked throughput, and the median of unchecked bytes per second."""
    pairs = list(_pairs(turns, column, BYTES))
    return median(off / on for on, off in pairs), median(1 / off for _, off in pairs)


def _results(count: int) -> bytes:
    line = b'{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"%b"}]}}\n'
    return line % (b"x" * (300 - len(line) + 2)) * count


def _file(megabytes: int) -> bytes:
    """Return results that are the content of a file: with escapes, and brackets in the string."""
    text = b'def f(x):\\n    return {\\"x\\": [x, {}], \\"y\\": x or []}  # in C:\\\\code\\n'
    line = b'{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"%b"}]}}\n'
    return line % (text * ((1 << 20) // len(text))) * megabytes


def _members(megabytes: int) -> bytes:
    item = b'{"name":"x","value":12345,"tags":["a","b"],"ok":true}'
    line = b'{"jsonrpc":"2.0","id":1,"result":{"content":[%b]}}\n' % b",".join(
        [item] * ((1 << 20) // len(item))
    )
    return line * megabytes


def start(report: Report, size: Size) -> None:
    """Figure 5: time from exec to the first forwarded byte."""
    script = mcpspy("cat")
    module = Chain("module", [[sys.executable, "-m", "mcpspy", *script.stages[0][len(MCPSPY) :]]])
    for chain in (script, module):
        _first_byte(chain)  # Write the bytecode, if it does not exist yet.
    found = alternate(
        {
            "python": _bare_python,
            "direct": lambda: _first_byte(direct("cat")),
            "script": lambda: _first_byte(script),
            "module": lambda: _first_byte(module),
        },
        size.starts,
    )
    ms = {name: low(samples) * 1000 for name, samples in found.items()}
    base = f"python -I -c pass {ms['python']:.1f} ms; direct {ms['direct']:.1f}"
    report.add(
        Row(
            "exec → first byte, console script",
            f"{ms['script']:.1f} ms",
            base,
            ms["script"] / ms["python"],
            most=2.5,
        ),
        Row(
            "exec → first byte, python -m mcpspy", f"{ms['module']:.1f} ms", base, ms["module"] / ms["python"]
        ),
    )


def _bare_python() -> float:
    with tempfile.TemporaryDirectory(prefix="mcpspy-bench-") as folder:
        started_at = time.perf_counter()
        pid = spawn([sys.executable, "-I", "-c", "pass"], 0, 1, folder)
        os.waitpid(pid, 0)
        return time.perf_counter() - started_at


def _first_byte(chain: Chain) -> float:
    started_at = time.perf_counter()
    with running(chain) as flow:
        flow.send(PING)
        os.read(flow.read, 65536)
        return time.perf_counter() - started_at


def memory(report: Report, _size: Size) -> None:
    """Figure 6: resident memory after 10,000 messages."""
    with running(mcpspy("cat")) as flow:
        _round_trips(flow, 5000)
        found = flow.memory()
    idle = "import os; os.write(1, b'x'); os.read(0, 1)"
    with running(Chain("bare python", [[sys.executable, "-I", "-c", idle]])) as flow:
        os.read(flow.read, 1)
        bare = flow.memory()
    if found is None or bare is None:
        report.add(
            Row("memory after 10,000 messages", "not measured on this system", "", None, most=18, unit="MB")
        )
        return
    for kind, at in (("resident", 0), ("proportional", 1)):
        figure = f"{kind} memory after 10,000 messages"
        report.add(
            Row(
                figure, f"{found[at]:.1f} MB", f"idle python {bare[at]:.1f} MB", found[at], most=18, unit="MB"
            )
        )


def pairing(report: Report, size: Size) -> None:
    """Figure 7: every request has a response, and both are in the recording."""
    requests = [
        b'{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"echo","arguments":{"n":%d}}}\n'
        % (n, n)
        for n in range(size.calls)
    ]
    with running(mcpspy(sys.executable, "-I", str(HERE / "echo_server.py"))) as flow:
        flow.exchange(b"".join(requests), size.calls)
        recorded = (flow.folder / "session.jsonl").read_bytes().splitlines()[1:]
    pending: set[int] = set()
    for line in recorded:
        entry = json.loads(line)
        if entry.get("from") == "client":
            pending.add(entry["msg"]["id"])
        elif entry.get("from") == "server":
            pending.remove(entry["msg"]["id"])
    frames = sum(b'"msg":' in line for line in recorded)
    report.add(
        Row(
            f"{size.calls:,} pipelined calls: pending in the recording",
            f"{frames:,} messages recorded",
            f"{2 * size.calls:,} sent",
            2 * size.calls - frames + len(pending),
            most=0,
            unit="pending",
        )
    )


def fold(report: Report, size: Size) -> None:
    """Figure 8: reading a recording into a Session."""
    figure = f"fold of {size.fold:,} recorded messages"
    from mcpspy.core.session.session import Session
    from mcpspy.io.recording.reader import Recording

    with tempfile.TemporaryDirectory(prefix="mcpspy-bench-") as folder:
        path = os.path.join(folder, "session.jsonl")
        _write_recording(path, size.fold)

        def read() -> float:
            started_at = time.perf_counter()
            session = Session()
            for entry in Recording(path):
                session.add(entry)
            return time.perf_counter() - started_at

        def parse() -> float:
            started_at = time.perf_counter()
            with open(path, "rb") as file:
                for line in file:
                    json.loads(line)
            return time.perf_counter() - started_at

        seconds = {name: low(found) for name, found in alternate({"mcpspy": read, "json": parse}, 3).items()}
    shown = {name: f"{value:.2f} s" for name, value in seconds.items()}
    report.add(
        Row(
            figure,
            shown["mcpspy"],
            f"json.loads of each line {shown['json']}",
            seconds["mcpspy"] / seconds["json"],
        )
    )


def _write_recording(path: str, messages: int) -> None:
    """Write the recording that `mcpspy run` would write: half requests, half results."""
    call = b'{"t":%.6f,"from":"client","msg":{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"echo","arguments":{"text":"%b"}}}}\n'
    result = b'{"t":%.6f,"from":"server","msg":{"jsonrpc":"2.0","id":%d,"result":{"content":[{"type":"text","text":"%b"}]}}}\n'
    text = b"x" * 150
    with open(path, "wb") as file:
        file.write(
            b'{"mcpspy":1,"id":"0badcafe","started":"2026-11-21T08:00:00.000Z","transport":"stdio",'
            b'"command":["server"],"cwd":"/","name":"bench","pid":1}\n'
        )
        file.writelines(
            call % (number / 1e4, number, text) + result % (number / 1e4 + 5e-5, number, text)
            for number in range(messages // 2)
        )


FIGURES: dict[str, Callable[[Report, Size], None]] = {
    "round-trips": round_trips,
    "throughput": throughput,
    "validation": validation,
    "start": start,
    "memory": memory,
    "pairing": pairing,
    "fold": fold,
}


if __name__ == "__main__":
    lacks = None if hasattr(os, "posix_spawnp") else "this needs POSIX: tee, cat, pipes"
    about = "Overhead of `mcpspy run`, compared with tee."
    sys.exit(main("mcpspy run", about, full=FULL, quick=QUICK, figures=FIGURES, lacks=lacks))
