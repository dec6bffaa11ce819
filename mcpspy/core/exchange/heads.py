"""Heads of HTTP messages: what was parsed of them, and what is made of them once for all equal ones.

`RequestHead` and `ResponseHead` are results of a parser, which nothing changes. Equal messages of a connection share
them, so all that depends on a head alone is made once: the head that is sent on, and its text in the recording. These
are prepared heads. `PreparedHeads` of a client's connection owns them, and they end with it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from http import HTTPStatus
from typing import TYPE_CHECKING, NamedTuple

from mcpspy.core.protocol import mcp_headers
from mcpspy.core.protocol.http_headers import Headers, recorded_headers, request_headers
from mcpspy.core.protocol.http_headers import response_headers as headers_for_client
from mcpspy.core.protocol.mcp_headers import LIST
from mcpspy.core.protocol.refusal import is_refusal
from mcpspy.core.recording.encode import json_object

if TYPE_CHECKING:
    from mcpspy.core.exchange.machine import Scope

SESSION = "Mcp-Session-Id"

ENCODING = "content-encoding"

MAX_PREPARED = 64
"""Number of heads of requests that are prepared per connection, and of heads of responses to each of them."""

MAX_PREPARED_SIZE = 1 << 13
"""Maximum size, in bytes, of the headers of a request that is kept prepared."""

REASONS = {status.value: status.phrase for status in HTTPStatus}


class RequestHead:
    """The head of a request."""

    __slots__ = ("headers", "is_chunked", "keeps_alive", "length", "method", "target", "version", "waits")

    def __init__(
        self, method: str, target: str, headers: Mapping[str, str], version: str, *, keeps_alive: bool
    ) -> None:
        """Take what was parsed. The names of `headers` are compared without case."""
        self.method = method
        self.target = target
        """The target as it was sent; of an absolute one, the host has become the Host (RFC 9112, 3.2.2)."""
        self.headers = headers
        self.version = version
        self.keeps_alive = keeps_alive
        self.is_chunked = "Transfer-Encoding" in headers
        """True if the body has no length."""
        self.length = 0 if self.is_chunked else int(headers.get("Content-Length", 0))
        self.waits = headers.get("Expect", "").lower() == "100-continue"
        """True if the client waits for `100 Continue` before it sends the body."""

    @property
    def has_body(self) -> bool:
        """Return whether the request has a body, which may be empty only if it has no length."""
        return self.is_chunked or self.length > 0


class ResponseHead:
    """The head of a response."""

    __slots__ = ("content_type", "headers", "length", "named", "reason", "status")

    def __init__(self, status: int, reason: str, headers: Headers) -> None:
        self.status = status
        self.reason = reason
        self.headers = headers
        self.named = {name.lower(): value for name, value in reversed(headers)}
        """The first value of each header, by its name in lower case."""
        kind = self.named.get("content-type", "")
        self.content_type = kind.partition(";")[0].strip().lower()
        """The media type in lower case, without parameters."""
        self.length = self.named.get("content-length")

    @property
    def is_delimited(self) -> bool:
        """Return whether the end of the connection is not the end of the body."""
        return self.length is not None or "transfer-encoding" in self.named

    @property
    def is_ok(self) -> bool:
        return self.status < 400


class ClientHead(NamedTuple):
    """The head of a response as the client gets it, and how its body is framed."""

    data: bytes
    is_chunked: bool
    has_body: bool
    keeps_alive: bool

    def framed(self, data: bytes, *, is_last: bool) -> bytes:
        """Return a part of the body as it is sent (RFC 9112, 7.1)."""
        if not self.has_body:
            return b""
        if self.is_chunked:
            if data:
                data = b"%x\r\n%b\r\n" % (len(data), data)
            if is_last:
                data += b"0\r\n\r\n"
        return data


def client_head(
    request: RequestHead,
    status: int,
    reason: str,
    headers: Iterable[tuple[str, str]],
    *,
    has_length: bool,
    keeps_alive: bool,
) -> ClientHead:
    """Return the head of a response with these headers and those of its connection.

    A body without a length is chunked; a client of HTTP/1.0 knows no chunks, so its connection ends with the body
    (RFC 9112, 6.3). There is none in a response to HEAD, nor with status 204 or 304 (RFC 9110, 6.4.1).
    """
    lines = [f"HTTP/1.1 {status} {reason}"]
    lines += [f"{name}: {value}" for name, value in headers]
    has_body = request.method != "HEAD" and status >= 200 and status not in (204, 304)
    is_chunked = has_body and not has_length and request.version == "1.1"
    if is_chunked:
        lines.append("Transfer-Encoding: chunked")
    elif has_body and not has_length:
        keeps_alive = False
    if not keeps_alive:
        lines.append("Connection: close")
    elif request.version == "1.0":
        lines.append("Connection: keep-alive")
    lines.append("\r\n")
    return ClientHead(
        "\r\n".join(lines).encode("utf-8", "surrogateescape"), is_chunked, has_body, keeps_alive
    )


class PreparedResponse:
    """What is made once of a response's head, for the requests with one head."""

    __slots__ = (
        "encoding", "has_length", "head", "headers", "is_ordinary", "is_refusal", "kind", "recorded", "session", "whole"
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
        headers = headers_for_client(head.headers, scope.upstream, request.public_origin)
        self.headers = scope.oauth.response_headers(request.target, headers, request.public_origin)
        """The headers for the client."""
        self.has_length = any(name.lower() == "content-length" for name, _ in headers)
        self.whole: ClientHead | None = None
        """The head for a client whose connection is used again."""


class PreparedRequest:
    """What is made once of the head of a request."""

    __slots__ = (
        "_forwarded", "_responses", "encoding", "head", "is_listing", "noted", "public_origin", "recorded",
        "scope", "session", "target"
    )  # fmt: skip

    def __init__(self, scope: Scope, head: RequestHead, target: str) -> None:
        self.scope = scope
        self.head = head
        self.target = target
        self.public_origin = scope.public_origin(head)
        """The origin under which the client knows the server."""
        self.session = head.headers.get(SESSION)
        self.encoding = head.headers.get(ENCODING)
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
