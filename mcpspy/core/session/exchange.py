"""A request and its outcome.

Owns the states and their transitions, as a table; the diagram in ARCHITECTURE.md is drawn from it.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Protocol

from msgspec import Raw, Struct, field

from mcpspy.core.protocol.message import Failure, Notification, Request, Result
from mcpspy.core.protocol.spec import MODERN


class State(StrEnum):
    PENDING = "pending"
    OK = "ok"
    TOOL_ERROR = "tool error"
    ERROR = "error"
    INPUT_REQUIRED = "input required"
    """Answered by a question (2026-07-28): the same request is sent again, with the answer."""
    CANCELLED = "cancelled"
    LATE = "answered late"
    CLOSED = "closed"
    """A subscription that ended without a response, which is allowed."""
    REFUSED = "refused"
    """Its HTTP exchange ended with an error status and no message."""
    DROPPED = "dropped"
    """Not forwarded: a rule or a viewer dropped it, or disconnected its sender."""
    ABANDONED = "abandoned"
    """Not forwarded: its sender disconnected while mcpspy held it."""
    UNANSWERED = "no answer"
    UNKNOWN = "unknown"
    """Entries after it were not recorded (`lost`): its response may be among them."""

    __hash__ = str.__hash__  # Enum's own method is Python code, and is called twice per message.


class Event(StrEnum):
    PROGRESS = "progress"
    RESULT = "result"
    TOOL_ERROR = "tool error"
    QUESTION = "question"
    FAILURE = "failure"
    CANCEL = "cancel"
    CLOSE = "close"
    REFUSE = "refusal"
    DROP = "drop"
    ABANDON = "loss of its sender"
    LOSS = "loss of entries"
    END = "end of session"

    __hash__ = str.__hash__


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
        Event.DROP: State.DROPPED,
        Event.ABANDON: State.ABANDONED,
        Event.LOSS: State.UNKNOWN,
        Event.END: State.UNANSWERED,
    },
    State.UNKNOWN: {
        Event.PROGRESS: State.UNKNOWN,
        Event.RESULT: State.OK,
        Event.TOOL_ERROR: State.TOOL_ERROR,
        Event.QUESTION: State.INPUT_REQUIRED,
        Event.FAILURE: State.ERROR,
        Event.CANCEL: State.CANCELLED,
        Event.REFUSE: State.REFUSED,
    },
    State.DROPPED: {  # mcpspy responds if it has a timeout for calls.
        Event.RESULT: State.OK,
        Event.TOOL_ERROR: State.TOOL_ERROR,
        Event.QUESTION: State.INPUT_REQUIRED,
        Event.FAILURE: State.ERROR,
    },
    State.CANCELLED: {
        Event.PROGRESS: State.CANCELLED,
        Event.RESULT: State.LATE,
        Event.TOOL_ERROR: State.LATE,
        Event.QUESTION: State.LATE,
        Event.FAILURE: State.LATE,
    },
}
"""State → event → state. An event that a state does not list leaves it unchanged."""


_FROM_PENDING = TRANSITIONS[State.PENDING]

MAY_CHANGE = frozenset({State.PENDING, State.CANCELLED, State.UNKNOWN, State.DROPPED})
"""States in which a response may still arrive."""

FAILED = frozenset({State.ERROR, State.TOOL_ERROR, State.REFUSED})
"""States of requests that failed."""

NOT_FORWARDED = frozenset({State.DROPPED, State.ABANDONED})
"""States of requests that mcpspy kept from their receiver."""

UNANSWERED = NOT_FORWARDED | {State.UNANSWERED}
"""States of requests that got no response, after the end of the session."""


_INPUT_REQUIRED = Raw(b'"input_required"')


def event_of(message: Result | Failure) -> Event:
    if isinstance(message, Failure):
        return Event.FAILURE
    if message.is_tool_error:
        return Event.TOOL_ERROR
    return Event.QUESTION if message.body.result_type == _INPUT_REQUIRED else Event.RESULT


def outcome_of(message: Result | Failure) -> State:
    """Return the outcome that a response reports, whatever became of its request."""
    return _FROM_PENDING[event_of(message)]


class Correlatable(Protocol):
    state: State

    @property
    def is_task(self) -> bool:
        """True if the response was a task: its progress continues after it (2025-11-25, tasks)."""

    @property
    def is_subscription(self) -> bool:
        """True if it stays open by design (`subscriptions/listen`, 2026-07-28)."""

    @property
    def is_modern(self) -> bool:
        """True if it names a revision without a handshake: clients of both kinds may share a proxy."""


def transition(request: Correlatable, event: Event) -> bool:
    """Move a request to its next state; return False if the event changes nothing."""
    state = request.state
    following = _FROM_PENDING.get(event) if state is State.PENDING else TRANSITIONS.get(state, {}).get(event)
    if following is None:
        return False
    request.state = following
    return True


class Exchange(Struct, eq=False):
    """A request and its outcome. Changes only through `Session.add`."""

    number: int
    request: Request
    state: State = State.PENDING
    answer: Result | Failure | None = None
    cancel: Notification | None = None
    progress: list[Notification] = field(default_factory=list)
    """Notifications with its progress token or for its subscription."""
    continues: Exchange | None = None
    """The `input_required` exchange whose question this request answers."""
    continued_by: Exchange | None = None
    flaws: list[str] = field(default_factory=list)
    effects: list[str] = field(default_factory=list)
    """Actions of rules and viewers on its messages (`core.session.rule_notes`)."""
    held: float = 0.0
    """Seconds for which mcpspy held or delayed the request."""

    @property
    def is_open(self) -> bool:
        """True while the response is pending."""
        return self.state is State.PENDING

    @property
    def is_task(self) -> bool:
        return isinstance(self.answer, Result) and self.answer.is_task

    @property
    def is_subscription(self) -> bool:
        return self.request.method == SUBSCRIBE

    @property
    def is_modern(self) -> bool:
        return (self.request.revision or "") >= MODERN

    @property
    def latency(self) -> float | None:
        """Seconds from request to response; None while there is none, or if mcpspy sent or answered the request."""
        return None if self.answer is None else self.latency_at(self.answer.at)

    def latency_at(self, at: float) -> float | None:
        """Return the latency of a response at this time: without the time for which mcpspy held the request."""
        return None if self.request.frame.is_ours else at - self.request.at - self.held


SUBSCRIBE = "subscriptions/listen"
