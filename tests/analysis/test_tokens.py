"""The estimate of tokens, held to the counts of two tokenizers.

tokens.csv has a row for each text: its source (a recording, or a server of npm or PyPI), its counts with o200k
(gpt-tokenizer 4.0.0) and cl100k (rs-bpe 0.1.0), and its features, but not the text. The results of `filesystem` are
files of this repository and of the peers' packages. Definitions of the kind `unseen tool` were measured afterwards.
"""

from __future__ import annotations

import csv
import json
from pathlib import Path
from statistics import median
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpspy.analysis import context
from mcpspy.analysis.context import (
    TextFeatures,
    count_tokens,
    definition,
    estimated_tokens,
    features,
    tokenizer,
)

RECORDINGS = Path(__file__).parents[2] / "recordings"
ENCODINGS = ("o200k", "cl100k")


def measured() -> list[dict[str, str]]:
    with (Path(__file__).parent / "tokens.csv").open(encoding="utf-8", newline="") as table:
        return list(csv.DictReader(table))


def errors(row: dict[str, str]) -> list[float]:
    """Return the relative errors of the estimate, one for each encoding."""
    return [abs(estimate(row) / int(row[name]) - 1) for name in ENCODINGS]


def estimate(row: dict[str, str]) -> int:
    return estimated_tokens(TextFeatures(*(int(row[name]) for name in TextFeatures._fields)))


def agree(row: dict[str, str]) -> bool:
    o200k, cl100k = (int(row[name]) for name in ENCODINGS)
    return abs(o200k - cl100k) <= 0.1 * o200k


def is_long(row: dict[str, str]) -> bool:
    return min(int(row[name]) for name in ENCODINGS) >= 50


def test_texts_of_50_tokens_on_which_the_tokenizers_agree_are_within_ten_percent_of_both() -> None:
    long = [row for row in measured() if is_long(row) and agree(row)]
    misses = [row for row in long if max(errors(row)) > 0.1]

    assert len(long) > 380
    assert len(misses) <= 5
    assert median(max(errors(row)) for row in long) < 0.04
    assert max(max(errors(row)) for row in long) < 0.13


def test_definitions_are_within_ten_percent_of_both_except_one() -> None:
    tools = [row for row in measured() if row["kind"] == "tool"]

    assert len(tools) > 150
    assert sum(max(errors(row)) > 0.1 for row in tools) == 1
    assert max(max(errors(row)) for row in tools) < 0.12


def test_definitions_that_the_weights_were_not_fitted_to_are_within_ten_percent() -> None:
    unseen = [row for row in measured() if row["kind"] == "unseen tool"]

    assert len(unseen) == 64
    assert max(max(errors(row)) for row in unseen) <= 0.1


def test_short_texts_are_at_most_four_tokens_wrong() -> None:
    short = [row for row in measured() if not is_long(row) and agree(row)]

    assert len(short) > 50
    assert max(abs(estimate(row) - int(row[name])) for row in short for name in ENCODINGS) <= 4


def test_the_sum_of_all_texts_is_within_three_percent() -> None:
    rows = measured()

    for name in ENCODINGS:
        assert abs(sum(map(estimate, rows)) / sum(int(row[name]) for row in rows) - 1) < 0.03


def test_the_estimate_misses_differing_tokenizers_by_less_than_they_differ() -> None:
    unlike = [row for row in measured() if not agree(row)]

    assert len(unlike) == 6  # Cyrillic, Arabic and Indic scripts.
    for row in unlike:
        o200k, cl100k = (int(row[name]) for name in ENCODINGS)
        assert min(errors(row)) < abs(cl100k / o200k - 1)
        assert max(errors(row)) < 0.3


def test_the_counts_in_the_table_are_those_of_the_tokenizer_of_the_extra() -> None:
    table = {tuple(row[name] for name in ("o200k", *TextFeatures._fields)) for row in measured()}
    recorded = [definition(tool) for tool in tools_of("memory-sdk-auto")]

    assert tokenizer() == "o200k"
    assert len(recorded) > 5
    assert {(str(count_tokens(text)), *map(str, features(text))) for text in recorded} <= table
    assert count_tokens("\ud800<|endoftext|>") > 1


def test_without_the_extra_a_count_is_the_estimate(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(context, "_o200k", lambda: None)

    assert tokenizer() == "estimate"
    assert count_tokens("The weather in Paris") == estimated_tokens(features("The weather in Paris"))


def tools_of(name: str) -> list[dict[str, Any]]:
    lines = (RECORDINGS / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()
    return [
        tool
        for line in lines
        for tool in ((json.loads(line).get("msg") or {}).get("result") or {}).get("tools", ())
    ]


def test_the_features_of_a_recorded_definition_are_those_in_the_table() -> None:
    recorded = {features(definition(tool)) for tool in tools_of("memory-sdk-auto")}
    table = {
        TextFeatures(*(int(row[name]) for name in TextFeatures._fields))
        for row in measured()
        if row["source"].startswith("memory") and row["kind"] == "tool"
    }

    assert recorded
    assert recorded & table == table


@pytest.mark.parametrize(
    ("text", "fewest", "most"),
    [
        ("", 0, 0),
        ("a", 1, 1),
        ("The weather in Paris is fine today.", 7, 9),
        ('{"type":"object","properties":{"a":{"type":"number"}}}', 12, 18),
        ("2026-11-23T08:28:21.623Z", 14, 20),
        ("こんにちは世界", 2, 7),
    ],
)
def test_short_texts_have_a_plausible_number_of_tokens(text: str, fewest: int, most: int) -> None:
    assert fewest <= estimated_tokens(features(text)) <= most


@given(st.text())
def test_no_text_has_more_than_three_tokens_per_character(text: str) -> None:
    assert 0 <= estimated_tokens(features(text)) <= 3 * len(text)
