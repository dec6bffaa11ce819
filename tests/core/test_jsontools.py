"""Canonical text, pointers and differences of JSON values."""

from __future__ import annotations

import itertools
import json
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from mcpspy.core.jsontools import DEEP as LEVELS
from mcpspy.core.jsontools import (
    canonical,
    canonical_fast,
    canonical_slow,
    differences,
    json_parts,
    members_of,
    pointer,
    pointer_text,
    read_json,
    replaced,
    same,
    string,
    with_member,
    without,
    without_deep,
)

SCALARS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text()
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4), inner, max_size=4),
)
LENIENT = st.recursive(
    SCALARS | st.floats() | st.integers(-(2**70), 2**70) | st.text(st.characters(exclude_categories=())),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.text(st.characters(exclude_categories=()), max_size=3), inner, max_size=3)
    ),
)
"""Values that Python's `json` accepts: NaN, lone surrogates, integers of any length."""
TOKENS = st.lists(st.text(max_size=4), min_size=1, max_size=5).map(tuple)


def shuffled(value: Any) -> Any:
    """Return the same value with the members of all objects in reverse order."""
    if isinstance(value, dict):
        return {key: shuffled(item) for key, item in reversed(value.items())}
    return [shuffled(item) for item in value] if isinstance(value, list) else value


def places(value: Any, at: tuple[str, ...] = ()) -> list[tuple[str, ...]]:
    """Return every path into a value."""
    members: list[tuple[object, Any]] = []
    if isinstance(value, dict):
        members = list(value.items())
    elif isinstance(value, list):
        members = list(enumerate(value))
    return [path for key, item in members for path in [(*at, str(key)), *places(item, (*at, str(key)))]]


@given(VALUES)
def test_the_order_of_members_and_the_spelling_do_not_matter(value: Any) -> None:
    assert canonical(shuffled(value)) == canonical(value)
    assert canonical(json.loads(json.dumps(value, indent=1))) == canonical(value)
    assert list(differences(value, shuffled(value))) == []


@given(VALUES, VALUES)
def test_two_values_are_equal_if_and_only_if_no_difference_is_found(one: Any, other: Any) -> None:
    assert same(one, other) == (list(differences(one, other)) == [])


@given(LENIENT)
def test_the_fast_writer_equals_the_slow_one_or_declines(value: Any) -> None:
    assert canonical_fast(value) in (None, canonical_slow(value))


def test_most_values_take_the_fast_writer() -> None:
    assert canonical_fast({"b": [1, True, "é"], "a": {"x": "y", "n": -(2**63)}}) is not None
    assert [canonical_fast(value) for value in (1.0, 2**64, "\ud800", None, float("nan"))] == [None] * 5


def test_numbers_compare_as_in_json_and_booleans_are_not_numbers() -> None:
    assert same(1, 1.0)
    assert same({"a": [2.0]}, {"a": [2]})
    assert not same(1, True)
    assert not same(0, None)
    assert not same(2**53, 2**53 + 1)


@given(TOKENS)
def test_a_pointer_is_read_as_it_is_spelled(tokens: tuple[str, ...]) -> None:
    assert pointer(pointer_text(tokens)) == tokens


@pytest.mark.parametrize("text", ["", "params", "params/a", "/a~", "/a~2b"])
def test_an_invalid_pointer_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="pointer"):
        pointer(text)


@given(VALUES, VALUES, st.data())
def test_an_ignored_path_makes_no_difference(value: Any, other: Any, data: st.DataObject) -> None:
    if not (paths := places(value)):
        return
    path = data.draw(st.sampled_from(paths))
    changed = json.loads(json.dumps(value))
    place = changed
    for token in path[:-1]:
        place = place[int(token)] if isinstance(place, list) else place[token]
    place[int(path[-1]) if isinstance(place, list) else path[-1]] = other
    assert same(without(value, path), without(changed, path))
    assert all(
        text == pointer_text(path) or text.startswith(pointer_text(path) + "/")
        for text in differences(value, changed)
    )


@given(VALUES, TOKENS)
def test_a_pointer_to_a_missing_value_removes_nothing(value: Any, tokens: tuple[str, ...]) -> None:
    if tokens not in places(value):
        assert same(without(value, tokens), value)


def test_a_pointer_into_an_array_does_not_move_the_other_items() -> None:
    assert without([1, 2, 3], ("1",)) == [1, None, 3]
    assert without([1, 2, 3], ("01",)) == [1, 2, 3]


def test_each_difference_is_named_by_its_pointer() -> None:
    one = {"a": 1, "b": [1, {"c/d": 2}], "gone": 0}
    other = {"a": 1, "b": [1, {"c/d": 3}, 4], "new~": 0}
    assert list(differences(one, other)) == ["/b/1/c~1d", "/b/2", "/gone", "/new~0"]


@given(VALUES, st.sampled_from([None, 1]), st.booleans())
def test_the_parts_of_a_text_are_its_members_or_items(
    value: Any, indent: int | None, ascii_only: bool
) -> None:
    text = json.dumps(value, indent=indent, ensure_ascii=ascii_only).encode()
    assume(b"Infinity" not in text)
    parts = json_parts(b" " + text + b"\r\n").parts
    if isinstance(value, dict):
        assert {json.loads(key): json.loads(part) for key, part in parts} == value
    elif isinstance(value, list):
        assert [json.loads(part) for _, part in parts] == value
    else:
        assert parts == []


