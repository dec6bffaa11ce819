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
    """The outcome of a request. `core.session.outcome` has the meaning of each."""

    PENDING = "pending"
    OK = "ok"
    TOOL_ERROR = "tool error"
    ERROR = "error"
    INPUT_REQUIRED = "input required"
    """Answered by a question (2026-07-28): the same request is sent again, with the answer."""
    CANCELLED = "cancelled"
    LATE_OK = "answered late"
    """Answered after its cancellation, as the next two."""
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
    LATE_TOOL_ERROR = "late tool error"
    LATE_ERROR = "late error"
    WORKING = "working"
    """Answered by a task that has not ended."""
    TASK_FAILED = "task failed"
    """Its task failed, and neither an error nor a result gives the reason."""
    UNFINISHED = "task not finished"
    """Its task had not ended when the session did."""
    REDIRECTED = "redirected"
    """Its HTTP exchange ended with a redirect that no one has followed: if it is sent again, it continues."""
    INCOMPLETE = "incomplete"
    """Its response was begun and never completed."""
    NOT_CONTINUED = "not continued"
    """Answered by a question that no one had answered when the session ended."""

    __hash__ = str.__hash__  # Enum's own method is Python code, and is called twice per message.


class Event(StrEnum):
    PROGRESS = "progress"
    RESULT = "result"
    TOOL_ERROR = "tool error"
    QUESTION = "question"
    FAILURE = "failure"
    TASK = "task"
    TASK_FAILED = "failure of its task"
    TASK_CANCELLED = "cancellation of its task"
    CANCEL = "cancel"
    CLOSE = "close"
    REFUSE = "refusal"
    REDIRECT = "redirect"
    REPEAT = "repetition elsewhere"
    TEAR = "incomplete response"
    DROP = "drop"
    ABANDON = "loss of its sender"
    LOSS = "loss of entries"
    END = "end of session"

    __hash__ = str.__hash__


_RESPONSE = {
    Event.RESULT: State.OK,
    Event.TOOL_ERROR: State.TOOL_ERROR,
    Event.QUESTION: State.INPUT_REQUIRED,
    Event.FAILURE: State.ERROR,
}

TRANSITIONS: dict[State, dict[Event, State]] = {
    State.PENDING: {
        Event.PROGRESS: State.PENDING,
        **_RESPONSE,
        Event.TASK: State.WORKING,
        Event.CANCEL: State.CANCELLED,
        Event.CLOSE: State.CLOSED,
        Event.REFUSE: State.REFUSED,
        Event.REDIRECT: State.REDIRECTED,
        Event.TEAR: State.INCOMPLETE,
        Event.DROP: State.DROPPED,
        Event.ABANDON: State.ABANDONED,
        Event.LOSS: State.UNKNOWN,
        Event.END: State.UNANSWERED,
    },
    State.UNKNOWN: {
        Event.PROGRESS: State.UNKNOWN,
        **_RESPONSE,
        Event.TASK: State.WORKING,
        Event.TASK_FAILED: State.TASK_FAILED,
        Event.TASK_CANCELLED: State.CANCELLED,
        Event.CANCEL: State.CANCELLED,
        Event.REFUSE: State.REFUSED,
        Event.REDIRECT: State.REDIRECTED,
        Event.TEAR: State.INCOMPLETE,
    },
    State.DROPPED: _RESPONSE,  # mcpspy responds if it has a timeout for calls.
    State.CANCELLED: {
        Event.PROGRESS: State.CANCELLED,
        Event.RESULT: State.LATE_OK,
        Event.TOOL_ERROR: State.LATE_TOOL_ERROR,
        Event.QUESTION: State.LATE_OK,
        Event.FAILURE: State.LATE_ERROR,
        Event.TASK: State.LATE_OK,
        Event.TEAR: State.INCOMPLETE,  # Why its sender gave up.
    },
    State.REFUSED: {Event.REPEAT: State.PENDING},  # mcpspy translates it for the server.
    State.REDIRECTED: {
        Event.REPEAT: State.PENDING,
        **_RESPONSE,
        Event.LOSS: State.UNKNOWN,
    },
    State.INCOMPLETE: {  # A client may resume the stream, and receive the whole response (2025-03-26).
        Event.PROGRESS: State.INCOMPLETE,
        **_RESPONSE,
        Event.TASK: State.WORKING,
    },
    State.INPUT_REQUIRED: {Event.END: State.NOT_CONTINUED},
    State.WORKING: {
        Event.PROGRESS: State.WORKING,
        Event.RESULT: State.OK,
        Event.TOOL_ERROR: State.TOOL_ERROR,
        Event.FAILURE: State.ERROR,
        Event.TASK_FAILED: State.TASK_FAILED,
        Event.TASK_CANCELLED: State.CANCELLED,
        Event.LOSS: State.UNKNOWN,
        Event.END: State.UNFINISHED,
    },
    # The status of a task may come before its result (2025-11-25, `tasks/result`), which has more.
    State.OK: {Event.TOOL_ERROR: State.TOOL_ERROR},
    State.TASK_FAILED: {Event.TOOL_ERROR: State.TOOL_ERROR, Event.FAILURE: State.ERROR},
}
"""State → event → state. An event that a state does not list leaves it unchanged."""


