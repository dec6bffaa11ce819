"""A request, and what became of it.

Owns the states and what leads from one to the next, as a table; the diagram in
ARCHITECTURE.md is drawn from it. Refuses to know where the events come
from: `core.session` pairs, and says what happened.
"""

from __future__ import annotations

from enum import StrEnum

from mcpspy.core.message import Failure, Notification, Request, Result


class State(StrEnum):
    """What a person is told about a request."""

    PENDING = "pending"
    OK = "ok"
    TOOL_ERROR = "tool error"
    """Answered by a result whose `isError` is true."""
    ERROR = "error"
    """Answered by a JSON-RPC error."""
    INPUT_REQUIRED = "input required"
    """Answered by a question (2026-07-28): the same request comes again, with the answer."""
    CANCELLED = "cancelled"
    LATE = "answered late"
    """Answered after it had been cancelled."""
    CLOSED = "closed"
    """A subscription that ended without an answer, as it may."""
    REFUSED = "refused"
    """Its HTTP exchange ended with an error status and no message."""
    UNANSWERED = "no answer"
    """The session ended first."""


class Event(StrEnum):
    """What can happen to a request."""

    PROGRESS = "progress"
    RESULT = "result"
    TOOL_ERROR = "tool error"
    QUESTION = "question"
    FAILURE = "failure"
    CANCEL = "cancel"
    CLOSE = "close"
    REFUSE = "refusal"
    END = "end of session"


TRANSITIONS: dict[State, dict[Event, State]] = {
    State.PENDING: {
        Event.PROGRESS: State.PENDING,
        Event.RESULT: State.OK,
        Event.TOOL_ERROR: State.TOOL_ERROR,
        Event.QUESTION: State.INPUT_REQUIRED,
        Event.FAILURE: State.ERROR,
        Event.CANCEL: State.CANCELLED,
        Event.CLOSE: State.CLOSED,
        Event.REFUSE: State.REFUSED,
        Event.END: State.UNANSWERED,
    },
    State.CANCELLED: {
        Event.PROGRESS: State.CANCELLED,
        Event.RESULT: State.LATE,
        Event.TOOL_ERROR: State.LATE,
        Event.QUESTION: State.LATE,
        Event.FAILURE: State.LATE,
    },
}
"""State → event → state. An event that a state does not list leaves it as it is: the answer stands."""


class Exchange:
    """A request and what became of it. Changes only through `Session.add`."""

    __slots__ = (
        "answer",
        "cancel",
        "continued_by",
        "continues",
        "flaws",
        "number",
        "progress",
        "request",
        "state",
    )

    def __init__(self, number: int, request: Request) -> None:
        self.number = number
        """Place among the session's exchanges, from 0."""
        self.request = request
        self.state = State.PENDING
        self.answer: Result | Failure | None = None
        self.cancel: Notification | None = None
        self.progress: list[Notification] = []
        """What came under its progress token, or its subscription."""
        self.continues: Exchange | None = None
        """The `input_required` exchange whose question this request answers."""
        self.continued_by: Exchange | None = None
        self.flaws: list[str] = []

    def happen(self, event: Event) -> bool:
        """Move to the next state; False if the event changes nothing any more."""
        following = TRANSITIONS.get(self.state, {}).get(event)
        if following is None:
            return False
        self.state = following
        return True

    @property
    def is_open(self) -> bool:
        """Whether its answer is still to come."""
        return self.state is State.PENDING

    @property
    def is_subscription(self) -> bool:
        """Whether it stays open by design (`subscriptions/listen`, 2026-07-28): hours are not too long."""
        return self.request.method == "subscriptions/listen"

    @property
    def latency(self) -> float | None:
        """Seconds from request to answer; None while there is none."""
        return None if self.answer is None else self.answer.at - self.request.at
