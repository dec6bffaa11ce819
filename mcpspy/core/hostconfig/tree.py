"""Tree of spans for a document in any syntax, and changes to its text by offsets.

Documents are never written from the tree, so unchanged parts keep their bytes.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum, auto
from typing import NamedTuple

_UNSAFE = re.compile("[\x7f-\x9f\u2028\u2029\ud800-\udfff\ufeff]")
"""Characters that JSON, TOML or YAML does not accept. A lone surrogate can only come from JSON."""


class NodeKind(StrEnum):
    OBJECT = auto()
    ARRAY = auto()
    STRING = auto()
    OTHER = auto()


@dataclass(frozen=True, slots=True)
class Node:
    """A value and its span."""

    kind: NodeKind
    start: int
    """Offset of the first character; -1 for a value without a position (an implicit TOML table)."""
    end: int
    """Offset after the last character, before any blanks and comments."""
    text: str = ""
    """Value of a string; source text of a number, boolean or null."""
    members: tuple[Member, ...] = ()
    """Members of an object, in order, duplicates included."""
    items: tuple[ArrayItem, ...] = ()
    block: bool = False

    def get(self, *keys: str) -> Node | None:
        """Return the value under these keys; the last of duplicates, as hosts do."""
        node: Node | None = self
        for key in keys:
            member = node.member(key) if node is not None else None
            node = member.node if member is not None else None
        return node

    def member(self, key: str) -> Member | None:
        return next((member for member in reversed(self.members) if member.key == key), None)

    @property
    def strings(self) -> list[str]:
        return [item.node.text for item in self.items]


class Member(NamedTuple):
    key: str
    start: int
    """Offset of the key, or of the `[` of a TOML table."""
    node: Node
    prefix: str = ""
    """Source text of a dotted key before its last part."""
    is_table: bool = False


class ArrayItem(NamedTuple):
    start: int
    """Offset of the value, or of the dash before it."""
    node: Node


class TextEdit(NamedTuple):
    """A replacement of the text between two offsets."""

    start: int
    end: int
    text: str


def spliced(text: str, splices: Iterable[TextEdit]) -> str:
    """Apply changes, which must not overlap, to the text; insertions at one offset keep their order."""
    parts = []
    position = 0
    for start, end, new in sorted(splices, key=lambda splice: (splice.start, splice.end)):
        if start < position:
            raise ValueError("changes overlap")
        parts += [text[position:start], new]
        position = end
    return "".join([*parts, text[position:]])


def plain(node: Node) -> object:
    """Return the value without positions, for comparison."""
    if node.kind is NodeKind.OBJECT:
        return {member.key: plain(member.node) for member in node.members}
    if node.kind is NodeKind.ARRAY:
        return [plain(item.node) for item in node.items]
    return node.kind, node.text


def quoted(text: str) -> str:
    """Return a string literal that is valid in JSON, TOML and YAML."""
    return _UNSAFE.sub(lambda found: f"\\u{ord(found[0]):04x}", json.dumps(text, ensure_ascii=False))


def line_indent(text: str, position: int) -> str | None:
    """Return the blanks before a position; None if something else precedes it on its line."""
    before = text[text.rfind("\n", 0, position) + 1 : position]
    return before if not before.strip(" \t") else None


def eol(text: str) -> str:
    return "\r\n" if "\r\n" in text else "\n"


def where(text: str, position: int) -> str:
    before = text[:position]
    return f"line {before.count(chr(10)) + 1}, column {position - before.rfind(chr(10))}"
