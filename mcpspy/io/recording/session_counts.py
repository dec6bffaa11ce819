"""Counts of sessions: messages, errors, open and unanswered requests, protocol issues.

Counting continues where it stopped, one portion at a time, so that the drawing thread gets the interpreter in between.
Very large sessions are not counted.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple, Protocol

from mcpspy.core.session.index import Index
from mcpspy.core.session.outcome import SessionCounts
from mcpspy.errors import McpspyError
from mcpspy.io.recording.cache import FileStamp
from mcpspy.io.recording.reader import RecordingState, Summary
from mcpspy.io.recording.scan import FileStatus, RecordingScan

PORTION = 1 << 16
"""Bytes between two pauses: about two milliseconds of work."""

PAUSE = 0.0005
"""Seconds between two portions. Not 0: a thread that sleeps for 0 s gets the interpreter back at once."""

LARGEST = 64 << 20
"""Maximum size, in bytes, of a session that is counted. Counting it takes seconds and as much memory."""

AGAIN = 20
"""Factor for the pause between two counts of a changed session that is not live, relative to the last count."""

AT_A_TIME = 0.1
"""Seconds of work per call."""


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
        return self._index.counts

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


class _Done(NamedTuple):
    summary: Summary
    stamp: FileStamp | None
    again: float


class CountStore(Protocol):
    """Keeps the counts of sessions that are not live: `io.recording.catalog.Catalog`."""

    def counted(self, summary: Summary) -> SessionCounts | None: ...

    def remember(self, summary: Summary, counts: SessionCounts, seconds: float) -> None: ...


class CountCache:
    def __init__(self, catalog: CountStore | None = None) -> None:
        self._catalog = catalog
        self.counts: dict[Path, SessionCounts] = {}
        self.news = 0
        """Number of changes to the counts."""
        self._done: dict[Path, _Done] = {}
        self._counters: dict[Path, SessionCounter] = {}
        self._spent: dict[Path, float] = {}

    def of(self, summary: Summary) -> SessionCounts | None:
        """Return the counts of a session, if they are known."""
        known = self.counts.get(summary.path)
        if known is None and self._catalog is not None and not is_too_large(summary):
            return self._catalog.counted(summary)
        return known

    def keep(self, names: Iterable[str]) -> None:
        """Forget the sessions in files with other names."""
        if not self.counts and not self._counters:
            return
        kept = set(names)
        for known in (self.counts, self._done, self._counters, self._spent):
            for path in [path for path in known if path.name not in kept]:
                del known[path]

    def work(self, sessions: Iterable[Summary], seconds: float = AT_A_TIME) -> bool:
        """Count for N seconds, starting with the first session. Return whether nothing is left to count."""
        until = time.monotonic() + seconds
        has_worked = False
        for summary in sessions:
            if self._is_counted(summary):
                continue
            if (has_worked and time.monotonic() > until) or not self._count(summary, until):
                return False
            has_worked = True
        return True

    def _is_counted(self, summary: Summary) -> bool:
        if is_too_large(summary):
            self._counters.pop(summary.path, None)
            self.counts.pop(summary.path, None)
            return True
        if self._catalog is not None and self._catalog.counted(summary) is not None:
            return True
        done = self._done.get(summary.path)
        if done is None or RecordingState.LIVE in (done.summary.state, summary.state):
            return False  # A live session is always read again, which is cheap if there are no new entries.
        if done.summary is summary or time.monotonic() < done.again:
            return True
        return (done.summary, done.stamp) == (summary, _stamp(summary.path))

    def _count(self, summary: Summary, until: float) -> bool:
        path = summary.path
        stamp = _stamp(path)
        counter = self._counters.get(path) or SessionCounter(path)
        self._counters[path] = counter
        began = time.monotonic()
        try:
            is_read = counter.read(max(until - began, 0.0))
        except (OSError, McpspyError):  # The file was deleted, or cannot be read.
            is_read = True
        now = time.monotonic()
        spent = self._spent[path] = self._spent.get(path, 0.0) + now - began
        if not is_read:
            if path in self.counts:  # Live, and it grows faster than it is read: publish what is counted.
                self._publish(path, counter.counts)
            return False
        if summary.state is not RecordingState.LIVE:
            counter.end()
            del self._counters[path]
            if self._catalog is not None:
                self._catalog.remember(summary, counter.counts, spent)
        self._publish(path, counter.counts)
        self._done[path] = _Done(summary, stamp, now + AGAIN * spent)
        self._spent[path] = 0.0
        return True

    def _publish(self, path: Path, counts: SessionCounts) -> None:
        if self.counts.get(path) != counts:
            self.counts[path] = counts
            self.news += 1


def is_too_large(summary: Summary) -> bool:
    return summary.size > LARGEST


def _stamp(path: Path) -> FileStamp | None:
    try:
        return FileStamp.of(path)
    except OSError:
        return None
