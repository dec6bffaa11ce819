"""Notes on silences: unfinished lines and unread input, with fakes and with real processes on both loops."""

from __future__ import annotations

import os
import signal
import sys
import time
from typing import TYPE_CHECKING, Any

import pytest

from mcpspy.io.stdio import silence
from mcpspy.io.stdio.silence import MAX_NOTES, SilenceNotes, bytes_unread
from tests.io.stdio.test_windows import ON_THREADS

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.io.conftest import Processes, Spy, Start

linux_only = pytest.mark.skipif(sys.platform != "linux", reason="counts the unread bytes of a pipe")
posix_only = pytest.mark.skipif(sys.platform == "win32", reason="sends signals")

BUSY = 20.0
"""Seconds that half a second may take on a busy machine."""

SOON = "import mcpspy.io.stdio.silence as silence; silence.UNREAD_AFTER = 0.2; silence.READ_TIME = 0.05\n"

ON_POLL_LOOP = "import sys\nfrom mcpspy.ui.cli.run import main\nmain(sys.argv[2:])\n"

LOOPS = [pytest.param(ON_POLL_LOOP, id="poll loop"), pytest.param(ON_THREADS, id="threads")]

HALF = "import os, sys; os.write(2, b'%d\\n' % os.getpid()); os.write(1, b'{\"half\":'); sys.stdin.read()"
"""A server that begins a line, and reads until the client leaves."""

DEAF = "import os, signal; signal.alarm(60); os.write(1, b'%d\\n' % os.getpid()); signal.pause()"


class FakeTap:
    """A tap with a clock, and what it is asked for."""

    def __init__(self) -> None:
        self.last_at = 0.0
        self.unfinished = 0
        self.next: Callable[[], object] | None = None

    def watch(self, on_unfinished: Callable[[], object]) -> None:
        self.on_unfinished = on_unfinished

    def call_before_next(self, call: Callable[[], object]) -> None:
        self.next = call


