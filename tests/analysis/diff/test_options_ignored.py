"""Patterns of ignored values."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpspy.analysis.diff.json_diff import deltas
from mcpspy.analysis.diff.model import ComparedCase, Ignored, cut, ignored, is_cut
from mcpspy.core.jsontools import pointer

RESULT = {"result": {"a": 1, "items": [{"at": 1, "n": 1}, {"at": 2, "n": 2}], "text": '{"at":5,"b":6}'}}


@pytest.mark.parametrize(
    ("text", "means"),
    [
        ("/result/a", Ignored("*", "*", ("result", "a"))),
        ("/result/**/at", Ignored("*", "*", ("result", "**", "at"))),
        ("tools/call /result", Ignored("tools/call", "*", ("result",))),
        ("tools/call clock /result/a~1b", Ignored("tools/call", "clock", ("result", "a/b"))),
        ("notifications/*", Ignored("notifications/*", "*", ())),
        ("elicitation/create Which one? /params", Ignored("elicitation/create", "Which one?", ("params",))),
    ],
    ids=str,
)
def test_a_pattern_is_read(text: str, means: Ignored) -> None:
    assert ignored(text) == means


@pytest.mark.parametrize("text", ["", "  ", "/", "/answer/a", "/result/~2", "tools/call /a"], ids=repr)
def test_an_invalid_pattern_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"empty pattern|a pointer must begin|must write ~ as"):
        ignored(text)


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("result/a", "/result/a"),
        ("result", "/result"),
        ("params/arguments/now", "/params/arguments/now"),
        ("**/etag", "/**/etag"),
        ("tools/call clock result/content/*/text", "/result/content/*/text"),
        ("tools/call progress/0", "/progress/0"),
    ],
)
def test_a_pointer_without_its_slash_is_refused_with_a_hint(text: str, hint: str) -> None:
    with pytest.raises(ValueError, match=r"must begin with /: did you mean ") as refused:
        ignored(text)

    assert str(refused.value).endswith(f"did you mean {hint}?")


@pytest.mark.parametrize(
    "text", ["*/list", "notifications/progress", "tools/call error", "results/get", "tools/call *"]
)
def test_a_method_or_a_subject_that_looks_like_a_pointer_is_valid(text: str) -> None:
    assert ignored(text).tokens == ()


@pytest.mark.parametrize(
    ("pattern", "left"),
    [
        ("/result/a", {"items": [{"at": 1, "n": 1}, {"at": 2, "n": 2}], "text": '{"at":5,"b":6}'}),
        ("/result/items/*/at", {"a": 1, "items": [{"n": 1}, {"n": 2}], "text": '{"at":5,"b":6}'}),
        ("/result/**/at", {"a": 1, "items": [{"n": 1}, {"n": 2}], "text": {"b": 6}}),
        ("/result/items/0", {"a": 1, "items": [None, {"at": 2, "n": 2}], "text": '{"at":5,"b":6}'}),
        ("/result/te?t/at", {"a": 1, "items": RESULT["result"]["items"], "text": {"b": 6}}),
        ("/**/items", {"a": 1, "text": {"at": 5, "b": 6}}),
        ("/result/**", {}),
        ("/result/none/at", RESULT["result"]),
    ],
    ids=str,
)
def test_an_ignored_pattern_removes_the_values_that_it_matches(pattern: str, left: Any) -> None:
    assert cut(RESULT, [pointer(pattern)]) == {"result": left}


def test_the_original_value_is_unchanged() -> None:
    before = repr(RESULT)
    cut(RESULT, [pointer("/result/**/at")])

    assert repr(RESULT) == before


@pytest.mark.parametrize(
    ("place", "pattern", "named"),
    [
        ("/result/items/3", "/result/items/*", True),
        ("/result/items/3/at", "/result/items/*", True),
        ("/result/items", "/result/items/*", False),
        ("/result/a/b/at", "/**/at", True),
        ("/at", "/**/at", True),
        ("/result/ab", "/result/a", False),
    ],
    ids=str,
)
def test_a_pattern_matches_a_pointer_and_everything_below_it(
    place: str, pattern: str, *, named: bool
) -> None:
    assert is_cut(pointer(place), [pointer(pattern)]) is named


def is_about(pattern: str, method: str, subject: str | None) -> bool:
    return ignored(pattern).is_about(ComparedCase(method=method, subject=subject))


def test_a_pattern_applies_to_its_method_and_subject() -> None:
    assert is_about("tools/* cl?ck /result", "tools/call", "clock")
    assert not is_about("tools/* clock /result", "tools/call", "clocks")
    assert not is_about("tools/call a.c /result", "tools/call", "abc")
    assert not is_about("tools/call clock", "tools/call", None)
    assert is_about("/result", "ping", None)


VALUES = st.recursive(
    st.integers(0, 2),
    lambda below: st.lists(below, max_size=3) | st.dictionaries(st.sampled_from("ab"), below, max_size=2),
    max_leaves=8,
)
TOKENS = st.lists(st.sampled_from(["a", "b", "*", "**", "0", "1"]), min_size=1, max_size=4).map(tuple)


@given(VALUES, VALUES, TOKENS)
def test_changes_that_a_pattern_matches_are_removed(old: Any, new: Any, pattern: tuple[str, ...]) -> None:
    """Lists shift, so positions are those in the reduced values."""
    one, two = {"a": cut(old, [pattern])}, {"a": cut(new, [pattern])}
    whole = deltas(old, new)

    if all(is_cut(delta.tokens, [pattern]) for delta in whole) and not _has_lists(old, new):
        assert deltas(one, two) == []
    if not whole:
        assert deltas(one, two) == []


def _has_lists(*values: Any) -> bool:
    return any(isinstance(v, list) or (isinstance(v, dict) and _has_lists(*v.values())) for v in values)
