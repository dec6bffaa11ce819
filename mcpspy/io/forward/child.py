"""A program that is started, waited for, and left as it left.

Owns its process, with our stdin, stdout and stderr, and the signals that are
passed on to it, each once. Nothing of it is read. (Where there are no POSIX
processes there is only its exit code.)

The variables by which one program is led through a forward proxy, and made to trust it.

Owns their names. Each runtime has its own; what each of them heeds is in docs/ca.md.

`mcpspy exec`: a program, and a forward proxy for it alone.

Owns what the program is told of the proxy, and what is told of its recordings
once it has ended. Nothing outside of its environment changes.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import NoReturn

from mcpspy.errors import NOT_EXECUTABLE, NOT_FOUND
from mcpspy.io.forward import proxy as forward_proxy
from mcpspy.io.forward.ca import authority, system_authorities
from mcpspy.io.recording.recorder import say

if sys.platform == "win32":
    from mcpspy.io.stdio import windows as system
else:
    from mcpspy.io.stdio import process as system
    from mcpspy.io.stdio.guard import Guard

GROUP_SIGNAL_WAIT = 0.25
"""Seconds we wait for the guard to say that a signal went to the whole group, before passing it on."""


def leave(status: int) -> NoReturn:
    """End as a program with this status ended."""
    system.leave(status)


def _report_start_failure(error: OSError, program: str) -> int:
    """Say why it did not start; return the exit code of a shell."""
    code, line = system.explain(error, program)
    say(line)
    return code


def is_start_failure(status: int) -> bool:
    """Whether this is what a shell says of a command it cannot start."""
    return status in [code if sys.platform == "win32" else code << 8 for code in (NOT_EXECUTABLE, NOT_FOUND)]


if sys.platform == "win32":

    async def run(command: list[str], environment: Mapping[str, str]) -> int:
        """Run it to its end; return what `leave` takes."""
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the program's.
        try:
            process = await asyncio.create_subprocess_exec(*command, env=environment)
        except OSError as error:
            return _report_start_failure(error, command[0])
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
            loop.add_signal_handler(number, signals.receive, number)
        try:
            pid = _spawn(command, environment)
        except OSError as error:
            return _report_start_failure(error, command[0]) << 8
        signals.forward_to(pid, Guard.start(pid, numbers))
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
            self._group_signals: list[tuple[float, int]] = []
            self._waiting: set[asyncio.TimerHandle] = set()

        def forward_to(self, pid: int, guard: Guard | None) -> None:
            """Pass them on to this process from now on."""
            self._pid, self._guard = pid, guard
            if guard is not None:
                self._loop.add_reader(guard.seen, self._group_got)

        def receive(self, number: int) -> None:
            """Pass it on in a moment, unless the guard got it, too."""
            self._waiting.add(self._loop.call_later(GROUP_SIGNAL_WAIT, self._forward_response, number))

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
            self._group_signals += [(now, number) for number in seen]

        def _forward_response(self, number: int) -> None:
            now = self._loop.time()
            # Two that came as one to us came as two to the guard: its second must not answer for a later one.
            self._group_signals = [
                (at, other) for at, other in self._group_signals if now < at + 2 * GROUP_SIGNAL_WAIT
            ]
            duplicate = next((duplicate for duplicate in self._group_signals if duplicate[1] == number), None)
            if duplicate is not None:
                self._group_signals.remove(duplicate)
            elif self._pid is not None:
                os.kill(self._pid, number)


PROXY = ("HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy")

BYPASS = ("NO_PROXY", "no_proxy")

INSTEAD = {
    "SSL_CERT_FILE": "OpenSSL, Python (ssl, httpx, aiohttp), Go and .NET on Linux, Ruby, Rust (native certificates)",
    "REQUESTS_CA_BUNDLE": "Python (requests)",
    "CURL_CA_BUNDLE": "curl",
    "GIT_SSL_CAINFO": "git",
    "PIP_CERT": "pip",
    "AWS_CA_BUNDLE": "AWS",
    "CARGO_HTTP_CAINFO": "cargo",
}
"""Name a file of all authorities, in place of the system's."""

BESIDES = {"NODE_EXTRA_CA_CERTS": "Node.js, Bun, Electron", "DENO_CERT": "Deno"}
"""Name a file of authorities besides those that are built in."""


def variables(environ: Mapping[str, str], proxy: str, bundle: str) -> dict[str, str]:
    """Return the environment of a program, led through `proxy` and made to trust what is in `bundle` (PEM)."""
    environment = {name: value for name, value in environ.items() if name not in BYPASS}
    environment |= dict.fromkeys(PROXY, proxy)
    environment |= dict.fromkeys((*INSTEAD, *BESIDES), bundle)
    # Node.js 24, and 22 from 22.21 on: fetch() takes no proxy from the environment without it.
    environment["NODE_USE_ENV_PROXY"] = "1"
    return environment


def named_authorities(environ: Mapping[str, str]) -> bytes:
    """Return the authorities that a program's own environment names; a file that cannot be read names none."""
    pieces: dict[bytes, None] = {}
    for name in (*INSTEAD, *BESIDES):
        try:
            data = Path(environ.get(name, "")).read_bytes()
        except OSError:  # Not set, or a folder, or not there: the program would not get any from it, either.
            continue
        pieces[data.rstrip() + b"\n"] = None
    return b"".join(pieces)


class ExecOptions(forward_proxy.ForwardOptions):
    """What `mcpspy exec` was asked to do."""

    def __init__(self, command: list[str]) -> None:
        super().__init__("127.0.0.1", 0)
        self.command = command
        self.announces = False


def run_program(options: ExecOptions) -> int:
    """Run the program, and end as it ended. Raises CannotStart."""
    return leave(asyncio.run(_run(options)))


async def _run(options: ExecOptions) -> int:
    ca = authority()
    # What the program trusts by its environment, we trust in its place.
    options.authorities = named_authorities(os.environ)
    with tempfile.TemporaryDirectory(prefix="mcpspy-") as folder:
        bundle = Path(folder) / "bundle.pem"
        bundle.write_bytes(system_authorities() + options.authorities + ca.certificate.read_bytes())
        async with forward_proxy.forwarding(options, ca) as proxy:
            status = await run(options.command, variables(os.environ, proxy.url, os.fspath(bundle)))
    for upstream, path in proxy.recordings():
        say(f"{upstream}: recorded to {path}")
    if options.recording and not proxy.recordings() and not is_start_failure(status):
        say(
            f"nothing recorded: {options.command[0]} said no MCP through the proxy (docs/exec.md: who takes one)"
        )
    return status
