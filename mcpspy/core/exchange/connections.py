"""The states of the connections to both sides, as tables from which ARCHITECTURE.md has its diagrams."""

from __future__ import annotations

from enum import StrEnum


class Reading(StrEnum):
    """The part that is read next from a client."""

    BETWEEN = "between"
    """The next request, of which nothing has arrived."""
    HEAD = "head"
    BODY = "body"
    REFUSED = "refused"
    """Nothing: what arrived cannot be read (RFC 9112, 2.2)."""
    LOST = "lost"

    __hash__ = str.__hash__


class Asking(StrEnum):
    """The part that is read next from a server, to which one request is sent at a time."""

    IDLE = "idle"
    """Nothing, because nothing is asked."""
    ASKED = "asked"
    """A response, of which nothing has arrived."""
    HEAD = "head"
    BODY = "body"
    CHUNK = "chunk"
    """A chunk, of which nothing has arrived (RFC 9112, 7.1)."""
    LOST = "lost"

    __hash__ = str.__hash__


READING: dict[Reading, dict[str, Reading]] = {
    Reading.BETWEEN: {"begin": Reading.HEAD},
    Reading.HEAD: {"head": Reading.BODY},
    Reading.BODY: {"end": Reading.BETWEEN},
}
"""State → what the parser has found → state. Refusal and loss are possible in each, and final."""

ASKING: dict[Asking, dict[str, Asking]] = {
    Asking.IDLE: {"request": Asking.ASKED},
    Asking.ASKED: {"begin": Asking.HEAD},
    Asking.HEAD: {"head": Asking.BODY, "interim head": Asking.ASKED},
    Asking.BODY: {"chunk": Asking.CHUNK, "end": Asking.IDLE},
    Asking.CHUNK: {"data": Asking.BODY, "end": Asking.IDLE},
}
"""State → what was sent, or what the parser has found → state. Loss is possible in each, and final."""


def read_on(state: Reading, found: str) -> Reading:
    """Return the state after the parser has found something; the same one after a refusal."""
    return READING.get(state, {}).get(found, state)
