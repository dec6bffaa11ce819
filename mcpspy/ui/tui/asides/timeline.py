"""Which calls overlap: every exchange of a session, and how many were in flight with it.

Owns when an exchange was over, and the count of those that were not as the
next one began. How that is drawn is `axis`'. Pure.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left

from mcpspy.core.session.columns import NOTE, NOTIFICATION, REQUEST
from mcpspy.core.session.exchange import State
from mcpspy.ui.tui.asides.portions import Portions


class Timeline(Portions):
    """The exchanges of a session, in the order in which they began."""

    def _begin(self) -> None:
        self.rows = array("I")
        """The row of each exchange's request."""
        self.depths = array("I")
        """How many were in flight once it had begun, itself included."""
        self.peak = 0
        """The most there ever were in flight."""
        self.peak_place = 0
        """The exchange whose beginning made it so many."""
        self._open: set[int] = set()
        self._stopped: dict[int, int] = {}
        """Row of a request that ended without an answer → row of what ended it."""

    def __len__(self) -> int:
        return len(self.rows)

    def place_of(self, row: int) -> int:
        """Return the place of an exchange, or of the next one."""
        return max(min(bisect_left(self.rows, row), len(self) - 1), 0)

    def begin_of(self, place: int) -> float:
        return self._index.at[self.rows[place]]

    def end_of(self, place: int) -> float | None:
        """Return when an exchange was over; None while it is not."""
        index, row = self._index, self.rows[place]
        last = index.pair(row)
        if last is None:
            last = self._stopped.get(row)
        if last is not None:
            return index.at[last]
        return None if index.state(row) is State.PENDING else index.last_at

    def _take(self, begin: int, end: int) -> None:
        index, is_open = self._index, self._open
        what = index.what
        for row in range(begin, end):
            kind = what[row] & 7
            if kind == REQUEST:
                if index.request(row) is not None:
                    self._ask(row)
                continue
            request = index.pair(row)
            if request is None or request not in is_open:
                continue
            if kind == NOTIFICATION:
                if index.texts[index.method[row]] != "notifications/cancelled":
                    continue
                self._stopped[request] = row
            elif kind == NOTE:
                self._stopped[request] = row
            is_open.discard(request)

    def _ask(self, row: int) -> None:
        self._open.add(row)
        depth = len(self._open)
        if depth > self.peak:
            self.peak, self.peak_place = depth, len(self)
        self.rows.append(row)
        self.depths.append(depth)
