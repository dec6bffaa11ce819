"""A live server, reached as a client: over stdio as a child process, or over HTTP.

`connect` gives a `Connection`: `send` what is to be said, `hear` what is said,
`close` it. What passes is recorded, if there is a recorder, before it goes on.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from mcpspy.io.client.base import (
    ConnectionEnded,
    ExchangeLost,
    ExchangeRefused,
    InboundEvent,
    ReceivedMessage,
    ServerAddress,
    ServerCommand,
    ServerConnection,
    ServerTarget,
    StderrLine,
)

if TYPE_CHECKING:
    from mcpspy.io.recording.recorder import Recorder

__all__ = [
    "ConnectionEnded",
    "ExchangeLost",
    "ExchangeRefused",
    "InboundEvent",
    "ReceivedMessage",
    "ServerAddress",
    "ServerCommand",
    "ServerConnection",
    "ServerTarget",
    "StderrLine",
    "connect",
]


async def connect(
    target: ServerTarget, recorder: Recorder | None = None, numbers: Iterator[int] | None = None
) -> ServerConnection:
    """Start a server, or reach one that runs; raise CannotStart, which names it and says why not.

    `numbers` are those of HTTP exchanges, if several connections share a recording.

    A server that starts and dies at once is no error here: it is heard as
    `Ended`, and `Connection.last_words` has what it said on stderr.
    """
    if isinstance(target, ServerCommand):
        from mcpspy.io.client.stdio import start

        return await start(target, recorder)
    from mcpspy.io.client.http import open_http

    return await open_http(target, recorder, numbers)
