"""stdin and stdout as lines, by threads: for commands that are a server on stdio themselves.

Owns blocking descriptors that may be shared with whoever started us: they stay blocking, so a
thread waits in our place. The pump of `run` is `posix`'s and `windows`'s.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from queue import SimpleQueue
from threading import Thread

from mcpspy.core.framing import LineFramer

STDIN, STDOUT = 0, 1

END = None
"""What comes after the last line."""

CLOSE_TIMEOUT = 1.0
"""Seconds that the host may take, at the end, to read what was written for it."""


def read_lines(put: Callable[[bytes | None], object]) -> None:
    """Have a thread call `put` with each line of stdin, its end left out, and with END at the end."""

    def each(lines: list[bytes] | None) -> None:
        for line in (END,) if lines is END else lines:
            put(line)

    read_together(each)


def read_together(put: Callable[[list[bytes] | None], object]) -> None:
    """Have a thread call `put` with the lines of stdin that came at once, and with END at the end."""

    def read() -> None:
        framer = LineFramer()
        try:
            while chunk := os.read(STDIN, 1 << 16):
                if lines := framer.feed(chunk):
                    put(lines)
        except OSError:  # A terminal that is gone, a stdin that was never open.
            pass
        if torn := b"".join(framer.close()):
            put([torn])
        put(END)

    Thread(target=read, name="stdin", daemon=True).start()


class StdoutWriter:
    """Lines for stdout, written by a thread: a host that does not read keeps nobody else waiting."""

    def __init__(self, broke: Callable[[], object], wrote: Callable[[], object]) -> None:
        """Call `broke` if nobody reads any more, and `wrote` after each line: both in the thread."""
        self._broke = broke
        self._wrote = wrote
        self._lines: SimpleQueue[bytes | None] = SimpleQueue()
        self.waiting = 0
        """Bytes that are not written yet."""
        self._thread = Thread(target=self._write, name="stdout", daemon=True)
        self._thread.start()

    def put(self, data: bytes) -> None:
        """Have a message written behind those that are there, with a line end."""
        self.waiting += len(data)
        self._lines.put(data)

    def close(self) -> None:
        """Have what is there written, if the host reads it."""
        self._lines.put(END)
        self._thread.join(CLOSE_TIMEOUT)

    def _write(self) -> None:
        while (data := self._lines.get()) is not END:
            rest = data + b"\n"
            try:
                while rest:
                    rest = rest[os.write(STDOUT, rest) :]
            except OSError:
                self._broke()
                return
            self.waiting -= len(data)
            self._wrote()
