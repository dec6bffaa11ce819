"""The common parts of all transports."""

from __future__ import annotations

from time import monotonic

from mcpspy.io.client import ConnectionEnded, ReceivedMessage, ServerConnection, StderrLine
from tests.io.client.conftest import rest_of

NODE_WITHOUT_ITS_FILE = """\
node:internal/modules/cjs/loader:1210
  throw err;
  ^

Error: Cannot find module '/srv/gone.js'
    at Module._resolveFilename (node:internal/modules/cjs/loader:1207:15)
    at Module._load (node:internal/modules/cjs/loader:1038:27)
    at Function.executeUserEntryPoint [as runMain] (node:internal/modules/run_main:164:12)
    at node:internal/main/run_main_module:28:49 {
  code: 'MODULE_NOT_FOUND',
  requireStack: []
}

Node.js v20.20.2
"""


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


async def test_the_last_output_is_forty_lines_of_any_bytes() -> None:
    connection = Played()
    for n in range(42):
        connection._enqueue(StderrLine(0.0, b"\xff %d" % n))

    assert list(connection.last_words) == [f"\\xff {n}" for n in range(2, 42)]
    assert connection.last_error == "\\xff 41"


async def test_the_error_is_the_line_that_names_it_and_not_what_the_runtime_prints_below_it() -> None:
    connection = Played()
    assert connection.last_error == ""
    for line in NODE_WITHOUT_ITS_FILE.splitlines():
        connection._enqueue(StderrLine(0.0, line.encode()))

    assert connection.last_error == "Error: Cannot find module '/srv/gone.js'"
