"""Sessions in which chosen system calls on the recording fail: one, two neighbours, or a write that stays half done.

A library that is loaded into `mcpspy run` (torture.c, compiled here) numbers the calls on the files of the recording,
and fails some of them. Each session is compared with one without mcpspy: what client and server received, the exit
code, the lines on stderr. Each line of the file must be JSON, and each message must be in it, in order, or be counted
by a note `lost`; without a file, a line on stderr must say so.

    .venv/bin/python bench/torture.py [--quick] [--workers 2]

Prints a table for docs/benchmarks.md. Exits with 1 if a session differs. Linux only, and needs a C compiler.
"""

from __future__ import annotations

import argparse
import errno
import os
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

# Not this folder: its `http.py` would shadow the standard library's.
sys.path[0] = str(Path(__file__).resolve().parent.parent)

from mcpspy.core.recording.decode import Damaged, Frame, Note  # noqa: E402 - the line above must come first.
from mcpspy.errors import McpspyError  # noqa: E402
from mcpspy.io.recording.reader import Recording  # noqa: E402

HERE = Path(__file__).resolve().parent
SHORT = -1
"""In place of an error: a write accepts half of its data."""
ERRORS = (errno.ENOSPC, errno.EIO, errno.ENOMEM, errno.EINTR)
NEIGHBOURS = (errno.ENOSPC, errno.EIO)
LINES = [b'{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"x"}}\n' % n for n in range(5)]
MESSAGES = [*LINES[:2], b"\xff noise\n" + LINES[2] + b"{oops}\n", LINES[3] + LINES[4]]
"""The client sends each after the response to the one before. The third needs several buffers in the file."""
SERVER = """
import os
while data := os.read(0, 65536):
    os.write(1, data)
    if b"noise" in data:
        os.write(2, b"noise\\n")
os._exit(7)
"""
RUN = """
import sys
import mcpspy.io.recording.writer as writer
from mcpspy.__main__ import main
writer.RETRY = float(sys.argv.pop(1))
sys.exit(main())
"""
BOUND = 30.0


@dataclass
class Outcome:
    received: bytes
    code: int
    stderr: list[str]
    calls: list[tuple[str, int]] = field(default_factory=list)
    """The calls on the recording, and what was done to each."""
    faults: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Variant:
    name: str
    options: tuple[str, ...]
    retry: str
    """Seconds between two attempts to write."""


VARIANTS = (
    Variant("recovery at the end", ("--no-redact",), "60"),
    Variant("recovery with the next entry", (), "0"),
    Variant("parts", ("--max-size", "600", "--no-redact"), "0"),
)


