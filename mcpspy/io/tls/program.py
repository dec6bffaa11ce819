"""A program that is started, waited for, and left as it left.

Owns its process, with our stdin, stdout and stderr, and the signals that are
passed on to it, each once. Nothing of it is read. (Where there are no POSIX
processes there is only its exit code.)
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Mapping
from typing import NoReturn

from mcpspy.errors import NOT_EXECUTABLE, NOT_FOUND
from mcpspy.io.recorder import say

if sys.platform == "win32":
    from mcpspy.io import windows as system
else:
    from mcpspy.io import posix as system
    from mcpspy.io.guard import Guard

ECHO = 0.25
"""Seconds we wait for the guard to say that a signal went to the whole group, before passing it on."""


def leave(status: int) -> NoReturn:
    """End as a program with this status ended."""
    system.leave(status)


def _refused(error: OSError, program: str) -> int:
    """Say why it did not start; return the exit code of a shell."""
    code, line = system.explain(error, program)
    say(line)
    return code


def is_refusal(status: int) -> bool:
    """Whether this is what a shell says of a command it cannot start."""
    return status in [code if sys.platform == "win32" else code << 8 for code in (NOT_EXECUTABLE, NOT_FOUND)]


if sys.platform == "win32":

    async def run(command: list[str], environment: Mapping[str, str]) -> int:
        """Run it to its end; return what `leave` takes."""
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the program's.
        try:
            process = await asyncio.create_subprocess_exec(*command, env=environment)
        except OSError as error:
            return _refused(error, command[0])
        return await process.wait()

else:

    async def run(command: list[str], environment: Mapping[str, str]) -> int:
        """Run it to its end; return what `leave` takes, a wait status."""
        loop = asyncio.get_running_loop()
        changed = asyncio.Event()
        loop.add_signal_handler(signal.SIGCHLD, changed.set)
        # One that we were started with ignored (`nohup`, a shell's `&`) stays ignored.
        numbers = [
            number
            for name in system.FORWARDED
            if signal.getsignal(number := getattr(signal, name)) != signal.SIG_IGN
        ]
        signals = _Signals()
        for number in numbers:  # Before it starts: it may have us signalled at once.
            loop.add_signal_handler(number, signals.got, number)
        try:
            pid = _spawn(command, environment)
        except OSError as error:
            return _refused(error, command[0]) << 8
        signals.go_to(pid, Guard.start(pid, numbers))
        try:
            while (status := _reap(pid)) is None:
                await changed.wait()
                changed.clear()
        finally:
            signals.close()
        return status

    def _spawn(command: list[str], environment: Mapping[str, str]) -> int:
        # Python ignores these two, and an ignored signal stays ignored through exec.
        defaults = [signal.SIGPIPE, signal.SIGXFSZ]
        return os.posix_spawnp(command[0], command, environment, setsigdef=defaults)

    def _reap(pid: int) -> int | None:
        found, status = os.waitpid(pid, os.WNOHANG)
        return status if found else None

    class _Signals:
        """Passes signals on: not those that the whole group got anyway."""

        def __init__(self) -> None:
            self._pid: int | None = None
            self._guard: Guard | None = None
            self._loop = asyncio.get_running_loop()
            self._groups: list[tuple[float, int]] = []
            self._waiting: set[asyncio.TimerHandle] = set()

        def go_to(self, pid: int, guard: Guard | None) -> None:
            """Pass them on to this process from now on."""
            self._pid, self._guard = pid, guard
            if guard is not None:
                self._loop.add_reader(guard.seen, self._group_got)

        def got(self, number: int) -> None:
            """Pass it on in a moment, unless the guard got it, too."""
            self._waiting.add(self._loop.call_later(ECHO, self._pass_on, number))

        def close(self) -> None:
            """Pass nothing on any more: the pid may be somebody else's soon."""
            for handle in self._waiting:
                handle.cancel()
            if self._guard is not None:
                self._loop.remove_reader(self._guard.seen)
                self._guard.dismiss()

        def _group_got(self) -> None:
            assert self._guard is not None
            seen = os.read(self._guard.seen, 512)
            if not seen:  # Somebody killed the guard. From now on we pass every signal on.
                self._loop.remove_reader(self._guard.seen)
            now = self._loop.time()
            self._groups += [(now, number) for number in seen]

        def _pass_on(self, number: int) -> None:
            now = self._loop.time()
            # Two that came as one to us came as two to the guard: its second must not answer for a later one.
            self._groups = [(at, other) for at, other in self._groups if now < at + 2 * ECHO]
            echo = next((echo for echo in self._groups if echo[1] == number), None)
            if echo is not None:
                self._groups.remove(echo)
            elif self._pid is not None:
                os.kill(self._pid, number)