@given(VALUES, st.data())
def test_parts_are_read_of_strict_json_only(value: Any, data: st.DataObject) -> None:
    text = json.dumps(value).encode()
    place = data.draw(st.integers(0, len(text)))
    text = (
        text[:place] + data.draw(st.sampled_from([b"", *map(bytes, zip(b',:[]{}"\\1 '))])) + text[place + 1 :]
    )
    try:
        json.loads(text, parse_constant=lambda _: 1 / 0)
    except (ValueError, ZeroDivisionError):
        with pytest.raises(ValueError, match="invalid at byte"):
            json_parts(text)
    else:
        json_parts(text)


DEEP = b'{"a":' * 15_000 + b"1" + b"}" * 15_000


def test_a_member_of_a_deep_object_is_read_and_replaced() -> None:
    message = b'{"id": 1, "result": %b, "jsonrpc":"2.0"}' % DEEP
    assert {key: bytes(part) for key, part in members_of(message).items()} == {
        "id": b"1",
        "result": DEEP,
        "jsonrpc": b'"2.0"',
    }
    assert replaced(message, ("id",), b'"x"') == b'{"id":"x","result":%b,"jsonrpc":"2.0"}' % DEEP


@given(st.dictionaries(st.sampled_from("abc"), VALUES), st.sampled_from([None, 1]))
def test_a_new_member_changes_no_other_byte(value: dict[str, Any], indent: int | None) -> None:
    text = json.dumps(value, indent=indent).encode()
    assume(b"Infinity" not in text and b"NaN" not in text)
    for key, member in value.items():
        same_text = with_member(text, (key,), json.dumps(member, indent=indent).encode())
        assert b"".join(same_text.split()) == b"".join(text.split())
        assert json.loads(with_member(text, (key,), b'"new"')) == {**value, key: "new"}
    assert with_member(text, ("other",), b"1") == text
    assert (
        with_member(b'{"a":{"x":1 , "x":2.0}, "a":[]}', ("a", "x"), b"3") == b'{"a":{"x":3, "x":3}, "a":[]}'
    )


@pytest.mark.parametrize(
    ("opening", "closing"),
    [("[", "]"), ('{"a":', "}"), ('[{"a":', "}]"), ('["]}",', "]"), ('{"]":1,"\\\\\\"[\\\\":', "}")],
    ids=["arrays", "objects", "by turns", "brackets in strings", "escapes in strings"],
)
def test_no_container_is_deeper_than_the_limit_whatever_the_text_looks_like(
    opening: str, closing: str
) -> None:
    def innermost(value: Any) -> tuple[int, Any]:
        """Return the number of levels, and what the last member or item of each leads to."""
        for level in itertools.count():
            if not isinstance(value, dict | list):
                return level, value
            value = [*(value.values() if isinstance(value, dict) else value)][-1]
        raise AssertionError

    each = 1 + (opening == '[{"a":')
    for count in (198, 200, 202, 250, 300, 398, 400, 450, 900):
        text = (opening * (count // each) + "1" + closing * (count // each)).encode()
        level, rest = innermost(json.loads(without_deep(text)))
        assert level == min(count, LEVELS - 1)
        assert rest == 1 if count < LEVELS else innermost(json.loads(rest)) == (count - LEVELS + 1, 1)


def test_nesting_has_a_limit_and_a_deep_text_that_is_not_strict_is_unreadable() -> None:
    with pytest.raises(ValueError, match="invalid at byte"):
        json_parts(b"[" * 20_002 + b"]" * 20_002)
    for unreadable in DEEP[:-1], DEEP.replace(b"1", b"NaN"):
        with pytest.raises(ValueError, match="invalid at byte"):
            without_deep(unreadable)
    brackets_in_text = json.dumps(["[" * 500]).encode()
    assert without_deep(brackets_in_text) == brackets_in_text


@pytest.mark.parametrize(
    ("found", "text"),
    [
        (b'"a\\nb"', "a\nb"),
        (b'"\\ud83d half"', "\ud83d half"),
        (b'"whole \\ud83d\\ude00"', "whole \U0001f600"),
        (b"12", None),
        (b"[]", None),
    ],
)
def test_a_json_string_is_its_text(found: bytes, text: str | None) -> None:
    assert string(found) == text


@pytest.mark.parametrize(("text", "place"), [(b'{"a":1]', 7), (b"[1}", 3), (b'[{"a":[]}}', 10)])
def test_a_bracket_closes_only_its_own_kind(text: bytes, place: int) -> None:
    with pytest.raises(ValueError, match=f"invalid at byte {place}"):
        json_parts(text)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ('{"a":\n}', "line 2, column 1: Expecting value"),
        ("[NaN]", "NaN is not allowed"),
        ("[" * 100_000, "nested too deeply"),
        ("9" * 5000, "Exceeds the limit (4300 digits) for integer string conversion"),
    ],
    ids=lambda value: value[:10],
)
def test_json_that_cannot_be_read_has_one_line_with_the_reason(text: str, why: str) -> None:
    with pytest.raises(ValueError) as raised:  # noqa: PT011 - The whole text is compared.
        read_json(text)
    assert str(raised.value) == why
