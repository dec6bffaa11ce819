"""A server as a child process: its events, and complete cleanup."""

from __future__ import annotations

import asyncio
import itertools
import os
import sys
from typing import TYPE_CHECKING

import pytest

from mcpspy.core.recording.decode import Frame, Note
from mcpspy.errors import CannotStart
from mcpspy.io.client import ConnectionEnded, ReceivedMessage, ServerCommand, StderrLine, connect, stdio
from mcpspy.io.client.base import MAX_QUEUED
from mcpspy.io.recording.reader import Recording
from tests.io.client.conftest import BOUND, is_last, next_of, rest_of, sample

if TYPE_CHECKING:
    from pathlib import Path

    from tests.io.client.conftest import Kept
    from tests.io.conftest import Processes

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="the sample servers are POSIX")


async def test_a_sent_line_and_its_response_are_recorded(kept: Kept, tmp_path: Path) -> None:
    async with await connect(sample("echo.py", 3), kept.recorder) as connection:
        await connection.send(b'{"jsonrpc":"2.0",\n"id":1,\r\n"method":"ping"}')
        data_received = await next_of(connection)
        await connection.send(b"x" * 3_000_000)
        large = await next_of(connection)
    events = await rest_of(connection)
    kept.session()

    assert data_received.data == b'{"jsonrpc":"2.0", "id":1,  "method":"ping"}'
    assert len(large.data) == 3_000_000
    assert [
        (event.code, event.signal, event.why) for event in events if isinstance(event, ConnectionEnded)
    ] == [(3, None, "ended with exit code 3")]
    entries = list(Recording(tmp_path / "kept.jsonl"))
    assert [(entry.side, len(entry.data)) for entry in entries if isinstance(entry, Frame)] == [
        ("client", 43),
        ("server", 43),
        ("client", 3_000_000),
        ("server", 3_000_000),
    ]
    assert [entry.fields for entry in entries if isinstance(entry, Note) and entry.kind == "eof"] == [
        {"from": "client"},
        {"from": "server"},
    ]


@pytest.mark.parametrize(
    ("command", "why"),
    [
        (["no-such-command-anywhere"], "cannot start no-such-command-anywhere: not found on PATH"),
        (["/no/such/file"], "cannot start /no/such/file: no such file"),
        ([os.devnull], "not executable"),
    ],
)
async def test_a_command_that_cannot_be_started_is_named_in_the_error(command: list[str], why: str) -> None:
    with pytest.raises(CannotStart, match=why):
        await connect(ServerCommand(command))


async def test_a_server_that_dies_at_once_leaves_its_last_words() -> None:
    code = "import sys; [print('line', n, file=sys.stderr) for n in range(42)]; print('out', end=''); sys.exit(7)"
    async with await connect(ServerCommand([sys.executable, "-c", code])) as connection:
        events = await rest_of(connection)
        await connection.send(b'{"nobody":"there"}')

    assert is_last(events)
    assert sum(isinstance(event, StderrLine) for event in events) == 42
    assert [event.data for event in events if isinstance(event, ReceivedMessage)] == [b"out"]
    assert list(connection.last_words) == [f"line {n}" for n in range(2, 42)]
    assert connection.ended is not None
    assert connection.ended.code == 7


async def test_a_server_that_ignores_eof_gets_sigterm_and_then_sigkill(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(stdio, "PATIENCE", 0.2)
    connection = await connect(sample("deaf.py"))
    await next_of(connection)
    await connection.close()
    await connection.close()
    events = await rest_of(connection)

    assert [event.data for event in events if isinstance(event, ReceivedMessage)] == [
        b'{"ignored":"EOF"}',
        b'{"ignored":"SIGTERM"}',
    ]
    assert [(event.code, event.signal) for event in events if isinstance(event, ConnectionEnded)] == [
        (None, "SIGKILL")
    ]


async def test_a_server_started_by_a_launcher_ends_with_it(
    monkeypatch: pytest.MonkeyPatch, processes: Processes
) -> None:
    monkeypatch.setattr(stdio, "PATIENCE", 0.1)
    launched = sample("launcher.py", *sample("deaf.py").arguments)
    async with await connect(launched) as connection:
        pid = int((await next_of(connection, ReceivedMessage)).data[7:-1])

    processes.gone(pid)


@pytest.mark.parametrize("kind", ["silent", "chatty"])
async def test_a_grandchild_that_holds_stdout_delays_nothing_and_is_ended(
    kind: str, processes: Processes
) -> None:
    async with await connect(sample("grandchild.py", kind)) as connection:
        pid = int((await next_of(connection, ReceivedMessage)).data[14:-1])
        ended = await next_of(connection, ConnectionEnded)

    assert ended.code == 5
    processes.gone(pid)


async def test_a_server_that_closes_its_stdin_is_not_written_to_any_more(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(stdio, "PATIENCE", 0.1)
    async with await connect(sample("shut.py", 0)) as connection:
        assert (await next_of(connection)).data == b'{"closed":0}'
        async with asyncio.timeout(30):
            for _ in range(3):
                await connection.send(b"x" * 200_000)


async def test_a_slow_reader_slows_the_server_down_and_loses_nothing(tmp_path: Path) -> None:
    poured = tmp_path / "poured"
    poured.write_bytes(b"".join(b'{"n":%07d}\n' % n for n in range(100_000)))
    async with await connect(sample("pour.py", poured)) as connection:
        async with asyncio.timeout(BOUND):
            for _ in itertools.count():
                if connection._inbox.is_full:
                    break
                await asyncio.sleep(0)
        for _ in range(100):  # The server has more to send, and no one reads it.
            await asyncio.sleep(0)
        assert connection._inbox._size < 2 * MAX_QUEUED
        for n in range(100_000):
            event = await connection.hear()
            assert isinstance(event, ReceivedMessage)
            assert event.data == b'{"n":%07d}' % n


async def test_a_close_that_is_cancelled_leaves_nothing_either(processes: Processes) -> None:
    connection = await connect(sample("deaf.py"))
    pid = int((await next_of(connection)).data[7:-1])
    closing = asyncio.create_task(connection.close())
    await asyncio.sleep(0)
    closing.cancel()
    with pytest.raises(asyncio.CancelledError):
        await closing
    await next_of(connection, ConnectionEnded)

    processes.gone(pid)


async def test_a_server_starts_in_its_folder_with_its_variables(tmp_path: Path) -> None:
    script = "import os; print(os.getcwd(), os.environ['GREETING'], 'PATH' in os.environ)"
    command = ServerCommand([sys.executable, "-c", script], str(tmp_path), {"GREETING": "hello"})
    async with await connect(command) as connection:
        assert (await next_of(connection)).data.decode() == f"{tmp_path} hello True"
    with pytest.raises(CannotStart, match="nowhere: No such file"):
        await connect(ServerCommand([sys.executable], str(tmp_path / "nowhere")))
