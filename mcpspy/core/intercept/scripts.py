"""Messages that wait for the script process: which it gets, and in which order they continue.

The script process decides on up to WINDOW messages at a time, in any order. A decision takes effect after those on
all earlier messages of its direction (over HTTP, of its exchange and direction). A script that fails releases its
messages unchanged.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import TypeAlias

from msgspec import Struct

from mcpspy.core.intercept.actions import (
    AddNote,
    Fields,
    Notify,
    Step,
    StepReceiver,
    rule_note,
    text_field,
)
from mcpspy.core.intercept.commands import DecideCommand, ScriptDecision
from mcpspy.core.intercept.heads import HttpHead
from mcpspy.core.intercept.held import InFlightMessage, MessagePart
from mcpspy.core.intercept.requests import about, answer, completed
from mcpspy.core.protocol.message import AnyMessage, Failure, Notification, Request, Result

WINDOW = 100
"""Maximum number of messages that the script process has at a time."""

START_TIMEOUT = 30.0
"""Seconds in which the script process must have loaded the scripts."""

START_CHECK = 0.2
"""Seconds after which the caller looks whether a process that has not loaded the scripts is still running."""

GRACE = 0.5
"""Seconds beyond the time limit of hooks after which a process that decides on nothing is considered hanging."""

Waiter: TypeAlias = InFlightMessage | HttpHead

Lane: TypeAlias = tuple[str, StepReceiver | None]
"""Side and HTTP exchange."""


class _Waiting(Struct, eq=False):
    flight: Waiter
    lane: Lane
    size: int
    decisions: list[ScriptDecision] | None = None
    """None before the decision."""


class ScriptQueue:
    """The messages of one session that wait for the script process."""

    def __init__(self, names: list[str], token: str) -> None:
        """`token` is the secret by which the script process is recognised among the viewers."""
        self.names = names
        self.token = token
        self.viewer = ""
        """Name of the script process among the viewers; empty while it is not connected."""
        self.hooks: frozenset[str] | None = None
        """None until the scripts are loaded; messages wait until then."""
        self.is_active = True
        """False once the scripts have failed for good."""
        self._timeout = 0.0
        self._since: float | None = None
        """Time since which the process owes a decision, or its start."""
        self._checked_at = 0.0
        self._lanes: dict[Lane, deque[_Waiting]] = {}
        self._decided: dict[Lane, None] = {}
        """Keys of `_lanes` under which `released` may find something."""
        self._sizes: dict[str, tuple[int, int]] = {}
        """Number and bytes of the waiting messages of each side."""
        self._asked: dict[int, _Waiting] = {}
        self._unasked: deque[_Waiting] = deque()

    @property
    def next_at(self) -> float | None:
        """Time at which the process is considered hanging, or must be checked; None if it owes nothing."""
        if self._since is None or not self.is_active:
            return None
        return self._checked_at + START_CHECK if self.hooks is None else self._since + self._timeout + GRACE

    def is_starting(self, at: float) -> bool:
        """Return whether the process may still load the scripts, if it runs. `next_at` becomes the next check."""
        self._checked_at = at
        return self.hooks is None and self._since is not None and at < self._since + START_TIMEOUT

    def waiting(self, side: str) -> tuple[int, int]:
        """Return the number and the bytes of the messages of a side that wait."""
        return self._sizes.get(side, (0, 0))

    def started(self, at: float) -> None:
        """Start the time limit of a new process."""
        self.viewer, self.hooks = "", None
        self._since = self._checked_at = at

    def takes_heads(self, hook: str) -> bool:
        """Return True if HTTP heads have to wait for this hook."""
        return self.is_active and (self.hooks is None or hook in self.hooks)

    def add(self, flight: Waiter, at: float) -> list[Step] | None:
        """Add a message, and return the events for the script process.

        Return None for a message that need not wait: neither for a hook nor for earlier messages.
        """
        if not self.is_active:
            return None
        lane, is_wanted = (flight.side, flight.exchange), self._wants(flight)
        queue = self._lanes.get(lane)
        if queue is None:
            if not is_wanted:
                return None
            queue = self._lanes[lane] = deque()
        waiting = _Waiting(flight, lane, flight.size)
        queue.append(waiting)
        self._count(waiting, 1)
        if not is_wanted:
            waiting.decisions = []
            return []
        self._unasked.append(waiting)
        return self.ask(at)

    def ready(self, hooks: frozenset[str], timeout: float) -> None:
        """Set the hooks of the loaded scripts. The caller continues with `ask` and `released`."""
        self.hooks, self._timeout = hooks, timeout
        if not self._asked:
            self._since = None
        unasked, self._unasked = self._unasked, deque()
        self._decided.update(dict.fromkeys(self._lanes))
        for waiting in unasked:
            if self._wants(waiting.flight):
                self._unasked.append(waiting)
            else:
                waiting.decisions = []

    def ask(self, at: float) -> list[Step]:
        """Return the events for the messages that the script process gets next."""
        steps: list[Step] = []
        while self.hooks is not None and self._unasked and len(self._asked) < WINDOW:
            waiting = self._unasked.popleft()
            if not self._asked:
                self._since = at
            self._asked[waiting.flight.ticket] = waiting
            steps.append(Notify(self.viewer, _event(waiting.flight)))
        return steps

    def decide(self, at: float, command: DecideCommand) -> None:
        """Keep a decision. The message is unknown if its exchange has ended."""
        waiting = self._asked.pop(command.ticket, None)
        if waiting is not None:
            waiting.decisions = command.decisions
            self._decided[waiting.lane] = None
            self._since = at if self._asked else None

    def fail(self, *, is_final: bool) -> int:
        """Release what the process has, after its failure; return the number of messages."""
        released = [*self._asked.values(), *(self._unasked if is_final else ())]
        for waiting in released:
            waiting.decisions = []
            self._decided[waiting.lane] = None
        self._asked.clear()
        if is_final:
            self._unasked.clear()
            self.is_active = False
        return len(released)

    def released(self) -> Iterator[tuple[Waiter, list[ScriptDecision]]]:
        """Remove and yield the messages that continue, in order, with the decisions on them."""
        decided, self._decided = self._decided, {}
        for lane in decided:
            queue = self._lanes.get(lane)
            if queue is None:
                continue
            while queue and queue[0].decisions is not None:
                waiting = queue.popleft()
                self._count(waiting, -1)
                yield waiting.flight, waiting.decisions or []
            if not queue:
                del self._lanes[lane]

    def forget(self, flight: Waiter) -> None:
        """Remove a message whose decision is not awaited any more."""
        queue = self._lanes.get((flight.side, flight.exchange))
        waiting = next((each for each in queue or () if each.flight is flight), None)
        if queue is None or waiting is None:
            return
        queue.remove(waiting)
        self._count(waiting, -1)
        self._decided[waiting.lane] = None
        if not queue:
            del self._lanes[waiting.lane]
        if waiting in self._unasked:
            self._unasked.remove(waiting)
        if self._asked.pop(flight.ticket, None) is not None and not self._asked:
            self._since = None

    def failure_note(self, why: str, released: int, script: str = "") -> AddNote:
        """Return the note of a failure of one script, or of all."""
        name = script or ", ".join(self.names)
        return rule_note("script", {"script": name, "failed": why, "released": released})

    def _count(self, waiting: _Waiting, change: int) -> None:
        side = waiting.lane[0]
        number, size = self._sizes.get(side, (0, 0))
        self._sizes[side] = number + change, size + change * waiting.size

    def _wants(self, flight: Waiter) -> bool:
        hooks = self.hooks
        if hooks is None:
            return True
        if isinstance(flight, HttpHead):
            return flight.hook in hooks
        return any(_hook(part.message) in hooks for part in flight.parts)


def apply(flight: InFlightMessage, part: MessagePart, decision: ScriptDecision) -> list[Step]:
    """Apply a decision to a part of a message; return its notes."""
    message, rule_decision = part.message, part.decision
    name = {"script": decision.script}
    notes = decision.own_notes
    if decision.data is not None:
        rule_decision.data = decision.data
        notes.append(("replace", text_field("sent", decision.data)))
    if decision.delay:
        rule_decision.delay = decision.delay
        notes.append(("delay", {"seconds": decision.delay}))
    if decision.is_dropped:
        part.is_removed = True
        notes.append(("drop", {}))
    elif decision.member and isinstance(message, Request):
        part.is_removed = True
        is_result = decision.member == b"result"
        value = completed(message, decision.value) if is_result else decision.value
        rule_decision.answer = answer(message.id, decision.member, value)
        action = "respond" if is_result else "error"
        notes.append((action, text_field("sent", rule_decision.answer)))
    elif decision.is_held:
        rule_decision.holder, rule_decision.holder_kind = decision.script, "script"
    about_it = about(message, part.request)
    return [rule_note(action, name | about_it | fields, flight.exchange) for action, fields in notes]


def _hook(message: AnyMessage) -> str:
    if isinstance(message, Request):
        return "request"
    if isinstance(message, Result | Failure):
        return "response"
    return "notification" if isinstance(message, Notification) else ""


def _event(flight: Waiter) -> Fields:
    """Return the event with a head, or with a message and the request of each response."""
    if isinstance(flight, HttpHead):
        return flight.event()
    event: Fields = {"event": "message", "ticket": flight.ticket, "at": flight.at, "from": flight.side}
    event |= text_field("text", flight.outgoing() or flight.data, "b64")
    if flight.stream is not None:
        event["stream"] = flight.stream
    requests = [
        {"at": part.request.at, **text_field("text", part.request.data, "b64")}
        if part.request is not None and isinstance(part.message, Result | Failure)
        else None
        for part in flight.parts
    ]
    return event | {"requests": requests} if any(requests) else event
