"""Option changes by single keys, and their status messages."""

from __future__ import annotations

import pytest

from mcpspy.ui.model.row_filter import MOST_SORTED, SortOrder, ViewOptions, changed_options


@pytest.mark.parametrize(
    ("what", "once", "status", "again"),
    [
        (
            "exchanges",
            ViewOptions(exchanges=False),
            "one row per message, in wire order",
            "one row per exchange",
        ),
        (
            "notifications",
            ViewOptions(notifications=False),
            "notifications hidden",
            "notifications shown",
        ),
        (
            "events",
            ViewOptions(events=False),
            "stderr and events hidden",
            "stderr and events shown",
        ),
        ("http", ViewOptions(http=True), "HTTP exchanges shown", "HTTP exchanges hidden"),
        ("reverse", ViewOptions(reverse=True), "sorted by time, latest first", "sorted by time"),
    ],
)
def test_toggling_twice_restores_the_options(what: str, once: ViewOptions, status: str, again: str) -> None:
    assert changed_options(ViewOptions(), what, 9) == (once, status)
    assert changed_options(once, what, 9) == (ViewOptions(), again)


def test_the_sort_order_cycles() -> None:
    options, status = changed_options(ViewOptions(reverse=True), "order", 9)
    assert (options, status) == (ViewOptions(order=SortOrder.LATENCY), "sorted by latency, largest first")
    assert changed_options(options, "reverse", 9)[1] == "sorted by latency, smallest first"
    options, status = changed_options(changed_options(options, "order", 9)[0], "order", 9)
    assert (options, status) == (ViewOptions(), "sorted by time")


def test_too_many_rows_are_not_sorted_but_can_return_to_time_order() -> None:
    options, status = changed_options(ViewOptions(), "order", MOST_SORTED + 1)
    assert (options, status) == (ViewOptions(), "too many rows to sort (more than 200,000); filter first")
    assert changed_options(ViewOptions(reverse=True), "reverse", MOST_SORTED + 1)[0] == ViewOptions()
