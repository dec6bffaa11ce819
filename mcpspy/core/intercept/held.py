"""In-flight messages with the decisions about them, and the buffer of held and delayed messages.

A batch (2025-03-26) is one in-flight message with several parts; each part may be changed, answered or removed.
The module builds the notes `hold` and `release` (docs/format.md) and their events for viewers (docs/control.md).
"""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct

from mcpspy.core.intercept.actions import AddNote, Fields, Notify, Step, StepReceiver, rule_note, text_field
from mcpspy.core.intercept.requests import AwaitedRequest, about
from mcpspy.core.protocol.message import AnyMessage, Failure, Request, Result
from mcpspy.core.query.item import MessageItem
from mcpspy.core.session.exchange import State, outcome_of

MAX_BYTES = 64 << 20
MAX_MESSAGES = 10_000


class RuleDecision(Struct, eq=False):
    """Decisions of the rules about a message; by default it is forwarded unchanged."""

    notes: list[AddNote] = []
    delay: float = 0.0
    data: bytes | None = None
    is_cut: bool = False
    """True to send the replacement without a line end."""
    answer: bytes | None = None
    """Response that mcpspy sends in the peer's place; the message is not forwarded."""
    is_dropped: bool = False
    is_disconnected: bool = False
    holder: str | None = None
    holder_kind: str = "rule"
    """`rule` or `script`."""
    hides_response: bool = False
    """True if the requester gets no usable response."""

    @property
    def is_blocked(self) -> bool:
        """True if neither the message nor a replacement is ever forwarded."""
        return self.is_dropped or self.is_disconnected or self.answer is not None


class MessagePart:
    """A message, or one message of a batch."""

    __slots__ = ("decision", "is_removed", "message", "request")

    def __init__(self, message: AnyMessage, request: AwaitedRequest | None, decision: RuleDecision) -> None:
        self.message = message
        self.request = request
        """For a pending request, its entry in the watchdog; for a response, the entry of its request."""
        self.decision = decision
        self.is_removed = decision.is_blocked


class InFlightMessage(Struct, eq=False):
    """A message, or a batch, between its arrival and its delivery."""

    ticket: int
    at: float
    side: str
    data: bytes
    stream: str | None
    exchange: StepReceiver | None
    parts: list[MessagePart]
    edited: bytes | None = None
    """Replacement from a viewer."""
    holder: tuple[str, str] | None = None
    """`rule`, `script` or `viewer`, and its name, while the message is held."""
    held_at: float = 0.0
    is_scripted: bool = False
    """True if the scripts have decided on the message."""

    # Nearly all messages have one part, so these properties use no generator for that.

    @property
    def size(self) -> int:
        return len(self.data) + sum([len(part.decision.data or b"") for part in self.parts])

    @property
    def is_blocked(self) -> bool:
        """True if no part of the message is ever forwarded."""
        if len(self.parts) == 1:
            part = self.parts[0]
            return part.is_removed or part.decision.is_disconnected
        return self.is_disconnected or all(part.is_removed for part in self.parts)

    @property
    def is_disconnected(self) -> bool:
        return any(part.decision.is_disconnected for part in self.parts)

    @property
    def delay(self) -> float:
        """Delay in seconds; for a batch, the longest delay of its parts."""
        return max([part.decision.delay for part in self.parts])

    @property
    def is_cut(self) -> bool:
        return self.edited is None and any(part.decision.is_cut for part in self.parts)

    @property
    def first(self) -> MessagePart:
        return self.parts[0]

    @property
    def request(self) -> Request | None:
        """The message if it is a request and not part of a batch, otherwise None."""
        message = self.first.message
        return message if isinstance(message, Request) and message.index is None else None

    def outgoing(self) -> bytes | None:
        """Return the replacement to forward; None if the message is unchanged."""
        if self.edited is not None:
            return self.edited
        if len(self.parts) == 1 and self.parts[0].decision.data is None and not self.parts[0].is_removed:
            return None
        rest = [part for part in self.parts if not part.is_removed]
        if len(rest) == len(self.parts) and all(part.decision.data is None for part in rest):
            return None
        texts = [part.message.data if part.decision.data is None else part.decision.data for part in rest]
        return texts[0] if self.first.message.index is None else b"[" + b",".join(texts) + b"]"

    # Notes, and events for viewers.

    def full_note(self, action: str) -> AddNote:
        """Return the note for a message that was not held or delayed because the buffer was full."""
        return rule_note(action, {**self._names(), "why": "full"}, self.exchange)

    def hold_steps(self, seconds: float) -> list[Step]:
        """Return the note and the event of a hold that lasts at most `seconds`."""
        assert self.holder is not None
        kind, name = self.holder
        return [
            rule_note("hold", {kind: name, **self._names(), "ticket": self.ticket}, self.exchange),
            Notify(None, {"event": "held", **self.viewer_fields(seconds)}),
        ]

    def viewer_fields(self, seconds: float) -> Fields:
        """Return the fields of a message, held for at most `seconds`, that viewers get."""
        assert self.holder is not None
        kind, name = self.holder
        fields = {"ticket": self.ticket, "at": self.at, **self._names(), kind: name}
        fields["deadline"] = self.held_at + seconds
        return {**fields, **text_field("text", self.outgoing() or self.data, "b64")}

    def release_steps(self, at: float, why: str, viewer: str | None = None) -> list[Step]:
        """Return the note and the event of a release."""
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
    """Held and delayed messages in order of arrival, limited in number and memory."""

    def __init__(self) -> None:
        self._by_ticket: dict[int, InFlightMessage] = {}
        self.bytes = 0

    def __len__(self) -> int:
        return len(self._by_ticket)

    def __iter__(self) -> Iterator[InFlightMessage]:
        return iter(sorted(self._by_ticket.values(), key=lambda flight: flight.ticket))

    def get(self, ticket: int) -> InFlightMessage | None:
        return self._by_ticket.get(ticket)

    def add(self, flight: InFlightMessage, *, is_limited: bool = True) -> bool:
        """Add a message; return False if the buffer is full."""
        if is_limited and (len(self._by_ticket) >= MAX_MESSAGES or self.bytes + flight.size > MAX_BYTES):
            return False
        self._by_ticket[flight.ticket] = flight
        self.bytes += flight.size
        return True

    def remove(self, flight: InFlightMessage) -> None:
        """Remove a message; it must not have changed since it was added."""
        if self._by_ticket.pop(flight.ticket, None) is not None:
            self.bytes -= flight.size


class LiveItem(MessageItem):
    """Filter item of a message and the request that it responds to."""

    __slots__ = ()

    @property
    def status(self) -> str:
        """State of the request after this response; `pending` for a request."""
        entry = self._entry
        if isinstance(entry, Request):
            return State.PENDING.value
        if isinstance(entry, Result | Failure):
            return outcome_of(entry).value
        return ""
