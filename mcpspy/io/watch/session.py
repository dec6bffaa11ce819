"""A session with a stdio server that is restarted: the shell around `core.restart`.

The host keeps its pipes and its session. The server is a child with its own pipes (`io.client.stdio`), which is ended as
the SDKs' clients do. Each message is recorded before it is forwarded, here, and not by the connection: what happens
to it is in its entry.
"""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Callable, Coroutine
from contextlib import suppress
from importlib import import_module
from typing import Any

from mcpspy.core.jsontools import one_line
from mcpspy.core.protocol.spec import CLIENT, SERVER
from mcpspy.core.recording.encode import TextEncoder
from mcpspy.core.redact.display import redacted_text
from mcpspy.core.restart.commands import Command, RestartNote, Start, Stop, ToHost, ToServer
from mcpspy.core.restart.machine import MAX_WAITING, RestartMachine, ServerPhase
from mcpspy.core.session import restart_notes
from mcpspy.core.session.restart_notes import RESTART
from mcpspy.core.session.rule_notes import RULE
from mcpspy.errors import NOT_FOUND, CannotStart
from mcpspy.io.client import ConnectionEnded, ReceivedMessage, ServerCommand, StderrLine
from mcpspy.io.client.stdio import PATIENCE, StdioConnection, start
from mcpspy.io.intercept.interception import RESTART as RESTART_ORDER
from mcpspy.io.recording.recorder import Recorder, say
from mcpspy.io.stdio.base import STDERR, THROUGH, RunOptions
from mcpspy.io.stdio.interception import BLANKS, is_json_message
from mcpspy.io.stdio.lines import END, Backlog, StdoutWriter, read_lines
from mcpspy.io.stdio.run import open_recorder
from mcpspy.io.watch.files import FileWatcher
from mcpspy.io.watch.interception import WatchInterception, fields_of

MAX_QUEUED = 1 << 20
"""Bytes that may be queued for the host before the server has to wait, and for the server before the host has to."""

STDERR_DESCRIPTOR = 2

SHOWN = 3
"""Last lines of the stderr of a server that ended, for the client."""


