"""What a message, an order or the clock leads to: first recorded, then sent.

Owns that order, for several at once: one write for all that is recorded, one
for all that goes to a peer.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from typing import Any

    from mcpspy.io.hand import Hand
    from mcpspy.io.recorder import Recorder

FLAT = 1 << 20
"""Bytes of entries that are joined and written as one; larger messages are not copied once more."""


class Turn:
    """All of it or nothing: it is written down before any of it is done."""

    __slots__ = ("entries", "is_cut", "sent", "settled", "told")

    def __init__(self, entries: Iterable[bytes | bytearray] = ()) -> None:
        self.entries = list(entries)
        """Lines of the recording, in pieces."""
        self.sent: list[tuple[Callable[[bytes], None], bytes]] = []
        """Bytes, and who takes them."""
        self.settled: list[int] = []
        """Tickets of what is not held any more."""
        self.told: list[tuple[str | None, dict[str, Any]]] = []
        """Events, and which viewer is told; None is all of them."""
        self.is_cut = False
        """Whether the host is disconnected."""

    def go_on(self, hand: Hand, line: bytes) -> None:
        """Have a peer's own line go on: not copied for its LF, it may be large."""
        self.sent += [(hand.say, line), (hand.say, b"\n")]

    def answers(self, hand: Hand) -> int:
        """Return how many bytes go the way of a hand."""
        return sum(len(data) for who, data in self.sent if who == hand.say)


def untouched(at: float, hand: Hand, line: bytes) -> Turn:
    """Return the turn in which a line goes on as it came."""
    turn = Turn(hand.frame(at, line, {}))
    turn.go_on(hand, line)
    return turn


def carry_out(turns: Sequence[Turn], recorder: Recorder) -> None:
    """Record what the turns lead to, then send it."""
    entries: list[bytes | bytearray] = []
    sent: dict[Callable[[bytes], None], list[bytes]] = {}
    for turn in turns:
        entries += turn.entries
        for who, data in turn.sent:
            sent.setdefault(who, []).append(data)
    if entries:
        recorder.write(b"".join(entries) if sum(map(len, entries)) < FLAT else entries)
    for who, pieces in sent.items():
        who(b"".join(pieces))
