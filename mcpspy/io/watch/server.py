"""A stdio server and its successors in one session: the shell around `core.restart`.

The server is a child with its own pipes (`io.client.stdio`), which is ended as the SDKs' clients do. `ServerOwner` takes
what happens: a session on stdio (`io.watch.session`), or a client over HTTP (`io.gateway`).
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Coroutine
from contextlib import suppress
from importlib import import_module
from typing import Any, Protocol

from mcpspy.core.redact.display import redacted_text
from mcpspy.core.restart.commands import Command, RestartNote, Start, Stop, ToHost, ToServer
from mcpspy.core.restart.machine import MAX_WAITING, RestartMachine, ServerPhase
from mcpspy.errors import NOT_FOUND, CannotStart
from mcpspy.io.client import ConnectionEnded, ReceivedMessage, ServerCommand, StderrLine
from mcpspy.io.client.stdio import PATIENCE, StdioConnection, start

MAX_QUEUED = 1 << 20
"""Bytes that may be queued for the host before the server has to wait, and for the server before the host has to."""


class ServerOwner(Protocol):
    """The session to which the servers belong."""

    def sending(self, data: bytes) -> None:
        """Take a message of mcpspy before it is sent to the server."""

    def generated(self, data: bytes) -> None:
        """Take a message of mcpspy for the client, in the name of the server."""

    def received(self, event: ReceivedMessage) -> None:
        """Take a line of the server's stdout; `RestartMachine.server` decides on it."""

    async def wait_for_room(self) -> None:
        """Return when the next line of the server may be read."""

    def heard(self, line: bytes) -> None:
        """Take a line of the server's stderr, without its LF."""

    def input_ended(self) -> None:
        """Take the end of the client's input, once, unless a signal came first."""

    def note(self, fields: dict[str, Any]) -> None:
        """Take the fields of a note of kind `restart`."""

    def failed(self, error: BaseException) -> None:
        """Take a bug in mcpspy, which ends the session."""


