"""The pump on POSIX: one process, one thread, one poll().

Owns everything `run` does that another system would do otherwise: starting the
server, moving its bytes, signals, its last words, leaving as it left. What is
recorded is `io.stdio`'s business; what goes through here is not looked at.

Never does: set O_NONBLOCK on an inherited descriptor (others share it), block
on one direction while another could flow, read what it cannot pass on, kill a
server that the host still wants.
"""

from __future__ import annotations

import os
import select
import signal
import stat
import sys
import time
from errno import EACCES, EINVAL, ENOENT, ENOSYS, ENOTDIR, EOPNOTSUPP

from mcpspy.errors import NOT_EXECUTABLE, NOT_FOUND
from mcpspy.io.guard import Guard

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import NoReturn

    from mcpspy.io.recorder import Recorder
    from mcpspy.io.stdio import Tap, Taps

    assert sys.platform != "win32"

CHUNK = 65536
"""Bytes a read: the size of a pipe. Larger reads gained nothing."""

LINGER = 0.25
"""Seconds that a grandchild may keep stdout open, silent, after the server's end. Contract: out within 0.5 s."""

LAST_WORDS = 1 << 20
"""Bytes that may still be read after that: the most a pipe holds. Past it, it is the grandchild talking."""

ECHO = 0.05
"""Seconds we wait for the guard to say that a signal went to the whole group, before passing it on."""

PATIENCE = 1.0
"""Seconds a host that told us to leave has to take the server's last words. Contract: gone within 2 s."""

NEVER = float("inf")

FORWARDED = ("SIGTERM", "SIGINT", "SIGHUP", "SIGQUIT", "SIGUSR1", "SIGUSR2")

ENDING = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT)
"""Those that ask the server to leave, and so, once it has, us."""

_NO_NOWAIT = (EOPNOTSUPP, ENOSYS, EINVAL)
"""What a kernel says that has no RWF_NOWAIT for pipes (before 6.4) or at all."""

_GONE = select.POLLERR | select.POLLNVAL
_HUNG_UP = select.POLLHUP


class Child:
    """The server: its pid, our ends of its three pipes, where our signals arrive, and its guard."""

    def __init__(self, pid: int, pipes: tuple[int, int, int], signals: int, guard: Guard | None) -> None:
        self.pid = pid
        self.stdin, self.stdout, self.stderr = pipes
        self.signals = signals
        self.guard = guard


def spawn(command: list[str]) -> Child:
    """Start the server, in our process group, with our environment and folder.

    Raises OSError if the command is not found or cannot be executed.
    """
    _occupy_standard_descriptors()
    # Before there is a server: from its first moment on, no signal ends us and leaves it behind.
    wake, signals = _catch_signals()
    in_read, in_write = os.pipe()
    out_read, out_write = os.pipe()
    err_read, err_write = os.pipe()
    try:
        pid = os.posix_spawnp(
            command[0],
            command,
            os.environ,
            file_actions=[
                (os.POSIX_SPAWN_DUP2, in_read, 0),
                (os.POSIX_SPAWN_DUP2, out_write, 1),
                (os.POSIX_SPAWN_DUP2, err_write, 2),
            ],
            # Python ignores these two, and an ignored signal stays ignored through exec.
            setsigdef=[signal.SIGPIPE, signal.SIGXFSZ],
        )
    finally:
        for fd in (in_read, out_write, err_write):
            os.close(fd)
    return Child(pid, (in_write, out_read, err_read), wake, Guard.start(pid, signals))


def explain(error: OSError, program: str) -> tuple[int, str]:
    """Return the exit code and the line for a server that did not start."""
    if error.errno in (ENOENT, ENOTDIR):
        where = "no such file" if os.sep in program else "not found on PATH"
        return NOT_FOUND, f"cannot start {program}: {where}"
    if error.errno == EACCES:
        return NOT_EXECUTABLE, f"cannot start {program}: not executable (chmod +x, or name its interpreter)"
    return NOT_EXECUTABLE, f"cannot start {program}: {error.strerror}"


def outcome(status: int) -> tuple[int | None, str | None]:
    """Return the exit code, or the name of the signal, that the server ended with."""
    code = os.waitstatus_to_exitcode(status)
    return (code, None) if code >= 0 else (None, _signal_name(-code))


