"""Write HTTP bodies as lines of a recording: one message, or server-sent events.

Only sessions over HTTP import it; `core.recording.encode` has the parts that `mcpspy run` starts with.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mcpspy.core.framing import CR, SseFramer, collect
from mcpspy.core.recording import strict_json
from mcpspy.core.recording.encode import (
    CLIENT,
    LF,
    SERVER,
    frame_prefix,
    json_object,
    note,
    oversized,
    splice,
)
from mcpspy.core.recording.strict_json import SHORT

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from mcpspy.core.framing import Pieces, SseEvent
    from mcpspy.core.recording.encode import Value


_NAMES = {CLIENT: b"client", SERVER: b"server"}

END_OF_CHUNK, LAST_CHUNK, REST = "end of chunk", "last chunk", "rest of body"
"""Missing ends of a body (RFC 9112, 7.1 and 6.2). `core.framing` has those of an event."""


def body_line(at: bytes, side: str, members: bytes, body: bytes) -> bytes:
    """Return the line of a message that is the whole body of a request or response, as `splice` does.

    `at` is the time as it is written, and `members` the fields of the line as JSON without braces.
    """
    if body and body[0] == 0x7B and body[-1] == 0x7D and is_ordinary(body):  # Nearly every body.
        return b'{"t":%b,"from":"%b",%b,"msg":%b}\n' % (at, _NAMES[side], members, body)
    return b"".join(splice(b'{"t":%b,"from":"%b",%b,' % (at, _NAMES[side], members), [body], body=True))


def is_ordinary(message: bytes) -> bool:
    """Return whether a message is ASCII, one line, and strict JSON; False if more is needed to know that."""
    decode = strict_json.decoder()
    if decode is None or LF in message or CR in message or not message.isascii():
        return False
    try:
        decode(message)
    except (ValueError, RecursionError):
        return False
    return len(message) <= SHORT or not strict_json.is_deep(message)


class BodyEncoder:
    """A body that is one message: a POST, or its JSON response."""

    __slots__ = ("_prefix", "pieces")

    def __init__(self, side: str, fields: Mapping[str, Value]) -> None:
        self._prefix = frame_prefix(side, fields)
        self.pieces: Pieces = []

    def feed(self, data: bytes) -> None:
        if data:
            collect(self.pieces, data)

    def close(self, at: float, *, lacks: str = "") -> Iterator[bytes | bytearray]:
        """Return the buffers of the message; none if the body was empty. `lacks` is what never arrived of its end."""
        pieces, self.pieces = self.pieces, []
        prefix = self._prefix % at
        if lacks:
            prefix += b'"lacks":"%b","size":%d,' % (lacks.encode(), sum(map(len, pieces)))
        return splice(prefix, pieces, torn=bool(lacks), body=True) if pieces else iter(())


class SseEncoder:
    """A body that is a stream of server-sent events, with or without messages."""

    __slots__ = ("_fields", "_framer", "_known", "_limit", "_shape", "_side")

    def __init__(self, side: str, fields: Mapping[str, Value], limit: int = 0) -> None:
        """Create an encoder. The data of an event of more than `limit` bytes is not recorded (0: no limit)."""
        self._side = side
        self._limit = limit
        self._shape: tuple[bytes, bytes, bytes] | None = None
        """Beginning and end of the latest event that was one chunk, with the brackets of its message; the line's prefix.

        None while the next event may depend on what has arrived.
        """
        self._fields = dict(fields)
        self._known: dict[str | None, bytes] = {}
        """The fields of events with the latest name and nothing else, as JSON without braces."""
        self._framer = SseFramer(limit)

    def feed(self, at: float, data: bytes) -> tuple[list[SseEvent], list[bytes | bytearray]]:
        """Return the events that end in `data`, and the buffers to append for them."""
        was_holding = self._framer.is_holding
        events = self.events(data)
        if self._framer.is_holding or any(event.new_end is not None for event in events):
            self._shape = None
        elif len(events) == 1 and not was_holding:
            self._learn_shape(data, events[0])
        return events, [buffer for event in events for buffer in self.line(at, event)]

    def _learn_shape(self, data: bytes, event: SseEvent) -> None:
        """Remember what is around the message of a chunk that is one event, if that is the same for the next one."""
        if not (event.is_message and event.data and len(event.data) == 1 and self._fields):
            return
        if event.id is None and event.retry is None and event.oversized is None:
            begin, _, end = data.partition(event.data[0])
            if begin.endswith(b"data: ") and end in (b"\n\n", b"\r\n\r\n"):
                prefix = frame_prefix(self._side, self.fields(event)) + b'"msg":'
                self._shape = begin + b"{", b"}" + end, prefix

    def known_line(self, at: float, data: bytes) -> bytes | None:
        """Return the line of a chunk that is an event like the one before, except for its message; None for any other.

        In place of `feed`: nothing of the chunk is kept.
        """
        if self._shape is None or (self._limit and len(data) > self._limit):
            return None
        begin, end, prefix = self._shape
        if not (data.startswith(begin) and data.endswith(end)):
            return None
        message = data[len(begin) - 1 : 1 - len(end)]
        return prefix % at + message + b"}\n" if is_ordinary(message) else None

    def events(self, data: bytes) -> list[SseEvent]:
        """Return the events that end in `data`, for a caller that records them with `line` or `fields`."""
        return self._framer.feed(data)

    def fields(self, event: SseEvent) -> dict[str, Value]:
        """Return the fields of an event in the recording, without its data."""
        named = {"event": event.event, "id": event.id, "retry": event.retry}
        ends = {} if event.new_end is None else {"event_end": event.new_end}
        spaces = {"data_space": False} if event.is_unspaced else {}
        return self._fields | {k: v for k, v in named.items() if v is not None} | ends | spaces

    def _members(self, event: SseEvent) -> bytes:
        """Return the fields of an event as JSON, which are nearly always those of the event before it."""
        is_usual = event.id is None and event.retry is None and event.new_end is None
        if not is_usual or event.is_unspaced:
            return json_object(self.fields(event))[1:-1]
        known = self._known.get(event.event)
        if known is None:
            known = json_object(self.fields(event))[1:-1]
            self._known = {event.event: known}
        return known

    @property
    def is_inside_event(self) -> bool:
        return self._framer.is_inside_event

    @property
    def is_oversized(self) -> bool:
        """Return whether the current event is larger than the limit."""
        return self._framer.is_oversized

    def close(self, at: float) -> Iterable[bytes | bytearray]:
        """Return the buffers of the incomplete event, if there is one."""
        event = self._framer.close()
        return self.line(at, event) if event is not None else ()

    def line(self, at: float, event: SseEvent) -> Iterator[bytes | bytearray]:
        """Yield the buffers of an event."""
        is_whole = event.oversized is None and not event.lacks
        if is_whole and event.data and len(event.data) == 1 and self._fields and event.is_message:
            yield body_line(b"%.6f" % at, self._side, self._members(event), bytes(event.data[0]))
            return
        fields = self.fields(event)
        if event.oversized is not None:
            found = event.oversized
            yield oversized(at, self._side, fields, found.size, found.sha256, lacks=event.lacks)
            return
        if event.lacks:
            fields |= {"lacks": event.lacks, "size": sum(map(len, event.data or ()))}
        if event.is_message:
            assert event.data is not None
            pieces, is_torn = list(event.data), bool(event.lacks)
            yield from splice(frame_prefix(self._side, fields) % at, pieces, torn=is_torn, body=True)
        else:
            if event.data is not None:
                fields["data"] = b"".join(event.data).decode("utf-8", "replace")
            if event.lacks:
                fields["torn"] = True
            yield note(at, "sse", fields)
