"""The structure of JSON is read off its layout."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpspy.ui.body import BodyLines
from mcpspy.ui.tui.detail import json_view as outline_module
from mcpspy.ui.tui.detail.json_view import Outline

KEYS = st.text(alphabet='ab{}[]", :\\/~é\n', max_size=4)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | KEYS,
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(KEYS, inner, max_size=5),
    max_leaves=25,
)
"""Values whose keys and strings look like structure."""


def body_of(value: Any) -> BodyLines:
    return BodyLines(json.dumps(value).encode())


def by_hand(body: BodyLines) -> list[tuple[int | None, int | None]]:
    """Return parent and closing line of every line, by a stack."""
    found: list[tuple[int | None, int | None]] = []
    stack: list[int] = []
    for number, line in enumerate(body):
        if line.strip(" ,") in ("}", "]"):
            opened = stack.pop()
            found[opened] = (found[opened][0], number)
        found.append((stack[-1] if stack else None, None))
        if line.endswith(("{", "[")):
            stack.append(number)
    return found


@given(VALUES, st.randoms())
def test_parents_and_ends_are_those_that_a_stack_finds(value: Any, random: Any) -> None:
    body = body_of(value)
    outline, expected = Outline(body), by_hand(body)
    lines = list(range(len(body)))
    random.shuffle(lines)  # What is remembered must not depend on the order of asking.

    for line in lines:
        parent, close = expected[line]
        start = body.start(line)
        found = outline.parent(start)
        assert (None if found is None else body.line_at(found)) == parent
        assert outline.opens(start) is (close is not None)
        if close is not None:
            assert body.line_at(outline.close(start)) == close
            assert outline.closes(body.start(close))
            assert outline.opener(body.start(close)) == start


@given(VALUES, st.randoms())
def test_items_are_counted_as_a_parser_counts_them(value: Any, random: Any) -> None:
    body = body_of(value)
    outline, expected = Outline(body), by_hand(body)
    seen: dict[int, int] = {}
    places = []
    for line, (parent, close) in enumerate(expected):
        if parent is not None and not outline.closes(body.start(line)):
            places.append((line, parent, seen.get(parent, 0)))
            seen[parent] = seen.get(parent, 0) + 1
        if close is not None:
            text = msgspec.Raw(b"\n".join(line.encode() for line in [*body][line : close + 1]))
            assert text  # The container has lines of its own.
    random.shuffle(places)

    for line, parent, number in places:
        assert outline.index(body.start(line), body.start(parent)) == number
    for line, (_, close) in enumerate(expected):
        if close is not None:
            assert outline.members(body.start(line), body.start(close)) == seen[line]


def test_what_is_far_away_is_found_as_well(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outline_module, "NEAR", 8)
    body = body_of({"rows": [{"n": number} for number in range(500)]})

    assert Outline(body).parent(body.start(1 + 1 + 499 * 3)) == body.start(1)