def leave(status: int) -> NoReturn:
    """End as the server ended: with its exit code, or by its signal."""
    code = os.waitstatus_to_exitcode(status)
    if code >= 0:
        os._exit(code)
    number = -code
    if os.WCOREDUMP(status) or number in (signal.SIGQUIT, signal.SIGABRT, signal.SIGSEGV):
        import resource

        # The core that matters is the server's; ours would overwrite it.
        resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))
    try:
        signal.signal(number, signal.SIG_DFL)
    except OSError:  # SIGKILL needs no default, and has none to set.
        pass
    signal.pthread_sigmask(signal.SIG_UNBLOCK, [number])
    os.kill(os.getpid(), number)
    os._exit(128 + number)


class _Leg:
    """One direction: a source read, recorded, and written on, with at most one chunk in hand."""

    def __init__(self, pump: Pump, source: int, target: int, tap: Tap | None) -> None:
        self._pump = pump
        self._tap = tap
        self._record = None if tap is None else tap.feed
        self.source = source
        self.target = target
        self.pending: memoryview | bytes = b""
        self.open = True
        self.ended = False
        self.counting = False
        self.taken = 0
        # A pipe of our own may be O_NONBLOCK. One we inherited may not, since others share it: it
        # gets PIPE_BUF bytes after each POLLOUT, which never blocks.
        self._gate: select.poll | None = None
        self._nowait = False
        if target <= 2:
            self._gate = select.poll()
            self._gate.register(target, select.POLLOUT)
            # Linux can leave the descriptor alone and not block for this one write.
            kind = os.fstat(target).st_mode
            self._nowait = hasattr(os, "RWF_NOWAIT") and (stat.S_ISFIFO(kind) or stat.S_ISSOCK(kind))
        else:
            os.set_blocking(target, False)
        pump.route(source, self._on_source, select.POLLIN)
        pump.route(target, self._on_target, 0)

    def _on_source(self, _events: int) -> None:
        try:
            data = os.read(self.source, CHUNK)
        except BlockingIOError:  # Somebody who shares the descriptor was faster.
            return
        except OSError:  # A terminal that hung up says EIO, a socket ECONNRESET: all of them the end.
            data = b""
        if not data:
            self._end()
            return
        if self._record is not None:
            self._record(data)
        if self.counting:
            self.taken += len(data)
        self._push(data)
        if self.pending:
            # Not even with no events: poll() would still report the source's end, and with it more to read.
            self._pump.unroute(self.source)
            self._pump.route(self.target, self._on_target, select.POLLOUT)

    def _on_target(self, events: int) -> None:
        if self.pending:
            self._push(self.pending)
            if self.open and not self.pending:
                if self.ended:
                    self.close()
                else:
                    self._pump.route(self.target, self._on_target, 0)
                    self._pump.route(self.source, self._on_source, select.POLLIN)
        elif events & _GONE:
            self._broken()
        elif events & _HUNG_UP:
            # Sockets say so for a half-close too. The next write will know.
            self._pump.unroute(self.target)

    def _push(self, data: memoryview | bytes) -> None:
        """Write what fits without blocking; the rest is pending."""
        try:
            if self._gate is None:
                sent = os.write(self.target, data)
                self.pending = b"" if sent == len(data) else memoryview(data)[sent:]
                return
            if self._nowait:
                sent = os.pwritev(self.target, (data,), -1, os.RWF_NOWAIT)
                self.pending = b"" if sent == len(data) else memoryview(data)[sent:]
                return
            if len(data) > select.PIPE_BUF:
                data = memoryview(data)
            while data and self._gate.poll(0):
                self.pending = data
                data = data[os.write(self.target, data[: select.PIPE_BUF]) :]
            self.pending = data
        except BlockingIOError:
            self.pending = self.pending or data
        except OSError as error:
            if self._nowait and error.errno in _NO_NOWAIT:
                self._nowait = False
                self._push(data)
                return
            self.pending = self.pending or data
            self._broken()

    def _end(self) -> None:
        """The source has said all it will say."""
        self.ended = True
        self._pump.unroute(self.source)
        if self._tap is not None:
            self._tap.eof()
        if not self.pending:
            self.close()

    def _broken(self) -> None:
        """Nobody reads the target any more: let who writes to the source see that, as it would have directly."""
        if self._tap is not None:
            self._tap.broke(len(self.pending))
        self.pending = b""
        self.close()

    def close(self) -> None:
        """Pass the end on, and keep the line that never ended."""
        if self.open:
            self.open = False
            if self._tap is not None and not self.ended:
                self._tap.torn()
            for fd in (self.source, self.target):
                self._pump.unroute(fd)
                _close(fd)


