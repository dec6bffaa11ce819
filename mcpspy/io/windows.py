"""The pump where there is no poll() over pipes: three blocking threads.

Owns on Windows what `io.posix` owns elsewhere, and keeps less: no signal
reaches a Windows process, and a server outlives a killed mcpspy only if it
ignores the EOF on its stdin. Runs on POSIX too, so that it can be tested there.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import threading

from mcpspy.errors import NOT_EXECUTABLE, NOT_FOUND

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn

    from mcpspy.io.stdio import Recorder, Tap

CHUNK = 65536
LINGER = 0.25
"""Seconds that a grandchild may keep stdout open after the server's end."""

Child = subprocess.Popen


def spawn(command: list[str]) -> subprocess.Popen[bytes]:
    """Start the server. `npx` is a .cmd on Windows, which only `which` finds."""
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
    os._exit(status if status >= 0 else 128 - status)


class Pump:
    """Three threads, one lock around the recording."""

    def __init__(self, child: subprocess.Popen[bytes], recorder: Recorder) -> None:
        self._child = child
        self._recorder = recorder
        self._lock = threading.Lock()

    def run(self) -> int:
        """Pump until the server has ended and its last words are delivered; return its exit code."""
        child = self._child
        assert child.stdin is not None
        assert child.stdout is not None
        assert child.stderr is not None
        taps = self._recorder.taps()
        legs = [
            (0, child.stdin.fileno(), taps[0], child.stdin.close),
            (child.stdout.fileno(), 1, taps[1], None),
            (child.stderr.fileno(), 2, taps[2], None),
        ]
        threads = [threading.Thread(target=self._copy, args=leg, daemon=True) for leg in legs]
        for thread in threads:
            thread.start()
        while True:
            try:
                status = child.wait()
                break
            except KeyboardInterrupt:  # The console sent Ctrl-C to the server too; it decides.
                continue
        for thread in threads[1:]:
            thread.join(LINGER)
        self._lock.acquire()  # For good: from here on the recording is being closed.
        return status

    def _copy(self, source: int, target: int, tap: Tap | None, close: object) -> None:
        while True:
            try:
                data = os.read(source, CHUNK)
            except OSError:
                data = b""
            if not data:
                break
            if tap is not None:
                with self._lock:
                    tap.feed(data)
            try:
                while data:
                    data = data[os.write(target, data) :]
            except OSError:
                if tap is not None:
                    with self._lock:
                        tap.broke(len(data))
                os.close(source)
                return
        if tap is not None:
            with self._lock:
                tap.eof()
        if callable(close):
            close()
