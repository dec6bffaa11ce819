"""A recording that is read from a pipe.

It is a temporary copy, because readers read a recording more than once. Only the user can read the copy. It is deleted when mcpspy ends, unless SIGKILL ends it.
"""

from __future__ import annotations

import atexit
import errno
import os
import shutil
import signal
import stat
import sys
import tempfile
from functools import cache
from pathlib import Path
from threading import Thread

from mcpspy.errors import CannotStart, UsageError
from mcpspy.io.recording.reader import read_header_of

STDIN = "-"

CHUNK = 1 << 20
"""Bytes per read, the most that is kept in memory."""

_OPEN_PIPES = ("/dev/fd/", "/dev/stdin", "/proc/self/fd/")

_failures: list[CannotStart] = []


def is_piped(name: str) -> bool:
    """Return whether a session is read from an open pipe: `-`, or the path that a shell makes of `<(COMMAND)`."""
    try:
        return name == STDIN or (name.startswith(_OPEN_PIPES) and stat.S_ISFIFO(os.stat(name).st_mode))
    except OSError:
        return False


@cache
def copy_of(name: str, *, follows: bool = False) -> Path:
    """Return a copy of the recording that a pipe delivers. Raise UsageError or CannotStart.

    With `follows`, return after the first line: the copy grows, and counts as live, until the end of the pipe.
    """
    shown = "stdin" if name == STDIN else name
    source = 0 if name == STDIN else os.open(name, os.O_RDONLY)
    if os.isatty(source):
        raise UsageError("-: stdin is a terminal", "use COMMAND | mcpspy show -, or mcpspy show - < FILE")
    path = temporary_folder() / "stdin.jsonl"
    copy = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | getattr(os, "O_BINARY", 0), 0o600)
    if follows and sys.platform != "win32":
        import fcntl

        fcntl.flock(copy, fcntl.LOCK_EX)  # The mark of a live recording.
        _copy(source, copy, shown, until=b"\n")
        Thread(target=_copy_rest, args=(source, copy, shown), name="stdin", daemon=True).start()
    else:
        _copy(source, copy, shown)
        os.close(copy)
    try:
        read_header_of(path)
    except UsageError as error:
        raise UsageError(error.args[0].replace(str(path), shown), error.hint) from None
    return path


def temporary_folder() -> Path:
    """Return a new folder that is deleted at exit, also after SIGTERM and SIGHUP."""
    folder = tempfile.mkdtemp(prefix="mcpspy-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    for name in ("SIGTERM", "SIGHUP"):
        number = getattr(signal, name, None)
        if number is not None and signal.getsignal(number) is signal.SIG_DFL:
            signal.signal(number, lambda received, _: sys.exit(128 + received))
    return Path(folder)


def _copy(source: int, copy: int, shown: str, until: bytes | None = None) -> None:
    """Copy up to the end of the pipe, or until a chunk contains `until`."""
    try:
        while data := os.read(source, CHUNK):
            found = until is not None and until in data
            while data:
                data = data[os.write(copy, data) :]
            if found:
                return
    except OSError as error:
        is_full = error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
        hint = f"set TMPDIR to a folder with more space than {tempfile.gettempdir()}" if is_full else ""
        raise CannotStart(f"cannot copy {shown}: {error.strerror}", hint) from None


def _copy_rest(source: int, copy: int, shown: str) -> None:
    try:
        _copy(source, copy, shown)
    except CannotStart as error:
        _failures.append(error)
    os.close(copy)


def check_complete() -> None:
    """Raise CannotStart if a copy that was followed has ended before its pipe."""
    for error in _failures:
        raise error
