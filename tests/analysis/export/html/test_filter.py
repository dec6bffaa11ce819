"""The filter language in the exported page: the same rows as in Python, by one table of cases and on real sessions."""

from __future__ import annotations

import tomllib

from tests.analysis.export.html.filters import HERE, SESSION, Pages, Rows, in_python
from tests.analysis.export.sessions import EVERY

TABLE = tomllib.loads((HERE / "filters.toml").read_text(encoding="utf-8"))
CASES: dict[str, list[int]] = TABLE["rows"]
INVALID: list[str] = TABLE["invalid"]


def in_page(filters: list[str]) -> list[Rows]:
    with Pages([SESSION]) as pages:
        (found,) = pages.rows(filters)
    return found


def test_python_finds_the_rows_of_the_table() -> None:
    assert {text: in_python(SESSION, text) for text in CASES} == CASES


def test_the_exported_page_finds_the_rows_of_the_table() -> None:
    assert dict(zip(CASES, in_page(list(CASES)), strict=True)) == CASES


def test_both_refuse_the_invalid_filters_of_the_table_in_one_line() -> None:
    for text, other in zip(INVALID, in_page(INVALID), strict=True):
        assert isinstance(in_python(SESSION, text), str), text
        assert isinstance(other, str), text
        assert "\n" not in other
        assert len(other) > 8


def test_both_find_the_same_rows_of_every_real_session() -> None:
    filters = list(CASES)
    with Pages(EVERY) as pages:
        in_pages = pages.rows(filters)

    differences = [
        (path.stem, text, one, other)
        for path, found in zip(EVERY, in_pages, strict=True)
        for text, other in zip(filters, found, strict=True)
        if (one := in_python(path, text)) != other
    ]
    assert differences == []


def test_regular_expressions_that_javascript_lacks_are_refused_by_name() -> None:
    found = in_page(["/[[:alpha:]]/", "/\\Qa.b\\E/", "/a++/"])

    assert all("is not supported in an exported page: use mcpspy show -q" in str(each) for each in found)
