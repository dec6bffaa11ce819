"""stdin and stdout as lines, by threads."""

from __future__ import annotations

import os
from collections.abc import Iterator
from queue import SimpleQueue
from threading import Event, Thread

import pytest

from mcpspy.io.stdio import lines as stdio_lines
from mcpspy.io.stdio.lines import END, Backlog, StdoutWriter, read_lines

BOUND = 30.0
"""Seconds after which a wait counts as a failure."""


@pytest.fixture
def pipe(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[int, int]]:
    """Make stdin the reading end of a pipe, and stdout the writing end of another."""
    reading, writing = os.pipe()
    monkeypatch.setattr(stdio_lines, "STDIN", reading)
    monkeypatch.setattr(stdio_lines, "STDOUT", writing)
    yield reading, writing
    for end in (reading, writing):
        try:
            os.close(end)
        except OSError:  # The test closed it.
            pass


def test_lines_come_one_by_one_and_an_incomplete_last_line_too(pipe: tuple[int, int]) -> None:
    lines: SimpleQueue[bytes | None] = SimpleQueue()
    read_lines(lines.put)
    os.write(pipe[1], b'{"a":1}\n\r\n{"b"')
    assert lines.get(timeout=BOUND) == b'{"a":1}'
    os.write(pipe[1], b":2}\ntorn")
    os.close(pipe[1])
    assert [lines.get(timeout=BOUND) for _ in range(4)] == [b"\r", b'{"b":2}', b"torn", END]


def test_a_stdin_that_was_never_open_is_at_its_end(
    pipe: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stdio_lines, "STDIN", 9999)
    lines: SimpleQueue[bytes | None] = SimpleQueue()
    read_lines(lines.put)
    assert lines.get(timeout=BOUND) is END
    assert pipe


def test_a_reader_waits_while_its_backlog_is_too_large() -> None:
    backlog, taken = Backlog(10), SimpleQueue[int]()

    def read() -> None:
        for size in (4, 6, 7, 1):
            backlog.add(size)
            taken.put(size)

    reader = Thread(target=read, daemon=True)
    reader.start()
    assert [taken.get(timeout=BOUND) for _ in range(2)] == [4, 6]
    backlog.remove(4)  # 6 and 7 remain.
    reader.join(0.05)
    assert taken.empty()
    backlog.remove(6)
    assert [taken.get(timeout=BOUND) for _ in range(2)] == [7, 1]
    reader.join(BOUND)
    assert not reader.is_alive()


def test_queued_lines_are_written_in_order_before_the_end(pipe: tuple[int, int]) -> None:
    written: SimpleQueue[None] = SimpleQueue()
    output = StdoutWriter(broke=pytest.fail, wrote=lambda: written.put(None))
    for number in range(3):
        output.put(b"%d" % number)
    output.close()
    assert os.read(pipe[0], 100) == b"0\n1\n2\n"
    assert (output.waiting, written.qsize()) == (0, 3)


def test_a_host_that_does_not_read_makes_a_number_grow_and_no_one_wait(
    pipe: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stdio_lines, "CLOSE_TIMEOUT", 0.01)
    written = Event()
    output = StdoutWriter(broke=lambda: None, wrote=written.set)
    output.put(b"x" * (1 << 20))
    assert output.waiting == 1 << 20
    output.close()
    left = 1 + (1 << 20)
    while left:
        left -= len(os.read(pipe[0], 1 << 16))
    assert written.wait(BOUND)
    assert output.waiting == 0


def test_a_host_that_is_gone_is_reported(pipe: tuple[int, int]) -> None:
    broke = Event()
    output = StdoutWriter(broke=broke.set, wrote=lambda: None)
    os.close(pipe[0])
    output.put(b"x")
    assert broke.wait(BOUND)
    output.close()
