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
"""Seconds for a session to greet: a stopped process never will."""

RESPONSE_TIMEOUT = 10.0
"""Seconds for a response. Peers that a command sends to are not waited for."""


class CommandRefused(McpspyError):  # noqa: N818 - an outcome, not an error.
    """The session has refused a command, with the reason."""


def dumped(value: Any) -> bytes:
    return to_json(value) + b"\n"


def accepted(answer: dict[str, Any]) -> dict[str, Any]:
    """Return the fields of a response; raise CommandRefused."""
    if not answer.get("ok"):
        raise CommandRefused(str(answer.get("error", "refused")))
    return {key: value for key, value in answer.items() if key not in ("n", "ok")}


def connected(path: str) -> socket.socket:
    """Return a socket to a session; raise CannotStart."""
    try:
        return connect(path, GREETING_TIMEOUT)
    except FileNotFoundError:
        raise CannotStart("the session has ended", "mcpspy send --list shows those that are live") from None


def greeted(line: bytes | None, path: str) -> dict[str, Any]:
    """Return the greeting of a session; raise CannotStart if there is none or it is not one."""
    hello = {} if line is None else read(line)
    if not isinstance(version := hello.get("mcpspy"), int):
        raise CannotStart(f"{path}: does not answer as a session does", "is its mcpspy stopped?")
    if version > VERSION:
        raise CannotStart("the session is of a newer mcpspy", "upgrade mcpspy and try again")
    return hello


def read(line: bytes) -> dict[str, Any]:
    """Return a response or an event; raise CannotStart if it is neither."""
    message = loads(line)
    if not isinstance(message, dict):
        raise CannotStart("what answers is no session of mcpspy")
    return message


def unanswered() -> CannotStart:
    return CannotStart(f"the session has not answered for {RESPONSE_TIMEOUT:g} s", "is its mcpspy stopped?")


def ended(error: OSError | None) -> CannotStart:
    return CannotStart(
        "the session has ended" + (f": {error.strerror or error}" if error is not None else "")
    )
