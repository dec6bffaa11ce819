"""A client connection to a server that runs as a child process.

The server and its children form a process group, which is ended as SDK clients do: close stdin, send SIGTERM
after two seconds, and SIGKILL after two more.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from time import monotonic
from typing import TYPE_CHECKING, cast

from mcpspy.core.framing import LineFramer
from mcpspy.core.jsontools import one_line
from mcpspy.core.recording.encode import CLIENT, SERVER, FrameEncoder, TextEncoder
from mcpspy.errors import CannotStart
from mcpspy.io.client.base import (
    ConnectionEnded,
    ReceivedMessage,
    ServerCommand,
    ServerConnection,
    StderrLine,
)

if sys.platform == "win32":
    from mcpspy.io.stdio.windows import explain
else:
    from mcpspy.io.stdio.process import explain

if TYPE_CHECKING:
    from mcpspy.io.recording.recorder import Recorder

PATIENCE = 2.0
"""Seconds from closing stdin to SIGTERM, and from SIGTERM to SIGKILL, as in the SDK clients."""

LINGER = 0.25
"""Seconds that a grandchild may hold stdout open after the server's exit."""

IN, OUT, ERR = 0, 1, 2


async def start(
    command: ServerCommand, recorder: Recorder | None = None, *, keeps_cr: bool = False
) -> StdioConnection:
    """Start a server. Raise CannotStart with its name and the reason.

    `keeps_cr` is for a receiver that records the lines itself, with their line ends.
    """
    connection = StdioConnection(command, recorder, keeps_cr=keeps_cr)
    loop = asyncio.get_running_loop()
    try:
        transport, _ = await loop.subprocess_exec(
            lambda: connection.pipes,
            *command.arguments,
            start_new_session=True,
            cwd=command.cwd,
            env=command.variables,
        )
    except OSError as error:
        if command.cwd is not None and error.filename == command.cwd:
            raise CannotStart(f"{command.cwd}: {error.strerror}", "use another working directory") from None
        raise CannotStart(explain(error, command.arguments[0])[1]) from None
    connection.started(transport)
    return connection


