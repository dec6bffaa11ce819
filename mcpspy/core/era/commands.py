"""Policies and commands of the machine of a translated session."""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

AUTO, ALWAYS, NEVER = "auto", "always", "never"
"""AUTO: if the server refuses the era of the host, and the host has no other. ALWAYS: also in place of the fallback of a
host that knows both eras. NEVER: everything is forwarded as it came."""

POLICIES = (AUTO, ALWAYS, NEVER)

RESPONSE_TIMEOUT = 30.0
"""Seconds that the server has to answer a request of mcpspy while messages of the host wait for the response."""


class SendToServer(NamedTuple):
    """Send a message to the server."""

    data: bytes
    carrier: object | None = None
    """The object that the caller of `EraMachine.client` passed with the host's message. None for a message of mcpspy:
    it is recorded first."""
    timeout: float | None = None
    """Seconds after which to call `EraMachine.timed_out` with the id of this request of mcpspy. None: no limit."""


class SendToHost(NamedTuple):
    """Send a message to the host."""

    data: bytes
    is_own: bool = True
    """False for the server's message at hand, as the host gets it; True for one that mcpspy sends in its name."""


class Fail(NamedTuple):
    """Answer a request of the host with an error, because it cannot be answered otherwise."""

    id: str
    """JSON text."""
    why: str


class Later(NamedTuple):
    """Call `EraMachine.again` after this time."""

    seconds: float


class TranslationNote(NamedTuple):
    """Record a note of kind `translation`; before the message at hand, if it is the first command."""

    did: str
    """`probe`: the server refused the host's era, and is asked for its own. `begin`: the translation begins."""
    host: str
    """Revision of the host."""
    server: str = ""
    """Revision of the server, once it is known."""
    refused: tuple[str, ...] = ()
    """Ids, as JSON text, of the host's requests that the server refused, and that its refusals do not answer."""


Command: TypeAlias = SendToServer | SendToHost | Fail | Later | TranslationNote
