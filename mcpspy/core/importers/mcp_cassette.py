"""Importer of mcp-cassette cassettes (0.4): one JSON document, format 1 to 3.

The tool's default redaction treats `progressToken` as a secret; redacted values stay as they are.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import msgspec
from msgspec import Raw, Struct

from mcpspy.core.counted import counted
from mcpspy.core.importers.base import ImportedSession, RecordingLines, compact, read, timestamp
from mcpspy.core.recording.encode import CLIENT, SERVER
from mcpspy.errors import UsageError

if TYPE_CHECKING:
    from mcpspy.core.recording.encode import Value

NAME = "mcp-cassette"

NEWEST = 3

LACKS = [
    "the server's command, stderr and exit status",
    "the start time (the end minus the duration is used)",
    "the original bytes of messages (they were parsed and re-encoded)",
]

LACKS_HTTP = ["HTTP status, headers, and exchanges without a message"]


class _Message(Struct):
    sender: Literal["client", "server"]
    t_offset_ms: int
    payload: Raw
    redacted: bool = False
    exchange: int | None = None
    channel: Literal["post", "get"] | None = None


class _Server(Struct):
    name: str = ""


class _Cassette(Struct):
    messages: list[_Message]
    recorded_at: str
    transport: Literal["stdio", "http"] = "stdio"
    server_url: str | None = None
    server_info: _Server | None = None


class _Version(Struct):
    format_version: Any = None


def sessions(data: bytes) -> list[ImportedSession]:
    """Return the one session of the cassette; raise UsageError."""
    version = read(data, _Version, NAME).format_version
    if isinstance(version, bool) or not isinstance(version, int) or not 1 <= version <= NEWEST:
        raise UsageError(f"unsupported {NAME} format {str(version)[:20]!r}", f"mcpspy reads 1 to {NEWEST}")
    cassette = read(data, _Cassette, f"{NAME} format {version}")
    http = cassette.transport == "http"
    lines = RecordingLines()
    for message in cassette.messages:
        side = CLIENT if message.sender == "client" else SERVER
        lines.message(
            message.t_offset_ms / 1000,
            side,
            _message_data(message.payload),
            **_http_fields(message, http=http),
        )
    offsets = [message.t_offset_ms / 1000 for message in cassette.messages]
    masked = sum(message.redacted for message in cassette.messages)
    return [
        lines.session(
            format=NAME,
            name=cassette.server_info.name if cassette.server_info else "",
            transport=cassette.transport,
            upstream=cassette.server_url if http else None,
            started=timestamp(cassette.recorded_at, NAME) - (max(offsets) - offsets[0] if offsets else 0.0),
            lacks=LACKS + LACKS_HTTP if http else LACKS,
            changed=[f"already redacted in the file: {counted(masked, 'message')}"] if masked else [],
        )
    ]


def _message_data(payload: Raw) -> bytes:
    data = compact(payload)
    # A line that was not a JSON object is a string in the file.
    return msgspec.json.decode(data, type=str).encode("utf-8", "replace") if data.startswith(b'"') else data


def _http_fields(message: _Message, *, http: bool) -> dict[str, Value]:
    if not http:
        return {}
    return {"stream": "1"} if message.exchange is None else {"stream": "1", "http": message.exchange + 1}
