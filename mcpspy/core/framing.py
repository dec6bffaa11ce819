"""Split byte streams into lines (stdio) and server-sent events (HTTP).

Any chunking of the same bytes gives the same lines, in time linear in their length. The module does not inspect
lines, does not limit their length and imports nothing, because `mcpspy run` loads it at startup.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TypeAlias

    Pieces: TypeAlias = list[bytes | bytearray]

SMALL = 4096
"""Smaller chunks (in bytes) are merged, so that a line fed byte by byte does not become a list of bytes objects."""

PIECE = 65536
"""Bytes merged into one piece before the next one begins."""


class LineFramer:
    """Splitter for newline-delimited messages, the stdio transport (MCP, basic/transports, all revisions).

    It splits on LF bytes only. Unlike in `splitlines`, CR, U+2028, U+0085, VT and FF are data.
    """

    __slots__ = ("pieces",)

    def __init__(self) -> None:
        self.pieces: Pieces = []

    def split(self, data: bytes) -> tuple[Pieces, bytes]:
        """Split a chunk without joining pieces, so that lines of 1 MB are cheap.

        Return the pieces of the line that began in earlier chunks and ended in this one (without its LF;
        empty if there is no such line), and the complete lines after it, each with its LF.
        """
        end = data.rfind(b"\n") + 1
        if not end:
            self._keep(data)
            return [], b""
        ended: Pieces = []
        start = 0
        if self.pieces:
            start = data.index(b"\n") + 1
            self._keep(data[: start - 1])
            ended, self.pieces = self.pieces, []
        self._keep(data[end:])
        return ended, data[start:end]

    def feed(self, data: bytes) -> list[bytes]:
        """Return the lines that ended in this chunk, without their LF."""
        lines = data.split(b"\n")
        rest = lines.pop()
        if lines and self.pieces:
            self._keep(lines[0])
            lines[0], self.pieces = b"".join(self.pieces), []
        self._keep(rest)
        return lines

    def close(self) -> Pieces:
        """Return the pieces of an incomplete last line; empty if there is none."""
        rest, self.pieces = self.pieces, []
        return rest

    def _keep(self, data: bytes) -> None:
        if data:
            _collect(self.pieces, data)


def _collect(pieces: Pieces, data: bytes) -> None:
    if len(data) >= SMALL:
        pieces.append(data)
        return
    last = pieces[-1] if pieces else None
    if isinstance(last, bytearray) and len(last) < PIECE:
        last += data
    else:
        pieces.append(bytearray(data))


class SseEvent:
    """Fields of one server-sent event (HTML Living Standard, 9.2.6)."""

    __slots__ = ("data", "event", "id", "retry", "torn")

    def __init__(self) -> None:
        self.event: str | None = None
        """The `event` field; None means `message`."""
        self.data: Pieces | None = None
        """The `data` lines, joined by LF, as pieces; None if there were none."""
        self.id: str | None = None
        self.retry: int | None = None
        """Milliseconds."""
        self.torn = False
        """True if the stream ended before the blank line that completes the event."""

    @property
    def is_message(self) -> bool:
        """True if the event carries a message, and not only an `id`, a `retry` or another event type."""
        return self.data is not None and any(self.data) and self.event in (None, "message")


class SseFramer:
    """Parser of a `text/event-stream` body (MCP Streamable HTTP, and HTTP+SSE of 2024-11-05).

    CR, LF and CRLF end lines and may be mixed. The call that receives the blank line of an event returns the event.
    """

    __slots__ = ("_after_cr", "_begun", "_current", "_line")

    def __init__(self) -> None:
        self._line: Pieces = []
        self._current = SseEvent()
        self._after_cr = False
        self._begun = False

    def feed(self, data: bytes) -> list[SseEvent]:
        """Return the events that ended in this chunk."""
        if self._after_cr and data:
            # The CR already ended its line; this LF belongs to it.
            self._after_cr = False
            if data.startswith(b"\n"):
                data = data[1:]
        events: list[SseEvent] = []
        for line in data.splitlines(keepends=True):  # On bytes: at CR, LF and CRLF only.
            self._after_cr = line.endswith(b"\r")
            if not line.endswith((b"\n", b"\r")):
                _collect(self._line, line)
                break
            self._end_line(line.rstrip(b"\r\n"), events)
        return events

    @property
    def is_inside_event(self) -> bool:
        """True if an event has begun; a comment is not an event."""
        return _has_fields(self._current) or (bool(self._line) and not self._line[0].startswith(b":"))

    def close(self) -> SseEvent | None:
        """Return the incomplete last event, if one has begun."""
        events: list[SseEvent] = []
        if self._line:
            self._end_line(b"", events)
        event, self._current = self._current, SseEvent()
        event.torn = True
        return event if _has_fields(event) else None

    def _end_line(self, rest: bytes, events: list[SseEvent]) -> None:
        pieces, self._line = self._line, []
        if rest:
            pieces.append(rest)
        if not self._begun:
            self._begun = True
            pieces[:2] = [b"".join(pieces[:2])]  # The byte order mark may be split.
            if pieces and pieces[0].startswith(b"\xef\xbb\xbf"):
                pieces[0] = pieces[0][3:]
        if not pieces or not any(pieces):
            if _has_fields(self._current):
                events.append(self._current)
                self._current = SseEvent()
            return
        self._field(pieces)

    def _field(self, pieces: Pieces) -> None:
        # Join the first pieces, because the name may be split; do not join a megabyte of data.
        if len(pieces) > 1 and len(pieces[0]) < SMALL:
            pieces[:2] = [b"".join(pieces[:2])]
        name, colon, first = bytes(pieces[0]).partition(b":")
        event = self._current
        if name == b"data":
            pieces[0] = first.removeprefix(b" ")
            if event.data is None:
                event.data = pieces
            else:
                event.data.append(b"\n")
                event.data += pieces
            return
        value = b"".join([first, *pieces[1:]]).removeprefix(b" ").decode("utf-8", "replace") if colon else ""
        if name == b"event":
            event.event = value
        elif name == b"id" and "\0" not in value:
            event.id = value
        elif name == b"retry" and value.isascii() and value.isdigit():
            event.retry = int(value)


def _has_fields(event: SseEvent) -> bool:
    return any(value is not None for value in (event.data, event.id, event.event, event.retry))
