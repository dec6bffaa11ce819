"""The structure of laid-out JSON, read off its indentation.

Owns which lines open and close a container, what they are inside of, and which
of its items they are. Nothing is parsed: what is asked is looked for from where
it is asked, and what was found near by is remembered.
"""

from __future__ import annotations

from itertools import count

from mcpspy.ui.body import Body

STEP = 2
"""Blanks that each level is indented by."""

NEAR = 1 << 12
"""Bytes that are looked through first, on the way back."""


class Outline:
    """Containers and their items. A place is the offset at which a line begins."""

    def __init__(self, body: Body) -> None:
        self.body = body
        self._text = body.text
        self._parents: dict[int, tuple[int, int]] = {}
        """By the indent of its items: where a container begins, and how far it is known to go."""
        self._counted: dict[int, tuple[int, int, int]] = {}
        """By indent: a container, one of its items, and which one that is."""

    def indent(self, start: int) -> int:
        """Return how many blanks a line begins with."""
        return next(n for n in count() if self._text[start + n : start + n + 1] != b" ")

    def opens(self, start: int) -> bool:
        """Whether more lines belong to this one: only what opens a container ends in a bracket."""
        end = self._text.find(b"\n", start)
        return end >= 0 and self._text[end - 1] in b"{["

    def closes(self, start: int) -> bool:
        """Whether this line only ends a container."""
        return self._text[start + self.indent(start)] in b"}]"

    def close(self, start: int) -> int:
        """Return where the line begins that ends the container which this line opens."""
        if start == 0:
            return len(self._text) - 1
        end = self._text.find(b"\n", start)
        bracket = b"}" if self._text[end - 1 : end] == b"{" else b"]"
        return self._text.find(b"\n" + b" " * self.indent(start) + bracket, end) + 1

    def opener(self, start: int) -> int:
        """Return the line that opened what this line ends."""
        indent = self.indent(start)
        return self._around(start, indent + STEP) if indent else 0

    def parent(self, start: int) -> int | None:
        """Return the line that opens the container around a line."""
        indent = self.indent(start)
        if indent <= STEP:
            return 0 if indent else None
        return self._around(start, indent)

    def index(self, start: int, parent: int) -> int:
        """Return which item of its container begins at a line."""
        indent = self.indent(start)
        container, item, number = self._counted.get(indent, (-1, -1, 0))
        if container != parent:
            item, number = parent, 0
        if start >= item:
            number += self._items(item, start, indent)
        else:
            number -= self._items(start, item, indent)
        self._counted[indent] = parent, start, number
        return number

    def members(self, start: int, end: int) -> int:
        """Return how many items the container has whose first and last lines begin there."""
        return self._items(start, end, self.indent(start) + STEP) + 1

    def _around(self, start: int, indent: int) -> int:
        """Return what opens the container whose items have this indent, and that a line is in or ends."""
        known, until = self._parents.get(indent, (start, 0))
        if known >= start or (start > until and self._left(until, start, indent - STEP)):
            known, until = self._back(start, indent - STEP), start
        self._parents[indent] = known, max(start, until)
        return known

    def _items(self, start: int, end: int, indent: int) -> int:
        """Return how many items of this indent begin between two lines, the first of the container aside."""
        line = b",\n" + b" " * indent
        start, end = max(start - 1, 0), end + indent
        deeper = self._text.count(line + b" ", start, end)
        return self._text.count(line, start, end) - deeper

    def _left(self, start: int, end: int, indent: int) -> bool:
        """Whether a container of this indent ends at a line, or from there to another."""
        line = b"\n" + b" " * indent
        return any(self._text.find(line + bracket, max(start - 1, 0), end) >= 0 for bracket in (b"}", b"]"))

    def _back(self, start: int, indent: int) -> int:
        """Return the line of this indent that comes before another."""
        line, reach = b"\n" + b" " * indent, NEAR
        while True:
            low = max(start - reach, 0)
            found = max(self._text.rfind(line + first, low, start) for first in (b'"', b"{", b"["))
            if found >= 0 or low == 0:
                return found + 1
            reach *= 4
