"""Fuzz target of everything that shows recorded bytes to people: `show`, the terminal UI's detail pane and its views.

Whatever is recorded, nothing raises, and no character reaches a terminal that could move its cursor, reverse a line or
set its title.
"""

from __future__ import annotations

import io
import json
import re
from collections.abc import Iterable, Sequence
from contextlib import redirect_stderr, redirect_stdout
from functools import cache

from fuzz.virtual_time import temporary_folder
from mcpspy.analysis import rows
from mcpspy.core.recording.decode import read_header
from mcpspy.core.recording.encode import FrameEncoder
from mcpspy.ui.cli import show
from mcpspy.ui.cli.main import parse
from mcpspy.ui.model.session_model import SessionModel
from mcpspy.ui.tui.detail.document import Document, DocumentPart, Section
from mcpspy.ui.tui.detail.layout import TextPage
from mcpspy.ui.tui.detail.views import VIEWS, breadcrumbs, copied, opened, sections, stacked
from mcpspy.ui.tui.session.panes import document
from mcpspy.ui.tui.widgets.columns import Piece
from mcpspy.ui.views.content import Content, Line
from mcpspy.ui.views.extension import Extension

CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
COPIED = re.compile(CONTROL.pattern.replace("\x00-\x1f", "\x00-\x08\x0b-\x1f"))
"""The same without line breaks and tabs, which a copied text keeps."""

HEADER = b'{"mcpspy":1,"id":"0","started":"2026-11-26T00:00:00.000Z","name":"s","command":["s"]}'

MOST_ROWS = 12
"""Rows of a session that are opened, and lines of each view that are used."""

WIDTHS = (9, 40, 120)

OPTIONS = (
    (),
    ("-v", "--width", "40"),
    ("-v", "--http", "--lint", "--width", "0"),
    ("-v", "--format", "json"),
)


def views(data: bytes) -> None:
    """Any recording is shown, and so is any message and any content."""
    kind, recorded = data[0] if data else 0, data[1:]
    if kind & 64:
        recorded = b"".join(map(_line, recorded.split(b"\n")))
    width = WIDTHS[kind % len(WIDTHS)]
    _show(recorded, OPTIONS[kind % len(OPTIONS)])
    shown = [Document([DocumentPart("message", [], recorded)]), *_documents(recorded, exchanges=kind < 128)]
    for each in shown:
        for view in VIEWS:
            _draw(stacked(sections(each, view, _view)), width)
    for media_type in ("text/csv", "text/x-diff", "application/x-protobuf", "image/png", "text/plain"):
        for line in _view(Content(media_type, recorded)) or ():
            _clean(line)


def _line(message: bytes) -> bytes:
    """Return the line of a recording for a message; the server's begin with `<`."""
    encoder = FrameEncoder("server" if message[:1] == b"<" else "client")
    lines = encoder.feed(0.5, message.removeprefix(b"<") + b"\n")
    return lines if isinstance(lines, bytes) else b"".join(lines)


def _show(recorded: bytes, options: Sequence[str]) -> None:
    path = temporary_folder() / "s.jsonl"
    path.write_bytes(HEADER + b"\n" + recorded)
    _, arguments = parse("show", [str(path), "--color", "never", *options])
    output, errors = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8", newline="") for _ in range(2))
    with redirect_stdout(output), redirect_stderr(errors):
        assert show.main(arguments) == 0
    for stream in (output, errors):
        stream.flush()
        stream.seek(0)
        for line in stream.read().split("\n"):
            if "json" in options and stream is output and line:
                json.loads(line)
            else:
                _clean([(line, None)])


def _documents(recorded: bytes, *, exchanges: bool) -> Iterable[Document]:
    """Return the documents of the first rows of a session."""
    model = SessionModel(read_header(HEADER), lambda _, start, length: recorded[start : start + length])
    model.begin_part()
    model.add_lines(recorded.split(b"\n"), 0)
    model.end()
    for row in range(min(len(model), MOST_ROWS)):
        change = model.shown(row)
        _clean([(text, None) for text in rows.row(change)])
        yield document(model, row, exchanges=exchanges)


def _draw(found: list[Section], width: int) -> None:
    """Draw sections, also folded, and use what is under the cursor."""
    page = TextPage(found, width)
    for section in page.sections:
        _draw_page(page)
        for line in range(-1, min(len(section.source), MOST_ROWS)):
            _clean([(breadcrumbs(section, line), None)])
            inner = opened(section, line)
            if inner is not None:
                _draw_page(TextPage([inner], width))
            if section.folds is None or inner is not None:  # JSON is copied as it was sent.
                assert not COPIED.search(copied(section, line)), copied(section, line)
        if section.folds is not None:
            section.folds.fold_all()
            page.refold()
    _draw_page(page)


def _draw_page(page: TextPage) -> None:
    for row in range(min(page.rows, 4 * MOST_ROWS)):
        page.mark(row)
        _clean(page.draw(row))


def _clean(line: Iterable[Piece]) -> None:
    for text, _ in line:
        assert not CONTROL.search(text), text


@cache
def _extension() -> Extension:
    return Extension()


def _view(content: Content) -> list[Line] | None:
    """Return the view of a content, as in the thread of `Extension.lines`."""
    extension = _extension()
    return next(filter(None, (extension._render(view, content) for view in extension._views.values())), None)
