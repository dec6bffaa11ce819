"""stdin and stdout as lines, for commands that are stdio servers themselves.

The parent process may share the descriptors, so they stay blocking, and threads wait for them.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from queue import SimpleQueue
from threading import Condition, Thread

from mcpspy.core.framing import LineFramer

STDIN, STDOUT = 0, 1

END = None
"""Marks the end of input."""

CLOSE_TIMEOUT = 1.0
"""Seconds that the host gets to read the last lines."""


def read_lines(put: Callable[[bytes | None], object]) -> None:
    """Start a thread that calls `put` with each line of stdin, without its LF, and then with END."""

    def each(lines: list[bytes] | None) -> None:
        for line in (END,) if lines is END else lines:
            put(line)

    read_together(each)


def read_together(put: Callable[[list[bytes] | None], object]) -> None:
    """Start a thread that calls `put` with the lines of each chunk of stdin, and then with END."""

    def read() -> None:
        framer = LineFramer()
        try:
            while chunk := os.read(STDIN, 1 << 16):
                if lines := framer.feed(chunk):
                    put(lines)
        except OSError:  # The terminal has closed, or stdin was never open.
            pass
        if torn := b"".join(framer.close()):
            put([torn])
        put(END)

    Thread(target=read, name="stdin", daemon=True).start()


class Backlog:
    """The bytes that one thread has read and another has not handled yet; the first waits while they are too many."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._changed = Condition()
        self._size = 0

    def add(self, size: int) -> None:
        """Add bytes. Wait until the backlog is within its limit."""
        with self._changed:
            self._size += size
            self._changed.wait_for(lambda: self._size <= self._limit)

    def remove(self, size: int) -> None:
        with self._changed:
            self._size -= size
            self._changed.notify_all()


class StdoutWriter:
    """Writes lines to stdout in a thread, so that a host that does not read blocks nothing else."""

    def __init__(
        self, broke: Callable[[], object], wrote: Callable[[], object], descriptor: int | None = None
    ) -> None:
        """Start the thread. It calls `broke` if the reader has closed the pipe, and `wrote` after each line."""
        self._descriptor = STDOUT if descriptor is None else descriptor
        self._broke = broke
        self._wrote = wrote
        self._lines: SimpleQueue[bytes | None] = SimpleQueue()
        self.waiting = 0
        """Number of bytes that are not written yet."""
        self._thread = Thread(target=self._write, name="stdout", daemon=True)
        self._thread.start()

    def put(self, data: bytes) -> None:
        """Queue a message. A line end is added."""
        self.waiting += len(data)
        self._lines.put(data)

    def close(self) -> None:
        """Write the queued messages and stop; give up after CLOSE_TIMEOUT."""
        self._lines.put(END)
        self._thread.join(CLOSE_TIMEOUT)

    def _write(self) -> None:
        while (data := self._lines.get()) is not END:
            rest = data + b"\n"
            try:
                while rest:
                    rest = rest[os.write(self._descriptor, rest) :]
            except OSError:
                self._broke()
                return
            self.waiting -= len(data)
            self._wrote()
