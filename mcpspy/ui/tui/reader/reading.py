"""What stands under the cursor: its path, its value, its text.

Owns the words for the clipboard and for the line below the message. JSON is
given as it was sent; text that is none is made inert, as a shell it is pasted
into might obey it. Pure.
"""

from __future__ import annotations

from mcpspy.ui.tui.reader.document import Piece, Section
from mcpspy.ui.tui.reader.image import described, dimensions, head, kilo
from mcpspy.ui.tui.reader.path import pointer, string, tame, value
from mcpspy.ui.tui.reader.views import laid, prose

WHOLE = "the whole message"

INSIDE = " # "
"""Stands between the path of a string and a path in the JSON that the string holds."""


def path(section: Section, line: int) -> str:
    """Return where in the message a line stands, as a JSON pointer."""
    return section.pointer if section.is_nested else section.pointer + _inner(section, line)


def crumbs(section: Section, line: int) -> str:
    """Return the path as it is shown; in a string that holds JSON, what it leads to there as well."""
    if section.is_nested:
        return section.pointer + INSIDE + (_inner(section, line) or "/")
    return path(section, line) or WHOLE


def copied(section: Section, line: int) -> str:
    """Return the value of a line; of text, all of it; of what is only said, the words."""
    if section.folds is not None and line >= 0:
        found = value(section.folds.outline, line)
        text = string(found)
        return found.decode("utf-8", "backslashreplace") if text is None else tame(text)
    if section.source.text:
        return tame(section.source.text.decode("utf-8", "backslashreplace"))
    return "\n".join(text for text, _ in section.head if text)


def opened(section: Section, line: int) -> Section | None:
    """Return the string of a line as a section of its own, None if there is none."""
    if section.folds is None or line < 0:
        return None
    text = string(value(section.folds.outline, line))
    if text is None:
        return None
    where, data = path(section, line), text.encode("utf-8", "backslashreplace")
    said: list[Piece] = [(f"{where} · {kilo(len(data))}", "title"), ("esc closes it", "quiet"), ("", None)]
    if dimensions(head(data[:100_000])):
        said[1:1] = [(described("base64 of an image", data), "key")]
    made = laid(said, data, where) if text.lstrip()[:1] in ("{", "[") else prose(said, data, where)
    return made if made.folds is None else made._replace(is_nested=True)


def _inner(section: Section, line: int) -> str:
    return pointer(section.folds.outline, line) if section.folds is not None and line >= 0 else ""
