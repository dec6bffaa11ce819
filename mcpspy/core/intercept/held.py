"""In-flight messages with the decisions about them, and the buffer of those that are held or delayed.

A batch (2025-03-26) is one in-flight message with several parts; each may be changed, answered or removed.
Owns the notes `hold` and `release` of docs/format.md and the events of docs/control.md.
"""

from __future__ import annotations

from collections.abc import Iterator

from mcpspy.core.intercept.actions import AddNote, Fields, Notify, Step, remark, said
from mcpspy.core.intercept.requests import AwaitedRequest, about
from mcpspy.core.protocol.message import AnyMessage, Failure, Request, Result
from mcpspy.core.query.item import MessageItem
from mcpspy.core.session.exchange import TRANSITIONS, State
from mcpspy.core.session.session import event_of


class RuleDecision:
    """What rules decided about a message; without a decision it is forwarded unchanged."""

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
        self.delay = 0.0
        self.data: bytes | None = None
        """The replacement."""
        self.is_cut = False
        """True if the replacement lacks its line end."""
        self.answer: bytes | None = None
        """The response that its sender gets in the peer's place; the message is not forwarded."""
        self.is_dropped = False
        self.is_disconnected = False
        self.holder: str | None = None
        self.is_lost = False
        """True if the requester gets nothing that could be taken for a response."""

    @property
    def is_kept_back(self) -> bool:
        """True if neither the message nor a replacement is ever forwarded."""
        return self.is_dropped or self.is_disconnected or self.answer is not None


class MessagePart:
    """A single message, or one message of a batch."""

    __slots__ = ("asked", "is_left_out", "message", "verdict")

    def __init__(self, message: AnyMessage, asked: AwaitedRequest | None, verdict: RuleDecision) -> None:
        self.message = message
        self.asked = asked
        """The request itself while it is pending; for a response, the request it answers."""
        self.verdict = verdict
        self.is_left_out = verdict.is_kept_back


class InFlightMessage:
    """A message, or a batch, between its arrival and its delivery."""

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
        """The replacement from a viewer."""
        self.holder: tuple[str, str] | None = None
        """While it is held: `rule` or `viewer`, and its name."""
        self.held_at = 0.0
        self.size = len(data) + sum(len(part.verdict.data or b"") for part in parts)
        """Bytes of memory."""

    @property
    def is_kept_back(self) -> bool:
        """True if nothing of it is ever forwarded."""
        return self.is_disconnected or all(part.is_left_out for part in self.parts)

    @property
    def is_disconnected(self) -> bool:
        return any(part.verdict.is_disconnected for part in self.parts)

    @property
    def delay(self) -> float:
        """Seconds; a batch is delayed as long as its slowest part."""
        return max(part.verdict.delay for part in self.parts)

    @property
    def is_cut(self) -> bool:
        """True if it is forwarded without its line end."""
        return self.edited is None and any(part.verdict.is_cut for part in self.parts)

    @property
    def first(self) -> MessagePart:
        """The part that notes name."""
        return self.parts[0]

    @property
    def request(self) -> Request | None:
        """The request, if the message is one and not a batch."""
        message = self.first.message
        return message if isinstance(message, Request) and message.index is None else None

    def outgoing(self) -> bytes | None:
        """Return the replacement to be forwarded; None if there is none."""
        if self.edited is not None:
            return self.edited
        kept = [part for part in self.parts if not part.is_left_out]
        if len(kept) == len(self.parts) and all(part.verdict.data is None for part in kept):
            return None
        said = [part.message.data if part.verdict.data is None else part.verdict.data for part in kept]
        return said[0] if self.first.message.index is None else b"[" + b",".join(said) + b"]"

    # Notes, and events for viewers.

    def no_room(self, action: str) -> AddNote:
        """Return the note that the buffer was too full to hold or delay it."""
        return remark(action, {**self._names(), "why": "full"}, self.lane)

    def hold_steps(self, seconds: float) -> list[Step]:
        """Return the note and the event of a hold of at most `seconds`."""
        assert self.holder is not None
        kind, name = self.holder
        return [
            remark("hold", {kind: name, **self._names(), "ticket": self.ticket}, self.lane),
            Notify(None, {"event": "held", **self.shown(seconds)}),
        ]

    def shown(self, seconds: float) -> Fields:
        """Return the held message for viewers; it is held for at most `seconds`."""
        assert self.holder is not None
        kind, name = self.holder
        fields = {"ticket": self.ticket, "at": self.at, **self._names(), kind: name}
        fields["deadline"] = self.held_at + seconds
        return {**fields, **said("text", self.outgoing() or self.data, "b64")}

    def release_steps(self, at: float, why: str, viewer: str | None = None) -> list[Step]:
        """Return the note and the event of the release."""
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
    """In-flight messages by ticket, within limits of count and memory, in order of arrival."""

    def __init__(self) -> None:
        self._letters: dict[int, InFlightMessage] = {}
        self.bytes = 0

    def __len__(self) -> int:
        return len(self._letters)

    def __iter__(self) -> Iterator[InFlightMessage]:
        return iter(sorted(self._letters.values(), key=lambda letter: letter.ticket))

    def get(self, ticket: int) -> InFlightMessage | None:
        return self._letters.get(ticket)

    def take_in(self, letter: InFlightMessage) -> bool:
        """Add a message; return False if there is no room."""
        if len(self._letters) >= MOST_LETTERS or self.bytes + letter.size > MOST_BYTES:
            return False
        self._letters[letter.ticket] = letter
        self.bytes += letter.size
        return True

    def let_out(self, letter: InFlightMessage) -> None:
        """Remove a message, which must not have been changed since it was added."""
        if self._letters.pop(letter.ticket, None) is not None:
            self.bytes -= letter.size


class LiveItem(MessageItem):
    """A message and the request that it responds to, as filters see them."""

    __slots__ = ()

    @property
    def status(self) -> str:
        """The state that a response gives its request; `pending` for a request."""
        entry = self._entry
        if isinstance(entry, Request):
            return State.PENDING.value
        if isinstance(entry, Result | Failure):
            return TRANSITIONS[State.PENDING][event_of(entry)].value
        return ""
