"""What a filter wants of a session, for whoever shows whole exchanges.

Owns that a request and its answer are wanted together: if the filter finds the
exchange, the request with what became of it, or the answer alone.
"""

from __future__ import annotations

from collections.abc import Callable

from mcpspy.core.protocol.message import Request
from mcpspy.core.query.parser import Query
from mcpspy.core.session.exchange import Exchange
from mcpspy.core.session.session import Change
from mcpspy.ui.exchange_item import exchange_item
from mcpspy.ui.item import ChangeItem


def kept(query: Query | None) -> Callable[[Change], bool]:
    """Return whether a change is wanted, once the session is folded. No filter wants everything."""
    if query is None:
        return lambda change: True
    matches = query.matches
    exchanges: dict[int, bool] = {}

    def keep(change: Change) -> bool:
        what, exchange = change.what, change.exchange
        if exchange is None or not (isinstance(what, Request) or what is exchange.answer):
            return matches(ChangeItem(change))
        number = exchange.number
        if number not in exchanges:
            exchanges[number] = _finds(query, exchange)
        return exchanges[number]

    return keep


def _finds(query: Query, exchange: Exchange) -> bool:
    matches, answer = query.matches, exchange.answer
    return (
        matches(exchange_item(exchange))
        or matches(exchange_item(exchange, "request"))
        or (answer is not None and matches(ChangeItem(Change(-1, answer, exchange))))
    )
