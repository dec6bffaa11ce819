"""`mcpspy run`: a stdio server, wrapped.

Owns the order of things: the server is started first, everything else is
imported after; what is complete is in the file before it goes on; whatever
breaks here costs the recording and never the traffic. How bytes move and
processes end is the system's: `io.posix`, `io.windows`.
"""

from __future__ import annotations

import os
import sys
from time import monotonic

CLIENT = "client"
SERVER = "server"

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn

    from mcpspy.core.envelope import Value
    from mcpspy.core.lane import Lane, TextLane
    from mcpspy.io.writer import Writer


class Options:
    """What `mcpspy run` was asked to do."""

    def __init__(self, command: list[str]) -> None:
        self.command = command
        self.name: str | None = None
        self.record: str | None = None
        self.folder: str | None = None
        self.recording = True
        self.max_size = 0


def run(options: Options) -> NoReturn:
    """Start the server, pump until it has ended, and leave as it left."""
    if sys.platform == "win32":
        from mcpspy.io import windows as system
    else:
        from mcpspy.io import posix as system

    try:
        child = system.spawn(options.command)
    except OSError as error:
        code, line = system.explain(error, options.command[0])
        say(line)
        recorder = Recorder(options)
        recorder.note("error", text=line)
        recorder.finish(code, None)
        os._exit(code)
    recorder = Recorder(options)
    status = system.Pump(child, recorder).run()
    recorder.finish(*system.outcome(status))
    system.leave(status)


class Recorder:
    """The recording of one run, which may fail without the traffic noticing."""

    def __init__(self, options: Options) -> None:
        self.writer: Writer | None = None
        if options.recording:
            try:
                self.writer = _open(options)
            except OSError as error:
                where = options.record or error.filename or "the default folder"
                say(f"cannot record to {where}: {error.strerror}; traffic goes on unrecorded")
            except Exception as error:
                self.broke(error)

    def taps(self) -> tuple[Tap | None, Tap | None, Tap | None]:
        """Return the taps of stdin, stdout and stderr, or none of them."""
        if self.writer is None:
            return None, None, None
        from mcpspy.core.lane import Lane, TextLane

        return (
            Tap(self, Lane(CLIENT), CLIENT),
            Tap(self, Lane(SERVER), SERVER),
            Tap(self, TextLane("stderr"), None),
        )

    def note(self, kind: str, **fields: Value) -> None:
        """Keep what nobody said."""
        if self.writer is not None:
            try:
                self.writer.note(self.writer.now(), kind, **fields)
            except Exception as error:
                self.broke(error)

    def finish(self, code: int | None, signal: str | None) -> None:
        """Note how the server ended, and close the file."""
        self.note("exit", code=code, signal=signal)
        if self.writer is not None:
            self.writer.close()

    def broke(self, error: Exception) -> None:
        """End the recording because of a bug of ours, and only the recording."""
        self.writer = None
        say(
            f"recording stopped by a bug in mcpspy: {type(error).__name__}: {error}; traffic goes on unrecorded"
        )


class Tap:
    """One direction, as the pump sees its recording. Nothing here raises."""

    __slots__ = ("_feed", "_lane", "_recorder", "_side")

    def __init__(self, recorder: Recorder, lane: Lane | TextLane, side: str | None) -> None:
        self._recorder = recorder
        self._lane = lane
        self._feed = lane.feed
        self._side = side

    def feed(self, data: bytes) -> None:
        """Have the messages that end in `data` in the file, so that it may go on."""
        writer = self._recorder.writer
        if writer is not None:
            try:
                lines = self._feed(monotonic() - writer.epoch, data)
                if lines:
                    writer.write(lines)
            except Exception as error:
                self._recorder.broke(error)

    def torn(self) -> None:
        """Keep the line whose end never came."""
        writer = self._recorder.writer
        if writer is not None:
            try:
                writer.write(self._lane.close(writer.now()))
            except Exception as error:
                self._recorder.broke(error)

    def eof(self) -> None:
        """Keep that this side has closed its end."""
        self.torn()
        if self._side is not None:
            self._recorder.note("eof", **{"from": self._side})

    def broke(self, undelivered: int) -> None:
        """Keep that the other side stopped reading, with so many bytes on the way."""
        self.torn()
        # A server that has exited stopped reading too; that is worth a word only if it missed something.
        if undelivered or self._side != CLIENT:
            reader = SERVER if self._side == CLIENT else CLIENT
            what = {CLIENT: "stdin", SERVER: "stdout"}.get(self._side or "", "stderr")
            self._recorder.note("closed", by=reader, pipe=what, undelivered=undelivered)


def say(line: str) -> None:
    """Tell a person, on stderr, unless that would block: the host may not read it."""
    message = f"mcpspy: {line}\n".encode("utf-8", "replace")
    if sys.platform != "win32":
        import select

        gate = select.poll()
        gate.register(2, select.POLLOUT)
        if not gate.poll(0):
            return
        message = message[: select.PIPE_BUF]
    try:
        os.write(2, message)
    except OSError:  # Nobody is there to be told.
        pass


def _open(options: Options) -> Writer:
    from mcpspy.io.folder import session_name
    from mcpspy.io.writer import Writer

    fields: dict[str, Value] = {
        "transport": "stdio",
        "command": options.command,
        "cwd": _working_folder(),
        "name": options.name or session_name(options.command),
        "pid": os.getpid(),
    }
    return Writer(options.folder, options.record, fields, say=say, max_size=options.max_size)


def _working_folder() -> str:
    try:
        return os.getcwd()
    except OSError:  # It was deleted under us.
        return ""
