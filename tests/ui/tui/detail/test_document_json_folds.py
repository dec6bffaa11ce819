"""Folding hides lines and loses none."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpspy.ui.model.body import BodyLines
from mcpspy.ui.tui.detail import document
from mcpspy.ui.tui.detail.document import Folds
from tests.ui.tui.detail.test_document_json import VALUES, body_of

DATA = b'{"id":1,"result":{"rows":[1,[2,3],{"a":4}],"ok":true}}'


def visible(folds: Folds) -> list[int]:
    gone = {line for first, last in folds.hidden() for line in range(first + 1, last + 1)}
    return [line for line in range(len(folds.body)) if line not in gone]


@pytest.mark.parametrize(
    ("line", "label"),
    [(0, " … 2 members }"), (2, " … 2 members }"), (3, " … 3 items ],"), (9, " … 1 member }")],
)
def test_a_fold_shows_its_number_of_items(line: int, label: str) -> None:
    folds = Folds(BodyLines(DATA))
    folds.fold(line)

    assert folds.words(line) == label


def test_a_container_too_large_to_count_shows_its_size(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(document, "COUNTED", 10)
    folds = Folds(BodyLines(DATA))
    folds.fold(3)

    assert folds.words(3) == " … 83 bytes ],"


def test_a_line_folds_at_its_container() -> None:
    folds = Folds(BodyLines(DATA))

    assert [folds.container(line) for line in (0, 1, 2, 4, 8, 12, 15)] == [0, 0, 2, 3, 5, 3, 0]
    assert [folds.around(line) for line in (0, 3, 4)] == [None, 2, 3]


def test_inner_folds_stay_folded() -> None:
    folds = Folds(BodyLines(DATA))
    folds.fold(3)
    folds.fold(2)
    assert visible(folds) == [0, 1, 2, 15]
    folds.unfold(2)
    assert visible(folds) == [0, 1, 2, 3, 13, 14, 15]
    assert folds.shown(6) == 3
    assert folds.reveal(6)
    assert not folds.reveal(6)
    assert visible(folds) == list(range(16))


def test_folding_all_keeps_the_top_level_members_visible() -> None:
    folds = Folds(BodyLines(DATA))
    folds.fold_all()

    assert visible(folds) == [0, 1, 2, 15]


@given(VALUES, st.lists(st.integers(0, 50)))
def test_unfolding_all_gives_back_every_line(value: Any, lines: list[int]) -> None:
    folds = Folds(body_of(value))
    for line in lines:
        if line < len(folds.body) and folds.opens(line):
            folds.fold(line)
    hidden = folds.hidden()
    assert all(folds.shown(line) == first for first, last in hidden for line in range(first, last + 1))
    folds.unfold_all()

    assert visible(folds) == list(range(len(folds.body)))


def test_text_has_no_folds() -> None:
    folds = Folds(BodyLines(b"plain ["))
    folds.fold_all()

    assert not folds.opens(0)
    assert folds.container(0) is None
    assert folds.around(0) is None
    assert folds.hidden() == []
