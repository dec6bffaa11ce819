"""Counts of calls and notifications with a known outcome: groups, and the largest messages.

Owns the filter, and the limit on groups: a session that reads a million resources is counted in one line.
"""

from __future__ import annotations

from heapq import heappush, heappushpop
from typing import NamedTuple

from msgspec import Struct

from mcpspy.analysis.stats.group import BY_SUBJECT, GroupKind, MessageGroup, merged
from mcpspy.core.protocol.message import AnyMessage, Notification
from mcpspy.core.protocol.spec import CLIENT, SERVER, other
from mcpspy.core.query.item import ExchangeItem
from mcpspy.core.query.parser import Query
from mcpspy.core.session.exchange import State, latency_without_hold
from mcpspy.core.session.outcome import filter_status

MOST = 2000
"""Maximum number of groups; beyond it, new keys are counted in a common group of their kind."""

_Key = tuple[str, str, str | None]
"""Sender, method, subject."""


class InputChain(Struct, gc=False, eq=False):
    """A call that has taken more than one request so far (2026-07-28, input required)."""

    begun: float
    requests: int = 0
    served: float = 0.0


class StatsCall(Struct, gc=False, eq=False):
    """A request of the collector's correlation."""

    at: float
    size: int
    line: int
    """Index among the lines of the recording."""
    id: str
    method: str
    group: MessageGroup
    subject: str = ""
    stream: str | None = None
    is_subscription: bool = False
    is_modern: bool = False
    is_injected: bool = False
    state: State = State.PENDING
    is_out: bool = False
    """True if no one waits for it any longer, although a response may still arrive; or if it is held."""
    held: float | None = 0.0
    """Seconds for which mcpspy held it. None if it has no latency: a subscription, or if mcpspy sent or answered it."""
    chain: InputChain | None = None
    has_issue: bool = False
    is_batch: bool = False
    data: bytes = b""
    poll_of: StatsCall | None = None
    answer: StatsAnswer | None = None
    """The response, if it was a task or a question: it is not the outcome."""
    is_settled: bool = False
    """True if it is counted in `group`."""

    @property
    def is_counted(self) -> bool:
        return self.poll_of is None and not self.is_injected


class StatsAnswer(Struct, gc=False, eq=False):
    """The response to a call."""

    at: float
    size: int
    line: int
    is_failure: bool = False
    is_error: bool = False
    """True for a failure, and for the error of a tool."""
    code: int | None = None
    has_issue: bool = False
    data: bytes = b""


def call_item(call: StatsCall, answer: StatsAnswer | None) -> ExchangeItem:
    """Return a call as a filter item: a request with the properties of its response."""
    item = ExchangeItem(
        at=call.at,
        side=call.group.side,
        kind="request",
        method=call.method,
        subject=call.subject,
        size=call.size,
        stream=call.stream or "",
        has_issue=call.has_issue,
        data=call.data,
        id=call.id,
        status=filter_status(call.state, is_counted=call.is_counted),
        is_batch=call.is_batch,
    )
    if answer is not None:
        item.size += answer.size
        if call.held is not None or call.is_subscription:
            item.latency = latency_without_hold(answer.at - call.at, call.held)
        item.has_issue |= answer.has_issue
        item.error_code = answer.code
        item.answer = answer.data
        if answer.is_failure:
            item.answer_member = "error"
    return item


def count_unanswered(group: MessageGroup, call: StatsCall) -> None:
    """Count a request without an outcome."""
    group.count += 1
    if call.is_counted and not (call.is_subscription and call.state is State.PENDING):
        group.states[call.state] += 1
    else:
        group.apart += 1
    group.sent += call.size
    group.back += 0 if call.answer is None else call.answer.size


class LargeMessage(NamedTuple):
    """One of the largest messages."""

    size: int
    order: int
    """Negative line, so that of two equal sizes the earlier one ranks higher."""
    line: int
    at: float
    side: str
    kind: str
    """`request`, `notification`, `result`, `error`, `malformed`."""
    method: str = ""
    subject: str = ""
    id: str = ""


