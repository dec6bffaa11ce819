"""A stream of the mock, written to a client as server-sent events.

Owns the form of the events, and that a silent stream stays open. Sources: basic/transports,
2025-03-26 to 2026-07-28; HTML Living Standard, 9.2.
"""

from __future__ import annotations

from aiohttp import hdrs, web

from mcpspy.core.mock.session import Outgoing
from mcpspy.io.serve.posted import EVENTS
from mcpspy.io.serve.visitor import Stream, Visitor

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
