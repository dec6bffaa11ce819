"""The input of every exporter."""

from __future__ import annotations

from mcpspy.core.protocol.message import Request
from tests.analysis.export.sessions import call, client, result, session_of

PING = b'{"jsonrpc":"2.0","method":"notifications/initialized"}'


def test_exchanges_are_those_whose_request_is_selected_in_the_order_of_their_requests() -> None:
    entries = (call(0.1, 1), client(0.2, PING), call(0.3, 2), result(0.4, 2), call(0.5, 3), result(0.6, 1))
    every = session_of(*entries)
    some = session_of(*entries, keep=lambda change: change.exchange is None or change.exchange.number != 1)

    assert [exchange.request.id for exchange in every.exchanges()] == ["1", "2", "3"]
    assert [exchange.request.id for exchange in some.exchanges()] == ["1", "3"]
    assert [type(change.what).__name__ for change in some.selected()] == [
        *("Request", "Notification", "Request", "Result")
    ]
    assert sum(isinstance(change.what, Request) for change in every.selected()) == 3
