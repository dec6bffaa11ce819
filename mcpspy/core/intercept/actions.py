"""Actions that the I/O side carries out for the Interceptor, and their notes (docs/format.md).

`io.intercept.executor` carries them out. `exchange` is the HTTP exchange that carried a message, passed to
`Interceptor.process` and returned in each action about that message; None on stdio and for injected messages.
"""

from __future__ import annotations

from binascii import b2a_base64
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Mapping

Fields: TypeAlias = dict[str, Any]

KIND = "rule"
"""Kind of these notes, for the effects of both rules and viewers."""


class StepReceiver(Protocol):
    """An HTTP exchange that executes the steps about its messages. The engine only compares exchanges with `is`."""

    @property
    def fields(self) -> Mapping[str, Any]:
        """The fields of its entries in the recording."""

    @property
    def stream(self) -> str:
        """The session to which it belongs."""

    @property
    def is_answered_here(self) -> bool:
        """Return whether its client waits here for its response."""

    def deliver(self, step: ExchangeStep) -> None:
        """Execute a step, in order. Never waits."""


class Forward(NamedTuple):
    """Forward the message unchanged."""

    side: str
    data: bytes
    exchange: StepReceiver | None
    ticket: int


class Substitute(NamedTuple):
    """Send this data to the peer of `side` in place of a message from `side`."""

    side: str
    data: bytes
    exchange: StepReceiver | None
    ticket: int
    raw: bool = False
    """True to send no line end (an incomplete line)."""


class Inject(NamedTuple):
    """Record a frame with `"by":"mcpspy"`, then send it to the peer of `side` as if it came from `side`."""

    side: str
    data: bytes
    exchange: StepReceiver | None = None
    """Exchange of the request that the frame responds to; None for an injected message."""
    stream: str | None = None
    """HTTP stream of the frame; None if the command named none."""
    id: str | None = None
    """Id of an injected request as JSON text, for `Interceptor.injection_failed`."""


class AddNote(NamedTuple):
    kind: str
    fields: Fields
    exchange: StepReceiver | None = None


class Dropped(NamedTuple):
    side: str
    exchange: StepReceiver | None
    ticket: int


class Disconnect(NamedTuple):
    """Close both pipes of the host (stdio), or the connection of the exchange (HTTP)."""

    exchange: StepReceiver | None


class AbortUpstream(NamedTuple):
    """Close the HTTP request to the server after the client got its response (cancellation in 2026-07-28)."""

    exchange: StepReceiver


class HeadDecided(NamedTuple):
    """Continue with these headers of an HTTP head."""

    headers: list[tuple[str, str]]
    exchange: StepReceiver


class Notify(NamedTuple):
    viewer: str | None
    """The viewer to notify; None for all viewers."""
    event: Fields


ExchangeStep: TypeAlias = Forward | Substitute | Inject | Dropped | Disconnect | AbortUpstream | HeadDecided
"""The steps that an HTTP exchange executes itself."""

Step: TypeAlias = ExchangeStep | AddNote | Notify


class Decision(NamedTuple):
    """The decision about a received message.

    The I/O side records the message (with `"to":"mcpspy"` if `to_mcpspy`), then carries out the steps in order.
    """

    ticket: int
    to_mcpspy: bool
    steps: list[Step]
    is_held: bool
    """True if the message is held or delayed: more steps follow later."""

    @property
    def is_untouched(self) -> bool:
        """True if the only step is to forward the original bytes, line end included."""
        return len(self.steps) == 1 and isinstance(self.steps[0], Forward)


class CommandReply(NamedTuple):
    answer: Fields
    steps: list[Step]


class CommandError(Exception):
    """A rejected command, with a reason of one line; the command has had no effect."""


def rule_note(action: str, fields: Fields, exchange: StepReceiver | None = None) -> AddNote:
    """Return the note of an effect, without its empty fields."""
    return AddNote(
        KIND, {"action": action, **{k: v for k, v in fields.items() if v is not None and v != ""}}, exchange
    )


def text_field(name: str, data: bytes, base64_name: str = "sent_b64") -> Fields:
    """Return a field with the text of a message, or with its Base64 under the other name if it is not UTF-8."""
    try:
        return {name: data.decode()}
    except UnicodeDecodeError:
        return {base64_name: b2a_base64(data, newline=False).decode()}
