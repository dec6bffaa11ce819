"""One direction of an intercepted stdio session, as complete messages.

A channel can switch between forwarding bytes and deciding on messages at any time: if a line was forwarded in
part, its rest is forwarded too, and injected messages wait until then. `io.stdio.interception` decides.
"""

from __future__ import annotations

from mcpspy.core.framing import NEWLINE, PIECE, BoundedLineFramer, LineFramer, OversizedData
from mcpspy.core.protocol import http2_pipe
from mcpspy.core.recording.encode import frame_prefix, oversized, plain, splice

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any, Protocol

    from mcpspy.io.stdio.base import RecordingTap

    class ByteStream(Protocol):
        """The transport of the bytes: `io.stdio.channel`, or the threads of `io.stdio.windows`."""

        @property
        def backlog(self) -> int:
            """Return the number of bytes that were put but not written yet."""

        @property
        def is_writable(self) -> bool:
            """Return whether a reader still receives data."""

        def put(self, data: bytes) -> None:
            """Write data after all pending data."""

        def divert(self, channel: MessageChannel | StderrLines | None) -> None:
            """Pass data to the message channel from now on; None forwards it directly again."""

        def wait_for(self, other: Any) -> None:
            """Stop reading until the other stream has written its backlog."""

        def pause(self) -> None:
            """Stop reading until `resume`."""

        def resume(self) -> None:
            """Read again after `pause`."""

        def finish(self) -> None:
            """Stop reading, and close once all data is written."""

    class MessageHandler(Protocol):
        """Decides on messages."""

        def passes(self, channel: MessageChannel, lines: bytes) -> bool:
            """Return True if complete lines, each with its LF, need no decision."""

        def take(self, channel: MessageChannel, lines: list[bytes]) -> None:
            """Decide on these lines, given without their LF, and on whether interception continues."""

        def is_deciding_on(self, channel: MessageChannel) -> bool:
            """Return whether messages of this side wait for a script."""

        def end_side(self, channel: MessageChannel) -> None:
            """Release the held messages of this side, which has ended."""

        def keep_back(self, channel: MessageChannel, unfinished: bytes) -> bool:
            """Return True if an unfinished last line is not forwarded; it is recorded then."""


