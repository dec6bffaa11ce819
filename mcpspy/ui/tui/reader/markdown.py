"""Markdown, styled a line at a time.

Owns which stretch of a line looks like a heading, a list, code or bold text.
Nothing is removed or moved: what was sent is what is read. Only code fences
reach over lines; where they are is found once.
"""

from __future__ import annotations

import re
from bisect import bisect_right

from mcpspy.ui.tui.reader.highlight import Span

_FENCE = re.compile(rb"^[ ]{0,3}(?:```|~~~)[^\n]*\n?", re.MULTILINE)

_INLINE = re.compile(
    r"(?P<string>`[^`]+`)"
    r"|(?P<title>\*\*[^*\s](?:[^*]*[^*\s])?\*\*|__[^_\s](?:[^_]*[^_\s])?__)"
    r"|(?P<key>\[[^\]\[]*\]\([^()\s]*\)|https?://[^\s<>\"')\]]+)"
)

_ITEM = re.compile(r" *(?:[-*+]|\d{1,3}[.)]) (?:\[[ xX]\] )?")

HEADING, QUOTE, CODE, BULLET = "title", "quiet", "string", "key"


class Markdown:
    """The styles of one text."""

    def __init__(self, data: bytes) -> None:
        fences = _FENCE.finditer(data) if b"```" in data or b"~~~" in data else ()
        self._fences = [edge for match in fences for edge in (match.start(), match.end())]

    def __call__(self, start: int, line: str) -> list[Span]:
        """Return what has a style in the line that begins at an offset."""
        passed = bisect_right(self._fences, start)
        if passed % 2:
            return [Span(0, len(line), QUOTE)]
        if passed % 4 == 2:
            return [Span(0, len(line), CODE)]
        return styles(line)


def styles(line: str) -> list[Span]:
    """Return what has a style in a line that is not code."""
    if re.match(r" {0,3}#{1,6} ", line):
        return [Span(0, len(line), HEADING)]
    if line.lstrip(" ").startswith(">"):
        return [Span(0, len(line), QUOTE)]
    item = _ITEM.match(line)
    found = [Span(*item.span(), BULLET)] if item else []
    found += [
        Span(*match.span(), match.lastgroup or "")
        for match in _INLINE.finditer(line, item.end() if item else 0)
    ]
    return found
