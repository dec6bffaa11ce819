"""Pairing of items."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from mcpspy.analysis.diff.compare import moved, pair

ITEMS = st.lists(st.tuples(st.sampled_from("ab"), st.integers(0, 2)).map(list), max_size=8)


def paired(old: list[list[object]], new: list[list[object]]) -> tuple[list[tuple[int, int, bool]], int, int]:
    found = pair(old, new, tuple, lambda item: item[0])
    places = [
        (
            next(n for n, item in enumerate(old) if item is both.old),
            next(n for n, item in enumerate(new) if item is both.new),
            both.is_exact,
        )
        for both in found.both
    ]
    return places, len(found.removed), len(found.added)


@given(ITEMS, ITEMS)
def test_each_item_is_paired_removed_or_added_once(old: list[list[object]], new: list[list[object]]) -> None:
    places, removed, added = paired(old, new)

    assert len({here for here, _, _ in places}) == len({there for _, there, _ in places}) == len(places)
    assert (len(places) + removed, len(places) + added) == (len(old), len(new))
    assert [there for _, there, _ in places] == sorted(there for _, there, _ in places)
    assert all((old[here] == new[there]) == is_exact for here, there, is_exact in places)


def test_equal_items_are_paired_before_similar_ones() -> None:
    old: list[list[object]] = [["a", 1], ["a", 2], ["a", 1], ["b", 1]]
    new: list[list[object]] = [["a", 3], ["a", 1], ["a", 1], ["c", 1]]

    assert paired(old, new) == ([(1, 0, False), (0, 1, True), (2, 2, True)], 1, 1)


def test_the_number_of_moved_items_is_minimal() -> None:
    old: list[list[object]] = [["a", n] for n in range(6)]
    new: list[list[object]] = [["a", n] for n in (5, 0, 1, 2, 4, 3)]

    both = pair(old, new, tuple, tuple).both

    assert [found.new[1] for found in moved(both, old)] in ([5, 4], [5, 3])
    assert moved(pair(old, old, tuple, tuple).both, old) == []
