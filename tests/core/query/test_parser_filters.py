"""The filter language: `and`, `or` and `not`, and the order of tests."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpspy.core.query.fields import KINDS
from mcpspy.core.query.parser import QueryError, parse
from mcpspy.core.session.exchange import State
from tests.core.query.querying import Row

ROWS = st.builds(
    Row,
    at=st.floats(0, 100),
    side=st.sampled_from(["client", "server", ""]),
    kind=st.sampled_from(KINDS),
    method=st.sampled_from(["", "tools/call", "tools/list", "resources/read", "ping"]),
    subject=st.one_of(st.sampled_from(["", "echo", "file:///x"]), st.text(max_size=5)),
    id=st.sampled_from(["", "1", '"1"', '"a"']),
    status=st.sampled_from(["", *map(str, State)]),
    latency=st.one_of(st.none(), st.floats(0, 10)),
    size=st.integers(0, 10**7),
    stream=st.sampled_from(["", "1"]),
    has_issue=st.booleans(),
    error_code=st.one_of(st.none(), st.just(-32602)),
    data=st.sampled_from([b"", b'{"a":"Needle"}', b'{"params":{"n":5}}', b"\xff"]),
)
ATOMS = st.sampled_from(
    """tools echo "a_b" /needle/i /^$/ text:needle method:tools/* tool:echo uri:file id:1 id="1" dir:in kind:result
    note:stderr status:err status:ok is:slow is:issue stream:1 >200ms <1s lat>=2s size>10kb time<1m code=-32602 code!=1
    method!=ping status!=ok since:-5s until:50s params.n=5 result[]:x""".split()
)
QUERIES = st.recursive(
    ATOMS,
    lambda inner: st.one_of(
        inner.map("-({})".format),
        st.lists(inner, min_size=1, max_size=4).map(lambda parts: f"({' '.join(parts)})"),
        st.lists(inner, min_size=1, max_size=4).map(lambda parts: f"({' or '.join(parts)})"),
    ),
    max_leaves=8,
)


def wants(query: str, row: Row) -> bool:
    return parse(query).matches(row)


@pytest.mark.parametrize("text", ["", "  ", "\n"])
def test_a_blank_filter_matches_everything(text: str) -> None:
    query = parse(text)

    assert query.matches(Row())
    assert (query.text, query.reads_text) == (text, False)


def refused(text: str) -> QueryError | None:
    """Apply a filter, and return its error."""
    try:
        parse(text).matches(Row())
    except QueryError as error:
        return error
    return None


@given(st.text())
def test_any_text_is_a_filter_or_an_error_with_a_position(text: str) -> None:
    error = refused(text)

    assert error is None or 0 <= error.start <= error.end <= len(text)


@given(
    st.sampled_from(
        "status: is: dir: kind: note: id= size> lat< code: / text: > since: params.a> .error[".split()
    ),
    st.one_of(st.text(), st.from_regex(r"[0-9.]+[a-z]*", fullmatch=True)),
)
def test_any_value_is_a_filter_or_an_error_with_a_position(field: str, value: str) -> None:
    for text in (field + value, f"{field}{value}/", f'{field}"{value}"'):
        error = refused(text)
        assert error is None or 0 <= error.start <= error.end <= len(text)


@given(QUERIES, ROWS)
def test_not_is_plain_negation(query: str, row: Row) -> None:
    for negated in (f"-({query})", f"not ({query})", f"!({query})"):
        assert wants(negated, row) is not wants(query, row)


@given(QUERIES, QUERIES, ROWS)
def test_and_is_both_and_or_is_either(one: str, two: str, row: Row) -> None:
    assert wants(f"({one}) ({two})", row) is (wants(one, row) and wants(two, row))
    assert wants(f"({one}) or ({two})", row) is (wants(one, row) or wants(two, row))
    assert wants(f"-(({one}) or ({two}))", row) is wants(f"-({one}) -({two})", row)


@given(QUERIES, QUERIES, QUERIES, ROWS)
def test_and_binds_closer_than_or_and_parentheses_closer_than_both(a: str, b: str, c: str, row: Row) -> None:
    assert wants(f"{a} or {b} {c}", row) is (wants(a, row) or (wants(b, row) and wants(c, row)))
    assert wants(f"({a} or {b}) {c}", row) is ((wants(a, row) or wants(b, row)) and wants(c, row))
    assert wants(f"({a})", row) is wants(a, row)


@given(st.text(min_size=1), st.text(), st.text())
def test_a_quoted_word_is_found_anywhere(word: str, before: str, after: str) -> None:
    quoted = '"' + word.replace("\\", "\\\\").replace('"', '\\"') + '"'

    assert wants(quoted, Row(subject=before + word + after))
    assert wants(f"subject={quoted}", Row(subject=word))
    assert wants(f"text:{quoted}", Row(data=(before + word + after).encode()))


@given(ROWS, QUERIES)
def test_a_filter_without_reads_text_reads_none(row: Row, text: str) -> None:
    query = parse(text)
    query.matches(row)

    assert query.reads_text or not row.reads


@pytest.mark.parametrize(
    "text",
    ["params.n:x ping", "text:x ping", "ping text:x", "/x/ text:y -(text:z) ping", "(text:x or text:y) ping"],
)
def test_tests_that_read_text_run_last(text: str) -> None:
    row = Row(method="tools/list")
    query = parse(text)

    assert query.reads_text
    assert not query.matches(row)
    assert row.reads == 0


def test_a_reading_part_of_an_or_runs_only_if_the_others_are_false() -> None:
    row = Row(method="ping")

    assert wants("text:x or ping", row)
    assert row.reads == 0


def test_many_words_are_a_loop_and_not_a_stack() -> None:
    row = Row(method="a")

    assert wants("a " * 5000, row)
    assert wants("b|" * 5000 + "a", row)
    assert not wants("-" * 5001 + "a", row)


def test_a_negative_time_is_relative_to_the_end_once_it_is_set() -> None:
    query = parse("since:-5s")
    assert query.is_relative_to_end
    assert query.matches(Row(at=1.0))  # The latest item so far.

    query.end = 100.0
    assert not query.matches(Row(at=94.0))
    assert query.matches(Row(at=95.0))
    assert not parse("since:5s").is_relative_to_end


@pytest.mark.parametrize("text", ["a lint:ENV101", "a (b or is:finding)"])
def test_findings_can_be_tested_only_where_they_are_available(text: str) -> None:
    parse(text, linted=True)

    with pytest.raises(QueryError) as caught:
        parse(text)

    assert str(caught.value) == "findings are available only in mcpspy tui and mcpspy show --lint"
    assert text[caught.value.start : caught.value.end] in ("ENV101", "finding")
