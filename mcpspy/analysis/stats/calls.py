"""An open request, and a finished one as a filter item.

Owns what is kept of a request: numbers, and its bytes only if a filter reads them. A filter sees request and
response together, once the outcome is known.
"""

from __future__ import annotations

from msgspec import Struct

from mcpspy.analysis.stats.group import MessageGroup
from mcpspy.core.query.item import ExchangeItem
from mcpspy.core.session.exchange import State


class InputChain(Struct, gc=False, eq=False):
    """A call so far that takes more than one request (2026-07-28, input required)."""

    begun: float
    requests: int = 0
    served: float = 0.0


class StatsCall(Struct, gc=False, eq=False):
    """A request of the collector's correlation."""

    at: float
    size: int
    line: int
    """Its place among the lines of the recording."""
    id: str
    method: str
    group: MessageGroup
    subject: str = ""
    stream: str | None = None
    is_subscription: bool = False
    is_modern: bool = False
    is_task: bool = False
    state: State = State.PENDING
    is_out: bool = False
    """True if no one waits for it any more, though it may still be answered."""
    chain: InputChain | None = None
    odd: bool = False
    data: bytes = b""


class StatsAnswer(Struct, gc=False, eq=False):
    """The response to a call."""

    at: float
    size: int
    line: int
    is_failure: bool = False
    code: int | None = None
    odd: bool = False
    data: bytes = b""


def seen(call: StatsCall, answer: StatsAnswer | None) -> ExchangeItem:
    """Return a call as a filter item: a request with the properties of its response."""
    item = ExchangeItem(
        at=call.at,
        side=call.group.side,
        kind="request",
        method=call.method,
        subject=call.subject,
        size=call.size,
        stream=call.stream or "",
        odd=call.odd,
        data=call.data,
        id=call.id,
        status=call.state.value,
    )
    if answer is not None:
        item.size += answer.size
        item.latency = answer.at - call.at
        item.odd |= answer.odd
        item.error_code = answer.code
        item.answer = answer.data
        if answer.is_failure:
            item.answer_member = "error"
    return item
