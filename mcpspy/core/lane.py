"""One direction of traffic: bytes in, lines of the recording out.

Owns what is remembered of a direction between two chunks: its unfinished line.
What it is fed goes on to the peer as it is, whatever comes back from here; the
lane only says what must be on disk before that.
"""

from __future__ import annotations

from mcpspy.core.envelope import LF, frame_prefix, note, plain, splice, splice_text
from mcpspy.core.framing import SMALL, LineFramer, SseFramer

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from typing import TypeAlias

    from mcpspy.core.envelope import Value
    from mcpspy.core.framing import Pieces, SseEvent

    Lines: TypeAlias = bytes | Iterable[bytes | bytearray]
    """Whole lines of a recording: nearly always as one piece, else as buffers to be written in their order."""


class Lane:
    """Messages of one side of a stdio session."""

    __slots__ = ("_framer", "_head", "_line", "_prefix")

    def __init__(self, side: str) -> None:
        self._framer = LineFramer()
        self._prefix = b'{"t":%%.6f,"from":"%b",' % side.encode()
        self._head = self._prefix + b'"msg":'
        self._line = self._head + b"%b}\n"

    def feed(self, at: float, data: bytes) -> Lines:
        """Return what to append for the messages that end in `data`, `at` seconds from the start."""
        if data[-2:] == b"}\n" and len(data) < SMALL and data[:1] == b"{" and not self._framer.pieces:
            message = data[:-1]
            if LF not in message and message.isascii():
                # One whole message: nearly always, and what a round trip waits for.
                return self._line % (at, message)
        ended, run = self._framer.split(data)
        if len(ended) == 1:
            # A line that a flood's chunk cut in two: joining it costs less than buffers of its own.
            ended, run = [], b"".join((ended[0], b"\n", run))
        if not ended:
            lines = plain(self._head % at, run) if run else b""
            if lines is not None:
                return lines
        return self._lines(at, ended, run)

    @property
    def is_inside_line(self) -> bool:
        """Whether a line has begun that has not ended."""
        return bool(self._framer.pieces)

    def close(self, at: float) -> Iterable[bytes | bytearray]:
        """Return the buffers for the line that never ended, if there is one."""
        torn = self._framer.close()
        return splice(self._prefix % at, torn, torn=True) if torn else ()

    def _lines(self, at: float, ended: Pieces, run: bytes) -> Iterator[bytes | bytearray]:
        if ended:
            yield from splice(self._prefix % at, ended)
        if run:
            lines = plain(self._head % at, run)
            if lines is not None:
                yield lines
                return
            for line in run[:-1].split(b"\n"):
                yield from splice(self._prefix % at, [line])


class TextLane:
    """Lines of text that are no messages: the server's stderr, kept as notes."""

    __slots__ = ("_framer", "_prefix")

    def __init__(self, kind: str) -> None:
        self._framer = LineFramer()
        self._prefix = b'{"t":%%.6f,"note":"%b",' % kind.encode()

    def feed(self, at: float, data: bytes) -> Iterable[bytes]:
        """Return the buffers to append for the lines that end in `data`."""
        ended, run = self._framer.split(data)
        return self._lines(at, ended, run) if ended or run else ()

    @property
    def is_inside_line(self) -> bool:
        """Whether a line has begun that has not ended."""
        return bool(self._framer.pieces)

    def close(self, at: float) -> Iterable[bytes]:
        """Return the buffers for the line that never ended, if there is one."""
        torn = self._framer.close()
        return splice_text(self._prefix % at, torn, torn=True) if torn else ()

    def _lines(self, at: float, ended: Pieces, run: bytes) -> Iterator[bytes]:
        if ended:
            yield from splice_text(self._prefix % at, ended)
        if run:
            for line in run[:-1].split(b"\n"):
                yield from splice_text(self._prefix % at, [line])


class BodyLane:
    """A body that is one message: a POST, or its answer as JSON."""

    __slots__ = ("_pieces", "_prefix")

    def __init__(self, side: str, fields: Mapping[str, Value]) -> None:
        self._prefix = frame_prefix(side, fields)
        self._pieces: Pieces = []

    def feed(self, data: bytes) -> None:
        """Keep a chunk; it becomes a message with the last one."""
        if data:
            self._pieces.append(data)

    def close(self, at: float, *, torn: bool = False) -> Iterator[bytes | bytearray]:
        """Return the buffers of the message; none if the body was empty."""
        pieces, self._pieces = self._pieces, []
        return splice(self._prefix % at, pieces, torn=torn, body=True) if pieces else iter(())


class SseLane:
    """A body that is a stream of events: each carries a message, or primes, names or paces the stream."""

    __slots__ = ("_fields", "_framer", "_side")

    def __init__(self, side: str, fields: Mapping[str, Value]) -> None:
        self._side = side
        self._fields = dict(fields)
        self._framer = SseFramer()

    def feed(self, at: float, data: bytes) -> tuple[list[SseEvent], list[bytes | bytearray]]:
        """Return the events that end in `data`, and the buffers to append for them."""
        events = self._framer.feed(data)
        return events, [buffer for event in events for buffer in self._line(at, event)]

    @property
    def is_inside_event(self) -> bool:
        """Whether an event has begun that has not ended."""
        return self._framer.is_inside_event

    def close(self, at: float) -> Iterable[bytes | bytearray]:
        """Return the buffers of the event that never ended, if there is one."""
        event = self._framer.close()
        return self._line(at, event) if event is not None else ()

    def _line(self, at: float, event: SseEvent) -> Iterator[bytes | bytearray]:
        named = {"event": event.event, "id": event.id, "retry": event.retry}
        fields: dict[str, Value] = self._fields | {k: v for k, v in named.items() if v is not None}
        if event.is_message:
            assert event.data is not None
            pieces = list(event.data)
            yield from splice(frame_prefix(self._side, fields) % at, pieces, torn=event.torn, body=True)
        else:
            if event.data is not None:
                fields["data"] = b"".join(event.data).decode("utf-8", "replace")
            if event.torn:
                fields["torn"] = True
            yield note(at, "sse", fields)