class RestartableServer:
    """The servers of one session."""

    def __init__(self, command: ServerCommand, owner: ServerOwner) -> None:
        self.machine = RestartMachine(f"mcpspy-restart-{os.urandom(3).hex()}-")
        self.outcome: tuple[int | None, str | None] = 0, None
        """Exit code or signal of the last server."""
        self.is_closing = False
        """True if no server is started any more."""
        self._command = command
        self._owner = owner
        self._connection: StdioConnection | None = None
        self._tasks: set[asyncio.Task[object]] = set()
        self._outgoing: asyncio.Queue[tuple[StdioConnection, bytes]] = asyncio.Queue()
        self._queued = 0
        """Bytes in the queue to the server."""
        self._has_room = asyncio.Event()
        self._has_room.set()
        self._is_settled = asyncio.Event()
        """Set while no message waits for a server that is being started."""
        self._is_over = asyncio.Event()
        """Set when the last server has ended after `is_closing`."""

    def begin(self) -> None:
        """Start the first server."""
        self._start_task(self._send_queued())
        self._start_task(asyncio.to_thread(import_module, "mcpspy.analysis.restarts"))  # While it starts.
        self.run([Start()])

    def restart(self, why: dict[str, Any]) -> bool:
        """Restart the server; `why` has the fields of the note. Return False if the session is ending."""
        if not self.is_closing:
            self.run(self.machine.restart(why))
        return not self.is_closing

    def send(self, data: bytes) -> None:
        """Take a message of the client."""
        self.run(self.machine.client(data))

    async def wait_for_room(self) -> None:
        """Return when the server may get the next message of the client."""
        self._update_room()
        await self._has_room.wait()

    async def end_input(self) -> None:
        """Pass the end of the client's input on, and wait for the end of the server, which may still respond."""
        await self._is_settled.wait()  # A server that is being restarted gets what waits for it.
        await self._outgoing.join()
        self._close_input()
        if self._connection is not None:
            self._connection.end_input()
            await self._is_over.wait()

    async def close(self, name: str | None = None) -> None:
        """End the server; `name` is the signal that it gets first."""
        if name is None:
            self._close_input()
        self.is_closing = True
        if (connection := self._connection) is not None:
            if name is not None:
                connection.signal(name)
            with suppress(TimeoutError):  # A client that does not read keeps the last messages from ending.
                async with asyncio.timeout(3 * PATIENCE):
                    await connection.close()
                    await self._is_over.wait()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _close_input(self) -> None:
        if not self.is_closing:
            self.is_closing = True
            self._owner.input_ended()

    # Commands.

    def run(self, commands: list[Command]) -> None:
        """Execute commands of the machine, in order."""
        for command in commands:
            match command:
                case ToServer(data, is_own):
                    if is_own:
                        self._owner.sending(data)
                    self._queue(data)
                case ToHost(data):
                    self._owner.generated(data)
                case Start():
                    self._start_task(self._start())
                case Stop():
                    assert self._connection is not None
                    self._start_task(self._connection.close())
                case RestartNote():
                    self._owner.note(_fields(command))
        self._update_room()

    def _queue(self, data: bytes) -> None:
        if self._connection is not None:
            self._queued += len(data)
            self._outgoing.put_nowait((self._connection, data))

    async def _send_queued(self) -> None:
        while True:
            connection, data = await self._outgoing.get()
            await connection.send(data)  # One that has ended drops it.
            self._queued -= len(data)
            self._outgoing.task_done()
            self._update_room()

    def _update_room(self) -> None:
        if self._queued > MAX_QUEUED or self.machine.waiting > MAX_WAITING:
            self._has_room.clear()
        else:
            self._has_room.set()
        is_between = self.machine.phase in (ServerPhase.STOPPING, ServerPhase.STARTING)
        if is_between or self.machine.waiting:
            self._is_settled.clear()
        else:
            self._is_settled.set()

    # The process.

    async def _start(self) -> None:
        try:
            self._connection = await start(self._command, keeps_cr=True)
        except CannotStart as error:
            self._connection, self.outcome = None, (NOT_FOUND, None)
            self.run(self.machine.ended(str(error)))
            return
        self.run(self.machine.started())
        await self._receive(self._connection)

    async def _receive(self, connection: StdioConnection) -> None:
        async for event in connection:
            if isinstance(event, ReceivedMessage):
                self._owner.received(event)
                await self._owner.wait_for_room()
            elif isinstance(event, StderrLine):
                self._owner.heard(event.line)
            elif isinstance(event, ConnectionEnded):
                self._ended(connection, event)

    def _ended(self, connection: StdioConnection, event: ConnectionEnded) -> None:
        self.outcome = event.code, event.signal
        self._connection = None
        if self.is_closing:
            self._start_task(self._end(connection))
            return
        error = redacted_text(connection.last_error)
        outcome = {"code": event.code, "signal": event.signal}
        if self.machine.phase is not ServerPhase.STOPPING:
            self._start_task(connection.close())  # Children that it left behind.
        self.run(self.machine.ended(f"it {event.why}", error, **outcome))

    async def _end(self, connection: StdioConnection) -> None:
        """End what the last server left behind."""
        await connection.close()
        self._is_over.set()

    def _start_task(self, work: Coroutine[Any, Any, object]) -> None:
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._done)

    def _done(self, task: asyncio.Task[object]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            self._owner.failed(error)


def _fields(report: RestartNote) -> dict[str, Any]:
    """Return the fields of a note, with the changes of the interface, and without secrets."""
    fields = report.fields
    if report.after is not None:
        from mcpspy.analysis.restarts import changes

        if report.before is not None:
            return {
                **fields,
                "changes": [redacted_text(line) for line in changes(report.before, report.after)],
            }
    elif "text" in fields:
        return {**fields, "text": redacted_text(fields["text"])}
    return fields
