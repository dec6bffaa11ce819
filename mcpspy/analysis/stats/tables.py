"""What is counted of calls and notifications, once it is known what became of them.

Owns the filter, and what a group and the largest messages take of a message.
Refuses to know how a message was read, and which answer is whose.
"""

from __future__ import annotations

from mcpspy.analysis.stats.call import Answer, Call, seen
from mcpspy.analysis.stats.groups import Groups, Large
from mcpspy.core.protocol.message import AnyMessage, Notification
from mcpspy.core.protocol.spec import other
from mcpspy.core.query.item import ExchangeItem
from mcpspy.core.query.parser import Query
from mcpspy.core.session.exchange import State


class Tables:
    """The groups of a session, as far as a filter finds what belongs to them."""

    def __init__(self, query: Query | None, top: int) -> None:
        """Begin with nothing; `top`: how many large messages are kept."""
        self.groups = Groups(top)
        self.wanted = query.matches if query is not None else None
        """The filter, if there is one."""
        self.reads_text = query is not None and query.reads_text
        """Whether it has to be given the bytes of the messages."""

    def settled(self, call: Call, answer: Answer | None) -> None:
        """Count a request if it is wanted: what became of it is known."""
        if self.wanted is not None and not self.wanted(seen(call, answer)):
            return
        if answer is not None:
            self.answered(call, answer.at, answer.size, answer.line, is_failure=answer.is_failure)
            return
        group = call.group
        group.count += 1
        group.states[call.state] += 1
        group.sent += call.size
        if call.size > self.groups.least:
            self._weigh_request(call)

    def answered(self, call: Call, at: float, size: int, line: int, *, is_failure: bool = False) -> None:
        """Count a request that is wanted, and its answer."""
        group, state, groups = call.group, call.state, self.groups
        group.count += 1
        group.states[state] += 1
        if is_failure and state is State.LATE:
            group.late_errors += 1
        group.sent += call.size
        group.back += size
        took = at - call.at
        if not call.is_subscription:
            group.took.add(took if took > 0.0 else 0.0)  # noqa: FURB136 - a call of max() for every answer.
        if call.chain is not None:
            group.chains.whole.add(max(at - call.chain.begun, 0.0))
            group.chains.served += call.chain.served + max(took, 0.0)
            group.chains.requests += call.chain.requests + 1
        if call.size > groups.least:
            self._weigh_request(call)
        if size > groups.least:
            kind = "error" if is_failure else "result"
            side = other(group.side)
            groups.weigh(Large(size, -line, line, at, side, kind, call.method, call.subject, call.id))

    def told(self, message: Notification, line: int) -> None:
        """Count a notification if it is wanted."""
        at, side, method, subject = message.at, message.side, message.method, message.subject or ""
        size = len(message.data)
        if self.wanted is not None:
            item = ExchangeItem(
                at=at,
                side=side,
                kind="notification",
                method=method,
                subject=subject,
                size=size,
                stream=message.frame.stream or "",
                odd=bool(message.flaws),
                data=message.data,
            )
            if not self.wanted(item):
                return
        self.told_plainly(side, method, size)
        if size > self.groups.least:
            self.groups.weigh(Large(size, -line, line, at, side, "notification", method, subject))

    def told_plainly(self, side: str, method: str, size: int) -> None:
        """Count a notification that is wanted, and not one of the largest messages."""
        group = self.groups.notifications(side, method)
        group.count += 1
        group.sent += size

    def passed(self, message: AnyMessage, kind: str, line: int) -> None:
        """Weigh a message that is neither of a call nor a notification; no filter finds such."""
        size = len(message.data)
        if self.wanted is None and size > self.groups.least:
            self.groups.weigh(Large(size, -line, line, message.at, message.side, kind))

    def _weigh_request(self, call: Call) -> None:
        size, line, side = call.size, call.line, call.group.side
        self.groups.weigh(
            Large(size, -line, line, call.at, side, "request", call.method, call.subject, call.id)
        )
