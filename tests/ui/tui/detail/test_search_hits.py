"""The search continues from section to section."""

from __future__ import annotations

from mcpspy.ui.tui.detail.document import Section
from mcpspy.ui.tui.detail.layout import LineSplit
from mcpspy.ui.tui.detail.search import HitFinder, HitPosition, SearchQuery


def sections(*texts: bytes) -> list[Section]:
    return [Section([], LineSplit(text)) for text in texts]


COLUMNS = [sections(b"x.x", b"nothing"), sections(b"x")]


def test_hits_follow_each_other_and_wrap_around() -> None:
    finder, position, seen = HitFinder(SearchQuery("x"), COLUMNS), HitPosition(0, 0, 0), []
    for _ in range(4):
        found = finder.after(position)
        assert found is not None
        seen.append((*found[0], found[1], finder.count(found[0])))
        position = found[0]._replace(offset=found[0].offset + 1)

    assert seen == [
        (0, 0, 0, False, "1/3"),
        (0, 0, 2, False, "2/3"),
        (1, 0, 0, False, "3/3"),
        (0, 0, 0, True, "1/3"),
    ]


def test_backward_search_wraps_around() -> None:
    finder, position, seen = HitFinder(SearchQuery("x"), COLUMNS), HitPosition(0, 1, 3), []
    for _ in range(3):
        found = finder.before(position)
        assert found is not None
        seen.append((*found[0], found[1]))
        position = found[0]

    assert seen == [(0, 0, 2, False), (0, 0, 0, False), (1, 0, 0, True)]


def test_missing_text_is_not_found() -> None:
    finder = HitFinder(SearchQuery("y"), COLUMNS)

    assert finder.after(HitPosition(0, 0, 0)) is None
    assert finder.before(HitPosition(0, 0, 0)) is None
    assert finder.count(None) == "0/0"


def test_a_position_in_the_header_counts_as_the_start() -> None:
    assert HitFinder(SearchQuery("x"), COLUMNS).after(HitPosition(0, 0, -2)) == (HitPosition(0, 0, 0), False)
