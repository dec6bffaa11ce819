"""Heads of HTTP messages: parsed ones, known ones, and that which a client gets.

The requests of a client on one connection have nearly always the same head, and so have the responses to them. A
message whose head is known and which is one whole packet is taken without a parser.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from http import HTTPStatus
from typing import Any, Generic, TypeVar

from mcpspy.core.protocol.http_headers import Headers

ENCODING = "content-encoding"

REASONS = {status.value: status.phrase for status in HTTPStatus}

MAX_HEAD = 1 << 17
"""Maximum size of a head in bytes. Tokens are long, and a proxy should not refuse them."""

MAX_KNOWN = 64
"""Number of heads that a connection remembers."""

MAX_KNOWN_HEAD = 1 << 13
"""Maximum size, in bytes, of a head that is remembered."""

H = TypeVar("H")


class RequestHead:
    """The head of a request."""

    __slots__ = (
        "has_body",
        "headers",
        "is_chunked",
        "keeps_alive",
        "length",
        "method",
        "target",
        "version",
        "waits",
    )

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
        self.has_body = self.is_chunked or self.length > 0
        """True if the request has a body, which may be empty only if it has no length."""
        self.waits = headers.get("Expect", "").lower() == "100-continue"
        """True if the client waits for `100 Continue` before it sends the body."""


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


class ClientHead:
    """The head of a response as the client gets it, and how its body is framed."""

    __slots__ = ("data", "has_body", "is_chunked", "keeps_alive")

    def __init__(self, data: bytes, is_chunked: bool, has_body: bool, keeps_alive: bool) -> None:
        self.data = data
        self.is_chunked, self.has_body, self.keeps_alive = is_chunked, has_body, keeps_alive

    def framed(self, data: bytes, *, is_last: bool = False) -> bytes:
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


class KnownHeads(Generic[H]):
    """The heads of whole messages that arrived on a connection in one packet each."""

    def __init__(self) -> None:
        self._heads: dict[bytes, tuple[H, int]] = {}
        """The bytes of a head → what was parsed from it, and the length of the body."""
        self._last: tuple[bytes, Any, int] = b"\0", None, 0
        """The last one of them that was found, which nearly always is the next one too."""

    def split(self, packet: bytes) -> tuple[H, bytes] | None:
        """Return the head and the body of a whole message with a known head; None for any other packet."""
        known, head, length = self._last
        if not packet.startswith(known):
            known = packet[: packet.find(b"\r\n\r\n") + 4]
            found = self._heads.get(known)
            if found is None:
                return None
            head, length = found
            self._last = known, head, length
        return (head, packet[len(known) :]) if len(packet) == len(known) + length else None

    def heads(self) -> Iterator[H]:
        """Yield what was parsed of each known head."""
        return (head for head, _ in self._heads.values())

    def is_head(self, packet: bytes) -> bool:
        """Return whether a packet is a known head without its body."""
        return packet in self._heads

    def add(self, packet: bytes, head: H, length: int) -> None:
        """Remember the head of a message with a body of this length, if the packet is that message."""
        end = packet.find(b"\r\n\r\n") + 4
        if 3 < end <= MAX_KNOWN_HEAD and len(packet) == end + length:
            if len(self._heads) == MAX_KNOWN:
                self._heads.clear()
            self._heads[packet[:end]] = head, length


def header_text(value: bytes) -> str:
    """Return the text of a target or of a part of a header; bytes that are not UTF-8 are kept (PEP 383)."""
    return value.decode("utf-8", "surrogateescape")