class MessageChannel:
    """The messages sent by `side`."""

    def __init__(
        self, side: str, stream: ByteStream, tap: RecordingTap, handler: MessageHandler, limit: int
    ) -> None:
        """Create a channel, which is off. A line of more than `limit` bytes is forwarded without a decision."""
        self.side = side
        self.stream = stream
        self.limit = limit
        self.is_on = False
        self.is_waiting = False
        """True if the end of the source, or a line above the limit, waits for a script."""
        self.unread_injected = 0
        """Upper bound for the number of injected bytes that the peer has not read."""
        self._tap = tap
        self._handler = handler
        self._framer = LineFramer()
        self._is_inside_line = False
        self._is_first = True
        self._is_http2 = False
        self._queued: list[bytes] = []

    @property
    def last_at(self) -> float:
        """Return when the last byte arrived, in seconds from the start of the recording."""
        return self._tap.last_at

    @property
    def has_queued(self) -> bool:
        """Return whether data waits for the end of the line that is being forwarded."""
        return bool(self._queued)

    def on(self) -> None:
        """Decide on all messages that start from now on."""
        if not self.is_on and not self._is_http2 and not self._tap.is_http2:
            self.is_on = True
            self._is_inside_line = self._tap.is_inside_line
            self.stream.divert(self)

    def off(self) -> None:
        """Forward the unfinished line and all later bytes without a decision."""
        if self.is_on:
            self.is_on = self._is_inside_line = False
            self.stream.divert(None)
            self._release()

    def feed(self, data: bytes) -> None:
        if self._is_first:
            self._is_first = False
            if data[:1] in (b"P", b"\0") and http2_pipe.begins(self.side, data):
                # No line ends in it, and a rule for noise would keep all of it.
                self._is_http2 = True
                self.off()
                self._tap.feed(data)
                self.stream.put(data)
                return
        is_whole = not self._is_inside_line and not self._framer.pieces and data.endswith(b"\n")
        if is_whole and self._handler.passes(self, data):
            self._tap.feed(data)
            self.stream.put(data)
            return
        self._tap.arrive()
        was_inside_line = self._is_inside_line
        if was_inside_line:
            data = self._finish_line(data)
        try:
            lines = self._framer.feed(data)
        except MemoryError:
            self._forward_unfinished()
            self.feed(data)
            return
        if lines or (was_inside_line and not self._is_inside_line):  # Interception may have ended.
            self._handler.take(self, lines)
        self._tap.held = sum(map(len, self._framer.pieces)) if lines else self._tap.held + len(data)
        if self._tap.held > self.limit:
            self._forward_oversized()
        elif self._tap.held and self._tap.on_unfinished is not None:
            self._tap.on_unfinished()

    def send(self, data: bytes) -> None:
        """Send complete lines now, or after the line that is being forwarded."""
        if self._is_inside_line:
            self._queued.append(data)
        else:
            self.stream.put(data)

    def delays_end(self) -> bool:
        """Return whether the end of the source has to wait, because a script decides on the last messages.

        The handler then pauses the stream, and resumes it when the script has decided.
        """
        self.is_waiting = self._handler.is_deciding_on(self)
        return self.is_waiting

    def eof(self) -> None:
        """Release everything before the stream ends."""
        self._handler.end_side(self)
        self._release()

    def torn(self) -> None:
        """Record an unfinished line."""
        if torn := b"".join(self._framer.close()):
            self._tap.feed_held(torn)

    def frame(
        self, at: float, line: bytes, fields: dict[str, str], *, torn: bool = False
    ) -> Iterable[bytes | bytearray]:
        """Return the buffers for the recording entry of a line. `fields` may contain `by` or `to`.

        `torn`: the line has no LF.
        """
        if len(line) > self.limit:
            data = OversizedData([line])
            return (oversized(at, self.side, fields, data.size, data.sha256, lacks=NEWLINE if torn else ""),)
        prefix = frame_prefix(self.side, fields) % at
        if torn:
            return splice(prefix, [line], torn=True)
        ordinary = None if len(line) > PIECE else plain(prefix + b'"msg":', line + b"\n")
        return splice(prefix, [line]) if ordinary is None else (ordinary,)

    def _finish_line(self, data: bytes) -> bytes:
        """Forward the rest of a line that was forwarded in part. Return the data after it."""
        end = data.find(b"\n") + 1 or len(data)
        rest = data[:end]
        self._tap.feed(rest)
        self._is_inside_line = not rest.endswith(b"\n")
        if self._is_inside_line:
            self.stream.put(rest)
        else:
            queued, self._queued = self._queued, []
            self.stream.put(b"".join([rest, *queued]))
        return data[end:]

    def _forward_oversized(self) -> None:
        """Forward a line above the limit as it arrives, after the messages on which scripts decide."""
        self.is_waiting = self._handler.is_deciding_on(self)
        if self.is_waiting:
            self.stream.pause()
        else:
            self._forward_unfinished()

    def frees_memory(self) -> bool:
        """Forward the unfinished line without a decision, because memory is short. Return False if there is none."""
        if self._is_inside_line or not self._framer.pieces:
            return False
        self._forward_unfinished()
        return True

    def _forward_unfinished(self) -> None:
        """Forward the unfinished line, and later its rest."""
        self._is_inside_line = True
        self._tap.held = 0
        for piece in self._framer.close():
            self._tap.feed(bytes(piece))
            self.stream.put(bytes(piece))

    def _release(self) -> None:
        self._tap.held = 0
        begun = b"".join(self._framer.close())
        if begun and not self._handler.keep_back(self, begun):
            self._tap.feed_held(begun)
            self.stream.put(begun)


class StderrLines:
    """The lines of the server's stderr, forwarded and passed to a script."""

    def __init__(
        self, stream: ByteStream, tap: RecordingTap, tell: Callable[[bytes], None], limit: int
    ) -> None:
        """`tell` is not called with a line of more than `limit` bytes that arrives in parts."""
        self._stream = stream
        self._tap = tap
        self._tell = tell
        self._framer = BoundedLineFramer(limit)

    def feed(self, data: bytes) -> None:
        self._tap.feed(data)
        self._stream.put(data)
        ended, run = self._framer.split(data)
        lines = run.split(b"\n")[:-1]
        if ended and self._framer.oversized is None:
            lines.insert(0, b"".join(ended))
        for line in lines:
            self._tell(line.removesuffix(b"\r"))

    def frees_memory(self) -> bool:
        return False

    def delays_end(self) -> bool:
        return False

    def eof(self) -> None: ...

    def torn(self) -> None: ...
