"""Start and exit of a server process on POSIX.

Covers the time before the server runs and after it has exited: descriptors, pipes, caught signals, the guard,
and the exit code or signal with which mcpspy ends.
"""

from __future__ import annotations

import os
import signal
import sys
from errno import EACCES, ENOENT, ENOEXEC, ENOTDIR

from mcpspy.errors import NOT_EXECUTABLE, NOT_FOUND
from mcpspy.io.stdio.guard import Guard

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn

    assert sys.platform != "win32"

SHELL = "/bin/sh"
"""Interpreter of a script without `#!`."""

_HEAD = 128
"""Bytes of a file in which a NUL byte shows that it is not a script. bash reads as many."""

FORWARDED = ("SIGTERM", "SIGINT", "SIGHUP", "SIGQUIT", "SIGUSR1", "SIGUSR2")


class Child:
    """The server: its pid, mcpspy's ends of its three pipes, the descriptor of the caught signals, and its guard."""

    def __init__(
        self, pid: int, pipes: tuple[int, int, int], signals: int, caught: list[int], guard: Guard | None
    ) -> None:
        self.pid = pid
        self.stdin, self.stdout, self.stderr = pipes
        self.signals = signals
        self.caught = caught
        """The numbers of the signals that are forwarded."""
        self.guard = guard


def spawn(command: list[str]) -> Child:
    """Start the server in the same process group, environment and folder.

    Raises OSError if the command is not found or cannot be executed.
    """
    _occupy_standard_descriptors()
    # Catch signals first, so that no signal can end mcpspy and leave the server running.
    wake, signals = _catch_signals()
    in_read, in_write = os.pipe()
    out_read, out_write = os.pipe()
    err_read, err_write = os.pipe()
    ends = (in_read, out_write, err_write)
    try:
        try:
            pid = _start(command, ends)
        except OSError as error:
            script = _script(command[0]) if error.errno == ENOEXEC else None
            if script is None:
                raise
            pid = _start([SHELL, script, *command[1:]], ends)
    finally:
        for fd in ends:
            os.close(fd)
    return Child(pid, (in_write, out_read, err_read), wake, signals, Guard.start(pid, signals))


def _start(command: list[str], ends: tuple[int, int, int]) -> int:
    return os.posix_spawnp(
        command[0],
        command,
        os.environ,
        file_actions=[(os.POSIX_SPAWN_DUP2, end, number) for number, end in enumerate(ends)],
        # Python ignores these two signals, and exec does not reset ignored signals.
        setsigdef=[signal.SIGPIPE, signal.SIGXFSZ],
    )


def _script(program: str) -> str | None:
    """Return the path of a script without `#!`, None for a binary file, such as one of another processor.

    execvp, which Node uses, and shells run such a script by the shell. glibc's posix_spawnp does not; macOS's does.
    """
    import shutil  # Takes 10 ms; only for such a script.

    path = shutil.which(program)
    if path is None:
        return None
    try:
        with open(path, "rb") as file:
            return None if b"\0" in file.read(_HEAD) else path
    except OSError:
        return None


def explain(error: OSError, program: str) -> tuple[int, str]:
    """Return the exit code and the error message for a server that did not start."""
    if error.errno in (ENOENT, ENOTDIR):
        where = "no such file" if os.sep in program else "not found on PATH"
        if program.startswith(("http://", "https://")):
            where = "a URL (use mcpspy http --upstream URL, or mcpspy bridge --upstream URL as the command)"
        elif os.sep in program and os.path.isfile(program):
            where = "the interpreter that its first line names (#!) is not found"
        elif os.sep not in program and os.path.isfile(program):
            where += f", but a file of this folder: use ./{program}, or put its interpreter before it"
        elif " " in program:
            where += " (the name contains spaces: do not quote the command and its arguments together)"
        return NOT_FOUND, f"cannot start {program}: {where}"
    if error.errno == EACCES and os.path.isdir(program):
        return NOT_EXECUTABLE, f"cannot start {program}: a directory (name a program in it)"
    if error.errno == EACCES:
        return NOT_EXECUTABLE, f"cannot start {program}: not executable (chmod +x, or run its interpreter)"
    return NOT_EXECUTABLE, f"cannot start {program}: {error.strerror}"


def outcome(status: int) -> tuple[int | None, str | None]:
    """Return the server's exit code, or the name of the signal that ended it."""
    code = os.waitstatus_to_exitcode(status)
    return (code, None) if code >= 0 else (None, signal_name(-code))


def leave(status: int) -> NoReturn:
    """End mcpspy the same way as the server: with its exit code, or by its signal."""
    code = os.waitstatus_to_exitcode(status)
    if code >= 0:
        os._exit(code)
    number = -code
    if os.WCOREDUMP(status) or number in (signal.SIGQUIT, signal.SIGABRT, signal.SIGSEGV):
        import resource

        # Only the server's core dump is useful; mcpspy's would overwrite it.
        resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))
    try:
        signal.signal(number, signal.SIG_DFL)
    except OSError:  # The handler of SIGKILL cannot be set and is always the default.
        pass
    signal.pthread_sigmask(signal.SIG_UNBLOCK, [number])
    os.kill(os.getpid(), number)
    os._exit(128 + number)


def _catch_signals() -> tuple[int, list[int]]:
    """Receive signals as bytes on a pipe. Return the pipe and the numbers of the forwarded signals.

    A signal that was ignored at the start (`nohup`, or `&` in a shell) stays ignored.
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
    """Open the standard descriptors that are closed; otherwise a new pipe would become stdout."""
    for fd in (0, 1, 2):
        try:
            os.fstat(fd)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # Takes the lowest free number, which is `fd`.


def signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:  # Real-time signals have no name.
        return f"SIG{number}"
