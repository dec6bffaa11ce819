"""What single keys change, and what is said of it."""

from __future__ import annotations

import pytest

from mcpspy.ui.tui.session.message_list import MOST_SORTED, changed_options
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
            "events",
            ViewOptions(events=False),
            "stderr and other asides are hidden",
            "stderr and other asides are shown",
        ),
        ("http", ViewOptions(http=True), "HTTP exchanges are shown", "HTTP exchanges are hidden"),
        ("reverse", ViewOptions(reverse=True), "sorted by time, last first", "in the order of time"),
    ],
)
def test_what_is_turned_twice_is_as_it_was(what: str, once: ViewOptions, said: str, again: str) -> None:
    assert changed_options(ViewOptions(), what, 9) == (once, said)
    assert changed_options(once, what, 9) == (ViewOptions(), again)


def test_the_order_goes_around() -> None:
    options, said = changed_options(ViewOptions(reverse=True), "order", 9)
    assert (options, said) == (ViewOptions(order=SortOrder.LATENCY), "sorted by latency, largest first")
    assert changed_options(options, "reverse", 9)[1] == "sorted by latency, smallest first"
    options, said = changed_options(changed_options(options, "order", 9)[0], "order", 9)
    assert (options, said) == (ViewOptions(), "in the order of time")


def test_more_rows_than_can_be_sorted_stay_as_they_are_but_may_be_put_back() -> None:
    options, said = changed_options(ViewOptions(), "order", MOST_SORTED + 1)
    assert (options, said) == (ViewOptions(), "more than 200,000 rows: filter first, then sort")
    assert changed_options(ViewOptions(reverse=True), "reverse", MOST_SORTED + 1)[0] == ViewOptions()
