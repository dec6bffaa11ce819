"""Server-sent events one by one, each with the bytes it came in.

Owns the cut of a stream between events, whatever the chunking, so that one can
be held while others pass, and how an event is written again with another
message in it. Source: HTML Living Standard, 9.2.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from mcpspy.core.framing import SseEvent, SseFramer

_LINE_END = re.compile(rb"\r\n|\r|\n")


class Unit(NamedTuple):
    """What stands between two places at which a stream may be left."""

    raw: bytes
    """Its bytes, line ends included."""
    event: SseEvent | None
    """None for a comment, or a blank line too many."""

    @property
    def message(self) -> bytes | None:
        """Return the message that the event carries; None if it carries none."""
        if self.event is None or not self.event.is_message:
            return None
        assert self.event.data is not None
        return b"".join(self.event.data)


class Events:
    """The body of a `text/event-stream`, in units."""

    def __init__(self) -> None:
        self._framer = SseFramer()
        self._raw = bytearray()

    def feed(self, data: bytes) -> list[Unit]:
        """Return the units that end in this chunk."""
        units: list[Unit] = []
        for line in data.splitlines(keepends=True):  # On bytes: at CR, LF and CRLF only.
            self._raw += line
            events = self._framer.feed(line)
            if events:
                units.append(Unit(bytes(self._raw), events[0]))
            elif self._framer.is_inside_event or not line.endswith((b"\n", b"\r")):
                continue
            else:
                units.append(Unit(bytes(self._raw), None))
            self._raw.clear()
        return units

    def close(self) -> Unit | None:
        """Return what never got its end, if there is something."""
        raw = bytes(self._raw)
        self._raw.clear()
        return Unit(raw, self._framer.close()) if raw else None


def written(data: bytes, like: SseEvent | None = None) -> bytes:
    """Return an event with this message; its name and id are those of another, if there is one."""
    lines = []
    if like is not None:
        named = {"event": like.event, "id": like.id, "retry": like.retry}
        lines = [f"{name}: {value}".encode() for name, value in named.items() if value is not None]
    lines += [b"data: " + line for line in _LINE_END.split(data)]
    return b"\n".join(lines) + b"\n\n"
