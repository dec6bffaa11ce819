r"""Looking for words in a text of any size.

Owns what a query means (`word`: in any case, unless it has a capital;
`/regex/`), and finding hits from a place on. Looks at a window at a time, so
that a near hit costs nothing, and counts no more hits than can matter.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator

from mcpspy.ui.tui.detail.json_view import StyledSpan

MOST = 9_999
"""Hits that are counted; behind them stands a plus."""

WINDOW = 1 << 20
"""Bytes looked through at once."""


class SearchQuery:
    """What is looked for; raises `ValueError` with what is wrong with it."""

    def __init__(self, words: str) -> None:
        self.words = words
        is_regex = len(words) > 2 and words.startswith("/") and words.endswith("/")
        pattern = words[1:-1] if is_regex else re.escape(words)
        flags = 0 if any(c.isupper() for c in words) else re.IGNORECASE
        try:
            self._shown = re.compile(pattern, flags)
            if is_regex or (flags and not words.isascii()):
                self._regex = re.compile(
                    _in_bytes(pattern) if flags else pattern.encode(), flags | re.MULTILINE
                )
        except re.error as wrong:
            raise ValueError(f"no regular expression: {wrong}") from None
        self._needle = (
            b"" if is_regex or (flags and not words.isascii()) else words.encode("utf-8", "replace")
        )
        self._lower = bool(flags)

    def spans(self, line: str, role: str) -> list[StyledSpan]:
        """Return the hits in a line that is shown."""
        return [
            StyledSpan(*hit.span(), role) for hit in self._shown.finditer(line) if hit.end() > hit.start()
        ]

    def find(self, text: bytes, at: int = 0) -> Iterator[int]:
        """Yield where the hits from a place on begin."""
        if not self._needle:
            yield from (hit.start() for hit in self._regex.finditer(text, at) if hit.end() > hit.start())
            return
        needle, length = (self._needle.lower() if self._lower else self._needle), len(self._needle)
        while at < len(text):
            window = text[at : at + WINDOW + length - 1]
            window, found = (window.lower() if self._lower else window), 0
            while (found := window.find(needle, found)) >= 0:
                yield at + found
                found += length
            at += WINDOW


class SearchHits:
    """The hits in one text."""

    def __init__(self, query: SearchQuery, text: bytes) -> None:
        self._query, self._text = query, text
        self._known: list[int] = []
        for hit in query.find(text):
            self._known.append(hit)
            if len(self._known) > MOST:
                break

    def __len__(self) -> int:
        return min(len(self._known), MOST)

    @property
    def length(self) -> int:
        return len(self._text)

    @property
    def is_more(self) -> bool:
        """Whether there are more than are counted."""
        return len(self._known) > MOST

    def number(self, hit: int) -> int:
        """Return which hit that is, counted from one; 0 if it was not counted."""
        place = bisect_left(self._known, hit)
        return place + 1 if place < len(self._known) and self._known[place] == hit else 0

    def after(self, place: int) -> int | None:
        """Return the first hit at or behind a place."""
        index = bisect_left(self._known, place)
        if index < len(self._known):
            return self._known[index]
        return next(self._query.find(self._text, place), None) if self.is_more else None

    def before(self, place: int) -> int | None:
        """Return the last hit before a place, among those that are known."""
        if self.is_more and place > self._known[-1]:
            *_, last = self._query.find(self._text[:place], self._known[-1])
            return last
        index = bisect_right(self._known, place - 1)
        return self._known[index - 1] if index else None


def _in_bytes(pattern: str) -> bytes:
    """Return a pattern for UTF-8: what is no ASCII matches in both cases."""
    return b"".join(
        c.encode()
        if c.isascii()
        else b"(?:" + b"|".join(sorted({re.escape(v.encode()) for v in (c, c.lower(), c.upper())})) + b")"
        for c in pattern
    )