class MessageGroups:
    """Groups by sender, kind, method and subject, and the largest messages."""

    def __init__(self, top: int) -> None:
        self._requests: dict[_Key, MessageGroup] = {}
        self._notifications: dict[_Key, MessageGroup] = {}
        self._top = top
        self._largest: list[LargeMessage] = []
        self.least = 0 if top else 1 << 62
        """Messages up to this size are not among the largest."""

    def requests(self, side: str, method: str, subject: str) -> MessageGroup:
        """Return the group of a request; the subject only counts for methods in `BY_SUBJECT`."""
        key = side, method, subject if method in BY_SUBJECT else None
        return self._requests.get(key) or self._new(GroupKind.REQUEST, key)

    def notifications(self, side: str, method: str) -> MessageGroup:
        key = side, method, None
        return self._notifications.get(key) or self._new(GroupKind.NOTIFICATION, key)

    def of(self, side: str, kind: GroupKind) -> list[MessageGroup]:
        return [group for group in self._known(kind).values() if group.side == side]

    def total(self, side: str) -> MessageGroup:
        """Return all requests of one side as one group."""
        return merged([MessageGroup(side, GroupKind.REQUEST, ""), *self.of(side, GroupKind.REQUEST)])

    @property
    def all(self) -> list[MessageGroup]:
        """All groups with a count, the client's first."""
        return [
            group
            for side in (CLIENT, SERVER)
            for kind in GroupKind
            for group in self.of(side, kind)
            if group.count
        ]

    @property
    def largest(self) -> list[LargeMessage]:
        return sorted(self._largest, reverse=True)

    def add_large(self, large: LargeMessage) -> None:
        if len(self._largest) < self._top:
            heappush(self._largest, large)
        else:
            heappushpop(self._largest, large)
        if len(self._largest) == self._top:
            self.least = self._largest[0].size

    def _known(self, kind: GroupKind) -> dict[_Key, MessageGroup]:
        return self._requests if kind is GroupKind.REQUEST else self._notifications

    def _new(self, kind: GroupKind, key: _Key) -> MessageGroup:
        """Return a new group, or a common one if there are too many."""
        known = self._known(kind)
        side, method, about = key
        if len(self._requests) + len(self._notifications) >= MOST:
            key = side, method if (side, method, None) in known else "", None
            if about is not None and any(of[:2] == (side, method) for of in known):
                key = side, method, None
            if key in known:
                return known[key]
        side, method, about = key
        group = known[key] = MessageGroup(side, kind, method, about)
        return group


class StatsTables:
    """The groups of a session, limited to the matches of a filter."""

    def __init__(self, query: Query | None, top: int) -> None:
        self.groups = MessageGroups(top)
        self.matches = query.matches if query is not None else None
        self.reads_text = query is not None and query.reads_text
        """True if the filter reads the bytes of the messages."""

    def __getstate__(self) -> dict[str, object]:
        return {**vars(self), "matches": None}  # Functions cannot be pickled: the copy is for reading.

    def settled(self, call: StatsCall, answer: StatsAnswer | None) -> None:
        """Count a request with a known outcome, if it matches."""
        if self.matches is not None and not self.matches(call_item(call, answer)):
            return
        if answer is not None:
            call.is_settled = True
            self.answered(call, answer.at, answer.size, answer.line, is_failure=answer.is_failure)
            return
        call.is_settled = True
        count_unanswered(call.group, call)
        if call.size > self.groups.least:
            self._add_large_request(call)

    def restated(self, call: StatsCall, before: State) -> None:
        """Count a settled request by its new state."""
        if call.is_settled and call.is_counted:
            call.group.states[before] -= 1
            call.group.states[call.state] += 1
        elif call.state is State.NOT_CONTINUED and self.matches is not None:
            call.chain = None
            self.settled(call, call.answer)  # The filter may have refused the question, but not this outcome.

    def answered(self, call: StatsCall, at: float, size: int, line: int, *, is_failure: bool = False) -> None:
        """Count a matching request, and its response."""
        group, state, groups = call.group, call.state, self.groups
        group.count += 1
        if call.is_counted:
            group.states[state] += 1
        else:
            group.apart += 1
        group.sent += call.size
        group.back += size
        took, held = at - call.at, call.held
        if held is not None:
            took -= held
            group.took.add(took if took > 0.0 else 0.0)  # noqa: FURB136 - a call of max() for every answer.
        if call.chain is not None:
            group.chains.whole.add(max(at - call.chain.begun, 0.0))
            group.chains.served += call.chain.served + max(took, 0.0)
            group.chains.requests += call.chain.requests + 1
        if call.size > groups.least:
            self._add_large_request(call)
        if size > groups.least:
            kind = "error" if is_failure else "result"
            side = other(group.side)
            groups.add_large(
                LargeMessage(size, -line, line, at, side, kind, call.method, call.subject, call.id)
            )

    def add_notification(self, message: Notification, line: int) -> None:
        """Count a notification, if it matches."""
        at, side, method, subject = message.at, message.side, message.method, message.subject or ""
        size = len(message.data)
        if self.matches is not None:
            item = ExchangeItem(
                at=at,
                side=side,
                kind="notification",
                method=method,
                subject=subject,
                size=size,
                stream=message.frame.stream or "",
                has_issue=bool(message.flaws),
                data=message.data,
                is_batch=message.index is not None,
            )
            if not self.matches(item):
                return
        self.count_notification(side, method, size)
        if size > self.groups.least:
            self.groups.add_large(LargeMessage(size, -line, line, at, side, "notification", method, subject))

    def count_notification(self, side: str, method: str, size: int) -> None:
        """Count a matching notification that is not one of the largest messages."""
        group = self.groups.notifications(side, method)
        group.count += 1
        group.sent += size

    def add_uncounted(self, message: AnyMessage, kind: str, line: int) -> None:
        """Weigh a message that is neither part of a call nor a notification; no filter matches it."""
        size = len(message.data)
        if self.matches is None and size > self.groups.least:
            self.groups.add_large(LargeMessage(size, -line, line, message.at, message.side, kind))

    def _add_large_request(self, call: StatsCall) -> None:
        size, line, side = call.size, call.line, call.group.side
        self.groups.add_large(
            LargeMessage(size, -line, line, call.at, side, "request", call.method, call.subject, call.id)
        )