def session(command: list[str], environment: dict[str, str]) -> Outcome:
    """Send the messages, each after the response to the one before. Return what came back."""
    pipe = subprocess.PIPE
    with subprocess.Popen(
        command, stdin=pipe, stdout=pipe, stderr=pipe, bufsize=0, env=environment
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        received = b""
        try:
            for message in MESSAGES:
                process.stdin.write(message)
                size = 0
                while size < len(message) and (data := process.stdout.read(65536)):
                    received += data
                    size += len(data)
            rest, err = process.communicate(timeout=BOUND)
        except (BrokenPipeError, subprocess.TimeoutExpired):
            process.kill()
            rest, err = process.communicate()
            received += b"<broken>"
        return Outcome(received + rest, process.returncode, err.decode().splitlines())


class Torture:
    """The compiled library, and the session without mcpspy with which others are compared."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._library = folder / "torture.so"
        compiler = os.environ.get("CC", "cc")
        subprocess.run(
            [compiler, "-shared", "-fPIC", "-O1", "-o", self._library, HERE / "torture.c", "-ldl"], check=True
        )
        self._server = [sys.executable, "-I", "-S", "-c", SERVER]
        self.direct = session(self._server, dict(os.environ))
        assert self.direct.received == b"".join(MESSAGES), self.direct

    def run(self, variant: Variant, faults: dict[int, int]) -> Outcome:
        """Run a session in which these calls fail, and check it."""
        with tempfile.TemporaryDirectory(dir=self._folder) as name:
            folder = Path(name) / "sessions"
            log = Path(name) / "log"
            environment = {
                **os.environ,
                "HOME": name,
                "MCPSPY_TELEMETRY": "off",
                "LD_PRELOAD": str(self._library),
                "FAULT_FOLDER": f"{folder}/",
                "FAULT_LOG": str(log),
                "FAULTS": ",".join(f"{number}={fault}" for number, fault in faults.items()),
            }
            record = ["run", *variant.options, "--record", str(folder / "x.jsonl"), "--"]
            mcpspy = [sys.executable, "-P", "-c", RUN, variant.retry, *record]
            outcome = session([*mcpspy, *self._server], environment)
            if log.exists():
                calls = [line.split() for line in log.read_text(encoding="ascii").splitlines()]
                outcome.calls = [(call, int(fault)) for _, call, fault in calls]
            outcome.faults = [*self._differences(outcome), *_gaps(folder / "x.jsonl", outcome)]
            return outcome

    def _differences(self, outcome: Outcome) -> Iterator[str]:
        said = [line for line in outcome.stderr if line.startswith("mcpspy: ")]
        if outcome.received != self.direct.received:
            yield "other traffic"
        if outcome.code != self.direct.code:
            yield f"exit code {outcome.code}"
        if [line for line in outcome.stderr if line not in said] != self.direct.stderr:
            yield "other lines on stderr"
        if len(said) > 4:
            yield f"{len(said)} lines of mcpspy"
        if said and not any(fault for _, fault in outcome.calls):
            yield "a line of mcpspy without a fault"


def _gaps(path: Path, outcome: Outcome) -> Iterator[str]:
    """Yield what is wrong with the file: each message must be in it, or counted as lost, or reported as unrecorded."""
    reported = any("unrecorded" in line for line in outcome.stderr)
    if not path.exists() or not path.stat().st_size:
        if not reported:
            yield "no file, and no line that says so"
        return
    try:
        entries = list(Recording(path))
    except McpspyError as error:
        yield f"unreadable: {error}"
        return
    is_stuck = any(fault and call in ("fstat", "ftruncate") for call, fault in outcome.calls)
    if (
        not is_stuck
    ):  # The beginning of a line that is not continued, such as the pointer to a part, could not be removed.
        yield from (f"a damaged line: {entry.data[:60]!r}" for entry in entries if isinstance(entry, Damaged))
    frames = [entry for entry in entries if isinstance(entry, Frame)]
    notes = [entry for entry in entries if isinstance(entry, Note)]
    sent = b"".join(MESSAGES).splitlines()
    for side in ("client", "server"):
        messages = [frame.data for frame in frames if frame.side == side]
        if messages != [each for each in sent if each in messages]:
            yield f"messages of the {side} in another order"
    lost = sum(note.fields["entries"] for note in notes if note.kind == "lost")
    is_ended = bool(notes) and notes[-1].kind == "exit"
    missing = 2 * len(sent) - len(frames)
    if missing > lost and (is_ended or not reported):
        yield f"{missing} messages are missing, and {lost} entries are counted"
    if not is_ended and not reported:
        yield "no exit note"


def plans(calls: list[str], *, quick: bool) -> Iterator[tuple[str, dict[int, int]]]:
    """Yield the kind of each session and its faults."""
    numbers = range(1, len(calls) + 1)
    for error in (errno.ENOSPC,) if quick else ERRORS:
        name = errno.errorcode[error]
        for number in numbers:
            yield f"one call: {name}", {number: error}
            if error in NEIGHBOURS and not quick:
                yield f"two neighbours: {name}", {number: error, number + 1: error}
    for number in numbers:
        if calls[number - 1] in ("write", "writev"):
            yield "a half write", {number: SHORT}
            yield "a half write, then ENOSPC", {number: SHORT, number + 1: errno.ENOSPC}
            if not quick:
                for stuck in (
                    number + 2,
                    number + 3,
                ):  # `fstat` and `ftruncate`, which would remove the half.
                    faults = {number: SHORT, number + 1: errno.ENOSPC, stuck: errno.EIO}
                    yield "a half write that cannot be removed", faults


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="ENOSPC only, and no neighbours")
    parser.add_argument("--workers", type=int, default=2, help="sessions at once (default: 2)")
    arguments = parser.parse_args()
    sessions: Counter[str] = Counter()
    fired: Counter[str] = Counter()
    silent: Counter[str] = Counter()
    wrong: Counter[str] = Counter()
    operations: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as name, ThreadPoolExecutor(arguments.workers) as pool:
        torture = Torture(Path(name))
        for variant in VARIANTS:
            untouched = torture.run(variant, {})
            assert not untouched.faults, untouched
            planned = list(plans([call for call, _ in untouched.calls], quick=arguments.quick))
            outcomes = pool.map(lambda plan, variant=variant: torture.run(variant, plan[1]), planned)
            for (kind, faults), outcome in zip(planned, outcomes, strict=True):
                sessions[kind] += 1
                hit = [call for call, fault in outcome.calls if fault]
                operations.update(hit)
                fired[kind] += len(hit) == len(faults)
                silent[kind] += bool(hit) and not any(line.startswith("mcpspy: ") for line in outcome.stderr)
                if outcome.faults:
                    wrong[kind] += 1
                    print(variant.name, faults, hit, outcome.faults, outcome.stderr, file=sys.stderr)
    print(
        "| faults | sessions | all faults happened | without a line on stderr | wrong |\n|---|---|---|---|---|"
    )
    for kind, count in sessions.items():
        print(f"| {kind} | {count} | {fired[kind]} | {silent[kind]} | {wrong[kind]} |")
    print(f"\nCalls that failed: {', '.join(f'{call} {count}' for call, count in operations.most_common())}.")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
