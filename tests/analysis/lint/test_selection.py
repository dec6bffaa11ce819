"""`--select` and `--ignore`."""

from __future__ import annotations

import pytest

from mcpspy.analysis.lint import RULES, selected


def codes(select: list[str], ignore: list[str]) -> list[str]:
    return [rule.code for rule in selected(select, ignore)]


EVERY = [rule.code for rule in RULES]


def test_no_selection_is_every_rule() -> None:
    assert codes([], []) == EVERY


def test_a_family_is_its_letters_and_a_group_a_digit_more() -> None:
    assert codes(["env"], []) == [code for code in EVERY if code.startswith("ENV")]
    assert codes(["LIFE3, SEC301"], []) == ["LIFE301", "LIFE302", "LIFE303", "LIFE304", "LIFE305", "SEC301"]
    assert codes([], ["DATA,HTTP"]) == [code for code in EVERY if not code.startswith(("DATA", "HTTP"))]


def test_the_longer_selector_takes_precedence() -> None:
    assert codes(["LIFE3"], ["LIFE302"]) == ["LIFE301", "LIFE303", "LIFE304", "LIFE305"]
    assert codes(["LIFE302", "ENV101"], ["LIFE"]) == ["ENV101", "LIFE302"]
    assert codes(["LIFE"], ["LIFE"]) == []


@pytest.mark.parametrize("word", ["ENV9", "X", "ENV1011", "LIFE302x"])
def test_a_word_that_is_not_a_code_is_reported(word: str) -> None:
    with pytest.raises(ValueError, match=word.upper()):
        selected([word])
