"""The queue of inbound events."""

from __future__ import annotations

import asyncio

import pytest

from mcpspy.io.client.base import MAX_QUEUED, ConnectionEnded, Inbound, ReceivedMessage, StderrLine


async def test_events_are_taken_in_the_order_they_were_put() -> None:
    inbox = Inbound()
    for event in (ReceivedMessage(0.0, b"a"), StderrLine(1.0, b"b"), ConnectionEnded(2.0)):
        inbox.put(event)

    assert [await inbox.get() for _ in range(3)] == [
        ReceivedMessage(0.0, b"a"),
        StderrLine(1.0, b"b"),
        ConnectionEnded(2.0),
    ]


async def test_a_full_queue_has_room_again_after_events_are_taken() -> None:
    inbox = Inbound()
    called: list[bool] = []
    inbox.on_space = lambda: called.append(True)
    await inbox.wait_for_space()
    for _ in range(2):
        inbox.put(ReceivedMessage(0.0, b"x" * MAX_QUEUED))
    assert inbox.is_full
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(inbox.wait_for_space(), 0.01)

    await inbox.get()
    assert not called
    await inbox.get()
    assert called == [True]
    await inbox.wait_for_space()
