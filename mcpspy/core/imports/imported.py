"""A session on its way in from another format: what every importer makes.

Owns the lines it becomes, their order, and what is said of it: where it comes
from, and what that tool did not keep. A message is spliced in as the file has
it; none is made up.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from msgspec import Struct

from mcpspy.core import envelope
from mcpspy.core.envelope import SERVER
from mcpspy.core.lane import SseLane
from mcpspy.errors import UsageError

if TYPE_CHECKING:
    from mcpspy.core.envelope import Value

_BEYOND_TIME = 1e11
"""Seconds since 1970 that no clock shows."""

_AT_ZERO = b'{"t":0.000000'
"""How a line begins while its time is not known: that is put in last."""


class Imported(Struct, kw_only=True):
    """A session out of another tool's file, as a recording has it."""

    format: str
    """The name of the format it comes from."""
    key: str
    """What the file calls it; the only one of its file may have no name."""
    name: str
    transport: str
    command: list[str] | None = None
    upstream: str | None = None
    cwd: str | None = None
    started: float | None
    """Seconds since 1970; None if the file does not say."""
    lines: list[bytes]
    """Those of a recording after its header."""
    messages: int
    lacks: list[str]
    """What the format does not keep, and what stands there instead."""
    changed: list[str]
    """What is not here as it is in this one file: left out, or moved."""


class Lines:
    """The lines of a recording. Times are in seconds, from whenever: what begins first is at 0.

    `by_time` is for what comes in no order. Else the order is that in which
    they are added, whatever the clock of the other tool did.
    """

    def __init__(self, *, by_time: bool = False) -> None:
        self.messages = 0
        self._by_time = by_time
        self._made: list[tuple[float, int, bytes]] = []

    def message(self, at: float, side: str, data: bytes, **fields: Value) -> None:
        """Add what one side sent. White space alone is no message."""
        if data.strip():
            # A line break may stand in what a damaged file calls a line, and must not end ours.
            body = "http" in fields or b"\n" in data
            prefix = envelope.frame_prefix(side, fields) % 0.0
            self._add(at, b"".join(envelope.splice(prefix, [data], body=body)))

    def events(self, times: Iterable[float], body: bytes, **fields: Value) -> None:
        """Add a `text/event-stream` of the server's: its messages, and the events that are none, each at its time."""
        lane = SseLane(SERVER, fields)
        _, lines = lane.feed(0.0, body)
        events = b"".join([*lines, *lane.close(0.0)]).split(b"\n")[:-1]
        for at, line in zip(times, events, strict=True):
            self._add(at, line + b"\n")

    def stderr(self, at: float, text: str) -> None:
        """Add a line of the server's stderr."""
        data = text.encode("utf-8", "replace")
        self._add(at, b"".join(envelope.splice_text(_AT_ZERO + b',"note":"stderr",', [data])))

    def note(self, at: float, kind: str, **fields: Value) -> None:
        """Add what nobody said."""
        self._add(at, envelope.note(0.0, kind, fields))

    def ended(self) -> None:
        """Add that the session is over. How the server left, no format but ours keeps."""
        last = max((at for at, _, _ in self._made), default=0.0)
        self.note(last, "exit", code=None, signal=None)

    def done(self, start: float | None = None) -> tuple[float, list[bytes]]:
        """Return what their times count from, unless it is given when the first of them was, and the lines."""
        made = sorted(self._made) if self._by_time else self._made
        if start is None:
            start = made[0][0] if made else 0.0
        lines, last = [], 0.0
        for at, _, rest in made:
            last = max(last, at - start)
            lines.append(b'{"t":%.6f' % last + rest)
        return start, lines

    def _add(self, at: float, line: bytes) -> None:
        if not abs(at) < _BEYOND_TIME:
            raise UsageError(f"a time of {at:g} s is none", "see docs/import.md")
        self.messages += not line.startswith(b',"note":', len(_AT_ZERO))
        self._made.append((at, len(self._made), line[len(_AT_ZERO) :]))


def counted(number: int, what: str) -> str:
    """Return a number and what it is of: `1 message`, `2 messages`."""
    return f"{number} {what}{'s' * (number != 1)}"
