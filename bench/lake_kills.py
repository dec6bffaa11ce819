"""Kill `mcpspy lake add`, or a worker or the scheduler of its Dask cluster, at random moments; compare the lakes.

After each kill, `lake add` runs again. The lake must have the same files, byte for byte, as one that was made without a
kill. The moments are the same for the same seed, apart from the speed of the machine.

    .venv/bin/python bench/lake_kills.py [--adds 50] [--workers 20] [--schedulers 20] [--seed 1]
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

# Not this folder: its `http.py` would shadow the standard library's.
sys.path[0] = str(Path(__file__).resolve().parent.parent)

from bench.lake import digest  # noqa: E402 - the line above must come first.
from bench.many_sessions import write_sessions  # noqa: E402
from bench.measure import mcpspy_command  # noqa: E402

SESSIONS, MESSAGES = 40, 40_000
SECONDS = 60
"""Maximum time of one command."""


def adding(lake: Path, recordings: Path, *options: str) -> subprocess.Popen[bytes]:
    command = [*mcpspy_command(), "lake", "add", str(lake), str(recordings), *options]
    return subprocess.Popen(
        command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True
    )


class Cluster:
    """A scheduler and two workers, as processes."""

    def __init__(self) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.address = f"tcp://127.0.0.1:{self.port}"
        address = ["--host", "127.0.0.1", "--port", str(self.port)]
        self.scheduler = self._start("scheduler", *address, "--no-dashboard")
        self.workers = [self.worker() for _ in range(2)]

    def worker(self) -> subprocess.Popen[bytes]:
        return self._start("worker", self.address, "--nthreads", "1", "--no-nanny", "--no-dashboard")

    def _start(self, part: str, *options: str) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", f"distributed.cli.dask_{part}", *options]
        return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def close(self) -> None:
        for process in (*self.workers, self.scheduler):
            process.kill()
            process.wait()


@contextmanager
def cluster() -> Iterator[Cluster]:
    started = Cluster()
    try:
        yield started
    finally:
        started.close()


class Kills:
    def __init__(self, folder: Path, seed: int) -> None:
        self.folder, self.chance = folder, random.Random(seed)
        self.recordings = folder / "recordings"
        write_sessions(self.recordings, SESSIONS, MESSAGES)
        began = time.monotonic()
        assert adding(folder / "whole", self.recordings).wait(SECONDS) == 0
        self.seconds = time.monotonic() - began
        self.expected = digest(folder / "whole")
        self.counts = {"interrupted": 0, "different": 0}

    def lake(self, number: int) -> Path:
        return self.folder / f"lake-{number}"

    def check(self, lake: Path, code: int) -> None:
        """Run `lake add` again and compare."""
        self.counts["interrupted"] += code != 0
        assert adding(lake, self.recordings).wait(SECONDS) == 0
        self.counts["different"] += digest(lake) != self.expected
        subprocess.run(["rm", "-r", str(lake)], check=True)

    def add(self, number: int) -> None:
        process = adding(self.lake(number), self.recordings, "--workers", str(1 + number % 2))
        time.sleep(self.chance.uniform(0, self.seconds))
        os.kill(process.pid, signal.SIGKILL)
        code = process.wait(SECONDS)
        time.sleep(0.2)  # Workers end with their parent.
        self.check(self.lake(number), code)

    def part(self, number: int, name: str) -> None:
        """Kill a worker, or the scheduler, while the cluster works."""
        with cluster() as started:
            time.sleep(2)
            process = adding(self.lake(number), self.recordings, "--on", started.address)
            time.sleep(self.chance.uniform(0.3, self.seconds))
            (started.workers[0] if name == "worker" else started.scheduler).kill()
            code = process.wait(SECONDS)
        self.check(self.lake(number), code)


def main() -> int:
    parser = argparse.ArgumentParser(description="Kill lake add at random moments, and compare the lakes.")
    for name, count in (("--adds", 50), ("--workers", 20), ("--schedulers", 20), ("--seed", 1)):
        parser.add_argument(name, type=int, default=count)
    args = parser.parse_args()
    failed = False
    with tempfile.TemporaryDirectory(prefix="mcpspy-kills-") as name:
        os.environ["XDG_CONFIG_HOME"] = str(Path(name, "config"))
        kills = Kills(Path(name), args.seed)
        for count, part in ((args.adds, "add"), (args.workers, "worker"), (args.schedulers, "scheduler")):
            kills.counts = dict.fromkeys(kills.counts, 0)
            for number in range(count):
                if part == "add":
                    kills.add(number)
                else:
                    kills.part(number, part)
            interrupted, different = kills.counts.values()
            print(
                f"{part}: {count} kills, {interrupted} runs interrupted, {different} lakes different",
                flush=True,
            )
            failed = failed or different > 0
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
