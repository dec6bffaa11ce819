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


async def test_a_connection_closes_with_its_block_and_delivers_its_last_events() -> None:
    async with Played() as connection:
        await connection.send(b"{}")

    assert connection.closed == 1
    assert [type(event) for event in await rest_of(connection)] == [ReceivedMessage, ConnectionEnded]


async def test_nothing_is_received_after_the_end_and_the_first_end_counts() -> None:
    connection = Played()
    await connection.close()
    await connection.send(b"late")
    connection._enqueue(ConnectionEnded(0.0, why="again"))

    assert [type(event) for event in await rest_of(connection)] == [ConnectionEnded]
    assert connection.ended is not None
    assert connection.ended.why == "closed"


async def test_the_last_output_is_ten_lines_of_any_bytes() -> None:
    connection = Played()
    for n in range(12):
        connection._enqueue(StderrLine(0.0, b"\xff %d" % n))

    assert list(connection.last_words) == [f"\\xff {n}" for n in range(2, 12)]
