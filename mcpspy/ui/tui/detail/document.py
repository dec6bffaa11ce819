"""The input of the detail pane: documents of parts, their sections, and formatted JSON.

The structure of JSON (folds, JSON Pointers, values) follows from the indentation, which is searched outwards from a
line, with cached results: nothing is parsed. Keys and numbers stay as they were on the wire. Lines are coloured one at a
time, including truncated lines.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import count
from typing import NamedTuple, Protocol

import orjson
from msgspec.json import format as lay_out

from mcpspy.analysis.rows import size
from mcpspy.core.counted import counted
from mcpspy.core.jsontools import string
from mcpspy.core.redact.placeholder import TEXT_PLACEHOLDER
from mcpspy.core.sanitize import sanitize
from mcpspy.ui.model.body import BodyLines
from mcpspy.ui.tui.widgets.columns import Piece

STEP = 2
"""Spaces per level of indentation."""

NEAR = 1 << 12
"""Initial distance in bytes of a backward search."""


class Outline:
    """Containers and their items. Lines are identified by the offset at which they begin."""

    def __init__(self, body: BodyLines) -> None:
        self.body = body
        self._text = body.text
        self._parents: dict[int, tuple[int, int]] = {}
        """Indent of the items → start of a container, and the offset up to which it is known to extend."""
        self._counted: dict[int, tuple[int, int, int]] = {}
        """Indent → a container, one of its items, and the number of that item."""

    def indent(self, start: int) -> int:
        return next(n for n in count() if self._text[start + n : start + n + 1] != b" ")

    def opens(self, start: int) -> bool:
        """Return whether a line opens a container: no other line ends in an opening bracket."""
        end = self._text.find(b"\n", start)
        return end >= 0 and self._text[end - 1] in b"{["

    def closes(self, start: int) -> bool:
        return self._text[start + self.indent(start)] in b"}]"

    def close(self, start: int) -> int:
        """Return the start of the line that closes the container opened here."""
        if start == 0:
            return len(self._text) - 1
        end = self._text.find(b"\n", start)
        bracket = b"}" if self._text[end - 1 : end] == b"{" else b"]"
        return self._text.find(b"\n" + b" " * self.indent(start) + bracket, end) + 1

    def opener(self, start: int) -> int:
        """Return the line that opens the container closed by this line."""
        indent = self.indent(start)
        return self._around(start, indent + STEP) if indent else 0

    def parent(self, start: int) -> int | None:
        """Return the line that opens the container around a line."""
        indent = self.indent(start)
        if indent <= STEP:
            return 0 if indent else None
        return self._around(start, indent)

    def index(self, start: int, parent: int) -> int:
        """Return the number of the item that begins at a line."""
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
        """Return the number of items of the container with these first and last lines."""
        return self._items(start, end, self.indent(start) + STEP) + 1

    def at(self, path: Iterable[str | int | None]) -> list[int]:
        """Return the lines where the values at a path begin; None means every item."""
        found = [0]
        for step in path:
            found = [inner for start in found if self.opens(start) for inner in self._inner(start, step)]
        return found

    def nearest(self, tokens: Iterable[str]) -> int:
        """Return the line of the value at a JSON pointer, or of the innermost value around it.

        In a list, a token other than an index is the `name` of an item, as in the pointers of a diff.
        """
        path: list[str | int | None] = []
        found = 0
        for token in tokens:
            is_list = self.opens(found) and self._text[self._text.find(b"\n", found) - 1] == ord("[")
            step = self._item(path, token) if is_list else token
            below = self.at([*path, step])
            if step is None or not below:
                break
            path, found = [*path, step], below[0]
        return found

    def _item(self, path: list[str | int | None], token: str) -> int | None:
        """Return the number of an item by its number or its name."""
        if token.isdecimal():
            return int(token)
        names = (self.value(start) for start in self.at([*path, None, "name"]))
        wanted = orjson.dumps(token)
        texts = (self._text[begin:end].removesuffix(b",") for begin, end in names)
        return next((number for number, text in enumerate(texts) if text == wanted), None)

    def value(self, start: int) -> tuple[int, int]:
        """Return begin and end of the value that begins in this line, without its key."""
        begin = key.end() if (key := _KEY.match(self._text, start)) else start + self.indent(start)
        if self.opens(start):
            return begin, self.close(start) + self.indent(start) + 1
        end = self._text.find(b"\n", begin)
        return begin, end if end >= 0 else len(self._text)

    def _inner(self, start: int, step: str | int | None) -> list[int]:
        line, end = b"\n" + b" " * (self.indent(start) + STEP), self.close(start)
        name = orjson.dumps(step) + b": " if isinstance(step, str) else b""
        found, at = list[int](), start
        while (at := self._text.find(line + name, at, end) + 1) and len(found) < MOST:
            if name or self._text[at + len(line) - 1] not in b" }]":
                found.append(at)
        return found[step:][:1] if isinstance(step, int) else found

    def _around(self, start: int, indent: int) -> int:
        """Return the opening line of the container around or closed by a line; its items have this indent."""
        known, until = self._parents.get(indent, (start, 0))
        if known >= start or (start > until and self._left(until, start, indent - STEP)):
            known, until = self._back(start, indent - STEP), start
        self._parents[indent] = known, max(start, until)
        return known

    def _items(self, start: int, end: int, indent: int) -> int:
        """Return the number of items of this indent between two lines, not counting the first of the container."""
        line = b",\n" + b" " * indent
        start, end = max(start - 1, 0), end + indent
        deeper = self._text.count(line + b" ", start, end)
        return self._text.count(line, start, end) - deeper

    def _left(self, start: int, end: int, indent: int) -> bool:
        """Return whether a container of this indent closes between two lines."""
        line = b"\n" + b" " * indent
        return any(self._text.find(line + bracket, max(start - 1, 0), end) >= 0 for bracket in (b"}", b"]"))

    def _back(self, start: int, indent: int) -> int:
        """Return the previous line of this indent."""
        line, distance = b"\n" + b" " * indent, NEAR
        while True:
            low = max(start - distance, 0)
            found = max(self._text.rfind(line + first, low, start) for first in (b'"', b"{", b"["))
            if found >= 0 or low == 0:
                return found + 1
            distance *= 4


COUNTED = 8_000_000
"""Maximum bytes of a container whose items are counted; a larger one shows its size."""

MOST = 10_000
"""Maximum number of folds created at once."""


class Folds:
    def __init__(self, body: BodyLines) -> None:
        self.body = body
        self.outline = Outline(body)
        self._folds: dict[int, tuple[int, str]] = {}

    def __contains__(self, line: int) -> bool:
        return line in self._folds

    def opens(self, line: int) -> bool:
        return self.body.is_json and self.outline.opens(self.body.start(line))

    def container(self, line: int) -> int | None:
        """Return the line to fold at: the line itself, its opening line, or its parent."""
        if not self.body.is_json:
            return None
        start = self.body.start(line)
        if self.outline.opens(start):
            return line
        outer = self.outline.opener(start) if self.outline.closes(start) else self.outline.parent(start)
        return None if outer is None else self.body.line_at(outer)

    def around(self, line: int) -> int | None:
        """Return the line that opens the container around a line."""
        outer = self.outline.parent(self.body.start(line)) if self.body.is_json else None
        return None if outer is None else self.body.line_at(outer)

    def fold(self, line: int) -> None:
        start = self.body.start(line)
        end = self.outline.close(start)
        opened, closed = self.body.end(line), end + self.outline.indent(start)
        if closed - opened <= COUNTED:
            many = self.outline.members(start, end)
            kind = "member" if self.body.text[closed : closed + 1] == b"}" else "item"
            label = counted(many, kind)
        else:
            label = f"{size(closed - opened)} bytes"
        tail = self.body.text[closed : closed + 2].decode().rstrip("\n")
        self._folds[line] = self.body.line_at(end), f" … {label} {tail}"

    def unfold(self, line: int) -> None:
        """Unfold one line; folds inside it stay."""
        self._folds.pop(line, None)

    def fold_all(self) -> None:
        self._folds.clear()
        if not (self.body.is_json and self.opens(0)):
            return
        text, close, at = self.body.text, self.outline.close(0), 0
        while (at := text.find(b"\n", at) + 1) < close and len(self._folds) < MOST:
            if self.outline.indent(at) == STEP and self.outline.opens(at):
                line = self.body.line_at(at)
                self.fold(line)
                at = self.body.start(self._folds[line][0])

    def unfold_all(self) -> None:
        self._folds.clear()

    def hidden(self) -> list[tuple[int, int]]:
        """Return the outermost folds: the visible line and the last hidden line of each."""
        found: list[tuple[int, int]] = []
        for line in sorted(self._folds):
            if not found or line > found[-1][1]:
                found.append((line, self._folds[line][0]))
        return found

    def reveal(self, line: int) -> bool:
        """Unfold all folds that hide a line; return whether there were any."""
        over = [first for first, (last, _) in self._folds.items() if first < line <= last]
        for first in over:
            del self._folds[first]
        return bool(over)

    def shown(self, line: int) -> int:
        """Return the visible line for a line: itself, or the fold it is in."""
        return min((first for first, (last, _) in self._folds.items() if first < line <= last), default=line)

    def words(self, line: int) -> str:
        return self._folds[line][1]


_KEY = re.compile(rb' *("(?:[^"\\]|\\.)*"): ')


def pointer(outline: Outline, line: int) -> str:
    """Return the JSON Pointer of the value that a line shows or closes: `/params/arguments/q`."""
    parts: list[str] = []
    start = value_start(outline, line)
    while (parent := outline.parent(start)) is not None:
        parts.append(_name(outline, start, parent))
        start = parent
    return "".join(f"/{part}" for part in reversed(parts))


def value(outline: Outline, line: int) -> bytes:
    """Return the value that a line shows, with the tokens of the wire and without whitespace between them."""
    text = outline.body.text
    start = value_start(outline, line)
    begin, end = outline.value(start)
    return lay_out(text[begin:end], indent=-1) if outline.opens(start) else text[begin:end].removesuffix(b",")


def sanitize_lines(text: str) -> str:
    """Sanitize a text except for newlines and tabs: a shell might execute control characters."""
    return "\n".join("\t".join(map(sanitize, line.split("\t"))) for line in text.split("\n"))


def value_start(outline: Outline, line: int) -> int:
    """Return the first line of the value that begins or ends at this line."""
    start = outline.body.start(line)
    return outline.opener(start) if outline.closes(start) else start


def _name(outline: Outline, start: int, parent: int) -> str:
    if key := _KEY.match(outline.body.text, start):
        return sanitize((string(key.group(1)) or "").replace("~", "~0").replace("/", "~1"))
    return str(outline.index(start, parent))


KEY, STRING, NUMBER, WORD, REDACTED = "key", "string", "number", "word", "redacted"

_TOKEN = re.compile(
    r"""(?P<string>"(?:[^"\\]|\\.)*(?:"|\\?$))(?P<colon>\s*:)?"""
    r"""|(?P<number>-?\d[\d.eE+-]*)"""
    r"""|(?P<word>true|false|null)"""
)


