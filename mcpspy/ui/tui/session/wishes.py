"""What single keys change about the rows that are shown, and what is said of it. Pure."""

from __future__ import annotations

from msgspec.structs import replace

from mcpspy.ui.tui.session.view import Order, Wish

MOST_SORTED = 200_000
"""Rows that can be sorted: more would keep keys waiting."""

LET_IN = {
    "notifications": "notifications",
    "asides": "stderr and other asides",
    "http": "HTTP exchanges",
}
"""Members of a wish that let rows in, and what these are."""


def turned(wish: Wish, what: str, count: int) -> tuple[Wish, str]:
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


def ordered(wish: Wish) -> str:
    if not wish.is_sorted:
        return "in the order of time"
    way = "last" if wish.order is Order.TIME else "smallest" if wish.reverse else "largest"
    return f"sorted by {wish.order}, {way} first"
