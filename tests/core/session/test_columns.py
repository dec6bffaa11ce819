"""Columns of rows: ids, counts, pairs."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpspy.core.recording.decode import Frame
from mcpspy.core.session.index import Index


@given(st.one_of(st.integers(min_value=0), st.text(max_size=5)).map(repr))
def test_an_id_is_returned_as_its_original_text(text: str) -> None:
    index = Index()
    row = index._row(0, 0.0, 0, 0, 0)
    index._id[row] = index._id_code(text)
    assert index.id(row) == text


@pytest.mark.parametrize(
    "text", ["0", "1", "99999999999999999", "999999999999999999", '"1"', "1.0", "-5", "true", "²"]
)
def test_similar_ids_stay_distinct(text: str) -> None:
    index = Index()
    row = index._row(0, 0.0, 0, 0, 0)
    index._id[row] = index._id_code(text)
    assert index.id(row) == text


def test_a_request_with_an_issue_that_is_then_unanswered_counts_as_both() -> None:
    index = Index()
    for _ in range(2):
        index.add(Frame(0.0, "client", b'{"jsonrpc":"2.0","id":1,"method":"a"}'), 0, 0)
    assert (index.errors, index.issues, index.unanswered) == (0, 1, 0)
    index.end()
    assert (index.errors, index.issues, index.unanswered, list(index.wrong)) == (0, 1, 2, [0, 1])


def test_all_rows_of_a_range_lead_except_responses_with_a_request() -> None:
    index = Index()
    for side, message in (
        ("client", b'"id":1,"method":"a"'),
        ("client", b'"method":"notifications/b"'),
        ("server", b'"id":1,"result":{}'),
        ("server", b'"id":1,"result":{}'),
        ("server", b'"id":2,"error":{"code":1,"message":"unsolicited"}'),
        ("client", b'"id":3,"method":"a"'),
        ("server", b'"id":3,"error":{"code":1,"message":"no"}'),
    ):
        index.add(Frame(0.0, side, b'{"jsonrpc":"2.0",%b}' % message), 0, 0)
    assert index.leading(0, 7) == [0, 1, 3, 4, 5]
    assert index.leading(2, 4) == [3]
