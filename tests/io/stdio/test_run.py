"""The lifecycle of `mcpspy run`, with real processes: the order of events, whichever side ends first.

Follows the rows of the lifecycle contract. For every test here, the fixtures assert that no process is left.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import random
import select
import signal
import socket
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

if sys.platform == "win32":
    pytest.skip("signals, process groups and descriptors of POSIX", allow_module_level=True)

import fcntl
import pty
import resource
import termios

from mcpspy.core.recording.decode import Frame, Note
from mcpspy.io.recording.reader import RecordingState, Summary, read_header_of, summarize
from mcpspy.io.recording.tail import follow
from mcpspy.io.recording.writer import is_live, try_lock
from mcpspy.io.stdio.run import HOST_PATH

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from tests.conftest import Entry
    from tests.io.conftest import Processes, Spy, Start

linux_only = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc, or limits another process")

BUSY = 10.0
"""Seconds that half a second may take on a busy machine. Without the rule under test, it would be twenty."""

MB = 1 << 20

BOTH = ["stdout", "stderr"]

THREE_PIPES = 170_000
"""More than two pipes hold, less than two pipes and the chunk between them: the writer may finish and exit."""

FORBIDDEN = {
    "aiohttp",
    "argparse",
    "asyncio",
    "hashlib",
    "json",
    "mitmproxy",
    "msgspec",
    "orjson",
    "re",
    "textual",
}


def hello(spy: Spy) -> dict[str, Any]:
    """Return the server's first line."""
    first: dict[str, Any] = json.loads(spy.out.line())
    return first


WITHOUT_NOWAIT = """
import os, sys
del os.RWF_NOWAIT
from mcpspy.ui.cli.run import main
main(sys.argv[2:])
"""
"""Behaves like macOS and like an older Linux."""


@pytest.fixture(params=["nowait", "poll"])
def interpreter(request: pytest.FixtureRequest) -> list[str]:
    """Both ways of writing to an inherited descriptor without blocking."""
    if request.param == "nowait":
        return ["-m", "mcpspy"]
    if not hasattr(os, "RWF_NOWAIT"):
        pytest.skip("this system has only one way, which is already tested")
    return ["-c", WITHOUT_NOWAIT]


def nonblocking(*fds: int) -> list[int]:
    """Return the descriptors that are O_NONBLOCK."""
    return [fd for fd in fds if fcntl.fcntl(fd, fcntl.F_GETFL) & os.O_NONBLOCK]


# The host closes stdin.


def test_eof_reaches_the_server_and_its_remaining_stdout_reaches_the_host(start: Start) -> None:
    spy = start("echo.py", 7)
    data = b"".join(b'{"id":%d}\n' % n for n in range(3_000))
    out, err = spy.finish(data)
    assert (out, err, spy.wait()) == (data, b"", 7)
    assert spy.said("client") == spy.said("server") == data
    assert spy.notes("eof") == [{"from": "client"}, {"from": "server"}]
    assert spy.notes("exit") == [{"code": 7, "signal": None}]


def test_eof_reaches_the_server_at_once(start: Start) -> None:
    spy = start("deaf.py")
    pid = hello(spy)["pid"]
    began = time.monotonic()
    spy.close()
    assert spy.out.line() == b'{"ignored":"EOF"}\n'
    assert time.monotonic() - began < BUSY
    os.kill(pid, signal.SIGKILL)
    assert spy.wait() == -signal.SIGKILL


@pytest.mark.parametrize("size", [80_000, 140_000, THREE_PIPES])
def test_nothing_is_lost_when_the_host_leaves_before_a_slow_server_reads(start: Start, size: int) -> None:
    spy = start("mute.py")
    pid = hello(spy)["pid"]
    spy.send(b"x" * (size - 1) + b"\n")
    spy.close()
    for _ in range(
        5
    ):  # By then, mcpspy has polled its pipes several times: the host's has hung up, and the server's is full.
        assert spy.err.line() == b"not reading yet\n"
    os.kill(pid, signal.SIGUSR1)
    assert json.loads(spy.out.line()) == {"bytes": size}
    assert spy.wait() == 0
    assert spy.said("client") == b"x" * (size - 1) + b"\n"


# The server exits first.


@pytest.mark.parametrize("size", [80_000, 140_000, THREE_PIPES])
def test_the_last_words_of_a_server_wait_for_a_slow_host(
    start: Start, processes: Processes, interpreter: list[str], size: int
) -> None:
    spy = start("leave.py", 5, size, interpreter=interpreter)
    assert spy.out.is_ready(20)
    processes.eventually(lambda: len(processes.children(spy.pid)) == 1)  # The guard; the server is reaped.
    spy.stays(0.5)
    out = spy.out.rest()
    assert len(out) == size // 17 * 17
    assert spy.wait() == 5
    assert spy.said("server") == out


@pytest.mark.parametrize("code", [0, 1, 2, 126, 255])
def test_the_exit_code_is_the_servers(start: Start, code: int) -> None:
    spy = start("leave.py", code, 100)
    assert len(spy.out.rest()) == 85
    assert spy.wait() == code
    assert spy.notes("exit") == [{"code": code, "signal": None}]


@pytest.mark.parametrize(
    "name", ["SIGSEGV", "SIGABRT", "SIGKILL", "SIGTERM", "SIGINT", "SIGHUP", "SIGUSR1", "SIGPIPE"]
)
def test_a_signal_that_ends_the_server_ends_mcpspy(start: Start, name: str) -> None:
    spy = start("leave.py", name, 100)
    assert len(spy.out.rest()) == 85
    assert spy.wait() == -getattr(signal, name)
    assert spy.notes("exit") == [{"code": None, "signal": name}]


def test_mcpspy_leaves_no_core_beside_the_servers(start: Start, tmp_path: Path) -> None:
    cores = ["sh", "-c", 'ulimit -c "$(ulimit -H -c)"; exec "$@"', "sh"]
    spy = start("leave.py", "SIGSEGV", 0, through=cores, cwd=tmp_path)
    _, status = os.waitpid(spy.pid, 0)
    spy.process.returncode = -os.WTERMSIG(status)
    assert os.WTERMSIG(status) == signal.SIGSEGV
    assert not os.WCOREDUMP(status)


SLOW_TO_LOOK = """
import os, sys
from mcpspy.io.stdio import run as stdio
from mcpspy.ui.cli.run import main
opens = stdio.open_recorder
def slow(options):
    try:
        os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOWAIT)
    except ChildProcessError:
        pass
    return opens(options)
stdio.open_recorder = slow
main(sys.argv[2:])
"""
"""The server exits before anything else is ready."""


@pytest.mark.parametrize("ignored", [[], ["sh", "-c", 'trap "" CHLD; exec "$@"', "sh"]], ids=["", "ignored"])
def test_the_exit_code_of_a_server_that_is_gone_at_once_is_known(start: Start, ignored: list[str]) -> None:
    spy = start("leave.py", 5, 17, through=ignored, interpreter=["-c", SLOW_TO_LOOK])
    assert spy.finish() == (b'{"last":0000000}\n', b"")
    assert spy.wait() == 5


# A grandchild keeps stdout open.


@pytest.mark.parametrize("kind", ["silent", "chatty", "flood"])
def test_a_grandchild_that_keeps_stdout_open_does_not_keep_mcpspy(
    start: Start, processes: Processes, kind: str
) -> None:
    spy = start("grandchild.py", kind)
    grandchild = hello(spy)["grandchild"]
    spy.seconds_until_exit()
    os.kill(grandchild, 0)  # The host has kept stdin open, and the grandchild its pipes.
    assert spy.wait() == 5
    assert spy.told().startswith(b"last words on stderr\n")
    assert spy.notes("exit") == [{"code": 5, "signal": None, "left": BOTH}]
    os.kill(grandchild, signal.SIGKILL)
    processes.gone(grandchild)
    spy.out.rest()
    assert last_notes(spy, processes) == ["eof", "end"]
    assert spy.notes("end") == [{"code": 5, "signal": None}]


