"""Notes of kind `translation`: the host and the server have different eras. Owns their wording.

Written by `io.bridge.translation`, specified in docs/format.md.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

TRANSLATION = "translation"

TRANSLATE = "translate"
"""Action of a note `rule`: the receiver got the message in the form of another era."""


def words(fields: Mapping[str, Any]) -> str:
    """Return what happened: `translating: the host speaks 2025-11-25, the server 2026-07-28`."""
    host, server = fields.get("host"), fields.get("server")
    if fields.get("did") == "begin":
        return f"translating: the host speaks MCP {host}, the server {server}"
    if not fields.get("refused"):
        return f"the host speaks MCP {host}, which has no handshake; mcpspy makes it"
    return f"the server refused MCP {host}; mcpspy asks for the revision that it speaks"
