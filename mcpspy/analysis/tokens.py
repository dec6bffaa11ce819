"""The number of tokens in a text: an estimate, or exact with rs-bpe (extra `tokens`). Pure.

A tokenizer cuts a text into words, groups of up to three digits, runs of punctuation, and white space, and looks each
piece up in its vocabulary. The estimate counts these pieces by class and gives each class a weight: tokens per piece,
for the encodings o200k and cl100k (the mean of both).

Measured on 2026-11-23 with gpt-tokenizer 4.0.0 (npm, o200k) and rs-bpe 0.1.0 (PyPI, cl100k; its o200k agrees with
gpt-tokenizer on every text). `bench/tokens.py` fits the weights to the 400 definitions and results of 14 servers in
tests/analysis/tokens.csv; docs/stats.md has the errors.
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Callable
from functools import cache
from typing import NamedTuple

_WORD = re.compile("[A-Z]?[a-z]+|[A-Z]+")
_DIGITS = re.compile("[0-9]{1,3}")
_MIXED = re.compile("[0-9][A-Za-z]|[A-Za-z][0-9]")
_PUNCTUATION = re.compile(r"[!-/:-@\[-`{-~]+")
_PREFIX = re.compile(r"[!-/:-@\[-`{-~](?=[A-Za-z])")
_SLASH = re.compile("(?<=[A-Za-z])/(?=[A-Za-z])")
_INDENT = re.compile(r"\t+|[ \t]{2,}")
_LINE_END = re.compile(r"(?<![!-/:-@\[-`{-~\r\n])[\r\n]+")
_SPACED_DIGIT = re.compile(" (?=[0-9])")
_OTHER = re.compile("[^\x00-\x7f]+")


class TextFeatures(NamedTuple):
    """Counts of the pieces of a text.

    A capital letter begins a word: `getSum` has two. `digits` are groups of up to three; `mixed` is a letter beside a
    digit; a prefix is punctuation directly before a letter; a slash is one between letters; an indent is a tab, or two
    spaces or more. A line end counts only if no punctuation precedes it: they are one piece. The last four are characters: to U+024F; other alphabets; Chinese, Japanese, Korean; symbols and the rest.
    """

    words: int
    letters_over_5: int
    letters_over_9: int
    digits: int
    mixed: int
    punctuation: int
    punctuation_over_2: int
    prefixes: int
    slashes: int
    indents: int
    line_ends: int
    spaced_digits: int
    latin: int
    alphabetic: int
    ideographic: int
    other: int


WEIGHTS = (
    *(0.944, 0.065, 0.043, 0.914, 0.680, 1.143, 0.155, -0.333),
    *(-0.317, 1.064, 0.758, 0.932, 1.046, 0.748, 0.824, 2.564),
)
"""Tokens for each count of `TextFeatures`."""


def features(text: str) -> TextFeatures:
    words = list(map(len, _WORD.findall(text)))
    runs = list(map(len, _PUNCTUATION.findall(text)))
    foreign = "" if text.isascii() else "".join(_OTHER.findall(text))
    latin = sum(char < "\u0250" for char in foreign)
    alphabetic = sum("\u0250" <= char < "\u1100" or "\u1e00" <= char < "\u2000" for char in foreign)
    ideographic = sum("\u3000" <= char < "\ud7b0" for char in foreign)
    return TextFeatures(
        len(words),
        sum(length - 5 for length in words if length > 5),
        sum(length - 9 for length in words if length > 9),
        len(_DIGITS.findall(text)),
        len(_MIXED.findall(text)),
        len(runs),
        sum(length - 2 for length in runs if length > 2),
        len(_PREFIX.findall(text)),
        len(_SLASH.findall(text)),
        len(_INDENT.findall(text)),
        len(_LINE_END.findall(text)),
        len(_SPACED_DIGIT.findall(text)),
        latin,
        alphabetic,
        ideographic,
        len(foreign) - latin - alphabetic - ideographic,
    )


def estimated_tokens(found: TextFeatures) -> int:
    """Return the number of tokens, at least 1 if the text has a piece."""
    if not any(found):
        return 0
    return max(round(sum(count * weight for count, weight in zip(found, WEIGHTS, strict=True))), 1)


@cache
def _o200k() -> Callable[[str], int] | None:
    """Return the count of rs-bpe, which contains the vocabulary; None if it is not installed."""
    try:
        count: Callable[[str], int] = importlib.import_module("rs_bpe.bpe").openai.o200k_base().count
    except ImportError:
        return None
    return count


def tokenizer() -> str:
    """Return the source of `count_tokens`: `o200k`, or `estimate` without rs-bpe."""
    return "o200k" if _o200k() else "estimate"


def count_tokens(text: str) -> int:
    count = _o200k()
    # rs-bpe rejects lone surrogates.
    return count(text.encode("utf-8", "replace").decode()) if count else estimated_tokens(features(text))
