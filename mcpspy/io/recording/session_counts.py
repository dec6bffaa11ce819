"""Counts of one session: messages, errors, open and unanswered requests, protocol issues.

Counting continues where it stopped, one portion at a time, so that the drawing thread gets the interpreter in between.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import NamedTuple

from mcpspy.core.session.index import Index
from mcpspy.io.recording.reader import RecordingState, Summary
from mcpspy.io.recording.scan import FileStatus, RecordingScan

PORTION = 1 << 16
"""Bytes between two pauses: about two milliseconds of work."""

PAUSE = 0.0005
"""Seconds between two portions. Not 0: a thread that sleeps for 0 s gets the interpreter back at once."""


class SessionCounts(NamedTuple):
    messages: int
    errors: int
    """Error responses, requests without a response, and lost entries."""
    pending: int
    issues: int = 0
    """Messages with a protocol issue that are not errors."""
    unanswered: int = 0
    """Requests without a response at the end of the session."""


def count(summary: Summary) -> SessionCounts:
    """Return the current counts of a session. Raise OSError or McpspyError if it cannot be read."""
    counter = SessionCounter(summary.path, pause=0)
    while not counter.read():
        continue
    if summary.state is not RecordingState.LIVE:
        counter.end()
    return counter.counts


class SessionCounter:
    """Counts of a session, up to the position that was read."""

    def __init__(self, path: Path, *, pause: float = PAUSE) -> None:
        self._first = path
        self._pause = pause
        self._restart()

    @property
    def counts(self) -> SessionCounts:
        index = self._index
        return SessionCounts(index.messages, index.failed, index.pending, index.issues, index.unanswered)

    def read(self, seconds: float = float("inf")) -> bool:
        """Continue to read for at most N seconds. Return whether everything available has been read.

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
            self._scan.close()  # Only a few of many sessions are read at a time.
        return True

    def end(self) -> None:
        """Count pending requests as unanswered, because the session has ended."""
        self._index.end()

    def _restart(self) -> None:
        self._index = Index()
        self._scan = RecordingScan(self._first, PORTION)
