"""A handshake that nobody asked for: a session begun as a client began another.

Owns the id it goes under, which no client has, so that its answer is told from theirs.
"""

from __future__ import annotations

from mcpspy.core.jsontools import one_line, replaced

OURS = '"mcpspy-initialize"'
"""JSON text of the id."""

INITIALIZED = b'{"jsonrpc":"2.0","method":"notifications/initialized"}'


def under_our_id(initialize: bytes) -> bytes:
    """Return a client's `initialize` under our id."""
    return replaced(one_line(initialize), ("id",), OURS.encode())
