"""`mcpspy exec` and `mcpspy http --forward` as processes."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from typing import TYPE_CHECKING

import pytest

from mcpspy.io.forward import child
from tests.io.forward.conftest import Start

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractAsyncContextManager

    from tests.io.conftest import Processes

    Serving = Callable[..., AbstractAsyncContextManager[str]]

pytestmark = pytest.mark.timeout(60)

MIB = 1 << 20

HEARS = """
import os, signal, sys
for number in (signal.SIGINT, signal.SIGTERM):
    signal.signal(number, lambda number, _: print(signal.Signals(number).name, flush=True))
print(os.getpid(), flush=True)
sys.stdin.readline()
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_signals_reach_the_program_once_and_mcpspy_ends_as_it_does(
    start: Start, processes: Processes
) -> None:
    process = start("exec", "--", sys.executable, "-c", HEARS, MCPSPY_DIR="/dev/null/none")
    assert process.stdin is not None
    assert process.stdout is not None
    assert process.stdout.readline().strip().isdigit()
    processes.eventually(lambda: len(processes.children(process.pid)) == 2)  # The guard is running, too.
    os.killpg(process.pid, signal.SIGINT)
    assert process.stdout.readline() == b"SIGINT\n"
    os.kill(process.pid, signal.SIGTERM)  # Forwarded in order: a second SIGINT would be earlier.
    assert process.stdout.readline() == b"SIGTERM\n"
    out, err = process.communicate(b"\n", timeout=20)
    assert out == b""
    assert process.returncode == -signal.SIGKILL
    assert err.decode().startswith(
        f"mcpspy: nothing recorded: {sys.executable} sent no MCP through the proxy"
    )


def test_a_killed_mcpspy_takes_the_program_with_it(start: Start, processes: Processes) -> None:
    process = start("exec", "--", sys.executable, "-c", HEARS)
    assert process.stdout is not None
    pid = int(process.stdout.readline())
    family = processes.family(process.pid)
    assert pid in family
    process.kill()
    processes.gone(*family)


@pytest.mark.parametrize(
    ("command", "code", "line"),
    [
        ("nonsense", 127, "cannot start nonsense: not found on PATH"),
        ("/etc/passwd", 126, "cannot start /etc/passwd: not executable"),
    ],
)
def test_a_program_that_does_not_start_has_a_shells_exit_code(
    command: str, code: int, line: str, capfd: pytest.CaptureFixture[str]
) -> None:
    status = asyncio.run(child.run([command], {}))
    assert os.waitstatus_to_exitcode(status) == code
    assert child.is_start_failure(status)
    assert not child.is_start_failure(0)
    assert capfd.readouterr().err.startswith(f"mcpspy: {line}")
