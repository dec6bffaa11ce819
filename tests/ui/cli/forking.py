"""Runs of mcpspy that import its commands only once: one process imports them, and forks.

    python tests/ui/cli/forking.py

Reads a line of JSON for each run: `arguments`, `folder` (the working folder), `environment` and `streams`, one for each of
the descriptors 0, 1 and 2: a file, `closed`, or `unread` (a pipe that has no reader). Prints its exit code, or 128 and
its signal. A run is a process with its own standard streams, which Python ends as it ends any other; only its imports
were made before. tests/test_main.py tests what the imports do.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import io
import json
import os
import sys
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Sequence
    from pathlib import Path


LATE = (
    "mcpspy.core.redact.command_line",
    "mcpspy.core.redact.config",
    "mcpspy.core.redact.text",
    "mcpspy.io.forward.proxy",
    "mcpspy.io.replay",
    "mcpspy.ui.report.explanation",
    "mcpspy.ui.report.stats",
)
"""The modules that commands import when they run. mitmproxy, which one of them imports, takes a second of CPU time."""


class Outcome(NamedTuple):
    """The end of a run."""

    code: int
    stdout: bytes
    stderr: bytes


class Forking:
    """Runs mcpspy in forks of a process that has imported its commands."""

    def __init__(self, process: subprocess.Popen[bytes], folder: Path) -> None:
        self._process = process
        self._folder = folder

    def run(
        self, arguments: Sequence[object], stdin: str = os.devnull, stdout: str = "", stderr: str = ""
    ) -> Outcome:
        """Run mcpspy with these arguments in the environment of this process. An empty stream is returned."""
        kept = [self._folder / "stdout", self._folder / "stderr"]
        for path in kept:
            path.write_bytes(b"")
        order = {
            "arguments": list(map(str, arguments)),
            "folder": os.getcwd(),
            "environment": dict(os.environ),
            "streams": [stdin, stdout or str(kept[0]), stderr or str(kept[1])],
        }
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(order).encode() + b"\n")
        self._process.stdin.flush()
        code = int(self._process.stdout.readline())
        return Outcome(code, *(path.read_bytes() for path in kept))


def main() -> None:
    import mcpspy.__main__
    from mcpspy.ui.cli.main import COMMANDS, module_of

    for name in COMMANDS:
        module_of(name)
    for name in LATE:
        importlib.import_module(name)
    gc.freeze()
    print("ready", flush=True)
    for line in iter(sys.stdin.buffer.readline, b""):
        if (child := os.fork()) == 0:
            prepare(json.loads(line))
            sys.exit(mcpspy.__main__.main())
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        print(code if code >= 0 else 128 - code, flush=True)


def prepare(order: dict[str, Any]) -> None:
    """Make this process the one that `python -m mcpspy ARGUMENTS` would be."""
    os.chdir(order["folder"])
    os.environ.clear()
    os.environ.update(order["environment"])
    sys.argv[1:] = order["arguments"]
    for number, (stream, name) in enumerate(
        zip(order["streams"], ("stdin", "stdout", "stderr"), strict=True)
    ):
        with contextlib.suppress(OSError):  # The one before it was closed, and has taken its place.
            os.close(number)
        opened = reopened(number, stream)
        setattr(sys, name, opened)
        setattr(sys, f"__{name}__", opened)


def reopened(number: int, stream: str) -> io.TextIOWrapper | None:
    """Open a standard stream, as Python does at its start."""
    if stream == "closed":
        return None
    if stream == "unread":
        read, file = os.pipe()
        os.close(read)
    else:
        flags = os.O_RDONLY if number == 0 else os.O_WRONLY | os.O_APPEND
        file = os.open(stream, flags)
    if file != number:
        os.dup2(file, number)
        os.close(file)
    raw = io.FileIO(number, "r" if number == 0 else "w", closefd=False)
    if number == 0:
        return io.TextIOWrapper(io.BufferedReader(raw), encoding="utf-8")
    errors = "strict" if number == 1 else "backslashreplace"
    return io.TextIOWrapper(
        io.BufferedWriter(raw), encoding="utf-8", errors=errors, line_buffering=number == 2
    )


if __name__ == "__main__":
    main()
