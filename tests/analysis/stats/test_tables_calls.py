"""A filter sees a request and its response as one item."""

from __future__ import annotations

from mcpspy.analysis.stats.group import GroupKind, MessageGroup
from mcpspy.analysis.stats.tables import StatsAnswer, StatsCall, call_item
from mcpspy.core.session.exchange import State


def test_time_is_of_the_request_the_outcome_of_the_answer_and_the_size_of_both() -> None:
    call = StatsCall(
        1.0,
        10,
        3,
        "7",
        "tools/call",
        MessageGroup("client", GroupKind.REQUEST, ""),
        subject="echo",
        data=b"asked",
    )
    call.state = State.ERROR
    item = call_item(
        call, StatsAnswer(1.5, 20, 4, is_failure=True, code=-32602, has_issue=True, data=b"answered")
    )

    assert (item.at, item.side, item.kind, item.method, item.subject) == (
        1.0,
        "client",
        "request",
        "tools/call",
        "echo",
    )
    assert (item.size, item.latency, item.status, item.error_code, item.has_issue) == (
        30,
        0.5,
        "error",
        -32602,
        True,
    )
    assert item.text() == b"asked\nanswered"


def test_a_request_without_an_answer_has_no_latency() -> None:
    item = call_item(
        StatsCall(1.0, 10, 3, "7", "ping", MessageGroup("client", GroupKind.REQUEST, "ping"), data=b"asked"),
        None,
    )

    assert (item.latency, item.size, item.status, item.text()) == (None, 10, "pending", b"asked")
