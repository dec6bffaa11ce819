"""Characters that look like others."""

from __future__ import annotations

import pytest

from mcpspy.core.lookalikes import as_latin, mixed_words, visible


@pytest.mark.parametrize("text", ["ech\u043e", "\uff45cho", "\u0435\u0441ho"])
def test_a_text_that_looks_latin_is_read_as_latin(text: str) -> None:
    assert as_latin(text) == "echo"


def test_invisible_characters_are_left_out() -> None:
    assert visible("e\u200bc\u0301ho\u202e") == "echo"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("read \u043f\u043e\u0438\u0441\u043a", []),
        ("caf\u00e9 na\u00efve", []),
        ("\u691c\u7d22tool", []),
        ("a r\u0431m b", ["r\u0431m"]),
        ("t\u13b3o", ["t\u13b3o"]),
    ],
)
def test_only_a_word_with_letters_of_several_alphabets_is_mixed(text: str, words: list[str]) -> None:
    assert [*mixed_words(text)] == words
