"""docs/token_formats.toml: each format's examples are found, and its near-misses are not."""

from __future__ import annotations

import random
import re
from pathlib import Path
from typing import Any

import pytest

from docs.token_formats import generated, token_formats
from mcpspy.core.redact import format_table, literals
from mcpspy.core.redact.config import RedactionRules
from mcpspy.core.redact.formats import FormatError, TokenFormat, read_format, read_formats
from mcpspy.core.redact.redactor import Redactor
from mcpspy.core.redact.text import spans
from tests.core.redact import made_up

FORMATS = token_formats()
RULES = RedactionRules()
EXAMPLES = 20


def found(text: str) -> list[tuple[str, str]]:
    data = text.encode()
    return [(rule, data[start:end].decode()) for start, end, rule in spans(data, RULES)]


def test_there_are_some_200_formats_and_each_has_a_source() -> None:
    assert len(FORMATS) > 200
    for each in FORMATS:
        assert each.vendor, each.id
        assert each.name, each.id
        assert each.literals, each.id
        assert each.source.startswith("https://"), each.id


def test_the_generated_modules_are_current() -> None:
    for name, text in generated(FORMATS):
        assert (Path(format_table.__file__).parent / name).read_text(encoding="utf-8") == text, (
            "run docs/make.py"
        )


def test_a_literal_belongs_to_one_format() -> None:
    every = [text for each in FORMATS for text in each.literals]
    assert len(every) == len(set(every)) == len(literals.LITERALS)
    assert len(format_table.FORMATS) == len(FORMATS)


@pytest.mark.parametrize("each", FORMATS, ids=lambda each: each.id)
def test_examples_are_found_and_nothing_around_them(each: TokenFormat) -> None:
    choose = random.Random(each.id)
    for _ in range(EXAMPLES):
        made = made_up.token(each.example, choose)
        secret = made_up.secret(each, made)
        for text in (f"it is {made}, or so", f"({made})", made, f"a\n{made}\nb", f"x={made};"):
            assert [value for _, value in found(text)] == [secret], text


@pytest.mark.parametrize("each", FORMATS, ids=lambda each: each.id)
def test_a_near_miss_is_not_a_token(each: TokenFormat) -> None:
    choose = random.Random(each.id)
    for missed in made_up.near_misses(each, choose):
        assert [rule for rule, _ in found(f"it is {missed}, or so") if rule == each.id] == [], missed


@pytest.mark.parametrize("each", FORMATS, ids=lambda each: each.id)
def test_each_example_contains_a_literal_at_its_place(each: TokenFormat) -> None:
    made = made_up.token(each.example, random.Random(7))
    places = [made.find(text) for text in each.literals if text in made]
    assert places, made
    assert each.lead or each.back in places, made


_CLASS = re.compile(r"\[((?:[^\]\\]|\\.)+)\](?:\{[0-9]+,\}|[*+])")


@pytest.mark.parametrize("each", FORMATS, ids=lambda each: each.id)
def test_a_pattern_takes_linear_time(each: TokenFormat) -> None:
    """No match can begin inside a run that an unbounded class has consumed: each byte is read a few times at most."""
    assert not re.search(r"\(\?[=!<]|\.[*+]|\)[*+]", each.pattern)
    for found in _CLASS.finditer(each.pattern):
        run = re.compile(f"[{found[1]}]")
        for literal in each.literals:
            if all(run.fullmatch(letter) for letter in literal):
                is_strict = each.back > 0 or any(map(str.isalnum, each.literals))
                outside = r"[^A-Za-z0-9_+/-]" if is_strict else r"[^A-Za-z0-9_-]"
                separators = [
                    c for c in map(chr, range(33, 127)) if run.fullmatch(c) and re.match(outside, c)
                ]
                assert not separators, (found[0], separators)


TABLE: dict[str, Any] = {"id": "acme", "pattern": "acme_[0-9a-f]{32}"}


def test_an_id_and_a_pattern_are_enough() -> None:
    assert read_format(TABLE, 1) == TokenFormat("acme", "acme_[0-9a-f]{32}")


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"id": None}, r"format 1: missing key id"),
        ({"pattern": ""}, r"format 'acme': missing key pattern"),
        ({"regex": "x"}, r"unknown key regex \(use id, pattern"),
        ({"vendor": 1}, "vendor must be a string"),
        ({"back": -1}, "back must be a number"),
        ({"back": True}, "back must be a number"),
        ({"entropy": "high"}, "entropy must be a number"),
        ({"literals": "acme_"}, "literals must be a list"),
        ({"literals": [""]}, "literals must be a list"),
        ({"check": "strict"}, "check must be one of mixed"),
    ],
)
def test_a_wrong_format_is_an_error_with_its_id_and_reason(change: dict[str, Any], why: str) -> None:
    table = {key: value for key, value in {**TABLE, **change}.items() if value is not None}
    with pytest.raises(FormatError, match=why):
        read_formats([table])


def test_an_id_is_used_once() -> None:
    with pytest.raises(FormatError, match="'acme': the id is used twice"):
        read_formats([TABLE, TABLE])
    with pytest.raises(FormatError, match=r"write \[\[format\]\]"):
        read_formats({"acme": "x"})


@pytest.mark.parametrize("prefix", ["glpat-", "SIE-glpat-", "my-company-glpat-"])
def test_a_gitlab_token_is_redacted_with_the_prefix_of_its_instance(prefix: str) -> None:
    made = made_up.token(prefix + "<w20>", random.Random(3))
    assert made not in Redactor(bytes(32)).message(f'{{"a":"uses {made} here"}}'.encode()).decode()
