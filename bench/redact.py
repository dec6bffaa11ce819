"""Overhead of redaction: forwarding with and without it, and adversarial inputs.

Owns the figures of docs/redact.md and their bars. Rates are bytes per CPU second
of mcpspy itself, since other programs on the machine only ever add to the
elapsed time.

    .venv/bin/python bench/redact.py [--quick] [--check] [--json FILE]
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

# Not this folder: its `http.py` would shadow the standard library's.
sys.path[0] = str(Path(__file__).resolve().parent.parent)

from bench.measure import (  # noqa: E402 - the line above must come first.
    Chain,
    Report,
    Row,
    alternate,
    high,
    low,
    main,
    mcpspy_command,
    pinned,
    running,
)
from mcpspy.core.recording.decode import Frame  # noqa: E402
from mcpspy.core.redact.redactor import Redactor  # noqa: E402
from mcpspy.io.recording.reader import Recording  # noqa: E402

ROOT = Path(__file__).resolve().parent.parent
MCPSPY = mcpspy_command()
KEY = bytes(32)
WAYS = {"redacting": [], "not redacting": ["--no-redact"]}


@dataclass(frozen=True)
class Size:
    """Amounts to measure."""

    rounds: int
    megabytes: int
    pings: int
    starts: int
    hostile: int


FULL = Size(9, 128, 4000, 25, 1 << 16)
QUICK = Size(3, 32, 1000, 7, 1 << 14)


def _wrapped(way: str, *server: str) -> Chain:
    return Chain(way, [[*MCPSPY, "run", "--record", "{}/session.jsonl", *WAYS[way], "--", *server]])


def _recorded() -> bytes:
    """Return every message of the recordings."""
    messages = [
        entry.data
        for path in sorted((ROOT / "recordings").glob("*.jsonl"))
        for entry in Recording(path)
        if isinstance(entry, Frame)
    ]
    return b"\n".join(messages) + b"\n"


def _small() -> bytes:
    line = b'{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"%b"}}\n'
    return line % (b"x" * (300 - len(line) + 2))


def _large() -> bytes:
    """Return one line of a megabyte: a tool result with many rows."""
    row = {"id": 17, "name": "Ada Lovelace", "mail": "ada at example.com", "tags": ["a", "b"], "score": 0.5}
    return (
        json.dumps(
            {"jsonrpc": "2.0", "id": 1, "result": {"structuredContent": {"rows": [row] * 10_000}}}
        ).encode()
        + b"\n"
    )


def throughput(report: Report, size: Size) -> None:
    """Measure floods of the server with different content."""
    for what, data, least in (
        ("300 B lines", _small(), 0.5),
        ("the lines of recordings/", _recorded(), 0.5),
        ("1 MB lines", _large(), 0.5),
        (
            "300 B lines, each with a secret",
            _small().replace(b"xxxxxxxxxxxxxxxxxxxxxxxx", b'","password":"swordfish', 1),
            None,
        ),
    ):
        flood = data * ((size.megabytes << 20) // len(data) // (1 if least else 32) + 1)
        with tempfile.NamedTemporaryFile(prefix="mcpspy-bench-") as file:
            file.write(flood)
            file.flush()
            rates = alternate({way: partial(_rate, way, file.name, flood) for way in WAYS}, size.rounds)
        rate = {way: high(of) / 1e6 for way, of in rates.items()}
        ratio = rate["redacting"] / rate["not redacting"]
        base = f"without {rate['not redacting']:.0f} MB/s"
        report.add(Row(f"throughput, {what}", f"{rate['redacting']:.0f} MB/s", base, ratio, least=least))


def _rate(way: str, path: str, flood: bytes) -> float:
    """Return bytes per CPU second of mcpspy."""
    with running(_wrapped(way, "sh", "-c", f"cat {path}; read x"), seconds=120) as flow:
        before = flow.cpu() or 0.0
        flow.rate(len(flood))
        spent = (flow.cpu() or 0.0) - before
        recorded = (flow.folder / "session.jsonl").read_bytes().count(b'"from":"server"')
        if recorded < flood.count(b"\n"):
            raise RuntimeError(f"{way}: {recorded} lines recorded; {flow.words()}")
        os.write(flow.write, b"\n")
    return len(flood) / spent


def round_trip(report: Report, size: Size) -> None:
    """Measure round trips of 200 bytes, one at a time."""
    ping = _small()[:100].partition(b'"data"')[0] + b'"data":"%b"}}\n' % (b"x" * 100)
    with pinned():
        found = alternate({way: partial(_trips, way, ping, size.pings) for way in WAYS}, size.rounds)
    cpu = {way: low(of) for way, of in found.items()}
    ratio = cpu["redacting"] / cpu["not redacting"]
    redacted, base = (f"{cpu[way]:.1f} µs" for way in WAYS)
    report.add(Row("round trip 200 B, CPU", redacted, f"without {base}", ratio, most=1.3))


def _trips(way: str, ping: bytes, count: int) -> float:
    """Return the CPU microseconds of mcpspy per round trip."""
    with running(_wrapped(way, "cat")) as flow:
        before = 0.0
        for number in range(count + 100):
            if number == 100:
                before = flow.cpu() or 0.0
            os.write(flow.write, ping)
            missing = len(ping)
            while missing:
                missing -= len(os.read(flow.read, 65536))
        return ((flow.cpu() or 0.0) - before) / count * 1e6


def start(report: Report, size: Size) -> None:
    """Measure the time from exec to the first forwarded byte."""
    for way in WAYS:
        _first_byte(way)
    found = alternate({way: partial(_first_byte, way) for way in WAYS}, size.starts)
    ms = {way: low(of) * 1000 for way, of in found.items()}
    ratio = ms["redacting"] / ms["not redacting"]
    report.add(
        Row(
            "exec → first byte",
            f"{ms['redacting']:.1f} ms",
            f"{ms['not redacting']:.1f} ms",
            ratio,
            most=1.25,
        )
    )


def _first_byte(way: str) -> float:
    started_at = time.perf_counter()
    with running(_wrapped(way, "cat")) as flow:
        os.write(flow.write, b'{"id":1}\n')
        os.read(flow.read, 65536)
        return time.perf_counter() - started_at


HOSTILE: dict[str, Callable[[int], bytes]] = {
    "names of secrets": lambda n: b'{"a":"%b"}' % (b"password" * (n // 8)),
    "assignments": lambda n: b'{"a":"%b"}' % (b"password=" * (n // 9)),
    "open quotes": lambda n: b'{oops %b}' % (b"password='" * (n // 10)),
    "keys of secrets": lambda n: b"{%b}" % b",".join([b'"password":""'] * (n // 14)),
    "beginnings of tokens": lambda n: b'{"a":"%b"}' % (b"ghp_" * (n // 4)),
    "beginnings of keys": lambda n: b'{"a":"%b"}' % (b"sk-a" * (n // 4)),
    "dots of JWTs": lambda n: b'{"a":"%b"}' % (b"eyJaaaaaaaaa.eyJ" * (n // 16)),
    "dots of JWTs in one run": lambda n: b'{"a":"%b.eyJ"}' % (b"a" * n),
    "private keys that never end": lambda n: b'{"a":"%b"}' % (b"-----BEGIN RSA PRIVATE KEY " * (n // 27)),
    "at signs": lambda n: b'{"a":"%b"}' % (b"@" * n),
    "URLs with no password": lambda n: b'{"a":"%b"}' % (b"//a@b" * (n // 5)),
    "bearers of nothing": lambda n: b'{"a":"%b"}' % (b"bearer " * (n // 7)),
    "logins of nothing": lambda n: b'{"a":"%b"}' % (b"basic a" * (n // 7)),
    "escaped letters": lambda n: b'{"a":"%b"}' % (b"\\u0061" * (n // 6)),
    "backslashes": lambda n: b'{"password":"%b"}' % (b"\\\\" * (n // 2)),
    "an open string": lambda n: b'{"password":"%b}' % (b"\\\"" * (n // 2)),
    "brackets": lambda n: b'{"password":%b%b}' % (b"[" * (n // 2), b"]" * (n // 2)),
    "strings in strings": lambda n: b'{"a":"%b"}' % (b'[\\"password\\"],' * (n // 15)),
    "names and blanks": lambda n: b'{"a":"%b"}' % (b"password      " * (n // 14)),
    "names of pairs": lambda n: b'{"a":"%b"}' % (b"name: token value " * (n // 18)),
    "elements": lambda n: b'{"a":"%b"}' % (b"<password a" * (n // 11)),
    "rows of a table": lambda n: b'{"a":"%b"}' % (b"|token|token|\\n|---|---|\\n" * (n // 27)),
    "a wide table": lambda n: b'{"a":"%b|\\n|%b\\n%b"}' % (b"|token" * 80, b"--|" * 80, b"|a1b2c3d4|\\n" * (n // 12)),
    "queries": lambda n: b'{"a":"%b"}' % (b"?sig=&code=" * (n // 11)),
    "logins of programs": lambda n: b'{"a":"%b"}' % (b"curl -u a " * (n // 10)),
    "programs": lambda n: b'{"a":"%b"}' % (b"sshpass -x " * (n // 11)),
    "logins of .netrc": lambda n: b'{"a":"%b"}' % (b"login a password " * (n // 17)),
    "lines of .pgpass": lambda n: b'{"a":"%b"}' % (b"a:5432:a:" * (n // 9)),
    "SQL": lambda n: b'{"a":"%b"}' % (b"identified with a " * (n // 18)),
    "types of web keys": lambda n: b'{"a":"%b"}' % (b'{\\"kty\\":' * (n // 9)),
    "web keys": lambda n: b"{%b}" % b",".join([b'"kty":"x","d":"abcdefgh"'] * (n // 25)),
    "passwords of databases": lambda n: b'{"a":"%b"}' % (b"redis://a:b/c@" * (n // 14)),
    "secrets at every depth": lambda n: b'{"password":"x1","a":' * (n // 21) + b"1" + b"}" * (n // 21),
    "secrets": lambda n: b"{%b}" % b",".join([b'"password":"x1"'] * (n // 16)),
}  # fmt: skip
"""Messages of n bytes, each a worst case for one part of the rules."""


def hostile(report: Report, size: Size) -> None:
    """Check that no input takes more than linear time: four times as long is four times as slow, not sixteen."""
    for what, made in HOSTILE.items():
        lines = {
            n: b'{"t":0.1,"from":"server","msg":%b}\n' % made(n) for n in (size.hostile, 4 * size.hostile)
        }
        found = alternate({str(n): partial(_seconds, line) for n, line in lines.items()}, 3)
        short, long = (min(of) for of in found.values())
        rate = f"{4 * size.hostile / long / 1e6:.1f} MB/s"
        report.add(Row(f"hostile: {what}", rate, "four times as long", long / short, most=8))


def _seconds(line: bytes) -> float:
    started_at = time.process_time()
    Redactor(KEY).lines(line)
    return time.process_time() - started_at


FIGURES: dict[str, Callable[[Report, Size], None]] = {
    "throughput": throughput,
    "round-trip": round_trip,
    "start": start,
    "hostile": hostile,
}


if __name__ == "__main__":
    lacks = None if Path("/proc/self/schedstat").exists() else "this needs Linux: the CPU time of a process"
    about = "Overhead of redaction."
    sys.exit(main("redaction", about, full=FULL, quick=QUICK, figures=FIGURES, lacks=lacks))
