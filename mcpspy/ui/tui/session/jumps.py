"""Where the keys lead that go from row to row.

Owns what the next of something is, in the order that is shown; a row of an
exchange stands for both of its messages. Pure: numbers of rows in and out.
"""

from __future__ import annotations

from collections.abc import Iterable

from mcpspy.ui.tui.session.log import Log
from mcpspy.ui.tui.session.messages import MessageList
from mcpspy.ui.tui.session.view import View


class Jumps:
    """Ways from the row under the cursor to another; None where there is none. A step is 1 or -1."""

    def __init__(self, log: Log, view: View, listing: MessageList) -> None:
        self._log = log
        self._view = view
        self._listing = listing

    def among(self, some: Iterable[int], step: int) -> int | None:
        """Return the next row that is one of some, or whose answer is. It may be the answer of a request further up."""
        index, exchanges = self._log.index, self._view.wish.exchanges
        wanted = set(some)
        for row in self._beyond(step) if wanted else ():
            if row in wanted or (exchanges and index.request(row) == row and index.pair(row) in wanted):
                return row
        return None

    def alike(self, step: int) -> int | None:
        """Return the next row about the same tool, or method."""
        index, here = self._log.index, self._listing.row
        if here is None:
            return None
        method, subject = index.method, index.subject
        about = method[here], subject[here]
        return next((row for row in self._beyond(step) if (method[row], subject[row]) == about), None)

    def marked(self, step: int) -> int | None:
        """Return the next row that a person marked."""
        here = self._listing.row
        if here is None:
            return None
        return min(
            (row for row in self._listing.marked if (row - here) * step > 0),
            key=lambda row: row * step,
            default=None,
        )

    def chained(self, step: int) -> int | None:
        """Return the request that answers the question of this one's answer; or the one whose question it answers."""
        index, here = self._log.index, self._listing.row
        request = None if here is None else index.request(here)
        links = index.continued_by if step > 0 else index.continues
        return None if request is None else links.get(request)

    def _beyond(self, step: int) -> Iterable[int]:
        """Return the rows that are shown below the cursor, or above it, the nearest first."""
        rows, cursor = self._view.rows, self._listing.cursor
        places = range(cursor + step, len(rows) if step > 0 else -1, step)
        return (rows[place] for place in places)
