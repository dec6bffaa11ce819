"""One direction of a stdio session that somebody has a hand in: whole messages.

Owns the change from bytes that go straight on to messages that are decided on,
and back, at any moment: a line that has begun to go on goes on to its end, and
what we have to say waits for it. What is decided is `io.stdio.interception`'s.
"""

from __future__ import annotations

from mcpspy.core.framing import LineFramer
from mcpspy.core.recording.encode import frame_prefix, plain, splice

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any, Protocol

    from mcpspy.io.stdio.base import RecordingTap

    class ByteStream(Protocol):
        """What moves the bytes of the direction: `io.stdio.channel`, or the threads of `io.stdio.windows`."""

        @property
        def backlog(self) -> int:
            """Bytes that wait for the reader."""

        @property
        def is_writable(self) -> bool:
            """Whether what is put still reaches somebody."""

        def put(self, data: bytes) -> None:
            """Write after all that is pending."""

        def divert(self, channel: MessageChannel | None) -> None:
            """Give what is read to the hand, or pass it on again."""

        def wait_for(self, other: Any) -> None:
            """Read no more until that leg has written what waits there."""

        def finish(self) -> None:
            """Read no more, and close once all is written."""

    class MessageHandler(Protocol):
        """Who is asked what becomes of a message."""

        def take(self, channel: MessageChannel, lines: list[bytes]) -> None:
            """Decide on these lines, without their LF, and on whether there is more to decide."""

        def end_side(self, channel: MessageChannel) -> None:
            """Have what this side said and is held go on: nothing more comes."""


class MessageChannel:
    """What `side` says, on its way."""

    def __init__(self, side: str, stream: ByteStream, tap: RecordingTap, handler: MessageHandler) -> None:
        self.side = side
        self.stream = stream
        self.is_on = False
        self.unread_injected = 0
        """Bytes of ours that wait for the reader because of what it said itself, or more."""
        self._tap = tap
        self._handler = handler
        self._framer = LineFramer()
        self._is_inside_line = False
        self._queued: list[bytes] = []

    @property
    def has_queued(self) -> bool:
        """Whether something waits for the end of a line that is going on."""
        return bool(self._queued)

    def on(self) -> None:
        """Decide on the messages that begin from now on."""
        if not self.is_on:
            self.is_on = True
            self._is_inside_line = self._tap.is_inside_line
            self.stream.divert(self)

    def off(self) -> None:
        """Pass everything on as it comes again, what there is of an unfinished line first."""
        if self.is_on:
            self.is_on = self._is_inside_line = False
            self.stream.divert(None)
            self._release()

    def feed(self, data: bytes) -> None:
        """Take a chunk, as it was read."""
        was_inside_line = self._is_inside_line
        if was_inside_line:
            data = self._finish_line(data)
        lines = self._framer.feed(data)
        if lines or (
            was_inside_line and not self._is_inside_line
        ):  # There may be no reason any more to be here.
            self._handler.take(self, lines)

    def send(self, data: bytes) -> None:
        """Have whole lines go on: now, or when the line that is going on has ended."""
        if self._is_inside_line:
            self._queued.append(data)
        else:
            self.stream.put(data)

    def eof(self) -> None:
        """Have all go on that has been said: the end follows."""
        self._handler.end_side(self)
        self._release()

    def torn(self) -> None:
        """Keep the line that will never end."""
        if torn := b"".join(self._framer.close()):
            self._tap.feed(torn)

    def frame(self, at: float, line: bytes, fields: dict[str, str]) -> Iterable[bytes | bytearray]:
        """Return the buffers of a line's entry. `fields`: `by` or `to` whom, if not from peer to peer."""
        prefix = frame_prefix(self.side, fields) % at
        ordinary = plain(prefix + b'"msg":', line + b"\n")
        return splice(prefix, [line]) if ordinary is None else (ordinary,)

    def _finish_line(self, data: bytes) -> bytes:
        """Let the line go on that had begun to; return what comes after it."""
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

    def _release(self) -> None:
        if begun := b"".join(self._framer.close()):
            self._tap.feed(begun)
            self.stream.put(begun)
