"""The states of an exchange over HTTP and of both its connections, as tables.

The diagrams in ARCHITECTURE.md are drawn from them.
"""

from __future__ import annotations

from enum import StrEnum


class ExchangeState(StrEnum):
    """The event that an exchange waits for."""

    NEW = "new"
    RECEIVING = "receiving"
    """For the rest of a message that is not sent on in parts, or for the first part of one that is."""
    DECIDING = "deciding"
    """For the decision on the client's message."""
    ASKING = "asking"
    """For the decision of the scripts on the head of the request."""
    UPLOADING = "uploading"
    """For the rest of a request that is sent on as it arrives."""
    ASKED = "asked"
    """For the response."""
    HEADED = "headed"
    """A moment for the body of a response, because most servers send a short one right after the head."""
    ANSWERING = "answering"
    """For the decision of the scripts on the head of the response."""
    FORWARDING = "forwarding"
    """For the rest of a body that is forwarded as it arrives."""
    COLLECTING = "collecting"
    """For the rest of a body that is forwarded as a whole."""
    JUDGING = "judging"
    """For the decision on the server's message."""
    STREAMING = "streaming"
    """For events that are forwarded as they arrive."""
    SIFTING = "sifting"
    """For events and the decisions on them."""
    UNREACHABLE = "unreachable"
    """For the rest of a message that only the recording gets."""
    HELD = "held"
    """For the end of a client whose message, or response, was dropped."""
    DRAINING = "draining"
    """For a response that no client waits for."""
    OVER = "over"

    __hash__ = str.__hash__  # Enum's own method is Python code.


(
    NEW, RECEIVING, DECIDING, ASKING, UPLOADING, ASKED, HEADED, ANSWERING, FORWARDING, COLLECTING, JUDGING, STREAMING,
    SIFTING, UNREACHABLE, HELD, DRAINING, OVER,
) = ExchangeState  # fmt: skip
# In Python 3.11, an attribute of an enum's class takes ten times as long as a name.


class Input(StrEnum):
    """The meaning of an event to an exchange."""

    PART = "part of a message"
    SEND = "whole request"
    UPLOAD = "request in parts"
    DECIDE = "message to decide on"
    HEADS = "head to decide on"
    HEAD = "head of the response alone"
    WHOLE = "whole response"
    BODY = "body"
    COLLECT = "body to change or decide on"
    EVENTS = "events"
    SIFT = "events to decide on"
    DROP = "drop"
    ANSWER = "answer of mcpspy"
    DRAIN = "answer of mcpspy before the server's"
    FAIL = "loss of the server"
    LOSE = "loss of the server amid the request"
    LEAVE = "loss of the client"
    END = "end of the response"

    __hash__ = str.__hash__


_LEAVES = {Input.LEAVE: ExchangeState.OVER}

_BEGINS = {
    Input.HEADS: ExchangeState.ANSWERING,
    Input.WHOLE: ExchangeState.OVER,
    Input.BODY: ExchangeState.FORWARDING,
    Input.COLLECT: ExchangeState.COLLECTING,
    Input.EVENTS: ExchangeState.STREAMING,
    Input.SIFT: ExchangeState.SIFTING,
    Input.DRAIN: ExchangeState.DRAINING,
    **_LEAVES,
}
"""From the head of a response to its body."""

_SENDS = {Input.SEND: ExchangeState.ASKED, Input.UPLOAD: ExchangeState.UPLOADING}

