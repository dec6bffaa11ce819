"""The states of an exchange over HTTP and of both its connections, as tables.

The diagrams in ARCHITECTURE.md are drawn from them.
"""

from __future__ import annotations

from enum import StrEnum


class State(StrEnum):
    """What an exchange waits for."""

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


class Input(StrEnum):
    """What an event means to an exchange."""

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


_LEAVES = {Input.LEAVE: State.OVER}

_BEGINS = {
    Input.HEADS: State.ANSWERING,
    Input.WHOLE: State.OVER,
    Input.BODY: State.FORWARDING,
    Input.COLLECT: State.COLLECTING,
    Input.EVENTS: State.STREAMING,
    Input.SIFT: State.SIFTING,
    Input.DRAIN: State.DRAINING,
    **_LEAVES,
}
"""From the head of a response to its body."""

_SENDS = {Input.SEND: State.ASKED, Input.UPLOAD: State.UPLOADING}

TRANSITIONS: dict[State, dict[Input, State]] = {
    State.NEW: {
        Input.PART: State.RECEIVING,
        Input.DECIDE: State.DECIDING,
        Input.HEADS: State.ASKING,
        **_SENDS,
        **_LEAVES,
    },
    State.RECEIVING: {
        Input.DECIDE: State.DECIDING,
        Input.HEADS: State.ASKING,
        **_SENDS,
        **_LEAVES,
    },
    State.DECIDING: {
        Input.HEADS: State.ASKING,
        Input.SEND: State.ASKED,
        Input.DROP: State.HELD,
        Input.ANSWER: State.OVER,
        **_LEAVES,
    },
    State.ASKING: {**_SENDS, Input.ANSWER: State.OVER, **_LEAVES},
    State.UPLOADING: {
        Input.SEND: State.ASKED,
        Input.HEAD: State.HEADED,
        **{each: state for each, state in _BEGINS.items() if each is not Input.DRAIN},
        Input.FAIL: State.OVER,
        Input.LOSE: State.UNREACHABLE,
    },
    State.ASKED: {Input.HEAD: State.HEADED, **_BEGINS, Input.FAIL: State.OVER},
    State.HEADED: {**_BEGINS},
    State.ANSWERING: {
        each: state for each, state in _BEGINS.items() if each not in (Input.HEADS, Input.WHOLE)
    },
    State.FORWARDING: {Input.END: State.OVER, Input.FAIL: State.OVER, **_LEAVES},
    State.COLLECTING: {
        Input.BODY: State.FORWARDING,
        Input.DECIDE: State.JUDGING,
        Input.END: State.OVER,
        Input.DRAIN: State.DRAINING,
        Input.FAIL: State.OVER,
        **_LEAVES,
    },
    State.JUDGING: {
        Input.END: State.OVER,
        Input.DROP: State.HELD,
        Input.ANSWER: State.OVER,
        **_LEAVES,
    },
    State.STREAMING: {
        Input.SIFT: State.SIFTING,
        Input.END: State.OVER,
        Input.FAIL: State.OVER,
        **_LEAVES,
    },
    State.SIFTING: {
        Input.END: State.OVER,
        Input.DRAIN: State.DRAINING,
        Input.FAIL: State.OVER,
        **_LEAVES,
    },
    State.UNREACHABLE: {Input.FAIL: State.OVER, **_LEAVES},
    State.HELD: {Input.ANSWER: State.OVER, **_LEAVES},
    State.DRAINING: {Input.END: State.OVER, **_LEAVES},
}
"""State → what an event means → state. What a state does not list cannot happen in it."""
