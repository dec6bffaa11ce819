"""A message that is held: what the session says of it.

Owns reading the events of docs/control.md and the two clocks of a held
message, its age and the time until it goes on by itself. Pure: time is an
argument.
"""

from __future__ import annotations

from binascii import Error, a2b_base64
from typing import Any, NamedTuple


class Held(NamedTuple):
    """A held message."""

    ticket: int
    side: str
    """Who said it."""
    at: float
    """When, in seconds since the start of the session."""
    method: str
    """Of an answer, that of its request; empty if it has none."""
    subject: str
    """Which tool, resource, prompt …"""
    id: str | None
    """JSON text."""
    is_request: bool
    data: bytes
    """What goes on if it is accepted."""
    viewer: str
    """Whose query holds it; empty if a rule does."""
    rule: str
    since: float
    """On our clock."""
    until: float
    """When it goes on by itself, on our clock."""

    @property
    def name(self) -> str:
        """What to call it; as the peer said it."""
        what = f"{self.method} {self.subject}".strip() or "message"
        return what if self.is_request or self.id is None else f"answer to {what}"


def read_held(fields: dict[str, Any], now: float) -> Held | None:
    """Return a held message from what a session says of it now; None if that makes no sense."""
    try:
        data = a2b_base64(fields["b64"]) if "b64" in fields else fields["text"].encode()
        at, age = float(fields["at"]), float(fields.get("age", 0.0))
        since = now - age
        return Held(
            ticket=int(fields["ticket"]),
            side=str(fields["from"]),
            at=at,
            method=str(fields.get("method", "")),
            subject=str(fields.get("subject", "")),
            id=fields.get("id"),
            is_request="id" in fields and _has_method(data),
            data=data,
            viewer=str(fields.get("viewer", "")),
            rule=str(fields.get("rule", "")),
            since=since,
            until=since + float(fields["deadline"]) - at,
        )
    except (KeyError, TypeError, ValueError, AttributeError, Error):
        return None


def _has_method(data: bytes) -> bool:
    from mcpspy.core.protocol.message import loads

    message = loads(data)
    return isinstance(message, dict) and "method" in message
