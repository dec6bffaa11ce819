"""Which rows are shown: by the way to read them, by toggles, by the filter, in portions, live."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from mcpspy.core.query import parse
from mcpspy.ui.tui.session.view import Order, View, Wish
from tests.ui.tui.session.test_log import CALL, FAILED, PROGRESS, File

ASK = b'"client","msg":{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"%b"}}}'
OK = b'"server","msg":{"jsonrpc":"2.0","id":%d,"result":{}}}'
HELLO = b'"server","msg":{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info"}}}'
STDERR = b'{"t":0.6,"note":"stderr","text":"a word"}'
HTTP = b'{"t":0.6,"note":"http","http":1,"status":200,"method":"POST","path":"/mcp"}'
LOST = b'{"t":0.6,"note":"lost","entries":1,"why":"full"}'
EXIT = b'{"t":0.9,"note":"exit","code":0}'


def all_of(view: View) -> list[int]:
    """Return the rows that are shown once all were judged."""
    view.judge(lambda: True)
    return list(view.rows)


@pytest.fixture
def file() -> File:
    file = File()
    file.add(CALL, PROGRESS, FAILED, HELLO, STDERR, HTTP, LOST, b"{broken", OK % 9)
    return file


@pytest.mark.parametrize(
    ("wish", "rows"),
    [
        (Wish(), [0, 3, 4, 6, 7, 8]),
        (Wish(exchanges=False), [0, 1, 2, 3, 4, 6, 7, 8]),
        (Wish(exchanges=False, http=True), list(range(9))),
        (Wish(notifications=False), [0, 4, 6, 7, 8]),
        (Wish(asides=False), [0, 3, 6, 7, 8]),
        (Wish(query=parse("tool:x")), [0]),
        (Wish(exchanges=False, query=parse("tool:x")), [0, 2]),
        (Wish(query=parse("status:-32602")), [0]),
        (Wish(query=parse("nothing-like-it")), []),
        (Wish(query=parse('text:"no such thing"')), [0]),
        (Wish(query=parse("text:word")), [4]),
    ],
)
def test_a_wish_lets_its_rows_through(file: File, wish: Wish, rows: list[int]) -> None:
    assert all_of(View(file.log, wish)) == rows


def test_an_answer_that_nobody_asked_for_has_a_row_of_its_own(file: File) -> None:
    assert 8 in all_of(View(file.log))


def test_marked_rows_alone_are_shown_if_that_is_wanted(file: File) -> None:
    view = View(file.log, Wish(only_marked=True))
    view.marked = {3, 6}
    assert all_of(view) == [3, 6]


def test_rows_are_judged_in_portions_as_time_allows(file: File) -> None:
    for number in range(1000):
        file.add(ASK % (number + 100, b"echo"), OK % (number + 100))
    view = View(file.log)
    steps = 0
    while view.is_behind:
        view.judge(lambda: False)
        steps += 1
    assert steps > 2
    assert len(view) == 1006


def test_an_answer_changes_what_the_filter_says_of_its_request() -> None:
    file = File()
    view = View(file.add(ASK % (1, b"a"), ASK % (2, b"b")), Wish(query=parse("is:pending")))
    assert all_of(view) == [0, 1]
    file.add(OK % 1)
    assert all_of(view) == [1]
    done = View(file.log, Wish(query=parse("status:ok")))
    assert all_of(done) == [0]
    file.add(OK % 2)
    assert all_of(done) == [0, 1]


def test_what_the_end_leaves_without_an_answer_is_found_then() -> None:
    file = File()
    view = View(file.add(ASK % (1, b"a")), Wish(query=parse("status:noanswer")))
    assert all_of(view) == []
    file.add(EXIT)
    assert all_of(view) == [0]


@settings(max_examples=60, deadline=None)
@given(
    st.lists(
        st.sampled_from([ASK % (1, b"a"), ASK % (2, b"b"), OK % 1, OK % 2, FAILED, HELLO, STDERR]),
        max_size=14,
    ),
    st.integers(0, 14),
    st.sampled_from(["", "status:ok", "is:pending", "-status:ok", "status:err", "is:odd", "tool:a"]),
    st.booleans(),
)
def test_rows_that_came_live_are_those_of_the_whole(
    lines: list[bytes], cut: int, text: str, exchanges: bool
) -> None:
    wish = Wish(exchanges=exchanges, query=parse(text))
    file = File()
    live = View(file.log, wish)
    for some in (lines[:cut], lines[cut:]):
        file.add(*some)
        live.judge(lambda: True)
    file.log.end()
    assert all_of(live) == all_of(View(file.log, wish))


def test_another_wish_begins_anew_and_the_same_one_does_not(file: File) -> None:
    view = View(file.log)
    all_of(view)
    view.want(Wish())
    assert (view.generation, view.is_behind) == (1, False)
    view.want(Wish(exchanges=False))
    assert (view.generation, view.is_behind, len(view)) == (2, True, 0)


def test_a_log_that_began_anew_is_judged_anew(file: File) -> None:
    view = View(file.log)
    all_of(view)
    file.log.begin_again(file.log.header)
    assert view.is_behind
    assert all_of(view) == []


@pytest.mark.parametrize("wish", [Wish(), Wish(exchanges=False, http=True), Wish(order=Order.SIZE)])
def test_a_row_that_is_not_shown_has_the_place_of_the_next(file: File, wish: Wish) -> None:
    view = View(file.log, wish)
    for row in all_of(view):
        assert view.holds(row)
        assert view.rows[view.place_of(row)] == row
    assert not view.holds(99)
    assert view.place_of(99) == (0 if wish.is_sorted else len(view) - 1)


def test_rows_are_sorted_by_what_is_wanted() -> None:
    file = File()
    file.add(ASK % (1, b"a"), ASK % (2, b"a longer name"))
    file.add(b'{"t":0.9,"from":' + OK % 1, b'{"t":0.7,"from":' + OK % 2)
    orders: list[tuple[dict[str, Any], list[int]]] = [
        ({"order": Order.SIZE}, [1, 0]),
        ({"order": Order.SIZE, "reverse": True}, [0, 1]),
        ({"order": Order.LATENCY}, [0, 1]),
        ({"reverse": True}, [1, 0]),
        ({}, [0, 1]),
    ]
    for fields, rows in orders:
        assert all_of(View(file.log, replace(Wish(), **fields))) == rows


def test_a_sorted_list_is_stale_until_what_came_has_its_place() -> None:
    file = File()
    view = View(file.add(ASK % (1, b"a")), Wish(order=Order.SIZE))
    assert (all_of(view), view.is_stale) == ([0], False)
    file.add(ASK % (2, b"a longer name"))
    view.judge(lambda: True)
    assert (list(view.rows), view.is_stale) == ([0], True)
    view.sort()
    assert (view.is_stale, list(view.rows)) == (False, [1, 0])
