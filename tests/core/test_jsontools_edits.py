"""Replacement of members in JSON text."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpspy.core.jsontools import one_line, replaced

ANSWER = (
    b'{"result": {"n": 1.0, "big": 123456789012345678901234567890, "e": "\\u00e9"},"id":1,"jsonrpc":"2.0"}'
)


def test_all_but_the_id_stays_as_it_was_sent() -> None:
    result = replaced(ANSWER, ("id",), b'"a"')
    assert result == ANSWER.replace(b'"id":1', b'"id":"a"').replace(b'"result": {', b'"result":{')
    assert replaced(ANSWER, ("id",), b"1") is ANSWER


def test_a_missing_path_changes_nothing() -> None:
    assert replaced(ANSWER, ("params", "progressToken"), b"1") is ANSWER
    assert replaced(b'{"params":[1]}', ("params", "progressToken"), b"1") == b'{"params":[1]}'
    for loose in (b'{"x":NaN}', b'{"params":[NaN]}', b'{"params":NaN}', b'{"params":{"x":NaN}}', b"not JSON"):
        assert replaced(loose, ("params", "progressToken"), b"1") is loose


@pytest.mark.parametrize("data", [b'{"id":1,"x":NaN}', b'{"id":1,"x":"\\ud800"}', b'{"id":1,"x":"\xff"}'])
def test_a_message_that_is_not_strict_json_gets_its_id_too(data: bytes) -> None:
    assert json.loads(replaced(data, ("id",), b"2").decode("utf-8", "replace"))["id"] == 2


@given(st.dictionaries(st.text(), st.integers() | st.text() | st.none(), min_size=1), st.data())
def test_the_member_named_is_replaced_and_no_other(members: dict[str, object], data: st.DataObject) -> None:
    key = data.draw(st.sampled_from(sorted(members)))
    result = replaced(json.dumps({"params": members}).encode(), ("params", key), b'["new"]')
    assert json.loads(result) == {"params": {**members, key: ["new"]}}


def test_a_message_of_several_lines_becomes_one() -> None:
    assert json.loads(one_line(b'{\r\n"id": 1\n}')) == {"id": 1}
    assert b"\n" not in one_line(b'{\r\n"id": 1\n}')
