"""`mcpspy exec`: runs a program together with a forward proxy that only this program uses.

The program gets mcpspy's stdin, stdout and stderr; mcpspy forwards signals to it and exits as it did. Its
environment makes it use the proxy and trust the CA; docs/ca.md lists the variables by runtime.
On Windows, only the exit code is passed on.
"""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import signal
import sys
import tempfile
from asyncio.subprocess import DEVNULL, PIPE
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from mcpspy.core.redact.display import redacted_url
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
"""Seconds to wait until the guard reports that a signal reached the whole group; then the signal is forwarded."""


def _report_start_failure(error: OSError, program: str) -> int:
    """Print why the program did not start. Return the exit code that a shell uses."""
    code, line = system.explain(error, program)
    say(line)
    return code


def is_start_failure(status: int) -> bool:
    """Return whether this is a shell's status for a command that it cannot start."""
    return status in [code if sys.platform == "win32" else code << 8 for code in (NOT_EXECUTABLE, NOT_FOUND)]


if sys.platform == "win32":

    async def run(command: list[str], environment: Mapping[str, str]) -> int:
        """Run the program. Return its exit code."""
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the program.
        try:
            process = await asyncio.create_subprocess_exec(*command, env=environment)
        except OSError as error:
            return _report_start_failure(error, command[0])
        return await process.wait()

else:

    async def run(command: list[str], environment: Mapping[str, str]) -> int:
        """Run the program. Return its wait status."""
        loop = asyncio.get_running_loop()
        changed = asyncio.Event()
        loop.add_signal_handler(signal.SIGCHLD, changed.set)
        # A signal that was ignored at the start (`nohup`, or `&` in a shell) stays ignored.
        numbers = [
            number
            for name in system.FORWARDED
            if signal.getsignal(number := getattr(signal, name)) != signal.SIG_IGN
        ]
        signals = _Signals()
        for number in numbers:  # Before the start, because the program may cause a signal at once.
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
        # Python ignores these two signals, and exec does not reset ignored signals.
        defaults = [signal.SIGPIPE, signal.SIGXFSZ]
        return os.posix_spawnp(command[0], command, environment, setsigdef=defaults)

    def _reap(pid: int) -> int | None:
        found, status = os.waitpid(pid, os.WNOHANG)
        return status if found else None

    class _Signals:
        """Forwards signals, except those that the whole process group received."""

        def __init__(self) -> None:
            self._pid: int | None = None
            self._guard: Guard | None = None
            self._loop = asyncio.get_running_loop()
            self._group_signals: list[tuple[float, int]] = []
            self._waiting: set[asyncio.TimerHandle] = set()

        def forward_to(self, pid: int, guard: Guard | None) -> None:
            self._pid, self._guard = pid, guard
            if guard is not None:
                self._loop.add_reader(guard.seen, self._group_got)

        def receive(self, number: int) -> None:
            """Forward a signal after GROUP_SIGNAL_WAIT, unless the guard received it too."""
            self._waiting.add(self._loop.call_later(GROUP_SIGNAL_WAIT, self._forward, number))

        def close(self) -> None:
            """Stop forwarding, because the pid may be reused."""
            for handle in self._waiting:
                handle.cancel()
            if self._guard is not None:
                self._loop.remove_reader(self._guard.seen)
                self._guard.dismiss()

        def _group_got(self) -> None:
            assert self._guard is not None
            seen = os.read(self._guard.seen, 512)
            if not seen:  # The guard was killed: forward every signal from now on.
                self._loop.remove_reader(self._guard.seen)
            now = self._loop.time()
            self._group_signals += [(now, number) for number in seen]

        def _forward(self, number: int) -> None:
            now = self._loop.time()
            # Two signals may reach mcpspy as one and the guard as two: the second must not count for a later signal.
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

CA_BUNDLE_VARIABLES = {
    "SSL_CERT_FILE": "OpenSSL, Python (ssl, httpx, aiohttp), Go and .NET on Linux, Ruby, Rust (native certificates)",
    "REQUESTS_CA_BUNDLE": "Python (requests)",
    "CURL_CA_BUNDLE": "curl",
    "GIT_SSL_CAINFO": "git",
    "PIP_CERT": "pip",
    "AWS_CA_BUNDLE": "AWS",
    "CARGO_HTTP_CAINFO": "cargo",
}
"""Variables that name a file with all CAs, which replaces the system's."""

EXTRA_CA_VARIABLES = {"NODE_EXTRA_CA_CERTS": "Node.js, Bun, Electron", "DENO_CERT": "Deno"}
"""Variables that name a file with CAs in addition to the built-in ones."""


