"""Parser of JSON with comments and trailing commas into a tree of spans.

It accepts RFC 8259 with `//` and `/* */` comments and a comma before a closing bracket, so that one parser is enough for
all hosts; `extensions` finds what strict hosts refuse. It raises UsageError with the position of the error.
"""

from __future__ import annotations

import json
import re

from mcpspy.core.hostconfig.reading import BOM, COMMENT, TRAILING_COMMA
from mcpspy.core.hostconfig.tree import ArrayItem, Member, Node, NodeKind, where
from mcpspy.errors import UsageError

_BLANK = re.compile(r"(?:[ \t\r\n]+|//[^\r\n]*|/\*[\s\S]*?\*/)*")
_STRING = re.compile(r'"[^"\\\x00-\x1f]*(?:\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})[^"\\\x00-\x1f]*)*"')
_WORD = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?|true|false|null")

_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|//[^\r\n]*|/\*[\s\S]*?\*/|,')

QUOTES = "\u201c\u201d\u201e\u201f\u2018\u2019\u201a\u201b\xab\xbb"
"""Typographic quotation marks, which word processors and chats put in place of `"`."""

DEEPEST = 200
"""Maximum nesting: no configuration is that deep, and Python's stack is limited."""


def read(text: str) -> Node:
    """Return the document; an empty document is an empty object, as in hosts."""
    reader = _Reader(text)
    start = reader.skip(1 if text.startswith("\ufeff") else 0)
    if start == len(text):
        return Node(NodeKind.OBJECT, start, start)
    node = reader.value(start, 0)
    end = reader.skip(node.end)
    if end != len(text):
        if node.kind is NodeKind.STRING and text[end] == ":":
            raise reader.wrong(start, "the { around the document is missing")
        if node.kind is NodeKind.OBJECT and text[end] == "{":
            raise reader.wrong(end, "a second document begins here: merge both into one object")
        raise reader.wrong(end, "unexpected text after the end of the document")
    return node


def extensions(text: str) -> dict[str, int]:
    """Return what the text of a document has beyond RFC 8259, with the offset of the first one of each."""
    found = {BOM: 0} if text.startswith("\ufeff") else {}
    for token in _TOKEN.finditer(text):
        if token[0][0] == "/":
            found.setdefault(COMMENT, token.start())
        elif token[0] == "," and text[(end := _after(text, token.end())) : end + 1] in ("}", "]"):
            found.setdefault(TRAILING_COMMA, token.start())
    return found


def _after(text: str, position: int) -> int:
    """Return the offset after blanks and comments."""
    found = _BLANK.match(text, position)
    return position if found is None else found.end()


class _Reader:
    def __init__(self, text: str) -> None:
        self.text = text

    def skip(self, position: int) -> int:
        return _after(self.text, position)

    def wrong(self, position: int, problem: str) -> UsageError:
        return UsageError(f"{where(self.text, position)}: not JSON: {problem}")

    def value(self, start: int, depth: int) -> Node:
        first = self.text[start : start + 1]
        if depth > DEEPEST:
            raise self.wrong(start, f"nested more than {DEEPEST} levels deep")
        if first == "{":
            return self.object(start, depth)
        if first == "[":
            return self.array(start, depth)
        if first == '"':
            return self.string(start)
        word = _WORD.match(self.text, start)
        if word is None:
            raise self.wrong(start, self.quote(start) or "expected a value")
        return Node(NodeKind.OTHER, start, word.end(), word[0])

    def string(self, start: int) -> Node:
        found = _STRING.match(self.text, start)
        if found is None:
            raise self.wrong(start, self.quote(start) or "expected a string")
        return Node(NodeKind.STRING, start, found.end(), json.loads(found[0]))

    def quote(self, start: int) -> str:
        """Return what is wrong with the quotes of a string, or an empty string."""
        first = self.text[start : start + 1]
        if first in QUOTES and first:
            return f'typographic quotation mark {first}: write "'
        if first == "'":
            return 'single quotation mark: write "'
        line = self.text[start:].partition("\n")[0]
        if first == '"' and re.search(r'\\(?:[^"\\/bfnrtu]|u(?![0-9a-fA-F]{4}))', line):
            return "a backslash in a string is written twice: \\\\"
        return "a string without its closing quotation mark" if first == '"' else ""

    def object(self, start: int, depth: int) -> Node:
        members = []
        position = self.skip(start + 1)
        while self.text[position : position + 1] != "}":
            key = self.string(position)
            colon = self.skip(key.end)
            if self.text[colon : colon + 1] != ":":
                raise self.wrong(colon, "expected a colon")
            value = self.value(self.skip(colon + 1), depth + 1)
            members.append(Member(key.text, key.start, value))
            position = self.following(value.end, "}")
        return Node(NodeKind.OBJECT, start, position + 1, members=tuple(members))

    def array(self, start: int, depth: int) -> Node:
        items = []
        position = self.skip(start + 1)
        while self.text[position : position + 1] != "]":
            value = self.value(position, depth + 1)
            items.append(ArrayItem(value.start, value))
            position = self.following(value.end, "]")
        return Node(NodeKind.ARRAY, start, position + 1, items=tuple(items))

    def following(self, position: int, closing: str) -> int:
        """Return the position of the next element or of the closing bracket."""
        position = self.skip(position)
        mark = self.text[position : position + 1]
        if mark == ",":
            return self.skip(position + 1)
        if mark == '"' and closing == "}":
            raise self.wrong(position, "a comma is missing before this")
        if mark != closing:
            raise self.wrong(position, f"expected a comma or {closing}")
        return position
