"""Where in a message a line is, and what value stands there.

Owns JSON pointers (RFC 6901) and the text of a value. Keys and numbers are
taken as they are on the wire: of duplicate keys, the one at hand is meant.
"""

from __future__ import annotations

import re

import orjson
from msgspec.json import format as lay_out

from mcpspy.core.sanitize import sanitize
from mcpspy.ui.tui.reader.outline import Outline

_KEY = re.compile(rb' *("(?:[^"\\]|\\.)*"): ')


def pointer(outline: Outline, line: int) -> str:
    """Return the path of the value that a line shows, or is the end of: `/params/arguments/q`."""
    parts: list[str] = []
    start = value_start(outline, line)
    while (parent := outline.parent(start)) is not None:
        parts.append(_name(outline, start, parent))
        start = parent
    return "".join(f"/{part}" for part in reversed(parts))


def value(outline: Outline, line: int) -> bytes:
    """Return the value that a line shows: its words as on the wire, without the blanks between them."""
    text = outline.body.text
    start = value_start(outline, line)
    begin = key.end() if (key := _KEY.match(text, start)) else start
    if outline.opens(start):
        end = outline.close(start) + outline.indent(start) + 1
        return lay_out(text[begin:end], indent=-1)
    end = text.find(b"\n", begin)
    return text[begin : end if end >= 0 else len(text)].strip(b" ").removesuffix(b",")


def string(found: bytes) -> str | None:
    """Return the text of a value that is a string; half a surrogate is written out."""
    if not found.startswith(b'"'):
        return None
    try:
        text: str = orjson.loads(found)
    except orjson.JSONDecodeError:
        import json

        text = json.loads(found.decode("utf-8", "backslashreplace"))
    return text


def tame(text: str) -> str:
    """Return text of many lines in which nothing but newlines and tabs acts: a shell might obey the rest."""
    return "\n".join("\t".join(map(sanitize, line.split("\t"))) for line in text.split("\n"))


def value_start(outline: Outline, line: int) -> int:
    """Return where the first line of a value begins, of which this line is the first or the last."""
    start = outline.body.start(line)
    return outline.opener(start) if outline.closes(start) else start


def _name(outline: Outline, start: int, parent: int) -> str:
    if key := _KEY.match(outline.body.text, start):
        return sanitize((string(key.group(1)) or "").replace("~", "~0").replace("/", "~1"))
    return str(outline.index(start, parent))
