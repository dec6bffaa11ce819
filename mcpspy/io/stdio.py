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

from mcpspy.io.recorder import Recorder, Where, say

CLIENT = "client"
SERVER = "server"

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn, TypeAlias

    from mcpspy.core.envelope import Value
    from mcpspy.core.lane import Lane, TextLane

    Taps: TypeAlias = tuple["Tap | None", "Tap | None", "Tap | None"]


class Options(Where):
    """What `mcpspy run` was asked to do."""

    def __init__(self, command: list[str]) -> None:
        super().__init__()
        self.command = command
        self.name: str | None = None


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
        recorder = _open(options)
        recorder.note("error", text=line)
        recorder.finish(code, None)
        os._exit(code)
    recorder = _open(options)
    status = system.Pump(child, recorder, taps(recorder)).run()
    recorder.finish(*system.outcome(status))
    system.leave(status)


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
            self._recorder.write(self._lane.close(writer.now()))

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


def taps(recorder: Recorder) -> Taps:
    """Return the taps of stdin, stdout and stderr, or none of them."""
    if recorder.writer is None:
        return None, None, None
    from mcpspy.core.lane import Lane, TextLane

    return (
        Tap(recorder, Lane(CLIENT), CLIENT),
        Tap(recorder, Lane(SERVER), SERVER),
        Tap(recorder, TextLane("stderr"), None),
    )


def _open(options: Options) -> Recorder:
    from mcpspy.io.folder import session_name

    fields: dict[str, Value] = {
        "transport": "stdio",
        "command": options.command,
        "name": options.name or session_name(options.command),
    }
    return Recorder(options, fields)
