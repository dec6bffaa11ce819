"""stdin and stdout as lines, by threads, for commands that are stdio servers themselves.

The descriptors may be shared with the parent process, so they stay blocking and threads wait
on them.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from queue import SimpleQueue
from threading import Thread

from mcpspy.core.framing import LineFramer

STDIN, STDOUT = 0, 1

END = None
"""Marks the end of the input."""

CLOSE_TIMEOUT = 1.0
"""Seconds that the host may take at the end to read the last lines."""


def read_lines(put: Callable[[bytes | None], object]) -> None:
    """Call `put` in a thread with each line of stdin, without its LF, then with END."""

    def each(lines: list[bytes] | None) -> None:
        for line in (END,) if lines is END else lines:
            put(line)

    read_together(each)


def read_together(put: Callable[[list[bytes] | None], object]) -> None:
    """Call `put` in a thread with the lines of each chunk of stdin, then with END."""

    def read() -> None:
        framer = LineFramer()
        try:
            while chunk := os.read(STDIN, 1 << 16):
                if lines := framer.feed(chunk):
                    put(lines)
        except OSError:  # The terminal is gone, or stdin was never open.
            pass
        if torn := b"".join(framer.close()):
            put([torn])
        put(END)

    Thread(target=read, name="stdin", daemon=True).start()


class StdoutWriter:
    """Lines for stdout, written by a thread: a host that does not read blocks nothing else."""

    def __init__(self, broke: Callable[[], object], wrote: Callable[[], object]) -> None:
        """Call `broke` if the reader is gone, and `wrote` after each line, both in the thread."""
        self._broke = broke
        self._wrote = wrote
        self._lines: SimpleQueue[bytes | None] = SimpleQueue()
        self.waiting = 0
        """Bytes not written yet."""
        self._thread = Thread(target=self._write, name="stdout", daemon=True)
        self._thread.start()

    def put(self, data: bytes) -> None:
        """Queue a message for writing, with a line end."""
        self.waiting += len(data)
        self._lines.put(data)

    def close(self) -> None:
        """Write the queued messages, if the host reads them in time."""
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
