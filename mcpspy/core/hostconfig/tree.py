"""A document as spans of its text, whatever its syntax.

Owns the tree that the readers of JSON, TOML and YAML return, and changes to
the text by offsets. Refuses to print a document: what is not changed keeps its
bytes, because nobody writes it again.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum, auto
from typing import NamedTuple


class NodeKind(StrEnum):
    """What a value is, as far as it matters here."""

    OBJECT = auto()
    ARRAY = auto()
    STRING = auto()
    OTHER = auto()


@dataclass(frozen=True, slots=True)
class Node:
    """A value, and where it stands."""

    kind: NodeKind
    start: int
    """Offset of its first character; -1 if it has no place of its own (a TOML table named in passing)."""
    end: int
    """Offset after its last one; blanks and comments that follow do not belong to it."""
    text: str = ""
    """What a string says; the source of a number, a boolean, a null."""
    members: tuple[Member, ...] = ()
    """Of an object, in their order, duplicates included."""
    items: tuple[ArrayItem, ...] = ()
    """Of an array."""
    block: bool = False
    """Written as lines (YAML, a TOML table), not between brackets."""

    def get(self, *keys: str) -> Node | None:
        """Return what stands under these keys; of duplicates the last, as hosts read it."""
        node: Node | None = self
        for key in keys:
            member = node.member(key) if node is not None else None
            node = member.node if member is not None else None
        return node

    def member(self, key: str) -> Member | None:
        """Return a member; of duplicates the last."""
        return next((member for member in reversed(self.members) if member.key == key), None)

    @property
    def strings(self) -> list[str]:
        """The items of an array, each as a command line would have it."""
        return [item.node.text for item in self.items]


class Member(NamedTuple):
    """A key and its value."""

    key: str
    start: int
    """Offset of the key, or of the `[` of a TOML table."""
    node: Node
    prefix: str = ""
    """What of a dotted key, as it is written, stands before its last part."""
    is_table: bool = False
    """Whether it is a TOML table under a header of its own."""


class ArrayItem(NamedTuple):
    """One of an array."""

    start: int
    """Offset of the value, or of the dash before it."""
    node: Node


class TextEdit(NamedTuple):
    """Put `text` in the place of what stands between two offsets."""

    start: int
    end: int
    text: str


def spliced(text: str, splices: Iterable[TextEdit]) -> str:
    """Return the text with all changes made; they may not overlap, and of two at one place the first comes first."""
    parts = []
    position = 0
    for start, end, new in sorted(splices, key=lambda splice: (splice.start, splice.end)):
        if start < position:
            raise ValueError("changes overlap")
        parts += [text[position:start], new]
        position = end
    return "".join([*parts, text[position:]])


def plain(node: Node) -> object:
    """Return what the node says, without its places: to compare, not to use."""
    if node.kind is NodeKind.OBJECT:
        return {member.key: plain(member.node) for member in node.members}
    if node.kind is NodeKind.ARRAY:
        return [plain(item.node) for item in node.items]
    return node.kind, node.text


def quoted(text: str) -> str:
    """Return a string literal that JSON, TOML and YAML read alike."""
    return _UNSAFE.sub(lambda found: f"\\u{ord(found[0]):04x}", json.dumps(text, ensure_ascii=False))


_UNSAFE = re.compile("[\x7f-\x9f\u2028\u2029\ud800-\udfff\ufeff]")
"""What one of the three does not take as it is. A lone surrogate can come from JSON only, and goes back there."""


def line_indent(text: str, position: int) -> str | None:
    """Return the blanks before a place, None if something else stands before it in its line."""
    before = text[text.rfind("\n", 0, position) + 1 : position]
    return before if not before.strip(" \t") else None


def eol(text: str) -> str:
    """Return how the lines of a text end."""
    return "\r\n" if "\r\n" in text else "\n"


def where(text: str, position: int) -> str:
    """Return a place for people: `line 3, column 7`."""
    before = text[:position]
    return f"line {before.count(chr(10)) + 1}, column {position - before.rfind(chr(10))}"
