"""One descriptor that several threads have something to write to: whole, and in order.

Owns whose turn it is. One thread writes by itself as long as nobody else has
anything to say, which is nearly always; what others put is written by a thread
of the outlet, which there is from then on.
"""

from __future__ import annotations

import os
import threading
from collections import deque

from mcpspy.io.stdio_base import close


class Outlet:
    """What leads to one reader. Blocking: the thread that writes waits for who reads."""

    def __init__(self, target: int) -> None:
        self._target = target
        self._change = threading.Condition()
        self._queue: deque[bytes] = deque()
        self._is_reserved = False
        self._is_ending = False
        self._thread: threading.Thread | None = None
        self.backlog = 0
        """Bytes put and not written."""
        self.undelivered = 0
        """Bytes that nobody took, because nobody reads any more."""
        self.is_open = True

    def reserve(self) -> bool:
        """Whether the caller may write by itself, and what others put from now on comes after that."""
        with self._change:
            if self._is_reserved or self.backlog or self._is_ending:
                return False
            self._is_reserved = True
            return True

    def write(self, data: bytes) -> None:
        """Write what a turn was reserved for."""
        left = self._written(data)
        with self._change:
            self._is_reserved = False
            self._settle(left)

    def put(self, data: bytes) -> None:
        """Have this written after all that is before it; in vain, if nobody reads any more."""
        with self._change:
            if self.is_open and not self._is_ending and data:
                self._queue.append(data)
                self.backlog += len(data)
                if self._thread is None:
                    self._thread = threading.Thread(target=self._run, daemon=True)
                    self._thread.start()
                self._change.notify_all()

    def wait(self) -> None:
        """Wait until all that was put is written."""
        with self._change:
            self._change.wait_for(lambda: not self.backlog)

    def end(self) -> None:
        """Take nothing more, and close once all is written."""
        with self._change:
            self._is_ending = True
            self._settle(0)

    def _run(self) -> None:
        while True:
            with self._change:
                self._change.wait_for(lambda: (self._queue and not self._is_reserved) or not self.is_open)
                if not self.is_open:
                    return
                data = self._queue.popleft()
            left = self._written(data)
            with self._change:
                self.backlog -= len(data)
                self._settle(left)

    def _settle(self, left: int) -> None:
        """Close, if that is due; tell all who wait. Called with the condition held."""
        if left:
            self.undelivered = left + sum(map(len, self._queue))
            self._queue.clear()
            self.backlog = 0
            self._is_ending = True
        if self.is_open and self._is_ending and not self.backlog and not self._is_reserved:
            self.is_open = False
            close(self._target)
        self._change.notify_all()

    def _written(self, data: bytes) -> int:
        try:
            while data:
                data = data[os.write(self._target, data) :]
        except OSError:
            pass
        return len(data)
