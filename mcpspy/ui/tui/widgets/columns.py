"""Text of known width, and the layout of columns on a line. Pure.

`steady` replaces joining and invisible characters first: terminals disagree on
their width, and one wrong width shifts everything to its right.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from rich.cells import cell_len, get_character_cell_size

from mcpspy.ui.shorten import LONGEST_ID, elide, shorten_subject, tail

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
    enough: int = 0
    """Width that it needs before a column of the rank `EXTRA` or a higher one is shown.

    Where space is short, columns for which this is more than `least` grow first.
    """
    shorten: Callable[[str, int], str] = cut

    def needing(self, width: int) -> Column:
        """Return this column for texts of at most N columns: it grows no further, and needs no more."""
        width = max(width, cells(self.head))
        return self._replace(
            least=min(self.least, width), most=min(self.most, width), enough=min(self.enough, width)
        )


class PlacedColumn(NamedTuple):
    column: Column
    width: int


GAP = 1
WIDE_GAP = 2
ROOMY = 100

EXTRA = 6
"""Rank from which on a column is shown only if the more important ones have enough space."""


def gap_at(width: int) -> int:
    return WIDE_GAP if width >= ROOMY else GAP


def share(columns: Sequence[Column], width: int) -> list[PlacedColumn]:
    """Return the columns that fit, with their widths; of the columns that can grow, the narrowest grows first.

    The last column takes the rest, unless it is right-aligned.
    """
    gap = gap_at(width)
    kept = list(columns)
    while len(kept) > 1:
        last = max(kept, key=lambda column: column.rank)
        wanted = (max(c.least, c.enough if last.rank >= EXTRA and c is not last else 0) for c in kept)
        if sum(wanted) + gap * (len(kept) - 1) <= width:
            break
        kept.remove(last)
    widths = [column.least for column in kept]
    left = width - sum(widths) - gap * (len(kept) - 1)
    for limits in (
        [column.enough for column in kept],
        [c.most if c.enough > c.least or width >= ROOMY else c.least for c in kept],
        [column.most for column in kept],
    ):
        while left > 0 and (growing := [i for i, limit in enumerate(limits) if widths[i] < limit]):
            lowest = min(widths[i] for i in growing)
            level = [i for i in growing if widths[i] == lowest]
            ends = [limits[i] for i in level] + [widths[i] for i in growing if widths[i] > lowest]
            step = max(min(min(ends) - lowest, left // len(level)), 1)
            for index in level[:left]:
                widths[index] += step
                left -= step
    if kept and not kept[-1].right:
        widths[-1] += max(left, 0)
    return [PlacedColumn(column, min(wide, max(width, 0))) for column, wide in zip(kept, widths, strict=True)]


def heading(placed: Sequence[PlacedColumn], width: int) -> str:
    return (" " * gap_at(width)).join(pad(column.head, wide, right=column.right) for column, wide in placed)


def joined(row: Sequence[Piece], placed: Sequence[PlacedColumn], width: int) -> list[Piece]:
    """Return a line of cells. A long cell also uses the columns of empty cells after it.

    If there are fewer cells than columns, the last one is a text that uses the rest of the line.
    """
    gap = gap_at(width)
    pieces: list[Piece] = []
    place, last = 0, len(row) - 1
    while place <= last:
        text, role = steady(row[place][0]), row[place][1]
        column, wide = placed[place]
        if not column.right:
            while place < last and cells(text) > wide and not row[place + 1][0]:
                place += 1
                wide += gap + placed[place].width
        if place == last:
            wide = width
        if cells(text) > wide:
            text = (cut if place == last < len(placed) - 1 else column.shorten)(text, wide)
        pieces.append(
            (pad(text, wide, right=column.right and place < last) + " " * gap * (place < last), role)
        )
        width -= wide + gap
        place += 1
    return pieces


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


_METHOD = Column("method", "method", 12, 40, 1, enough=12, shorten=elide)
_SUBJECT = Column("subject", "target", 8, 400, 3, enough=16, shorten=shorten_subject)
_ID = Column("id", "id", 4, LONGEST_ID, 6, enough=LONGEST_ID, shorten=tail)
_STATUS = Column("status", "status", 10, 400, 2, enough=30)

MESSAGES = (
    Column("time", "time", 5, 7, 5, right=True),
    Column("stream", "client", 6, 16, 8, enough=12),
    Column("finding", "", 1, 1, 0),
    Column("arrow", "", 1, 1, 0),
    _METHOD,
    _SUBJECT,
    _ID,
    Column("latency", "latency", 8, 8, 4, right=True),
    Column("size", "size", 6, 6, 7, right=True),
    _STATUS,
)

EXCHANGES = (
    *MESSAGES[:7],
    Column("latency", "latency", 9, 9, 4, right=True),
    Column("bar", "", 8, 8, 9),
    Column("size", "size", 13, 13, 7, right=True),
    _STATUS,
)
"""The time is more important than client, id and size, and the status takes what the other columns leave."""

SERVER = Column("stream", "server", 6, 24, 1, enough=12)
"""The column of merged sessions in place of that of the client."""

SESSIONS = (
    Column("state", "state", 7, 7, 0),
    Column("name", "name", 12, 60, 1, enough=24),
    Column("server", "server", 14, 60, 7, enough=24),
    Column("client", "client", 12, 60, 8, enough=20),
    Column("revision", "revision", 10, 10, 9),
    Column("started", "started", 12, 12, 5),
    Column("messages", "messages", 8, 8, 4, right=True),
    Column("errors", "errors", 6, 6, 2, right=True),
    Column("issues", "issues", 6, 6, 3, right=True),
    Column("pending", "pending", 7, 7, 6, right=True),
    Column("exit", "exit", 7, 12, 5),
)