def test_a_signal_that_ends_the_server_ends_mcpspy_though_a_grandchild_keeps_stdout_open(
    start: Start, processes: Processes
) -> None:
    spy = start("sh", "-c", "sleep 60 & echo $!; kill -SEGV $$")
    sleep = int(spy.out.line())
    assert spy.wait() == -signal.SIGSEGV
    os.kill(sleep, signal.SIGKILL)
    processes.gone(sleep)
    assert spy.out.rest() == b""
    assert last_notes(spy, processes) == ["eof", "end"]
    assert spy.notes("end") == [{"code": None, "signal": "SIGSEGV"}]


def test_a_grandchild_that_keeps_only_stdin_open_keeps_nothing(start: Start, processes: Processes) -> None:
    spy = start("sh", "-c", "sleep 60 <&0 >/dev/null 2>&1 & echo $!; exit 5")
    sleep = int(spy.out.line())
    assert spy.out.rest() == b""
    assert spy.wait() == 5
    os.kill(sleep, signal.SIGKILL)
    processes.gone(sleep)
    assert spy.notes("exit") == [{"code": 5, "signal": None}]


def last_notes(spy: Spy, processes: Processes) -> list[str]:
    """Return the kinds of the last two entries, once the relay has ended."""
    with spy.recording.open("rb") as file:
        processes.eventually(lambda: not is_live(file.fileno()))
    return [entry.note for entry in spy.entries()[-2:]]


# The command is a launcher: it leaves its server behind.


@pytest.mark.parametrize("code", [0, 7])
def test_a_server_that_its_launcher_left_behind_serves_the_host_until_stdin_is_closed(
    start: Start, processes: Processes, code: int
) -> None:
    spy = start("left_behind.py", "serves", code)
    server = hello(spy)["pid"]
    assert spy.wait() == code  # Like the launcher itself.
    for n in range(3):
        spy.send(b'{"id":%d}\n' % n)
        assert spy.out.line() == b'{"id":%d}\n' % n
    with spy.recording.open("rb") as file:
        assert is_live(file.fileno())
    spy.close()
    assert spy.out.rest() == spy.err.rest() == b""
    processes.gone(server)
    assert last_notes(spy, processes) == ["eof", "end"]
    assert spy.said("client") == b'{"id":0}\n{"id":1}\n{"id":2}\n'
    assert spy.notes("exit") == [{"code": code, "signal": None, "left": BOTH}]
    assert spy.notes("eof") == [{"from": "client"}, {"from": "server"}]


def test_a_server_that_its_launcher_left_behind_answers_though_stdin_is_closed(
    start: Start, processes: Processes
) -> None:
    spy = start("left_behind.py", "late")
    server = hello(spy)["pid"]
    spy.send(b'{"id":1}\n')
    spy.close()
    assert spy.wait() == 0
    assert spy.out.rest() == b'{"id":1}\n'
    processes.gone(server)
    assert last_notes(spy, processes) == ["eof", "end"]


def test_output_of_a_grandchild_is_forwarded_as_long_as_it_keeps_coming(
    start: Start, processes: Processes, interpreter: list[str]
) -> None:
    spy = start("left_behind.py", "writes", interpreter=interpreter)
    server = hello(spy)["pid"]
    assert spy.wait() == 0
    lines = b"".join(b'{"line":%d}\n' % n for n in range(10))
    assert spy.out.rest() == lines
    processes.gone(server)
    assert last_notes(spy, processes) == ["eof", "end"]
    assert spy.said("server").endswith(b"}\n" + lines)


@linux_only
@pytest.mark.parametrize("name", ["SIGKILL", "SIGTERM", "SIGHUP", "SIGUSR1"])
def test_a_signal_to_the_group_ends_the_relay_with_the_rest(
    start: Start, processes: Processes, name: str
) -> None:
    spy = start("left_behind.py", "serves", start_new_session=True)
    server = hello(spy)["pid"]
    assert spy.wait() == 0
    relays = spy.relays()
    assert len(relays) == 1
    os.killpg(spy.pid, getattr(signal, name))
    processes.gone(server, *relays)
    assert spy.out.rest() == spy.err.rest() == b""
    # A relay that is killed ends nothing. How the server ended is known.
    assert summary(spy).state is RecordingState.ENDED
    assert spy.notes("signal") == [{"signal": name}] * (name != "SIGKILL")


@linux_only
def test_a_relay_ends_with_a_server_that_ignores_sigterm(start: Start, processes: Processes) -> None:
    server = "trap '' TERM; cat <&3 & echo $!; exit 0"
    spy = start("sh", "-c", f"exec 3<&0; {server}", start_new_session=True)
    cat = int(spy.out.line())
    assert spy.wait() == 0
    relays = spy.relays()
    os.killpg(spy.pid, signal.SIGTERM)
    processes.gone(cat, *relays)  # The relay closes its pipes within a second.
    assert spy.out.rest() == b""


@linux_only
def test_a_relay_ends_when_the_host_closes_its_pipes(start: Start, processes: Processes) -> None:
    spy = start("grandchild.py", "silent")
    grandchild = hello(spy)["grandchild"]
    assert spy.wait() == 5
    relays = spy.relays()
    assert len(relays) == 1
    for stream in ("stdin", "stdout", "stderr"):
        spy.close(stream)
    processes.gone(*relays)
    os.kill(grandchild, signal.SIGKILL)
    processes.gone(grandchild)
    assert spy.notes("closed")[0]["by"] == "client"


def test_a_grandchild_gets_sigpipe_when_the_host_closes_the_pipe_of_its_relay(
    start: Start, processes: Processes
) -> None:
    spy = start("sh", "-c", "sh -c 'echo $$; exec yes' & exit 5")
    yes = int(spy.out.line())
    spy.out.line()
    spy.seconds_until_exit()
    assert spy.wait() == 5
    spy.close("stdout")
    processes.gone(yes)


def test_a_recording_is_live_while_a_relay_writes_it_and_has_ended_after(
    start: Start, processes: Processes
) -> None:
    spy = start("left_behind.py", "serves", 7)
    server = hello(spy)["pid"]
    request = b'{"jsonrpc":"2.0","id":%d,"method":"ping"}\n'
    assert spy.wait() == 7
    assert summary(spy).state is RecordingState.LIVE

    async def follow_all() -> list[object]:
        found: list[object] = []
        async for entry in follow(spy.recording, poll=0.01):
            found.append(entry.kind if isinstance(entry, Note) else entry)
            if found[-1] == "exit":
                spy.send(request % 1)
                assert spy.out.line() == request % 1
                spy.close()
        return found

    found = asyncio.run(asyncio.wait_for(follow_all(), 20))
    assert found[-2:] == ["eof", "end"]
    assert [entry.side for entry in found[found.index("exit") :] if isinstance(entry, Frame)] == [
        "client",
        "server",
    ]
    assert summary(spy).state is RecordingState.ENDED
    assert (note := summary(spy).exit) is not None
    assert note.fields == {"code": 7, "signal": None}
    processes.gone(server)


def summary(spy: Spy) -> Summary:
    return summarize(spy.recording, read_header_of(spy.recording))


WITHOUT_FORK = """
import os, sys
from mcpspy.io.stdio import poll_loop
from mcpspy.ui.cli.run import main
def refuse():
    raise BlockingIOError(11, "Resource temporarily unavailable")
poll_loop._fork = refuse
main(sys.argv[2:])
"""


