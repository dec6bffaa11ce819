"""The interface of filter items."""

from __future__ import annotations

from mcpspy.core.query.item import FilterItem, LintFilterItem, SessionEnd
from tests.core.query.querying import Row


def test_an_object_with_all_fields_is_an_item() -> None:
    item: FilterItem = Row(data=b"{}", request=b"[]")
    linted: LintFilterItem = Row(findings=("ENV101 error",))

    assert (item.message("params"), item.message("result")) == (b"[]", b"{}")
    assert list(linted.findings) == ["ENV101 error"]


def test_the_end_is_unknown_until_it_is_set() -> None:
    end = SessionEnd()

    assert (end.at, end.is_used) == (None, False)
