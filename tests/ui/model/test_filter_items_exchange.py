"""Filter items of whole exchanges."""

from __future__ import annotations

import pytest

from mcpspy.core.query.item import ExchangeItem
from mcpspy.core.query.parser import parse
from mcpspy.ui.model.filter_items import exchange_item
from tests.core.mock.talking import Talk


@pytest.fixture(scope="module")
def items() -> list[ExchangeItem]:
    talk = Talk().handshake().call(1, "echo", "Ada")
    talk.client(id=2, method="tools/call", params={"name": "fail"})
    talk.server(id=2, error={"code": -32603, "message": "no"})
    talk.client(id=3, method="tools/list", stream="s")
    return [exchange_item(exchange) for exchange in talk.session.exchanges]


@pytest.mark.parametrize(
    ("query", "ids"),
    [
        ("tool:echo", ["1"]),
        ("method:tools/*", ["1", "2", "3"]),
        ("status:error", ["2"]),
        ("not status:error", ["0", "1", "3"]),
        ("code:-32603", ["2"]),
        ("status:pending", ["3"]),
        ("text:Ada", ["1"]),
        (">=1s", ["0", "1", "2"]),
        ("kind:exchange from:client stream:s", ["3"]),
        ("from:server", []),
        ("size:>100", ["0", "1", "2"]),
        ("odd", []),
        ("id:2", ["2"]),
        ("time>7s", ["3"]),
        ("params.name=echo result:*", ["1"]),
        ("params.name:* error.code=-32603", ["2"]),
        ("method:tools/* -result:*", ["2", "3"]),
    ],
)
def test_each_field_is_one_of_the_exchange(query: str, ids: list[str], items: list[ExchangeItem]) -> None:
    assert [item.id for item in items if parse(query).matches(item)] == ids
