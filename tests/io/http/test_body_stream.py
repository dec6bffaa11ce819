"""A body is read while it arrives, and its sender is paused while it is not read."""

from __future__ import annotations

import asyncio
from typing import cast

import pytest

from mcpspy.io.http.request import BUFFERED, BodyStream

pytestmark = pytest.mark.timeout(60)


class Transport:
    def __init__(self) -> None:
        self.is_paused = False

    def is_closing(self) -> bool:
        return False

    def pause_reading(self) -> None:
        assert not self.is_paused
        self.is_paused = True

    def resume_reading(self) -> None:
        assert self.is_paused
        self.is_paused = False


def stream() -> tuple[BodyStream, Transport]:
    transport = Transport()
    return BodyStream(cast("asyncio.Transport", transport)), transport


async def test_pieces_that_wait_are_read_as_one() -> None:
    body, _ = stream()
    for piece in (b"a", b"b"):
        body.feed(piece)
    assert body.has_data
    assert await body.next() == b"ab"
    assert not body.has_data


async def test_a_reader_is_woken_by_data_and_by_the_end() -> None:
    body, _ = stream()
    read: list[bytes | None] = []

    async def reader() -> None:
        while (piece := await body.next()) is not None:
            read.append(piece)

    reading = asyncio.create_task(reader())
    await asyncio.sleep(0)
    body.feed(b"x")
    body.flush()
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    body.end()
    body.flush()
    await reading
    assert read == [b"x"]
    assert await body.next() is None


async def test_the_data_before_an_error_is_read() -> None:
    body, _ = stream()
    body.feed(b"x")
    body.end(ConnectionResetError("gone"))
    body.end()
    assert await body.next() == b"x"
    with pytest.raises(ConnectionResetError, match="gone"):
        await body.next()


async def test_a_sender_is_paused_above_the_limit_until_the_body_is_read() -> None:
    body, transport = stream()
    body.feed(b"x" * BUFFERED)
    states = [transport.is_paused]
    body.feed(b"x")
    body.feed(b"x")
    states.append(transport.is_paused)
    assert len(await body.next() or b"") == BUFFERED + 2
    assert [*states, transport.is_paused] == [False, True, False]
