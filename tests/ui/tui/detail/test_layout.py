"""The rows of a section: none lost, none too wide, folded lines hidden."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from mcpspy.ui.model.body import BodyLines
from mcpspy.ui.text.width import steady
from mcpspy.ui.tui.detail import layout as layout_module
from mcpspy.ui.tui.detail.document import Section
from mcpspy.ui.tui.detail.layout import LineSplit, RowLayout
from mcpspy.ui.tui.detail.search import SearchQuery
from mcpspy.ui.tui.detail.views import json_section, text_section
from tests.ui.tui.detail.test_document_json import VALUES, body_of

HEAD = [("a head that is longer than most", "title"), ("", None)]


def raw(head: Any, data: bytes) -> Section:
    return Section(head, LineSplit(data))


def shown(layout: RowLayout) -> list[str]:
    return ["".join(text for text, _ in layout.draw(row)) for row in range(layout.rows)]


@given(VALUES, st.integers(4, 50), st.lists(st.integers(0, 40), max_size=4))
def test_rows_and_lines_agree_with_any_folds(value: Any, width: int, lines: list[int]) -> None:
    section = json_section(HEAD, body_of(value).data)
    assert section.folds is not None
    layout = RowLayout(section, width)
    for line in lines:
        if line < len(layout.source) and section.folds.opens(line):
            section.folds.fold(line)
    layout.refold()
    gone = {n for first, last in section.folds.hidden() for n in range(first + 1, last + 1)}
    expected = [n for n in range(-len(HEAD), len(layout.source)) if n not in gone]
    rows = [(line, part) for line in expected for part in range(layout.height(line))]

    assert [layout.at(row) for row in range(layout.rows)] == rows
    assert [layout.row_of(line) for line in expected] == [rows.index((line, 0)) for line in expected]
    assert all(cell_len(row) <= width for row in shown(layout))


@given(st.binary(max_size=150), st.integers(4, 50))
def test_no_character_is_lost_and_no_row_is_too_wide(data: bytes, width: int) -> None:
    layout = RowLayout(text_section(HEAD, data), width)
    rows = shown(layout)
    lines = [steady(layout.source[line]) for line in range(len(layout.source))]

    assert all(cell_len(row) <= width for row in rows)
    assert "".join(rows) == "".join([HEAD[0][0], *lines])


def test_a_long_string_continues_indented_in_the_next_row() -> None:
    layout = RowLayout(json_section([], b'{"text":"one two three four five"}'), 20)

    assert shown(layout) == ["{", '  "text": "one two ', '    three four five"', "}"]


def test_a_fold_is_one_row() -> None:
    section = json_section([], b'{"text":["one two three four five"],"b":1}')
    assert section.folds is not None
    section.folds.fold(1)

    assert shown(RowLayout(section, 30)) == ["{", '  "text": [ … 1 item ],', '  "b": 1', "}"]
    assert max(map(len, shown(RowLayout(section, 12)))) <= 12


def test_hits_are_marked_over_the_colours() -> None:
    layout = RowLayout(json_section([], b'{"one":"two"}'), 40)

    assert layout.draw(1, SearchQuery('e": ')) == [
        ("  ", None),
        ('"on', "key"),
        ('e": ', "hit"),
        ('"two"', "string"),
    ]


def test_a_hit_is_in_one_of_the_rows_of_its_line() -> None:
    layout = RowLayout(text_section([], b"x needle " + b"word " * 20 + b"needle"), 20)
    query = SearchQuery("needle")

    assert layout.part_of(0, 2, query) == 0
    part = layout.part_of(0, 109, query)
    assert "needle" in shown(layout)[part]
    assert part > 3


def test_json_with_too_many_wide_lines_is_cut_instead_of_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(layout_module, "MOST", 3)
    layout = RowLayout(json_section([], b'["xxxxxxxxxx","xxxxxxxxxx","xxxxxxxxxx","xxxxxxxxxx"]'), 9)

    assert layout.rows == 6
    assert shown(layout)[1] == '  "xxxxx…'


def test_a_string_of_five_megabytes_is_cut_and_counted() -> None:
    layout = RowLayout(json_section([], b'{"blob":"' + b"A" * 5_000_000 + b'"}'), 80)

    assert layout.rows < 100
    assert shown(layout)[-2].endswith("more characters")


def test_a_body_names_every_line_that_may_be_too_wide() -> None:
    body = BodyLines(b"\n".join([b"x" * 30] * 20))

    assert len(body.wider_than(20)) == 20
    assert len(body.wider_than(20, 5)) >= 5
    assert body.wider_than(30) == []


@pytest.mark.parametrize("make", [json_section, text_section, raw])
def test_redaction_placeholders_are_marked_in_every_view_and_header(make: Any) -> None:
    secret = "[redacted:00c0ffee]"
    section = make([(f"authorization: {secret}", None)], f'{{"key":"Bearer {secret}"}}'.encode())
    for width in (14, 80):
        layout = RowLayout(section, width)
        rows = [layout.draw(row) for row in range(layout.rows)]
        marked = "".join(text for row in rows for text, role in row if role == "redacted")
        assert marked.replace(" ", "") == secret * 2
