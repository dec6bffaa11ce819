"""The sessions of a folder and their counts, for cheap polling in a thread.

An unchanged file is not read again; a large file that grows is read at growing intervals. Counting continues
where it stopped, one portion at a time, so that the drawing thread gets the interpreter in between. Very large
sessions are not counted.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import NamedTuple

from mcpspy.core.session.index import Index
from mcpspy.errors import McpspyError
from mcpspy.io.recording.reader import Recording, RecordingState, Summary, read_header_of, summarize
from mcpspy.io.recording.scan import FileStatus, RecordingScan
from mcpspy.io.settings import sessions_folder

REST = 20
"""Factor for the pause between two reads of a file, relative to the duration of the last read."""

PORTION = 1 << 16
"""Bytes between two pauses: about two milliseconds of work."""

PAUSE = 0.0005
"""Seconds between two portions. Not 0: a thread that sleeps for 0 s gets the interpreter back at once."""

LARGEST = 64 << 20
"""Maximum size, in bytes, of a session that is counted. Counting it takes seconds and as much memory."""

AGAIN = 20
"""Factor for the pause between two counts of a changed session that is not live, relative to the last count."""

SLICE = 0.1
"""Seconds of work per call."""


class FileStamp(NamedTuple):
    """Identity, size and modification time of a file."""

    device: int
    inode: int
    size: int
    changed: int

    @classmethod
    def of(cls, path: Path) -> FileStamp:
        """Return the stamp of a file. Raise OSError if the file does not exist."""
        stat = path.stat()
        return cls(stat.st_dev, stat.st_ino, stat.st_size, stat.st_mtime_ns)


class _Known(NamedTuple):
    stamp: FileStamp
    again: float
    summary: Summary | None
    """None if the file is not a recording, or is a later part of one."""


class Catalog:
    def __init__(self, folder: str | None = None) -> None:
        self.folder = Path(sessions_folder(folder))
        self.trouble = ""
        """Reason why the folder cannot be read, or an empty string."""
        self._known: dict[Path, _Known] = {}

    def look(self, *, anew: bool = False) -> list[Summary]:
        """Return the current sessions: live ones first, then the newest. `anew` reads every file again."""
        if anew:
            self._known = {}
        paths, trouble = [], ""
        try:
            paths = [path for path in self.folder.iterdir() if path.suffix == ".jsonl"]
        except FileNotFoundError:
            pass
        except OSError as error:
            trouble = f"{self.folder}: {error.strerror}"
        self.trouble = trouble
        known = {}
        for path in paths:
            try:
                known[path] = self._look_at(path)
            except (OSError, McpspyError):  # The file was deleted, or is not a recording yet.
                continue
        self._known = known
        found = [entry.summary for entry in known.values() if entry.summary is not None]
        found.sort(key=lambda summary: summary.order, reverse=True)
        return sorted(found, key=lambda summary: summary.state is not RecordingState.LIVE)

    def _look_at(self, path: Path) -> _Known:
        stamp = FileStamp.of(path)
        known = self._known.get(path)
        if known is not None and not self._is_stale(path, known, stamp):
            return known
        began = time.monotonic()
        header = read_header_of(path)
        summary = summarize(path, header) if header.part == 1 else None
        now = time.monotonic()
        return _Known(stamp, now + REST * (now - began), summary)

    def _is_stale(self, path: Path, known: _Known, stamp: FileStamp) -> bool:
        summary = known.summary
        if (known.stamp.device, known.stamp.inode) != (stamp.device, stamp.inode):
            return True
        if (
            summary is not None
            and summary.state is RecordingState.LIVE
            and Recording(path).state is not RecordingState.LIVE
        ):
            return True  # Show the end of a session at once.
        if stamp == known.stamp and (summary is None or summary.state is not RecordingState.LIVE):
            return False
        return time.monotonic() >= known.again


class SessionCounts(NamedTuple):
    messages: int
    errors: int
    """Error responses, requests without a response, and lost entries."""
    pending: int
    unanswered: int = 0


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
        return SessionCounts(index.messages, index.failed, index.pending, index.unanswered)

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


class CountCache:
    def __init__(self) -> None:
        self.counts: dict[Path, SessionCounts] = {}
        self.news = 0
        """Number of changes to the counts."""
        self._done: dict[Path, _Done] = {}
        self._counters: dict[Path, SessionCounter] = {}
        self._spent: dict[Path, float] = {}

    def keep(self, paths: Collection[Path]) -> None:
        """Forget all other sessions."""
        for known in (self.counts, self._done, self._counters, self._spent):
            for path in known.keys() - set(paths):
                known.pop(path, None)

    def work(self, sessions: Sequence[Summary], seconds: float = SLICE) -> bool:
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
