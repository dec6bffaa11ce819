"""A page is the message, row by row, however large it is."""

from __future__ import annotations

import json
import time

from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from mcpspy.ui.body import Body, pretty
from mcpspy.ui.tui.page import MOST, Page
from mcpspy.ui.tui.text import steady


def shown(page: Page) -> list[str]:
    return ["".join(text for text, _ in page.row(index)) for index in range(page.rows)]


def test_a_body_is_the_lines_of_its_layout() -> None:
    body = Body(b'{"a":[1,2],"b":"\x7f"}')

    assert list(body) == [body[index] for index in range(len(body))] == body[:]
    assert body[-1] == "}"
    assert body[5] == '  "b": "\\x7f"'


@given(st.binary(max_size=300), st.integers(1, 60))
def test_a_body_names_every_line_that_may_be_too_wide(data: bytes, width: int) -> None:
    body = Body(data)
    wide = set(body.wider_than(width))

    assert all(cell_len(steady(line)) <= width for index, line in enumerate(body) if index not in wide)


@given(
    st.recursive(st.none() | st.text(max_size=40) | st.integers(), st.lists, max_leaves=9),
    st.integers(4, 50),
    st.booleans(),
)
def test_no_character_is_lost_and_no_row_is_too_wide(value: object, width: int, plain: bool) -> None:
    body = Body(json.dumps(value, ensure_ascii=plain).encode("utf-8", "surrogatepass"))
    page = Page([("a head that is longer than most", "title")], body, width)
    rows = shown(page)

    assert all(cell_len(row) <= width for row in rows)
    flat = "".join(rows).replace(" ", "")
    assert flat == "".join(["a head that is longer than most", *map(steady, body)]).replace(" ", "")


def test_a_long_string_goes_on_in_the_next_row_under_itself() -> None:
    page = Page([], Body(b'{"text":"one two three four five"}'), 20)

    assert shown(page) == ["{", '  "text": "one two ', '    three four five"', "}"]


def test_text_that_is_no_json_has_no_colours() -> None:
    assert Page([], Body(b'DEBUG: "x": 1'), 40).row(0) == [('DEBUG: "x": 1', None)]


def test_a_text_with_too_many_wide_lines_is_cut_instead_of_measured() -> None:
    page = Page([], Body(b"\n".join([b"x" * 30] * (MOST + 1))), 20)

    assert page.rows == MOST + 1
    assert shown(page)[0] == "x" * 19 + "…"


def test_five_megabytes_open_in_well_under_a_second() -> None:
    rows = [{"id": n, "name": f"row {n}", "tags": ["a", "b"], "ok": True} for n in range(90_000)]
    data = json.dumps({"jsonrpc": "2.0", "id": 1, "result": {"rows": rows}}).encode()
    assert len(data) > 5_000_000
    began = time.process_time()

    page = Page([], Body(data), 70)
    for index in range(40):
        page.row(index)
    page.row(page.rows - 1)

    assert time.process_time() - began < 1.0
    assert page.rows == len(pretty(data))


def test_a_string_of_five_megabytes_is_cut_and_counted() -> None:
    page = Page([], Body(b'{"blob":"' + b"A" * 5_000_000 + b'"}'), 80)

    assert page.rows < 100
    assert shown(page)[-2].endswith("more characters")