def test_mcpspy_exits_even_if_no_relay_can_be_started(start: Start, processes: Processes) -> None:
    spy = start("left_behind.py", "serves", 7, interpreter=["-c", WITHOUT_FORK])
    server = hello(spy)["pid"]
    assert spy.wait() == 7
    processes.gone(server)  # It got EOF.
    assert spy.out.rest() == b""
    assert b"cannot forward for the processes that the server left behind: " in spy.err.rest()
    assert [entry.note for entry in spy.entries()][-1] == "end"


# SIGTERM, SIGINT, SIGHUP to mcpspy.


@pytest.mark.parametrize("name", ["SIGTERM", "SIGINT", "SIGHUP"])
@pytest.mark.parametrize("whole_group", [False, True], ids=["pid", "group"])
def test_a_signal_reaches_the_server_once_and_its_last_words_the_host(
    start: Start, name: str, whole_group: bool
) -> None:
    number = getattr(signal, name)
    spy = start("goodbye.py", start_new_session=True)
    hello(spy)
    began = time.monotonic()
    if whole_group:
        os.killpg(spy.pid, number)
    else:
        spy.kill(number)
    assert json.loads(spy.out.line())["got"] == [number]
    assert spy.wait() == 3
    assert time.monotonic() - began < BUSY
    assert spy.notes("signal") == [{"signal": name}]
    assert spy.notes("exit") == [{"code": 3, "signal": None}]


def test_a_long_goodbye_is_delivered_whole(start: Start) -> None:
    spy = start("goodbye.py", 1_000_000)
    hello(spy)
    spy.kill(signal.SIGTERM)
    assert len(json.loads(spy.out.line())["padding"]) == 1_000_000
    assert spy.wait() == 3


@pytest.mark.parametrize("whole_group", [False, True], ids=["pid", "group"])
def test_a_host_that_asks_to_leave_and_does_not_read_is_not_kept(start: Start, whole_group: bool) -> None:
    spy = start("goodbye.py", THREE_PIPES, start_new_session=True)
    hello(spy)
    began = time.monotonic()
    if whole_group:
        os.killpg(spy.pid, signal.SIGTERM)
    else:
        spy.kill(signal.SIGTERM)
    assert spy.wait() == 3
    assert time.monotonic() - began < BUSY
    assert spy.notes("exit") == [{"code": 3, "signal": None}]


def test_a_signal_that_only_the_guard_got_does_not_answer_for_a_later_one(
    start: Start, processes: Processes
) -> None:
    spy = start("goodbye.py")
    server = hello(spy)["pid"]
    (guard,) = set(processes.children(spy.pid)) - {server}
    os.kill(guard, signal.SIGTERM)
    spy.stays(1.5)  # Until the guard has reported it: on a busy machine, that takes a while.
    spy.kill(signal.SIGTERM)
    assert json.loads(spy.out.line())["got"] == [signal.SIGTERM]
    assert spy.wait() == 3


COUNTS_SIGNALS = """
import os, signal
for number in (signal.SIGUSR1, signal.SIGTERM):
    signal.signal(number, lambda number, _: os.write(1, b'{"got":%d}\\n' % number))
os.write(1, b'{}\\n')
while os.read(0, 100):
    pass
"""


def noted(spy: Spy, count: int) -> bool:
    return len(spy.notes("signal")) == count


@pytest.mark.parametrize("whole_group", [False, True], ids=["pid", "group"])
def test_each_of_many_signals_reaches_the_server_once(
    start: Start, processes: Processes, whole_group: bool
) -> None:
    spy = start(sys.executable, "-I", "-S", "-c", COUNTS_SIGNALS, start_new_session=True)
    hello(spy)
    for number in range(1, 11):
        if whole_group:
            os.killpg(spy.pid, signal.SIGUSR1)
        else:
            spy.kill(signal.SIGUSR1)
        spy.stays(0.05)
        # A signal that a process has not handled yet swallows the next one.
        processes.eventually(partial(noted, spy, number))
    out, _ = spy.finish()
    assert out == b'{"got":%d}\n' % signal.SIGUSR1 * 10
    assert spy.notes("signal") == [{"signal": "SIGUSR1"}] * 10


def test_a_signal_to_the_group_does_not_answer_for_one_that_follows_at_once(start: Start) -> None:
    spy = start(sys.executable, "-I", "-S", "-c", COUNTS_SIGNALS, start_new_session=True)
    hello(spy)
    for _ in range(5):
        os.killpg(spy.pid, signal.SIGUSR1)
        assert hello(spy) == {"got": signal.SIGUSR1}
        spy.kill(signal.SIGUSR1)
        assert hello(spy) == {"got": signal.SIGUSR1}
    assert spy.finish() == (b"", b"")


def test_signals_reach_the_server_without_a_guard_too(start: Start, processes: Processes) -> None:
    spy = start("goodbye.py")
    server = hello(spy)["pid"]
    (guard,) = set(processes.children(spy.pid)) - {server}
    os.kill(guard, signal.SIGKILL)
    spy.kill(signal.SIGTERM)
    assert json.loads(spy.out.line())["got"] == [signal.SIGTERM]
    assert spy.wait() == 3


@pytest.mark.parametrize("is_socket", [False, True], ids=["pipe", "socket"])
def test_a_stdin_that_was_closed_before_a_server_that_does_not_read_was_ended_is_in_the_recording(
    start: Start, is_socket: bool
) -> None:
    """Reading stops while nothing can be written, before the end of stdin. The pipes of Node are sockets."""
    ours, theirs = socket.socketpair()
    with ours, theirs:
        spy = start(
            *("sh", "-c", "echo {}; exec sleep 60"),
            stdin=theirs.fileno() if is_socket else subprocess.PIPE,
        )
        hello(spy)
        if is_socket:
            ours.sendall(bytes(THREE_PIPES))
            ours.shutdown(socket.SHUT_WR)
        else:
            spy.send(bytes(THREE_PIPES))
            spy.close()
        spy.kill(signal.SIGTERM)
        assert spy.wait() == -signal.SIGTERM
    notes = [entry.note for entry in spy.entries() if entry.note and entry.fields.get("from") != "server"]
    assert [note for note in notes if note != "unread"] == ["signal", "eof", "closed", "exit"]


STOPPED_AT_THE_START = """
import os, signal, sys
from mcpspy.io.stdio import run as stdio
from mcpspy.ui.cli.run import main
opens = stdio.open_recorder
def signalled(options):
    os.kill(os.getpid(), signal.{name})
    return opens(options)
stdio.open_recorder = signalled
main(sys.argv[2:])
"""
"""A signal at the earliest possible moment: the server runs, and nothing else is ready."""


def test_a_signal_in_the_first_moment_reaches_the_server(start: Start) -> None:
    spy = start("sh", "-c", "exec sleep 60", interpreter=["-c", STOPPED_AT_THE_START.format(name="SIGTERM")])
    assert spy.wait() == -signal.SIGTERM
    assert spy.notes("exit") == [{"code": None, "signal": "SIGTERM"}]


def test_sigkill_in_the_first_moment_leaves_no_server(start: Start, processes: Processes) -> None:
    before = processes.children(os.getpid())
    spy = start("deaf.py", interpreter=["-c", STOPPED_AT_THE_START.format(name="SIGKILL")])
    assert spy.wait() == -signal.SIGKILL
    processes.gone(*set(processes.children(os.getpid())) - set(before))


# SIGKILL to mcpspy.

LAUNCHERS = {
    "direct": [],
    "shell": ["sh", "-c", '"$@"; exit $?', "sh"],
    "launcher": ["launcher.py"],
}


