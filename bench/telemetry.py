"""Telemetry under load, with a collector that is killed and slowed at random moments: what is missing, and what it costs.

Three sessions get the same calls in turn: one with telemetry, two without, whose difference is the noise. Short sessions
with telemetry come and go, and the exporter is killed now and then. At the end, the collector must have every span of
every recording, no span id with two contents, every line of stderr, and the count of every operation.

    .venv/bin/python bench/telemetry.py [--seconds 300] [--protocol http|grpc] [--seed N] [--no-latency]

Exits with 1 if something is missing, differs, or if the calls of the session with telemetry take longer than the noise
explains. Linux only.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

# Not this folder: its `http.py` would shadow the standard library's.
ROOT = Path(__file__).resolve().parent.parent
sys.path[0] = str(ROOT)

from bench.measure import machine, mcpspy_command  # noqa: E402 - the line above must come first.
from mcpspy.analysis.export.otlp import LogData, SessionTelemetry  # noqa: E402
from mcpspy.analysis.export.otlp_spans import SpanData  # noqa: E402
from mcpspy.io.recording.reader import Recording  # noqa: E402

SERVER = """\
import sys
for line in sys.stdin:
    number = line[line.index('"id":') + 5:line.index(',"method"')]
    if int(number) % 50 == 0:
        print("call", number, file=sys.stderr, flush=True)
    print('{"jsonrpc":"2.0","id":%s,"result":{"content":[]}}' % number, flush=True)
"""
CALL = b'{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"echo","arguments":{"text":"%b"}}}\n'
PATIENCE = 120
"""Seconds after the load in which everything has to arrive."""
TOLERANCE = 0.05
"""Part of a call's time that telemetry may take in addition to the noise, since the machine has other work."""


