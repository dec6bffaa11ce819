"""`mcpspy run --watch`: a session with a host on stdio, whose server is restarted.

The host keeps its pipes and its session. Each message is recorded before it is forwarded, here, and not by the
connection to the server: what happens to it is in its entry.
"""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from mcpspy.core.jsontools import one_line
from mcpspy.core.protocol.spec import CLIENT, SERVER
from mcpspy.core.recording.encode import TextEncoder
from mcpspy.core.restart.machine import ServerPhase
from mcpspy.core.session import restart_notes
from mcpspy.core.session.restart_notes import RESTART
from mcpspy.core.session.rule_notes import RULE
from mcpspy.io.client import ReceivedMessage, ServerCommand
from mcpspy.io.intercept.interception import RESTART as RESTART_ORDER
from mcpspy.io.recording.recorder import Recorder, say
from mcpspy.io.stdio.base import STDERR, THROUGH, RunOptions
from mcpspy.io.stdio.interception import BLANKS, is_json_message
from mcpspy.io.stdio.lines import END, Backlog, StdoutWriter, read_lines
from mcpspy.io.stdio.run import open_recorder
from mcpspy.io.watch.files import FileWatcher
from mcpspy.io.watch.interception import WatchInterception, fields_of
from mcpspy.io.watch.server import MAX_QUEUED, RestartableServer

STDERR_DESCRIPTOR = 2


class WatchedSession:
    """The session of one host, and the owner of its servers."""

    def __init__(
        self,
        options: RunOptions,
        recorder: Recorder,
        write: Callable[[bytes], None],
        write_stderr: Callable[[bytes], None],
        disconnect: Callable[[], None],
    ) -> None:
        """Prepare the session. `write` and `write_stderr` pass a line on; `disconnect` ends the session."""
        self._options = options
        self._recorder = recorder
        self._write, self._write_stderr = write, write_stderr
        self._disconnect = disconnect
        self._server = RestartableServer(ServerCommand(options.command), self)
        self._machine = self._server.machine
        self._may_read = asyncio.Event()
        self._may_read.set()
        self._stderr = TextEncoder("stderr", options.line_limit)
        self.interception = WatchInterception(
            recorder,
            options,
            to_host=self._to_host,
            to_server=self._server.send,
            is_connected=lambda: self._machine.phase is ServerPhase.SERVING,
            disconnect=disconnect,
        )
        self.interception.orders[RESTART_ORDER] = self._ordered

    def begin(self) -> None:
        """Start the first server."""
        self._server.begin()

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
        await self._server.wait_for_room()
        await self.interception.wait_for_room(CLIENT)

    def restart(self, why: dict[str, Any]) -> bool:
        """Restart the server; `why` has the fields of the note. Return False if the session is ending."""
        return self._server.restart(why)

    async def drain(self) -> None:
        """Pass the end of the host's input on, and wait for the end of the server."""
        await self.interception.wait_for_scripts(CLIENT)
        self.interception.end_side(CLIENT)
        await self._server.end_input()
        await self.interception.wait_for_scripts(SERVER)

    async def close(self, name: str | None = None) -> None:
        """End the server; `name` is the signal that mcpspy received, and the server gets first."""
        if name is not None:
            self._recorder.note("signal", signal=name)
        await self._server.close(name)

    def pause(self, *, is_full: bool) -> None:
        """Pause or resume reading from the server, depending on whether the host reads."""
        if is_full:
            self._may_read.clear()
        else:
            self._may_read.set()

    def finish(self) -> None:
        """Close the recording, with the end of the last server."""
        self._recorder.finish(*self._server.outcome)

    @property
    def exit_code(self) -> int:
        """Return that of the last server, as a shell has it."""
        code, name = self._server.outcome
        return 128 + getattr(signal, name, 0) if name is not None else code or 0

    # The server.

    def sending(self, data: bytes) -> None:
        self.interception.record(CLIENT, data, fields_of(by=True))

    def generated(self, data: bytes) -> None:
        self.interception.take(SERVER, data, fields_of(by=True))

    def received(self, event: ReceivedMessage) -> None:
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
        self._server.run(found.commands)

    async def wait_for_room(self) -> None:
        await self._may_read.wait()
        await self.interception.wait_for_room(SERVER)

    def heard(self, line: bytes) -> None:
        self._recorder.write(self._stderr.feed(self._recorder.now(), line + b"\n"))
        self._write_stderr(line)
        self.interception.stderr(line)

    def input_ended(self) -> None:
        self._recorder.note("eof", **{"from": CLIENT})

    def note(self, fields: dict[str, Any]) -> None:
        if fields["did"] in ("started", "failed"):
            say(restart_notes.words(fields))
        self._recorder.note(RESTART, **fields)
        self.interception.notify(None, {"event": RESTART, **fields})

    def failed(self, error: BaseException) -> None:
        self._recorder.note("error", text=f"a bug in mcpspy: {type(error).__name__}: {error}")
        say(f"a bug in mcpspy: {type(error).__name__}: {error}; the session ends")
        self._disconnect()

    # The host.

    def _ordered(self, viewer: str, order: dict[str, Any]) -> dict[str, Any]:
        from mcpspy.core.intercept.actions import CommandError

        if unknown := order.keys() - {"n", "order"}:
            raise CommandError(f"restart: unknown key {min(unknown)!r}")
        if not self.restart({"viewer": viewer}):
            raise CommandError("cannot restart: the session is ending")
        return {}

    def _to_host(self, data: bytes) -> None:
        if (changed := self._machine.for_host(data)) != data:
            sent = changed.decode("utf-8", "replace")
            fields = {"action": "replace", "from": SERVER, "method": "initialize", "sent": sent}
            self._recorder.note(RULE, **fields)
        self._write(one_line(changed))


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

    def report(line: str) -> None:
        recorder.note("error", text=line)
        say(line)

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
                asyncio.ensure_future(watcher.restart(session.restart, recorder.path, report)),
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


def _catch_signals(loop: asyncio.AbstractEventLoop, stop: Callable[[int], None]) -> None:
    for name in ("SIGTERM", "SIGINT", "SIGHUP", "SIGQUIT"):
        number = getattr(signal, name, None)
        if number is None or signal.getsignal(number) == signal.SIG_IGN:
            continue
        try:
            loop.add_signal_handler(number, stop, number)
        except NotImplementedError:  # Windows: Ctrl-C arrives between two steps of the loop.
            signal.signal(number, lambda number, _: loop.call_soon_threadsafe(stop, number))
