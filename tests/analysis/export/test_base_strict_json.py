"""JSON that every parser accepts."""

from __future__ import annotations

import json
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpspy.analysis.export.base import dumps, fragment

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
    max_leaves=12,
)


@given(VALUES)
def test_the_output_for_any_input_is_strict_json(value: Any) -> None:
    text = dumps(value)

    assert "\n" not in text
    assert json.loads(text) == orjson.loads(text) or abs(json.loads(text)) > 1 << 53


def test_values_that_strict_json_cannot_express_are_written_as_text() -> None:
    numbers = [(1 << 64) - 1, -(1 << 63), True]
    beyond = [1 << 64, -(1 << 63) - 1]

    assert json.loads(dumps({"a": ["\ud800x", *beyond, *numbers], "b": "é"})) == {
        "a": ["\\ud800x", *map(str, beyond), *numbers],
        "b": "é",
    }


def test_a_message_is_spliced_as_it_was_and_in_one_line() -> None:
    laid_out = fragment(b'{\r\n "n": 1E5,\n "a": "b\\nc", "a": 10000000000000000000000000000000\n}')

    assert laid_out is not None
    assert dumps([laid_out]) == '[{"n":1E5,"a":"b\\nc","a":10000000000000000000000000000000}]'
    assert dumps([fragment(b'{ "n": 1 }')]) == '[{ "n": 1 }]'


@pytest.mark.parametrize(
    "data", [b"{oops}", b"", b"NaN", b'"\\ud800"', b"\xff", b"[" * 100_000], ids=lambda data: repr(data[:8])
)
def test_lax_json_is_not_spliced(data: bytes) -> None:
    assert fragment(data) is None


def test_a_fragment_is_spliced_in_unchanged() -> None:
    assert dumps({"a": orjson.Fragment(b"1.0"), "b": "\ud800"}) == '{"a":1.0,"b":"\\\\ud800"}'
