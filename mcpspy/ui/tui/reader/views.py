"""The four ways to look at a message.

Owns what each view is made of. Makes only the one that is looked at.
"""

from __future__ import annotations

from collections.abc import Sequence

from mcpspy.ui.body import Body
from mcpspy.ui.tui.reader.content import JSON, blocks
from mcpspy.ui.tui.reader.document import Document, Part, Piece, Section
from mcpspy.ui.tui.reader.fold import Folds
from mcpspy.ui.tui.reader.highlight import Span, spans
from mcpspy.ui.tui.reader.markdown import Markdown
from mcpspy.ui.tui.reader.stretch import Stretches

PRETTY, TEXT, RAW, HEADERS = "pretty", "text", "raw", "headers"
VIEWS = (PRETTY, TEXT, RAW, HEADERS)

NO_HTTP: list[Piece] = [("no HTTP here: this went over stdio, or nothing was noted of its exchange", "quiet")]

_BLANK: Piece = ("", None)


class Laid(Body):
    """JSON, laid out and in colours."""

    def spans(self, line: int, shown: str) -> list[Span]:
        return spans(shown)

    def fitted(self, width: int, most: int) -> Laid:
        """Return itself: of JSON, what is too wide to be measured is cut."""
        return self


def tabs(current: str) -> list[Piece]:
    """Return the names of the views; which is on is said by brackets."""
    return [
        (f"[{number} {view}]", "title") if view == current else (f" {number} {view} ", "quiet")
        for number, view in enumerate(VIEWS, 1)
    ]


def sections(document: Document, view: str) -> list[list[Section]]:
    if view == HEADERS:
        return [[Section(document.headers or NO_HTTP, Stretches(b""))]]
    return [_MADE[view](part) for part in document.parts]


def renewed(shown: list[list[Section]], before: Document, now: Document, view: str) -> list[list[Section]]:
    """Return the sections of a document of which only what is said has changed, or a part has come."""
    if view == HEADERS:
        return sections(now, view)
    kept = [
        [old[0]._replace(head=part.head), *old[1:]]
        for old, was, part in zip(shown, before.parts, now.parts, strict=False)
        if was.data == part.data and was.name == part.name
    ]
    return [*kept, *(_MADE[view](part) for part in now.parts[len(kept) :])]


def stacked(parts: list[list[Section]]) -> list[Section]:
    """Return parts under each other, with room between them."""
    first, *others = parts
    return [*first, *(s for [top, *rest] in others for s in (top._replace(head=[_BLANK, *top.head]), *rest))]


def laid(head: Sequence[Piece], data: bytes, pointer: str = "") -> Section:
    """Return JSON laid out; of anything else, the text it is."""
    body = Laid(data)
    if body.is_json:
        return Section(head, body, Folds(body), pointer)
    return Section(head, Stretches(data), None, pointer)


def prose(head: Sequence[Piece], data: bytes, pointer: str = "") -> Section:
    return Section(head, Stretches(data, marks=Markdown(data)), None, pointer)


def _pretty(part: Part) -> list[Section]:
    return [laid(part.head, part.data)]


def _raw(part: Part) -> list[Section]:
    return [Section(part.head, Stretches(part.data))]


def _text(part: Part) -> list[Section]:
    if part.name == "note":
        return [laid(part.head, part.data)]
    found = [Section(part.head, Stretches(b""))]
    had_text = False
    for block in blocks(part.data):
        said = [_BLANK, *block.said] if had_text else block.said
        made = (laid if block.kind == JSON else prose)(said, block.text, block.pointer)
        found.append(made._replace(is_nested=block.is_nested))
        had_text = bool(block.text)
    return found


_MADE = {PRETTY: _pretty, TEXT: _text, RAW: _raw}
