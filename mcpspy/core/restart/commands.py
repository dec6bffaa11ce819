"""Commands of the machine of a restarted session, and its decision on a message of the server."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

if TYPE_CHECKING:
    from mcpspy.core.restart.listings import ServerInterface


class Start(NamedTuple):
    """Start a server, then call `started` or `ended`."""


class Stop(NamedTuple):
    """End the server; `ended` follows."""


class ToServer(NamedTuple):
    """Send a message to the server. One of mcpspy (`is_own`) is recorded first."""

    data: bytes
    is_own: bool = False


class ToHost(NamedTuple):
    """Record a message in the name of the server, and send it to the client."""

    data: bytes


class RestartNote(NamedTuple):
    """Record a note of kind `restart`, and send it to the viewers."""

    fields: dict[str, Any]
    before: ServerInterface | None = None
    """The interface with which `after` is compared; None if it is unknown."""
    after: ServerInterface | None = None


Command: TypeAlias = Start | Stop | ToServer | ToHost | RestartNote


class Received(NamedTuple):
    """The decision on a message."""

    commands: list[Command]
    is_forwarded: bool = True
    """False if mcpspy keeps the message: it is recorded with `"to":"mcpspy"`."""
    replacement: bytes | None = None
    """The message with another id, which mcpspy sends in its place."""
