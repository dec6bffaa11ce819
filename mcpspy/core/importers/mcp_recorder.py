"""Importer of mcp-recorder cassettes (0.5): a JSON document of requests and responses, format 1.

A cassette has the duration of each exchange but not its start, so the exchanges are placed one after the other.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import msgspec
from msgspec import Raw, Struct

from mcpspy.core.counted import counted
from mcpspy.core.importers.base import ImportedSession, RecordingLines, compact, read, timestamp, words
from mcpspy.core.recording.encode import CLIENT, SERVER
from mcpspy.errors import UsageError

if TYPE_CHECKING:
    from mcpspy.core.recording.encode import Value

NAME = "mcp-recorder"

_STDIO = "stdio://"

MASK = "[REDACTED]"

LACKS = [
    "the start time of each exchange (they are placed one after the other, in the order in which they ended)",
    "notifications and requests of the server, and all but the first event of an event stream",
    "the original bytes of messages (they were parsed and re-encoded)",
]

LACKS_STDIO = ["the server's stderr and exit status"]

LACKS_HTTP = ["headers and sessions (all exchanges are one stream)"]


class _Interaction(Struct):
    type: Literal["jsonrpc_request", "notification", "lifecycle"]
    request: Raw = Raw(b"null")
    response: Raw = Raw(b"null")
    response_status: int = 200
    latency_ms: int = 0


class _Metadata(Struct):
    recorded_at: str
    server_url: str = ""
    transport_type: str | None = None
    server_info: dict[str, Any] | None = None


class _Cassette(Struct):
    metadata: _Metadata
    interactions: list[_Interaction]


class _Version(Struct):
    version: Any = None


class _Method(Struct):
    method: str | None = None


def sessions(data: bytes) -> list[ImportedSession]:
    """Return the one session of the cassette; raise UsageError."""
    version = str(read(data, _Version, NAME).version)[:20]
    if version.partition(".")[0] != "1":
        raise UsageError(f"unsupported {NAME} format {version!r}", "mcpspy reads 1")
    cassette = read(data, _Cassette, f"{NAME} format {version}")
    metadata = cassette.metadata
    stdio = metadata.transport_type == "stdio" or metadata.server_url.startswith("stdio:")
    hidden = stdio and MASK in metadata.server_url
    lines = RecordingLines()
    at = 0.0
    empty = refused = unanswered = 0
    for number, interaction in enumerate(cassette.interactions, 1):
        http_fields: dict[str, Value] = {} if stdio else {"stream": "1", "http": number}
        request, response = _message_data(interaction.request), _message_data(interaction.response)
        empty += not request
        refused += interaction.response_status >= 400
        unanswered += interaction.type == "jsonrpc_request" and not _is_answer(response)
        lines.message(at, CLIENT, request, **http_fields)
        at += max(0, interaction.latency_ms) / 1000
        lines.message(at, SERVER, response, **http_fields)
    changes = [
        f"left out: {counted(empty, 'exchange')} without a message (GET, DELETE)" if empty else "",
        f"left out: HTTP status 400 or above, {counted(refused, 'time')}" if refused else "",
        f"without a response in the file: {counted(unanswered, 'request')}" if unanswered else "",
        "left out: the server's command, which is redacted in the file" if hidden else "",
    ]
    name = metadata.server_info.get("name") if metadata.server_info else None
    return [
        lines.session(
            format=NAME,
            name=name if isinstance(name, str) else "",
            transport="stdio" if stdio else "http",
            command=words(metadata.server_url.removeprefix(_STDIO)) if stdio and not hidden else None,
            upstream=None if stdio else metadata.server_url,
            started=timestamp(metadata.recorded_at, NAME),
            lacks=LACKS + (LACKS_STDIO if stdio else LACKS_HTTP),
            changed=[line for line in changes if line],
        )
    ]


def _message_data(message: Raw) -> bytes:
    data = compact(message)
    return b"" if data == b"null" else data


def _is_answer(data: bytes) -> bool:
    """Return True for a response; the first event of a stream may also be a notification."""
    try:
        return bool(data) and msgspec.json.decode(data, type=_Method).method is None
    except (msgspec.DecodeError, UnicodeDecodeError):
        return False
