"""The parts of the POSIX loop: start, error messages, exit. `test_run` tests their interaction."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

if sys.platform == "win32":
    pytest.skip("POSIX only", allow_module_level=True)

from mcpspy.errors import NOT_EXECUTABLE, NOT_FOUND
from mcpspy.io.stdio import process

if TYPE_CHECKING:
    from tests.io.conftest import Processes


def run(script: str) -> subprocess.CompletedProcess[bytes]:
    """Run Python code in a separate process, because signal handlers and standard descriptors are global."""
    return subprocess.run([sys.executable, "-c", script], capture_output=True, check=False, timeout=20)


@pytest.mark.parametrize(
    ("number", "program", "code", "text"),
    [
        (errno.ENOENT, "npx", NOT_FOUND, "not found on PATH"),
        (errno.ENOENT, "./server", NOT_FOUND, "no such file"),
        (errno.ENOTDIR, "file/server", NOT_FOUND, "no such file"),
        (errno.EACCES, "./server", NOT_EXECUTABLE, "not executable"),
        (errno.ENOEXEC, "./server", NOT_EXECUTABLE, "Exec format error"),
        (errno.E2BIG, "npx", NOT_EXECUTABLE, "Argument list too long"),
    ],
)
def test_a_server_that_did_not_start_is_explained_in_a_line(
    number: int, program: str, code: int, text: str
) -> None:
    found, line = process.explain(OSError(number, os.strerror(number)), program)
    assert found == code
    assert line.startswith(f"cannot start {program}: {text}")
    assert "\n" not in line


def test_an_outcome_is_a_code_or_the_name_of_a_signal() -> None:
    assert process.outcome(7 << 8) == (7, None)
    assert process.outcome(0) == (0, None)
    assert process.outcome(signal.SIGSEGV) == (None, "SIGSEGV")
    assert process.outcome(signal.SIGSEGV | 0x80) == (None, "SIGSEGV")


@pytest.mark.skipif(sys.platform != "linux", reason="real-time signals")
def test_a_signal_without_a_name_has_its_number() -> None:
    assert process.outcome(40) == (None, "SIG40")


@pytest.mark.parametrize("code", [0, 1, 255])
def test_leaving_repeats_the_exit_code(code: int) -> None:
    assert run(f"from mcpspy.io.stdio.process import leave; leave({code << 8})").returncode == code


@pytest.mark.parametrize(
    "number", [signal.SIGTERM, signal.SIGKILL, signal.SIGSEGV, signal.SIGPIPE, signal.SIGINT]
)
def test_leaving_repeats_the_signal_even_if_it_is_blocked_and_ignored(number: signal.Signals) -> None:
    script = f"""
import signal
from mcpspy.io.stdio.process import leave
if {number} != signal.SIGKILL:
    signal.signal({number}, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_BLOCK, [{number}])
leave({int(number)})
"""
    assert run(script).returncode == -number


@pytest.mark.skipif(sys.platform != "linux", reason="real-time signals")
def test_leaving_repeats_a_signal_that_has_a_number_only() -> None:
    assert run("from mcpspy.io.stdio.process import leave; leave(40)").returncode == -40


def test_the_server_does_not_inherit_mcpspys_ends_of_its_pipes() -> None:
    script = """
import os
from mcpspy.io.stdio.process import spawn
child = spawn(["sh", "-c", "read line; echo heard $line; echo loud >&2"])
assert [os.get_inheritable(fd) for fd in (child.stdin, child.stdout, child.stderr)] == [False] * 3
os.write(child.stdin, b"x\\n")
assert os.read(child.stdout, 100) == b"heard x\\n"
assert os.read(child.stderr, 100) == b"loud\\n"
assert os.read(child.stdout, 100) == b""
assert os.waitpid(child.pid, 0)[1] == 0
child.guard.dismiss()
"""
    assert run(script).stderr == b""


def test_a_server_that_does_not_start_leaves_nothing() -> None:
    script = """
import os
from mcpspy.io.stdio.process import spawn
try:
    spawn(["/no/such/command"])
except FileNotFoundError:
    pass
try:
    os.waitpid(-1, os.WNOHANG)
except ChildProcessError:
    print("no child")
"""
    assert run(script).stdout == b"no child\n"


def test_the_server_stays_in_mcpspys_group_and_session(processes: Processes) -> None:
    script = """
import os
from mcpspy.io.stdio.process import spawn
child = spawn(["sleep", "20"])
assert os.getpgid(child.pid) == os.getpgrp()
assert os.getsid(child.pid) == os.getsid(0)
child.guard.dismiss()
os.kill(child.pid, 9)
os.waitpid(child.pid, 0)
"""
    assert run(script).stderr == b""


def test_signals_that_were_ignored_are_not_caught() -> None:
    script = """
import signal
from mcpspy.io.stdio.process import _catch_signals
signal.signal(signal.SIGHUP, signal.SIG_IGN)
_, caught = _catch_signals()
assert signal.SIGHUP not in caught
assert signal.SIGTERM in caught
assert signal.getsignal(signal.SIGHUP) == signal.SIG_IGN
"""
    assert run(script).stderr == b""


@pytest.mark.parametrize("closed", [(0,), (1,), (2,), (0, 1, 2)])
def test_a_closed_standard_descriptor_is_occupied_and_an_open_one_left(closed: tuple[int, ...]) -> None:
    script = f"""
import os, sys
from mcpspy.io.stdio.process import _occupy_standard_descriptors
report = os.dup(1)
before = {{fd: os.fstat(fd).st_ino for fd in (0, 1, 2) if fd not in {closed}}}
for fd in {closed}:
    os.close(fd)
_occupy_standard_descriptors()
null = os.stat(os.devnull).st_ino
after = [os.fstat(fd).st_ino for fd in (0, 1, 2)]
expected = [before.get(fd, null) for fd in (0, 1, 2)]
os.write(report, b"as expected" if after == expected else repr((after, expected)).encode())
os._exit(0)
"""
    assert run(script).stdout == b"as expected"
