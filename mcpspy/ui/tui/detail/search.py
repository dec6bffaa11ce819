"""Search in a message: queries, hits over several sections, and the input line.

A query is text (case-sensitive if it has a capital letter) or a `/regex/`. Messages
are searched window by window, so that a near hit is found at once.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Sequence
from heapq import merge
from typing import ClassVar, NamedTuple, TypeAlias

from textual.binding import Binding, BindingType
from textual.message import Message
from textual.widgets import Input

from mcpspy.core.query.highlight import Mark, Steps, marks_of
from mcpspy.core.regex import AllowUnsafe, Regex, RegexError, UnsupportedRegexError, compile_regex, refuse
from mcpspy.core.sanitize import sanitize
from mcpspy.ui.tui.detail.document import Section, StyledSpan, TextSource, over
from mcpspy.ui.tui.widgets.columns import Piece

MOST = 9_999
"""Maximum hits that are counted."""

WINDOW = 1 << 20

_SHOWN_KEY = re.compile(r' *"(?:[^"\\]|\\.)*": | *')


class SearchQuery:
    """A search; raises `ValueError` if it is invalid."""

    def __init__(self, words: str, allow_unsafe: AllowUnsafe = refuse) -> None:
        self.words = words
        is_regex = len(words) > 2 and words.startswith("/") and words.endswith("/")
        self._lower = not any(c.isupper() for c in words)
        is_literal = not is_regex and (words.isascii() or not self._lower)
        self._needle = words.encode("utf-8", "replace") if is_literal else b""
        pattern = words[1:-1] if is_regex else re.escape(words)
        try:
            self._regex = compile_regex(pattern, allow_unsafe, ignore_case=self._lower, multiline=True)
        except UnsupportedRegexError:
            raise
        except RegexError as error:
            raise ValueError(f"invalid regular expression: {error}") from None

    def of(self, _section: Section) -> SearchQuery:
        return self

    def spans(self, line: str, role: str, _start: int = 0) -> list[StyledSpan]:
        return [StyledSpan(start, end, role) for start, end in self._regex.text_spans(line) if end > start]

    def find(self, text: bytes, at: int = 0) -> Iterator[int]:
        """Yield the offsets of hits, starting at `at`."""
        if not self._needle:
            yield from (start for start, end in self._regex.spans(text, at) if end > start)
            return
        needle, length = (self._needle.lower() if self._lower else self._needle), len(self._needle)
        while at < len(text):
            window = text[at : at + WINDOW + length - 1]
            window, found = (window.lower() if self._lower else window), 0
            while (found := window.find(needle, found)) >= 0:
                yield at + found
                found += length
            at += WINDOW


class FilterSearch:
    """The matches of a filter in a message: in the whole text, or in the values that the filter tests."""

    words = "filter"

    def __init__(self, text: str, allow_unsafe: AllowUnsafe = refuse) -> None:
        """Take a valid filter."""
        self._marks: list[tuple[Regex | None, Steps | None]] = [
            (_regex_of(mark, allow_unsafe), mark.path) for mark in marks_of(text)
        ]
        self._known: dict[TextSource, SectionMatches] = {}

    def __bool__(self) -> bool:
        return bool(self._marks)

    def of(self, section: Section) -> SectionMatches:
        if section.source not in self._known:
            if len(self._known) > FEW:
                self._known.clear()
            self._known[section.source] = SectionMatches(section, self._marks)
        return self._known[section.source]


FEW = 8
"""Maximum number of sections whose matches are kept."""


def _regex_of(mark: Mark, allow_unsafe: AllowUnsafe) -> Regex | None:
    return compile_regex(mark.pattern, allow_unsafe, ignore_case=mark.ignore_case) if mark.pattern else None


class SectionMatches:
    def __init__(self, section: Section, marks: Sequence[tuple[Regex | None, Steps | None]]) -> None:
        self._parts: list[tuple[Regex | None, int, int, int]] = []
        """Regular expression, or None for the whole value; first byte of its line; begin and end of the value."""
        for regex, path in marks:
            if path is None:
                self._parts.append((regex, 0, 0, len(section.source.text)))
            elif section.folds is not None and not section.pointer:
                outline = section.folds.outline
                self._parts += [(regex, start, *outline.value(start)) for start in outline.at(path)]
            elif [str(step) for step in path] == section.pointer.split("/")[1:]:  # A string as text.
                self._parts.append((regex, 0, 0, len(section.source.text)))

    def find(self, text: bytes, at: int = 0) -> Iterator[int]:
        """Yield the offsets of hits in a text that begins like the section's, starting at `at`."""
        hits = (self._hits(text, at, *part) for part in self._parts)
        before = -1
        for hit in merge(*hits):
            if hit != before:
                yield hit
            before = hit

    def spans(self, line: str, role: str, start: int = 0) -> list[StyledSpan]:
        """Return the hits in a line that begins at byte `start`."""
        found: list[StyledSpan] = []
        for regex, line_start, begin, end in self._parts:
            if not line_start <= start < end:
                continue
            key = _SHOWN_KEY.match(line) if start == line_start < begin else None
            first = key.end() if key else 0
            if regex is not None:
                spans = regex.text_spans(line[first:])
                found = over(found, [StyledSpan(first + a, first + b, role) for a, b in spans if b > a])
            elif start == line_start:
                found = over(found, [StyledSpan(first, len(line.removesuffix(",")), role)])
        return found

    @staticmethod
    def _hits(text: bytes, at: int, regex: Regex | None, _line: int, begin: int, end: int) -> Iterator[int]:
        if regex is None:
            if at <= begin < len(text):
                yield begin
            return
        for start, stop in regex.spans(text[:end], max(at, begin)):
            if stop > start:
                yield start


