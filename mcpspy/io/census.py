"""The counts of all sessions of a folder.

Owns which session is counted next, and that none is read again that did not
change: of one that ended the counts are kept, of a live one the place where
reading goes on. What is larger than it is worth is not counted at all. Runs in
a thread, one call at a time; `counts` may be read meanwhile.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import NamedTuple

from mcpspy.errors import McpspyError
from mcpspy.io.catalog import Stamp
from mcpspy.io.store import State, Summary
from mcpspy.io.tally import Counts, Tally

LARGEST = 64 << 20
"""Bytes of a session that is still counted: counting it takes some seconds, and meanwhile its size again in memory."""

AGAIN = 20
"""How many times as long as counting took, a session that is not live and changed all the same is left alone."""

SLICE = 0.1
"""Seconds of work between two looks at what is wanted."""


class _Done(NamedTuple):
    summary: Summary
    stamp: Stamp | None
    again: float


class Census:
    def __init__(self) -> None:
        self.counts: dict[Path, Counts] = {}
        self.news = 0
        """How often a count became another one."""
        self._done: dict[Path, _Done] = {}
        self._tallies: dict[Path, Tally] = {}
        self._spent: dict[Path, float] = {}

    def keep(self, paths: Collection[Path]) -> None:
        """Forget all other sessions."""
        for known in (self.counts, self._done, self._tallies, self._spent):
            for path in known.keys() - set(paths):
                known.pop(path, None)

    def work(self, sessions: Sequence[Summary], seconds: float = SLICE) -> bool:
        """Count for so long, the first session first; return whether there is nothing left to do."""
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
            self._tallies.pop(summary.path, None)
            self.counts.pop(summary.path, None)
            return True
        done = self._done.get(summary.path)
        if done is None or State.LIVE in (done.summary.state, summary.state):
            return False  # What is new in a live one is read; that there is nothing costs a look.
        if done.summary is summary or time.monotonic() < done.again:
            return True
        return (done.summary, done.stamp) == (summary, _stamp(summary.path))

    def _count(self, summary: Summary, until: float) -> bool:
        path = summary.path
        stamp = _stamp(path)
        tally = self._tallies.get(path) or Tally(path)
        self._tallies[path] = tally
        began = time.monotonic()
        try:
            is_read = tally.read(max(until - began, 0.0))
        except (OSError, McpspyError):  # Deleted while we counted, or not ours to read.
            is_read = True
        now = time.monotonic()
        spent = self._spent[path] = self._spent.get(path, 0.0) + now - began
        if not is_read:
            if path in self.counts:  # A live one that goes faster than we do: what there is so far.
                self._publish(path, tally.counts)
            return False
        if summary.state is not State.LIVE:
            tally.end()
            del self._tallies[path]
        self._publish(path, tally.counts)
        self._done[path] = _Done(summary, stamp, now + AGAIN * spent)
        self._spent[path] = 0.0
        return True

    def _publish(self, path: Path, counts: Counts) -> None:
        if self.counts.get(path) != counts:
            self.counts[path] = counts
            self.news += 1


def is_too_large(summary: Summary) -> bool:
    """Whether a session is not counted."""
    return summary.size > LARGEST


def _stamp(path: Path) -> Stamp | None:
    try:
        return Stamp.of(path)
    except OSError:
        return None
