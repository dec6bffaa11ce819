"""The client side of the control protocol: commands, responses and their errors.

Specification: docs/control.md.
"""

from __future__ import annotations

import socket
from typing import Any

from mcpspy.core.protocol.message import loads
from mcpspy.core.rules.edit import to_json
from mcpspy.errors import CannotStart, McpspyError
from mcpspy.io.control.server import VERSION
from mcpspy.io.control.socket import connect

GREETING_TIMEOUT = 2.0
"""Seconds to wait for the greeting. A suspended process never sends it."""

RESPONSE_TIMEOUT = 10.0
"""Seconds to wait for a response. A session does not wait for the peers to which a command sends a message."""


class CommandRefused(McpspyError):  # noqa: N818 - an outcome, not an error.
    """The session has refused a command. The text is the reason."""


def dumped(value: Any) -> bytes:
    return to_json(value) + b"\n"


def accepted(answer: dict[str, Any]) -> dict[str, Any]:
    """Return the fields of a response. Raise CommandRefused."""
    if not answer.get("ok"):
        raise CommandRefused(str(answer.get("error", "refused")))
    return {key: value for key, value in answer.items() if key not in ("n", "ok")}


def connected(path: str) -> socket.socket:
    """Return a socket that is connected to a session. Raise CannotStart."""
    try:
        return connect(path, GREETING_TIMEOUT)
    except FileNotFoundError:
        raise CannotStart("the session has ended", "mcpspy send --list shows the live sessions") from None


def greeted(line: bytes | None, path: str) -> dict[str, Any]:
    """Return the greeting of a session. Raise CannotStart if it is missing or invalid."""
    hello = {} if line is None else read(line)
    if not isinstance(version := hello.get("mcpspy"), int):
        raise CannotStart(f"{path}: no valid greeting from the session", "is its mcpspy suspended?")
    if version > VERSION:
        raise CannotStart("the session belongs to a newer mcpspy", "upgrade mcpspy and try again")
    return hello


def read(line: bytes) -> dict[str, Any]:
    """Return a response or an event. Raise CannotStart if it is neither."""
    message = loads(line)
    if not isinstance(message, dict):
        raise CannotStart("the peer is not an mcpspy session")
    return message


def unanswered() -> CannotStart:
    return CannotStart(f"the session did not respond in {RESPONSE_TIMEOUT:g} s", "is its mcpspy suspended?")


def ended(error: OSError | None) -> CannotStart:
    return CannotStart(
        "the session has ended" + (f": {error.strerror or error}" if error is not None else "")
    )
