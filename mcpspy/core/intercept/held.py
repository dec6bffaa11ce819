"""A message on its way, with what has been decided about it.

Owns what of it goes on: a batch (2025-03-26) is one message with several parts,
of which some may be changed, answered or left out. And how viewers see what is
held (docs/control.md), and the recording (the notes `hold` and `release` of docs/format.md).

What is held or delayed, within limits.

Owns how much memory messages on their way may take, and in which order they
came.

A message on its way, as a filter sees it.

Owns what can be asked of a message before it is known what becomes of it: an
answer has the method and subject of its request, if that was seen, and the
time it took.
"""

from __future__ import annotations

from collections.abc import Iterator

from mcpspy.core.intercept.actions import AddNote, Fields, Notify, Step, remark, said
from mcpspy.core.intercept.requests import AwaitedRequest, about
from mcpspy.core.protocol.message import AnyMessage, Failure, Request, Result
from mcpspy.core.query.item import MessageItem
from mcpspy.core.session.correlation import event_of
from mcpspy.core.session.exchange import TRANSITIONS, State


class RuleDecision:
    """What becomes of a message: it goes on as it came, unless something here says otherwise."""

    __slots__ = (
        "answer",
        "data",
        "delay",
        "holder",
        "is_cut",
        "is_disconnected",
        "is_dropped",
        "is_lost",
        "remarks",
    )

    def __init__(self) -> None:
        self.remarks: list[AddNote] = []
        """What rules did, in their order."""
        self.delay = 0.0
        """Seconds."""
        self.data: bytes | None = None
        """What goes on in its place."""
        self.is_cut = False
        """Whether that lacks its line end."""
        self.answer: bytes | None = None
        """What its sender is told in place of the peer's answer: it does not go on."""
        self.is_dropped = False
        self.is_disconnected = False
        self.holder: str | None = None
        """The rule that holds it."""
        self.is_lost = False
        """Whether who waits for it gets nothing that could be taken for it."""

    @property
    def is_kept_back(self) -> bool:
        """Whether it never goes on, and nothing in its place."""
        return self.is_dropped or self.is_disconnected or self.answer is not None


class MessagePart:
    """One message of a letter: the only one, or one of a batch."""

    __slots__ = ("asked", "is_left_out", "message", "verdict")

    def __init__(self, message: AnyMessage, asked: AwaitedRequest | None, verdict: RuleDecision) -> None:
        self.message = message
        self.asked = asked
        """Of a request: itself, while it waits; of an answer, what it answers."""
        self.verdict = verdict
        self.is_left_out = verdict.is_kept_back


class InFlightMessage:
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
        parts: list[MessagePart],
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
    def first(self) -> MessagePart:
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

    # Notes, and events for viewers.

    def no_room(self, action: str) -> AddNote:
        """Return the note that there was no room to hold or delay it."""
        return remark(action, {**self._names(), "why": "full"}, self.lane)

    def hold_steps(self, seconds: float) -> list[Step]:
        """Return the note and the event that it is held, for `seconds` at most."""
        assert self.holder is not None
        kind, name = self.holder
        return [
            remark("hold", {kind: name, **self._names(), "ticket": self.ticket}, self.lane),
            Notify(None, {"event": "held", **self.shown(seconds)}),
        ]

    def shown(self, seconds: float) -> Fields:
        """Return a held letter as viewers see it; it is held for `seconds` at most."""
        assert self.holder is not None
        kind, name = self.holder
        fields = {"ticket": self.ticket, "at": self.at, **self._names(), kind: name}
        fields["deadline"] = self.held_at + seconds
        return {**fields, **said("text", self.outgoing() or self.data, "b64")}

    def release_steps(self, at: float, why: str, viewer: str | None = None) -> list[Step]:
        """Return the note and the event that it is no longer held."""
        fields: Fields = {**self._names(), "ticket": self.ticket, "why": why, "viewer": viewer}
        fields["seconds"] = round(at - self.held_at, 6)
        if self.edited is not None:
            fields |= said("sent", self.edited)
        elif self.first.verdict.answer is not None:
            fields |= said("sent", self.first.verdict.answer)
        return [
            remark("release", fields, self.lane),
            Notify(None, {"event": "released", "ticket": self.ticket, "why": why, "viewer": viewer}),
        ]

    def _names(self) -> Fields:
        names = about(self.first.message, self.first.asked)
        return {key: value for key, value in names.items() if value}


MOST_BYTES = 64 << 20
MOST_LETTERS = 10_000


class HoldBuffer:
    """Letters by their ticket, in the order in which they came."""

    def __init__(self) -> None:
        self._letters: dict[int, InFlightMessage] = {}
        self.bytes = 0
        """What they take in memory."""

    def __len__(self) -> int:
        return len(self._letters)

    def __iter__(self) -> Iterator[InFlightMessage]:
        return iter(sorted(self._letters.values(), key=lambda letter: letter.ticket))

    def get(self, ticket: int) -> InFlightMessage | None:
        """Return the letter of this ticket."""
        return self._letters.get(ticket)

    def take_in(self, letter: InFlightMessage) -> bool:
        """Take a letter in, if there is room; say whether there was."""
        if len(self._letters) >= MOST_LETTERS or self.bytes + letter.size > MOST_BYTES:
            return False
        self._letters[letter.ticket] = letter
        self.bytes += letter.size
        return True

    def let_out(self, letter: InFlightMessage) -> None:
        """Let a letter go; it is not changed before."""
        if self._letters.pop(letter.ticket, None) is not None:
            self.bytes -= letter.size


class LiveItem(MessageItem):
    """One message, with the request that it answers."""

    __slots__ = ()

    @property
    def status(self) -> str:
        """The state that an answer gives its request; of a request, that it is pending."""
        entry = self._entry
        if isinstance(entry, Request):
            return State.PENDING.value
        if isinstance(entry, Result | Failure):
            return TRANSITIONS[State.PENDING][event_of(entry)].value
        return ""
