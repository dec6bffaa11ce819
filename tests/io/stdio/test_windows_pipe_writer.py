"""Several threads that write to one descriptor: whole pieces, in the order in which they had the right to."""

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
    """An outlet, and who reads it."""

    def __init__(self) -> None:
        self.read, target = os.pipe()
        self.outlet = PipeWriter(target)

    def some(self, size: int) -> bytes:
        got = b""
        while len(got) < size and (data := os.read(self.read, size - len(got))):
            got += data
        return got


@pytest.fixture
def pipe() -> Iterator[Pipe]:
    pipe = Pipe()
    yield pipe
    pipe.outlet.end()
    os.close(pipe.read)


def test_who_is_alone_writes_by_itself(pipe: Pipe) -> None:
    before = threading.active_count()
    assert pipe.outlet.reserve()
    pipe.outlet.write(b"one")
    assert pipe.some(3) == b"one"
    assert threading.active_count() == before


def test_what_others_put_comes_after_what_was_reserved(pipe: Pipe) -> None:
    assert pipe.outlet.reserve()
    assert not pipe.outlet.reserve(), "somebody has it"
    pipe.outlet.put(b"ours")
    assert not pipe.outlet.reserve(), "there is something before it"
    pipe.outlet.put(b"theirs")
    # `reserve` was refused, and changed nothing for who had it first.
    writer = threading.Thread(target=pipe.outlet.write, args=(b"first",))
    writer.start()
    assert pipe.some(15) == b"firstourstheirs"
    writer.join(20)
    pipe.outlet.wait()
    assert pipe.outlet.reserve()
    pipe.outlet.write(b"last")
    assert pipe.some(4) == b"last"


def test_to_put_something_waits_for_no_one(pipe: Pipe) -> None:
    for letter in (b"a", b"b", b"c"):
        pipe.outlet.put(letter * MB)
    assert pipe.outlet.backlog == 3 * MB
    assert pipe.some(3 * MB) == b"a" * MB + b"b" * MB + b"c" * MB
    pipe.outlet.wait()
    assert pipe.outlet.backlog == 0


def test_the_end_comes_after_all_that_was_put(pipe: Pipe) -> None:
    pipe.outlet.put(b"a" * MB)
    pipe.outlet.end()
    pipe.outlet.put(b"too late")
    assert pipe.some(2 * MB) == b"a" * MB
    pipe.outlet.wait()
    assert not pipe.outlet.reserve()


def test_where_no_one_reads_any_more_all_that_waits_is_counted_and_forgotten(pipe: Pipe) -> None:
    os.close(pipe.read)
    pipe.read = os.open(os.devnull, os.O_RDONLY)
    pipe.outlet.put(b"a" * 10)
    pipe.outlet.wait()
    assert not pipe.outlet.is_open
    assert pipe.outlet.undelivered == 10
    pipe.outlet.put(b"in vain")
    pipe.outlet.wait()
    assert not pipe.outlet.reserve()
