"""Actions that the I/O side carries out for the Interceptor, and their notes (docs/format.md).

`exchange` is opaque here: the exchange a message came on, passed to `Interceptor.process` and returned with every
action about that message.
"""

from __future__ import annotations

from binascii import b2a_base64
from typing import Any, NamedTuple, TypeAlias

Fields: TypeAlias = dict[str, Any]

KIND = "rule"
"""The kind of these notes, whether a rule or a viewer caused the effect."""


class Forward(NamedTuple):
    """Forward the message unchanged."""

    side: str
    data: bytes
    exchange: object
    ticket: int


class Substitute(NamedTuple):
    """Send this to the peer of `side` in place of a message, in the name of `side`."""

    side: str
    data: bytes
    exchange: object
    ticket: int
    raw: bool = False
    """True if no line end follows (an incomplete line)."""


class Inject(NamedTuple):
    """Record a frame `by` mcpspy, then send it to the peer of `side` in the name of `side`."""

    side: str
    data: bytes
    exchange: object = None
    """The exchange it answers or belongs to; None for an injected message."""
    stream: str | None = None
    """HTTP: the stream it belongs to; None if the command named none."""
    id: str | None = None
    """JSON text of the id of an injected request, for `Interceptor.injection_failed`."""


class AddNote(NamedTuple):
    kind: str
    fields: Fields
    exchange: object = None


class Dropped(NamedTuple):
    side: str
    exchange: object
    ticket: int


class Disconnect(NamedTuple):
    """Close both pipes of the host (stdio), or the connection of the exchange (HTTP)."""

    exchange: object


class AbortUpstream(NamedTuple):
    """HTTP: end the request to the server; the client has its answer (cancellation in 2026-07-28)."""

    exchange: object


class Notify(NamedTuple):
    viewer: str | None
    """None for all of them."""
    event: Fields


Step: TypeAlias = Forward | Substitute | Inject | AddNote | Dropped | Disconnect | AbortUpstream | Notify


class Decision(NamedTuple):
    """The decision about a message that has just been received.

    The I/O side records the message (`"to":"mcpspy"` if `to_mcpspy`), then carries out the steps in order.
    """

    ticket: int
    to_mcpspy: bool
    steps: list[Step]
    is_held: bool
    """True if the message is held or delayed, so that more steps follow later."""

    @property
    def is_untouched(self) -> bool:
        """True if forwarding the original bytes, line end included, is the only step."""
        return len(self.steps) == 1 and isinstance(self.steps[0], Forward)


class CommandReply(NamedTuple):
    answer: Fields
    steps: list[Step]


class CommandError(Exception):
    """A command that was refused, with a reason of one line; it has changed nothing."""


def rule_note(action: str, fields: Fields, exchange: object = None) -> AddNote:
    """Return the note of an effect, without its empty fields."""
    return AddNote(
        KIND, {"action": action, **{k: v for k, v in fields.items() if v is not None and v != ""}}, exchange
    )


def text_field(name: str, data: bytes, base64_name: str = "sent_b64") -> Fields:
    """Return a field with the text of a message; if it is not UTF-8, in Base64 under the other name."""
    try:
        return {name: data.decode()}
    except UnicodeDecodeError:
        return {base64_name: b2a_base64(data, newline=False).decode()}
