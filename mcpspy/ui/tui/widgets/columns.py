"""Text of known width, and the layout of columns on a line. Pure.

`steady` replaces joining and invisible characters first: terminals disagree on
their width, and one wrong width shifts everything to its right.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from rich.cells import cell_len, get_character_cell_size

Piece = tuple[str, str | None]
"""Text and its role."""

ELLIPSIS = "…"

_INVISIBLE = (
    0x00AD,  # Soft hyphen.
    0x034F,
    0x115F,
    0x1160,
    *range(0x180B, 0x1810),
    *range(0x200B, 0x200E),  # Zero width space, non-joiner, joiner.
    *range(0x2060, 0x2066),
    *range(0x206A, 0x2070),
    0x3164,
    *range(0xFE00, 0xFE0E),
    0xFFA0,
    *range(0xFFF9, 0xFFFC),
    *range(0xE0000, 0xE0080),  # Tags: invisible ASCII.
    *range(0xE0100, 0xE01F0),
)

_STEADY: dict[int, str | None] = {
    **{n: f"\\u{n:04x}" if n < 0x10000 else f"\\U{n:08x}" for n in _INVISIBLE},
    0xFE0E: None,  # Selectors of text or emoji style: removed, as they shift columns and carry no information.
    0xFE0F: None,
}


def steady(text: str) -> str:
    return text if text.isascii() else text.translate(_STEADY)


def cells(text: str) -> int:
    return len(text) if text.isascii() else cell_len(text)


def fit(text: str, start: int, width: int) -> int:
    """Return the index up to which text from `start` fits into `width` columns."""
    if text.isascii():
        return min(len(text), start + width)
    for index in range(start, len(text)):
        width -= get_character_cell_size(text[index])
        if width < 0:
            return index
    return len(text)


def cut(text: str, width: int) -> str:
    """Return at most `width` columns of a text, with an ellipsis if it is cut."""
    if width <= 0:
        return ""
    if len(text) <= width * 4 and cells(text) <= width:
        return text
    return text[: fit(text[: width * 4], 0, width - 1)] + ELLIPSIS


def cut_middle(text: str, width: int) -> str:
    """Return a text cut in the middle: `notifications/resources/updated` is recognised by its end."""
    if width < 8 or not text.isascii() or len(text) <= width:
        return cut(text, width)
    tail = len(text) - text.find("/") if "/" in text else width
    head = width - 1 - tail if tail + 4 <= width else width // 3
    return text[:head] + ELLIPSIS + text[len(text) - (width - head - 1) :]


def pad(text: str, width: int, *, right: bool = False) -> str:
    """Return exactly `width` columns: the text cut or padded."""
    if text.isascii() and len(text) <= width:
        return text.rjust(width) if right else text.ljust(width)
    text = cut(text, width)
    room = " " * (width - cells(text))
    return room + text if right else text + room


def wrap(text: str, width: int, hang: int = 0) -> list[tuple[int, int]]:
    """Return the spans of a text's rows; all rows after the first are `hang` columns narrower.

    A row breaks after a space if there is one in its second half.
    """
    rows: list[tuple[int, int]] = []
    start = 0
    while True:
        end = max(fit(text, start, width), start + 1)
        if end >= len(text):
            rows.append((start, len(text)))
            return rows
        blank = text.rfind(" ", start + width // 2, end)
        if blank > start:
            end = blank + 1
        rows.append((start, end))
        if len(rows) == 1:
            width = max(width - hang, 1)
        start = end


class Column(NamedTuple):
    name: str
    head: str
    least: int
    most: int
    rank: int
    """The column with the highest rank is removed first when space is short."""
    right: bool = False


class PlacedColumn(NamedTuple):
    column: Column
    width: int


GAP = 1
WIDE_GAP = 2
ROOMY = 100


def gap_at(width: int) -> int:
    return WIDE_GAP if width >= ROOMY else GAP


def share(columns: Sequence[Column], width: int) -> list[PlacedColumn]:
    """Return the columns that fit, with their widths; columns that can grow share the remaining space evenly."""
    gap = gap_at(width)
    kept = list(columns)
    while len(kept) > 1 and sum(c.least for c in kept) + gap * (len(kept) - 1) > width:
        kept.remove(max(kept, key=lambda column: column.rank))
    widths = [column.least for column in kept]
    left = width - sum(widths) - gap * (len(kept) - 1)
    while left > 0 and (growing := [i for i, c in enumerate(kept) if widths[i] < c.most]):
        step = max(left // len(growing), 1)
        for index in growing[:left]:
            more = min(step, kept[index].most - widths[index], left)
            widths[index] += more
            left -= more
    return [PlacedColumn(column, min(wide, max(width, 0))) for column, wide in zip(kept, widths, strict=True)]


def heading(columns: Sequence[Column], width: int) -> str:
    heads = (pad(column.head, wide, right=column.right) for column, wide in share(columns, width))
    return (" " * gap_at(width)).join(heads)


def joined(cells: Sequence[Piece], placed: Sequence[PlacedColumn], width: int) -> list[Piece]:
    """Return a line of cells; the last one may use the rest of the width."""
    gap = " " * gap_at(width)
    pieces: list[Piece] = []
    for (text, role), (column, wide) in zip(cells[:-1], placed, strict=False):
        pieces.append((pad(steady(text), wide, right=column.right) + gap, role))
        width -= wide + len(gap)
    return [*pieces, *((pad(steady(text), width), role) for text, role in cells[-1:])]


def fitted(pieces: Sequence[Piece], width: int) -> list[Piece]:
    """Return the pieces of a line, with an ellipsis if they are cut."""
    kept: list[Piece] = []
    left = [(shown, role) for text, role in pieces if (shown := steady(text))]
    for place, (text, role) in enumerate(left, 1):
        wide = cell_len(text)
        if wide > width or (wide == width and place < len(left)):
            # A piece that fills the line still needs a column for the ellipsis.
            return [*kept, (cut(f"{text} ", width), role)] if width > 0 else kept
        kept.append((text, role))
        width -= wide
    return kept


MESSAGES = (
    Column("time", "time", 7, 7, 6, right=True),
    Column("stream", "client", 6, 16, 8),
    Column("finding", "", 1, 1, 0),
    Column("arrow", "", 1, 1, 0),
    Column("method", "method", 14, 30, 1),
    Column("subject", "target", 8, 400, 2),
    Column("id", "id", 4, 6, 5),
    Column("latency", "latency", 8, 8, 4, right=True),
    Column("size", "size", 6, 6, 7, right=True),
    Column("status", "status", 10, 400, 3),
)

EXCHANGES = (
    Column("time", "time", 7, 7, 7, right=True),
    Column("stream", "client", 6, 16, 5),
    Column("finding", "", 1, 1, 0),
    Column("arrow", "", 1, 1, 0),
    Column("method", "method", 14, 20, 1),
    Column("subject", "target", 14, 400, 2),
    Column("id", "id", 4, 6, 6),
    Column("latency", "latency", 9, 9, 4, right=True),
    Column("bar", "", 8, 8, 9),
    Column("size", "size", 13, 13, 8, right=True),
    Column("status", "status", 10, 400, 3),
)

SESSIONS = (
    Column("state", "state", 7, 7, 0),
    Column("name", "name", 12, 30, 1),
    Column("server", "server", 12, 36, 6),
    Column("client", "client", 12, 36, 8),
    Column("revision", "revision", 10, 10, 7),
    Column("started", "started", 12, 12, 5),
    Column("messages", "messages", 8, 8, 3, right=True),
    Column("errors", "errors", 6, 6, 2, right=True),
    Column("pending", "pending", 7, 7, 4, right=True),
    Column("exit", "exit", 6, 18, 9),
)
