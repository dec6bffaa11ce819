"""The forwarding loop for systems where pipes cannot be polled: three blocking threads.

Replaces `io.stdio.process` and `poll_loop` on Windows, with fewer features: a Windows process cannot receive
signals, and a server that ignores EOF on stdin survives a killed mcpspy.
Also runs on POSIX, so that tests can use it there.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections import deque

from mcpspy.errors import NOT_EXECUTABLE, NOT_FOUND, McpspyError
from mcpspy.io.recording.recorder import say
from mcpspy.io.stdio.base import CHUNK, MAX_OWN_OUTPUT, STDERR, close
from mcpspy.io.stdio.silence import SilenceNotes, bytes_unread

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn

    from mcpspy.io.control.server_poll import ThreadedServer
    from mcpspy.io.recording.recorder import Recorder
    from mcpspy.io.stdio.base import RecordingTap, RunOptions, Taps
    from mcpspy.io.stdio.interception import StdioInterception
    from mcpspy.io.stdio.message_channel import MessageChannel, StderrLines

STARTUP_TIME = 0.2
"""Seconds after which a server either runs or has failed. Then viewers may connect."""

LINGER = 0.25
"""Seconds without output, after the server's exit, that end a session whose pipes a grandchild keeps open."""

FINAL_TIMEOUT = 5.0
"""Seconds after the server's exit in which the output of grandchildren is forwarded. Hosts wait for the exit."""

READER_CHECK = 0.1
"""Seconds between two checks that a grandchild still has the server's stdin open: no event reports its end."""

QUIET_TIME = 0.005
"""Seconds without data, after the server's exit, that show that all of the server's own output was read."""

MAX_FINAL_OUTPUT = 4 << 20
"""Bytes per pipe that are forwarded after the server's exit."""

Child = subprocess.Popen


class PipeWriter:
    """Lets several threads write to one pipe, complete and in order.

    A thread that reserves the pipe writes directly. Data of other threads is queued, and the writer's own thread
    writes it. That thread starts when it is first needed.
    """

    def __init__(self, target: int) -> None:
        self._target = target
        self._change = threading.Condition()
        self._queue: deque[bytes] = deque()
        self._is_reserved = False
        self._is_ending = False
        self._thread: threading.Thread | None = None
        self.backlog = 0
        """Number of bytes that were put but not written yet."""
        self.undelivered = 0
        """Number of bytes that were left when the reader closed the pipe."""
        self.is_open = True

    def reserve(self) -> bool:
        """Return whether the caller may write directly. Data that is put later is written after that."""
        with self._change:
            if self._is_reserved or self.backlog or self._is_ending:
                return False
            self._is_reserved = True
            return True

    def write(self, data: bytes) -> None:
        """Write directly after `reserve` returned True."""
        left = self._written(data)
        with self._change:
            self._is_reserved = False
            self._settle(left)

    def put(self, data: bytes) -> None:
        """Queue data for writing; discard it if the reader has closed the pipe."""
        with self._change:
            if self.is_open and not self._is_ending and data:
                self._queue.append(data)
                self.backlog += len(data)
                if self._thread is None:
                    self._thread = threading.Thread(target=self._run, daemon=True)
                    self._thread.start()
                self._change.notify_all()

    def wait(self) -> None:
        """Wait until the queue is empty."""
        with self._change:
            self._change.wait_for(lambda: not self.backlog)

    def count_unread(self) -> int | None:
        """Return the number of written bytes that were not read; None if that is not known."""
        with self._change:
            return bytes_unread(self._target) if self.is_open else None

    def end(self) -> None:
        """Accept no more data, and close once everything is written."""
        with self._change:
            self._is_ending = True
            self._settle(0)

    def _run(self) -> None:
        while True:
            with self._change:
                self._change.wait_for(lambda: (self._queue and not self._is_reserved) or not self.is_open)
                if not self.is_open:
                    return
                data = self._queue.popleft()
            left = self._written(data)
            with self._change:
                self.backlog -= len(data)
                self._settle(left)

    def _settle(self, left: int) -> None:
        """Close if due, and wake all waiting threads. Call this with the condition held."""
        if left:
            self.undelivered = left + sum(map(len, self._queue))
            self._queue.clear()
            self.backlog = 0
            self._is_ending = True
        if self.is_open and self._is_ending and not self.backlog and not self._is_reserved:
            self.is_open = False
            close(self._target)
        self._change.notify_all()

    def _written(self, data: bytes) -> int:
        try:
            while data:
                data = data[os.write(self._target, data) :]
        except OSError:
            pass
        return len(data)


