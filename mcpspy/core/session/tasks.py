"""Messages about a task: a call whose result comes later.

Tasks are part of the core in 2025-11-25, and an extension in 2026-07-28, which has the result in `tasks/get`. A status
that ends a task, or its result, ends the call that created it.
"""

from __future__ import annotations

from typing import Generic, TypeVar

from msgspec import DecodeError, Raw, Struct, field
from msgspec.json import Decoder

from mcpspy.core.protocol.message import Failure, Notification, Result
from mcpspy.core.recording.decode import Frame
from mcpspy.core.session.exchange import Correlatable, Event, event_of

P = TypeVar("P", bound=Correlatable)

POLLS = frozenset({"tasks/get", "tasks/result", "tasks/cancel", "tasks/update"})
"""Requests about one task."""

REPORTS = frozenset({"notifications/tasks/status", "notifications/tasks"})
"""Notifications about one task, of 2025-11-25 and of 2026-07-28."""

MAX_STATUS_MESSAGE = 200
"""Characters of a task's message that are kept."""


class TaskReport(Struct, gc=False):
    """The members of a task that decide on its call."""

    id: str = field(name="taskId")
    status: str
    message: str | None = field(name="statusMessage", default=None)
    result: Raw = Raw()
    error: Raw = Raw()

    @property
    def event(self) -> Event:
        """The event of the call; progress while the task is open."""
        if self.status == "completed":
            is_error = bytes(self.result) and _read_outcome(self.result).is_error
            return Event.TOOL_ERROR if is_error else Event.RESULT
        if self.status == "failed":
            return Event.FAILURE if bytes(self.error) else Event.TASK_FAILED
        return Event.TASK_CANCELLED if self.status == "cancelled" else Event.PROGRESS

    def reason(self, frame: Frame) -> str | None:
        """Return why the task is in this state, in words; None if there is no reason."""
        if bytes(self.error):
            return Failure(frame=frame, data=b"", id=None, raw_error=self.error).description
        if self.message:
            return " ".join(self.message[:MAX_STATUS_MESSAGE].split())
        return "it waits for input" if self.status == "input_required" else None


class _Outcome(Struct, gc=False):
    is_error: bool = field(name="isError", default=False)


class _Nested(Struct, gc=False):
    task: TaskReport


_decode_report = Decoder(TaskReport).decode
_decode_nested = Decoder(_Nested).decode
_decode_outcome = Decoder(_Outcome).decode


def _read_outcome(raw: Raw) -> _Outcome:
    try:
        return _decode_outcome(raw)
    except (DecodeError, RecursionError):
        return _Outcome()


def read_report(message: Result | Notification) -> TaskReport | None:
    """Read the task in a message: the response to a call, a status, or a notification. None if there is none."""
    try:
        if isinstance(message, Notification):
            return _decode_report(message.raw_params)
        return (
            _decode_nested(message.raw_result).task
            if message.body.task
            else _decode_report(message.raw_result)
        )
    except (DecodeError, UnicodeDecodeError, RecursionError):
        return None


def failure_in(message: Result) -> Failure | None:
    """Return the JSON-RPC error of the task in a message (2026-07-28); None if it has none."""
    report = read_report(message)
    if report is None or not bytes(report.error):
        return None
    return Failure(frame=message.frame, data=b"", id=None, raw_error=report.error)


def event_of_poll(method: str, message: Result | Failure) -> Event | None:
    """Return the effect on the call of a response to a poll without a status; None if there is none."""
    if method == "tasks/result":
        return event_of(message)
    return Event.TASK_CANCELLED if method == "tasks/cancel" and isinstance(message, Result) else None


class TaskChange(Struct, Generic[P], gc=False):
    """The effect of a message on the call that created a task; the call has its new state."""

    call: P
    why: str | None = None
    has_ended: bool = False
    """True if the call is over with this message."""
    is_final: bool = False
    """True if this message has the outcome."""
