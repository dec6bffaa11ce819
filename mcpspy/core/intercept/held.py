"""In-flight messages with the decisions about them, and the buffer of those that are held or delayed.

A batch (2025-03-26) is one in-flight message with several parts; each may be changed, answered or removed.
Owns the notes `hold` and `release` of docs/format.md and the events of docs/control.md.
"""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct

from mcpspy.core.intercept.actions import AddNote, Fields, Notify, Step, rule_note, text_field
from mcpspy.core.intercept.requests import AwaitedRequest, about
from mcpspy.core.protocol.message import AnyMessage, Failure, Request, Result
from mcpspy.core.query.item import MessageItem
from mcpspy.core.session.correlation import event_of
from mcpspy.core.session.exchange import TRANSITIONS, State

MAX_BYTES = 64 << 20
MAX_MESSAGES = 10_000


class RuleDecision(Struct, eq=False):
    """The decisions of rules about a message; without any it is forwarded unchanged."""

    notes: list[AddNote] = []
    delay: float = 0.0
    data: bytes | None = None
    is_cut: bool = False
    """True if the replacement lacks its line end."""
    answer: bytes | None = None
    """The response that its sender gets in the peer's place; the message is not forwarded."""
    is_dropped: bool = False
    is_disconnected: bool = False
    holder: str | None = None
    hides_response: bool = False
    """True if the requester gets nothing that could be taken for a response."""

    @property
    def is_blocked(self) -> bool:
        """True if neither the message nor a replacement is ever forwarded."""
        return self.is_dropped or self.is_disconnected or self.answer is not None


class MessagePart:
    """A single message, or one message of a batch."""

    __slots__ = ("decision", "is_removed", "message", "request")

    def __init__(self, message: AnyMessage, request: AwaitedRequest | None, decision: RuleDecision) -> None:
        self.message = message
        self.request = request
        """The request itself while it is pending; for a response, the request it answers."""
        self.decision = decision
        self.is_removed = decision.is_blocked


class InFlightMessage(Struct, eq=False):
    """A message, or a batch, between its arrival and its delivery."""

    ticket: int
    at: float
    side: str
    data: bytes
    stream: str | None
    exchange: object
    parts: list[MessagePart]
    edited: bytes | None = None
    """The replacement from a viewer."""
    holder: tuple[str, str] | None = None
    """While it is held: `rule` or `viewer`, and its name."""
    held_at: float = 0.0

    @property
    def size(self) -> int:
        return len(self.data) + sum(len(part.decision.data or b"") for part in self.parts)

    @property
    def is_blocked(self) -> bool:
        """True if nothing of it is ever forwarded."""
        return self.is_disconnected or all(part.is_removed for part in self.parts)

    @property
    def is_disconnected(self) -> bool:
        return any(part.decision.is_disconnected for part in self.parts)

    @property
    def delay(self) -> float:
        """Seconds; a batch is delayed as long as its slowest part."""
        return max(part.decision.delay for part in self.parts)

    @property
    def is_cut(self) -> bool:
        return self.edited is None and any(part.decision.is_cut for part in self.parts)

    @property
    def first(self) -> MessagePart:
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
        kept = [part for part in self.parts if not part.is_removed]
        if len(kept) == len(self.parts) and all(part.decision.data is None for part in kept):
            return None
        texts = [part.message.data if part.decision.data is None else part.decision.data for part in kept]
        return texts[0] if self.first.message.index is None else b"[" + b",".join(texts) + b"]"

    # Notes, and events for viewers.

    def full_note(self, action: str) -> AddNote:
        """Return the note that the buffer was too full to hold or delay it."""
        return rule_note(action, {**self._names(), "why": "full"}, self.exchange)

    def hold_steps(self, seconds: float) -> list[Step]:
        """Return the note and the event of a hold of at most `seconds`."""
        assert self.holder is not None
        kind, name = self.holder
        return [
            rule_note("hold", {kind: name, **self._names(), "ticket": self.ticket}, self.exchange),
            Notify(None, {"event": "held", **self.viewer_fields(seconds)}),
        ]

    def viewer_fields(self, seconds: float) -> Fields:
        """Return the held message for viewers; it is held for at most `seconds`."""
        assert self.holder is not None
        kind, name = self.holder
        fields = {"ticket": self.ticket, "at": self.at, **self._names(), kind: name}
        fields["deadline"] = self.held_at + seconds
        return {**fields, **text_field("text", self.outgoing() or self.data, "b64")}

    def release_steps(self, at: float, why: str, viewer: str | None = None) -> list[Step]:
        """Return the note and the event of the release."""
        fields: Fields = {**self._names(), "ticket": self.ticket, "why": why, "viewer": viewer}
        fields["seconds"] = round(at - self.held_at, 6)
        if self.edited is not None:
            fields |= text_field("sent", self.edited)
        elif self.first.decision.answer is not None:
            fields |= text_field("sent", self.first.decision.answer)
        return [
            rule_note("release", fields, self.exchange),
            Notify(None, {"event": "released", "ticket": self.ticket, "why": why, "viewer": viewer}),
        ]

    def _names(self) -> Fields:
        note_fields = about(self.first.message, self.first.request)
        return {key: value for key, value in note_fields.items() if value}


class HoldBuffer:
    """In-flight messages by ticket, within limits of count and memory, in order of arrival."""

    def __init__(self) -> None:
        self._by_ticket: dict[int, InFlightMessage] = {}
        self.bytes = 0

    def __len__(self) -> int:
        return len(self._by_ticket)

    def __iter__(self) -> Iterator[InFlightMessage]:
        return iter(sorted(self._by_ticket.values(), key=lambda flight: flight.ticket))

    def get(self, ticket: int) -> InFlightMessage | None:
        return self._by_ticket.get(ticket)

    def add(self, flight: InFlightMessage) -> bool:
        if len(self._by_ticket) >= MAX_MESSAGES or self.bytes + flight.size > MAX_BYTES:
            return False
        self._by_ticket[flight.ticket] = flight
        self.bytes += flight.size
        return True

    def remove(self, flight: InFlightMessage) -> None:
        """Remove a message, which must not have been changed since it was added."""
        if self._by_ticket.pop(flight.ticket, None) is not None:
            self.bytes -= flight.size


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
