"""Heads of HTTP messages: their limits, their text, and those that a connection need not parse again.

The requests of a client on one connection have nearly always the same head, and so have the responses to them. A
message whose head is known and which is one whole packet is taken without a parser.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Generic, TypeVar

MAX_HEAD = 1 << 17
"""Maximum size of a head in bytes. Tokens are long, and a proxy should not refuse them."""

MAX_KNOWN = 64
"""Number of heads that a connection remembers."""

MAX_KNOWN_HEAD = 1 << 13
"""Maximum size, in bytes, of a head that is remembered."""

H = TypeVar("H")


class KnownHeads(Generic[H]):
    """The heads of whole messages that arrived on a connection in one packet each."""

    def __init__(self) -> None:
        self._heads: dict[bytes, tuple[H, int]] = {}
        """The bytes of a head → what was parsed from it, and the length of the body."""

    def split(self, packet: bytes) -> tuple[H, bytes] | None:
        """Return the head and the body of a whole message with a known head; None for any other packet."""
        end = packet.find(b"\r\n\r\n") + 4
        known = self._heads.get(packet[:end])
        if known is None:
            return None
        head, length = known
        return (head, packet[end:]) if len(packet) == end + length else None

    def heads(self) -> Iterator[H]:
        """Yield what was parsed of each known head."""
        return (head for head, _ in self._heads.values())

    def is_head(self, packet: bytes) -> bool:
        """Return whether a packet is a known head without its body."""
        return packet in self._heads

    def add(self, packet: bytes, head: H, length: int) -> None:
        """Remember the head of a message with a body of this length, if the packet is that message."""
        end = packet.find(b"\r\n\r\n") + 4
        if 3 < end <= MAX_KNOWN_HEAD and len(packet) == end + length:
            if len(self._heads) == MAX_KNOWN:
                self._heads.clear()
            self._heads[packet[:end]] = head, length


def header_text(value: bytes) -> str:
    """Return the text of a target or of a part of a header; bytes that are not UTF-8 are kept (PEP 383)."""
    return value.decode("utf-8", "surrogateescape")
