"""Importer of the MCP Inspector's Network export (2.12): a list of HTTP exchanges."""

from __future__ import annotations

from msgspec import Struct, field

from mcpspy.core.counted import counted
from mcpspy.core.importers.base import ImportedSession, read, timestamp
from mcpspy.core.importers.http import LACKS, ImportedExchange, mcp_sessions
from mcpspy.errors import UsageError

NAME = "Inspector Network export"

LACKS_HERE = [
    "the end of responses (the time of the headers is used), and the time of each event of a stream",
    "messages on the server's own stream",
    *LACKS[1:],
]


class _Stream(Struct):
    """Description of the server's own stream, in place of its body."""

    events: int = field(name="eventCount", default=0)
    closed: str | None = field(name="closedAt", default=None)


class _Entry(Struct):
    timestamp: str
    method: str
    url: str
    request: dict[str, str] = field(name="requestHeaders", default_factory=dict)
    request_body: str | None = field(name="requestBody", default=None)
    status: int | None = field(name="responseStatus", default=None)
    response: dict[str, str] = field(name="responseHeaders", default_factory=dict)
    response_body: str | None = field(name="responseBody", default=None)
    duration: float = 0.0
    error: str | None = None
    stream: _Stream | None = None


def sessions(data: bytes) -> list[ImportedSession]:
    """Return one session per MCP server; raise UsageError if there is none."""
    entries = read(data, list[_Entry], NAME)
    found = mcp_sessions(
        [_exchange(entry) for entry in entries], format="inspector-network", lacks=LACKS_HERE
    )
    if not found:
        raise UsageError(f"{NAME}: none of the {len(entries)} requests posts JSON-RPC")
    if events := sum(entry.stream.events for entry in entries if entry.stream):
        for session in found:
            session.changed.append(f"left out: {counted(events, 'event')} that the Inspector only counted")
    return found


def _exchange(entry: _Entry) -> ImportedExchange:
    at = timestamp(entry.timestamp, NAME)
    end = at + max(0.0, entry.duration) / 1000
    closed = entry.stream.closed if entry.stream else None
    return ImportedExchange(
        at=at,
        head_at=end,
        end_at=end if closed is None else max(end, timestamp(closed, NAME)),
        is_open=entry.stream is not None and closed is None,
        method=entry.method.upper(),
        url=entry.url,
        request=list(entry.request.items()),
        request_body=_bytes(entry.request_body),
        status=entry.status,
        response=list(entry.response.items()),
        response_body=_bytes(entry.response_body) if entry.stream is None else b"",
        error=entry.error,
    )


def _bytes(text: str | None) -> bytes | None:
    return None if text is None else text.encode("utf-8", "replace")