TRANSITIONS: dict[ExchangeState, dict[Input, ExchangeState]] = {
    ExchangeState.NEW: {
        Input.PART: ExchangeState.RECEIVING,
        Input.DECIDE: ExchangeState.DECIDING,
        Input.HEADS: ExchangeState.ASKING,
        **_SENDS,
        **_LEAVES,
    },
    ExchangeState.RECEIVING: {
        Input.DECIDE: ExchangeState.DECIDING,
        Input.HEADS: ExchangeState.ASKING,
        **_SENDS,
        **_LEAVES,
    },
    ExchangeState.DECIDING: {
        Input.HEADS: ExchangeState.ASKING,
        Input.SEND: ExchangeState.ASKED,
        Input.DROP: ExchangeState.HELD,
        Input.ANSWER: ExchangeState.OVER,
        **_LEAVES,
    },
    ExchangeState.ASKING: {**_SENDS, Input.ANSWER: ExchangeState.OVER, **_LEAVES},
    ExchangeState.UPLOADING: {
        Input.SEND: ExchangeState.ASKED,
        Input.HEAD: ExchangeState.HEADED,
        **{each: state for each, state in _BEGINS.items() if each is not Input.DRAIN},
        Input.FAIL: ExchangeState.OVER,
        Input.LOSE: ExchangeState.UNREACHABLE,
    },
    ExchangeState.ASKED: {Input.HEAD: ExchangeState.HEADED, **_BEGINS, Input.FAIL: ExchangeState.OVER},
    ExchangeState.HEADED: {**_BEGINS},
    ExchangeState.ANSWERING: {
        each: state for each, state in _BEGINS.items() if each not in (Input.HEADS, Input.WHOLE)
    },
    ExchangeState.FORWARDING: {Input.END: ExchangeState.OVER, Input.FAIL: ExchangeState.OVER, **_LEAVES},
    ExchangeState.COLLECTING: {
        Input.BODY: ExchangeState.FORWARDING,
        Input.DECIDE: ExchangeState.JUDGING,
        Input.END: ExchangeState.OVER,
        Input.DRAIN: ExchangeState.DRAINING,
        Input.FAIL: ExchangeState.OVER,
        **_LEAVES,
    },
    ExchangeState.JUDGING: {
        Input.END: ExchangeState.OVER,
        Input.DROP: ExchangeState.HELD,
        Input.ANSWER: ExchangeState.OVER,
        **_LEAVES,
    },
    ExchangeState.STREAMING: {
        Input.SIFT: ExchangeState.SIFTING,
        Input.END: ExchangeState.OVER,
        Input.FAIL: ExchangeState.OVER,
        **_LEAVES,
    },
    ExchangeState.SIFTING: {
        Input.END: ExchangeState.OVER,
        Input.DRAIN: ExchangeState.DRAINING,
        Input.FAIL: ExchangeState.OVER,
        **_LEAVES,
    },
    ExchangeState.UNREACHABLE: {Input.FAIL: ExchangeState.OVER, **_LEAVES},
    ExchangeState.HELD: {Input.ANSWER: ExchangeState.OVER, **_LEAVES},
    ExchangeState.DRAINING: {Input.END: ExchangeState.OVER, **_LEAVES},
}
"""ExchangeState → what an event means → state. What a state does not list cannot happen in it."""


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
    MORE = "more"
    """Nothing: something follows the response, so the connection is not used again."""
    LOST = "lost"

    __hash__ = str.__hash__


READING_TRANSITIONS: dict[Reading, dict[str, Reading]] = {
    Reading.BETWEEN: {"begin": Reading.HEAD},
    Reading.HEAD: {"head": Reading.BODY},
    Reading.BODY: {"end": Reading.BETWEEN},
}
"""State → what the parser has found → state. Refusal and loss are possible in each, and final."""

ASKING_TRANSITIONS: dict[Asking, dict[str, Asking]] = {
    Asking.IDLE: {"request": Asking.ASKED, "begin": Asking.MORE},
    Asking.ASKED: {"begin": Asking.HEAD},
    Asking.HEAD: {"head": Asking.BODY, "interim head": Asking.ASKED},
    Asking.BODY: {"chunk": Asking.CHUNK, "end": Asking.IDLE},
    Asking.CHUNK: {"data": Asking.BODY, "end": Asking.IDLE},
}
"""State → what was sent, or what the parser has found → state. Loss is possible in each, and final."""


def read_on(state: Reading, found: str) -> Reading:
    """Return the state after the parser has found something; the same one after a refusal."""
    return READING_TRANSITIONS.get(state, {}).get(found, state)
