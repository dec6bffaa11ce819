"""A message on its way, as a filter sees it.

Owns what can be asked of a message before it is known what becomes of it: an
answer has the method and subject of its request, if that was seen, and the
time it took. What the fields mean is `core.query`'s.
"""

from __future__ import annotations

from mcpspy.core.exchange import TRANSITIONS, State
from mcpspy.core.intercept.waiting import Asked
from mcpspy.core.message import AnyMessage, Failure, Malformed, Notification, Request, Result
from mcpspy.core.session import event_of

_KINDS = {
    Request: "request",
    Notification: "notification",
    Result: "result",
    Failure: "error",
    Malformed: "malformed",
}


class LiveItem:
    """One message, and what is known of the request that it answers."""

    __slots__ = ("_asked", "_message")

    def __init__(self, message: AnyMessage, asked: Asked | None) -> None:
        self._message = message
        self._asked = asked

    @property
    def at(self) -> float:
        """Seconds since the start."""
        return self._message.at

    @property
    def side(self) -> str:
        """Who sent it."""
        return self._message.side

    @property
    def kind(self) -> str:
        """What it is."""
        return _KINDS[type(self._message)]

    @property
    def method(self) -> str:
        """Of an answer, that of its request."""
        message = self._message
        if isinstance(message, Request | Notification):
            return message.method
        return self._asked.method if self._asked is not None else ""

    @property
    def subject(self) -> str:
        """Which tool, resource, prompt …"""
        message = self._message
        if isinstance(message, Request | Notification):
            return message.subject or ""
        return self._asked.subject if self._asked is not None else ""

    @property
    def id(self) -> str:
        """The id's JSON text."""
        message = self._message
        return (message.id if isinstance(message, Request | Result | Failure) else None) or ""

    @property
    def status(self) -> str:
        """What a request becomes by this answer; of a request, that it waits."""
        message = self._message
        if isinstance(message, Request):
            return State.PENDING.value
        if isinstance(message, Result | Failure):
            return TRANSITIONS[State.PENDING][event_of(message)].value
        return ""

    @property
    def latency(self) -> float | None:
        """Seconds from the request to this answer."""
        return self._message.at - self._asked.at if self._asked is not None else None

    @property
    def size(self) -> int:
        """Bytes."""
        return len(self._message.data)

    @property
    def stream(self) -> str:
        """HTTP: the session it belongs to."""
        return self._message.frame.stream or ""

    @property
    def odd(self) -> bool:
        """Whether it breaks a rule."""
        return isinstance(self._message, Malformed) or bool(self._message.flaws)

    @property
    def error_code(self) -> int | None:
        """The code of a JSON-RPC error."""
        return self._message.code if isinstance(self._message, Failure) else None

    def text(self) -> bytes:
        """Return its own bytes."""
        return self._message.data

    def message(self, member: str) -> bytes:
        """Return the bytes of the message that has `params`, of an answer its request's; or `result`, or `error`."""
        message = self._message
        if member == "params":
            if isinstance(message, Request | Notification):
                return message.data
            return self._asked.data if self._asked is not None else b""
        return message.data if isinstance(message, Result if member == "result" else Failure) else b""
