"""The pump where there is no poll() over pipes: three blocking threads.

Owns on Windows what `io.posix` owns elsewhere, and keeps less: no signal
reaches a Windows process, and a server outlives a killed mcpspy only if it
ignores the EOF on its stdin. Runs on POSIX too, so that it can be tested there.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import threading
import time

from mcpspy.errors import NOT_EXECUTABLE, NOT_FOUND

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn

    from mcpspy.io.recorder import Recorder
    from mcpspy.io.stdio import Tap, Taps

CHUNK = 65536
LINGER = 0.25
"""Seconds that a grandchild may keep stdout open after the server's end."""

QUIET = 0.005
"""Seconds that a read had to wait, after that: what the server itself wrote has all been read."""

LAST_WORDS = 1 << 17
"""Bytes after the server's end that can still be its own: more than a pipe holds, and a chunk."""

Child = subprocess.Popen


def spawn(command: list[str]) -> subprocess.Popen[bytes]:
    """Start the server. `npx` is a .cmd on Windows, which only `which` finds."""
    # The console sends Ctrl-C to the server too; it decides. Caught, not ignored: that would be inherited.
    signal.signal(signal.SIGINT, lambda *_: None)
    program = shutil.which(command[0]) or command[0]
    pipe = subprocess.PIPE
    return subprocess.Popen([program, *command[1:]], stdin=pipe, stdout=pipe, stderr=pipe, bufsize=0)


def explain(error: OSError, program: str) -> tuple[int, str]:
    """Return the exit code and the line for a server that did not start."""
    if isinstance(error, FileNotFoundError):
        return NOT_FOUND, f"cannot start {program}: not found on PATH"
    return NOT_EXECUTABLE, f"cannot start {program}: {error.strerror}"


def outcome(status: int) -> tuple[int | None, str | None]:
    """Return the exit code, or the signal, that the server ended with."""
    return (status, None) if status >= 0 else (None, f"SIG{-status}")


def leave(status: int) -> NoReturn:
    """End with the server's exit code."""
    if status < 0:  # Not on Windows.
        status = 128 - status
    os._exit(status if status < 1 << 31 else status - (1 << 32))  # 0xC0000005 is more than a C int holds.


class _Leg:
    """One direction: a thread that reads, records and writes on."""

    def __init__(self, source: int, target: int, tap: Tap | None, lock: threading.Lock) -> None:
        self._source = source
        self._target = target
        self._tap = tap
        self._lock = lock
        self._reading_since = 0.0
        self._is_writing = False
        self._ended_at = float("inf")
        self._taken = 0
        self._said_all = False
        self.thread = threading.Thread(target=self._run, daemon=True)
        self.thread.start()

    def server_ended(self, at: float) -> None:
        """Begin to tell the server's last words from what a grandchild says."""
        self._ended_at = at

    def has_delivered(self) -> bool:
        """Whether all that the server itself said is with the host."""
        if not self.thread.is_alive():
            return True
        return not self._is_writing and (self._said_all or self._taken >= LAST_WORDS or self._has_waited())

    def torn(self) -> None:
        """Keep the line whose end never came."""
        if self._tap is not None:
            self._tap.torn()

    def _has_waited(self) -> bool:
        return time.monotonic() - max(self._reading_since, self._ended_at) >= QUIET

    def _run(self) -> None:
        tap = self._tap
        while data := self._read():
            if tap is not None:
                with self._lock:
                    tap.feed(data)
            try:
                while data:
                    data = data[os.write(self._target, data) :]
            except OSError:
                if tap is not None:
                    with self._lock:
                        tap.broke(len(data))
                _close(self._source)
                return
            self._is_writing = False
        if tap is not None:
            with self._lock:
                tap.eof()
        _close(self._target)

    def _read(self) -> bytes:
        self._reading_since = time.monotonic()
        try:
            data = os.read(self._source, CHUNK)
        except OSError:
            return b""
        self._is_writing = True
        if self._ended_at != float("inf"):
            self._said_all = self._said_all or self._has_waited()
            self._taken += len(data)
        return data


class Pump:
    """Three threads, one lock around the recording."""

    def __init__(self, child: subprocess.Popen[bytes], recorder: Recorder, taps: Taps) -> None:
        self._child = child
        self._taps = taps

    def run(self) -> int:
        """Pump until the server has ended and its last words are delivered; return its exit code."""
        child = self._child
        assert child.stdin is not None
        assert child.stdout is not None
        assert child.stderr is not None
        taps = self._taps
        lock = threading.Lock()
        legs = [
            _Leg(0, child.stdin.fileno(), taps[0], lock),
            _Leg(child.stdout.fileno(), 1, taps[1], lock),
            _Leg(child.stderr.fileno(), 2, taps[2], lock),
        ]
        status = child.wait()
        _deliver(legs[1:])
        lock.acquire()  # For good: from here on the recording is being closed.
        for leg in legs:
            leg.torn()
        return status


def _deliver(legs: list[_Leg]) -> None:
    """Wait for the server's last words, however slowly the host takes them, and not for a grandchild's."""
    ended_at = time.monotonic()
    for leg in legs:
        leg.server_ended(ended_at)
    while any(leg.thread.is_alive() for leg in legs):
        if time.monotonic() >= ended_at + LINGER and all(leg.has_delivered() for leg in legs):
            return
        for leg in legs:
            leg.thread.join(QUIET)


def _close(fd: int) -> None:
    """Close a pipe; a standard descriptor gets the null device, so that nothing else becomes it."""
    if fd > 2:
        os.close(fd)
    elif fd < 2:  # 2 is where we speak.
        null = os.open(os.devnull, os.O_RDWR)
        os.dup2(null, fd)
        os.close(null)
