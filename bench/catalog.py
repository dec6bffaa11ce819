"""CPU time of commands on a folder of many sessions, with and without the cache of their summaries.

Owns the figures of docs/ls.md and their bars. The baseline is the same command in the same run after the cache was
deleted. `python bench/catalog.py --folder FOLDER` only writes such a folder.

    .venv/bin/python bench/catalog.py [--quick] [--check] [--json FILE]
"""

from __future__ import annotations

import json
import os
import pty
import random
import select
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path

# Not this folder: its `http.py` would shadow the standard library's.
sys.path[0] = str(Path(__file__).resolve().parent.parent)

from bench.measure import Report, Row, alternate, low, main, mcpspy_command  # noqa: E402 - see above.
from bench.sessions import handshake, messages_of  # noqa: E402

START = datetime(2026, 1, 1, tzinfo=UTC)
CACHE = ".mcpspy-catalog"
TEXTUAL = """\
from textual.app import App
from textual.widgets import Static

class OneLine(App):
    def compose(self):
        yield Static("ended")

OneLine().run()
"""
BOUND = 120.0
"""Seconds after which a command counts as stuck."""


@dataclass(frozen=True)
class Size:
    """Amounts to measure."""

    rounds: int
    sessions: int


FULL = Size(3, 10_000)
QUICK = Size(2, 2_000)


def write_folder(folder: Path, sessions: int) -> None:
    """Write sessions of 20 KB on average; every 50th was killed, and every 20th left a request unanswered."""
    chance = random.Random(7)
    begin = handshake()
    folder.mkdir(mode=0o700, exist_ok=True)
    for number in range(sessions):
        started = START + timedelta(seconds=number * 100)
        name, identity = f"server-{number % 40}", f"{number * 2654435761 % (1 << 32):08x}"
        header = {
            "mcpspy": 1,
            "id": identity,
            "started": started.strftime("%Y-%m-%dT%H:%M:%S.000Z"),
            "transport": "stdio",
            "command": ["npx", "-y", name],
            "cwd": "/srv",
            "name": name,
            "pid": number + 1,
            "redacted": True,
        }
        lines = [json.dumps(header, separators=(",", ":")).encode() + b"\n", *begin]
        lines += messages_of(chance, chance.randrange(2, 10), loses_last=number % 20 == 7)
        if number % 50 != 3:
            lines.append(b'{"t":99.000000,"note":"exit","code":%d,"signal":null}\n' % (number % 30 == 11))
        path = folder / f"{started:%Y%m%d-%H%M%S}-{name}-{identity}.jsonl"
        path.write_bytes(b"".join(lines))
        at = (started + timedelta(seconds=99)).timestamp()
        os.utime(path, (at, at))


def run(folder: Path, *arguments: str, cached: bool) -> float:
    """Run a command; return its CPU seconds. Without `cached`, delete the cache before."""
    if not cached:
        (folder / CACHE).unlink(missing_ok=True)
    environment = {**os.environ, "MCPSPY_DIR": str(folder)}
    process = subprocess.Popen([*mcpspy_command(), *arguments], stdout=subprocess.DEVNULL, env=environment)
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise RuntimeError(f"mcpspy {' '.join(arguments)} ended with {process.returncode}")
    return used.ru_utime + used.ru_stime


def tui(folder: Path, *, cached: bool) -> float:
    """Start the terminal UI; return its CPU seconds until it lists sessions. Without `cached`, delete the cache."""
    if not cached:
        (folder / CACHE).unlink(missing_ok=True)
    return until_ended([*mcpspy_command(), "tui"], folder)


def until_ended(command: list[str], folder: Path) -> float:
    """Start a program in a terminal; return its CPU seconds until it shows `ended`, the state of a session."""
    pid, terminal = pty.fork()
    if pid == 0:
        os.environ.update(MCPSPY_DIR=str(folder), TERM="xterm-256color", COLUMNS="120", LINES="40")
        os.execv(command[0], command)
    shown = b""
    try:
        while b"ended" not in shown:
            if not select.select([terminal], [], [], BOUND)[0]:
                raise TimeoutError(f"{command[0]} shows no sessions")
            shown += os.read(terminal, 1 << 16)
    finally:
        os.kill(pid, signal.SIGKILL)
        _, _, used = os.wait4(pid, 0)
        os.close(terminal)
    return used.ru_utime + used.ru_stime


def folder_of_sessions(report: Report, size: Size) -> None:
    """Measure each command, with and without the cache."""
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # Users do not compile the package at every start.
    with tempfile.TemporaryDirectory(prefix="mcpspy-bench-") as path:
        folder = Path(path)
        write_folder(folder, size.sessions)
        commands: dict[str, Callable[..., float]] = {
            "ls -n 5": partial(run, folder, "ls", "-n", "5"),
            "ls": partial(run, folder, "ls"),
            "ls -q errors>0": partial(run, folder, "ls", "-q", "errors>0"),
            "show last": partial(run, folder, "show", "last"),
            "tui": partial(tui, folder),
        }
        for name, command in commands.items():
            without = low(alternate({name: partial(command, cached=False)}, 1)[name])
            run(folder, "ls", cached=True)
            with_cache = low(alternate({name: partial(command, cached=True)}, size.rounds)[name])
            report.add(
                Row(
                    f"{size.sessions:,} sessions, {name}",
                    f"CPU {with_cache:.2f} s",
                    f"without the cache {without:.2f} s",
                    with_cache / without,
                )
            )
        textual = [sys.executable, "-c", TEXTUAL]
        bare = low(alternate({"textual": partial(until_ended, textual, folder)}, size.rounds)["textual"])
        report.add(
            Row(
                f"{size.sessions:,} sessions, tui",
                f"CPU {with_cache:.2f} s",
                f"an application of Textual with one line {bare:.2f} s",
                with_cache - bare,
                unit="s more",
            )
        )
        stats = run(folder, "stats", str(folder), cached=True)
        plain = run(folder, "--version", cached=True)
        report.add(
            Row(
                f"{size.sessions:,} sessions, stats FOLDER",
                f"CPU {stats:.1f} s",
                f"start {plain:.2f} s",
                stats,
                unit="s",
            )
        )


if __name__ == "__main__":
    if sys.argv[1:2] == ["--folder"]:
        write_folder(Path(sys.argv[2]), FULL.sessions)
        sys.exit(0)
    about = "CPU time of commands on a folder of many sessions."
    lacks = None if hasattr(os, "fork") else "this needs POSIX: a terminal"
    sys.exit(
        main("catalog", about, full=FULL, quick=QUICK, figures={"folder": folder_of_sessions}, lacks=lacks)
    )
