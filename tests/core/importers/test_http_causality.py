"""Estimated times of events."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpspy.core.importers.http import RESOLUTION, PostHistory


def post_data(*posts: tuple[float, Any], stream: str = "1") -> PostHistory:
    history = PostHistory()
    for at, message in posts:
        history.post(stream, at, at + 0.1, json.dumps(message).encode())
    return history


def body(*messages: Any) -> bytes:
    return b"".join(b"data: " + json.dumps(message).encode() + b"\n\n" for message in messages)


def asks(id: Any, token: Any = None) -> dict[str, Any]:  # noqa: A002 - it is one.
    return {"id": id, "method": "x", "params": {"_meta": {"progressToken": token}} if token else {}}


def progress(token: Any) -> dict[str, Any]:
    return {"method": "notifications/progress", "params": {"progressToken": token, "progress": 1}}


LOG = {"method": "notifications/message", "params": {}}


def test_a_server_request_and_earlier_messages_come_before_its_response() -> None:
    history = post_data((10, asks(1)), (12, {"id": 7, "result": {}}))
    said = body(LOG, asks(7), LOG, {"id": 1, "result": {}})
    assert history.times("1", 10.0, 20.0, said, own=False) == [12.0, 12.0, 20.0, 20.0]
    assert history.times("2", 10.0, 20.0, said, own=False) == [20.0] * 4


def test_on_a_general_stream_a_response_comes_after_its_request() -> None:
    history = post_data((10, asks(1, "p")), (12, asks("1")), (14, asks(2)))
    said = body(
        LOG,
        progress("p"),
        {"id": 1, "result": {}},
        {"id": "1", "error": {}},
        LOG,
        {"id": 2, "result": {}},
        LOG,
    )
    times = history.times("1", 1.0, 20.0, said, own=True)
    assert times == pytest.approx([10.1, 10.1, 10.1, 12.1, 14.1, 14.1, 20.0])


def test_responses_out_of_order_keep_their_order() -> None:
    history = post_data((10, asks(1)), (12, asks(2)))
    said = body({"id": 2, "result": {}}, {"id": 1, "result": {}})
    assert history.times("1", 1.0, 20.0, said, own=True) == pytest.approx([12.1, 12.1])


def test_a_request_and_its_response_at_the_same_time_keep_their_order() -> None:
    history = PostHistory()
    history.post("1", 5.0, 5.0, b'{"id":1,"method":"x"}')
    assert history.times("1", 1.0, 9.0, body({"id": 1, "result": {}}), own=True) == [5.0 + RESOLUTION]


def test_unsolicited_messages_get_the_time_of_the_end_of_the_stream() -> None:
    said = b"retry: 5\n\n" + body(LOG, progress("?"), {"id": 9, "result": {}}) + b"data: torn"
    assert post_data().times("1", 1.0, 20.0, said, own=True) == [20.0] * 5


@given(
    st.lists(st.tuples(st.integers(0, 9), st.sampled_from([asks(1, "p"), asks(2), {"id": 7, "result": {}}]))),
    st.lists(st.sampled_from([LOG, asks(7), progress("p"), {"id": 1, "result": 0}, {"id": 2, "error": 0}])),
    st.booleans(),
)
def test_events_never_change_their_order(posts: list[tuple[float, Any]], said: list[Any], own: bool) -> None:
    times = post_data(*posts).times("1", 0.0, 9.0, body(*said), own=own)
    assert len(times) == len(said)
    assert times == sorted(times)
