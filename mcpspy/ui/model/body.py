"""A message's body as indented lines, without decoding: duplicate keys, `1.0`, `1E5` and thirty-digit
integers are kept.

Bodies that are not JSON are shown as text. Newlines are counted in blocks and lines are sanitized on access,
so a body of 20 MB takes little more time than its visible lines.
"""

from __future__ import annotations

import re
import sys
from array import array
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import islice
from typing import overload

from msgspec import DecodeError
from msgspec.json import format as lay_out

from mcpspy.core.sanitize import sanitize, sanitize_bytes

WIDE = 4000
"""Maximum characters shown of a line; the rest is counted."""

BLOCK = 1 << 15

_PLAIN = bytes(range(0x20, 0x7F)) + b"\n"

GROWTH = 4


class BodyLines(Sequence[str]):
    """The lines of a body, indented by two and sanitized."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.is_json = True
        """False if it is shown as text."""
        try:
            self.text = lay_out(data, indent=2)
        except (DecodeError, RecursionError):
            self.is_json, self.text = False, data
        text, total = self.text, 0
        self._before = array("Q", (0,))
        for at in range(0, len(text), BLOCK):
            total += text.count(b"\n", at, at + BLOCK)
            self._before.append(total)
        self._newlines = lru_cache(maxsize=16)(self._newlines_of)

    def __len__(self) -> int:
        return self._before[-1] + 1

    @overload
    def __getitem__(self, index: int) -> str: ...

    @overload
    def __getitem__(self, index: slice) -> list[str]: ...

    def __getitem__(self, index: int | slice) -> str | list[str]:
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(len(self)))]
        if index < 0:
            index += len(self)
        if not 0 <= index < len(self):
            raise IndexError(index)
        return short(self.text[self.start(index) : self.end(index)])

    def __iter__(self) -> Iterator[str]:
        return map(short, self.text.split(b"\n"))

    def start(self, line: int) -> int:
        if line == 0:
            return 0
        block = bisect_left(self._before, line) - 1
        return self._newlines(block)[line - self._before[block] - 1] + 1

    def end(self, line: int) -> int:
        end = self.text.find(b"\n", self.start(line))
        return len(self.text) if end < 0 else end

    def line_at(self, offset: int) -> int:
        block = min(offset // BLOCK, len(self._before) - 1)
        return self._before[block] + self.text.count(b"\n", block * BLOCK, offset)

    def wider_than(self, columns: int, most: int = sys.maxsize) -> list[int]:
        """Return the lines that may need more columns; at least `most` of them, if there are more."""
        text = self.text
        long = re.finditer(rb"\n[^\n]{%d}" % (columns + 1), text)
        found = {self.line_at(match.start() + 1) for match in islice(long, most)}
        if re.match(rb"[^\n]{%d}" % (columns + 1), text):
            found.add(0)
        if len(found) < most and not (self.is_json and text.isascii() and b"\x7f" not in text):
            found.update(islice(self._grown(columns), most))
        return sorted(found)

    def _newlines_of(self, block: int) -> list[int]:
        start = block * BLOCK
        return [match.start() for match in re.compile(b"\n").finditer(self.text, start, start + BLOCK)]

    def _grown(self, columns: int) -> Iterator[int]:
        """Yield lines with fewer bytes than columns that may still be too wide because of escapes."""
        text, growing, at = self.text, growing_in(self.text), 0
        while (match := growing.search(text, at)) is not None:
            start, end = text.rfind(b"\n", 0, match.start()) + 1, text.find(b"\n", match.start())
            at = len(text) if end < 0 else end
            if (at - start) * GROWTH > columns:
                yield self.line_at(start)


def is_plain(text: bytes) -> bool:
    return text.isascii() and not text.translate(None, _PLAIN)


def growing_in(text: bytes) -> re.Pattern[bytes]:
    r"""Return a pattern for bytes that may take more columns than bytes: `\x1b`."""
    try:
        text.decode()
    except UnicodeDecodeError:
        return re.compile(rb"[\x00-\x09\x0b-\x1f\x7f-\xff]")
    return re.compile(
        rb"[\x00-\x09\x0b-\x1f\x7f\xc2\xcd\xd8\xe1\xe2\xe3\xef\xf3]|\xf0\x9b\xb2[\xa0-\xa3]|\xf0\x9d\x85[\xb3-\xba]"
    )


def pretty(data: bytes) -> list[str]:
    return list(BodyLines(data))


def short(line: bytes) -> str:
    if len(line) <= WIDE:
        return sanitize_bytes(line)
    if line.isascii():
        return sanitize(line[:WIDE].decode()) + f"… {len(line) - WIDE} more characters"
    text = line.decode("utf-8", "backslashreplace")
    if len(text) > WIDE:
        return sanitize(text[:WIDE]) + f"… {len(text) - WIDE} more characters"
    return sanitize(text)
