"""The four views of a message, and the path and value under the cursor.

JSON is copied as it was sent; other text is sanitized, as a shell might execute it. Markdown is styled line by line;
nothing is removed.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Sequence
from itertools import accumulate, pairwise
from typing import TypeAlias

from mcpspy.core.jsontools import pointer as tokens
from mcpspy.core.jsontools import string
from mcpspy.ui.model.body import BodyLines
from mcpspy.ui.text.numbers import byte_size
from mcpspy.ui.tui.detail.document import (
    Document,
    DocumentPart,
    Folds,
    Section,
    StyledSpan,
    pointer,
    sanitize_lines,
    spans,
    value,
)
from mcpspy.ui.tui.detail.layout import LineSplit
from mcpspy.ui.tui.widgets.columns import Piece
from mcpspy.ui.views.blocks import JSON, blocks, describe_binary, dimensions, head
from mcpspy.ui.views.content import Content, Line

_FENCE = re.compile(rb"^[ ]{0,3}(?:```|~~~)[^\n]*\n?", re.MULTILINE)

_INLINE = re.compile(
    r"(?P<string>`[^`]+`)"
    r"|(?P<title>\*\*[^*\s](?:[^*]*[^*\s])?\*\*|__[^_\s](?:[^_]*[^_\s])?__)"
    r"|(?P<key>\[[^\]\[]*\]\([^()\s]*\)|https?://[^\s<>\"')\]]+)"
)

_ITEM = re.compile(r" *(?:[-*+]|\d{1,3}[.)]) (?:\[[ xX]\] )?")

HEADING, QUOTE, CODE, BULLET = "title", "quiet", "string", "key"


class Markdown:
    """Styles the lines of a text, given where each starts."""

    def __init__(self, data: bytes) -> None:
        fences = _FENCE.finditer(data) if b"```" in data or b"~~~" in data else ()
        self._fences = [edge for match in fences for edge in (match.start(), match.end())]

    def __call__(self, start: int, line: str) -> list[StyledSpan]:
        passed = bisect_right(self._fences, start)
        if passed % 2:
            return [StyledSpan(0, len(line), QUOTE)]
        if passed % 4 == 2:
            return [StyledSpan(0, len(line), CODE)]
        return styles(line)


def styles(line: str) -> list[StyledSpan]:
    """Return the styled spans of a line outside code."""
    if re.match(r" {0,3}#{1,6} ", line):
        return [StyledSpan(0, len(line), HEADING)]
    if line.lstrip(" ").startswith(">"):
        return [StyledSpan(0, len(line), QUOTE)]
    item = _ITEM.match(line)
    found = [StyledSpan(*item.span(), BULLET)] if item else []
    found += [
        StyledSpan(*match.span(), match.lastgroup or "")
        for match in _INLINE.finditer(line, item.end() if item else 0)
    ]
    return found


Render: TypeAlias = Callable[[Content], Sequence[Line] | None]
"""Returns the view of a content, or None if no view knows it."""

PRETTY, TEXT, RAW, HEADERS = "pretty", "text", "raw", "headers"
VIEWS = (PRETTY, TEXT, RAW, HEADERS)

NO_HTTP: list[Piece] = [("no HTTP headers: sent over stdio, or not recorded", "quiet")]

_BLANK: Piece = ("", None)


class FormattedJson(BodyLines):
    def spans(self, line: int, shown: str) -> list[StyledSpan]:
        return spans(shown)

    def fitted(self, width: int, most: int) -> FormattedJson:
        """Return itself: if JSON has too many wide lines, they are cut."""
        return self


def tabs(current: str) -> list[Piece]:
    """Return the names of the views, the active one in brackets."""
    return [
        (f"[{number} {view}]", "title") if view == current else (f" {number} {view} ", "quiet")
        for number, view in enumerate(VIEWS, 1)
    ]


def _no_view(_: Content) -> None: ...


def sections(document: Document, view: str, render: Render = _no_view) -> list[list[Section]]:
    if view == HEADERS:
        return [[Section(document.headers or NO_HTTP, LineSplit(b""))]]
    return [_BUILDERS[view](part, render) for part in document.parts]


def renewed(
    shown: list[list[Section]], before: Document, now: Document, view: str, render: Render = _no_view
) -> list[list[Section]]:
    """Return the sections of a document whose headers changed or that got another part."""
    if view == HEADERS:
        return sections(now, view)
    kept = [
        [old[0]._replace(head=part.head), *old[1:]]
        for old, was, part in zip(shown, before.parts, now.parts, strict=False)
        if was.data == part.data and was.name == part.name
    ]
    return [*kept, *(_BUILDERS[view](part, render) for part in now.parts[len(kept) :])]


def stacked(parts: list[list[Section]]) -> list[Section]:
    """Return the sections of stacked parts, separated by blank lines."""
    first, *others = parts
    return [*first, *(s for [top, *rest] in others for s in (top._replace(head=[_BLANK, *top.head]), *rest))]


def json_section(head: Sequence[Piece], data: bytes, pointer: str = "") -> Section:
    """Return a section of formatted JSON, or of unchanged text if it is not JSON."""
    body = FormattedJson(data)
    if body.is_json:
        return Section(head, body, Folds(body), pointer)
    return Section(head, LineSplit(data), None, pointer)


def marked(section: Section, marks: Sequence[tuple[str, str]]) -> Section:
    """Return a section with marks on the lines of the values at these JSON pointers; of two, the first one counts."""
    folds = section.folds
    if folds is None or not marks:
        return section
    lines: dict[int, str] = {}
    for where, role in marks:
        lines.setdefault(folds.body.line_at(folds.outline.nearest(tokens(where))), role)
    return section._replace(marks=lines)


def text_section(head: Sequence[Piece], data: bytes, pointer: str = "") -> Section:
    return Section(head, LineSplit(data, marks=Markdown(data)), None, pointer)


def _rendered(head: Sequence[Piece], lines: Sequence[Line], pointer: str) -> Section:
    """Return a section with the lines of a view, which are sanitized."""
    texts = ["".join(text for text, _ in line) for line in lines]
    starts = accumulate((len(text.encode()) + 1 for text in texts), initial=0)
    by_start = dict(zip(starts, lines, strict=False))

    def marks(start: int, _: str) -> list[StyledSpan]:
        ends = [*accumulate((len(text) for text, _ in by_start.get(start, ())), initial=0)]
        styled = zip(pairwise(ends), by_start.get(start, ()), strict=True)
        return [
            StyledSpan(first, last, style) for (first, last), (_, style) in styled if style and last > first
        ]

    return Section(head, LineSplit("\n".join(texts).encode(), marks=marks), None, pointer)


def _text(part: DocumentPart, render: Render) -> list[Section]:
    if part.name == "note":
        return [json_section(part.head, part.data)]
    found = [Section(part.head, LineSplit(b""))]
    had_text = False
    for block in blocks(part.data):
        label = [_BLANK, *block.label] if had_text else block.label
        lines = render(block.content) if block.content is not None else None
        if lines is not None:
            made = _rendered(label, lines, block.pointer)
        else:
            build = json_section if block.kind == JSON else text_section
            made = build(label, block.text, block.pointer)._replace(is_nested=block.is_nested)
        found.append(made)
        had_text = bool(block.text or lines)
    return found


_BUILDERS: dict[str, Callable[[DocumentPart, Render], list[Section]]] = {
    PRETTY: lambda part, _: [marked(json_section(part.head, part.data), part.marks)],
    TEXT: _text,
    RAW: lambda part, _: [Section(part.head, LineSplit(part.data))],
}


WHOLE = "(root)"

INSIDE = " # "
"""Separator between the path of a string and a path in the JSON inside that string."""


def path(section: Section, line: int) -> str:
    return section.pointer if section.is_nested else section.pointer + _inner(section, line)


def breadcrumbs(section: Section, line: int) -> str:
    """Return the path to show; in a string that holds JSON, with the path inside it."""
    if section.is_nested:
        return section.pointer + INSIDE + (_inner(section, line) or "/")
    return path(section, line) or WHOLE


def copied(section: Section, line: int) -> str:
    """Return the text to copy: the value of a line of JSON, a whole text, or the header lines."""
    if section.folds is not None and line >= 0:
        found = value(section.folds.outline, line)
        text = string(found)
        return found.decode("utf-8", "backslashreplace") if text is None else sanitize_lines(text)
    if section.source.text:
        return sanitize_lines(section.source.text.decode("utf-8", "backslashreplace"))
    return "\n".join(text for text, _ in section.head if text)


def opened(section: Section, line: int) -> Section | None:
    """Return the string value of a line as a section; None if it is not a string."""
    if section.folds is None or line < 0:
        return None
    text = string(value(section.folds.outline, line))
    if text is None:
        return None
    where, data = path(section, line), text.encode("utf-8", "backslashreplace")
    parts: list[Piece] = [
        (f"{where} · {byte_size(len(data))}", "title"),
        ("esc to close", "quiet"),
        ("", None),
    ]
    if dimensions(head(data[:100_000])):
        parts[1:1] = [(describe_binary("base64 image", data), "key")]
    made = (
        json_section(parts, data, where)
        if text.lstrip()[:1] in ("{", "[")
        else text_section(parts, data, where)
    )
    return made if made.folds is None else made._replace(is_nested=True)


def _inner(section: Section, line: int) -> str:
    return pointer(section.folds.outline, line) if section.folds is not None and line >= 0 else ""
