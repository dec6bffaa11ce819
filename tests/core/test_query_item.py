"""What a filter may ask of an item."""

from __future__ import annotations

from mcpspy.core.query_item import End, Item, LintedItem
from tests.core.querying import Row


def test_whatever_answers_all_questions_is_an_item() -> None:
    item: Item = Row(data=b"{}", asked=b"[]")
    linted: LintedItem = Row(findings=("ENV101 error",))

    assert (item.message("params"), item.message("result")) == (b"[]", b"{}")
    assert list(linted.findings) == ["ENV101 error"]


def test_nobody_knows_the_end_before_it_is_said() -> None:
    end = End()

    assert (end.at, end.is_asked) == (None, False)
