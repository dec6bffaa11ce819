"""The sessions of a folder, looked at again and again.

Owns what makes that cheap: a file that did not change is not read again, and a
large one that grows is not read more often than it is worth. What a session is
and how it stands is `io.store`'s. Runs in a thread; touches the disk, never
the screen.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import NamedTuple

from mcpspy.errors import McpspyError
from mcpspy.io.folder import sessions_folder
from mcpspy.io.store import Recording, State, Summary, read_header_of, summarize

REST = 20
"""How many times as long as reading a file took it is left alone."""


class Stamp(NamedTuple):
    """What changes when a file does."""

    device: int
    inode: int
    size: int
    changed: int

    @classmethod
    def of(cls, path: Path) -> Stamp:
        """Raise OSError if there is no such file."""
        stat = path.stat()
        return cls(stat.st_dev, stat.st_ino, stat.st_size, stat.st_mtime_ns)


class _Known(NamedTuple):
    stamp: Stamp
    again: float
    summary: Summary | None
    """None: no recording, or a later part of one."""


class Catalog:
    def __init__(self, folder: str | None = None) -> None:
        self.folder = Path(sessions_folder(folder))
        self.trouble = ""
        """Why the folder cannot be read, if so."""
        self._known: dict[Path, _Known] = {}

    def look(self, *, anew: bool = False) -> list[Summary]:
        """Return the sessions as they are now: live ones first, then the newest.

        `anew`: as if no file had been read before.
        """
        if anew:
            self._known = {}
        trouble = ""
        try:
            paths = [path for path in self.folder.iterdir() if path.suffix == ".jsonl"]
        except FileNotFoundError:
            paths = []
        except OSError as error:
            paths = []
            trouble = f"{self.folder}: {error.strerror}"
        self.trouble = trouble
        known = {}
        for path in paths:
            try:
                known[path] = self._look_at(path)
            except (OSError, McpspyError):  # Deleted while we looked, or no recording yet.
                continue
        self._known = known
        found = [entry.summary for entry in known.values() if entry.summary is not None]
        found.sort(key=lambda summary: summary.order, reverse=True)
        return sorted(found, key=lambda summary: summary.state is not State.LIVE)

    def _look_at(self, path: Path) -> _Known:
        stamp = Stamp.of(path)
        known = self._known.get(path)
        if known is not None and not self._is_stale(path, known, stamp):
            return known
        began = time.monotonic()
        header = read_header_of(path)
        summary = summarize(path, header) if header.part == 1 else None
        now = time.monotonic()
        return _Known(stamp, now + REST * (now - began), summary)

    def _is_stale(self, path: Path, known: _Known, stamp: Stamp) -> bool:
        summary = known.summary
        if (known.stamp.device, known.stamp.inode) != (stamp.device, stamp.inode):
            return True
        if summary is not None and summary.state is State.LIVE and Recording(path).state is not State.LIVE:
            return True  # Its end is never late.
        if stamp == known.stamp and (summary is None or summary.state is not State.LIVE):
            return False
        return time.monotonic() >= known.again
