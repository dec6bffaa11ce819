"""Several threads that write to one descriptor: complete pieces, in the order of their reservations."""

from __future__ import annotations

import os
import threading
from typing import TYPE_CHECKING

import pytest

from mcpspy.io.stdio.windows import PipeWriter

if TYPE_CHECKING:
    from collections.abc import Iterator

MB = 1 << 20


class Pipe:
    """A pipe writer and its reader."""

    def __init__(self) -> None:
        self.read, target = os.pipe()
        self.pipe_writer = PipeWriter(target)

    def some(self, size: int) -> bytes:
        got = b""
        while len(got) < size and (data := os.read(self.read, size - len(got))):
            got += data
        return got


@pytest.fixture
def pipe() -> Iterator[Pipe]:
    pipe = Pipe()
    yield pipe
    pipe.pipe_writer.end()
    os.close(pipe.read)


def test_a_single_thread_writes_directly(pipe: Pipe) -> None:
    before = threading.active_count()
    assert pipe.pipe_writer.reserve()
    pipe.pipe_writer.write(b"one")
    assert pipe.some(3) == b"one"
    assert threading.active_count() == before


def test_data_of_other_threads_comes_after_a_reserved_write(pipe: Pipe) -> None:
    assert pipe.pipe_writer.reserve()
    assert not pipe.pipe_writer.reserve(), "another thread has reserved it"
    pipe.pipe_writer.put(b"ours")
    assert not pipe.pipe_writer.reserve(), "earlier data is queued"
    pipe.pipe_writer.put(b"theirs")
    # `reserve` was refused, without any effect on the first holder.
    writer = threading.Thread(target=pipe.pipe_writer.write, args=(b"first",))
    writer.start()
    assert pipe.some(15) == b"firstourstheirs"
    writer.join(20)
    pipe.pipe_writer.wait()
    assert pipe.pipe_writer.reserve()
    pipe.pipe_writer.write(b"last")
    assert pipe.some(4) == b"last"


def test_to_put_something_waits_for_no_one(pipe: Pipe) -> None:
    for letter in (b"a", b"b", b"c"):
        pipe.pipe_writer.put(letter * MB)
    assert pipe.pipe_writer.backlog == 3 * MB
    assert pipe.some(3 * MB) == b"a" * MB + b"b" * MB + b"c" * MB
    pipe.pipe_writer.wait()
    assert pipe.pipe_writer.backlog == 0


def test_the_end_comes_after_all_that_was_put(pipe: Pipe) -> None:
    pipe.pipe_writer.put(b"a" * MB)
    pipe.pipe_writer.end()
    pipe.pipe_writer.put(b"too late")
    assert pipe.some(2 * MB) == b"a" * MB
    pipe.pipe_writer.wait()
    assert not pipe.pipe_writer.reserve()


def test_undelivered_data_is_counted_and_dropped_when_the_reader_has_closed(pipe: Pipe) -> None:
    os.close(pipe.read)
    pipe.read = os.open(os.devnull, os.O_RDONLY)
    pipe.pipe_writer.put(b"a" * 10)
    pipe.pipe_writer.wait()
    assert not pipe.pipe_writer.is_open
    assert pipe.pipe_writer.undelivered == 10
    pipe.pipe_writer.put(b"in vain")
    pipe.pipe_writer.wait()
    assert not pipe.pipe_writer.reserve()