def spawn(command: list[str]) -> subprocess.Popen[bytes]:
    """Start the server. On Windows, `npx` is a .cmd file, which only `which` finds."""
    # The console also sends Ctrl-C to the server, which decides what to do. Caught, because SIG_IGN would be inherited.
    signal.signal(signal.SIGINT, lambda *_: None)
    program = shutil.which(command[0]) or command[0]
    pipe = subprocess.PIPE
    return subprocess.Popen([program, *command[1:]], stdin=pipe, stdout=pipe, stderr=pipe, bufsize=0)


def explain(error: OSError, program: str) -> tuple[int, str]:
    """Return the exit code and the error message for a server that did not start."""
    if isinstance(error, FileNotFoundError):
        return NOT_FOUND, f"cannot start {program}: not found on PATH"
    return NOT_EXECUTABLE, f"cannot start {program}: {error.strerror}"


def outcome(status: int) -> tuple[int | None, str | None]:
    """Return the server's exit code, or the name of the signal that ended it."""
    return (status, None) if status >= 0 else (None, f"SIG{-status}")


def leave(status: int) -> NoReturn:
    if status < 0:  # Not on Windows.
        status = 128 - status
    os._exit(status if status < 1 << 31 else status - (1 << 32))  # 0xC0000005 does not fit into a C int.


