"""The HTTP headers in which a request of 2026-07-28 says again what is in its body.

Owns their names, values and encoding, for the side that sends them and the side that checks
them. Source: basic/transports/streamable-http, 2026-07-28 (`MCP-Protocol-Version`,
`Mcp-Method`, `Mcp-Name`). Refuses `Mcp-Param-*`: those follow from a tool's schema, and are `mirrored`'s.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Mapping

from mcpspy.core.message import Request

VERSION, METHOD, NAME = "MCP-Protocol-Version", "Mcp-Method", "Mcp-Name"

_NAMED = frozenset("tools/call prompts/get resources/read tasks/get tasks/update tasks/cancel".split())
"""Methods whose requests name what they are about."""

_PLAIN = re.compile(r"[!-~](?:[ -~]*[!-~])?")
_SENTINEL = re.compile(r"=\?base64\?([A-Za-z0-9+/=]*)\?=")


def headers(request: Request) -> dict[str, str]:
    """Return the headers that belong to a request; values in their encoding."""
    said = {METHOD: encoded(request.method)}
    if request.method in _NAMED and request.subject is not None:
        said[NAME] = encoded(request.subject)
    if (version := request.revision) is not None:
        said[VERSION] = version
    return said


def mismatch(given: Mapping[str, str], request: Request) -> str | None:
    """Say which header is not what the body says; None if all are. `given` ignores the case of names."""
    for name, value in headers(request).items():
        sent = given.get(name)
        if sent is None:
            return f"{name} is missing"
        if decoded(sent) != decoded(value):
            return f"{name} is {sent}, but the body says {value}"
    return None


def encoded(value: str) -> str:
    """Return a value as a header may carry it: what is no plain ASCII goes as base64 of its UTF-8."""
    if _PLAIN.fullmatch(value) and not _SENTINEL.fullmatch(value):
        return value
    return f"=?base64?{base64.b64encode(value.encode('utf-8', 'replace')).decode()}?="


def decoded(value: str) -> str:
    """Return the value a header carries; one that only looks encoded stays as it is."""
    found = _SENTINEL.fullmatch(value.strip())
    if found is None:
        return value.strip()
    try:
        return base64.b64decode(found[1], validate=True).decode()
    except (binascii.Error, ValueError):
        return value.strip()
