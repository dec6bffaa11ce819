"""Values that look random: an option, because ids and digests look random too."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator

MIN_SIZE = 20
"""Minimum characters of a value."""

MIN_ENTROPY = 3.5
"""Minimum entropy of a value in bits per character; of 20 random hex digits it is 3.4 on average."""

MIN_HEX_ENTROPY = 3.0

_VALUE = re.compile(rb"[A-Za-z0-9+/_=-]{%d,}" % MIN_SIZE)
_PIECE = re.compile(rb"[A-Za-z0-9]{16,}")
_HEX = re.compile(rb"(?:[0-9a-f]+|[0-9A-F]+)")
_DIGIT = re.compile(rb"[0-9]")
_LETTER = re.compile(rb"[A-Za-z]")

MAX_SIZE = 4096
"""Maximum characters of a value: a longer one is data."""


def random_values(text: bytes) -> Iterator[tuple[int, int, str]]:
    """Yield start, end and rule of the values that look random."""
    for found in _VALUE.finditer(text):
        if found.end() - found.start() <= MAX_SIZE and has_high_entropy(found[0]):
            yield *found.span(), "entropy"


def has_high_entropy(value: bytes) -> bool:
    """Return True for a value that looks random: not for a path, a UUID or words with hyphens, whose pieces are short."""
    pieces = [piece for piece in _PIECE.findall(value) if _DIGIT.search(piece) and _LETTER.search(piece)]
    return bool(pieces) and entropy(value) >= (MIN_HEX_ENTROPY if _HEX.fullmatch(value) else MIN_ENTROPY)


def entropy(text: bytes) -> float:
    """Return the Shannon entropy of a text, in bits per byte."""
    size = len(text)
    return -sum(count / size * math.log2(count / size) for count in Counter(text).values())
