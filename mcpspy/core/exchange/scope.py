"""The surroundings of exchanges over HTTP: the sessions, and the choice of messages to decide on."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from mcpspy.core.exchange.heads import RequestHead
    from mcpspy.core.protocol.http_headers import Headers, Upstream
    from mcpspy.core.protocol.mcp_headers import ToolParamHeaders
    from mcpspy.core.protocol.oauth import OAuthTracker


class Streams(Protocol):
    """The sessions of a server, and the addresses that belong to them."""

    def has_path(self, target: str) -> bool: ...
    def is_endpoint(self, target: str) -> bool: ...
    def is_address(self, target: str) -> bool: ...
    def of(self, session: str | None, target: str, number: int) -> str: ...
    def bind(self, session: str, stream: str) -> None: ...
    def bind_address(self, target: str, stream: str) -> None: ...
    def end(self, session: str) -> None: ...
    def end_address(self, target: str) -> None: ...
    def add_endpoint(self, path: str) -> None: ...


class Scope(Protocol):
    """The surroundings that the exchanges with one server share."""

    upstream: Upstream
    oauth: OAuthTracker
    max_body: int

    @property
    def policy(self) -> DecisionPolicy: ...
    @property
    def streams(self) -> Streams: ...
    def public_origin(self, request: RequestHead) -> str:
        """Return the origin under which the client of this request knows the server."""

    def upstream_head(
        self, method: str, target: str, headers: Headers, body: bytes | None, *, has_body: bool
    ) -> bytes:
        """Return the head of a request. A body of bytes gets its length; another one is chunked unless it has one."""

    def client_process(self, client: object, stream: str) -> Mapping[str, Any] | None:
        """Return the process of a client once, when it was found."""


class DecisionPolicy(Protocol):
    """The choice of messages that the interception decides on."""

    is_on: bool
    changed_heads: frozenset[str]
    """The sides whose heads a script may change."""

    @property
    def decides_responses(self) -> bool:
        """True if a message of the server may need a decision, while messages are intercepted."""

    @property
    def tools(self) -> ToolParamHeaders:
        """Headers that calls of the server's tools require."""

    def decides(self, side: str, body: bytes) -> bool: ...
    def learn_tools(self, data: bytes) -> None: ...
