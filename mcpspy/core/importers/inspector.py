"""Importer of the MCP Inspector's Protocol export (2.x): a list of messages with their responses.

Older Inspectors do not record the sender of a message; it is inferred from the method.
"""

from __future__ import annotations

from typing import Literal

import msgspec
from msgspec import Raw, Struct

from mcpspy.core.counted import counted
from mcpspy.core.importers.base import ImportedSession, RecordingLines, compact, read, timestamp
from mcpspy.core.protocol.spec import METHODS
from mcpspy.core.recording.encode import CLIENT, SERVER

NAME = "Inspector Protocol export"

MAX_MESSAGES = 1000
"""Number of messages that the Inspector keeps; it drops older ones."""

LACKS = [
    "the transport (stdio is assumed) and the server's command or URL",
    "the server's stderr and exit status",
    "the original bytes of messages (they were parsed and re-encoded)",
]


class _Entry(Struct):
    timestamp: str
    direction: Literal["request", "response", "notification"]
    message: Raw
    origin: Literal["client", "server"] | None = None
    response: Raw = Raw(b"null")
    duration: float = 0.0


class _Method(Struct):
    method: str = ""


_method = msgspec.json.Decoder(_Method).decode


def sessions(data: bytes) -> list[ImportedSession]:
    """Return the one session of the export; raise UsageError."""
    entries = read(data, list[_Entry], NAME)
    lines = RecordingLines(by_time=True)
    guessed = 0
    for entry in entries:
        at = timestamp(entry.timestamp, NAME)
        side = entry.origin or _sender(entry)
        guessed += entry.origin is None
        lines.message(at, side, compact(entry.message))
        if (answer := compact(entry.response)) != b"null":
            lines.message(at + max(0.0, entry.duration) / 1000, SERVER if side == CLIENT else CLIENT, answer)
    changes = [
        f"sender inferred from the method: {counted(guessed, 'message')}" if guessed else "",
        f"earlier messages may be missing: the Inspector keeps only {MAX_MESSAGES}"
        if len(entries) >= MAX_MESSAGES
        else "",
    ]
    return [lines.session(format="inspector", lacks=LACKS, changed=[line for line in changes if line])]


def _sender(entry: _Entry) -> str:
    """Return the likely sender; a response without its request nearly always comes from the server."""
    if entry.direction == "response":
        return SERVER
    try:
        known = METHODS.get(_method(entry.message).method)
    except (msgspec.DecodeError, UnicodeError):
        known = None
    if known is None:
        return CLIENT if entry.direction == "request" else SERVER
    if known.sender in (CLIENT, SERVER):
        return known.sender
    return SERVER if known.name == "notifications/progress" else CLIENT
