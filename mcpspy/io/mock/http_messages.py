"""HTTP messages of the mock: posted bodies, refusals, and streams of server-sent events.

Owns the limit of a body, content negotiation, the form of the events, and keepalive. Sources: basic/transports,
2025-03-26 to 2026-07-28; HTML Living Standard, 9.2.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from aiohttp import hdrs, web

from mcpspy.core.mock import responses
from mcpspy.core.mock.session import Outgoing
from mcpspy.core.protocol.message import AnyMessage, Malformed, Request, read_frame
from mcpspy.core.protocol.spec import CLIENT
from mcpspy.core.recording.decode import Frame
from mcpspy.io.mock.http_client import ClientStream, MockClient

JSON, EVENTS = "application/json", "text/event-stream"

LARGEST = 64 << 20
"""The most bytes of a body."""

SERVER_ERROR = -32000
"""The code of errors for which JSON-RPC has no code of its own."""

KEEPALIVE_SECONDS = 15.0
"""Seconds of silence on a stream, after which a comment keeps the connection alive, as SDK servers do."""

PRIMED = "2025-11-25"
"""From this revision on an event without data names a stream before it has a message."""


class ParsedPost(NamedTuple):
    request: web.BaseRequest
    body: bytes
    messages: Sequence[AnyMessage]

    @property
    def ids(self) -> list[bytes]:
        return [message.id.encode() for message in self.messages if isinstance(message, Request)]

    @property
    def only(self) -> AnyMessage | None:
        """The message, unless it is a batch."""
        return self.messages[0] if len(self.messages) == 1 and self.messages[0].index is None else None

    def takes(self, kind: str) -> bool:
        """Return whether the client accepts this content type; without `Accept` it accepts all."""
        accept = self.request.headers.get(hdrs.ACCEPT, "*/*").lower()
        return kind in accept or "*/*" in accept or f"{kind.partition('/')[0]}/*" in accept


class HttpRefusal(Exception):  # noqa: N818 - reads as what it says at every raise.
    """An HTTP exchange that ends with an error of the mock."""

    def __init__(self, status: int, why: str, code: int = SERVER_ERROR, **headers: str) -> None:
        super().__init__(why)
        self.response = web.Response(
            status=status, body=responses.error(b"null", code, why), content_type=JSON, headers=headers
        )


async def read_post(request: web.BaseRequest) -> ParsedPost:
    """Read the messages of a body, or raise HttpRefusal."""
    if JSON not in request.headers.get(hdrs.CONTENT_TYPE, "").lower():
        raise HttpRefusal(415, f"Content-Type must be {JSON}")
    pieces, size = [], 0
    async for piece in request.content.iter_any():
        pieces.append(piece)
        size += len(piece)
        if size > LARGEST:
            raise HttpRefusal(413, f"a message of more than {LARGEST} bytes")
    body = b"".join(pieces)
    post = ParsedPost(request, body, read_frame(Frame(0.0, CLIENT, body)))
    for message in post.messages:
        if isinstance(message, Malformed):
            refusal = HttpRefusal(400, "", responses.PARSE_ERROR)
            refusal.response.body = responses.rejection(message)
            raise refusal
    return post


async def write_stream(
    request: web.BaseRequest,
    stream: ClientStream,
    last: int,
    preface: bytes = b"",
    headers: dict[str, str] | None = None,
    *,
    is_numbered: bool = True,
) -> web.StreamResponse:
    """Send the messages of a stream after number `last`, until it is over or another response takes it over."""
    response = web.StreamResponse(
        headers={hdrs.CONTENT_TYPE: EVENTS, hdrs.CACHE_CONTROL: "no-cache", **(headers or {})}
    )
    reader = stream.take_over()
    try:
        await response.prepare(request)
        if preface:
            await response.write(preface)
        while stream.reader is reader:
            new = stream.after(last)
            if new:
                last = new[-1][0]
                written = [_event(number if is_numbered else None, message) for number, message in new]
                await response.write(b"".join(written))
                stream.trim()
            elif stream.is_over:
                break
            elif not await stream.more(KEEPALIVE_SECONDS):
                await response.write(b": keepalive\n\n")
        await response.write_eof()
    finally:
        if stream.reader is reader:
            stream.reader = None
    return response


def priming_event(client: MockClient, stream: ClientStream) -> bytes:
    """Return the event that names a stream before it has a message, for clients that know such events."""
    is_known = (client.session.revision or "") >= PRIMED
    return b"id: %d\ndata: \n\n" % stream.number if is_known else b""


def _event(number: int | None, message: Outgoing) -> bytes:
    name = b"" if number is None else b"id: %d\n" % number
    return b"event: message\n%bdata: %b\n\n" % (name, message.data)