class SearchHits:
    def __init__(self, query: SearchQuery | SectionMatches, text: bytes) -> None:
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
        return len(self._known) > MOST

    def number(self, hit: int) -> int:
        """Return the number of a hit, from 1; 0 if it was not counted."""
        place = bisect_left(self._known, hit)
        return place + 1 if place < len(self._known) and self._known[place] == hit else 0

    def after(self, place: int) -> int | None:
        index = bisect_left(self._known, place)
        if index < len(self._known):
            return self._known[index]
        return next(self._query.find(self._text, place), None) if self.is_more else None

    def before(self, place: int) -> int | None:
        """Return the last hit before a position."""
        if self.is_more and place > self._known[-1]:
            *_, last = self._query.find(self._text[:place], self._known[-1])
            return last
        index = bisect_right(self._known, place - 1)
        return self._known[index - 1] if index else None


class HitPosition(NamedTuple):
    column: int
    section: int
    offset: int


class HitFinder:
    def __init__(self, query: Search, columns: Sequence[Sequence[Section]]) -> None:
        self.query = query
        self._hits = {
            (column, number): SearchHits(query.of(section), section.source.text)
            for column, sections in enumerate(columns)
            for number, section in enumerate(sections)
        }

    def after(self, position: HitPosition) -> tuple[HitPosition, bool] | None:
        """Return the first hit at or after a position, and whether the search wrapped around."""
        texts = sorted(self._hits)
        for key in (text for text in texts if text >= position[:2]):
            hit = self._hits[key].after(max(position.offset, 0) if key == position[:2] else 0)
            if hit is not None:
                return HitPosition(*key, hit), False
        for key in texts:
            hit = self._hits[key].after(0)
            if hit is not None:
                return HitPosition(*key, hit), True
        return None

    def before(self, position: HitPosition) -> tuple[HitPosition, bool] | None:
        """Return the last hit before a position, and whether the search wrapped around."""
        texts = sorted(self._hits, reverse=True)
        for key in (text for text in texts if text <= position[:2]):
            hits = self._hits[key]
            hit = hits.before(max(position.offset, 0) if key == position[:2] else hits.length)
            if hit is not None:
                return HitPosition(*key, hit), False
        for key in texts:
            hit = self._hits[key].before(self._hits[key].length)
            if hit is not None:
                return HitPosition(*key, hit), True
        return None

    def count(self, position: HitPosition | None) -> str:
        """Return the number of a hit and the total: `3/17`, `3/9,999+`."""
        total = sum(len(hits) for hits in self._hits.values())
        more = "+" if any(hits.is_more for hits in self._hits.values()) else ""
        number = 0
        if position is not None:
            number = self._hits[position[:2]].number(position.offset)
            if number:
                number += sum(len(hits) for key, hits in self._hits.items() if key < position[:2])
        return f"{f'{number:,}' if number else '?' if position else '0'}/{total:,}{more}"


class SearchState:
    def __init__(self, query: Search | None = None) -> None:
        self.query = query
        self._finder: HitFinder | None = None
        self._position: HitPosition | None = None

    def forget(self) -> None:
        """Forget the hits, because another text is shown."""
        self._finder = self._position = None

    def renew(self, columns: Sequence[Sequence[Section]]) -> None:
        """Find the hits again in a text that was shown again. The current hit does not change."""
        position = self._position
        self.forget()
        if self.query is not None and position is not None:
            self._finder = HitFinder(self.query, columns)
            found = self._finder.after(position)
            self._position = found[0] if found else None

    def go(
        self,
        step: int,
        here: HitPosition,
        line_of: Callable[[HitPosition], HitPosition],
        columns: Sequence[Sequence[Section]],
    ) -> tuple[HitPosition, bool] | None:
        """Return the next or previous hit, and whether the search wrapped around."""
        if self.query is None:
            return None
        self._finder = self._finder or HitFinder(self.query, columns)
        if self._position is not None and line_of(self._position) == here:
            here = self._position._replace(offset=self._position.offset + (step > 0))
        found = self._finder.after(here) if step > 0 else self._finder.before(here)
        self._position = found[0] if found else None
        return found

    def words(self) -> list[Piece]:
        if self.query is None:
            return []
        counted = f" {self._finder.count(self._position)}" if self._finder else ""
        if isinstance(self.query, FilterSearch) and self._position is None:
            return []  # Rows may match without a match in their text.
        return [(f"{sanitize(self.query.words)}{counted}", "open")]


Search: TypeAlias = SearchQuery | FilterSearch


class SearchBox(Input):
    DEFAULT_CSS = """
    SearchBox { display: none; height: 1; border: none; padding: 0 1; background: $surface; }
    SearchBox:focus { border: none; }
    SearchBox.-open { display: block; }
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,tab,shift+tab", "close", "close search", show=False, id="search.close"),
    ]

    HELP_NAME = "search"

    class Closed(Message):
        """The input was closed without a search."""

    def __init__(self, *, id: str | None = None) -> None:  # noqa: A002
        super().__init__(id=id, compact=True, placeholder="text or /regex/ (a capital letter matches case)")

    def open(self) -> None:
        """Open the input with the last query selected."""
        self.add_class("-open")
        self.focus()
        self.select_all()

    def action_close(self) -> None:
        self.post_message(self.Closed())
