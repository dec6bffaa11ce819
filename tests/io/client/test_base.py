"""The common parts of all transports."""

from __future__ import annotations

from time import monotonic

from mcpspy.io.client import ConnectionEnded, ReceivedMessage, ServerConnection, StderrLine
from tests.io.client.conftest import rest_of


class Played(ServerConnection):
    """A connection whose server is the test."""

    def __init__(self) -> None:
        super().__init__("played", None)
        self.closed = 0

    async def send(self, data: bytes) -> None:
        self._enqueue(ReceivedMessage(monotonic(), data))

    async def close(self) -> None:
        self.closed += 1
        self._enqueue(ConnectionEnded(monotonic(), why="closed"))


async def test_it_is_closed_at_the_end_of_its_block_and_heard_to_its_end() -> None:
    async with Played() as connection:
        await connection.send(b"{}")

    assert connection.closed == 1
    assert [type(event) for event in await rest_of(connection)] == [ReceivedMessage, ConnectionEnded]


async def test_nothing_is_heard_after_the_end_and_the_first_end_counts() -> None:
    connection = Played()
    await connection.close()
    await connection.send(b"late")
    connection._enqueue(ConnectionEnded(0.0, why="again"))

    assert [type(event) for event in await rest_of(connection)] == [ConnectionEnded]
    assert connection.ended is not None
    assert connection.ended.why == "closed"


async def test_its_last_words_are_ten_lines_whatever_bytes_they_are() -> None:
    connection = Played()
    for n in range(12):
        connection._enqueue(StderrLine(0.0, b"\xff %d" % n))

    assert list(connection.last_words) == [f"\\xff {n}" for n in range(2, 12)]
