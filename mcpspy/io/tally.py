"""How many messages, errors and pending requests there are in a session.

Owns reading on from where it stopped, a portion at a time: the thread that
counts must not keep the one that draws from the interpreter. What an error is,
and what belongs to what, is `core.index`'s. Refuses to notice what becomes of
the session as a whole: that is `io.store`'s.
"""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import NamedTuple

from mcpspy.core.framing import LineFramer
from mcpspy.core.index import Index
from mcpspy.core.record import Entry, read_entry
from mcpspy.io.store import State, Summary, opened, part_after

PORTION = 1 << 16
"""Bytes between two rests: some two milliseconds of work."""

REST = 0.0005
"""Seconds of a rest. Not 0: who releases the interpreter for no time has it back before anybody wakes."""


class Counts(NamedTuple):
    """What is counted."""

    messages: int
    errors: int
    """As everywhere: answers that are one, requests that got none, entries that were lost."""
    pending: int


def count(summary: Summary) -> Counts:
    """Return the counts of a session as it is now; raise OSError or McpspyError if it cannot be read."""
    tally = Tally(summary.path, rest=0)
    while not tally.read():
        continue
    if summary.state is not State.LIVE:
        tally.end()
    return tally.counts


class Tally:
    """A session counted as far as it has been read."""

    def __init__(self, path: Path, *, rest: float = REST) -> None:
        self._first = path
        self._rest = rest
        self._restart()

    @property
    def counts(self) -> Counts:
        """What was counted so far."""
        index = self._index
        return Counts(index.messages, index.failed, index.pending)

    def read(self, seconds: float = float("inf")) -> bool:
        """Read on for so long at most; return whether all there is now has been read.

        Raises OSError or McpspyError if a file cannot be read.
        """
        until = time.monotonic() + seconds
        while self._read_part(until):
            following = part_after(self._path, self._last)
            if following is None or following in self._seen:
                return True
            self._begin(following)
        return False

    def end(self) -> None:
        """Nothing more will come: what has no answer gets none."""
        self._index.end()

    def _restart(self) -> None:
        self._index = Index()
        self._seen: set[Path] = set()
        self._begin(self._first)

    def _begin(self, path: Path) -> None:
        self._path = path
        self._seen.add(path)
        self._file: tuple[int, int] | None = None
        self._position = 0
        self._framer = LineFramer()
        self._is_at_header = True
        self._last: Entry | None = None

    def _read_part(self, until: float) -> bool:
        """Read the current file; return whether its end was reached in time."""
        with opened(self._path) as file:
            stat = os.fstat(file.fileno())
            if self._file not in (None, (stat.st_dev, stat.st_ino)) or stat.st_size < self._position:
                self._restart()  # It was cut, or another has its name.
                return False
            self._file = stat.st_dev, stat.st_ino
            file.seek(self._position)
            while chunk := file.read(PORTION):
                self._position += len(chunk)
                for line in self._framer.feed(chunk):
                    self._take(line)
                if self._rest:
                    time.sleep(self._rest)
                if time.monotonic() > until:
                    return False
        return True

    def _take(self, line: bytes) -> None:
        if self._is_at_header:
            self._is_at_header = False
            return
        self._last = entry = read_entry(line)
        self._index.add(entry, 0, 0)