# Reading a member of an Enum runs Python code; reading a name does not.
_PENDING, _OK, _WORKING, _QUESTION = State.PENDING, State.OK, State.WORKING, State.INPUT_REQUIRED

_FROM_PENDING = TRANSITIONS[_PENDING]

MAY_CHANGE = frozenset(
    {
        *(State.PENDING, State.CANCELLED, State.UNKNOWN, State.DROPPED),
        *(State.REDIRECTED, State.INCOMPLETE, State.WORKING, State.TASK_FAILED),
    }
)
"""States that a message after them may still change."""


_INPUT_REQUIRED = Raw(b'"input_required"')


def event_of(message: Result | Failure) -> Event:
    if isinstance(message, Failure):
        return Event.FAILURE
    if message.is_tool_error:
        return Event.TOOL_ERROR
    if message.body.task or message.body.result_type:
        if message.is_task:
            return Event.TASK
        if message.body.result_type == _INPUT_REQUIRED:
            return Event.QUESTION
    return Event.RESULT


def outcome_of(message: Result | Failure) -> State:
    """Return the outcome that a response reports, whatever became of its request."""
    return _FROM_PENDING[event_of(message)]


class Correlatable(Protocol):
    state: State

    @property
    def poll_of(self) -> Correlatable | None:
        """The call whose task it is about."""

    @property
    def is_subscription(self) -> bool:
        """True if it stays open by design (`subscriptions/listen`, 2026-07-28)."""

    @property
    def is_modern(self) -> bool:
        """True if it names a revision without a handshake: clients of both kinds may share a proxy."""

    @property
    def is_counted(self) -> bool:
        """False if its outcome does not count: a viewer sent it, or it polls a task."""


def transition(request: Correlatable, event: Event) -> bool:
    """Move a request to its next state; return False if the event changes nothing."""
    state = request.state
    following = _FROM_PENDING.get(event) if state is _PENDING else TRANSITIONS.get(state, {}).get(event)
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
    why: str = ""
    """The reason for its state: `HTTP 401`, `by the client after 2.50 s` … (`core.session.outcome`)."""
    redirect: str = ""
    """The redirect after which it was sent again: `307 → /mcp/`."""
    is_task: bool = False
    """True if the response is a task: the outcome is that of the task."""
    polls: list[Exchange] = field(default_factory=list)
    """The requests about its task."""
    poll_of: Exchange | None = None
    """The call whose task this request is about."""
    is_injected: bool = False
    """True if it is none of the client and the server (`Correlation.is_injected`)."""
    final: Result | Failure | None = None
    """The message with the outcome of its task, if a message other than a status has it."""
    ended_at: float | None = None
    """The time at which its task ended, in seconds since the start of the session."""

    @property
    def is_open(self) -> bool:
        """True while the response, or the end of its task, is pending."""
        return self.state is _PENDING or self.state is _WORKING

    @property
    def may_change(self) -> bool:
        """True if a later message, or the end of the session, may change its outcome."""
        if self.state is _QUESTION:
            return self.continued_by is None
        if self.state is _OK:  # The result of a task may be an error of the tool.
            return self.is_task and self.final is None
        return self.state in MAY_CHANGE

    @property
    def is_counted(self) -> bool:
        return self.poll_of is None and not self.is_injected

    @property
    def is_subscription(self) -> bool:
        return self.request.method == SUBSCRIBE

    @property
    def is_modern(self) -> bool:
        return (self.request.revision or "") >= MODERN

    @property
    def latency(self) -> float | None:
        """Seconds from request to response, or to the end of its task.

        None while there is none, or if mcpspy sent or answered the request.
        """
        if self.answer is None or self.state in (State.WORKING, State.UNFINISHED):
            return None
        return self.latency_at(self.answer.at if self.ended_at is None else self.ended_at)

    def latency_at(self, at: float) -> float | None:
        """Return the latency of a response at this time: without the time for which mcpspy held the request."""
        return None if self.request.frame.is_ours else latency_without_hold(at - self.request.at, self.held)


def latency_without_hold(seconds: float, held: float | None) -> float:
    """Return a latency without the time for which mcpspy held or delayed the request.

    Both are rounded to microseconds, and a delay is noted as it was configured. So the difference may be below zero if
    mcpspy answers when it releases the request.
    """
    return max(seconds - held, 0.0) if held else seconds


SUBSCRIBE = "subscriptions/listen"
