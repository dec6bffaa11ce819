"""Suggestions of `--carry` rules."""

from __future__ import annotations

import re
from typing import Any

import pytest

from mcpspy.core.replay.carry_hints import suggestions
from mcpspy.core.replay.substitution import rule
from tests.core.replay.playing import Stage, Talk


def suggested(before: Any, now: Any, given: Any, *, carry: tuple[str, ...] = ()) -> list[str]:
    """Return the suggested rules if a value of one response is an argument of the next call."""
    talk = Talk().call(1, "open", before).call(2, "use", session=given)
    rules = tuple(rule(text) for text in carry)
    stage = Stage(talk.session, carry=rules)
    stage.takes()
    stage.hears(id=1, result={"said": now})
    stage.hears(id=2, result={"said": "yes"})
    return [str(found) for _, found in suggestions(stage.player.sent.values(), rules)]


def test_a_whole_value_is_suggested_at_its_place() -> None:
    assert suggested({"id": "s-11"}, {"id": "s-22"}, "s-11") == ["/result/said/id"]
    assert suggested([{"port": 40001}], [{"port": 40002}], 40001) == ["/result/said/0/port"]


def test_a_part_of_a_text_is_suggested_with_the_text_before_it() -> None:
    (found,) = suggested("session abc-123 is open", "session xyz-789 is open", "abc-123")

    assert found == r"/result/said=session ([\w.:/+=-]+)"
    match = re.search(found.partition("=")[2], "session xyz-789 is open")
    assert match is not None
    assert match[1] == "xyz-789"


@pytest.mark.parametrize(
    ("before", "now", "given"),
    [
        ("s-11", "s-11", "s-11"),  # Unchanged: nothing to carry.
        ("s-1", "s-2", "s-1"),  # Three characters may be a coincidence.
        (7, 8, 7),
        ("s-11", "s-22", "else"),
        ("the answer is here", "no", "answer is"),  # Not a word.
        (True, False, True),
    ],
)
def test_a_possible_coincidence_is_not_suggested(before: Any, now: Any, given: Any) -> None:
    assert suggested(before, now, given) == []


def test_a_value_that_is_carried_already_is_not_suggested() -> None:
    assert suggested("s-11", "s-22", "s-11", carry=("/result/said",)) == []


def test_a_suggestion_names_the_request_and_its_value() -> None:
    talk = Talk().call(1, "open", "s-11").call(2, "use", session="s-11")
    stage = Stage(talk.session)
    stage.takes()
    stage.hears(id=1, result={"said": "s-22"})
    stage.hears(id=2, result={})

    assert [gave for gave, _ in suggestions(stage.player.sent.values())] == [
        "tools/call use sent back 's-11'"
    ]
