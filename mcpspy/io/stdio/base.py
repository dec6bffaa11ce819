"""Shared parts of a stdio session: options, recording taps, the ends of pipes.

Recording never raises while a chunk is being forwarded. This module imports almost nothing, because `mcpspy run`
reads its options before it starts the server.
"""

from __future__ import annotations

import os
from time import monotonic

from mcpspy.io.intercept.interception import InterceptionOptions
from mcpspy.io.recording.recorder import Recorder, RecordingTarget

CLIENT = "client"
SERVER = "server"

THROUGH = "pass"
STDERR = "stderr"
NOISE = (THROUGH, "drop", STDERR)

CHUNK = 65536
"""Bytes per read: the size of a pipe. Larger reads were not faster."""

HTTP2_FOUND = (
    "the client speaks HTTP/2 on stdin (an experiment of MCP, without a specification): its bytes are forwarded "
    "unchanged and recorded as frames; rules, viewers and --stdout-noise have no effect"
)

MAX_OWN_OUTPUT = 1 << 17
"""Bytes per pipe that may be the exited server's own: more than a pipe and a chunk hold."""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TypeAlias

    from mcpspy.core.protocol.http2_pipe import Http2Encoder
    from mcpspy.core.recording.encode import FrameEncoder, Lines, TextEncoder

    Taps: TypeAlias = tuple["RecordingTap", "RecordingTap", "RecordingTap"]


class RunOptions(RecordingTarget):
    """The options of `mcpspy run`."""

    def __init__(self, command: list[str]) -> None:
        super().__init__()
        self.command = command
        self.name: str | None = None
        self.interception = InterceptionOptions(self.redaction.unsafe_regex)
        self.noise = THROUGH
        """Treatment of server lines that are not JSON-RPC messages: `pass`, `drop` or `stderr`."""
        self.watch: list[str] = []
        """Files and folders; the server is restarted when one changes."""
        self.max_body: int | None = None
        """Bytes of a line above which only its size and digest are recorded; None selects the default."""

    @property
    def session_name(self) -> str:
        from mcpspy.io.session_name import session_name

        return self.name or session_name(self.command)

    @property
    def line_limit(self) -> int:
        from mcpspy.core.recording.encode import MAX_BODY

        return MAX_BODY if self.max_body is None else self.max_body

    @property
    def intercepts(self) -> bool:
        """Return whether messages are inspected from the first one on."""
        return self.interception.is_active or self.noise != THROUGH


