"""Parser of JSON with comments and trailing commas into a tree of spans.

It accepts RFC 8259 with `//` and `/* */` comments and a comma before a closing bracket. Strict hosts reject the
extensions themselves, so one parser is enough. It raises UsageError with the position of the error.
"""

from __future__ import annotations

import json
import re

from mcpspy.core.hostconfig.tree import ArrayItem, Member, Node, NodeKind, where
from mcpspy.errors import UsageError

_BLANK = re.compile(r"(?:[ \t\r\n]+|//[^\r\n]*|/\*[\s\S]*?\*/)*")
_STRING = re.compile(r'"[^"\\\x00-\x1f]*(?:\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})[^"\\\x00-\x1f]*)*"')
_WORD = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?|true|false|null")

_EXTENSION = re.compile(
    _STRING.pattern + r"|(?P<comment>//[^\r\n]*|/\*[\s\S]*?\*/)"
    r"|(?P<comma>,)(?=(?:[ \t\r\n]+|//[^\r\n]*|/\*[\s\S]*?\*/)*[\]}])"
)

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
        raise reader.wrong(end, "unexpected text after the end of the document")
    return node


def extensions(text: str) -> list[str]:
    """Return what a document has that strict parsers of JSON refuse (RFC 8259): the first of each kind, with its place."""
    found = {}
    if text.startswith("\ufeff"):
        found["bom"] = "it begins with a byte order mark"
    if not text.strip("\ufeff \t\r\n"):
        return [*found.values(), "it is empty"]
    for match in _EXTENSION.finditer(text):
        if match.lastgroup == "comment":
            found.setdefault("comment", f"{where(text, match.start())}: a comment")
        elif match.lastgroup == "comma":
            found.setdefault("comma", f"{where(text, match.start())}: a comma before a closing bracket")
    return [*found.values()]


class _Reader:
    def __init__(self, text: str) -> None:
        self.text = text

    def skip(self, position: int) -> int:
        found = _BLANK.match(self.text, position)
        assert found is not None
        return found.end()

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
            raise self.wrong(start, "expected a value")
        return Node(NodeKind.OTHER, start, word.end(), word[0])

    def string(self, start: int) -> Node:
        found = _STRING.match(self.text, start)
        if found is None:
            raise self.wrong(start, self.flaw_of_string(start))
        return Node(NodeKind.STRING, start, found.end(), json.loads(found[0]))

    def flaw_of_string(self, start: int) -> str:
        """Return why there is no string at this position."""
        line = self.text[start:].partition("\n")[0]
        if not line.startswith('"'):
            return "expected a string"
        if escape := re.search(r'\\(?!["\\/bfnrt]|u[0-9a-fA-F]{4}).?', line):
            return f"{escape[0]} is not an escape: write \\\\ or / in a path of Windows"
        if typographic := re.search("[\u201c\u201d\u201e]", line):
            return f'the string is not closed: {typographic[0]} is a typographic quote, and not "'
        return "the string is not closed"

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
        if mark != closing:
            raise self.wrong(position, f"expected a comma or {closing}")
        return position
