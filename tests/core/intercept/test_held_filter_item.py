"""In-flight messages as filter items."""

from __future__ import annotations

import pytest

from mcpspy.core.intercept.held import LiveItem
from mcpspy.core.intercept.requests import AwaitedRequest
from mcpspy.core.protocol.message import Request
from mcpspy.core.query.parser import parse
from tests.core.intercept.interceptors import call, message, progress, result

FAILURE = b'{"jsonrpc":"2.0","id":7,"error":{"code":-32602,"message":"no"}}'


def _request() -> AwaitedRequest:
    request = message(call(7, where="Oslo"), at=1.0, stream="2")
    assert isinstance(request, Request)
    return AwaitedRequest(request, None, keep=True)


ITEMS = {
    "request": LiveItem(message(call(7, where="Oslo"), at=1.0, stream="2"), None),
    "result": LiveItem(message(result(7), "server", at=3.5, stream="2"), _request()),
    "failure": LiveItem(message(FAILURE, "server", at=1.5), _request()),
    "stray": LiveItem(message(result(8), "server", at=3.5), None),
    "progress": LiveItem(message(progress(5), "server"), None),
    "malformed": LiveItem(message(b"{oops}", "server"), None),
    "odd": LiveItem(message(b'{"id":1,"method":"ping"}'), None),
}


@pytest.mark.parametrize(
    ("query", "wanted"),
    [
        ("tool:echo", {"request", "result", "failure"}),
        ("progress", {"progress"}),
        ("dir:server kind:result", {"result", "stray"}),
        ("kind:response", {"result", "failure", "stray"}),
        ("status:pending", {"request", "odd"}),
        ("status:ok", {"result", "stray"}),
        ("status:error", {"failure"}),
        ("code:-32602", {"failure"}),
        ("latency>2s", {"result"}),
        ("id:7", {"request", "result", "failure"}),
        ("stream:2", {"request", "result"}),
        ("is:issue", {"malformed", "odd"}),
        ("kind:malformed", {"malformed"}),
        ("time>=3.5s", {"result", "stray"}),
        ("size<10", {"malformed"}),
        ("text:oops", {"malformed"}),
        ("params.arguments.where:oslo", {"request", "result", "failure"}),
        ("result.content[0].text:hi", {"result", "stray"}),
        ("error.message=no", {"failure"}),
        ("subject:5", {"progress"}),
    ],
)
def test_a_filter_means_what_it_means_elsewhere(query: str, wanted: set[str]) -> None:
    matches = parse(query).matches

    assert {name for name, item in ITEMS.items() if matches(item)} == wanted


def test_a_request_is_not_the_answer_to_itself() -> None:
    item = LiveItem(message(call(7, where="Oslo"), at=3.0), _request())

    assert (item.latency, item.method, item.status) == (None, "tools/call", "pending")
