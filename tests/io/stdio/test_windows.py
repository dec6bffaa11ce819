"""The threaded loop of Windows, run on this system."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from typing import TYPE_CHECKING, Any

import pytest

from mcpspy.io.recording.recorder import Recorder, RecordingTarget
from mcpspy.io.stdio import windows
from mcpspy.io.stdio.base import RecordingTap
from mcpspy.io.stdio.run import HOST_PATH

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.io.conftest import Processes, Spy, Start

posix_only = pytest.mark.skipif(sys.platform == "win32", reason="forks, or sends signals")

BUSY = 10.0
"""Seconds that half a second may take on a busy machine. Without the rule under test, it would be twenty."""

ON_THREADS = """
import sys
import mcpspy.io.stdio
from mcpspy.io.stdio import windows
from mcpspy.io.recording.recorder import Recorder, RecordingTarget
from mcpspy.io.stdio.base import RecordingTap
mcpspy.io.stdio.process = sys.modules["mcpspy.io.stdio.process"] = sys.modules["mcpspy.io.stdio.poll_loop"] = windows
windows.PollLoop = windows.ThreadedPump
from mcpspy.ui.cli.run import main
sys.exit(main(sys.argv[2:]))
"""

THREE_PIPES = 170_000


@pytest.fixture
def start_threads(start: Start) -> Callable[..., Spy]:
    """Start mcpspy around a command, on the threaded loop."""

    def start_one(*command: object, **more: Any) -> Spy:
        return start(*command, interpreter=["-c", ON_THREADS], **more)

    return start_one


def test_bytes_pass_unchanged_both_ways_and_are_recorded(start_threads: Callable[..., Spy]) -> None:
    spy = start_threads("echo.py", 7)
    data = b"".join(b'{"id":%d}\n\xff\x00\r\n\n' % n for n in range(3_000)) + b'{"half":'
    out, err = spy.finish(data)
    assert (out, err, spy.wait()) == (data, b"", 7)
    assert spy.said("client") == spy.said("server") == data
    assert spy.notes("exit") == [{"code": 7, "signal": None}]


def test_a_message_is_in_the_file_before_the_server_answers(start_threads: Callable[..., Spy]) -> None:
    spy = start_threads("echo.py")
    for n in range(20):
        spy.send(b'{"id":%d}\n' % n)
        line = spy.out.line()
        assert spy.said("client").endswith(line)
        assert spy.said("server").endswith(line)
    spy.finish()


def test_the_last_words_of_a_server_wait_for_a_slow_host(start_threads: Callable[..., Spy]) -> None:
    spy = start_threads("leave.py", 5, THREE_PIPES)
    assert spy.out.is_ready(20)
    spy.stays(1.0)
    out = spy.out.rest()
    assert len(out) == THREE_PIPES
    assert spy.wait() == 5
    assert spy.said("server") == out


@posix_only
@pytest.mark.parametrize("kind", ["serves", "writes"])
def test_a_server_that_its_launcher_left_behind_is_forwarded(
    start_threads: Callable[..., Spy], processes: Processes, kind: str
) -> None:
    spy = start_threads("left_behind.py", kind)
    server = json.loads(spy.out.line())["pid"]
    if kind == "serves":
        spy.stays(0.6)  # Longer than the silence that ends a session whose stdin is not in use.
        spy.send(b'{"id":1}\n')
        assert spy.out.line() == b'{"id":1}\n'
        assert spy.finish() == (b"", b"")
    else:
        assert spy.out.rest() == b"".join(b'{"line":%d}\n' % n for n in range(10))
    assert spy.wait() == 0
    processes.gone(server)


@posix_only
@pytest.mark.parametrize("kind", ["silent", "chatty", "flood"])
def test_a_grandchild_that_keeps_stdout_open_does_not_keep_mcpspy(
    start_threads: Callable[..., Spy], processes: Processes, kind: str
) -> None:
    spy = start_threads("grandchild.py", kind)
    grandchild = json.loads(spy.out.line())["grandchild"]
    seconds = spy.seconds_until_exit()
    os.kill(grandchild, signal.SIGKILL)
    processes.gone(grandchild)
    assert spy.wait() == 5
    assert seconds < BUSY
    assert spy.told().startswith(b"last words on stderr\n")


def test_stderr_and_stdin_flow_while_the_host_does_not_read_stdout(start_threads: Callable[..., Spy]) -> None:
    spy = start_threads("chatter.py")
    for n in range(100):
        spy.send(b'{"id":%d}\n' % n)
        assert spy.err.line() == b'{"id":%d}\n' % n
    spy.close()
    spy.out.rest()
    assert spy.wait() == 0


@posix_only
def test_the_host_sees_eof_when_the_server_closes_its_stdout(start_threads: Callable[..., Spy]) -> None:
    spy = start_threads("shut.py", 1)
    assert spy.err.line() == b'{"closed":1}\n'
    assert spy.out.rest() == b""
    assert spy.process.stdin is not None
    (child,) = _children(spy)
    os.kill(child, signal.SIGTERM)
    assert spy.wait() == 128 + signal.SIGTERM
    assert spy.notes("exit") == [{"code": None, "signal": "SIG15"}]


@posix_only
def test_the_host_sees_epipe_when_the_server_closes_its_stdin(
    start_threads: Callable[..., Spy], processes: Processes
) -> None:
    spy = start_threads("shut.py", 0)
    assert spy.out.line() == b'{"closed":0}\n'

    def refused() -> bool:
        try:
            spy.send(b'{"id":1}\n')
        except BrokenPipeError:
            return True
        return False

    processes.eventually(refused)
    (child,) = _children(spy)
    os.kill(child, signal.SIGTERM)
    assert spy.wait() == 128 + signal.SIGTERM
    (closed,) = spy.notes("closed")
    assert (closed["by"], closed["pipe"]) == ("server", "stdin")


@posix_only
def test_a_server_sees_it_when_the_host_closes_stdout(start_threads: Callable[..., Spy]) -> None:
    spy = start_threads("yes")
    assert spy.out.line() == b"y\n"
    spy.close("stdout")
    assert spy.wait() == 128 + signal.SIGPIPE


def _children(spy: Spy) -> list[int]:
    with subprocess.Popen(["ps", "-axo", "pid=,ppid="], stdout=subprocess.PIPE) as ps:
        listing, _ = ps.communicate(timeout=20)
    pairs = [tuple(map(int, line.split())) for line in listing.splitlines()]
    return [child for child, parent in pairs if parent == spy.pid]


@posix_only
def test_ctrl_c_is_the_servers_to_answer(start_threads: Callable[..., Spy]) -> None:
    spy = start_threads("echo.py")
    spy.send(b"{}\n")
    assert spy.out.line() == b"{}\n"
    spy.kill(signal.SIGINT)
    spy.send(b"[]\n")
    assert spy.out.line() == b"[]\n"
    assert spy.finish() == (b"", b"")
    assert spy.wait() == 0


def test_a_line_that_the_host_never_ended_is_kept(start_threads: Callable[..., Spy]) -> None:
    spy = start_threads("sh", "-c", "read line; head -c 5 >&2; exit 3")
    spy.send(b"{}\nhalf")
    spy.send(b"!")
    assert spy.wait() == 3
    assert spy.said("client") == b"{}\nhalf!"


@pytest.mark.parametrize("command", ["no-such-command-anywhere", "./no/such/command"])
def test_a_command_that_is_not_found_is_exit_127_and_a_line(
    start_threads: Callable[..., Spy], command: str
) -> None:
    spy = start_threads(command)
    _, err = spy.finish()
    assert spy.wait() == 127
    hint = "" if "/" in command else HOST_PATH
    assert err.decode() == f"mcpspy: cannot start {command}: not found on PATH{hint}\n"
    assert spy.notes("exit") == [{"code": 127, "signal": None}]


@posix_only
def test_a_command_that_is_not_executable_is_exit_126_and_a_line(
    start_threads: Callable[..., Spy], tmp_path: Any
) -> None:
    (tmp_path / "server").touch(mode=0o644)
    spy = start_threads(tmp_path / "server")
    _, err = spy.finish()
    assert spy.wait() == 126
    assert err.count(b"\n") == 1


def test_a_launcher_without_its_ending_is_found_on_the_path(
    tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = "launcher.cmd" if sys.platform == "win32" else "launcher"
    text = "@echo started\n" if sys.platform == "win32" else "#!/bin/sh\necho started\n"
    (tmp_path / name).write_text(text, encoding="utf-8")
    (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    before = signal.getsignal(signal.SIGINT)
    try:
        with windows.spawn(["launcher"]) as child:
            assert child.communicate(timeout=20)[0].strip() == b"started"
    finally:
        signal.signal(signal.SIGINT, before)


@posix_only
@pytest.mark.parametrize(
    ("status", "code"), [(0, 0), (7, 7), (255, 255), (-15, 143), (0xC0000005, 0x05), (0xC000013A, 0x3A)]
)
def test_leaving_takes_every_status_that_windows_has(status: int, code: int) -> None:
    # Here, an exit code keeps only eight bits; the test is that no code is too large for a C int.
    ended = subprocess.run(
        [sys.executable, "-c", f"from mcpspy.io.stdio.windows import leave; leave({status})"],
        capture_output=True,
        check=False,
        timeout=20,
    )
    assert (ended.returncode, ended.stderr) == (code, b"")


def test_data_that_is_read_comes_after_data_of_other_threads() -> None:
    source, write = os.pipe()
    read, target = os.pipe()
    nowhere = RecordingTarget()
    nowhere.recording = False
    lock = threading.Lock()
    channel = windows._ThreadChannel(source, target, RecordingTap(Recorder(nowhere, {}), None, None), lock)
    with lock:
        channel.put(b"a" * 1_000_000)
    channel.thread.start()
    os.write(write, b"b" * 10)
    os.close(write)
    got = b""
    while data := os.read(read, 1 << 20):
        got += data
    channel.thread.join(20)
    os.close(read)
    os.close(source)
    assert got == b"a" * 1_000_000 + b"b" * 10


def test_data_of_other_threads_is_written_after_the_end_of_a_source_with_a_shared_target() -> None:
    source, write = os.pipe()
    read, target = os.pipe()
    nowhere = RecordingTarget()
    nowhere.recording = False
    lock = threading.Lock()
    channel = windows._ThreadChannel(
        source, target, RecordingTap(Recorder(nowhere, {}), None, None), lock, is_shared=True
    )
    os.close(write)
    channel.thread.start()
    channel.thread.join(20)
    assert not channel.thread.is_alive()
    with lock:
        channel.put(b"late")
    channel.wait()
    os.close(source)
    os.close(target)
    with open(read, "rb") as file:
        assert file.read() == b"late"
