"""Recognises requests of MCP at any path, by their heads and bodies.

In doubt, a request is none: a token, a client registration or JSON-RPC of another protocol must not be recorded.
Sources: MCP basic/transports, all revisions (a POST accepts JSON, a GET accepts an event stream; `Mcp-Session-Id`,
`MCP-Protocol-Version`; `Mcp-Method` of 2026-07-28).
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum

from mcpspy.core.protocol.http_headers import EVENTS, JSON, SESSION
from mcpspy.core.protocol.mcp_headers import METHOD, VERSION
from mcpspy.core.protocol.message import Notification, Request, read_frame
from mcpspy.core.protocol.oauth import is_well_known
from mcpspy.core.protocol.spec import METHODS
from mcpspy.core.recording.decode import Frame
from mcpspy.core.recording.encode import CLIENT


class DetectionVerdict(Enum):
    """The classification of a request by its head."""

    OTHER = "other"
    MCP = "mcp"
    BODY = "body"
    """The body decides."""
    ANSWER = "answer"
    """The first event of the response decides, because it may be HTTP+SSE (2024-11-05)."""


def by_head(method: str, target: str, headers: Mapping[str, str]) -> DetectionVerdict:
    """Classify a request by method, path and headers (names in any case)."""
    if is_well_known(target):  # Clients request metadata with MCP headers too.
        return DetectionVerdict.OTHER
    if SESSION in headers:
        return DetectionVerdict.MCP
    if method == "POST" and _media_type(headers.get("Content-Type")) == JSON:
        # MCP-Protocol-Version alone does not identify MCP here: client registrations have it too.
        return DetectionVerdict.MCP if METHOD in headers else DetectionVerdict.BODY
    if method == "GET" and _media_type(headers.get("Accept")) == EVENTS:
        return DetectionVerdict.MCP if VERSION in headers else DetectionVerdict.ANSWER
    return DetectionVerdict.OTHER


def by_body(body: bytes) -> bool:
    """Return whether a message in the body is a request or notification of MCP."""
    # Search before parsing: most bodies are not JSON-RPC at all.
    return b'"jsonrpc"' in body and any(
        isinstance(message, Request | Notification) and message.method in METHODS
        for message in read_frame(Frame(0.0, CLIENT, body))
    )


def _media_type(value: str | None) -> str:
    return "" if value is None else value.partition(",")[0].partition(";")[0].strip().lower()
