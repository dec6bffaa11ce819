"""The times at which new rows are added to the list."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from msgspec.structs import replace

from mcpspy.ui.model.row_filter import FilteredView
from mcpspy.ui.tui.session import message_list
from mcpspy.ui.tui.session.message_list import ListUpdates
from tests.ui.model.test_row_filter import ASK, all_of
from tests.ui.model.test_session_model import File


class Shown:
    """A list that only counts."""

    def __init__(self) -> None:
        self.count = 0
        self.follow = self.can_follow = self.has_room = False

    def sync(self, count: int) -> None:
        self.count = count

    def renew(self) -> None:
        pass


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    now = [1000.0]
    monkeypatch.setattr("mcpspy.ui.tui.session.message_list.time.monotonic", lambda: now[0])
    return now


def test_new_rows_out_of_view_wait_and_count_as_unseen(clock: list[float]) -> None:
    file, listing = File(), Shown()
    view, loader = FilteredView(file.log), SimpleNamespace(is_live=True)
    showing: Any = listing
    arriving = ListUpdates(loader, view, showing)  # type: ignore[arg-type]
    listing.follow = True
    file.add(ASK % (1, b"x"))
    all_of(view)
    arriving.show()
    assert (listing.count, arriving.unseen) == (1, 0)
    listing.follow = False
    for number in (2, 3):
        file.add(ASK % (number, b"x"))
        all_of(view)
        arriving.show()
    assert (listing.count, arriving.unseen) == (1, 2)
    clock[0] += message_list.PAUSED + 0.01
    arriving.show()
    assert listing.count == 3
    file.add(ASK % (4, b"x"))
    all_of(view)
    listing.has_room = True
    arriving.show()
    assert listing.count == 4, "visible rows are shown at once"
    loader.is_live = False
    arriving.show()
    assert (arriving.unseen, listing.can_follow) == (0, False)


def test_a_growing_list_is_sorted_at_intervals(clock: list[float]) -> None:
    file, listing = File(), Shown()
    view = FilteredView(file.log)
    showing: Any = listing
    arriving = ListUpdates(SimpleNamespace(is_live=True), view, showing)  # type: ignore[arg-type]
    view.want(replace(view.options, reverse=True))
    file.add(ASK % (1, b"x"), ASK % (2, b"x"))
    all_of(view)
    arriving.show()
    file.add(ASK % (3, b"x"))
    all_of(view)
    arriving.show()
    assert list(view.rows) == [2, 1, 0]
    file.add(ASK % (4, b"x"))
    all_of(view)
    clock[0] += message_list.SORTED_EVERY / 2
    arriving.show()
    assert (list(view.rows), arriving.unseen) == ([2, 1, 0], 0)
    clock[0] += message_list.SORTED_EVERY
    arriving.show()
    assert list(view.rows) == [3, 2, 1, 0]
