"""The structure of JSON follows from its indentation."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpspy.ui.model.body import BodyLines
from mcpspy.ui.tui.detail import document as outline_module
from mcpspy.ui.tui.detail.document import Outline

KEYS = st.text(alphabet='ab{}[]", :\\/~é\n', max_size=4)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | KEYS,
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(KEYS, inner, max_size=5),
    max_leaves=25,
)
"""JSON values whose keys and strings look like structure."""


def body_of(value: Any) -> BodyLines:
    return BodyLines(json.dumps(value).encode())


def by_hand(body: BodyLines) -> list[tuple[int | None, int | None]]:
    """Return the parent and closing line of every line, computed with a stack."""
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
def test_parents_and_closing_lines_match_a_stack(value: Any, random: Any) -> None:
    body = body_of(value)
    outline, expected = Outline(body), by_hand(body)
    lines = list(range(len(body)))
    random.shuffle(lines)  # The cache must not depend on the order of the queries.

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
def test_item_counts_match_a_parser(value: Any, random: Any) -> None:
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
            assert text  # The container spans at least one line.
    random.shuffle(places)

    for line, parent, number in places:
        assert outline.index(body.start(line), body.start(parent)) == number
    for line, (_, close) in enumerate(expected):
        if close is not None:
            assert outline.members(body.start(line), body.start(close)) == seen[line]


def test_a_distant_parent_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outline_module, "NEAR", 8)
    body = body_of({"rows": [{"n": number} for number in range(500)]})

    assert Outline(body).parent(body.start(1 + 1 + 499 * 3)) == body.start(1)
