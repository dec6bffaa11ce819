"""What a client posted to the mock, read; and what is refused in HTTP's own way.

Owns the body, its limit, and what of the headers says how it is to be answered.

A stream of the mock, written to a client as server-sent events.

Owns the form of the events, and that a silent stream stays open. Sources: basic/transports,
2025-03-26 to 2026-07-28; HTML Living Standard, 9.2.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from aiohttp import hdrs, web

from mcpspy.core.mock import responses
from mcpspy.core.mock.session import Outgoing, refused
from mcpspy.core.protocol.message import AnyMessage, Malformed, Request, read_frame
from mcpspy.core.protocol.spec import CLIENT
from mcpspy.core.recording.decode import Frame
from mcpspy.io.mock.http_client import Stream, Visitor

JSON, EVENTS = "application/json", "text/event-stream"

LARGEST = 64 << 20
"""Bytes of a body that are taken."""

SERVER_ERROR = -32000
"""The code of what HTTP refuses and JSON-RPC has no word for."""


class Post(NamedTuple):
    """What a client sent."""

    request: web.BaseRequest
    body: bytes
    messages: Sequence[AnyMessage]

    @property
    def ids(self) -> list[bytes]:
        """The ids of the requests in it, JSON text."""
        return [message.id.encode() for message in self.messages if isinstance(message, Request)]

    @property
    def only(self) -> AnyMessage | None:
        """The message, if it is one and no batch."""
        return self.messages[0] if len(self.messages) == 1 and self.messages[0].index is None else None

    def takes(self, kind: str) -> bool:
        """Whether the client reads this type of content; one that does not say reads all."""
        accept = self.request.headers.get(hdrs.ACCEPT, "*/*").lower()
        return kind in accept or "*/*" in accept or f"{kind.partition('/')[0]}/*" in accept


class Refused(Exception):  # noqa: N818 - reads as what it says at every raise.
    """An HTTP exchange that ends with an error of ours."""

    def __init__(self, status: int, code: int, why: str, **headers: str) -> None:
        super().__init__(why)
        self.response = web.Response(
            status=status, body=responses.error(b"null", code, why), content_type=JSON, headers=headers
        )


async def read_post(request: web.BaseRequest) -> Post:
    """Read a body that should be messages."""
    if JSON not in request.headers.get(hdrs.CONTENT_TYPE, "").lower():
        raise Refused(415, SERVER_ERROR, f"Content-Type must be {JSON}")
    pieces, size = [], 0
    async for piece in request.content.iter_any():
        pieces.append(piece)
        size += len(piece)
        if size > LARGEST:
            raise Refused(413, SERVER_ERROR, f"a message of more than {LARGEST} bytes")
    body = b"".join(pieces)
    post = Post(request, body, read_frame(Frame(0.0, CLIENT, body)))
    for message in post.messages:
        if isinstance(message, Malformed):
            refused_ = Refused(400, responses.PARSE_ERROR, "")
            refused_.response.body = refused(message)
            raise refused_
    return post


PATIENCE = 15.0
"""Seconds without a word on a stream, after which the connection is kept alive by a comment, as SDK servers do."""

PRIMED = "2025-11-25"
"""From here on an event without data names a stream before it has a message."""


async def write(
    request: web.BaseRequest,
    stream: Stream,
    last: int,
    preface: bytes = b"",
    headers: dict[str, str] | None = None,
    *,
    is_numbered: bool = True,
) -> web.StreamResponse:
    """Send what is on a stream after the message of number `last`, until it is over or somebody else reads it."""
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
                written = [_event(number if is_numbered else None, said) for number, said in new]
                await response.write(b"".join(written))
                stream.trim()
            elif stream.is_over:
                break
            elif not await stream.more(PATIENCE):
                await response.write(b": keepalive\n\n")
        await response.write_eof()
    finally:
        if stream.reader is reader:
            stream.reader = None
    return response


def naming(visitor: Visitor, stream: Stream) -> bytes:
    """Return the event that names a stream before it has a message, for clients that know such events."""
    is_known = (visitor.conversation.revision or "") >= PRIMED
    return b"id: %d\ndata: \n\n" % stream.number if is_known else b""


def _event(number: int | None, message: Outgoing) -> bytes:
    name = b"" if number is None else b"id: %d\n" % number
    return b"event: message\n%bdata: %b\n\n" % (name, message.data)
