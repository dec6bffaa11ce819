"""CPU time of `mcpspy lake add` and `mcpspy query`.

Owns four bars: a message costs the same in a folder ten times as large, a run with nothing new costs next to nothing,
two processes are faster than one (on two idle cores), and memory does not grow with the number of sessions. A query is
compared with the export of the same exchanges.

    .venv/bin/python bench/lake.py [--quick] [--check] [--json FILE]
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

# Not this folder: its `http.py` would shadow the standard library's.
sys.path[0] = str(Path(__file__).resolve().parent.parent)

from bench.many_sessions import write_sessions  # noqa: E402 - the line above must come first.
from bench.measure import Report, Row, main, mcpspy_command  # noqa: E402

GROWTH = 1.25
"""Maximum ratio of the cost of a message, and of memory, to those in a tenth of the sessions."""

NOTHING_NEW = 0.02
"""Maximum share of the first run that a run with nothing new takes."""

SPEEDUP = 1.7
"""Minimum speed of two processes, relative to one."""

SEARCH = "SELECT count(*) FROM exchanges WHERE status = 'error' AND method = 'tools/call'"


class Cost(NamedTuple):
    wall: float
    cpu: float
    memory: float
    """Peak megabytes of its largest process."""


@dataclass(frozen=True)
class Size:
    """Amounts to measure."""

    sessions: int
    messages: int


def cost(*arguments: str | Path) -> Cost:
    """Return the cost of a command and its children."""
    began = time.perf_counter()
    environment = {**os.environ}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)  # Users do not compile the package at every start.
    command = [*mcpspy_command(), *map(str, arguments)]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, env=environment)
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0, arguments
    wall = time.perf_counter() - began
    return Cost(wall, used.ru_utime + used.ru_stime, used.ru_maxrss / 1024)


def adding(report: Report, size: Size) -> None:
    """Add many sessions, a tenth of them, nothing new, and with two processes; then search."""
    with tempfile.TemporaryDirectory(prefix="mcpspy-bench-") as name:
        folder = Path(name)
        os.environ["XDG_CONFIG_HOME"] = str(folder / "config")
        write_sessions(folder / "few", size.sessions // 10, size.messages // 10)
        write_sessions(folder / "many", size.sessions, size.messages)
        few = cost("lake", "add", folder / "lake-few", folder / "few")
        many = cost("lake", "add", folder / "lake", folder / "many")
        again = cost("lake", "add", folder / "lake", folder / "many")
        two = cost("lake", "add", folder / "lake-two", folder / "many", "--workers", "2")
        cost("lake", "compact", folder / "lake")
        asked = cost("query", SEARCH, "--lake", folder / "lake")
        exported = cost("export", folder / "many", "-q", "status:error tool:*", "-o", folder / "out.jsonl")
    what = f"{size.messages:,} messages"
    each, least = (
        1e6 * used.cpu / count for used, count in ((many, size.messages), (few, size.messages // 10))
    )
    report.add(
        Row(
            f"lake add, {what}: a message",
            f"{each:.0f} µs CPU",
            f"in a tenth of the sessions {least:.0f} µs",
            each / least,
            most=GROWTH,
        ),
        Row(
            f"lake add, {what}: memory",
            f"{many.memory:.0f} MB",
            f"{few.memory:.0f} MB",
            many.memory / few.memory,
            most=GROWTH,
        ),
        Row(
            f"lake add, {what}: nothing new",
            f"{again.cpu:.2f} s CPU",
            f"first run {many.cpu:.1f} s",
            again.cpu / many.cpu,
            most=NOTHING_NEW,
        ),
        Row(
            f"lake add, {what}: two processes",
            f"{two.wall:.1f} s",
            f"one {many.wall:.1f} s",
            two.wall / many.wall,
            most=1 / SPEEDUP,
        ),
        Row(
            f"query, {what}: failed calls",
            f"{asked.wall:.2f} s",
            f"export -q {exported.wall:.1f} s",
            asked.wall / exported.wall,
        ),
    )


if __name__ == "__main__":
    sys.exit(
        main(
            "lake",
            "CPU time of `mcpspy lake add` and `mcpspy query`.",
            full=Size(1_000, 1_000_000),
            quick=Size(100, 100_000),
            figures={"adding": adding},
            lacks=None,
        )
    )
