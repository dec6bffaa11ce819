"""Parser of TOML 1.0.0 into a tree of spans.

It finds the positions of tables, keys and values; `tomllib` validates the document and decodes strings. A table
that is defined in several places becomes one object with all members, each with its own position; `[[…]]` tables
become the items of one array.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from mcpspy.core.hostconfig.tree import ArrayItem, Member, Node, NodeKind
from mcpspy.errors import UsageError

_BLANK = re.compile(r"(?:[ \t\r\n]+|#[^\r\n]*)*")
_STRING = re.compile(
    r'"""(?:[^"\\]|\\[\s\S]|"{1,2}(?!"))*"{3,5}|' + r"'''(?:[^']|'{1,2}(?!'))*'{3,5}"
    r'|"(?:[^"\\\r\n]|\\.)*"' + r"|'[^'\r\n]*'"
)
_BARE = re.compile(r"[A-Za-z0-9_-]+")
_WORD = re.compile(r"[^\s,\]}#]+(?: [0-9][0-9:.+Z-]*)?")
"""A number, a boolean, or a date with an optional blank before its time."""


def read(text: str) -> Node:
    """Return the document as one object; raise UsageError with the position of the error."""
    bom = text.startswith("\ufeff")
    try:
        tomllib.loads(text[bom:])
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise UsageError(f"not TOML: {error}") from None
    return _Reader(text, int(bom)).document()


@dataclass(slots=True)
class _Table:
    members: list[Member | _Sub | _Rows] = field(default_factory=list)

    def sub(self, key: str) -> _Sub:
        for member in self.members:
            if isinstance(member, _Sub) and member.key == key:
                return member
            if isinstance(member, _Rows) and member.key == key:
                return member.rows[-1]
        sub = _Sub(key)
        self.members.append(sub)
        return sub

    def row(self, key: str) -> _Sub:
        """Append a table to the array under this key and return it."""
        rows = next((m for m in self.members if isinstance(m, _Rows) and m.key == key), None)
        if rows is None:
            self.members.append(rows := _Rows(key))
        rows.rows.append(row := _Sub(key))
        return row

    def node(self, start: int, end: int) -> Node:
        members = [m if isinstance(m, Member) else m.member() for m in self.members]
        return Node(NodeKind.OBJECT, start, end, members=tuple(members), block=True)


@dataclass(slots=True)
class _Sub:
    """A member that is a table, with or without a header."""

    key: str
    start: int = -1
    end: int = -1
    prefix: str = ""
    table: _Table = field(default_factory=_Table)

    def member(self) -> Member:
        node = self.table.node(self.start, self.end)
        return Member(self.key, self.start, node, self.prefix, is_table=self.start >= 0)


@dataclass(slots=True)
class _Rows:
    """A member that is an array of tables, each under its own header."""

    key: str
    rows: list[_Sub] = field(default_factory=list)

    def member(self) -> Member:
        first, last = self.rows[0], self.rows[-1]
        items = tuple(ArrayItem(row.start, row.member().node) for row in self.rows)
        node = Node(NodeKind.ARRAY, first.start, last.end, items=items, block=True)
        return Member(self.key, first.start, node, first.prefix, is_table=True)


class _Reader:
    def __init__(self, text: str, position: int) -> None:
        self.text = text
        self.position = position
        self.root = _Table()

    def document(self) -> Node:
        table: _Table = self.root
        header: _Sub | None = None
        begin = self.position
        self.skip()
        while self.position < len(self.text):
            if self.peek() == "[":
                start = self.position
                marks = "[[" if self.text.startswith("[[", start) else "["
                self.position += len(marks)
                (*path, last), prefix = self.keys()
                self.expect("]" * len(marks))
                table = self.root
                for key in path:
                    table = table.sub(key).table
                header = table.row(last) if marks == "[[" else table.sub(last)
                table = header.table
                header.start, header.end, header.prefix = start, self.position, prefix
            else:
                end = self.assignment(table)
                if header is not None:
                    header.end = end
            self.skip()
        return self.root.node(begin, len(self.text))

    def assignment(self, table: _Table) -> int:
        """Read `a.b = value` into the table; return the offset of the end of the value."""
        start = self.position
        path, prefix = self.keys()
        self.expect("=")
        self.skip()
        value = self.value()
        for key in path[:-1]:
            table = table.sub(key).table
        table.members.append(Member(path[-1], start, value, prefix))
        return value.end

    def keys(self) -> tuple[list[str], str]:
        """Read a dotted key; return its parts, and the source text before the last part."""
        start = last = self.skip()
        path = []
        while True:
            last = self.position
            found = _STRING.match(self.text, last) or _BARE.match(self.text, last)
            assert found is not None
            path.append(_decoded(found[0]) if found[0][0] in "\"'" else found[0])
            self.position = found.end()
            self.skip()
            if self.peek() != ".":
                return path, self.text[start:last]
            self.position += 1
            self.skip()

    def value(self) -> Node:
        start = self.position
        if self.peek() == "[":
            items: list[ArrayItem] = []
            self.several("]", lambda: items.append(ArrayItem(self.position, self.value())))
            return Node(NodeKind.ARRAY, start, self.position, items=tuple(items))
        if self.peek() == "{":
            table = _Table()
            self.several("}", lambda: self.assignment(table))
            return replace(table.node(start, self.position), block=False)
        if found := _STRING.match(self.text, start):
            self.position = found.end()
            return Node(NodeKind.STRING, start, found.end(), _decoded(found[0]))
        word = _WORD.match(self.text, start)
        assert word is not None
        self.position = word.end()
        return Node(NodeKind.OTHER, start, word.end(), word[0])

    def several(self, closing: str, read: Callable[[], object]) -> None:
        """Read comma-separated elements up to the closing bracket."""
        self.position += 1
        self.skip()
        while self.peek() != closing:
            read()
            self.skip()
            if self.peek() == ",":
                self.position += 1
                self.skip()
        self.position += 1

    def peek(self) -> str:
        return self.text[self.position : self.position + 1]

    def skip(self) -> int:
        found = _BLANK.match(self.text, self.position)
        assert found is not None
        self.position = found.end()
        return self.position

    def expect(self, mark: str) -> None:
        self.skip()
        assert self.text.startswith(mark, self.position)
        self.position += len(mark)


def _decoded(literal: str) -> str:
    value: str = tomllib.loads(f"it = {literal}")["it"]
    return value
