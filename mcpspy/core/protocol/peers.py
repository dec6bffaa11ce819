"""Who speaks, and in which revision.

Owns the introductions of every era: `initialize` and its result (until
2025-11-25), `server/discover` and what each request says of itself in `_meta`
(2026-07-28).
"""

from __future__ import annotations

from typing import Any, NamedTuple

from msgspec import Raw

from mcpspy.core.protocol.message import Failure, Request, Result, loads, meta_raw
from mcpspy.core.protocol.spec import META, MODERN

INTRODUCTIONS = ("initialize", "server/discover")


class Peer(NamedTuple):
    """A client or a server, as it introduced itself."""

    name: str
    version: str

    def __str__(self) -> str:
        return f"{self.name} {self.version}".strip()


class Peers:
    """What the two have said of themselves so far."""

    def __init__(self) -> None:
        self.client: Peer | None = None
        self.server: Peer | None = None
        self.revision: str | None = None
        """The revision in use; until the server has answered, the one the client asked for."""
        self.client_capabilities: dict[str, Any] = {}
        self.server_capabilities: dict[str, Any] = {}

    @property
    def is_modern(self) -> bool:
        """Whether it speaks a revision without a handshake."""
        return self.revision is not None and self.revision >= MODERN

    def hear_request(self, message: Request) -> None:
        """Take what a request says of its sender."""
        meta = message.body.meta
        if (self.client is None or self.revision is None) and bytes(meta):
            self.client = self.client or _party(meta_raw(meta, META + "clientInfo"))
            if self.revision is None and (version := message.revision) is not None:
                self.revision = version
                self.client_capabilities = _dict(loads(meta_raw(meta, META + "clientCapabilities")))
        if message.method == "initialize" and isinstance(params := message.params, dict):
            self.client = _party(params.get("clientInfo")) or self.client
            self.client_capabilities = _dict(params.get("capabilities"))
            if isinstance(version := params.get("protocolVersion"), str):
                self.revision = version

    def hear_answer(self, message: Result | Failure, method: str) -> None:
        """Take what the answer to a request of this method says of its sender."""
        if isinstance(message, Failure):
            if method in INTRODUCTIONS:
                self.revision = None  # What was asked for was refused: the next request says it anew.
            return
        if method in INTRODUCTIONS and isinstance(result := message.result, dict):
            self.server = _party(result.get("serverInfo")) or self.server
            self.server_capabilities = _dict(result.get("capabilities"))
            if method == "initialize" and isinstance(version := result.get("protocolVersion"), str):
                self.revision = version
        if self.server is None and bytes(message.body.meta):
            self.server = _party(meta_raw(message.body.meta, META + "serverInfo"))


def _party(info: object) -> Peer | None:
    value = loads(info) if isinstance(info, Raw) else info
    if not isinstance(value, dict) or not isinstance(name := value.get("name"), str) or not name:
        return None
    version = value.get("version")
    return Peer(name, version if isinstance(version, str) else "")


def _dict(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}