class WatchedSession:
    """The session of one host."""

    def __init__(
        self,
        options: RunOptions,
        recorder: Recorder,
        write: Callable[[bytes], None],
        write_stderr: Callable[[bytes], None],
        disconnect: Callable[[], None],
    ) -> None:
        """Prepare the session. `write` and `write_stderr` pass a line on; `disconnect` ends the session."""
        self._outcome: tuple[int | None, str | None] = 0, None
        """Exit code or signal of the last server."""
        self._options = options
        self._recorder = recorder
        self._write, self._write_stderr = write, write_stderr
        self._disconnect = disconnect
        self._machine = RestartMachine(f"mcpspy-restart-{os.urandom(3).hex()}-")
        self._connection: StdioConnection | None = None
        self._tasks: set[asyncio.Task[object]] = set()
        self._outgoing: asyncio.Queue[tuple[StdioConnection, bytes]] = asyncio.Queue()
        self._queued = 0
        """Bytes in the queue to the server."""
        self._has_room = asyncio.Event()
        self._has_room.set()
        self._may_read = asyncio.Event()
        self._may_read.set()
        self._is_settled = asyncio.Event()
        """Set while no message waits for a server that is being started."""
        self._is_over = asyncio.Event()
        """Set when the last server has ended after the host closed stdin."""
        self._is_closing = False
        self._stderr = TextEncoder("stderr", options.line_limit)
        self.interception = WatchInterception(
            recorder,
            options,
            to_host=self._to_host,
            to_server=lambda data: self._run(self._machine.client(data)),
            is_connected=lambda: self._machine.phase is ServerPhase.SERVING,
            disconnect=disconnect,
        )
        self.interception.orders[RESTART_ORDER] = self._ordered

    def begin(self) -> None:
        """Start the first server."""
        self._start_task(self._send_queued())
        self._start_task(
            asyncio.to_thread(import_module, "mcpspy.analysis.restarts")
        )  # While the server starts.
        self._run([Start()])

    async def forward(self, line: bytes) -> None:
        """Take a line of the host, without its LF. Returns when the next one may be read."""
        data = line.removesuffix(b"\r")
        if self._machine.is_stale(data):
            self.interception.record(CLIENT, line, fields_of(to=True))
        elif (renamed := self._machine.renamed(data)) is not None:
            self.interception.record(CLIENT, line, fields_of(to=True))
            self.interception.take(CLIENT, renamed, fields_of(by=True))
        else:
            self.interception.take(CLIENT, data, {}, original=line)
        self._update_room()
        await self._has_room.wait()
        await self.interception.wait_for_room(CLIENT)

    def restart(self, why: dict[str, Any]) -> None:
        """Restart the server; `why` has the fields of the note."""
        if not self._is_closing:
            self._run(self._machine.restart(why))

    async def drain(self) -> None:
        """Pass the end of the host's input on, and wait for the end of the server."""
        await self.interception.wait_for_scripts(CLIENT)
        self.interception.end_side(CLIENT)
        await self._is_settled.wait()  # A server that is being restarted gets what waits for it.
        await self._outgoing.join()
        self._close_input()
        if self._connection is None:
            return
        self._connection.end_input()
        await self._is_over.wait()
        await self.interception.wait_for_scripts(SERVER)

    async def close(self, name: str | None = None) -> None:
        """End the server; `name` is the signal that mcpspy received, and the server gets first."""
        if name is None:
            self._close_input()
        else:
            self._is_closing = True
            self._recorder.note("signal", signal=name)
        if (connection := self._connection) is not None:
            if name is not None:
                connection.signal(name)
            with suppress(TimeoutError):  # A host that does not read keeps the last messages from ending.
                async with asyncio.timeout(3 * PATIENCE):
                    await connection.close()
                    await self._is_over.wait()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _close_input(self) -> None:
        """Record the end of the input, once: no server is started after it."""
        if not self._is_closing:
            self._is_closing = True
            self._recorder.note("eof", **{"from": CLIENT})

    def pause(self, *, is_full: bool) -> None:
        """Pause or resume reading from the server, depending on whether the host reads."""
        if is_full:
            self._may_read.clear()
        else:
            self._may_read.set()

    def finish(self) -> None:
        """Close the recording, with the end of the last server."""
        self._recorder.finish(*self._outcome)

    @property
    def exit_code(self) -> int:
        """Return that of the last server, as a shell has it."""
        code, name = self._outcome
        return 128 + getattr(signal, name, 0) if name is not None else code or 0

    # Commands.

    def _run(self, commands: list[Command]) -> None:
        for command in commands:
            match command:
                case ToServer(data, is_own):
                    if is_own:
                        self.interception.record(CLIENT, data, fields_of(by=True))
                    self._queue(data)
                case ToHost(data):
                    self.interception.take(SERVER, data, fields_of(by=True))
                case Start():
                    self._start_task(self._start())
                case Stop():
                    assert self._connection is not None
                    self._start_task(self._connection.close())
                case RestartNote():
                    self._note(command)
        self._update_room()

    def _note(self, report: RestartNote) -> None:
        fields = report.fields
        if report.after is not None:
            from mcpspy.analysis.restarts import changes

            if report.before is not None:
                found = [redacted_text(line) for line in changes(report.before, report.after)]
                fields = {**fields, "changes": found}
        elif "text" in fields:
            fields = {**fields, "text": redacted_text(fields["text"])}
        if fields["did"] in ("started", "failed"):
            say(restart_notes.words(fields))
        self._recorder.note(RESTART, **fields)
        self.interception.notify(None, {"event": RESTART, **fields})

    def _ordered(self, viewer: str, order: dict[str, Any]) -> dict[str, Any]:
        from mcpspy.core.intercept.actions import CommandError

        if unknown := order.keys() - {"n", "order"}:
            raise CommandError(f"restart: unknown key {min(unknown)!r}")
        if self._is_closing:
            raise CommandError("cannot restart: the session is ending")
        self.restart({"viewer": viewer})
        return {}

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
        if self._queued > MAX_QUEUED or self._machine.waiting > MAX_WAITING:
            self._has_room.clear()
        else:
            self._has_room.set()
        is_between = self._machine.phase in (ServerPhase.STOPPING, ServerPhase.STARTING)
        if is_between or self._machine.waiting:
            self._is_settled.clear()
        else:
            self._is_settled.set()

    # The server.

    async def _start(self) -> None:
        command = self._options.command
        try:
            self._connection = await start(ServerCommand(command), keeps_cr=True)
        except CannotStart as error:
            self._connection, self._outcome = None, (NOT_FOUND, None)
            self._run(self._machine.ended(str(error)))
            return
        self._run(self._machine.started())
        await self._receive(self._connection)

    async def _receive(self, connection: StdioConnection) -> None:
        async for event in connection:
            if isinstance(event, ReceivedMessage):
                self._received(event)
                await self._may_read.wait()
                await self.interception.wait_for_room(SERVER)
            elif isinstance(event, StderrLine):
                self._took_stderr(event.line)
            elif isinstance(event, ConnectionEnded):
                self._ended(connection, event)

    def _received(self, event: ReceivedMessage) -> None:
        line, is_torn = event.data, event.is_torn
        data, noise = line.removesuffix(b"\r"), self._options.noise
        if noise != THROUGH and not is_json_message(data.strip(BLANKS), thoroughly=True):
            self.interception.remove_noise(line, noise, is_torn=is_torn)
            if noise == STDERR:
                self._write_stderr(line)
            return
        found = self._machine.server(data)
        if found.is_forwarded:
            self.interception.take(SERVER, data, fields_of(is_torn=is_torn), original=line)
        else:
            self.interception.record(SERVER, line, fields_of(to=True, is_torn=is_torn))
        if found.replacement is not None:
            self.interception.take(SERVER, found.replacement, fields_of(by=True))
        self._run(found.commands)

    def _took_stderr(self, line: bytes) -> None:
        self._recorder.write(self._stderr.feed(self._recorder.now(), line + b"\n"))
        self._write_stderr(line)
        self.interception.stderr(line)

    def _ended(self, connection: StdioConnection, event: ConnectionEnded) -> None:
        self._outcome = event.code, event.signal
        self._connection = None
        if self._is_closing:
            self._start_task(self._end(connection))
            return
        words = [redacted_text(word) for word in list(connection.last_words)[-SHOWN:]]
        outcome = {"code": event.code, "signal": event.signal}
        if self._machine.phase is not ServerPhase.STOPPING:
            self._start_task(connection.close())  # Children that it left behind.
        self._run(self._machine.ended(f"it {event.why}", words, **outcome))

    async def _end(self, connection: StdioConnection) -> None:
        """End what the last server left behind."""
        await connection.close()
        self._is_over.set()

    # The host.

    def _to_host(self, data: bytes) -> None:
        if (changed := self._machine.for_host(data)) != data:
            sent = changed.decode("utf-8", "replace")
            fields = {"action": "replace", "from": SERVER, "method": "initialize", "sent": sent}
            self._recorder.note(RULE, **fields)
        self._write(one_line(changed))

    def _start_task(self, work: Coroutine[Any, Any, object]) -> None:
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._done)

    def _done(self, task: asyncio.Task[object]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            self._recorder.note("error", text=f"a bug in mcpspy: {type(error).__name__}: {error}")
            say(f"a bug in mcpspy: {type(error).__name__}: {error}; the session ends")
            self._disconnect()


def watched(options: RunOptions) -> int:
    """Serve until the host closes stdin or stdout, or a signal arrives. Return the exit code.

    Raises UsageError for a path that cannot be watched, CannotStart without watchfiles.
    """
    return asyncio.run(_serve(options, FileWatcher(options.watch)))


async def _serve(options: RunOptions, watcher: FileWatcher) -> int:
    loop = asyncio.get_running_loop()
    stopped: asyncio.Future[int] = loop.create_future()

    def stop(number: int) -> None:
        if not stopped.done():
            stopped.set_result(number)

    _catch_signals(loop, stop)
    lines: asyncio.Queue[bytes | None] = asyncio.Queue()
    output = StdoutWriter(
        broke=lambda: loop.call_soon_threadsafe(stop, 0), wrote=lambda: loop.call_soon_threadsafe(update_flow)
    )
    errors = StdoutWriter(
        broke=lambda: None, wrote=lambda: loop.call_soon_threadsafe(update_flow), descriptor=STDERR_DESCRIPTOR
    )
    recorder = open_recorder(options)

    def write(data: bytes) -> None:
        output.put(data)
        update_flow()

    def update_flow() -> None:
        session.pause(is_full=max(output.waiting, errors.waiting) > MAX_QUEUED)

    session = WatchedSession(options, recorder, write, errors.put, lambda: stop(0))
    backlog = Backlog(MAX_QUEUED)

    def read(line: bytes | None) -> None:
        with suppress(RuntimeError):  # The loop is closed: the session has ended.
            loop.call_soon_threadsafe(lines.put_nowait, line)
        backlog.add(len(line or b""))

    number = 0
    try:
        async with session.interception.serving_viewers():
            session.begin()
            read_lines(read)
            work = [
                asyncio.ensure_future(_forward_lines(session, lines, backlog)),
                asyncio.ensure_future(_watch(session, watcher, recorder)),
            ]
            try:
                await asyncio.wait((work[0], stopped), return_when=asyncio.FIRST_COMPLETED)
                number = stopped.result() if stopped.done() else 0
                if work[0].done():
                    work[0].result()
            finally:
                for task in work:
                    task.cancel()
                await asyncio.gather(*work, return_exceptions=True)
                await session.close(signal.Signals(number).name if number else None)
    finally:
        output.close()
        errors.close()
        session.finish()
    return 128 + number if number else session.exit_code


async def _forward_lines(
    session: WatchedSession, lines: asyncio.Queue[bytes | None], backlog: Backlog
) -> None:
    while (line := await lines.get()) is not END:
        await session.forward(line)
        backlog.remove(len(line))
    await session.drain()


async def _watch(session: WatchedSession, watcher: FileWatcher, recorder: Recorder) -> None:
    """Restart the server when a file changes. A failure, such as too many files, does not end the session."""
    try:
        await watcher.watch(lambda files: session.restart({"files": files}), recorder.path)
    except* Exception as group:
        error = group.exceptions[0]
        why = f"files are no longer watched: {error}; use mcpspy restart"
        recorder.note("error", text=why)
        say(why)


def _catch_signals(loop: asyncio.AbstractEventLoop, stop: Callable[[int], None]) -> None:
    for name in ("SIGTERM", "SIGINT", "SIGHUP", "SIGQUIT"):
        number = getattr(signal, name, None)
        if number is None or signal.getsignal(number) == signal.SIG_IGN:
            continue
        try:
            loop.add_signal_handler(number, stop, number)
        except NotImplementedError:  # Windows: Ctrl-C arrives between two steps of the loop.
            signal.signal(number, lambda number, _: loop.call_soon_threadsafe(stop, number))