class RecordingTap:
    """Recorder of one direction. Its methods never raise."""

    __slots__ = (
        *("_encoder", "_feed", "_is_inside", "_on_next", "_recorder", "_side"),
        *("_is_first", "_limit", "held", "is_http2", "last_at", "on_unfinished"),
    )

    def __init__(
        self,
        recorder: Recorder,
        encoder: FrameEncoder | TextEncoder | None,
        side: str | None,
        limit: int = 0,
    ) -> None:
        """Record nothing if `encoder` is None; `limit` is that of `taps`."""
        self._recorder = recorder
        self._encoder: FrameEncoder | TextEncoder | Http2Encoder | None = encoder
        self._limit = limit
        self._is_first = side is not None
        self.is_http2 = False
        """True if the first bytes were those of HTTP/2, so that there are no lines."""
        self._feed: Callable[[float, bytes], Lines] | None = None if encoder is None else self._current
        self._side = side
        self._is_inside = False
        self._on_next: Callable[[], object] | None = None
        self.last_at = 0.0
        """The time at which the last byte arrived, in seconds from the start of the recording."""
        self.held = 0
        """Bytes of the unfinished line that interception has not passed on to this tap."""
        self.on_unfinished: Callable[[], object] | None = None
        """Called when bytes of an unfinished line arrive."""
        recorder.on_stopped.append(self._stop)

    @property
    def is_inside_line(self) -> bool:
        """Return whether the last chunk ended inside a line."""
        return self._is_inside if self._encoder is None else self._encoder.is_inside_line

    @property
    def unfinished(self) -> int:
        """Return the number of bytes of the unfinished line; 0 without a recording."""
        return 0 if self._encoder is None else self._encoder.unfinished + self.held

    @property
    def _current(self) -> Callable[[float, bytes], Lines]:
        """The method for the next chunk."""
        assert self._encoder is not None
        return self._feed_first if self._is_first else self._encoder.feed

    def _feed_first(self, at: float, data: bytes) -> Lines:
        """Feed the first chunk: it shows whether the peers speak HTTP/2."""
        self._is_first = False
        if data[:1] in (b"P", b"\0") and self._side is not None:
            from mcpspy.core.protocol import http2_pipe

            if http2_pipe.begins(self._side, data):
                self.is_http2 = True
                self._encoder = http2_pipe.Http2Encoder(self._side, self._limit)
                if self._side == CLIENT:
                    from mcpspy.io.recording.recorder import say

                    say(HTTP2_FOUND)
        self._feed = self._current
        return self._feed(at, data)

    def watch(self, on_unfinished: Callable[[], object]) -> None:
        """Call `on_unfinished` whenever bytes of an unfinished line arrive."""
        self.on_unfinished = on_unfinished
        if self._encoder is not None:
            self._encoder.on_unfinished = on_unfinished

    def call_before_next(self, call: Callable[[], object]) -> None:
        """Call `call` once, with the next chunk. Other chunks do not check for this."""
        if self._encoder is not None:
            self._on_next, self._feed = call, self._feed_next

    def _feed_next(self, at: float, data: bytes) -> Lines:
        self._call_on_next()
        assert self._feed is not None
        return self._feed(at, data)

    def _call_on_next(self) -> None:
        call, self._on_next = self._on_next, None
        if call is not None and self._encoder is not None:
            self._feed = self._current
            call()

    def feed(self, data: bytes) -> None:
        """Record the messages that are complete with `data`. Call this before forwarding `data`."""
        writer = self._recorder.writer
        if writer is not None and self._feed is not None:
            try:
                self.last_at = at = monotonic() - writer.epoch
                lines = self._feed(at, data)
                if lines:
                    writer.write(lines)
                return
            except Exception as error:
                lines = ()  # The traceback holds more of them, and memory may be short.
                self._recorder.broke(error.with_traceback(None))
        self._is_inside = not data.endswith(b"\n")

    def arrive(self) -> None:
        """Keep the time of bytes on which interception decides: it records them later."""
        self.last_at = self._recorder.now()
        self._call_on_next()

    def feed_held(self, data: bytes) -> None:
        """Take an unfinished line from interception. Its last byte arrived at `last_at`."""
        at, self.held = self.last_at, 0
        self.feed(data)
        self.last_at = at

    def give_up(self, error: MemoryError) -> None:
        """Stop the recording to free its memory. If it has stopped, only what is being written can free some."""
        if self._recorder.writer is not None:
            self._recorder.broke(error)

    def _stop(self) -> None:
        self._is_inside = self.is_inside_line
        self._encoder = self._feed = None

    def torn(self) -> None:
        """Record an unfinished line."""
        writer = self._recorder.writer
        if writer is not None and self._encoder is not None:
            self._recorder.write(self._encoder.close(self.last_at))

    def eof(self) -> None:
        """Record that this side closed its end of the pipe."""
        self.torn()
        if self._side is not None:
            self._recorder.note("eof", **{"from": self._side})

    def broke(self, undelivered: int, *, is_source_closed: bool = False) -> None:
        """Record that the other side stopped reading; `undelivered` counts the bytes that were not written.

        A client that closed its end before that may have sent more than was read: rules about the end of a server have
        to know that it closed it.
        """
        self.torn()
        if is_source_closed and self._side == CLIENT:
            self._recorder.note("eof", **{"from": CLIENT})
        # A server that exits also stops reading: note that only if data was lost.
        if undelivered or self._side != CLIENT:
            reader = SERVER if self._side == CLIENT else CLIENT
            pipe = {CLIENT: "stdin", SERVER: "stdout"}.get(self._side or "", "stderr")
            self._recorder.note("closed", by=reader, pipe=pipe, undelivered=undelivered)


def taps(recorder: Recorder, limit: int = 0) -> Taps:
    """Return the taps of stdin, stdout and stderr. A line of more than `limit` bytes is not recorded (0: no limit)."""
    if recorder.writer is None:
        return (
            RecordingTap(recorder, None, CLIENT),
            RecordingTap(recorder, None, SERVER),
            RecordingTap(recorder, None, None),
        )
    from mcpspy.core.recording.encode import FrameEncoder, TextEncoder

    return (
        RecordingTap(recorder, FrameEncoder(CLIENT, limit), CLIENT, limit),
        RecordingTap(recorder, FrameEncoder(SERVER, limit), SERVER, limit),
        RecordingTap(recorder, TextEncoder("stderr", limit), None),
    )


def close(fd: int) -> None:
    """Close a pipe. A standard descriptor is redirected to the null device, so that no other file takes its number."""
    if fd > 2:
        os.close(fd)
    elif fd < 2:  # mcpspy prints to descriptor 2.
        null = os.open(os.devnull, os.O_RDWR)
        os.dup2(null, fd)
        os.close(null)
