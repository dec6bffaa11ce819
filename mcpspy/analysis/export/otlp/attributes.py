"""Span and resource attributes of OpenTelemetry's semantic conventions (semantic-conventions-genai,
docs/gen-ai/mcp.md, status Development), in OTLP/JSON.

Opt-in attributes (arguments and results) are left out. A session reports as two services: client and server
each report their own requests, as if each were instrumented itself.
"""

from __future__ import annotations

from typing import Any, NamedTuple
from urllib.parse import urlsplit

from mcpspy import __version__
from mcpspy.core.protocol.message import Failure, Notification, Request, loads
from mcpspy.core.protocol.peers import Peer
from mcpspy.core.protocol.spec import CLIENT
from mcpspy.core.recording.decode import Header
from mcpspy.core.session.exchange import Exchange, State

Value = str | int | bool | list[str]

_LARGEST = 1 << 63


def attributes(values: dict[str, Value | None]) -> list[dict[str, Any]]:
    """Return attributes in OTLP/JSON, without those that are None."""
    return [{"key": key, "value": _value(value)} for key, value in values.items() if value is not None]


def resource(header: Header, party: Peer | None, side: str) -> dict[str, Any]:
    """Return the resource of one side (semantic conventions, resource/service)."""
    name = party.name if party is not None else side if side == CLIENT else header.name or side
    version = party.version if party is not None else None
    return {
        "attributes": attributes(
            {
                "service.name": name,
                "service.version": version or None,
                "mcpspy.recording.id": header.id,
                "mcpspy.recording.name": header.name or None,
            }
        )
    }


def scope() -> dict[str, str]:
    return {"name": "mcpspy", "version": __version__}


def _value(value: Value) -> dict[str, Any]:
    if isinstance(value, bool):
        return {"boolValue": value}
    if isinstance(value, int):
        # 64-bit integers are texts in the JSON of Protocol Buffers.
        return {"intValue": str(value)} if abs(value) < _LARGEST else {"stringValue": str(value)}
    if isinstance(value, list):
        return {"arrayValue": {"values": [_value(each) for each in value]}}
    return {"stringValue": value}


_RESOURCES = (
    "resources/read",
    "resources/subscribe",
    "resources/unsubscribe",
    "notifications/resources/updated",
)

_ERRORS = {
    State.TOOL_ERROR: "tool_error",
    State.CANCELLED: "cancelled",
    State.UNANSWERED: "no_answer",
    State.REFUSED: "refused",
}
"""`error.type` of errors without a code. The convention defines the first and allows custom ones."""


class StreamAttributes(NamedTuple):
    """Attributes of all messages in one stream."""

    revision: str | None
    session: str | None
    """`Mcp-Session-Id`."""


def span_name(message: Request | Notification) -> str:
    """Return `{mcp.method.name} {target}`; only tools and prompts are targets, because of the cardinality."""
    if message.method in ("tools/call", "prompts/get") and message.subject:
        return f"{message.method} {message.subject}"
    return message.method


def said_of(message: Request | Notification, of: StreamAttributes) -> dict[str, Value | None]:
    method, subject = message.method, message.subject
    revision = message.revision if isinstance(message, Request) else None
    return {
        "mcp.method.name": method,
        "mcp.protocol.version": revision or of.revision,
        "mcp.session.id": of.session,
        "gen_ai.operation.name": "execute_tool" if method == "tools/call" else None,
        "gen_ai.tool.name": subject if method == "tools/call" else None,
        "gen_ai.prompt.name": subject if method == "prompts/get" else None,
        "mcp.resource.uri": subject if method in _RESOURCES else None,
        "jsonrpc.request.id": _id(message.id) if isinstance(message, Request) else None,
    }


def carried_by(header: Header, side: str) -> dict[str, Value | None]:
    """Return transport attributes. The address is the server's, so only spans of the client have it."""
    if header.transport != "http":
        return {"network.transport": "pipe"}
    host = port = None
    if side == CLIENT:
        try:
            parts = urlsplit(header.upstream or "")
            host, port = parts.hostname, parts.port or {"http": 80, "https": 443}.get(parts.scheme)
        except ValueError:  # An address of somebody else's making.
            host = None
    return {
        "network.transport": "tcp",
        "network.protocol.name": "http",
        "server.address": host,
        "server.port": port if host else None,
    }


def error_of(exchange: Exchange) -> tuple[dict[str, Value | None], str | None]:
    """Return the attributes of an error and its message; ({}, None) if there is none."""
    answer = exchange.answer
    if isinstance(answer, Failure):
        code = "_OTHER" if answer.code is None else str(answer.code)
        status = None if answer.code is None else code
        return {"error.type": code, "rpc.response.status_code": status}, answer.text
    kind = _ERRORS.get(exchange.state)
    if kind is None:
        return {}, None
    return {"error.type": kind}, "; ".join(exchange.flaws) if exchange.state is State.REFUSED else ""


def _id(text: str) -> str | None:
    """Return an id as text: `a` for `"a"`; None for null."""
    value = loads(text.encode("utf-8", "surrogatepass"))
    return value if isinstance(value, str) else None if value is None else text
