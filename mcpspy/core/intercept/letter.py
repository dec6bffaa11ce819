"""A message on its way, with what has been decided about it.

Owns what of it goes on: a batch (2025-03-26) is one message with several parts,
of which some may be changed, answered or left out.
"""

from __future__ import annotations

from mcpspy.core.intercept.judge import Verdict
from mcpspy.core.intercept.waiting import Asked
from mcpspy.core.message import AnyMessage, Request


class Part:
    """One message of a letter: the only one, or one of a batch."""

    __slots__ = ("asked", "is_left_out", "message", "verdict")

    def __init__(self, message: AnyMessage, asked: Asked | None, verdict: Verdict) -> None:
        self.message = message
        self.asked = asked
        """Of a request: itself, while it waits; of an answer, what it answers."""
        self.verdict = verdict
        self.is_left_out = verdict.is_kept_back


class Letter:
    """What came in one piece, and goes on in one piece."""

    __slots__ = (
        "at",
        "data",
        "edited",
        "held_at",
        "holder",
        "lane",
        "parts",
        "side",
        "size",
        "stream",
        "ticket",
    )

    def __init__(
        self,
        ticket: int,
        at: float,
        side: str,
        data: bytes,
        *,
        stream: str | None,
        lane: object,
        parts: list[Part],
    ) -> None:
        self.ticket = ticket
        self.at = at
        self.side = side
        self.data = data
        self.stream = stream
        self.lane = lane
        self.parts = parts
        self.edited: bytes | None = None
        """What a viewer made of it."""
        self.holder: tuple[str, str] | None = None
        """While it is held: `rule` or `viewer`, and which."""
        self.held_at = 0.0
        self.size = len(data) + sum(len(part.verdict.data or b"") for part in parts)
        """Bytes that it keeps in memory."""

    @property
    def is_kept_back(self) -> bool:
        """Whether nothing of it goes on, whatever happens."""
        return self.is_disconnected or all(part.is_left_out for part in self.parts)

    @property
    def is_disconnected(self) -> bool:
        """Whether the connection ends with it."""
        return any(part.verdict.is_disconnected for part in self.parts)

    @property
    def delay(self) -> float:
        """Seconds; a batch waits for its slowest part."""
        return max(part.verdict.delay for part in self.parts)

    @property
    def is_cut(self) -> bool:
        """Whether it goes on without its line end."""
        return self.edited is None and any(part.verdict.is_cut for part in self.parts)

    @property
    def first(self) -> Part:
        """What a note about the letter names."""
        return self.parts[0]

    @property
    def request(self) -> Request | None:
        """The request it is, if it is one and nothing else."""
        message = self.first.message
        return message if isinstance(message, Request) and message.index is None else None

    def outgoing(self) -> bytes | None:
        """Return what goes on in its place; None if it goes on as it came."""
        if self.edited is not None:
            return self.edited
        kept = [part for part in self.parts if not part.is_left_out]
        if len(kept) == len(self.parts) and all(part.verdict.data is None for part in kept):
            return None
        said = [part.message.data if part.verdict.data is None else part.verdict.data for part in kept]
        return said[0] if self.first.message.index is None else b"[" + b",".join(said) + b"]"
