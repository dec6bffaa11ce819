"""Split byte streams into lines (stdio) and server-sent events (HTTP).

Any chunking of the same bytes gives the same lines, in time linear in their length. The module does not inspect
lines and imports nothing at startup, because `mcpspy run` loads it.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import TypeAlias

    Pieces: TypeAlias = list[bytes | bytearray]

SMALL = 4096
"""Smaller chunks (in bytes) are merged, so that a line fed byte by byte does not become a list of bytes objects."""

MAX_DIGITS = 16
"""Digits above which a retry time is ignored: no reader could use it, and some cannot read it."""

NEWLINE, BLANK_LINE = "newline", "blank line"
"""Missing ends of an event: that of its last line, or the line after it."""

CR = ord("\r")

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
            ended = self.close()
        self._keep(data[end:])
        return ended, data[start:end]

    def feed(self, data: bytes) -> list[bytes]:
        """Return the lines that ended in this chunk, without their LF."""
        lines = data.split(b"\n")
        rest = lines.pop()
        if lines and self.pieces:  # If memory is short, the pieces stay as they are.
            lines[0], self.pieces = b"".join((*self.pieces, lines[0])), []
        self._keep(rest)
        return lines

    def close(self) -> Pieces:
        """Return the pieces of an incomplete last line; empty if there is none."""
        rest, self.pieces = self.pieces, []
        return rest

    def _keep(self, data: bytes) -> None:
        if data:
            collect(self.pieces, data)


class BoundedLineFramer(LineFramer):
    """A splitter that keeps no more than a limit of a line; a longer one is counted and hashed."""

    __slots__ = ("_limit", "_unfinished", "held", "oversized")

    def __init__(self, limit: int = 0) -> None:
        """Create a splitter. The limit is in bytes, without the LF; 0 means no limit."""
        super().__init__()
        self._limit = limit
        self.held = 0
        """Bytes of the unfinished line that have arrived."""
        self._unfinished: OversizedData | None = None
        self.oversized: OversizedData | None = None
        """The last line that began in an earlier chunk, if it is above the limit; in place of its pieces."""

    def close(self) -> Pieces:
        """Return the pieces of an incomplete last line; empty if there is none, one if `oversized` replaces them."""
        self.oversized, self._unfinished, self.held = self._unfinished, None, 0
        return super().close()

    def _keep(self, data: bytes) -> None:
        self.held += len(data)
        if self._unfinished is not None:
            self._unfinished.add([data])
            return
        super()._keep(data)
        if self._limit and self.held > self._limit:
            self._unfinished = OversizedData(self.pieces)
            self.pieces = [b""]


def collect(pieces: Pieces, data: bytes | bytearray) -> None:
    """Append bytes; small ones are merged, so that a list of pieces takes little more memory than its bytes."""
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

    __slots__ = ("data", "event", "id", "is_unspaced", "lacks", "new_end", "oversized", "retry")

    def __init__(self) -> None:
        self.event: str | None = None
        """The `event` field; None means `message`."""
        self.data: Pieces | None = None
        """The `data` lines, joined by LF, as pieces; None if there were none."""
        self.id: str | None = None
        self.retry: int | None = None
        """Milliseconds."""
        self.lacks = ""
        """The missing end, if the stream ended first; empty if the event is complete."""
        self.oversized: OversizedData | None = None
        """Size and digest of data beyond the limit, which replace it."""
        self.new_end: str | None = None
        """The ends of its last line and of its blank line, if they are not those of the event before (two LF at first)."""
        self.is_unspaced = False
        """True if no space follows the colon in a line of its data, which some readers expect (the space is optional)."""

    def set(self, name: bytes, value: bytes) -> None:
        """Set a field other than `data`. Ignores unknown names and invalid values."""
        text = value.decode("utf-8", "replace")
        if name == b"event":
            self.event = text
        elif name == b"id" and "\0" not in text:
            self.id = text
        elif name == b"retry" and text.isascii() and text.isdigit() and len(text) < MAX_DIGITS:
            self.retry = int(text)

    @property
    def is_message(self) -> bool:
        """True if the event carries a message, and not only an `id`, a `retry` or another event type."""
        return self.data is not None and any(self.data) and self.event in (None, "message")


class OversizedData:
    """A line, or the `data` of an event, that is too large to keep: counted and hashed."""

    __slots__ = ("_hash", "size")

    def __init__(self, pieces: Iterable[bytes | bytearray] = ()) -> None:
        from hashlib import sha256

        self._hash = sha256()
        self.size = 0
        self.add(pieces)

    def add(self, pieces: Iterable[bytes | bytearray]) -> None:
        for piece in pieces:
            self._hash.update(piece)
            self.size += len(piece)

    @property
    def sha256(self) -> str:
        return self._hash.hexdigest()


class SseFramer:
    """Parser of a `text/event-stream` body (MCP Streamable HTTP, and HTTP+SSE of 2024-11-05).

    CR, LF and CRLF end lines and may be mixed. The call that receives the blank line of an event returns the event.
    No more than `limit` bytes of an event are kept (0: no limit); the data of a larger one is counted and hashed.
    """

    __slots__ = (
        *("_after_cr", "_begun", "_current", "_end", "_held"),
        *("_is_data", "_limit", "_line", "_line_end"),
    )

    def __init__(self, limit: int = 0) -> None:
        self._limit = limit
        self._line: Pieces = []
        self._current = SseEvent()
        self._after_cr = False
        self._begun = False
        self._held = 0
        """Bytes of the current event that have arrived."""
        self._is_data = False
        """True inside an oversized line of data, whose name is no longer kept."""
        self._end = b"\n\n"
        """The ends of the last line and of the blank line of the latest event."""
        self._line_end = b""
        """The latest line, or its last bytes."""

    def feed(self, data: bytes) -> list[SseEvent]:
        """Return the events that ended in this chunk."""
        if self._after_cr and data:
            # The CR already ended its line; this LF belongs to it.
            self._after_cr = False
            if data.startswith(b"\n"):
                data, self._line_end = data[1:], b"\r\n"
        if not self._held and self._begun and (event := self._whole_event(data)) is not None:
            return [event]
        events: list[SseEvent] = []
        before = self._line_end
        for line in data.splitlines(keepends=True):  # On bytes: at CR, LF and CRLF only.
            self._after_cr = line.endswith(b"\r")
            self._held += len(line)
            if not line.endswith((b"\n", b"\r")):
                collect(self._line, line)
                break
            self._end_line(line.rstrip(b"\r\n"), events, before, line)
            before = line
        self._line_end = before[-2:]
        if self._limit and self._held > self._limit:
            self._shrink()
        return events

    def _whole_event(self, data: bytes) -> SseEvent | None:
        """Return the event of a chunk that is one event with one line of data, as nearly all are; else None."""
        if CR not in data:
            end = b"\n"
        elif data.count(b"\r\n") == data.count(b"\r") == data.count(b"\n"):
            end = b"\r\n"
        else:
            return None
        if not data.endswith(end + end) or (self._limit and len(data) > self._limit):
            return None
        lines = data.split(end)
        if lines.index(b"") != len(lines) - 2:  # Several events, or none.
            return None
        event = SseEvent()
        for line in lines[:-2]:
            name, _, whole = line.partition(b":")
            value = whole.removeprefix(b" ")
            if name != b"data":
                event.set(name, value)
            elif event.data is None:
                event.data, event.is_unspaced = [value], bool(whole) and len(value) == len(whole)
            else:
                return None
        if not event.data:
            return None
        self._set_end(event, end + end)
        return event

    def _end_event(self, before: bytes, line: bytes) -> None:
        """Remember the end of an event by its last line and the blank line."""
        end = b"\r\n" if before.endswith(b"\r\n") else before[-1:]
        if line == b"\r" and len(end) == 2:  # Its LF has not arrived.
            line = end
        self._set_end(self._current, end + line)

    def _set_end(self, event: SseEvent, end: bytes) -> None:
        if end != self._end:
            self._end, event.new_end = end, end.decode()

    @property
    def is_oversized(self) -> bool:
        """True inside an event that is larger than the limit."""
        return bool(self._limit) and self._held > self._limit

    def _shrink(self) -> None:
        """Count and hash the data of the current event instead of keeping it."""
        event = self._current
        value = self._line if self._is_data else self._value_of_data()
        if event.oversized is None and (event.data is not None or value is not None):
            event.oversized = OversizedData()
        if event.oversized is not None and event.data:
            event.oversized.add(event.data)
            event.data = []
        if value is None:
            if self._line:  # A comment or an unknown field; the beginning identifies it.
                self._line = [bytes(self._line[0][:SMALL])]
        elif event.oversized is not None:
            if event.data is None:
                event.data = []
            elif not self._is_data:
                event.oversized.add([b"\n"])
            event.oversized.add(value)
            self._line, self._is_data, self._begun = [b""], True, True

    def _value_of_data(self) -> Pieces | None:
        """Return the value in an incomplete line of data; None for any other line."""
        line = self._line
        if len(line) > 1 and len(line[0]) < SMALL:
            line[:2] = [b"".join(line[:2])]
        mark = b"" if self._begun else b"\xef\xbb\xbf"
        first = bytes(line[0]).removeprefix(mark) if line else b""
        if len(first) <= len(b"data:") or not first.startswith(b"data:"):
            return None
        return [first[5:].removeprefix(b" "), *line[1:]]

    @property
    def is_holding(self) -> bool:
        """True if the next event may depend on what has arrived: on a part of it, or on a CR whose LF may follow."""
        return bool(self._held) or self._after_cr or not self._begun

    @property
    def is_inside_event(self) -> bool:
        """True if an event has begun; a comment is not an event."""
        is_in_line = bool(self._line) and not self._line[0].startswith(b":")
        return _has_fields(self._current) or is_in_line

    def close(self) -> SseEvent | None:
        """Return the incomplete last event, if one has begun."""
        events: list[SseEvent] = []
        lacks = NEWLINE if self._line else BLANK_LINE
        if self._line:
            self._end_line(b"", events)
        if self.is_oversized:
            self._shrink()
        event, self._current = self._current, SseEvent()
        self._held = 0
        event.lacks = lacks
        return event if _has_fields(event) else None

    def _end_line(self, rest: bytes, events: list[SseEvent], before: bytes = b"", line: bytes = b"") -> None:
        pieces, self._line = self._line, []
        if rest:
            pieces.append(rest)
        if self._is_data:
            self._is_data = False
            assert self._current.oversized is not None
            self._current.oversized.add(pieces)
            return
        if not self._begun:
            self._begun = True
            pieces[:2] = [b"".join(pieces[:2])]  # The byte order mark may be split.
            if pieces and pieces[0].startswith(b"\xef\xbb\xbf"):
                pieces[0] = pieces[0][3:]
        if not pieces or not any(pieces):
            if self.is_oversized:
                self._shrink()
            if _has_fields(self._current):
                self._end_event(before, line)
                events.append(self._current)
                self._current = SseEvent()
            self._held = 0
            return
        self._field(pieces)
        if not _has_fields(self._current):  # A comment, which belongs to no event.
            self._held = 0

    def _field(self, pieces: Pieces) -> None:
        # Join the first pieces, because the name may be split; do not join a megabyte of data.
        if len(pieces) > 1 and len(pieces[0]) < SMALL:
            pieces[:2] = [b"".join(pieces[:2])]
        name, _, first = bytes(pieces[0]).partition(b":")
        event = self._current
        if name == b"data":
            pieces[0] = first.removeprefix(b" ")
            event.is_unspaced |= bool(first) and len(pieces[0]) == len(first)
            if event.data is None:
                event.data = pieces
            else:
                collect(event.data, b"\n")
                for piece in pieces:
                    collect(event.data, piece)
            return
        event.set(name, b"".join([first, *pieces[1:]]).removeprefix(b" "))


def _has_fields(event: SseEvent) -> bool:
    return any(value is not None for value in (event.data, event.id, event.event, event.retry))


def is_message(data: bytes, blanks: bytes | None = None) -> bool:
    """Return whether the outer brackets are those of a JSON object or array. `blanks` may surround them."""
    data = data.strip(blanks)
    return data[:1] + data[-1:] in (b"{}", b"[]")
