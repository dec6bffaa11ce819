"""Styles of Markdown, line by line; nothing is removed."""

from __future__ import annotations

import re
from bisect import bisect_right

from mcpspy.ui.tui.detail.json_view import StyledSpan

_FENCE = re.compile(rb"^[ ]{0,3}(?:```|~~~)[^\n]*\n?", re.MULTILINE)

_INLINE = re.compile(
    r"(?P<string>`[^`]+`)"
    r"|(?P<title>\*\*[^*\s](?:[^*]*[^*\s])?\*\*|__[^_\s](?:[^_]*[^_\s])?__)"
    r"|(?P<key>\[[^\]\[]*\]\([^()\s]*\)|https?://[^\s<>\"')\]]+)"
)

_ITEM = re.compile(r" *(?:[-*+]|\d{1,3}[.)]) (?:\[[ xX]\] )?")

HEADING, QUOTE, CODE, BULLET = "title", "quiet", "string", "key"


class Markdown:
    """Styles the lines of a text, given where each starts."""

    def __init__(self, data: bytes) -> None:
        fences = _FENCE.finditer(data) if b"```" in data or b"~~~" in data else ()
        self._fences = [edge for match in fences for edge in (match.start(), match.end())]

    def __call__(self, start: int, line: str) -> list[StyledSpan]:
        passed = bisect_right(self._fences, start)
        if passed % 2:
            return [StyledSpan(0, len(line), QUOTE)]
        if passed % 4 == 2:
            return [StyledSpan(0, len(line), CODE)]
        return styles(line)


def styles(line: str) -> list[StyledSpan]:
    """Return the styled spans of a line outside code."""
    if re.match(r" {0,3}#{1,6} ", line):
        return [StyledSpan(0, len(line), HEADING)]
    if line.lstrip(" ").startswith(">"):
        return [StyledSpan(0, len(line), QUOTE)]
    item = _ITEM.match(line)
    found = [StyledSpan(*item.span(), BULLET)] if item else []
    found += [
        StyledSpan(*match.span(), match.lastgroup or "")
        for match in _INLINE.finditer(line, item.end() if item else 0)
    ]
    return found