class _ThreadChannel:
    """One direction: a thread that reads, records and writes. Hold the lock to call its `MessageChannel` methods."""

    def __init__(
        self, source: int, target: int, tap: RecordingTap, lock: threading.Lock, *, is_shared: bool = False
    ) -> None:
        """`is_shared`: another channel writes to the same target, even after this source has ended."""
        self._source = source
        self._writer = PipeWriter(target)
        self._tap = tap
        self._lock = lock
        self._is_shared = is_shared
        self._message_channel: MessageChannel | StderrLines | None = None
        self._waits_for: _ThreadChannel | None = None
        self.silence: SilenceNotes | None = None
        """Of the channel to the server's stdin: it notes what the server did not read."""
        self._is_finished = False
        self._reading_since = 0.0
        self._is_writing = False
        self._ended_at = float("inf")
        self._bytes_read = 0
        self._has_final_output = False
        self._may_read = threading.Event()
        self._may_read.set()
        self.thread = threading.Thread(target=self._run, daemon=True)

    @property
    def backlog(self) -> int:
        return self._writer.backlog

    @property
    def is_writable(self) -> bool:
        return not self._is_finished and self._writer.is_open

    def count_unread(self) -> int | None:
        return self._writer.count_unread()

    def put(self, data: bytes) -> None:
        self._writer.put(data)

    def divert(self, message_channel: MessageChannel | StderrLines | None) -> None:
        self._message_channel = message_channel

    def wait_for(self, other: _ThreadChannel) -> None:
        self._waits_for = other

    def pause(self) -> None:
        self._may_read.clear()

    def resume(self) -> None:
        self._may_read.set()

    def finish(self) -> None:
        """Stop like `Channel.finish`. A blocked read is not interrupted."""
        if not self._is_finished:
            self._is_finished = True
            self._may_read.set()
            self.torn()
            self._writer.end()

    def server_ended(self, ended_at: float) -> None:
        """Start to distinguish the server's final output from a grandchild's."""
        self._ended_at = ended_at

    @property
    def quiet_since(self) -> float:
        """Return the time at which this direction last delivered data."""
        is_busy = self._is_writing or self._writer.backlog
        return time.monotonic() if is_busy else self._reading_since

    def has_delivered(self) -> bool:
        """Return whether all of the server's own output is delivered to the host."""
        if not self.thread.is_alive():
            return True
        if self._is_writing or self._writer.backlog:
            return False
        return self._has_final_output or self._bytes_read >= MAX_OWN_OUTPUT or self._has_waited()

    def wait(self) -> None:
        self._writer.wait()

    def torn(self) -> None:
        """Record an unfinished line."""
        if self._message_channel is not None:
            self._message_channel.torn()
        self._tap.torn()

    def _has_waited(self) -> bool:
        return time.monotonic() - max(self._reading_since, self._ended_at) >= QUIET_TIME

    def _run(self) -> None:
        while data := self._read():
            self._forward(data)
            if self._is_finished or not self._writer.is_open or self._bytes_read >= MAX_FINAL_OUTPUT:
                break
            self._is_writing = False
            self._may_read.wait()
        while not self._is_finished and self._waits_for_script():
            self._may_read.wait()
        with self._lock:
            if not self._is_finished:
                self._is_finished = True
                self._end()
        self._writer.wait()
        if not self._is_shared:
            self._writer.end()
        if data:
            close(self._source)

    def _forward(self, data: bytes) -> None:
        is_reserved = False
        with self._lock:
            if self._is_finished:
                return
            if self._message_channel is not None:
                self._message_channel.feed(data)
            else:
                self._tap.feed(data)
                # Reserve with the lock held: data that other threads put from now on must come after this.
                is_reserved = self._writer.reserve()
                if not is_reserved:
                    self._writer.put(data)
        if is_reserved:
            self._writer.write(data)
            return
        self._writer.wait()
        if self._waits_for is not None:
            waits_for, self._waits_for = self._waits_for, None
            waits_for.wait()

    def _waits_for_script(self) -> bool:
        """Return whether a script decides on the last messages; then the stream is paused."""
        with self._lock:
            waits = self._message_channel is not None and self._message_channel.delays_end()
            if waits:
                self.pause()
            return waits

    def _end(self) -> None:
        if self.silence is not None:
            self.silence.close(self.count_unread(), is_by_host=True)
        if self._writer.is_open:
            if self._message_channel is not None:
                self._message_channel.eof()
            self._tap.eof()
        else:
            self._tap.broke(self._writer.undelivered)

    def _read(self) -> bytes:
        self._reading_since = time.monotonic()
        try:
            data = os.read(self._source, CHUNK)
        except MemoryError as error:
            with self._lock:
                if self._message_channel is None or not self._message_channel.frees_memory():
                    self._tap.give_up(error)
            return self._read()
        except OSError:
            return b""
        self._is_writing = True
        if self._ended_at != float("inf"):
            self._has_final_output = self._has_final_output or self._has_waited()
            self._bytes_read += len(data)
        return data


