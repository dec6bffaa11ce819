"""Comparison of two values."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import UNSET

from mcpspy.analysis.diff.json_diff import ValueChange, deltas, fingerprint, inner
from mcpspy.analysis.diff.volatile import Tolerance
from mcpspy.core.protocol.message import loads

SCALARS = (
    st.none() | st.booleans() | st.integers(-2, 2) | st.sampled_from([0.5, 1.0]) | st.text("ab{}", max_size=2)
)
VALUES = st.recursive(
    SCALARS,
    lambda below: (
        st.lists(below, max_size=4)
        | st.dictionaries(st.sampled_from(["a", "b", "id", "type"]), below, max_size=3)
    ),
    max_leaves=12,
)


def applied(value: Any, found: list[ValueChange]) -> Any:
    """Return a value with the reported changes applied."""
    for delta in found:
        if not delta.tokens:
            return delta.new
    if isinstance(value, dict):
        new = dict(value)
        for key in dict.fromkeys(delta.tokens[0] for delta in found):
            below = [delta for delta in found if delta.tokens[0] == key]
            ends = [delta for delta in below if len(delta.tokens) == 1]
            if ends and ends[0].new is UNSET:
                del new[key]
            elif ends and ends[0].old is UNSET:
                new[key] = ends[0].new
            else:
                new[key] = applied(value[key], [delta._replace(tokens=delta.tokens[1:]) for delta in below])
        return new
    if isinstance(value, list):
        ends = [delta for delta in found if len(delta.tokens) == 1]
        removed = {int(delta.tokens[0]) for delta in ends if delta.new is UNSET}
        added = {int(delta.tokens[0]): delta.new for delta in ends if delta.old is UNSET}
        left = iter([item for place, item in enumerate(value) if place not in removed])
        items = []
        for place in range(len(value) - len(removed) + len(added)):
            if place in added:
                items.append(added[place])
                continue
            below = [
                delta
                for delta in found
                if delta.tokens[0] == str(place)
                and (len(delta.tokens) > 1 or UNSET not in (delta.old, delta.new))
            ]
            items.append(applied(next(left), [delta._replace(tokens=delta.tokens[1:]) for delta in below]))
        return items
    return value


@given(VALUES)
def test_a_value_is_the_same_as_itself(value: Any) -> None:
    assert deltas(value, value) == []


@given(VALUES, VALUES)
def test_the_changes_made_to_the_old_value_give_the_new_one(old: Any, new: Any) -> None:
    found = [delta for delta in deltas(old, new) if not delta.is_layout]

    assert fingerprint(applied(old, found)) == fingerprint(new)


@given(VALUES, VALUES)
def test_two_values_are_equal_if_and_only_if_no_difference_is_found(old: Any, new: Any) -> None:
    assert (fingerprint(old) == fingerprint(new)) == (deltas(old, new) == [])


@pytest.mark.parametrize(
    ("old", "new", "found"),
    [
        ({"a": 1}, {"a": 1.0}, []),
        ({"a": 1}, {"a": True}, [(("a",), 1, True)]),
        ({"a": None}, {}, [(("a",), None, UNSET)]),
        ([1, 2, 3], [1, 3], [(("1",), 2, UNSET)]),
        ([1, 3], [1, 2, 3], [(("1",), UNSET, 2)]),
        ([{"id": 1, "n": 1}, {"id": 2}], [{"id": 3}, {"id": 1, "n": 2}, {"id": 2}], [(("0",), UNSET, {"id": 3}), (("1", "n"), 1, 2)]),
        ([{"type": "text", "text": "a"}], [{"type": "image", "data": "b"}], [(("0",), {"type": "text", "text": "a"}, UNSET), (("0",), UNSET, {"type": "image", "data": "b"})]),
        ([{"type": "text", "text": "a"}], [{"type": "text", "text": "b"}], [(("0", "text"), "a", "b")]),
        ({"t": '{"a":1,"b":[1]}'}, {"t": '{"a":1,"b":[2]}'}, [(("t", "b", "0"), 1, 2)]),
        ({"t": "{not json}"}, {"t": '{"a":1}'}, [(("t",), "{not json}", '{"a":1}')]),
        (2**80, 2**80 + 1, [((), 2**80, 2**80 + 1)]),
    ],
    ids=["1.0 is 1", "true is not 1", "null is not absent", "removed", "added", "known by id", "of another type", "of one type", "json in a text", "no json in a text", "big integers"],
)  # fmt: skip
def test_differences_have_their_pointers(old: Any, new: Any, found: list[Any]) -> None:
    assert [tuple(delta[:3]) for delta in deltas(old, new)] == found


def test_nan_equals_nan_and_no_number_equals_a_boolean() -> None:
    old, new = ({"a": loads(b"[NaN]"), "b": value} for value in (1, True))
    assert [delta.tokens for delta in deltas(old, new)] == [("b",)]


def test_the_same_json_formatted_differently_is_a_layout_change() -> None:
    (delta,) = deltas({"t": '{"a": 1}'}, {"t": '{"a":1}'})

    assert (delta.tokens, delta.is_layout) == (("t",), True)


def test_dates_are_equal_on_request() -> None:
    old = {"at": "2026-01-01T10:00:00Z", "items": [{"at": "10:00:01"}, 1]}
    new = {"at": "2026-02-03T11:00:00Z", "items": [2, {"at": "11:00:01"}, 1]}

    assert [delta.tokens for delta in deltas(old, new, tolerance=Tolerance.DATES)] == [("items", "0")]
    assert len(deltas(old, new)) == 4


def test_too_deep_values_are_reported_as_a_whole() -> None:
    one, same, other = (loads(b"[" * 1020 + leaf + b"]" * 1020) for leaf in (b"1", b"1", b"2"))

    assert one is not None
    assert deltas([one], [same]) == []
    assert deltas([one], [other]) != []
    assert fingerprint(one) == fingerprint(same) != fingerprint(other)


@pytest.mark.parametrize("text", ["", "{}x", "1", '"a"', "{", "[1,]", "{]"], ids=repr)
def test_a_text_without_an_object_or_array_contains_no_json(text: str) -> None:
    assert inner(text) is None


def test_a_text_with_an_object_or_array_is_parsed() -> None:
    assert inner(' {"a": [1]}\n') == {"a": [1]}
    assert inner("[]") == []


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("[redacted:00000001]", "[redacted:00000002]"),
        ("key [redacted:00000001].", "key s3cret."),
        ("key s3cret.", "key [redacted:00000001]."),
        ("[redacted:00000001]", 42),
        ('{"key": "[redacted:00000001]"}', '{"key": "[redacted:00000002]"}'),
        ([1, {"key": "[redacted:00000001]"}], [1, {"key": "[redacted:00000002]"}]),
    ],
)
def test_a_redacted_value_equals_any_value(old: Any, new: Any) -> None:
    assert deltas(old, new) == []
    assert deltas(new, old) == []


def test_text_around_a_placeholder_counts() -> None:
    old, new = "key [redacted:00000001].", "token [redacted:00000002]."
    assert deltas(old, new) == [ValueChange((), old, new)]
    assert (
        fingerprint("[redacted:00000001]") == fingerprint("[redacted:00000002]") != fingerprint("[redacted]:")
    )


def test_too_deep_values_are_compared_without_regard_to_the_order_of_members() -> None:
    def deep(leaf: object, *names: str) -> object:
        value = leaf
        for _ in range(20_000):
            value = {name: [value] if name == "a" else 1 for name in names}
        return value

    one = fingerprint(deep({"x": 1.0}, "a", "b"))

    assert one == fingerprint(deep({"x": 1}, "b", "a"))
    assert (
        len(
            {
                one,
                fingerprint(deep({"x": 2}, "a", "b")),
                fingerprint(deep([], "a")),
                fingerprint(deep({}, "a")),
            }
        )
        == 4
    )
