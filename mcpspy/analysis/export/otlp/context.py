"""Which trace a span belongs to, and its own number there.

Owns the numbers: what a peer says in `_meta.traceparent` (W3C Trace Context;
MCP's SEP-414 has the key), else ones made of the recording's id, so that the
same recording always has the same spans and may be sent twice.
"""

from __future__ import annotations

import re
from hashlib import blake2b
from typing import NamedTuple

from mcpspy.core.protocol.message import Notification, Request, decoded, meta_raw
from mcpspy.core.recording.decode import Header

_TRACEPARENT = re.compile(
    r"(?!ff)([0-9a-f]{2})-(?!0{32})([0-9a-f]{32})-(?!0{16})([0-9a-f]{16})-([0-9a-f]{2})(-.*)?"
)

SAMPLED = 0x01
REMOTE = 0x300
"""That it is known whether the parent is in another process, and that it is (trace.proto, SpanFlags)."""


class Context(NamedTuple):
    """Where a span hangs."""

    trace: str
    """32 hex digits."""
    parent: str = ""
    """The parent's 16 hex digits; empty if it has none."""
    flags: int = SAMPLED
    state: str = ""
    """`tracestate`, as it came."""


def own_trace(header: Header) -> str:
    """Return the trace of whatever in a session belongs to no other."""
    return _digits(header, "trace", 16)


def span_id(header: Header, what: str, number: int) -> str:
    """Return the number of a span: `what` is the kind of thing, `number` which of them."""
    return _digits(header, f"{what} {number}", 8)


def said_context(message: Request | Notification) -> Context | None:
    """Return the context that a message brings; None if it brings none that is valid."""
    meta = message.body.meta
    said = decoded(meta_raw(meta, "traceparent")) if bytes(meta) else None
    found = _TRACEPARENT.fullmatch(said) if isinstance(said, str) else None
    if found is None or (found[1] == "00" and found[5]):  # Only later versions may say more.
        return None
    state = decoded(meta_raw(meta, "tracestate"))
    return Context(
        found[2], found[3], int(found[4], 16) & 0xFF | REMOTE, state if isinstance(state, str) else ""
    )


def _digits(header: Header, what: str, size: int) -> str:
    text = f"{header.id} {header.started} {what}".encode("utf-8", "surrogatepass")
    return blake2b(text, digest_size=size, person=b"mcpspy otlp").hexdigest()
