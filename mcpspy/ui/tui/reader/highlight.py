"""The colours of one line of JSON.

Owns what in a line is a key, a string, a number or a word, and what in any line
stands for a secret. Reads one line at a time, so that only what is on the
screen is ever read, and puts up with lines that were cut.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from mcpspy.core.redact.placeholder import TEXT_PLACEHOLDER

KEY, STRING, NUMBER, WORD, REDACTED = "key", "string", "number", "word", "redacted"

_TOKEN = re.compile(
    r"""(?P<string>"(?:[^"\\]|\\.)*(?:"|\\?$))(?P<colon>\s*:)?"""
    r"""|(?P<number>-?\d[\d.eE+-]*)"""
    r"""|(?P<word>true|false|null)"""
)


class Span(NamedTuple):
    """A stretch of a line, and what it is."""

    start: int
    end: int
    role: str


def spans(line: str) -> list[Span]:
    """Return what has a colour in a line, from left to right."""
    found = []
    for token in _TOKEN.finditer(line):
        kind = token.lastgroup or ""
        if kind == "colon":
            found.append(Span(token.start("string"), token.end("string"), KEY))
        elif kind == "string":
            found.append(Span(*token.span("string"), STRING))
        else:
            found.append(Span(*token.span(), kind))
    return found


def redacted(line: str, found: list[Span]) -> list[Span]:
    """Return what has a colour in any line, with what stands for a secret above it: nobody sent that."""
    if "[redacted:" not in line:
        return found
    return over(found, [Span(*match.span(), REDACTED) for match in TEXT_PLACEHOLDER.finditer(line)])


def pieces(line: str, start: int, end: int, found: list[Span]) -> list[tuple[str, str | None]]:
    """Return a stretch of the line as pieces of text, each with its role."""
    parts: list[tuple[str, str | None]] = []
    at = start
    for span in found:
        first, last = max(span.start, start), min(span.end, end)
        if first >= last:
            continue
        if first > at:
            parts.append((line[at:first], None))
        parts.append((line[first:last], span.role))
        at = last
    if at < end:
        parts.append((line[at:end], None))
    return parts


def over(found: list[Span], above: list[Span]) -> list[Span]:
    """Return both, the second covering the first where they meet."""
    for top in above:
        kept = []
        for span in found:
            if span.end <= top.start or span.start >= top.end:
                kept.append(span)
                continue
            if span.start < top.start:
                kept.append(span._replace(end=top.start))
            if span.end > top.end:
                kept.append(span._replace(start=top.end))
        found = kept
    return sorted([*found, *above])
