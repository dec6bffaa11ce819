"""The number of messages, errors and pending requests in a session.

Owns counting on from where it stopped, a portion at a time: the thread that
counts must not keep the one that draws from the interpreter. What an error is,
and what belongs to what, is `core.session.index`'s; the reading is `io.blocks`'s.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import NamedTuple

from mcpspy.core.session.index import Index
from mcpspy.io.blocks import FileStatus, RecordingScan
from mcpspy.io.store import State, Summary

PORTION = 1 << 16
"""Bytes between two pauses: some two milliseconds of work."""

PAUSE = 0.0005
"""Seconds between two portions. Not 0: who releases the interpreter for no time has it back before anybody wakes."""


class Counts(NamedTuple):
    messages: int
    errors: int
    """As everywhere: answers that are one, requests that got none, entries that were lost."""
    pending: int


def count(summary: Summary) -> Counts:
    """Return the counts of a session as it is now; raise OSError or McpspyError if it cannot be read."""
    tally = Tally(summary.path, pause=0)
    while not tally.read():
        continue
    if summary.state is not State.LIVE:
        tally.end()
    return tally.counts


class Tally:
    """A session counted as far as it has been read."""

    def __init__(self, path: Path, *, pause: float = PAUSE) -> None:
        self._first = path
        self._pause = pause
        self._restart()

    @property
    def counts(self) -> Counts:
        index = self._index
        return Counts(index.messages, index.failed, index.pending)

    def read(self, seconds: float = float("inf")) -> bool:
        """Read on for N seconds at most; return whether all there is now has been read.

        Raises OSError or McpspyError if a file cannot be read.
        """
        until = time.monotonic() + seconds
        try:
            if self._scan.status() is FileStatus.REPLACED:
                self._scan.close()
                self._restart()
            while (block := self._scan.next()) is not None:
                self._index.add_lines(block.lines, block.offset)
                if self._pause:
                    time.sleep(self._pause)
                if time.monotonic() > until:
                    return False
        finally:
            self._scan.close()  # Many sessions are counted, and few at a time.
        return True

    def end(self) -> None:
        """Nothing more will come: what has no answer gets none."""
        self._index.end()

    def _restart(self) -> None:
        self._index = Index()
        self._scan = RecordingScan(self._first, PORTION)
