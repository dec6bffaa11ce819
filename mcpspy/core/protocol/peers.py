"""Client and server of a session: names, capabilities and protocol revision.

The sources are `initialize` and its result (until 2025-11-25), `server/discover`, and the `_meta` of each
request (2026-07-28).
"""

from __future__ import annotations

from typing import Any, NamedTuple

from msgspec import Raw

from mcpspy.core.protocol.message import Failure, Request, Result, loads, meta_raw
from mcpspy.core.protocol.spec import CLIENT, META, MODERN

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
        self.agreed_revision: str | None = None
        """The latest revision that both sides accepted."""
        self._requested: object = None
        self.client_capabilities: dict[str, Any] = {}
        self.server_capabilities: dict[str, Any] = {}

    @property
    def is_modern(self) -> bool:
        return self.revision is not None and self.revision >= MODERN

    @property
    def is_agreed(self) -> bool:
        """Return True if both sides have accepted the current revision."""
        return self.revision is not None and self.revision == self.agreed_revision

    @property
    def revision_text(self) -> str:
        """The revision that both sides accepted; else the last one that a side proposed, and what became of it."""
        if self.agreed_revision is not None or self.revision is None:
            return self.agreed_revision or ""
        if self.revision != self._requested:
            return f"{self.revision} (not accepted by the client)"
        return f"{self.revision} (no answer{'' if self.is_modern else ' to initialize'})"

    def accept_revision(self) -> None:
        """Accept the revision that the server named: the client continues with it."""
        self.agreed_revision = self.revision

    def take_client(self, other: Peers) -> None:
        """Take the description of the client from another conversation, whose requests have the same one."""
        self.client, self.revision, self._requested = other.client, other.revision, other._requested
        self.client_capabilities = other.client_capabilities

    def add_request(self, message: Request) -> None:
        """Read the description of the client in a request."""
        meta = message.meta
        if (self.client is None or self.revision is None) and meta:
            self.client = self.client or peer_of(meta_raw(meta, META + "clientInfo"))
            if self.revision is None and (version := message.revision) is not None:
                self.revision = self._requested = version
                self.client_capabilities = _dict(loads(meta_raw(meta, META + "clientCapabilities")))
        if message.method == "initialize" and isinstance(params := message.params, dict):
            self.client = peer_of(params.get("clientInfo")) or self.client
            self.client_capabilities = _dict(params.get("capabilities"))
            if isinstance(version := params.get("protocolVersion"), str):
                self.revision = self._requested = version
        elif (
            message.side == CLIENT
            and message.method != "ping"
            and self.revision not in (None, self._requested)
        ):
            self.accept_revision()

    def add_response(self, message: Result | Failure, method: str) -> None:
        """Read the description of the server in a response to this method."""
        if isinstance(message, Failure):
            if method in HANDSHAKE_METHODS:
                self.revision = None  # The server rejected it: the next request names another one.
            return
        if method in HANDSHAKE_METHODS and isinstance(result := message.result, dict):
            self.server = peer_of(result.get("serverInfo")) or self.server
            self.server_capabilities = _dict(result.get("capabilities"))
            if method == "initialize" and isinstance(version := result.get("protocolVersion"), str):
                self.revision = version
        if self.revision == self._requested and (method in HANDSHAKE_METHODS or self.is_modern):
            self.accept_revision()
        if self.server is None and message.meta:
            self.server = peer_of(meta_raw(message.meta, META + "serverInfo"))


def client_of(message: Request) -> Peer | None:
    """Return the client that a request names: in `initialize`, or in `_meta` (2026-07-28)."""
    if message.method == "initialize":
        return peer_of(params.get("clientInfo")) if isinstance(params := message.params, dict) else None
    meta = message.meta
    return peer_of(meta_raw(meta, META + "clientInfo")) if meta else None


def peer_of(info: object) -> Peer | None:
    """Return the name and version in a `clientInfo` or `serverInfo`; None if it has no name."""
    value = loads(info) if isinstance(info, Raw) else info
    if not isinstance(value, dict) or not isinstance(name := value.get("name"), str) or not name:
        return None
    version = value.get("version")
    return Peer(name, version if isinstance(version, str) else "")


def _dict(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}
