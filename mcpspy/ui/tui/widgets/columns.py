"""How columns share the width there is.

Owns which columns a list shows, in which order they go when it gets narrow,
and how wide the others become. Pure: numbers in, numbers out.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from rich.cells import cell_len

from mcpspy.ui.tui.detail.layout import Piece
from mcpspy.ui.tui.widgets.cells import cut, pad, steady


class Column(NamedTuple):
    """One column of a list."""

    name: str
    """The field of the row it shows."""
    head: str
    least: int
    most: int
    rank: int
    """Who leaves first when room is short: the highest."""
    right: bool = False


class PlacedColumn(NamedTuple):
    """A column that has its place."""

    column: Column
    width: int


GAP = 1
WIDE_GAP = 2
ROOMY = 100
"""Width from which the gaps between columns are wide."""


def gap_at(width: int) -> int:
    """Return how many blanks stand between two columns."""
    return WIDE_GAP if width >= ROOMY else GAP


def share(columns: Sequence[Column], width: int) -> list[PlacedColumn]:
    """Return the columns that fit and their widths; what is left over goes to those that can use it, evenly."""
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
    """Return a line of cells, each in its column; the last one may use all that is left."""
    gap = " " * gap_at(width)
    pieces: list[Piece] = []
    for (text, role), (column, wide) in zip(cells[:-1], placed, strict=False):
        pieces.append((pad(steady(text), wide, right=column.right) + gap, role))
        width -= wide + len(gap)
    return [*pieces, *((pad(steady(text), width), role) for text, role in cells[-1:])]


def fitted(pieces: Sequence[Piece], width: int) -> list[Piece]:
    """Return the pieces of a line, cut where there is no more room; that something is gone is seen."""
    kept: list[Piece] = []
    left = [(shown, role) for text, role in pieces if (shown := steady(text))]
    for place, (text, role) in enumerate(left, 1):
        wide = cell_len(text)
        if wide > width or (wide == width and place < len(left)):
            # What fills the line to its end still needs a place for the ellipsis.
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
    Column("subject", "about", 8, 400, 2),
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
    Column("subject", "about", 14, 400, 2),
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
