"""The targets of the navigation keys."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from mcpspy.ui.model.apps import AppsModel
from mcpspy.ui.model.row_filter import FilteredView, ViewOptions
from mcpspy.ui.tui.session.navigation import Navigation
from tests.ui.model.test_row_filter import ASK, HELLO, OK, all_of
from tests.ui.model.test_session_model import File


@pytest.fixture
def navigation() -> Any:
    """Return a factory of Navigation from a row, over four calls whose responses come last."""
    file = File()
    file.add(*(ASK % (number, b"xyxx"[number - 1 : number]) for number in range(1, 5)))
    file.add(HELLO, *(OK % number for number in range(1, 5)))

    def from_(row: int, *, exchanges: bool = True, marked: set[int] = frozenset()) -> Navigation:  # type: ignore[assignment]
        view = FilteredView(file.log, ViewOptions(exchanges=exchanges))
        rows = all_of(view)
        listing: Any = SimpleNamespace(
            row=row, cursor=rows.index(row), marked=marked, apps=AppsModel(file.log)
        )
        return Navigation(file.log, view, listing)

    return from_


def test_the_next_call_of_the_same_tool_skips_others(navigation: Any) -> None:
    assert [navigation(0).same_target(1), navigation(2).same_target(1), navigation(2).same_target(-1)] == [
        2,
        3,
        0,
    ]
    assert [navigation(3).same_target(1), navigation(1).same_target(1), navigation(0).same_target(-1)] == [
        None,
        None,
        None,
    ]
    assert navigation(3, exchanges=False).same_target(1) == 5, "its responses have the same target"


def test_a_request_matches_by_its_response_in_the_exchange_view(navigation: Any) -> None:
    assert navigation(0).next_of([6], 1) == 1
    assert navigation(0, exchanges=False).next_of([6], 1) == 6
    assert navigation(2).next_of([6], 1) is None
    assert navigation(3).next_of([5, 6], -1) == 1
    assert navigation(0).next_of([], 1) is None


def test_the_next_mark_is_the_nearest(navigation: Any) -> None:
    marked = {0, 2, 3}
    assert [navigation(0, marked=marked).marked(1), navigation(3, marked=marked).marked(-1)] == [2, 2]
    assert [navigation(3, marked=marked).marked(1), navigation(0, marked=marked).marked(-1)] == [None, None]


def test_without_a_chain_there_is_no_target(navigation: Any) -> None:
    assert [navigation(0).linked(1), navigation(0).linked(-1), navigation(4).linked(1)] == [None, None, None]
