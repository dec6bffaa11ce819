"""Groups of similar requests or notifications, and their counts.

A group has one side and one method; calls, prompts and resources also one subject.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum

from mcpspy.analysis.stats.quantiles import Distribution
from mcpspy.core.session.exchange import State
from mcpspy.core.session.outcome import FAILED, OUTCOMES, UNANSWERED

BY_SUBJECT = frozenset({"tools/call", "prompts/get", "resources/read"})
"""Methods that are counted by subject: the tool, prompt or resource."""


class GroupKind(StrEnum):
    REQUEST = "request"
    NOTIFICATION = "notification"

    __hash__ = str.__hash__  # The method of Enum is Python code, and is called for every message.


class StateCounts(dict[State, int]):
    """State → number of requests; 0 by default."""

    def __missing__(self, _: State) -> int:
        return 0


class ChainCounts:
    """Calls that took more than one request (2026-07-28, input required)."""

    def __init__(self) -> None:
        self.whole = Distribution()
        """Seconds from the first request to the last response, of each finished call."""
        self.served = 0.0
        """Seconds of it in which the server had a request to answer."""
        self.requests = 0

    def __len__(self) -> int:
        return len(self.whole)


class MessageGroup:
    """Counts of similar requests or notifications."""

    def __init__(self, side: str, kind: GroupKind, method: str, subject: str | None = None) -> None:
        self.side = side
        self.kind = kind
        self.method = method
        """Empty for all methods."""
        self.subject = subject
        """Tool, prompt or resource; None for all, or if the method has none."""
        self.count = 0
        self.states = StateCounts()
        """Requests by outcome; with `apart`, they add up to `count`."""
        self.apart = 0
        """Requests whose outcome does not count: a viewer sent them, they poll a task, or are open subscriptions."""
        self.sent = self.back = 0
        """Bytes of the messages, and of the responses to them."""
        self.took = Distribution()
        """Seconds from request to response, without the time for which mcpspy held the request.

        Subscriptions stay open by design, and a request that mcpspy sent or answered is not the peers': without both.
        """
        self.chains = ChainCounts()

    @property
    def errors(self) -> int:
        """Requests that failed."""
        return sum(self.states[state] for state in FAILED)

    @property
    def unanswered(self) -> int:
        """Requests that got no outcome."""
        return sum(self.states[state] for state in UNANSWERED)

    @property
    def pending(self) -> int:
        """Requests that are open."""
        return sum(count for state, count in self.states.items() if OUTCOMES[state].is_open)


def merged(groups: Iterable[MessageGroup], method: str = "") -> MessageGroup:
    """Return several groups of one side and kind as one. Nothing may be added to them any more."""
    groups = list(groups)
    whole = MessageGroup(groups[0].side, groups[0].kind, method)
    for group in groups:
        whole.count += group.count
        for state, count in group.states.items():
            whole.states[state] += count
        whole.apart += group.apart
        whole.sent += group.sent
        whole.back += group.back
        whole.chains.served += group.chains.served
        whole.chains.requests += group.chains.requests
    whole.took = Distribution.union([group.took for group in groups])
    whole.chains.whole = Distribution.union([group.chains.whole for group in groups])
    return whole
