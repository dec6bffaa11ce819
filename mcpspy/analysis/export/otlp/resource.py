"""Whose telemetry it is, and how a value is written in OTLP/JSON.

Owns that a session reports as two services: the client what it asked for, the
server what it asked for. So either looks in a viewer as if it were traced itself.
"""

from __future__ import annotations

from typing import Any

from mcpspy import __version__
from mcpspy.core.protocol.peers import Peer
from mcpspy.core.protocol.spec import CLIENT
from mcpspy.core.recording.decode import Header

Value = str | int | bool | list[str]

_LARGEST = 1 << 63


def attributes(values: dict[str, Value | None]) -> list[dict[str, Any]]:
    """Return attributes as OTLP/JSON has them; what is None is left out."""
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
    """Return the instrumentation scope."""
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