@pytest.mark.parametrize("launcher", LAUNCHERS)
@pytest.mark.parametrize("whole_group", [False, True], ids=["pid", "group"])
def test_sigkill_leaves_no_server_behind_even_one_that_ignores_eof_and_sigterm(
    start: Start, processes: Processes, launcher: str, whole_group: bool
) -> None:
    spy = start(*LAUNCHERS[launcher], *start.command("deaf.py"), start_new_session=True)
    server = hello(spy)["pid"]
    family = processes.family(spy.pid)
    assert server in family
    began = time.monotonic()
    if whole_group:
        os.killpg(spy.pid, signal.SIGKILL)
    else:
        spy.kill(signal.SIGKILL)
    assert spy.wait() == -signal.SIGKILL
    processes.gone(*family)
    assert time.monotonic() - began < BUSY


@linux_only
def test_sigkill_leaves_a_polite_server_its_time_to_finish(start: Start, processes: Processes) -> None:
    spy = start("goodbye.py")
    server = hello(spy)["pid"]
    family = processes.family(spy.pid)
    spy.kill(signal.SIGKILL)
    spy.wait()
    _, status = os.waitpid(server, 0)  # The orphan is a child of this process.
    assert os.WIFEXITED(status), "it got SIGTERM and exited a third of a second later"
    processes.gone(*family)


# The server ignores EOF and SIGTERM.


def test_a_server_that_ignores_eof_and_sigterm_is_left_alone_while_the_host_lives(start: Start) -> None:
    spy = start("deaf.py")
    pid = hello(spy)["pid"]
    spy.kill(signal.SIGTERM)
    assert spy.out.line() == b'{"ignored":"SIGTERM"}\n'
    spy.send(b'{"id":1}\n')
    assert spy.out.line() == b'{"heard":{"id":1}}\n'
    spy.close()
    assert spy.out.line() == b'{"ignored":"EOF"}\n'
    spy.stays(2.5)
    spy.kill(signal.SIGTERM)
    assert spy.out.line() == b'{"ignored":"SIGTERM"}\n'
    os.kill(pid, signal.SIGKILL)
    assert spy.wait() == -signal.SIGKILL
    assert spy.notes("signal") == [{"signal": "SIGTERM"}] * 2


# One side stops reading.


def test_stderr_and_stdin_flow_while_the_host_does_not_read_stdout(
    start: Start, interpreter: list[str]
) -> None:
    spy = start("chatter.py", interpreter=interpreter)
    for n in range(300):
        spy.send(b'{"id":%d,"padding":"%b"}\n' % (n, b"x" * 2000))
        assert spy.err.line().startswith(b'{"id":%d,' % n)
    if sys.platform == "linux":
        assert spy.peak_memory() < 40 * MB
    spy.close()
    spy.out.rest()
    assert spy.wait() == 0
    assert spy.told() == spy.said("client")


def test_stderr_flows_while_the_server_does_not_read_stdin(start: Start) -> None:
    spy = start("mute.py")
    pid = hello(spy)["pid"]
    assert spy.process.stdin is not None
    fd = spy.process.stdin.fileno()
    os.set_blocking(fd, False)  # The host's own end, which it does not share.
    sent = 0
    for _ in range(5):
        try:
            while True:
                sent += os.write(fd, b"x" * 999 + b"\n")
        except BlockingIOError:
            assert spy.err.line() == b"not reading yet\n"
    if sys.platform == "linux":
        assert sent <= 4 * 65536
        assert spy.peak_memory() < 40 * MB
    spy.close()
    os.kill(pid, signal.SIGUSR1)
    assert json.loads(spy.out.line()) == {"bytes": sent}
    assert spy.wait() == 0


# One side closes its pipes.