class StyledSpan(NamedTuple):
    start: int
    end: int
    role: str


def spans(line: str) -> list[StyledSpan]:
    """Return the coloured spans of a line, from left to right."""
    found = []
    for token in _TOKEN.finditer(line):
        kind = token.lastgroup or ""
        if kind == "colon":
            found.append(StyledSpan(token.start("string"), token.end("string"), KEY))
        elif kind == "string":
            found.append(StyledSpan(*token.span("string"), STRING))
        else:
            found.append(StyledSpan(*token.span(), kind))
    return found


def redacted(line: str, found: list[StyledSpan]) -> list[StyledSpan]:
    """Return the spans of a line with redaction placeholders on top, as no peer sent those."""
    if "[redacted:" not in line:
        return found
    return over(found, [StyledSpan(*match.span(), REDACTED) for match in TEXT_PLACEHOLDER.finditer(line)])


def pieces(line: str, start: int, end: int, found: list[StyledSpan]) -> list[tuple[str, str | None]]:
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


def over(found: list[StyledSpan], above: list[StyledSpan]) -> list[StyledSpan]:
    """Return both, the second covering the first where they overlap."""
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


class DocumentPart(NamedTuple):
    name: str
    """`request`, `response`, `message`, `note`, or `sent`: the message forwarded instead of the previous part."""
    head: Sequence[Piece]
    data: bytes
    marks: Sequence[tuple[str, str]] = ()
    """JSON pointer and role of each value that is marked in the formatted view."""


class Document(NamedTuple):
    parts: Sequence[DocumentPart]
    """One part, or a request and its response, each followed by the message forwarded instead of it."""
    headers: Sequence[Piece] = ()
    """Lines of HTTP headers; empty on stdio."""


class TextSource(Protocol):
    """Sanitized lines of a text, with their offsets in it."""

    @property
    def text(self) -> bytes: ...

    def __len__(self) -> int: ...

    def __getitem__(self, line: int) -> str: ...

    def start(self, line: int) -> int: ...

    def line_at(self, offset: int) -> int: ...

    def spans(self, line: int, shown: str) -> list[StyledSpan]: ...

    def wider_than(self, columns: int, most: int = ...) -> list[int]:
        """Return the lines that may take more than `columns`, at most `most` of them."""

    def fitted(self, width: int, most: int) -> TextSource:
        """Return lines for a width; if possible, no more than `most` of them need measuring."""


class Section(NamedTuple):
    """A text with header lines."""

    head: Sequence[Piece]
    source: TextSource
    folds: Folds | None = None
    """None if the text is not JSON."""
    pointer: str = ""
    is_nested: bool = False
    """True if the text comes from a string that holds JSON."""
    marks: Mapping[int, str] = {}
    """Marked line → role."""
