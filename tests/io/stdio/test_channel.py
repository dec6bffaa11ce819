"""One forwarding direction, over pipes of this process: injected data, and when it stops reading."""

from __future__ import annotations

import os
import select
import sys
from collections import deque
from typing import TYPE_CHECKING

import pytest

if sys.platform == "win32":
    pytest.skip("needs poll()", allow_module_level=True)

from mcpspy.io.recording.recorder import Recorder, RecordingTarget
from mcpspy.io.stdio.base import CHUNK, RecordingTap
from mcpspy.io.stdio.channel import Channel

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

MB = 1 << 20


class Loop:
    """The part of a poll loop that a channel needs."""

    def __init__(self) -> None:
        self.routes: dict[int, Callable[[int], None]] = {}
        self._poller = select.poll()

    def route(self, fd: int, handler: Callable[[int], None], events: int) -> None:
        self.routes[fd] = handler
        self._poller.register(fd, events)

    def unroute(self, fd: int) -> None:
        if self.routes.pop(fd, None) is not None:
            self._poller.unregister(fd)

    def turn(self) -> bool:
        """Handle everything that is ready. Return whether anything was."""
        ready = self._poller.poll(0)
        for fd, events in ready:
            if fd in self.routes:
                self.routes[fd](events)
        return bool(ready)


class Line:
    """A channel between two pipes."""

    def __init__(self, loop: Loop) -> None:
        source, self.source = os.pipe()
        self.target, target = os.pipe()
        os.set_blocking(self.source, False)
        os.set_blocking(self.target, False)
        nowhere = RecordingTarget()
        nowhere.recording = False
        self.channel = Channel(loop, source, target, RecordingTap(Recorder(nowhere, {}), None, None))

    def say(self, data: bytes) -> int:
        try:
            return os.write(self.source, data)
        except BlockingIOError:
            return 0

    def received(self) -> bytes | None:
        """Return the received bytes, or None at the end."""
        try:
            return os.read(self.target, 4 * MB) or None
        except BlockingIOError:
            return b""

    def close(self) -> None:
        self.channel.close()
        for fd in (self.source, self.target):
            try:
                os.close(fd)
            except OSError:  # The test has closed it.
                pass


class Sink:
    """Takes the data that a channel has read, and forwards nothing."""

    def __init__(self) -> None:
        self.got: list[bytes] = []

    def feed(self, data: bytes) -> None:
        self.got.append(data)

    def delays_end(self) -> bool:
        return False

    def eof(self) -> None:
        self.got.append(b"EOF")

    def torn(self) -> None:
        self.got.append(b"torn")


@pytest.fixture
def loop() -> Loop:
    return Loop()


@pytest.fixture
def line(loop: Loop) -> Iterator[Line]:
    line = Line(loop)
    yield line
    line.close()
    assert loop.routes == {}


def test_injected_data_comes_after_pending_data(loop: Loop, line: Line) -> None:
    line.channel.put(b"a" * MB)
    line.channel.put(b"b" * 10)
    line.channel.put(b"c" * MB)
    assert line.channel.backlog > MB
    got = b""
    while line.channel.backlog:
        got += line.received() or b""
        loop.turn()
    got += line.received() or b""
    assert got == b"a" * MB + b"b" * 10 + b"c" * MB


class FullMemory(deque[bytes]):
    """A queue without memory for its next block, until something is freed."""

    def __init__(self, channel: Channel) -> None:
        super().__init__()
        self._channel = channel

    def append(self, data: bytes) -> None:
        if self._channel._reserve:
            raise MemoryError
        super().append(data)


def test_without_memory_for_the_queue_its_reserve_is_used(loop: Loop, line: Line) -> None:
    line.channel._queue = FullMemory(line.channel)
    line.channel.put(b"a" * MB)
    line.channel.put(b"b" * 10)
    line.channel.put(b"c" * 10)
    got = b""
    while line.channel.backlog:
        got += line.received() or b""
        loop.turn()
    got += line.received() or b""
    assert got == b"a" * MB + b"b" * 10 + b"c" * 10


def test_while_something_is_pending_nothing_more_is_read(loop: Loop, line: Line) -> None:
    line.channel.put(b"a" * MB)
    line.say(b"later")
    assert not loop.turn()
    while line.channel.backlog:
        assert (line.received() or b"").strip(b"a") == b""
        loop.turn()
    while not (got := line.received()) or got.strip(b"a") == b"":
        loop.turn()
    assert got.endswith(b"later")


def test_a_hand_gets_what_is_read_and_the_leg_when_it_is_gone(loop: Loop, line: Line) -> None:
    channel = Sink()
    line.channel.divert(channel)  # type: ignore[arg-type]
    line.say(b"one")
    loop.turn()
    assert (channel.got, line.received()) == ([b"one"], b"")
    line.channel.divert(None)
    line.say(b"two")
    loop.turn()
    assert (channel.got, line.received()) == ([b"one"], b"two")


def test_a_hand_hears_of_the_end_before_it_is_passed_on(loop: Loop, line: Line) -> None:
    channel = Sink()
    line.channel.divert(channel)  # type: ignore[arg-type]
    os.close(line.source)
    loop.turn()
    assert channel.got == [b"EOF"]
    assert line.received() is None
    assert not line.channel.is_writable


def test_after_the_end_what_was_put_is_still_delivered(loop: Loop, line: Line) -> None:
    line.channel.put(b"a" * MB)
    line.channel.finish()
    line.channel.put(b"b")
    assert not line.channel.is_writable
    got = b""
    while (more := line.received()) is not None:
        got += more
        loop.turn()
    assert got == b"a" * MB + b"b"
    line.channel.put(b"in vain")


def test_a_channel_waits_for_another_until_that_has_written_all(loop: Loop, line: Line) -> None:
    other = Line(loop)
    other.channel.put(b"a" * MB)
    line.channel.wait_for(other.channel)
    line.say(b"one")
    loop.turn()
    assert line.received() == b""
    while other.channel.backlog:
        other.received()
        loop.turn()
    loop.turn()
    assert line.received() == b"one"
    other.channel.put(b"a" * MB)
    line.channel.wait_for(other.channel)
    other.channel.close()
    line.say(b"two")
    loop.turn()
    assert line.received() == b"two"
    other.close()


def test_a_channel_does_not_wait_for_one_that_has_nothing_to_write(loop: Loop, line: Line) -> None:
    other = Line(loop)
    line.channel.wait_for(other.channel)
    line.say(b"one")
    loop.turn()
    assert line.received() == b"one"
    other.close()


def test_a_target_without_a_reader_closes_the_source_too(loop: Loop, line: Line) -> None:
    channel = Sink()
    line.channel.divert(channel)  # type: ignore[arg-type]
    os.close(line.target)
    line.channel.put(b"x")
    assert not line.channel.is_writable
    assert channel.got[0] == b"torn"
    with pytest.raises(BrokenPipeError):
        os.write(line.source, b"x")


def test_no_more_than_a_chunk_is_read_at_once(loop: Loop, line: Line) -> None:
    channel = Sink()
    line.channel.divert(channel)  # type: ignore[arg-type]
    while line.say(b"x" * 1000):
        pass
    loop.turn()
    assert len(channel.got) == 1
    assert len(channel.got[0]) <= CHUNK
