"""Client and server of a session: names, capabilities and protocol revision.

The sources are `initialize` and its result (until 2025-11-25), `server/discover`, and the `_meta` of each
request (2026-07-28).
"""

from __future__ import annotations

from typing import Any, NamedTuple

from msgspec import Raw

from mcpspy.core.protocol.message import Failure, Request, Result, loads, meta_raw
from mcpspy.core.protocol.spec import META, MODERN

HANDSHAKE_METHODS = ("initialize", "server/discover")


class Peer(NamedTuple):
    name: str
    version: str

    def __str__(self) -> str:
        return f"{self.name} {self.version}".strip()


class Peers:
    """Descriptions of the client and the server, collected from their messages."""

    def __init__(self) -> None:
        self.client: Peer | None = None
        self.server: Peer | None = None
        self.revision: str | None = None
        """Negotiated revision; until the server responds, the revision that the client requested."""
        self.client_capabilities: dict[str, Any] = {}
        self.server_capabilities: dict[str, Any] = {}

    @property
    def is_modern(self) -> bool:
        return self.revision is not None and self.revision >= MODERN

    def add_request(self, message: Request) -> None:
        """Read the description of the client in a request."""
        meta = message.body.meta
        if (self.client is None or self.revision is None) and bytes(meta):
            self.client = self.client or _peer(meta_raw(meta, META + "clientInfo"))
            if self.revision is None and (version := message.revision) is not None:
                self.revision = version
                self.client_capabilities = _dict(loads(meta_raw(meta, META + "clientCapabilities")))
        if message.method == "initialize" and isinstance(params := message.params, dict):
            self.client = _peer(params.get("clientInfo")) or self.client
            self.client_capabilities = _dict(params.get("capabilities"))
            if isinstance(version := params.get("protocolVersion"), str):
                self.revision = version

    def add_response(self, message: Result | Failure, method: str) -> None:
        """Read the description of the server in a response to this method."""
        if isinstance(message, Failure):
            if method in HANDSHAKE_METHODS:
                self.revision = None  # The server rejected it: the next request names another one.
            return
        if method in HANDSHAKE_METHODS and isinstance(result := message.result, dict):
            self.server = _peer(result.get("serverInfo")) or self.server
            self.server_capabilities = _dict(result.get("capabilities"))
            if method == "initialize" and isinstance(version := result.get("protocolVersion"), str):
                self.revision = version
        if self.server is None and bytes(message.body.meta):
            self.server = _peer(meta_raw(message.body.meta, META + "serverInfo"))


def _peer(info: object) -> Peer | None:
    value = loads(info) if isinstance(info, Raw) else info
    if not isinstance(value, dict) or not isinstance(name := value.get("name"), str) or not name:
        return None
    version = value.get("version")
    return Peer(name, version if isinstance(version, str) else "")


def _dict(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}
