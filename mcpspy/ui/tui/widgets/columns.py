"""The layout of columns on a line. Pure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from mcpspy.ui.text.width import LONGEST_ID, cells, cut, elide, pad, shorten_subject, steady, tail

Piece = tuple[str, str | None]
"""Text and its role."""


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
        wide = cells(text)
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
    Column("state", "", 1, 1, 0),
    Column("name", "name", 12, 60, 1, enough=24),
    Column("origin", "origin", 6, 7, 4),
    Column("server", "server", 14, 60, 7, enough=24),
    Column("client", "client", 12, 60, 8, enough=20),
    Column("revision", "revision", 10, 10, 9),
    Column("started", "started", 12, 12, 5),
    Column("messages", "messages", 8, 8, 4, right=True),
    Column("errors", "errors", 6, 6, 2, right=True),
    Column("unanswered", "unans", 5, 5, 3, right=True),
    Column("issues", "issues", 6, 6, 3, right=True),
    Column("pending", "pending", 7, 7, 6, right=True),
    Column("verdict", "verdict", 15, 26, 3),
)