class Pump:
    """Moves everything until the server has ended and its last words are delivered."""

    def __init__(self, child: Child, recorder: Recorder, taps: Taps) -> None:
        self._child = child
        self._recorder = recorder
        self._taps = taps
        self._poller = select.poll()
        self._routes: dict[int, Callable[[int], None]] = {}
        self._status: int | None = None
        self._ended_at = 0.0
        self._asked_at = 0.0
        self._leave_by = NEVER
        # Until the first signal, SIGCHLD included, there is nothing but bytes to look after.
        self._signalled = False
        self._received: list[tuple[float, int]] = []
        self._relays: list[_Relay] = []
        self._wake = child.signals
        self._guard = child.guard
        self._group_got: list[tuple[float, int]] = []
        self._legs: list[_Leg] = []

    def run(self) -> int:
        """Pump; return the server's wait status."""
        taps = self._taps
        self.route(self._wake, self._on_signal, select.POLLIN)
        if self._guard is not None:
            self.route(self._guard.seen, self._on_group_signal, select.POLLIN)
        child = self._child
        self._legs = [
            _Leg(self, 0, child.stdin, taps[0]),
            _Leg(self, child.stdout, self._writable(1), taps[1]),
            _Leg(self, child.stderr, self._writable(2), taps[2]),
        ]
        # glibc gives the top of the heap back, and faults it in again, with every chunk, until it has once
        # seen a large block freed: 80 µs of 100 per chunk of a flood.
        bytes(1 << 22)
        self._reap()  # It may have ended before we listened.
        poll, routes = self._poller.poll, self._routes
        while True:
            quiet = True
            for fd, events in poll(self._timeout() if self._signalled else None):
                handler = routes.get(fd)  # A handler before it may have closed this one.
                if handler is not None:
                    quiet = False
                    handler(events)
            if self._signalled:
                if self._received:
                    self._forward()
                if self._status is not None and self._is_done(self._status, quiet=quiet):
                    break
        self._finish()
        return self._status

    def route(self, fd: int, handler: Callable[[int], None], events: int) -> None:
        """Call the handler when poll() has `events` (errors and hang-ups, always) for the descriptor."""
        self._routes[fd] = handler
        self._poller.register(fd, events)

    def unroute(self, fd: int) -> None:
        """Wait for nothing more on the descriptor."""
        if self._routes.pop(fd, None) is not None:
            self._poller.unregister(fd)

    def _writable(self, fd: int) -> int:
        """Return what to write to in place of our own `fd`: a terminal blocks whatever poll() said."""
        if not os.isatty(fd):
            return fd
        relay = _Relay(fd)
        self._relays.append(relay)
        return relay.entrance

    def _timeout(self) -> float | None:
        """Return the milliseconds poll() may take; None is for ever, the usual case."""
        if self._status is None and not self._received:
            return None
        now = time.monotonic()
        due = [at + ECHO for at, _ in self._received]
        if self._status is not None:
            if now < self._ended_at + LINGER:
                due.append(self._ended_at + LINGER)
            elif not any(leg.pending for leg in self._legs):
                return 0
            if self._leave_by != NEVER:
                due.append(self._leave_by)
        return max(0.0, min(due) - now) * 1000 if due else None

    def _is_done(self, status: int, *, quiet: bool) -> bool:
        host, *ours = self._legs
        host.close()
        now = time.monotonic()
        if now >= self._leave_by or not any(leg.open for leg in ours):
            return True
        if now < self._ended_at + LINGER:
            return False
        for leg in ours:
            if leg.open and not leg.pending and leg.taken >= LAST_WORDS:
                leg.close()
        return quiet and not any(leg.pending for leg in ours)

    def _on_signal(self, _events: int) -> None:
        self._signalled = True
        for number in os.read(self._wake, 512):
            if number == signal.SIGCHLD:
                self._reap()
            else:
                self._received.append((time.monotonic(), number))

    def _on_group_signal(self, _events: int) -> None:
        assert self._guard is not None
        seen = os.read(self._guard.seen, 512)
        if not seen:  # Somebody killed the guard. From now on we pass every signal on.
            self.unroute(self._guard.seen)
        now = time.monotonic()
        self._group_got += [(now, number) for number in seen]

    def _forward(self) -> None:
        """Pass signals on to the server, each once: not those that the whole group got anyway."""
        now = time.monotonic()
        waiting = []
        # Two that came as one to us came as two to the guard: its second must not answer for a later one.
        self._group_got = [(at, number) for at, number in self._group_got if now < at + ECHO]
        for at, number in self._received:
            echo = next((echo for echo in self._group_got if echo[1] == number), None)
            if echo is not None:
                self._group_got.remove(echo)
            elif self._guard is not None and now < at + ECHO:
                waiting.append((at, number))
                continue
            elif self._status is None:
                os.kill(self._child.pid, number)
            if number in ENDING:
                self._asked_at = at
                self._set_patience()
            self._recorder.note("signal", signal=_signal_name(number))
        self._received = waiting

    def _set_patience(self) -> None:
        if self._asked_at and self._status is not None and self._leave_by == NEVER:
            self._leave_by = max(self._asked_at, self._ended_at) + PATIENCE

    def _reap(self) -> None:
        if self._status is not None:
            return
        pid, status = os.waitpid(self._child.pid, os.WNOHANG)
        if pid:
            self._signalled = True
            self._status = status
            self._ended_at = time.monotonic()
            for leg in self._legs:
                leg.counting = True
            self._set_patience()

    def _finish(self) -> None:
        if self._received:  # It has done its work on the server, and is meant for us too.
            self._leave_by = min(self._leave_by, time.monotonic() + PATIENCE)
        for leg in self._legs:
            leg.close()
        for relay in self._relays:
            relay.drain(lambda: time.monotonic() >= self._leave_by or self._has_signal())
        if self._guard is not None:
            self._guard.dismiss()

    def _has_signal(self) -> bool:
        poller = select.poll()
        poller.register(self._wake, select.POLLIN)
        return bool(poller.poll(0))


