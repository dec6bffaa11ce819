"""Which of all requests are MCP's, by what they say of themselves.

Owns the choice between recording and looking away, so it errs towards looking
away: a token, a client registration, another protocol's JSON-RPC is nothing of
ours. Sources: MCP basic/transports, all revisions (a POST accepts JSON, GET an
event stream; `Mcp-Session-Id`, `MCP-Protocol-Version`; `Mcp-Method` of 2026-07-28).
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum

from mcpspy.core.protocol.http_headers import is_metadata
from mcpspy.core.protocol.message import Notification, Request, read_frame
from mcpspy.core.protocol.spec import METHODS
from mcpspy.core.recording.decode import Frame
from mcpspy.core.recording.encode import CLIENT

SESSION, METHOD, REVISION = "Mcp-Session-Id", "Mcp-Method", "MCP-Protocol-Version"


class Verdict(Enum):
    """What a request's head says about it."""

    OTHER = "other"
    MCP = "mcp"
    BODY = "body"
    """Its body decides."""
    ANSWER = "answer"
    """The first event of its answer decides: it may be HTTP+SSE of 2024-11-05."""


def by_head(method: str, target: str, headers: Mapping[str, str]) -> Verdict:
    """Judge by method, path and headers (names in any case)."""
    if is_metadata(target):  # A client asks for them with the headers of MCP, too.
        return Verdict.OTHER
    if SESSION in headers:
        return Verdict.MCP
    if method == "POST" and _media_type(headers.get("Content-Type")) == "application/json":
        # MCP-Protocol-Version alone says nothing here: a client registers itself with it.
        return Verdict.MCP if METHOD in headers else Verdict.BODY
    if method == "GET" and _media_type(headers.get("Accept")) == "text/event-stream":
        return Verdict.MCP if REVISION in headers else Verdict.ANSWER
    return Verdict.OTHER


def by_body(body: bytes) -> bool:
    """Whether one of the messages in a body is a request or notification that MCP has."""
    # Searched before it is read: most bodies are not JSON-RPC at all.
    return b'"jsonrpc"' in body and any(
        isinstance(message, Request | Notification) and message.method in METHODS
        for message in read_frame(Frame(0.0, CLIENT, body))
    )


def _media_type(value: str | None) -> str:
    return "" if value is None else value.partition(",")[0].partition(";")[0].strip().lower()
