"""Texts in Base64 and in percent-encoding, in which a secret is not readable.

A text in Base64 has no literal of a rule in it. But the letters that encode a word depend on three positions only, so
`core.redact.literals.BASE64` has literals for the words that are beside nearly all secrets, and for the beginnings of
tokens. The run of letters around such a literal is decoded once and searched like any other text.
"""

from __future__ import annotations

import re
from binascii import a2b_base64, a2b_hex

from mcpspy.core.redact.literals import BASE64
from mcpspy.core.redact.patterns import tail

MAX_RUN = 1 << 18
"""Letters of a run that are decoded on each side of a literal."""

_LETTERS = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/_-"
_RUN = re.compile(rb"[A-Za-z0-9+/_-]{0,%d}" % MAX_RUN)
_URL_SAFE = bytes.maketrans(b"-_", b"+/")
_LINE_LENGTHS = (60, 64, 76)
"""Letters of a line of Base64 in several lines: of GitHub, of PEM (RFC 7468), and of MIME (RFC 2045)."""

PERCENT = re.compile(rb"%[2-7][0-9A-Fa-f]")
"""An encoded character of ASCII; of others, no rule needs to know."""

_BYTE = re.compile(rb"%([0-9A-Fa-f]{2})")
USER = re.compile(rb"(?i)(?:%2f|/)(?:%2f|/)[^\s\"'/@]{0,200}(?:%3a|:)[^\s\"'/@]{1,200}\Z")
"""The text in front of the encoded `@` of a URL with a password."""


def run(text: bytes, place: int, literal: bytes, least: int) -> tuple[int, int, bytes]:
    """Return the start and end of the run around a literal, not before `least`, and its decoded text."""
    start = max(least, place - tail(text, place, MAX_RUN, _LETTERS))
    found = _RUN.match(text, place)
    end = place if found is None else found.end()
    first, last = _first_line(text, start, least), _last_line(text, start, end)
    if (first, last) == (start, end):
        # A path or a word may be directly before the encoded text: the literal shows where a group of four begins.
        start += (place - BASE64[literal] - start) % 4
    else:
        start, end = first, last
    letters = text[start:end].translate(_URL_SAFE, b"\r\n")
    end += len(text[end : end + 2]) - len(text[end : end + 2].lstrip(b"="))
    return start, end, a2b_base64(letters[: len(letters) - (len(letters) % 4 == 1)] + b"==")


def _first_line(text: bytes, start: int, least: int) -> int:
    """Return the start of the first of the lines of Base64 that end at `start`."""
    while text[start - 1 : start] == b"\n" and start > least + 1:
        end = start - 1 - text[:start].endswith(b"\r\n")
        before = end - tail(text, end, _LINE_LENGTHS[-1] + 1, _LETTERS)
        if end - before not in _LINE_LENGTHS or before < least:
            break
        start = before
    return start


def _last_line(text: bytes, start: int, end: int) -> int:
    """Return the end of the last of the lines of Base64 whose first is from `start` to `end`."""
    while end - start in _LINE_LENGTHS:
        at = end + text.startswith(b"\r", end)
        found = _RUN.match(text, at + 1) if text.startswith(b"\n", at) else None
        if found is None or found.end() == at + 1:
            break
        start, end = found.span()
    return end


def percent_decoded(text: bytes) -> tuple[bytes, list[int], list[int]]:
    """Return a text without its percent-encoding (RFC 3986, 2.1), and positions in it with theirs in the encoded text."""
    decoded, encoded = [0], [0]
    first, *parts = _BYTE.split(text)
    pieces, length, done = [first], len(first), len(first)
    for digits, plain in zip(parts[::2], parts[1::2], strict=True):
        decoded += (length, length + 1)
        encoded += (done, done + 3)
        pieces += (a2b_hex(digits), plain)
        length += 1 + len(plain)
        done += 3 + len(plain)
    return b"".join(pieces), decoded, encoded
