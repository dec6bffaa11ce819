"""What a shell has to do for the Desk: the words between the two, and those of notes.

Owns no behaviour; which notes there are is in docs/format.md. `lane` is the shell's own: where a message came from, given to
`Desk.take` and handed back with every step that is about it.
"""

from __future__ import annotations

from binascii import b2a_base64
from typing import Any, NamedTuple, TypeAlias

Fields: TypeAlias = dict[str, Any]

KIND = "rule"
"""The kind of these notes, whoever asked for the effect."""


class Forward(NamedTuple):
    """The message goes on as it came."""

    side: str
    data: bytes
    lane: object
    ticket: int


class Substitute(NamedTuple):
    """In place of a message, this goes to the peer of `side`, in the name of `side`."""

    side: str
    data: bytes
    """Without a line end."""
    lane: object
    ticket: int
    raw: bool = False
    """Whether no line end follows: half a line."""


class Inject(NamedTuple):
    """We say something in the name of `side`: a frame `by` mcpspy is recorded, then sent to the peer of `side`."""

    side: str
    data: bytes
    lane: object = None
    """The exchange it answers or belongs to; None for an injected message."""
    stream: str | None = None
    """HTTP: the stream it belongs to; None if the order that asked for it named none."""
    id: str | None = None
    """JSON text of the id, if it is a request of ours: for `Desk.failed`."""


class AddNote(NamedTuple):
    """A note in the recording."""

    kind: str
    fields: Fields
    lane: object = None
    """HTTP: the exchange it is about."""


class Dropped(NamedTuple):
    """The message will not go on, and nothing in its place."""

    side: str
    lane: object
    ticket: int


class Disconnect(NamedTuple):
    """Disconnect. Stdio: both pipes of the host; HTTP: the exchange's connection."""

    lane: object


class AbortUpstream(NamedTuple):
    """HTTP: end the request to the server; the client has its answer (cancellation in 2026-07-28)."""

    lane: object


class Notify(NamedTuple):
    """An event for a viewer."""

    viewer: str | None
    """Which one; None for all of them."""
    event: Fields


Step: TypeAlias = Forward | Substitute | Inject | AddNote | Dropped | Disconnect | AbortUpstream | Notify


class Decision(NamedTuple):
    """What becomes of a message that has just come.

    The shell records the message (`"to":"mcpspy"` if `to_mcpspy`), then takes the
    steps in their order.
    """

    ticket: int
    to_mcpspy: bool
    steps: list[Step]
    is_held: bool
    """Whether more will follow: it is held, or delayed."""

    @property
    def is_untouched(self) -> bool:
        """Whether it goes on as it came, and that is all: its own bytes, line end included."""
        return len(self.steps) == 1 and isinstance(self.steps[0], Forward)


class CommandReply(NamedTuple):
    """The answer to an order of a viewer, and what is to be done for it."""

    answer: Fields
    steps: list[Step]


class CommandError(Exception):
    """What is wrong with an order, in one line. Nothing has changed."""


def remark(action: str, fields: Fields, lane: object = None) -> AddNote:
    """Return the note of an effect; what is empty is left out."""
    return AddNote(
        KIND, {"action": action, **{k: v for k, v in fields.items() if v is not None and v != ""}}, lane
    )


def said(name: str, data: bytes, encoded: str = "sent_b64") -> Fields:
    """Return a message's own text under a name; in Base64, under another, if it is not UTF-8."""
    try:
        return {name: data.decode()}
    except UnicodeDecodeError:
        return {encoded: b2a_base64(data, newline=False).decode()}