class _Relay:
    """A thread that writes to a terminal, which may block at any time, and a pipe that leads to it."""

    def __init__(self, target: int) -> None:
        import threading

        self._target = target
        self._exit, self.entrance = os.pipe()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def drain(self, is_over: Callable[[], bool]) -> None:
        """Wait until all that came in is on the screen, or somebody asks us to leave."""
        while self._thread.is_alive() and not is_over():
            self._thread.join(0.05)

    def _run(self) -> None:
        try:
            while data := os.read(self._exit, CHUNK):
                while data:
                    data = data[os.write(self._target, data) :]
        except OSError:  # The terminal is gone.
            pass
        os.close(self._exit)  # What is still written sees EPIPE, as it would have directly.


def _catch_signals() -> tuple[int, list[int]]:
    """Have signals arrive as bytes on a pipe; return it, and those that are passed on.

    One that we were started with ignored (`nohup`, a shell's `&`) stays ignored.
    """
    read, write = os.pipe()
    os.set_blocking(read, False)
    os.set_blocking(write, False)
    signal.set_wakeup_fd(write, warn_on_full_buffer=False)
    caught = [
        number for name in FORWARDED if signal.getsignal(number := getattr(signal, name)) != signal.SIG_IGN
    ]
    for number in (*caught, signal.SIGCHLD):
        signal.signal(number, lambda *_: None)
    return read, caught


def _occupy_standard_descriptors() -> None:
    """Open what the host left closed, or a pipe of ours would become its stdout."""
    for fd in (0, 1, 2):
        try:
            os.fstat(fd)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # Takes the lowest free number, which is this one.


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:  # A real-time signal has a number only.
        return f"SIG{number}"


def _close(fd: int) -> None:
    """Close a pipe; a standard descriptor gets /dev/null, so that nothing else becomes it."""
    if fd > 2:
        os.close(fd)
    elif fd < 2:  # 2 is where we speak.
        null = os.open(os.devnull, os.O_RDWR)
        os.dup2(null, fd)
        os.close(null)