class StdioConnection(ServerConnection):
    """A child process and its three pipes."""

    def __init__(self, command: ServerCommand, recorder: Recorder | None, *, keeps_cr: bool = False) -> None:
        super().__init__(command.shown, recorder)
        self._line_end = b"" if keeps_cr else b"\r"
        self.pipes = _Pipes(self)
        self.pid = 0
        self._stdin_encoder = FrameEncoder(CLIENT)
        self._stdout_encoder = FrameEncoder(SERVER)
        self._stderr_encoder = TextEncoder("stderr")
        self._last_at = {OUT: 0.0, ERR: 0.0}
        """The time of the last byte of each pipe."""
        self._stdout_lines = LineFramer()
        self._stderr_lines = LineFramer()
        self._is_open = True
        self._is_closing = False
        self._exited = asyncio.Event()
        self._inbox.on_space = self._resume
        self._transport: asyncio.SubprocessTransport

    def started(self, transport: asyncio.SubprocessTransport) -> None:
        self._transport = transport
        self.pid = transport.get_pid()

    async def send(self, data: bytes) -> None:
        if not self._is_open:
            return
        line = one_line(data) + b"\n"
        self._record(self._stdin_encoder.feed(self._now(), line))
        stdin = cast("asyncio.WriteTransport", self._transport.get_pipe_transport(IN))
        stdin.write(line)
        await self.pipes.drained.wait()

    def signal(self, name: str) -> None:
        """Send a signal to the server and all its children, such as `SIGTERM`."""
        self._signal(name)

    def end_input(self) -> None:
        """Close the server's stdin, and nothing else: it may still answer."""
        self._close_stdin()

    async def close(self) -> None:
        self._is_closing = True
        self._resume()  # Resume, because the final output is wanted, and a server that cannot write does not exit.
        try:
            self._close_stdin()
            if not await self._wait_for_exit(PATIENCE):
                self._signal("SIGTERM")
                if not await self._wait_for_exit(PATIENCE):
                    self._signal("SIGKILL")
                    await self._exited.wait()
        finally:
            self._signal("SIGKILL")  # Children that the server left behind, or the server if cancelled.
            self._transport.close()

    def data_received(self, fd: int, data: bytes) -> None:
        at = monotonic()
        self._last_at[fd] = now = self._now()
        self._record((self._stdout_encoder if fd == OUT else self._stderr_encoder).feed(now, data))
        if fd == OUT:
            for line in self._stdout_lines.feed(data):
                self._enqueue(ReceivedMessage(at, line.removesuffix(self._line_end)))
            if self._inbox.is_full and not self._is_closing:
                cast("asyncio.ReadTransport", self._transport.get_pipe_transport(OUT)).pause_reading()
        else:
            for line in self._stderr_lines.feed(data):
                self._enqueue(StderrLine(at, line.removesuffix(self._line_end)))

    def pipe_closed(self, fd: int) -> None:
        if fd == IN:
            if self._is_open and self._recorder is not None:
                self._recorder.note("closed", by=SERVER, pipe="stdin", undelivered=0)
            self._is_open = False
        elif fd == OUT:
            self._record(self._stdout_encoder.close(self._last_at[OUT]))
            if torn := b"".join(self._stdout_lines.close()):
                self._enqueue(ReceivedMessage(monotonic(), torn, is_torn=True))
            if self._recorder is not None:
                self._recorder.note("eof", **{"from": SERVER})
        else:
            self._record(self._stderr_encoder.close(self._last_at[ERR]))
            if torn := b"".join(self._stderr_lines.close()):
                self._enqueue(StderrLine(monotonic(), torn))

    def exited(self) -> None:
        """Handle the exit, when the pipes are closed or LINGER is over."""
        code = self._transport.get_returncode()
        if code is not None and code < 0:
            name = signal.Signals(-code).name if -code in set(signal.Signals) else f"signal {-code}"
            self._enqueue(ConnectionEnded(monotonic(), None, name, f"ended by {name}"))
        else:
            self._enqueue(ConnectionEnded(monotonic(), code, None, f"ended with exit code {code}"))
        self._is_open = False
        self._exited.set()

    def _close_stdin(self) -> None:
        if self._is_open:
            self._is_open = False
            if self._recorder is not None:
                self._recorder.note("eof", **{"from": CLIENT})
            stdin = self._transport.get_pipe_transport(IN)
            if stdin is not None:
                stdin.close()

    async def _wait_for_exit(self, seconds: float) -> bool:
        try:
            async with asyncio.timeout(seconds):
                await self._exited.wait()
        except TimeoutError:
            return False
        return True

    def _signal(self, name: str) -> None:
        """Send a signal to the server and all its children."""
        try:
            if sys.platform != "win32":
                os.killpg(self.pid, getattr(signal, name))
            elif self._transport.get_returncode() is None:
                self._transport.kill()
        except (ProcessLookupError, PermissionError):  # No process is left; macOS reports EPERM for a zombie.
            pass

    def _resume(self) -> None:
        stdout = self._transport.get_pipe_transport(OUT)
        if stdout is not None and not cast("asyncio.ReadTransport", stdout).is_reading():
            cast("asyncio.ReadTransport", stdout).resume_reading()


class _Pipes(asyncio.SubprocessProtocol):
    """Forwards the callbacks of asyncio and detects when the process and its output have ended."""

    def __init__(self, connection: StdioConnection) -> None:
        self.drained = asyncio.Event()
        """Set while the server reads its stdin."""
        self.drained.set()
        self._connection = connection
        self._open = {OUT, ERR}
        self._has_exited = False
        self._timer: asyncio.TimerHandle | None = None

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        self._connection.data_received(fd, data)

    def pipe_connection_lost(self, fd: int, exc: Exception | None) -> None:
        if fd == IN:
            self.drained.set()
        self._connection.pipe_closed(fd)
        self._open.discard(fd)
        if self._has_exited and not self._open:
            self._end()

    def process_exited(self) -> None:
        self._has_exited = True
        self.drained.set()
        if self._open:
            self._timer = asyncio.get_running_loop().call_later(LINGER, self._end)
        else:
            self._end()

    def pause_writing(self) -> None:
        self.drained.clear()

    def resume_writing(self) -> None:
        self.drained.set()

    def _end(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._connection.exited()
