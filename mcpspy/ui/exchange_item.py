"""A whole exchange as a filter sees it: a request, and its answer.

Owns which of the two each field looks at: time and size of both, the rest of
the answer where there is one. What the fields are is `core.query.parser`'s.
"""

from __future__ import annotations

from mcpspy.core.protocol.message import Failure
from mcpspy.core.query.item import ExchangeItem
from mcpspy.core.session.exchange import Exchange


def exchange_item(exchange: Exchange, kind: str = "exchange") -> ExchangeItem:
    request, answer = exchange.request, exchange.answer
    item = ExchangeItem(
        at=request.at,
        side=request.side,
        kind=kind,
        method=request.method,
        subject=request.subject or "",
        size=len(request.data),
        stream=request.frame.stream or "",
        odd=bool(exchange.flaws or request.flaws),
        data=request.data,
        id=request.id,
        status=exchange.state.value,
        latency=exchange.latency,
    )
    if answer is not None:
        item.size += len(answer.data)
        item.odd |= bool(answer.flaws)
        item.answer = answer.data
        if isinstance(answer, Failure):
            item.error_code, item.answer_member = answer.code, "error"
    return item