class ThreadedPump:
    """Three threads, with one lock for the recording and all decisions."""

    def __init__(
        self, child: subprocess.Popen[bytes], recorder: Recorder, taps: Taps, options: RunOptions
    ) -> None:
        self._child = child
        self._recorder = recorder
        self._taps = taps
        self._options = options
        self._lock = threading.Lock()
        self._alarm = threading.Event()
        self._channels: list[_ThreadChannel] = []
        self._silence = SilenceNotes(recorder, taps, self._count_unread, self._alarm.set)
        self._interception: StdioInterception | None = None
        self._control: ThreadedServer | None = None

    def run(self) -> int:
        """Forward until the server has exited and its final output is delivered. Return its exit code."""
        child = self._child
        assert child.stdin is not None
        assert child.stdout is not None
        assert child.stderr is not None
        taps, lock = self._taps, self._lock
        channels = self._channels = [
            _ThreadChannel(0, child.stdin.fileno(), taps[0], lock),
            _ThreadChannel(child.stdout.fileno(), 1, taps[1], lock),
            _ThreadChannel(child.stderr.fileno(), 2, taps[2], lock, is_shared=self._options.noise == STDERR),
        ]
        channels[0].silence = self._silence
        if self._options.intercepts:
            self._intercept().begin()
        for channel in channels:
            channel.thread.start()
        try:
            if self._options.interception.scripts.files:
                raise subprocess.TimeoutExpired(child.args, 0)  # The scripts need the control socket at once.
            status = child.wait(STARTUP_TIME)
        except subprocess.TimeoutExpired:
            self._open_control()
            status = child.wait()
        while status == 0 and channels[1].thread.is_alive() and self._is_stdin_open():
            channels[1].thread.join(READER_CHECK)  # The command was a launcher, and left a server behind.
        _deliver(channels[1:])
        with lock:
            if self._interception is not None:
                self._interception.finish()
        for channel in channels[1:]:
            channel.wait()
        lock.acquire()  # Never released: the recording is closed next.
        if self._control is not None:
            self._control.close()
        if channels[0].is_writable:
            self._silence.close(channels[0].count_unread(), is_by_host=False)
        for channel in channels:
            channel.torn()
        return status

    def _count_unread(self) -> int | None:
        return self._channels[0].count_unread()

    def _is_stdin_open(self) -> bool:
        """Return whether the host can write, and a process can read, the server's stdin."""
        assert self._child.stdin is not None
        return self._channels[0].is_writable and has_reader(self._child.stdin.fileno())

    def _intercept(self) -> StdioInterception:
        """Return the interception. It is idle until a rule or a viewer needs it."""
        from mcpspy.io.stdio.interception import StdioInterception

        if self._interception is None:
            self._interception = StdioInterception(
                self._recorder, self._options, self._taps, self._channels, self._alarm.set
            )
            threading.Thread(target=self._run_timer, daemon=True).start()
        return self._interception

    def _run_timer(self) -> None:
        assert self._interception is not None
        while True:
            with self._lock:
                self._alarm.clear()
                self._interception.wake()
                self._silence.wake()
                both = self._interception.due_at, self._silence.due_at
            due_at = min((at for at in both if at is not None), default=None)
            self._alarm.wait(None if due_at is None else max(0.0, due_at - time.monotonic()))

    def _open_control(self) -> None:
        """Let viewers connect. A failure affects viewers only."""
        try:
            from mcpspy.io.control.server_poll import ThreadedServer

            self._recorder.prepare()
            with self._lock:
                self._control = ThreadedServer(self._intercept(), self._lock)
        except McpspyError as error:
            say(f"viewers cannot connect to this session: {error}")
        except Exception as error:
            say(f"viewers cannot connect to this session: a bug in mcpspy: {type(error).__name__}: {error}")
        if self._control is None and self._interception is not None:
            with self._lock:
                self._interception.listening(None)


def has_reader(fd: int) -> bool:
    """Return whether a process has the other end of this pipe open."""
    if sys.platform == "win32":
        import msvcrt
        from _winapi import WriteFile

        try:
            WriteFile(msvcrt.get_osfhandle(fd), b"")  # Writing nothing still fails if the pipe has no reader.
        except OSError:
            return False
        return True
    else:  # noqa: RET505 - mypy knows by this branch that the rest is not for Windows.
        import select

        poller = select.poll()
        poller.register(fd, 0)
        return not poller.poll(0)


def _deliver(channels: list[_ThreadChannel]) -> None:
    """Wait until the host has read the server's final output, however slowly, and for a while a grandchild's."""
    ended_at = time.monotonic()
    for channel in channels:
        channel.server_ended(ended_at)
    while running := [channel for channel in channels if channel.thread.is_alive()]:
        now = time.monotonic()
        quiet_since = max(ended_at, *(channel.quiet_since for channel in running))
        if now >= min(quiet_since + LINGER, ended_at + FINAL_TIMEOUT) and all(
            channel.has_delivered() for channel in channels
        ):
            return
        for channel in channels:
            channel.thread.join(QUIET_TIME)
