"""A page stacks the rows of its sections, of any size."""

from __future__ import annotations

import json
import time

from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from mcpspy.ui.model.body import BodyLines, pretty
from mcpspy.ui.text.width import steady
from mcpspy.ui.tui.detail.layout import FOLDED, OPEN, PagePosition, TextPage
from mcpspy.ui.tui.detail.views import json_section, text_section

SECTIONS = [
    json_section([("request", "title")], b'{"a":[1],"b":2}'),
    text_section([("nothing", None)], b""),
    text_section([], b"one\ntwo"),
]


def shown(page: TextPage) -> list[str]:
    return ["".join(text for text, _ in page.draw(row)) for row in range(page.rows)]


def test_a_body_has_its_formatted_lines() -> None:
    body = BodyLines(b'{"a":[1,2],"b":"\x7f"}')

    assert list(body) == [body[index] for index in range(len(body))] == body[:]
    assert body[-1] == "}"
    assert body[5] == '  "b": "\\x7f"'


@given(st.binary(max_size=300), st.integers(1, 60))
def test_a_body_returns_every_line_that_may_be_too_wide(data: bytes, width: int) -> None:
    body = BodyLines(data)
    wide = set(body.wider_than(width))

    assert all(cell_len(steady(line)) <= width for index, line in enumerate(body) if index not in wide)


def test_sections_are_stacked() -> None:
    page = TextPage(SECTIONS, 40)

    assert shown(page) == [
        "request",
        "{",
        '  "a": [',
        "    1",
        "  ],",
        '  "b": 2',
        "}",
        "nothing",
        "one",
        "two",
    ]
    assert [page.at(row)[0] for row in (0, 1, 7, 9)] == [
        PagePosition(0, -1),
        PagePosition(0, 0),
        PagePosition(1, -1),
        PagePosition(2, 1),
    ]
    assert [page.row_of(page.at(row)[0]) for row in range(page.rows)] == list(range(page.rows))


def test_a_fold_has_a_mark_and_represents_its_hidden_lines() -> None:
    page = TextPage([json_section([("request", "title")], b'{"a":[1],"b":2}')], 40)
    assert [page.mark(row) for row in range(4)] == [" ", OPEN, OPEN, " "]
    folds = page.sections[0].folds
    assert folds is not None
    folds.fold(1)
    page.refold(0)

    assert shown(page) == ["request", "{", '  "a": [ … 1 item ],', '  "b": 2', "}"]
    assert page.mark(2) == FOLDED
    assert page.row_of(PagePosition(0, 2)) == 2


def test_a_position_is_found_in_another_width() -> None:
    wide, narrow = TextPage(SECTIONS, 40), TextPage(SECTIONS, 5)
    for row in range(wide.rows):
        place = wide.at(row)[0]
        assert narrow.place(place.section, wide.offset(place)) == place
    assert narrow.place(9, 0) == PagePosition(2, 0)
    assert narrow.place(1, 5) == PagePosition(1, -1)


def test_an_empty_page_has_a_position() -> None:
    page = TextPage([text_section([], b"")], 40)

    assert page.rows == 0
    assert page.offset(page.place(0, 0)) == 0


def test_five_megabytes_open_in_well_under_a_second() -> None:
    rows = [{"id": n, "name": f"row {n}", "tags": ["a", "b"], "ok": True} for n in range(90_000)]
    data = json.dumps({"jsonrpc": "2.0", "id": 1, "result": {"rows": rows}}).encode()
    assert len(data) > 5_000_000
    began = time.process_time()

    page = TextPage([json_section([], data)], 70)
    for index in range(40):
        page.draw(index)
    page.draw(page.rows - 1)

    assert time.process_time() - began < 1.0
    assert page.rows == len(pretty(data))
