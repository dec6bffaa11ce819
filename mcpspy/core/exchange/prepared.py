"""The values made once of the heads of HTTP messages, for all equal ones.

Equal messages of a connection share one head (`core.exchange.heads`), so all that depends on a head alone is made once:
the head that is sent on, and its text in the recording. The client's connection owns what was prepared.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mcpspy.core.exchange.heads import ENCODING, ClientHead, RequestHead, ResponseHead
from mcpspy.core.protocol import mcp_headers
from mcpspy.core.protocol.http_headers import JSON, SESSION, Headers, recorded_headers, request_headers
from mcpspy.core.protocol.http_headers import response_headers as headers_for_client
from mcpspy.core.protocol.mcp_headers import LIST
from mcpspy.core.protocol.refusal import is_refusal
from mcpspy.core.recording.encode import json_object

if TYPE_CHECKING:
    from mcpspy.core.exchange.shell import Scope

SHORT = 1 << 18
"""Maximum size, in bytes, of a request that is kept until the server has responded, and of what is recorded in one go."""

MAX_PREPARED = 64
"""Number of heads of responses that are prepared for requests with one head."""


class PreparedResponse:
    """The values made once of a response's head, for the requests with one head."""

    __slots__ = (
        "encoding", "head", "headers", "is_of_session", "is_ordinary", "is_plain", "is_refusal", "kind", "max_whole",
        "noted", "recorded", "session", "whole"
    )  # fmt: skip

    def __init__(self, scope: Scope, request: PreparedRequest, head: ResponseHead) -> None:
        self.head = head
        self.kind = "" if request.head.method == "HEAD" else head.content_type
        """The media type that may contain messages, if the request is one of MCP."""
        self.encoding = head.named.get(ENCODING)
        self.max_whole = request.max_short if self.encoding is None and self.kind == JSON else -1
        """Maximum size, in bytes, of a whole message that is recorded in one go."""
        self.session = head.named.get("mcp-session-id")
        self.is_of_session = (
            self.session is not None
            or "www-authenticate" in head.named
            or (request.session is not None and (request.head.method == "DELETE" or head.status == 404))
        )
        """True if a session may begin or end with it, or if it asks for authorization."""
        method = request.head.method
        self.is_refusal = is_refusal(method, head.status, head.content_type)
        """True if the response of an endpoint is an error, or of a type that no message has."""
        is_odd = self.is_refusal or method == "OPTIONS"
        self.recorded = json_object(recorded_headers(head.headers, is_refusal=is_odd))
        self.noted = (
            b'%b,"status":%d,"asked_at":' % (request.noted, head.status),
            b',"request":%b,"response":%b' % (request.recorded, self.recorded),
        )
        """The note with both heads of a request of MCP: what is before and after its time."""
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
        "_forwarded", "_responses", "encoding", "head", "is_endpoint", "is_listing", "is_message", "is_post", "max_short", "max_whole",
        "noted", "public_origin", "recorded", "scope", "session", "target"
    )  # fmt: skip

    def __init__(self, scope: Scope, head: RequestHead, target: str) -> None:
        self.scope = scope
        self.head = head
        self.target = target
        self.public_origin = scope.public_origin(head)
        """The origin under which the client knows the server."""
        self.session = head.headers.get(SESSION)
        self.encoding = head.headers.get(ENCODING)
        self.max_short = min(SHORT, scope.max_body)
        self.max_whole = self.max_short if self.encoding is None else -1
        """Maximum size, in bytes, of a whole message that is recorded in one go."""
        self.is_post = head.method == "POST"
        self.is_message = self.is_post and head.has_body
        self.is_endpoint = scope.streams.has_path(target)
        """True if messages are sent to this path, as long as the proxy runs."""
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
