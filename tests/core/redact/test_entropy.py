"""The entropy rule: off by default; tokens look random, and ids, paths and words do not."""

from __future__ import annotations

import random

import pytest

from mcpspy.core.redact.config import RedactionRules
from mcpspy.core.redact.entropy import MAX_SIZE, random_values
from mcpspy.core.redact.text import spans
from tests.core.redact import made_up


@pytest.mark.parametrize("template", ["<a20>", "<a40>", "<h32>", "<b64>", "<l32>", "<w43>"])
def test_values_of_twenty_characters_that_look_random_are_found(template: str) -> None:
    choose = random.Random(template)
    made = [made_up.token(template, choose) for _ in range(100)]
    missed = [value for value in made if not list(random_values(f"it is {value}.".encode()))]
    assert len(missed) <= 10, missed


@pytest.mark.parametrize(
    "text",
    [
        "550e8400-e29b-41d4-a716-446655440000",
        "src/components/navigation/Menu2/index",
        "a-long-name-with-many-words-2026",
        "ABCDEFGHIJKLMNOPQRSTUVWXYZ",
        "12345678901234567890123456789",
        "a1a1a1a1a1a1a1a1a1a1a1a1a1a1",
        "Ab3dEf6hIj9kLm2nO",
    ],
)
def test_other_values_are_not(text: str) -> None:
    assert list(random_values(text.encode())) == []


def test_data_is_not_a_value() -> None:
    made = made_up.token(f"<b{MAX_SIZE + 1}>", random.Random(1))
    assert list(random_values(made.encode())) == []


def test_it_is_an_option() -> None:
    text = b"value 0a9Zb8Yc7Xd6We5Vf4Ug3T"
    assert spans(text, RedactionRules()) == []
    assert [text[start:end] for start, end, _ in spans(text, RedactionRules(entropy=True))] == [text[6:]]
    assert RedactionRules(entropy=True).is_thorough
