"""Where the keys lead that go from row to row.

Owns what the next of something is, in the order that is shown; a row of an
exchange stands for both of its messages. Pure: numbers of rows in and out.

What single keys change about the rows that are shown, and what is said of it. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable

from msgspec.structs import replace

from mcpspy.ui.session_model import SessionModel
from mcpspy.ui.tui.session.message_list import MessageList
from mcpspy.ui.tui.session.row_filter import FilteredView, SortOrder, ViewOptions


class Navigation:
    """Ways from the row under the cursor to another; None where there is none. A step is 1 or -1."""

    def __init__(self, log: SessionModel, view: FilteredView, listing: MessageList) -> None:
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


MOST_SORTED = 200_000
"""Rows that can be sorted: more would keep keys waiting."""

LET_IN = {
    "notifications": "notifications",
    "asides": "stderr and other asides",
    "http": "HTTP exchanges",
}
"""Members of a wish that let rows in, and what these are."""


def turned(wish: ViewOptions, what: str, count: int) -> tuple[ViewOptions, str]:
    """Return a wish with something else about it, of so many rows, and the words for that."""
    if what in LET_IN:
        on = not getattr(wish, what)
        return replace(wish, **{what: on}), f"{LET_IN[what]} are {'shown' if on else 'hidden'}"
    if what == "exchanges":
        wish = replace(wish, exchanges=not wish.exchanges)
        return (
            wish,
            "one row an exchange" if wish.exchanges else "one row a message, in the order of the wire",
        )
    if what == "order":
        wanted = replace(wish, order=wish.order.following, reverse=False)
    else:
        wanted = replace(wish, reverse=not wish.reverse)
    if wanted.is_sorted and count > MOST_SORTED:
        return wish, f"more than {MOST_SORTED:,} rows: filter first, then sort"
    return wanted, ordered(wanted)


def ordered(wish: ViewOptions) -> str:
    if not wish.is_sorted:
        return "in the order of time"
    way = "last" if wish.order is SortOrder.TIME else "smallest" if wish.reverse else "largest"
    return f"sorted by {wish.order}, {way} first"
