"""JSON that every parser takes."""

from __future__ import annotations

import json
from typing import Any

import orjson
from hypothesis import given
from hypothesis import strategies as st

from mcpspy.analysis.export.strict_json import dumps

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
    max_leaves=12,
)


@given(VALUES)
def test_whatever_it_is_given_it_writes_what_a_strict_parser_takes(value: Any) -> None:
    text = dumps(value)

    assert "\n" not in text
    assert json.loads(text) == orjson.loads(text) or abs(json.loads(text)) > 1 << 53


def test_what_json_has_not_is_there_as_text() -> None:
    numbers = [(1 << 64) - 1, -(1 << 63), True]
    beyond = [1 << 64, -(1 << 63) - 1]

    assert json.loads(dumps({"a": ["\ud800x", *beyond, *numbers], "b": "é"})) == {
        "a": ["\\ud800x", *map(str, beyond), *numbers],
        "b": "é",
    }


def test_a_fragment_stands_as_it_is() -> None:
    assert dumps({"a": orjson.Fragment(b"1.0"), "b": "\ud800"}) == '{"a":1.0,"b":"\\\\ud800"}'
