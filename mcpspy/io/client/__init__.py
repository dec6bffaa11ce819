"""Connections to a live server as its client, over stdio or HTTP.

`connect` returns a `ServerConnection`. With a recorder, messages are recorded before they are sent or delivered.
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
    "prepare",
]


async def connect(
    target: ServerTarget,
    recorder: Recorder | None = None,
    numbers: Iterator[int] | None = None,
    *,
    is_reachable: bool = False,
) -> ServerConnection:
    """Start a server, or connect to a running one. Raise CannotStart with its name and the reason.

    `numbers` yields the numbers of HTTP exchanges, for connections that share a recording. An HTTP server that is
    known to listen (`is_reachable`) is not tried first. A server that exits right after
    its start raises nothing: the connection yields `ConnectionEnded`, and `ServerConnection.last_words` has its stderr.
    """
    if isinstance(target, ServerCommand):
        from mcpspy.io.client.stdio import start

        return await start(target, recorder)
    from mcpspy.io.client.http import open_http

    return await open_http(target, recorder, numbers, is_reachable=is_reachable)


def prepare(target: ServerTarget) -> None:
    """Import what `connect` needs, and read the trusted certificates, before anything is timed. Raise CannotStart."""
    if isinstance(target, ServerCommand):
        import mcpspy.io.client.stdio
    else:
        import mcpspy.io.client.http  # noqa: F401 - see above
        from mcpspy.io.network.outgoing import shared_trust

        shared_trust(target.cacert, insecure=target.insecure)
