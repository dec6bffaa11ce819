"""What single keys change, and what is said of it."""

from __future__ import annotations

import pytest

from mcpspy.ui.tui.session.message_list import MOST_SORTED, turned
from mcpspy.ui.tui.session.row_filter import SortOrder, ViewOptions


@pytest.mark.parametrize(
    ("what", "once", "said", "again"),
    [
        (
            "exchanges",
            ViewOptions(exchanges=False),
            "one row a message, in the order of the wire",
            "one row an exchange",
        ),
        (
            "notifications",
            ViewOptions(notifications=False),
            "notifications are hidden",
            "notifications are shown",
        ),
        (
            "asides",
            ViewOptions(asides=False),
            "stderr and other asides are hidden",
            "stderr and other asides are shown",
        ),
        ("http", ViewOptions(http=True), "HTTP exchanges are shown", "HTTP exchanges are hidden"),
        ("reverse", ViewOptions(reverse=True), "sorted by time, last first", "in the order of time"),
    ],
)
def test_what_is_turned_twice_is_as_it_was(what: str, once: ViewOptions, said: str, again: str) -> None:
    assert turned(ViewOptions(), what, 9) == (once, said)
    assert turned(once, what, 9) == (ViewOptions(), again)


def test_the_order_goes_around() -> None:
    wish, said = turned(ViewOptions(reverse=True), "order", 9)
    assert (wish, said) == (ViewOptions(order=SortOrder.LATENCY), "sorted by latency, largest first")
    assert turned(wish, "reverse", 9)[1] == "sorted by latency, smallest first"
    wish, said = turned(turned(wish, "order", 9)[0], "order", 9)
    assert (wish, said) == (ViewOptions(), "in the order of time")


def test_more_rows_than_can_be_sorted_stay_as_they_are_but_may_be_put_back() -> None:
    wish, said = turned(ViewOptions(), "order", MOST_SORTED + 1)
    assert (wish, said) == (ViewOptions(), "more than 200,000 rows: filter first, then sort")
    assert turned(ViewOptions(reverse=True), "reverse", MOST_SORTED + 1)[0] == ViewOptions()