def test_the_host_sees_epipe_when_the_server_closes_its_stdin(start: Start, processes: Processes) -> None:
    spy = start("shut.py", 0)
    assert hello(spy) == {"closed": 0}

    def refused() -> bool:
        try:
            spy.send(b'{"id":1}\n')
        except BrokenPipeError:
            return True
        return False

    processes.eventually(refused)
    spy.kill(signal.SIGTERM)
    assert spy.wait() == -signal.SIGTERM
    assert spy.said("client") == b'{"id":1}\n' * (len(spy.said("client")) // 9)


def test_the_host_sees_eof_when_the_server_closes_its_stdout(start: Start) -> None:
    spy = start("shut.py", 1)
    assert spy.err.line() == b'{"closed":1}\n'
    assert spy.out.rest() == b""
    spy.stays(0.4)
    spy.kill(signal.SIGTERM)
    assert spy.wait() == -signal.SIGTERM


@pytest.mark.parametrize("stream", ["stdout", "stderr"])
def test_the_server_dies_of_sigpipe_when_the_host_closes(start: Start, stream: str) -> None:
    spy = start("sh", "-c", "exec yes" if stream == "stdout" else "exec yes >&2")
    received = spy.out if stream == "stdout" else spy.err
    assert received.line() == b"y\n"
    spy.close(stream)
    assert spy.wait() == -signal.SIGPIPE
    (closed,) = spy.notes("closed")
    assert (closed["by"], closed["pipe"]) == ("client", stream)


def test_the_server_dies_of_sigpipe_when_the_host_closes_a_socket(start: Start) -> None:
    ours, theirs = socket.socketpair()
    spy = start("yes", stdout=theirs.fileno())
    theirs.close()
    assert ours.recv(2) == b"y\n"
    ours.close()
    assert spy.wait() == -signal.SIGPIPE


@linux_only
def test_the_server_has_the_signal_dispositions_it_would_have(start: Start) -> None:
    command = ["grep", "-E", "^Sig(Blk|Ign|Cgt)", "/proc/self/status"]
    direct = subprocess.run(command, stdout=subprocess.PIPE, check=True, timeout=20).stdout

    def dispositions(status: bytes) -> list[tuple[bytes, int]]:
        pairs = [line.split(b":\t") for line in status.splitlines()]
        # Numbers above 31 are real-time signals; a C library reserves the first two.
        return [(name, int(signals, 16) & 0x7FFFFFFF) for name, signals in pairs]

    out, _ = start(*command).finish()
    assert dispositions(out) == dispositions(direct)


def test_the_server_is_given_what_it_would_be_given(start: Start, tmp_path: Path) -> None:
    command = start.command("state.py", "an argument", "", "--no-record", "\u00e9")
    direct = subprocess.run(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=tmp_path, check=True, timeout=20
    )
    spy = start(*command, cwd=tmp_path)
    expected = json.loads(direct.stdout)
    assert hello(spy) == expected
    assert spy.wait() == 0
    assert expected["arguments"] == ["an argument", "", "--no-record", "\u00e9"]
    assert spy.header()["cwd"] == str(tmp_path)


def test_the_server_keeps_a_descriptor_it_was_meant_to_inherit(start: Start) -> None:
    read, write = os.pipe()
    spy = start(sys.executable, "-c", f"import os; os.write({write}, b'inherited')", pass_fds=[write])
    os.close(write)
    assert spy.wait() == 0
    with open(read, "rb") as pipe:
        assert pipe.read() == b"inherited"


# The command does not start.


def test_a_command_that_is_not_found_is_exit_127_and_a_line(start: Start) -> None:
    spy = start("no-such-command-anywhere", "x")
    out, err = spy.finish()
    assert (out, spy.wait()) == (b"", 127)
    line = "cannot start no-such-command-anywhere: not found on PATH"
    assert err.decode() == f"mcpspy: {line}{HOST_PATH}\n"
    assert [note["text"] for note in spy.notes("error")] == [line]
    assert spy.notes("exit") == [{"code": 127, "signal": None}]
    assert spy.header()["command"] == ["no-such-command-anywhere", "x"]


@pytest.mark.parametrize("content", [None, b"\x7fELF\0\0"], ids=["no permission", "another processor"])
def test_a_command_that_is_not_executable_is_exit_126_and_a_line(
    start: Start, tmp_path: Path, content: bytes | None
) -> None:
    program = tmp_path / "server"
    program.write_bytes(content or b"#!/bin/sh\n")
    program.chmod(0o755 if content else 0o644)
    spy = start(str(program))
    _, err = spy.finish()
    assert spy.wait() == 126
    assert err.startswith(f"mcpspy: cannot start {program}: ".encode())
    assert err.count(b"\n") == 1
    assert spy.notes("exit") == [{"code": 126, "signal": None}]


@pytest.mark.parametrize("by_path", [True, False], ids=["path", "name"])
def test_a_script_without_an_interpreter_line_is_run_by_the_shell(
    start: Start, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, by_path: bool
) -> None:
    script = tmp_path / "server"
    script.write_text('echo "$0 $1"; exec cat\n', encoding="utf-8")
    script.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    spy = start(str(script) if by_path else "server", "a b")
    assert spy.finish(b"{}\n") == (f"{script} a b\n{{}}\n".encode(), b"")
    assert spy.wait() == 0
    assert spy.header()["command"] == [str(script) if by_path else "server", "a b"]


# The recording fails, the traffic does not.


def unrecorded(spy: Spy) -> bytes:
    """Assert that traffic continues unchanged, with one line on stderr. Return that line."""
    data = b'{"id":1}\n' * 10_000 + b"\xff\x00half"
    out, err = spy.finish(data)
    assert (out, spy.wait()) == (data, 7)
    assert err.count(b"\n") == 1
    return err


def test_an_impossible_path_of_the_recording_is_one_line(start: Start, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    path = str(tmp_path / "file" / "x.jsonl")
    assert path.encode() in unrecorded(start("echo.py", 7, options=["--record", path]))


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_read_only_folder_is_one_line(start: Start, tmp_path: Path) -> None:
    (tmp_path / "locked").mkdir(mode=0o500)
    assert b"Permission denied" in unrecorded(
        start("echo.py", 7, options=["--dir", str(tmp_path / "locked")])
    )


def test_a_pipe_is_not_a_recording(start: Start, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    err = unrecorded(start("echo.py", 7, options=["--record", str(tmp_path / "pipe")]))
    assert b": not a regular file; " in err


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="Linux has a disk that is always full")
def test_a_full_disk_is_one_line(start: Start) -> None:
    err = unrecorded(start("echo.py", 7, options=["--record", "/dev/full"]))
    assert err == b"mcpspy: cannot write /dev/full: No space left on device; traffic continues unrecorded\n"


def test_several_may_record_to_the_null_device(start: Start) -> None:
    options = ["--record", "/dev/null"]
    first, second = start("echo.py", options=options), start("echo.py", options=options)
    for spy in (first, second):
        spy.send(b"{}\n")
        assert spy.out.line() == b"{}\n"
    assert [spy.finish() for spy in (first, second)] == [(b"", b"")] * 2


@linux_only
def test_a_disk_that_recovers_gets_a_note_of_what_was_lost(start: Start, processes: Processes) -> None:
    spy = start("echo.py")
    count = 0

    def exchange(size: int = 100) -> None:
        nonlocal count
        count += 1
        message = b'{"id":%d,"x":"%b"}\n' % (count, b"x" * size)
        spy.send(message)
        assert spy.out.line() == message

    exchange()
    _, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.prlimit(spy.pid, resource.RLIMIT_FSIZE, (spy.recording.stat().st_size + 250, hard))
    for _ in range(50):  # More than can wait in memory.
        exchange(100_000)
    assert b": File too large; traffic continues unrecorded\n" in spy.err.line()
    resource.prlimit(spy.pid, resource.RLIMIT_FSIZE, (hard, hard))

    def recovered() -> bool:
        exchange()
        return spy.err.is_ready()

    processes.eventually(recovered)
    assert b" again; " in spy.err.line()
    exchange()
    assert spy.finish() == (b"", b"")
    (lost,) = spy.notes("lost")
    assert lost["why"] == "File too large"
    kept = [entry for entry in spy.entries() if entry.kind == "msg"]
    assert len(kept) + lost["entries"] == 2 * count
    assert b'"id":1,' in kept[0].payload
    assert b'"id":%d,' % count in kept[-1].payload


RECORDER_WITH_A_BUG = """
import sys
from mcpspy.core.recording.encode import FrameEncoder
from mcpspy.ui.cli.run import main
def feed(self, at, data):
    raise ZeroDivisionError("a bug")
FrameEncoder.feed = feed
main(sys.argv[2:])
"""


def test_a_bug_in_the_recorder_is_one_line(start: Start) -> None:
    err = unrecorded(start("echo.py", 7, interpreter=["-c", RECORDER_WITH_A_BUG]))
    assert (
        err
        == b"mcpspy: recording stopped by a bug in mcpspy: ZeroDivisionError: a bug; traffic continues unrecorded\n"
    )


# Inherited descriptors.


@pytest.fixture(params=["pipes", "sockets"])
def shared(request: pytest.FixtureRequest) -> Iterator[tuple[list[int], list[int]]]:
    """Three descriptors for mcpspy, of which the host keeps copies, and the host's own ends of them."""
    if request.param == "pipes":
        pairs = [os.pipe(), os.pipe()[::-1], os.pipe()[::-1]]
    else:  # As Node passes them on.
        pairs = [(theirs.detach(), ours.detach()) for theirs, ours in (socket.socketpair() for _ in range(3))]
    yield [theirs for theirs, _ in pairs], [ours for _, ours in pairs]
    for pair in pairs:
        for fd in pair:
            os.close(fd)


def test_inherited_descriptors_stay_blocking_during_and_after(
    start: Start, tmp_path: Path, shared: tuple[list[int], list[int]], interpreter: list[str]
) -> None:
    theirs, ours = shared
    data = b"".join(b'{"n":%d}\n' % n for n in range(150_000))
    (tmp_path / "data").write_bytes(data)
    spy = start(
        "pour.py",
        tmp_path / "data",
        stdin=theirs[0],
        stdout=theirs[1],
        stderr=theirs[2],
        interpreter=interpreter,
    )
    got = b""
    while len(got) < len(data):
        assert select.select([ours[1]], [], [], 20)[0]
        got += os.read(ours[1], 65536)
        assert nonblocking(*theirs) == []
    spy.kill(signal.SIGTERM)
    assert spy.wait() == -signal.SIGTERM
    assert nonblocking(*theirs) == []
    assert got == data


def test_a_socket_that_is_shut_for_writing_is_eof(start: Start) -> None:
    (ours, stdin), (received, stdout) = socket.socketpair(), socket.socketpair()
    spy = start("echo.py", 7, stdin=stdin.fileno(), stdout=stdout.fileno())
    stdin.close()
    stdout.close()
    ours.sendall(b'{"id":1}\n')
    ours.shutdown(socket.SHUT_WR)
    with received, received.makefile("rb") as file:
        received.settimeout(20)
        assert file.read() == b'{"id":1}\n'
    ours.close()
    assert spy.wait() == 7


def test_a_sibling_that_shares_stdout_loses_nothing(start: Start, tmp_path: Path) -> None:
    (tmp_path / "ours").write_bytes(b"a" * 99 + b"\n" + (b"a" * 99 + b"\n") * 20_000)
    (tmp_path / "sibling").write_bytes(b"b" * 3_000_000)
    both = ["sh", "-c", 'file=$1; shift; "$@" & cat "$file"; wait', "sh", str(tmp_path / "sibling")]
    spy = start("pour.py", tmp_path / "ours", through=both)
    got = b""
    while got.count(b"\n") < 20_001 or got.count(b"b") < 3_000_000:
        assert spy.out.is_ready(20), "bytes are missing"
        got += spy.out.some()
    spy.close()
    assert spy.wait() == 0
    assert (got.count(b"a"), got.count(b"b")) == (99 * 20_001, 3_000_000)


@pytest.fixture
def terminal() -> Iterator[tuple[int, int]]:
    """A terminal in raw mode: the user's end, and the program's."""
    ours, theirs = pty.openpty()
    modes = termios.tcgetattr(theirs)
    modes[1] &= ~termios.OPOST
    modes[3] &= ~termios.ECHO
    termios.tcsetattr(theirs, termios.TCSANOW, modes)
    yield ours, theirs
    os.close(ours)
    os.close(theirs)


def test_a_terminal_on_all_three_stays_blocking(start: Start, terminal: tuple[int, int]) -> None:
    ours, theirs = terminal
    spy = start("echo.py", 7, stdin=theirs, stdout=theirs, stderr=theirs)
    for n in range(20):
        os.write(ours, b'{"id":%d}\n' % n)
        assert select.select([ours], [], [], 20)[0]
        assert os.read(ours, 65536) == b'{"id":%d}\n' % n
        assert nonblocking(theirs) == []
    os.write(ours, b"\x04")
    assert spy.wait() == 7
    assert nonblocking(theirs) == []
    assert spy.said("client") == spy.said("server") != b""


def test_a_terminal_that_no_one_reads_does_not_stall_the_rest(
    start: Start, processes: Processes, terminal: tuple[int, int]
) -> None:
    ours, theirs = terminal
    spy = start("chatter.py", stdout=theirs)
    processes.eventually(lambda: not select.select([], [theirs], [], 0)[1])  # The terminal is full.
    for n in range(100):
        spy.send(b'{"id":%d}\n' % n)
        assert spy.err.line() == b'{"id":%d}\n' % n
    spy.close()
    spy.stays(0.5)  # The last output is still in transit.
    while spy.process.poll() is None:
        if select.select([ours], [], [], 0.01)[0]:
            os.read(ours, 65536)
    assert spy.wait() == 0


def test_a_terminal_that_no_one_reads_does_not_keep_a_host_that_asks_to_leave(
    start: Start, terminal: tuple[int, int]
) -> None:
    _, theirs = terminal
    spy = start("chatter.py", stdout=theirs)
    spy.send(b'{"id":1}\n')
    assert spy.err.line() == b'{"id":1}\n'
    began = time.monotonic()
    spy.kill(signal.SIGTERM)
    assert spy.wait() == -signal.SIGTERM
    assert time.monotonic() - began < BUSY


def test_a_relay_writes_to_the_terminal_after_mcpspy_has_exited(
    start: Start, processes: Processes, terminal: tuple[int, int]
) -> None:
    ours, theirs = terminal
    spy = start("left_behind.py", "writes", stdout=theirs)
    got = b""
    while b'{"line":9}\n' not in got:
        assert select.select([ours], [], [], 20)[0]
        got += os.read(ours, 65536)
    assert spy.wait() == 0
    first, *lines = got.splitlines()
    assert [json.loads(line) for line in lines] == [{"line": n} for n in range(10)]
    processes.gone(json.loads(first)["pid"])
    assert last_notes(spy, processes) == ["eof", "end"]


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&-", "<&- >&- 2>&-"])
def test_a_standard_descriptor_that_is_closed_at_the_start_is_survived(start: Start, closed: str) -> None:
    spy = start(
        "sh", "-c", "cat; echo out; echo err >&2; exit 7", through=["sh", "-c", f'exec "$@" {closed}', "sh"]
    )
    out, err = spy.finish(b"")
    assert out == (b"" if " >&-" in f" {closed}" else b"out\n")
    assert err == (b"" if "2>&-" in closed else b"err\n")
    assert spy.wait() == 7
    assert (spy.said("server"), spy.told()) == (b"out\n", b"err\n")


def test_a_sighup_that_is_ignored_stays_ignored(start: Start) -> None:
    spy = start("echo.py", through=["sh", "-c", 'trap "" HUP; exec "$@"', "sh"])
    spy.send(b"{}\n")
    assert spy.out.line() == b"{}\n"
    spy.kill(signal.SIGHUP)
    spy.stays(0.2)  # Longer than mcpspy takes to forward a signal.
    spy.send(b"[]\n")
    assert spy.out.line() == b"[]\n"
    assert spy.finish() == (b"", b"")
    assert spy.wait() == 0
    assert spy.notes("signal") == []


# Large and unusual messages.

SIZE = 40 * MB
"""Two copies of a line exceed the memory that mcpspy may use for it, as at any larger size."""

LINES = {
    "json": lambda: b'{"x":"' + b"0123456789abcdef" * (SIZE // 16 - 1) + b'"}\n',
    "not-utf8": lambda: b"\xff" + b"0123456789abcde\xe9" * (SIZE // 16 - 1) + b"\n",
    "not-json": lambda: "\u00e9".encode() * (SIZE // 2 - 1) + b"\n",
}


LARGE = ["--max-body", "80M"]


@pytest.mark.parametrize(("kind", "way"), [("json", "out"), ("not-utf8", "in"), ("not-json", "out")])
def test_a_line_of_40_mb_passes_whole_in_bounded_memory(
    start: Start, tmp_path: Path, kind: str, way: str
) -> None:
    data = LINES[kind]()
    path = tmp_path / "data"
    if way == "out":
        path.write_bytes(data)
        spy = start("pour.py", path, options=[*LARGE, "--record", str(start.recording)])
        got = bytearray()
        while len(got) < len(data):
            assert spy.out.is_ready(60)  # All of it is searched for secrets before its end is forwarded.
            got += spy.out.some()
        assert got == data
        del got
    else:
        spy = start("sink.py", path, options=[*LARGE, "--record", str(start.recording)])
        spy.send(data)
        while json.loads(spy.out.line())["bytes"] < len(data):
            pass
        assert path.read_bytes() == data
    if sys.platform == "linux":
        assert spy.peak_memory() <= 1.5 * len(data) + 30 * MB
    spy.finish()
    assert spy.wait() == 0
    assert spy.said("server" if way == "out" else "client") == data


@pytest.mark.parametrize("options", [[], ["--rule", "tool:nothing => delay 2s"], ["--no-record"]])
def test_a_line_above_the_limit_passes_in_flat_memory_and_is_counted(
    start: Start, options: list[str]
) -> None:
    where = [] if "--no-record" in options else ["--record", str(start.recording)]
    spy = start("echo.py", options=["--max-body", "1M", *options, *where])
    line = b'{"id":1,"x":"' + b"0123456789abcdef" * (4 * MB) + b'"}'
    small = b'{"id":2}\n'
    got = 0
    with ThreadPoolExecutor(1) as pool:
        sent = pool.submit(spy.send, line + b"\n" + small)
        digest = hashlib.sha256()
        while got <= len(line) + len(small):
            data = spy.out.some()
            assert data, "the session has ended"
            got += len(data)
            digest.update(data)
        sent.result()
    assert digest.digest() == hashlib.sha256(line + b"\n" + small).digest()
    if sys.platform == "linux":
        assert spy.peak_memory() <= 60 * MB
    spy.finish()
    assert spy.wait() == 0
    if "--no-record" in options:
        return
    found = hashlib.sha256(line).hexdigest()
    assert [(note["from"], note["size"], note["sha256"]) for note in spy.notes("oversized")] == [
        (side, len(line), found) for side in ("client", "server")
    ]
    assert [entry.payload for entry in spy.entries() if entry.side] == [small, small]


def test_stderr_without_line_ends_is_forwarded_and_counted(start: Start, tmp_path: Path) -> None:
    (tmp_path / "data").write_bytes(b"x" * 3 * MB)
    command = ("sh", "-c", 'cat "$0" >&2; exit 3', str(tmp_path / "data"))
    spy = start(*command, options=["--record", str(start.recording), "--max-body", "1M"])
    _, err = spy.finish()
    assert (err == b"x" * 3 * MB, spy.wait()) == (True, 3)
    (note,) = spy.notes("oversized")
    assert (note["pipe"], note["size"], note["torn"]) == ("stderr", 3 * MB, True)


@linux_only
@pytest.mark.parametrize("options", [[], ["--rule", "tool:nothing => delay 2s"]])
def test_without_memory_for_the_recording_the_traffic_continues(start: Start, options: list[str]) -> None:
    spy = start("echo.py", 7, options=["--record", str(start.recording), "--max-body", "1G", *options])
    spy.send(b'{"id":1}\n')
    assert spy.out.line() == b'{"id":1}\n'
    with open(f"/proc/{spy.pid}/statm", encoding="ascii") as file:
        now = int(file.read().split()[0]) * resource.getpagesize()
    resource.prlimit(spy.pid, resource.RLIMIT_AS, (now + 30 * MB, resource.RLIM_INFINITY))
    data = b'{"id":2,"x":"' + b"x" * 80 * MB + b'"}\n{"id":3}\n'
    got = bytearray()
    with ThreadPoolExecutor(1) as pool:
        sent = pool.submit(spy.send, data)
        while len(got) < len(data):
            more = spy.out.some()
            assert more, spy.err.rest()
            got += more
        sent.result()
    assert got == data
    _, err = spy.finish()
    assert (err, spy.wait()) == (b"mcpspy: cannot record: out of memory; traffic continues unrecorded\n", 7)
    assert spy.said("client").startswith(b'{"id":1}\n')


def garbage(size: int) -> bytes:
    """Return lines of every malformed kind, the last one without an end."""
    dice = random.Random(20)
    kinds: list[Callable[[], bytes]] = [
        lambda: dice.randbytes(dice.randrange(200)),
        lambda: b"\x00" * dice.randrange(20),
        lambda: b"{" + dice.randbytes(20) + b"}",
        lambda: dice.choice([b"", b"{oops}", b'{"id":1}\r', b"\xed\xa0\x80", '{"\u00e9":"\u2028"}'.encode()]),
        lambda: b"x" * dice.choice([4095, 4096, 65535, 65536, 65537]),
    ]
    lines = []
    while size > 0:
        lines.append(dice.choice(kinds)() + b"\n")
        size -= len(lines[-1])
    return b"".join(lines) + b'{"half":"\xc3'


def test_garbage_passes_unchanged_both_ways_and_the_file_stays_readable(start: Start) -> None:
    data = garbage(8 * MB)
    spy = start("echo.py")
    out, err = spy.finish(data)
    assert (out == data, err, spy.wait()) == (True, b"", 0)
    entries = spy.entries()
    for side in ("client", "server"):
        said = [entry for entry in entries if entry.side == side]
        assert b"".join(entry.payload for entry in said) == data
        assert said[-1].fields["eol"] == ""
    assert {entry.kind for entry in entries} == {"msg", "raw", "b64", ""}


def test_garbage_on_stderr_passes_unchanged(start: Start, tmp_path: Path) -> None:
    data = garbage(MB)
    (tmp_path / "data").write_bytes(data)
    spy = start("sh", "-c", 'exec cat "$0" >&2', str(tmp_path / "data"))
    out, err = spy.finish()
    assert (out, err == data, spy.wait()) == (b"", True, 0)
    assert spy.told() == data


def test_a_half_line_is_delivered_before_its_end_comes(start: Start) -> None:
    spy = start("echo.py")
    spy.send(b'{"id"')
    assert spy.out.is_ready(20)
    assert spy.out.some() == b'{"id"'
    assert spy.finish(b":1}\n") == (b":1}\n", b"")
    assert spy.said("client") == spy.said("server") == b'{"id":1}\n'


# kill -9.


class Killed:
    """The remains of a session whose mcpspy was killed after N bytes from the server."""

    def __init__(self, start: Start, folder: Path, moment: int) -> None:
        self.moment = moment
        self.recording = folder / f"{moment}.jsonl"
        self.counter = folder / f"{moment}.tally"
        spy = start(
            "tally.py", self.counter, options=["--record", str(self.recording)], stderr=subprocess.DEVNULL
        )
        process = spy.process
        assert process.stdin is not None
        assert process.stdout is not None
        stdin, stdout = process.stdin.fileno(), process.stdout.fileno()
        os.set_blocking(stdin, False)
        self.got = bytearray()
        batch = b"".join(b'{"jsonrpc":"2.0","id":%d,"padding":"%b"}\n' % (n, b"c" * 300) for n in range(50))
        rest = batch
        while len(self.got) < moment:
            readable, writable, _ = select.select([stdout], [stdin], [], 20)
            assert readable or writable
            if readable:
                self.got += os.read(stdout, 65536)
            if writable:
                rest = rest[os.write(stdin, rest) :] or batch
        spy.kill(signal.SIGKILL)
        process.stdin.close()
        self.got += spy.out.rest()
        process.stdout.close()
        spy.wait()


def test_kill_9_at_any_moment_loses_nothing_that_a_peer_received(
    start: Start, processes: Processes, tmp_path: Path, read_entries: Callable[[bytes], list[Entry]]
) -> None:
    seed = random.randrange(1 << 32)
    dice = random.Random(seed)
    before = processes.children(os.getpid())
    moments = dice.sample(range(1, 1_000_000), 20)  # Others in each run.
    with ThreadPoolExecutor(3) as pool:
        sessions = list(pool.map(lambda moment: Killed(start, tmp_path, moment), moments))
    processes.gone(*set(processes.children(os.getpid())) - set(before))
    for killed in sessions:
        where = f"seed {seed}, killed after {killed.moment} bytes"
        file = killed.recording.read_bytes()
        *whole, _torn = file.split(b"\n")
        entries = read_entries(b"\n".join([*whole, b""]))
        said = b"".join(entry.payload for entry in entries if entry.side == "server")
        assert said.startswith(killed.got[: killed.got.rfind(b"\n") + 1]), where
        asked = sum(entry.side == "client" for entry in entries)
        assert asked >= int(killed.counter.read_text(encoding="ascii")), where
        # A busy machine may pause within a line.
        assert {entry.note for entry in entries} <= {"", "unfinished"}, where
        with killed.recording.open("rb") as open_file:
            assert not is_live(open_file.fileno()), where


# The file.


def test_a_recording_is_live_while_mcpspy_is_and_dead_after(start: Start) -> None:
    spy = start("echo.py")
    spy.send(b"{}\n")
    assert spy.out.line() == b"{}\n"
    with spy.recording.open("rb") as file:
        assert is_live(file.fileno())
        spy.finish()
        assert not is_live(file.fileno())


def test_a_recording_is_dead_after_kill_9_at_once(start: Start, processes: Processes) -> None:
    spy = start("deaf.py")
    hello(spy)
    family = processes.family(spy.pid)
    with spy.recording.open("rb") as file:
        assert is_live(file.fileno())
        spy.kill(signal.SIGKILL)
        spy.wait()
        assert not is_live(file.fileno()), "the server or the guard holds the file open"
    processes.gone(*family)


def test_a_message_is_in_the_file_before_the_server_answers(start: Start) -> None:
    spy = start("echo.py")
    for n in range(50):
        spy.send(b'{"id":%d}\n' % n)
        line = spy.out.line()
        assert spy.said("client").endswith(line)
        assert spy.said("server").endswith(line)
    spy.finish()


def test_two_starts_with_one_path_never_share_a_file(start: Start) -> None:
    first = start("echo.py")
    first.send(b'{"id":1}\n')
    first.out.line()
    second = start("echo.py")
    out, err = second.finish(b'{"id":2}\n')
    other = first.recording.with_name("recording-2.jsonl")
    assert err == f"mcpspy: {first.recording} exists; recording to {other}\n".encode()
    assert out == b'{"id":2}\n'
    first.finish()
    assert first.said("client") == b'{"id":1}\n'
    second.recording = other
    assert second.said("client") == b'{"id":2}\n'


def test_many_starts_at_once_with_one_path_get_a_file_each(start: Start, tmp_path: Path) -> None:
    spies = [start("echo.py") for _ in range(6)]
    for n, spy in enumerate(spies):
        spy.finish(b'{"id":%d}\n' % n)
    files = sorted(tmp_path.glob("*.jsonl"))
    assert len(files) == 6
    assert sorted(file.read_bytes().count(b'"msg"') for file in files) == [2] * 6


def test_a_recording_is_private_in_a_private_folder(start: Start, tmp_path: Path) -> None:
    folder = tmp_path / "sessions"
    spy = start("echo.py", options=["--dir", str(folder)], umask=0)
    spy.finish(b"{}\n")
    (file,) = folder.iterdir()
    assert folder.stat().st_mode & 0o777 == 0o700
    assert file.stat().st_mode & 0o777 == 0o600


def test_the_environment_sets_the_folder_of_the_recording(start: Start, tmp_path: Path) -> None:
    spy = start(
        "echo.py", options=["--name", "my server"], env={**os.environ, "MCPSPY_DIR": str(tmp_path / "here")}
    )
    spy.finish(b"{}\n")
    (file,) = (tmp_path / "here").iterdir()
    assert "-my-server-" in file.name
    spy.recording = file
    parent = spy.header()["parent"]
    assert parent["pid"] == os.getpid()
    assert spy.header() == {
        "mcpspy": 1,
        "id": spy.header()["id"],
        "started": spy.header()["started"],
        "transport": "stdio",
        "origin": "host",
        "command": start.command("echo.py"),
        "cwd": os.getcwd(),
        "name": "my server",
        "pid": spy.pid,
        "parent": parent,
        "redacted": True,
    }


def test_nothing_is_recorded_where_nothing_is_to_be(start: Start, tmp_path: Path) -> None:
    spy = start(
        "echo.py", 7, options=["--no-record"], env={**os.environ, "MCPSPY_DIR": str(tmp_path / "here")}
    )
    assert spy.finish(b"{}\n") == (b"{}\n", b"")
    assert spy.wait() == 7
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("event", ["deleted", "truncated"])
def test_a_recording_that_disappears_continues_in_a_part(
    start: Start, tmp_path: Path, read_entries: Callable[[bytes], list[Entry]], event: str
) -> None:
    first = tmp_path / "x.jsonl"
    spy = start("echo.py", options=["--record", str(first)])
    spy.send(b'{"id":1}\n')
    assert spy.out.line() == b'{"id":1}\n'
    if event == "deleted":
        first.unlink()
    else:
        os.truncate(first, 0)
    spy.send(b'{"id":2}\n')
    assert spy.out.line() == b'{"id":2}\n'
    _, err = spy.finish()
    spy.wait()
    part = tmp_path / "x.part2.jsonl"
    assert err.decode() == f"mcpspy: {first} was {event}; recording to {part}\n"
    header, *entries = read_entries(part.read_bytes())
    assert header.fields["part"] == 2
    assert [entry.payload for entry in entries if entry.side][-2:] == [b'{"id":2}\n'] * 2
    assert entries[-1].note == "exit"


def test_a_file_continues_in_parts(
    start: Start, tmp_path: Path, read_entries: Callable[[bytes], list[Entry]]
) -> None:
    spy = start("echo.py", options=["--record", str(tmp_path / "x.jsonl"), "--max-size", "20k"])
    data = b"".join(b'{"id":%d,"x":"%b"}\n' % (n, b"x" * 100) for n in range(300))
    for line in data.splitlines(keepends=True):
        spy.send(line)
        assert spy.out.line() == line
    spy.finish()
    names = ["x.jsonl"]
    said = b""
    for number, name in enumerate(names, 1):
        header, *entries = read_entries((tmp_path / name).read_bytes())
        assert header.fields.get("part", 1) == number
        assert (tmp_path / name).stat().st_size < 21_000
        said += b"".join(entry.payload for entry in entries if entry.side == "client")
        if entries[-1].note == "part":
            names.append(entries[-1].fields["next"])
    assert said == data
    assert sorted(names) == sorted(path.name for path in tmp_path.iterdir())
    assert len(names) > 2
    assert entries[-1].note == "exit"


# Imports of `run`.


def test_telemetry_imports_only_its_own_start_and_only_if_it_is_wanted(
    start: Start, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    # A lock of an exporter, so that none is started.
    folder = tmp_path / "state" / "mcpspy" / "telemetry"
    folder.mkdir(parents=True)
    with open(folder / "lock", "wb") as lock:
        assert try_lock(lock.fileno())
        imported: dict[str, set[str]] = {}
        for endpoint in ("off", "http://127.0.0.1:9"):
            monkeypatch.setenv("MCPSPY_TELEMETRY", endpoint)
            options = ["--record", str(tmp_path / f"{endpoint[:3]}.jsonl")]
            spy = start("echo.py", options=options, interpreter=["-X", "importtime", "-m", "mcpspy"])
            _, err = spy.finish(b'{"id":1}\n')
            imported[endpoint] = {line.rpartition("|")[2].strip() for line in err.decode().splitlines()}

    assert imported["http://127.0.0.1:9"] ^ imported["off"] == {"mcpspy.io.recording.background"}
    assert [path.read_text() for path in (folder / "new").iterdir()] == [str(tmp_path / "htt.jsonl")]


@pytest.mark.parametrize("options", [[], ["--no-record"], ["--max-size", "1k"]])
def test_run_imports_nothing_heavy(start: Start, tmp_path: Path, options: list[str]) -> None:
    where = [] if "--no-record" in options else ["--dir", str(tmp_path)]
    spy = start("echo.py", options=[*options, *where], interpreter=["-X", "importtime", "-m", "mcpspy"])
    data = b'{"id":1}\n\xff\n' * 1000
    out, err = spy.finish(data)
    assert out == data
    imported = [line.rpartition("|")[2].strip() for line in err.decode().splitlines()]
    assert "mcpspy.io.stdio.process" in imported
    if not where:
        assert "ahocorasick_rs" not in imported
    else:
        # The first module that is imported once the server runs.
        assert imported.index("mcpspy.io.settings") < imported.index("ahocorasick_rs")
    # A quiet moment, in which the control socket opens, is long enough to import the rest.
    quiet = "mcpspy.io.control.server_poll"
    imported = imported[: imported.index(quiet) if quiet in imported else None]
    assert {name.partition(".")[0] for name in imported} & FORBIDDEN == set()


def test_an_isolated_python_passes_on_the_variables_that_would_break_it(start: Start) -> None:
    variables = {"PYTHONHOME": "/nonexistent", "PYTHONPATH": "/nonexistent", "PYTHONVERBOSE": "1"}
    show = 'echo "$PYTHONHOME $PYTHONPATH $PYTHONVERBOSE"'
    spy = start("sh", "-c", show, interpreter=["-EP", "-m", "mcpspy"], env={**os.environ, **variables})
    assert spy.finish() == (b"/nonexistent /nonexistent 1\n", b"")
    assert spy.wait() == 0
