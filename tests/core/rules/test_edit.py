"""Merge patches, and values at pointers."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpspy.core.jsontools import pointer, pointer_text
from mcpspy.core.rules.edit import merged, put, to_json

MESSAGE = b'{"id":1.0,"params":{"n":123456789012345678901234567890,"e":"\\u00e9","a":[1,2]}}'

values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=2), inner, max_size=3),
    max_leaves=8,
)


def rfc7396(target: Any, patch: Any) -> Any:
    """Apply a merge patch by the algorithm of RFC 7396, 2."""
    if not isinstance(patch, dict):
        return patch
    target = dict(target) if isinstance(target, dict) else {}
    for name, value in patch.items():
        if value is None:
            target.pop(name, None)
        else:
            target[name] = rfc7396(target.get(name), value)
    return target


@given(values, values)
def test_a_merge_patch_follows_the_standard(target: Any, patch: Any) -> None:
    assert json.loads(merged(to_json(target), patch)) == rfc7396(target, patch)


def test_members_that_a_patch_does_not_name_keep_their_spelling() -> None:
    assert merged(MESSAGE, {"params": {"a": None, "x": True}}) == (
        b'{"id":1.0,"params":{"n":123456789012345678901234567890,"e":"\\u00e9","x":true}}'
    )
    assert put(MESSAGE, ("params", "a", "0"), {"b": 1}) == MESSAGE.replace(b"[1,2]", b'[{"b":1},2]')


@given(values, st.lists(st.text(max_size=2), min_size=1, max_size=3), values)
def test_a_value_that_is_put_somewhere_is_found_there(target: Any, tokens: list[str], value: Any) -> None:
    path = pointer(pointer_text(tuple(tokens)))
    try:
        result = json.loads(put(to_json(target), path, value))
    except ValueError:
        return  # The place would be inside a number, or beyond an array.
    for token in path:
        result = result[-1 if token == "-" else int(token)] if isinstance(result, list) else result[token]

    assert result == value


@pytest.mark.parametrize(
    ("path", "why"),
    [
        ("/params/a/7", "/params/a/7 does not exist: the array has 2 items"),
        ("/params/a/x", "the array has 2 items"),
        ("/id/x", "/id/x does not exist: x would be in 1.0"),
    ],
)
def test_an_impossible_pointer_is_rejected(path: str, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        put(MESSAGE, pointer(path), 1)


def test_an_array_grows_at_its_end() -> None:
    assert put(MESSAGE, pointer("/params/a/-"), 3) == MESSAGE.replace(b"[1,2]", b"[1,2,3]")


@pytest.mark.parametrize("data", [b'{"a":NaN}', b"[1", b'{"a":', b"{" * 9])
def test_invalid_json_is_rejected(data: bytes) -> None:
    with pytest.raises(ValueError, match="the message is not JSON"):
        put(data, ("0",), 1)
    if data.startswith(b"{"):
        with pytest.raises(ValueError, match="the message is not JSON"):
            merged(data, {"x": 1})


def test_any_number_can_be_written() -> None:
    assert to_json({"n": 10**30, "s": "\ud800"}) == b'{"n": 1000000000000000000000000000000, "s": "\\ud800"}'
