"""The session that forgets answered exchanges."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from mcpspy.core.recording.decode import Frame
from mcpspy.core.session.session import Change, Session
from mcpspy.core.session.streaming import HEAVY, StreamingSession


def frame(side: str, **members: Any) -> Frame:
    return Frame(1.0, side, json.dumps({"jsonrpc": "2.0", **members}).encode())


def reported(changes: list[Change]) -> list[Any]:
    return [
        (
            change.number,
            change.what,
            change.flaw,
            change.exchange and (change.exchange.number, change.exchange.state),
        )
        for change in changes
    ]


STEPS = st.sampled_from(
    [
        frame("client", id=1, method="tools/call", params={"name": "a", "_meta": {"progressToken": 1}}),
        frame("client", id=2, method="tools/call", params={"name": "b"}),
        frame("server", id=1, result={"content": ["x" * HEAVY]}),
        frame("server", id=1, result={"task": {"taskId": "t"}, "content": "x" * HEAVY}),
        frame("server", id=2, error={"code": 1, "message": "x" * HEAVY}),
        frame("server", method="notifications/progress", params={"progressToken": 1, "progress": 1}),
        frame("client", method="notifications/cancelled", params={"requestId": 1}),
    ]
)


@settings(max_examples=100, deadline=None)
@given(st.lists(STEPS, max_size=12))
def test_a_streaming_session_reports_the_same_as_a_stored_one(frames: list[Frame]) -> None:
    streaming, kept = StreamingSession(), Session()

    for each in frames:
        assert reported(streaming.add(each)) == reported(kept.add(each))
    assert [exchange.state for exchange in streaming.end()] == [exchange.state for exchange in kept.end()]


def test_answered_exchanges_are_dropped() -> None:
    session = StreamingSession()
    session.add(
        frame("client", id=1, method="tools/call", params={"name": "a", "arguments": {"b": "x" * HEAVY}})
    )
    (change,) = session.add(frame("server", id=1, result={"content": ["x" * HEAVY]}))
    exchange = change.exchange
    assert exchange is not None
    session.add(frame("client", id=2, method="ping"))

    assert exchange.answer is not None
    assert (exchange.request.data, exchange.answer.data, exchange.request.subject) == (b"", b"", "a")
    assert len(session.changes) == 1