class Client:
    """A client of a server behind mcpspy that waits for each response."""

    def __init__(self, folder: Path, name: str, environment: dict[str, str]) -> None:
        command = [*mcpspy_command(), "run", "--dir", str(folder), "--name", name, "--"]
        self.process = subprocess.Popen(
            [*command, sys.executable, "-uc", SERVER],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=environment,
        )
        self.times: list[float] = []

    def call(self) -> None:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        line = CALL % (len(self.times) + 1, b"x" * 200)
        began = time.perf_counter()
        self.process.stdin.write(line)
        self.process.stdin.flush()
        self.process.stdout.readline()
        self.times.append(time.perf_counter() - began)

    def end(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait(30)


class Collector:
    """A process that stores what it gets before it acknowledges it."""

    def __init__(self, folder: Path) -> None:
        self.file = folder / "received.jsonl"
        self.ports = [_free_port(), _free_port()]
        self.kills = 0
        self._process: subprocess.Popen[bytes] | None = None

    def start(self, pause: float = 0) -> None:
        command = [
            sys.executable,
            "-m",
            "tests.otlp_receiver",
            *map(str, self.ports),
            str(self.file),
            str(pause),
        ]
        self._process = subprocess.Popen(
            command, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )

    def kill(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None
            self.kills += 1

    def received(self) -> list[dict[str, Any]]:
        if not self.file.exists():
            return []
        lines = self.file.read_text(encoding="utf-8").split("\n")
        found = []
        for line in lines:
            with suppress(ValueError):  # It was killed while it wrote, and has not acknowledged the line.
                found.append(json.loads(line))
        return found


def run(folder: Path, seconds: float, protocol: str, chance: random.Random) -> tuple[list[str], list[Client]]:
    """Run the test; return what is wrong, and the clients whose calls were timed."""
    collector, state = Collector(folder), folder / "state"
    off = {**os.environ, "MCPSPY_TELEMETRY": "off"}
    for name in ("STATE", "CONFIG", "DATA"):
        off[f"XDG_{name}_HOME"] = str(folder / name.lower())
    port = collector.ports[protocol == "grpc"]
    on = {**off, "MCPSPY_TELEMETRY": f"http://127.0.0.1:{port}", "OTEL_EXPORTER_OTLP_PROTOCOL": protocol}
    lock = state / "mcpspy" / "telemetry" / "lock"
    exporter_kills = sessions = 0
    with ExitStack() as stack:
        stack.callback(_end, lock)
        stack.callback(collector.kill)
        collector.start()
        clients = [
            Client(folder / where, where, environment)
            for where, environment in (("on", on), ("off", off), ("off2", off))
        ]
        for client in clients:
            stack.callback(client.process.kill)
        until = time.monotonic() + seconds
        next_fault, next_session = time.monotonic() + 1, time.monotonic() + 0.5
        while (now := time.monotonic()) < until:
            for client in chance.sample(clients, len(clients)):
                client.call()
            if now > next_session:
                short = Client(folder / "on", "short", on)
                for _ in range(chance.randrange(40)):
                    short.call()
                short.end()
                sessions, next_session = sessions + 1, now + chance.uniform(0.5, 4)
            if now > next_fault:
                collector.kill()
                if chance.random() < 0.2:
                    exporter_kills += _signal(lock, signal.SIGKILL)
                if chance.random() < 0.7:
                    collector.start(chance.choice([0, 0, 0.2, 1.0]))
                next_fault = now + chance.uniform(seconds / 60, seconds / 12)
            time.sleep(0.002)
        for client in clients:
            client.end()
        collector.kill()
        collector.start()
        last = Client(folder / "on", "last", on)  # Starts the exporter, if it was killed last.
        last.call()
        last.end()
        wrong = _missing(folder / "on", collector)
        received = collector.received()
    spans = [each for each in received if "span" in each]
    ids = {each["span"]: each["all"] for each in spans}
    wrong += [f"span {each['span']} has two contents" for each in spans if ids[each["span"]] != each["all"]]
    print(
        f"{seconds:.0f} s over {protocol}: {len(ids):,} spans of {sessions + 2} sessions, {len(spans) - len(ids):,} of them"
        f" received twice with the same content; {collector.kills} kills of the collector, {exporter_kills} of the exporter"
    )
    return wrong, clients


def _costs(clients: list[Client]) -> list[str]:
    """Print the times of calls; return what is wrong with them."""
    names = ("with telemetry", "without", "without, again")
    medians, tails = [], []
    for name, client in zip(names, clients, strict=True):
        cuts = statistics.quantiles(client.times, n=100)
        medians.append(cuts[49] * 1e6)
        tails.append(cuts[94] * 1e6)
        print(
            f"  {name:15} {len(client.times):7,} calls: median {medians[-1]:6.1f} µs, p95 {tails[-1]:6.1f} µs"
        )
    noise, added = abs(medians[1] - medians[2]), medians[0] - max(medians[1:])
    if added > 2 * noise + TOLERANCE * medians[1]:
        return [f"telemetry adds {added:.1f} µs to a call; the noise is {noise:.1f} µs"]
    return []


def _missing(folder: Path, collector: Collector) -> list[str]:
    """Wait until the collector has everything of the recordings; return what it does not have."""
    spans: dict[str, str] = {}
    logs: set[tuple[str, str]] = set()
    counts: dict[tuple[str, str], int] = {}
    for path in folder.glob("*.jsonl"):
        recording = Recording(path)
        of, telemetry = recording.header.id, SessionTelemetry(recording.header)
        found = [item for entry in recording for item in telemetry.add(entry)]
        for item in [*found, *telemetry.end()]:
            if isinstance(item, SpanData):
                spans[item.id] = of
            elif isinstance(item, LogData):
                logs.add((of, item.text))
        for each in telemetry.metrics():
            key = of, each.metric
            counts[key] = counts.get(key, 0) + sum(each.counts)
    until = time.monotonic() + PATIENCE
    while True:
        received = collector.received()
        there = {each["span"] for each in received if "span" in each}
        missing = [f"span {each} of {of}" for each, of in spans.items() if each not in there]
        missing += [
            f"log {text!r} of {of}"
            for of, text in logs - {(e["of"], e["log"]) for e in received if "log" in e}
        ]
        last = {(each["of"], each["metric"]): each["count"] for each in received if "metric" in each}
        missing += [
            f"{last.get(key, 0)} of {count} {key}" for key, count in counts.items() if last.get(key) != count
        ]
        missing += [f"unexpected span {each}" for each in there - spans.keys()]
        if not missing or time.monotonic() > until:
            return [f"missing: {each}" for each in missing]
        time.sleep(0.5)


def _signal(lock: Path, number: int) -> bool:
    """Send a signal to the exporter; return whether there was one."""
    try:
        os.kill(int(lock.read_text()), number)
    except (OSError, ValueError):
        return False
    return True


def _end(lock: Path) -> None:
    """End the exporter and wait for it, as it writes its state into a folder that is deleted next."""
    until, number = time.monotonic() + 20, int(signal.SIGTERM)
    while _signal(lock, number) and time.monotonic() < until:
        number = 0  # Sends nothing: it only asks whether the process exists.
        time.sleep(0.05)


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seconds", type=float, default=300)
    parser.add_argument("--protocol", choices=("http", "grpc"), default="http")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument(
        "--no-latency", action="store_true", help="do not compare the latency: the machine is busy"
    )
    args = parser.parse_args()
    print(machine())
    with tempfile.TemporaryDirectory(prefix="mcpspy-telemetry-") as folder:
        wrong, clients = run(Path(folder), args.seconds, args.protocol, random.Random(args.seed))
    # On a busy machine a client may have made one call, or none.
    wrong += [] if args.no_latency else _costs(clients)
    for line in wrong[:20]:
        print(f"  wrong: {line}")
    fine = "nothing missing, no span id with two contents" + ("" if args.no_latency else ", no added latency")
    print(f"{len(wrong)} wrong" if wrong else fine)
    return bool(wrong)


if __name__ == "__main__":
    raise SystemExit(main())
