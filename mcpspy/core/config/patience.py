"""How long hosts wait for an answer before they give up.

Owns the defaults that could be looked up (November 2026), by the name a host
gives itself in `clientInfo`. Whoever is not here is not known, or waits for
good: Claude Code's default is some 28 hours, the Python SDK has none. A person
may have set another time, and some start anew with each progress notification.
"""

from __future__ import annotations

from typing import NamedTuple


class Patience(NamedTuple):
    """What one host does."""

    host: str
    """What people call it."""
    seconds: float
    """From the request on."""
    method: str = ""
    """Of which requests; empty is of all."""


_HOSTS = {
    # Not documented; the default of the TypeScript SDK, and what its users measure:
    # https://github.com/anthropics/claude-code/issues/22542
    "claude-ai": Patience("Claude Desktop", 60),
    # DEFAULT_MCP_TIMEOUT_SECONDS: https://github.com/cline/cline/blob/main/src/shared/mcp.ts
    "Cline": Patience("Cline", 60, "tools/call"),
    # MCP_DEFAULT_TIMEOUT_MSEC:
    # https://github.com/google-gemini/gemini-cli/blob/main/packages/core/src/tools/mcp-client.ts
    "gemini-cli-mcp-client": Patience("Gemini CLI", 600, "tools/call"),
}


def patience(client: str, method: str) -> Patience | None:
    """Return how long a client waits for the answer to such a request; None if that is not known."""
    for name, found in _HOSTS.items():
        # Gemini CLI adds the name of the server to its own.
        if (client == name or client.startswith(f"{name}-")) and found.method in ("", method):
            return found
    return None