class Fakes:
    """A recorder, taps and a clock."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.time = 0.0
        self.writer = self
        self.unread: int | None = 0
        self.alarms = 0
        self.notes: list[tuple[str, dict[str, Any]]] = []
        self.taps = FakeTap(), FakeTap(), FakeTap()
        monkeypatch.setattr(silence, "monotonic", self.now)
        recorder: Any = self
        taps: Any = self.taps
        self.silence = SilenceNotes(recorder, taps, lambda: self.unread, self._alarm)

    def now(self) -> float:
        return self.time

    def note(self, kind: str, **fields: Any) -> None:
        self.notes.append((kind, fields))

    def _alarm(self) -> None:
        self.alarms += 1

    def client_sends(self, unread: int) -> None:
        tap = self.taps[0]
        tap.last_at, self.unread = self.time, unread
        if tap.next is not None:
            call, tap.next = tap.next, None
            call()

    def server_sends(self, unfinished: int = 0) -> None:
        self.taps[1].last_at, self.taps[1].unfinished = self.time, unfinished
        if unfinished:
            self.taps[1].on_unfinished()

    def run_until(self, end: float) -> None:
        while self.silence.due_at is not None and self.silence.due_at <= end:
            self.time = self.silence.due_at
            self.silence.wake()
        self.time = end


@pytest.fixture
def fakes(monkeypatch: pytest.MonkeyPatch) -> Fakes:
    return Fakes(monkeypatch)


def test_unread_bytes_are_noted_once_per_silence(fakes: Fakes) -> None:
    fakes.client_sends(162)
    fakes.run_until(60.0)
    assert fakes.notes == [("unread", {"pipe": "stdin", "size": 162, "since": 0.0})]
    fakes.client_sends(200)
    fakes.run_until(120.0)
    assert len(fakes.notes) == 1
    fakes.server_sends()
    fakes.client_sends(300)
    fakes.run_until(180.0)
    assert [fields["size"] for _, fields in fakes.notes] == [162, 300]


def test_a_server_that_reads_gets_no_note_and_no_further_alarm(fakes: Fakes) -> None:
    for _ in range(1000):
        fakes.client_sends(0)
        fakes.run_until(fakes.time + 0.001)
    fakes.run_until(60.0)
    assert (fakes.notes, fakes.alarms, fakes.silence.due_at) == ([], 1, None)


def test_a_client_that_repeats_a_ping_does_not_hide_a_server_that_does_not_read(fakes: Fakes) -> None:
    for n in range(1, 20):
        fakes.client_sends(40 * n)
        fakes.run_until(2.0 * n)
    ((kind, fields),) = fakes.notes
    assert (kind, fields["size"]) == ("unread", 40 * 3)


def test_bytes_that_the_host_sends_just_before_it_leaves_are_not_noted_as_unread(fakes: Fakes) -> None:
    fakes.client_sends(10)
    fakes.time = 0.5
    fakes.silence.close(10, is_by_host=True)
    fakes.silence.close(None, is_by_host=False)
    assert fakes.notes == []
    fakes.silence.close(10, is_by_host=False)
    fakes.time = 1.5
    fakes.silence.close(10, is_by_host=True)
    assert [fields["size"] for _, fields in fakes.notes] == [10, 10]


def test_a_line_is_noted_once_it_has_been_silent_and_again_after_more_of_it(fakes: Fakes) -> None:
    fakes.server_sends(8)
    fakes.run_until(0.2)
    fakes.server_sends(9)
    fakes.run_until(10.0)
    assert fakes.notes == [("unfinished", {"from": "server", "size": 9, "since": 0.2})]
    fakes.server_sends(20)
    fakes.run_until(10.1)
    fakes.server_sends()
    fakes.run_until(20.0)
    assert len(fakes.notes) == 1
    for n in range(3 * MAX_NOTES):
        fakes.server_sends(n + 1)
        fakes.run_until(fakes.time + 1)
    assert len(fakes.notes) == MAX_NOTES


@linux_only
def test_the_unread_bytes_of_a_pipe_are_counted_also_without_a_reader() -> None:
    read, write = os.pipe()
    os.write(write, b"x" * 162)
    assert bytes_unread(write) == 162
    os.read(read, 100)
    os.close(read)
    assert bytes_unread(write) == 62
    os.close(write)
    assert bytes_unread(write) is None


def wait_for(spy: Spy, kind: str, **fields: object) -> dict[str, Any]:
    """Return the note of this kind with these fields, once it is recorded."""
    bound = time.monotonic() + BUSY
    while time.monotonic() < bound:
        for note in spy.notes(kind) if spy.recording.exists() else ():
            if fields.items() <= note.items():
                return note
        spy.err.is_ready(0.01)
    raise AssertionError(f"no note {kind} {fields}: {spy.entries()}")


@posix_only
@pytest.mark.parametrize("loop", LOOPS)
@pytest.mark.parametrize("options", [[], ["--call-timeout", "60s"]], ids=["plain", "intercepted"])
def test_an_unfinished_line_survives_the_kill_of_mcpspy(
    start: Start, processes: Processes, loop: str, options: list[str]
) -> None:
    record = ["--record", str(start.recording), *options]
    spy = start(sys.executable, "-c", HALF, interpreter=["-c", loop], options=record)
    spy.send(b'{"id":1}\n{"id"')
    note = wait_for(spy, "unfinished", **{"from": "server"})
    assert (note["size"], 0 <= note["since"] < BUSY) == (8, True)
    assert wait_for(spy, "unfinished", **{"from": "client"})["size"] == 5
    spy.kill()
    assert spy.wait() == -signal.SIGKILL
    processes.gone(int(spy.err.line()))


@posix_only
@pytest.mark.parametrize("loop", LOOPS)
@pytest.mark.parametrize("options", [[], ["--call-timeout", "60s"]], ids=["plain", "intercepted"])
def test_the_time_of_a_line_that_is_cut_is_that_of_its_last_byte(
    start: Start, loop: str, options: list[str]
) -> None:
    record = ["--record", str(start.recording), *options]
    spy = start(sys.executable, "-c", HALF, interpreter=["-c", loop], options=record)
    spy.send(b'{"id":1}\n{"id"')
    since = {side: wait_for(spy, "unfinished", **{"from": side})["since"] for side in ("client", "server")}
    spy.finish()
    cut = {entry.side: entry.fields for entry in spy.entries() if entry.fields.get("eol") == ""}
    assert {side: fields["t"] for side, fields in cut.items()} == since
    ended = {entry.fields["from"]: entry.fields["t"] for entry in spy.entries() if entry.note == "eof"}
    assert all(ended[side] >= since[side] + 0.25 for side in ended)


@linux_only
@pytest.mark.parametrize("loop", LOOPS)
def test_unread_bytes_are_noted_in_a_silence_and_when_the_host_leaves(start: Start, loop: str) -> None:
    spy = start(sys.executable, "-c", DEAF, interpreter=["-c", SOON + loop])
    pid = int(spy.out.line())
    message = b'{"jsonrpc":"2.0","id":1,"method":"ping"}\n'
    spy.send(message)
    assert wait_for(spy, "unread")["size"] == len(message)
    spy.close()
    wait_for(spy, "eof", **{"from": "client"})
    bound = time.monotonic() + BUSY
    while len(spy.notes("unread")) < 2 and time.monotonic() < bound:
        spy.err.is_ready(0.01)
    assert [note["size"] for note in spy.notes("unread")] == [len(message)] * 2
    os.kill(pid, signal.SIGKILL)
    assert spy.wait() in (-signal.SIGKILL, 128 + signal.SIGKILL)  # The threads exit with a code.


@linux_only
@pytest.mark.parametrize("loop", LOOPS)
def test_bytes_that_an_ended_server_has_not_read_are_noted_before_its_exit(start: Start, loop: str) -> None:
    command = "import os, select; os.write(1, b'{}\\n'); select.select([0], [], []); os._exit(3)"
    spy = start(sys.executable, "-c", command, interpreter=["-c", loop])
    assert spy.out.line() == b"{}\n"
    spy.send(b'{"jsonrpc":"2.0","id":1,"method":"ping"}\n')
    assert spy.wait() == 3
    kinds = [entry.note for entry in spy.entries() if entry.note]
    assert spy.notes("unread")[0]["size"] == 41
    assert kinds.index("unread") < kinds.index("exit") == len(kinds) - 1


@posix_only
@pytest.mark.parametrize("loop", LOOPS)
def test_output_that_a_server_flushes_at_its_end_is_later_than_the_eof_of_the_client(
    start: Start, loop: str
) -> None:
    command = "import sys; lines = sys.stdin.read(); print('{}')"
    spy = start(sys.executable, "-c", command, interpreter=["-c", loop])
    spy.finish(b'{"jsonrpc":"2.0","id":1,"method":"ping"}\n')
    (ended,) = (
        entry.fields["t"] for entry in spy.entries() if entry.fields.get("from") == "client" and entry.note
    )
    (said,) = (entry.fields["t"] for entry in spy.entries() if entry.side == "server" and not entry.note)
    assert said > ended


@posix_only
def test_placeholders_in_variables_and_arguments_are_named_and_values_are_not(start: Start) -> None:
    environment = {**os.environ, "WEATHER_API_KEY": "${WEATHER_API_KEY}", "TOKEN": "sk-live-4242424242"}
    spy = start("echo.py", 0, "--root", "<path>", env=environment)
    spy.finish()
    assert spy.notes("placeholders") == [{"variables": ["WEATHER_API_KEY"], "arguments": ["--root"]}]
    assert b"${WEATHER_API_KEY}" not in spy.recording.read_bytes()
    assert next(entry.note for entry in spy.entries()) == "placeholders"