def variables(environ: Mapping[str, str], proxy: str, bundle: str) -> dict[str, str]:
    """Return the environment of a program that uses `proxy` and trusts the CAs in `bundle` (PEM)."""
    environment = {name: value for name, value in environ.items() if name not in BYPASS}
    environment |= dict.fromkeys(PROXY, proxy)
    environment |= dict.fromkeys((*CA_BUNDLE_VARIABLES, *EXTRA_CA_VARIABLES), bundle)
    # Without it, fetch() of Node.js 24, and 22 from 22.21 on, takes no proxy from the environment.
    environment["NODE_USE_ENV_PROXY"] = "1"
    return environment


async def ignored_proxy(command: list[str], environment: Mapping[str, str]) -> str | None:
    """Return a warning if the program is run by a Node.js whose `fetch()` takes no proxy from the environment.

    That is each before 22.21, and 23 (Node.js, command-line API, `NODE_USE_ENV_PROXY`). A program that chooses its
    proxy itself works nevertheless, so it is started.
    """
    node = _node_of(command[0], environment.get("PATH"))
    version = await _node_version(node, environment) if node is not None else None
    if version is None or version >= (24, 0) or (22, 21) <= version < (23, 0):
        return None
    return (
        f"{command[0]} runs on Node.js {version[0]}.{version[1]}, whose fetch() ignores HTTPS_PROXY: its traffic may not "
        "be recorded (use Node.js 24 or 22.21, or mcpspy http --upstream URL)"
    )


MAX_FIRST_LINE = 256
"""Bytes of a script's first line that are read, as Linux does."""

NODE_TIMEOUT = 5.0
"""Seconds to wait for `node --version`."""

_NODE_SCRIPT = re.compile(rb"#!.*\bnode\b")
_NODE_VERSION = re.compile(rb"v(\d+)\.(\d+)\.")


def _node_of(name: str, path: str | None) -> str | None:
    """Return the file of the Node.js that runs a program; None if another runs it."""
    program = shutil.which(name, path=path)
    if program is None or Path(program).stem.lower() == "node":
        return program
    with suppress(OSError), open(program, "rb") as file:
        if _NODE_SCRIPT.match(file.readline(MAX_FIRST_LINE)):
            return shutil.which("node", path=path)
    return None


async def _node_version(program: str, environment: Mapping[str, str]) -> tuple[int, int] | None:
    """Return the major and minor version; None if the program does not print one, as one that is not Node.js."""
    with suppress(OSError, TimeoutError):
        process = await asyncio.create_subprocess_exec(
            program, "--version", env=environment, stdin=DEVNULL, stdout=PIPE, stderr=DEVNULL
        )
        try:
            output, _ = await asyncio.wait_for(process.communicate(), NODE_TIMEOUT)
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()
        if found := _NODE_VERSION.match(output):
            return int(found[1]), int(found[2])
    return None


def named_authorities(environ: Mapping[str, str]) -> bytes:
    """Return the CAs that a program's own environment names. Unreadable files are skipped."""
    pieces: dict[bytes, None] = {}
    for name in (*CA_BUNDLE_VARIABLES, *EXTRA_CA_VARIABLES):
        try:
            data = Path(environ.get(name, "")).read_bytes()
        except OSError:  # Not set, a folder, or missing: the program could not read it either.
            continue
        pieces[data.rstrip() + b"\n"] = None
    return b"".join(pieces)


class ExecOptions(forward_proxy.ForwardOptions):
    """The options of `mcpspy exec`."""

    def __init__(self, command: list[str]) -> None:
        super().__init__("127.0.0.1", 0)
        self.command = command
        self.announces = False


def run_program(options: ExecOptions) -> int:
    """Run the program and exit as it did. Raises CannotStart."""
    return system.leave(asyncio.run(_run(options)))


async def _run(options: ExecOptions) -> int:
    ca = authority()
    # mcpspy connects for the program, so it trusts the same CAs.
    options.authorities = named_authorities(os.environ)
    with tempfile.TemporaryDirectory(prefix="mcpspy-") as folder:
        bundle = Path(folder) / "bundle.pem"
        bundle.write_bytes(system_authorities() + options.authorities + ca.certificate.read_bytes())
        async with forward_proxy.forwarding(options, ca) as proxy:
            environment = variables(os.environ, proxy.url, os.fspath(bundle))
            if warning := await ignored_proxy(options.command, environment):
                say(warning)
            status = await run(options.command, environment)
    for upstream, path in proxy.recordings():
        say(f"{redacted_url(upstream)}: recorded to {path}")
    if options.recording and not proxy.recordings() and not is_start_failure(status):
        say(f"nothing recorded: {options.command[0]} sent no MCP through the proxy (see docs/exec.md)")
    return status
