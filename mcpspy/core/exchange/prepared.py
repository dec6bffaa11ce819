"""The values made once of the heads of HTTP messages, for all equal ones.

Equal messages of a connection share one head (`core.exchange.heads`), so all that depends on a head alone is made once:
the head that is sent on, and its text in the recording. `PreparedHeads` of a client's connection owns what was
prepared, and it ends with the connection.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mcpspy.core.exchange.heads import ENCODING, ClientHead, RequestHead, ResponseHead
from mcpspy.core.protocol import mcp_headers
from mcpspy.core.protocol.http_headers import SESSION, Headers, recorded_headers, request_headers
from mcpspy.core.protocol.http_headers import response_headers as headers_for_client
from mcpspy.core.protocol.mcp_headers import LIST
from mcpspy.core.protocol.refusal import is_refusal
from mcpspy.core.recording.encode import json_object

if TYPE_CHECKING:
    from mcpspy.core.exchange.scope import Scope

SHORT = 1 << 18
"""Maximum size, in bytes, of a request that is kept until the server has responded, and of what is recorded in one go."""

MAX_PREPARED = 64
"""Number of heads of requests that are prepared per connection, and of heads of responses to each of them."""

MAX_PREPARED_SIZE = 1 << 13
"""Maximum size, in bytes, of the headers of a request that is kept prepared."""


class PreparedResponse:
    """The values made once of a response's head, for the requests with one head."""

    __slots__ = (
        "encoding", "head", "headers", "is_ordinary", "is_plain", "is_refusal", "kind", "recorded", "session", "whole"
    )  # fmt: skip

    def __init__(self, scope: Scope, request: PreparedRequest, head: ResponseHead) -> None:
        self.head = head
        self.kind = "" if request.head.method == "HEAD" else head.content_type
        """The media type that may contain messages, if the request is one of MCP."""
        self.encoding = head.named.get(ENCODING)
        self.session = head.named.get("mcp-session-id")
        method = request.head.method
        self.is_refusal = is_refusal(method, head.status, head.content_type)
        """True if the response of an endpoint is an error, or of a type that no message has."""
        is_odd = self.is_refusal or method == "OPTIONS"
        self.recorded = json_object(recorded_headers(head.headers, is_refusal=is_odd))
        self.is_ordinary = not any(name in head.named for name in ("location", "www-authenticate"))
        """False if the headers lead somewhere, or ask for authorization."""
        self.is_plain = self.is_ordinary and not self.is_refusal
        """True if the response may be no more than one message."""
        headers = headers_for_client(head.headers, scope.upstream, request.public_origin)
        self.headers = scope.oauth.response_headers(request.target, headers, request.public_origin)
        """The headers for the client."""
        self.whole: ClientHead | None = None
        """The head for a client whose connection is used again."""


class PreparedRequest:
    """The values made once of the head of a request."""

    __slots__ = (
        "_forwarded", "_responses", "encoding", "head", "is_listing", "noted", "public_origin", "recorded",
        "scope", "session", "short", "target"
    )  # fmt: skip

    def __init__(self, scope: Scope, head: RequestHead, target: str) -> None:
        self.scope = scope
        self.head = head
        self.target = target
        self.public_origin = scope.public_origin(head)
        """The origin under which the client knows the server."""
        self.session = head.headers.get(SESSION)
        self.encoding = head.headers.get(ENCODING)
        self.short = min(SHORT, scope.max_body)
        """Maximum size, in bytes, of a message of this exchange that is recorded in one go."""
        self.is_listing = head.headers.get(mcp_headers.METHOD) == LIST
        """True if the head names `tools/list` (2026-07-28)."""
        self.noted = json_object({"method": head.method, "path": target})[1:-1]
        """Method and path in the recording."""
        self.recorded = json_object(recorded_headers(head.headers.items()))
        self._forwarded: bytes | None = None
        self._responses: dict[ResponseHead, PreparedResponse] = {}

    @property
    def headers(self) -> Headers:
        """Return the headers that the server gets."""
        return request_headers(self.head.headers.items(), self.scope.upstream, self.public_origin)

    def forwarded(self, body: bytes | None) -> bytes:
        """Return the head that the server gets with the client's own body; None for one that is sent in parts."""
        head = self.head
        if body is None or head.is_chunked:
            has_body = body is not None or head.has_body
            return self.scope.upstream_head(head.method, self.target, self.headers, body, has_body=has_body)
        if self._forwarded is None:
            self._forwarded = self.scope.upstream_head(
                head.method, self.target, self.headers, body, has_body=True
            )
        return self._forwarded

    def response(self, head: ResponseHead) -> PreparedResponse:
        """Return what is made of the head of a response."""
        prepared = self._responses.get(head)
        if prepared is None:
            if len(self._responses) == MAX_PREPARED:
                self._responses.clear()
            prepared = self._responses[head] = PreparedResponse(self.scope, self, head)
        return prepared


class PreparedHeads:
    """The prepared heads of one connection of a client."""

    __slots__ = ("_accepted", "_requests")

    def __init__(self) -> None:
        self._requests: dict[RequestHead, PreparedRequest] = {}
        self._accepted: set[RequestHead] = set()

    def is_accepted(self, head: RequestHead) -> bool:
        """Return whether the Host and Origin of a head were checked."""
        return head in self._accepted

    def accept(self, head: RequestHead) -> None:
        """Remember that the Host and Origin of a head are those of a client."""
        if len(self._accepted) == MAX_PREPARED:
            self._accepted.clear()
        self._accepted.add(head)

    def request(self, scope: Scope, head: RequestHead, target: str) -> PreparedRequest:
        """Return what is made of the head of a request to the server of `scope`."""
        prepared = self._requests.get(head)
        if prepared is None or prepared.scope is not scope:
            prepared = PreparedRequest(scope, head, target)
            if len(self._requests) == MAX_PREPARED:
                self._requests.clear()
            if len(prepared.recorded) <= MAX_PREPARED_SIZE:
                self._requests[head] = prepared
        return prepared
