"""Time and memory of `mcpspy stats` for a long session, and of `explain` beside it; memory does not grow with its length.

Owns the figures of docs/stats.md and their bars. The baseline is plain Python
in the same run: reading the file and splitting it into lines, and `json.loads`
of each of them as well.

    .venv/bin/python bench/stats.py [--quick] [--check] [--json FILE]
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from itertools import islice
from pathlib import Path
from typing import NamedTuple

# Not this folder: its `http.py` would shadow the standard library's.
sys.path[0] = str(Path(__file__).resolve().parent.parent)

from bench.measure import Report, Row, alternate, low, main, mcpspy_command  # noqa: E402 - see above.
from bench.sessions import write_long  # noqa: E402

CHUNK = 1 << 18


@dataclass(frozen=True)
class Size:
    """Amounts to measure."""

    rounds: int
    messages: int


FULL = Size(3, 1_000_000)
QUICK = Size(2, 200_000)


class Cost(NamedTuple):
    """Time and memory of a run."""

    seconds: float
    cpu: float
    resident: float
    """Peak megabytes."""


def run(path: Path, *arguments: str, command: str = "stats") -> Cost:
    """Run a command on a session; return its time and memory. `explain` ends with 1, as it finds causes."""
    started_at = time.perf_counter()
    process = subprocess.Popen([*mcpspy_command(), command, str(path), *arguments], stdout=subprocess.DEVNULL)
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode not in ((0, 1) if command == "explain" else (0,)):
        raise RuntimeError(f"mcpspy {command} ended with {process.returncode}")
    return Cost(time.perf_counter() - started_at, used.ru_utime + used.ru_stime, used.ru_maxrss / 1024)


def plain(path: Path) -> tuple[float, float]:
    """Return the CPU seconds for reading and splitting the lines, and for parsing them, in plain Python."""
    started_at = time.process_time()
    count, rest = 0, b""
    with path.open("rb") as file:
        while chunk := file.read(CHUNK):
            lines = (rest + chunk).split(b"\n")
            rest = lines.pop()
            count += len(lines)
    split = time.process_time() - started_at
    with path.open("rb") as file:
        some = list(islice(file, 50_000))
    started_at = time.process_time()
    for line in some:
        json.loads(line)
    return split, split + (time.process_time() - started_at) / len(some) * count


def over_http(path: Path, to: Path) -> None:
    """Write the session as recorded by an HTTP proxy, with the numbers of its exchanges."""
    with path.open("rb") as file, to.open("wb") as out:
        for number, line in enumerate(file):
            out.write(line.replace(b',"msg":', b',"stream":"1","http":%d,"msg":' % number, 1))


def long_session(report: Report, size: Size) -> None:
    """Measure the session, one of its tools, and the same over HTTP; and a tenth of it, for the memory."""
    with tempfile.TemporaryDirectory(prefix="mcpspy-bench-") as folder:
        path, tenth, http = (Path(folder, name) for name in ("long.jsonl", "tenth.jsonl", "http.jsonl"))
        write_long(path, size.messages)
        write_long(tenth, size.messages // 10)
        over_http(path, http)
        subjects: dict[str, Callable[[], tuple[float, ...]]] = {
            "all": partial(run, path),
            "filter": partial(run, path, "-q", "tool:tool_7 >2ms"),
            "http": partial(run, http),
            "tenth": partial(run, tenth),
            "explain": partial(run, path, "--last-good", "none", command="explain"),
            "plain": partial(plain, path),
        }
        found = {
            name: [low(list(column)) for column in zip(*costs, strict=True)]
            for name, costs in alternate(subjects, size.rounds).items()
        }
    split, parsed = found["plain"]
    million = f"{size.messages:,} messages"
    most = 10 * size.messages / 1e6
    for name, figure in (
        ("all", million),
        ("filter", f"{million}, filtered"),
        ("http", f"{million}, over HTTP"),
    ):
        seconds, cpu, _ = found[name]
        report.add(
            Row(
                figure,
                f"{seconds:.1f} s, CPU {cpu:.1f} s",
                f"reading and splitting {split:.2f} s",
                seconds,
                most=most if name == "all" else None,
                unit="s",
            ),
            Row(f"{figure}: CPU", f"{cpu:.1f} s", f"json.loads of each line {parsed:.1f} s", cpu / parsed),
        )
    _, cpu, resident = found["explain"]
    about = f"{million}, explain"
    report.add(
        Row(f"{about}: CPU", f"{cpu:.1f} s", f"stats {found['all'][1]:.1f} s", cpu / found["all"][1]),
        Row(
            f"{about}: memory",
            f"{resident:.0f} MB",
            f"stats {found['all'][2]:.0f} MB",
            resident / found["all"][2],
        ),
    )
    more = found["all"][2] - found["tenth"][2]
    report.add(
        Row(
            f"resident memory, {million}",
            f"{found['all'][2]:.0f} MB",
            f"a tenth of them {found['tenth'][2]:.0f} MB",
            more,
            most=10,
            unit="MB more",
        )
    )


if __name__ == "__main__":
    about = "Time and memory of `mcpspy stats` for a long session."
    lacks = None if hasattr(os, "wait4") else "this needs POSIX: the peak memory of a process"
    figures = {"long-session": long_session}
    sys.exit(main("stats", about, full=FULL, quick=QUICK, figures=figures, lacks=lacks))
