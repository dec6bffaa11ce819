"""A fold over the rows of a log, a portion at a time.

Owns how far it has come, that it begins anew with the log, and that it stops
when its time is up. What is made of the rows is a subclass's. Pure: the clock
is the caller's.
"""

from __future__ import annotations

from collections.abc import Callable

from mcpspy.core.session.index import Index
from mcpspy.ui.tui.session.log import Log

PORTION = 512
"""Rows that are taken between two looks at the clock."""


class Portions:
    """Something made of all rows so far."""

    def __init__(self, log: Log) -> None:
        self._log = log
        self.generation = 0
        """How often it began anew."""
        self._judged = 0
        self._anew()

    @property
    def judged(self) -> int:
        return self._judged

    @property
    def is_another(self) -> bool:
        """Whether the log began anew meanwhile: nothing here is true of it."""
        return self._log_generation != self._log.generation

    @property
    def is_behind(self) -> bool:
        """Whether there is something to do."""
        return self.is_another or self._judged < len(self._log)

    def judge(self, goes_on: Callable[[], bool]) -> None:
        """Take the rows that have come, while there is time for it."""
        if self.is_another:
            self._anew()
        while self._judged < len(self._index):
            begin, self._judged = self._judged, min(self._judged + PORTION, len(self._index))
            self._take(begin, self._judged)
            if not goes_on():
                break

    def _anew(self) -> None:
        self.generation += 1
        self._log_generation = self._log.generation
        self._index: Index = self._log.index
        self._judged = 0
        self._begin()

    def _begin(self) -> None:
        raise NotImplementedError

    def _take(self, begin: int, end: int) -> None:
        raise NotImplementedError
