"""A message's body as lines to read.

Owns the layout of JSON without decoding it: duplicate keys, `1.0`, `1E5` and
thirty-digit integers stay as they were on the wire. What is no JSON is shown as
the text it is. A line is made inert when it is asked for, so a body of 5 MB
costs no more than what is looked at.
"""

from __future__ import annotations

import re
from array import array
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from typing import overload

from msgspec import DecodeError
from msgspec.json import format as lay_out

from mcpspy.ui.inert import inert, inert_bytes

WIDE = 4000
"""Characters of a line that are shown; the rest is counted."""


class Body(Sequence[str]):
    """The lines of a body, indented by two; each is inert."""

    def __init__(self, data: bytes) -> None:
        self.is_json = True
        """Whether it could be laid out."""
        try:
            self._text = lay_out(data, indent=2)
        except (DecodeError, RecursionError):
            self.is_json, self._text = False, data
        self._starts = array("Q", (0,))
        self._starts.extend(match.end() for match in re.finditer(rb"\n", self._text))

    def __len__(self) -> int:
        return len(self._starts)

    @overload
    def __getitem__(self, index: int) -> str: ...

    @overload
    def __getitem__(self, index: slice) -> list[str]: ...

    def __getitem__(self, index: int | slice) -> str | list[str]:
        """Return one line; negative indexes and slices work as in a list."""
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(len(self)))]
        if index < 0:
            index += len(self)
        if not 0 <= index < len(self):
            raise IndexError(index)
        start = self._starts[index]
        end = self._starts[index + 1] - 1 if index + 1 < len(self) else len(self._text)
        return _short(self._text[start:end])

    def __iter__(self) -> Iterator[str]:
        return map(_short, self._text.split(b"\n"))

    def wider_than(self, columns: int) -> list[int]:
        """Return the lines that may take more than so many columns; no other does."""
        text = self._text
        found = {
            self._line_at(match.start() + 1) for match in re.finditer(rb"\n[^\n]{%d}" % (columns + 1), text)
        }
        if re.match(rb"[^\n]{%d}" % (columns + 1), text):
            found.add(0)
        if not (self.is_json and text.isascii() and b"\x7f" not in text):
            found.update(
                self._line_at(match.start()) for match in re.finditer(self._growing() + rb"[^\n]*", text)
            )
        return sorted(found)

    def _line_at(self, offset: int) -> int:
        return bisect_right(self._starts, offset) - 1

    def _growing(self) -> bytes:
        r"""Return a pattern for bytes that may begin what is shown by more columns than it has bytes: `\x1b`."""
        try:
            self._text.decode()
        except UnicodeDecodeError:
            return rb"[\x00-\x09\x0b-\x1f\x7f-\xff]"
        return rb"[\x00-\x09\x0b-\x1f\x7f\xc2\xcd\xd8\xe1\xe2\xe3\xef\xf3]"


def pretty(data: bytes) -> list[str]:
    """Return all lines of a body."""
    return list(Body(data))


def _short(line: bytes) -> str:
    if len(line) <= WIDE:
        return inert_bytes(line)
    text = line.decode("utf-8", "backslashreplace")
    if len(text) > WIDE:
        return inert(text[:WIDE]) + f"… {len(text) - WIDE} more characters"
    return inert(text)
