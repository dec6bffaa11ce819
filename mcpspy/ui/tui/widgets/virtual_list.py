"""A list of any length that draws only its visible rows.

Not a DataTable, which measures every cell and interprets markup: a row may
contain anything a server sends.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import ClassVar

from rich.style import Style
from textual import events
from textual.binding import Binding, BindingType
from textual.geometry import Region
from textual.message import Message
from textual.strip import Strip

from mcpspy.ui.text.width import cells, cut, steady
from mcpspy.ui.tui.widgets.base import LineScrollView
from mcpspy.ui.tui.widgets.columns import Column, Piece, PlacedColumn, gap_at, heading, joined, share

SELECTED = "▸"
"""Mark of the row under the cursor, for terminals that do not show colours."""

MARGIN = 3
"""Columns outside the cells: the mark, a space, and one at the end of the line."""


class VirtualList(LineScrollView, can_focus=True, inherit_bindings=False):
    COMPONENT_CLASSES: ClassVar[set[str]] = {"row--cursor", "row--heading"}

    DEFAULT_CSS = """
    VirtualList > .row--heading { color: $quiet; background: $surface; }
    VirtualList > .row--cursor { background: $cursor-away; }
    VirtualList:focus > .row--cursor { background: $cursor; text-style: bold; }
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("down,j", "move(1)", "next row", show=False, id="list.down"),
        Binding("up,k", "move(-1)", "previous row", show=False, id="list.up"),
        Binding("pagedown", "page(1)", "page down", show=False, id="list.page-down"),
        Binding("pageup", "page(-1)", "page up", show=False, id="list.page-up"),
        Binding("home,g", "first", "first row", show=False, id="list.first"),
        Binding("end,G", "last", "last row", show=False, id="list.last"),
    ]

    HELP_NAME = "list"

    HEADS = 1

    COLUMNS: ClassVar[tuple[Column, ...]] = ()

    class Moved(Message):
        """Posted when the cursor moves to another row, or its row changes."""

    class HeadingClicked(Message):
        """Posted when the user clicks the heading of a column."""

        def __init__(self, column: str) -> None:
            super().__init__()
            self.column = column

    class Opened(Message):
        """Posted when the user opens the row under the cursor."""

    def __init__(self, *, id: str | None = None) -> None:  # noqa: A002
        super().__init__(id=id)
        self.count = 0
        self.cursor = 0
        self.can_follow = False
        """True if rows may still be added at the end."""
        self.follow = False
        """True if the cursor stays on the last row as rows are added."""
        self.empty: list[Piece] = []
        self.needs: dict[str, int] = {}
        """Column → columns of the widest text drawn so far, for columns that grow with their texts."""
        self._placed: list[PlacedColumn] = []
        self._width = self._wide = self._top = 0
        self._at_cursor = self._of_heading = Style()

    @property
    def columns(self) -> Sequence[Column]:
        return self.COLUMNS

    @property
    def has_room(self) -> bool:
        """True if the next row would be visible."""
        return self.count < self.scroll_offset.y + self._page()

    def cells(self, index: int, placed: list[PlacedColumn]) -> list[Piece]:
        """Return the cells of a row; with fewer cells than columns, the last one may use the rest of the line."""
        raise NotImplementedError

    def growing(self, index: int) -> Iterable[tuple[str, str]]:
        """Yield the columns that grow with their texts, and their texts in a row."""
        return ()

    def place(self, columns: Sequence[Column], width: int) -> list[PlacedColumn]:
        """Return the columns that fit, no wider than the texts drawn so far need."""
        needs = self.needs
        return share([c.needing(needs[c.name]) if c.name in needs else c for c in columns], width)

    def line(self, index: int, width: int) -> list[Piece]:
        return joined(self.cells(index, self._placed), self._placed, width)

    def mark(self, index: int) -> str:
        return SELECTED if index == self.cursor else " "

    def sync(self, count: int) -> None:
        """Set the number of rows. The cursor stays on its row, or on the last row while following."""
        before, self.count = self.count, count
        if count != before:
            self.extend(count + 1)
            self._repaint_from(min(before, count))
        if self.follow and count:
            self.move_to(count - 1)
        elif count < before or before < self.scroll_offset.y + self.size.height:
            self.cursor = max(0, min(self.cursor, count - 1))
            self.refresh()
        if count and not before:
            self.post_message(self.Moved())

    def move_to(self, index: int) -> None:
        old, self.cursor = self.cursor, max(0, min(index, self.count - 1))
        top, page = self.scroll_offset.y, self._page()
        if self.cursor < top:
            self.jump(self.cursor)
        elif self.cursor >= top + page:
            self.jump(self.cursor - page + 1)
        if self.cursor != old:
            self._repaint(old)
            self._repaint(self.cursor)
            self.post_message(self.Moved())

    def select(self, index: int) -> None:
        if index < self.cursor:
            self.follow = False
        self.move_to(index)

    def action_move(self, step: int) -> None:
        self.select(self.cursor + step)

    def action_page(self, step: int) -> None:
        self.select(self.cursor + step * max(self._page() - 1, 1))

    def action_first(self) -> None:
        self.select(0)

    def action_last(self) -> None:
        self.follow = self.can_follow
        self.move_to(self.count - 1)
        self.post_message(self.Moved())

    def on_resize(self) -> None:
        self.move_to(self.cursor)
        # After the list has grown taller, the target is beyond the end, and the wheel would start from there.
        self.scroll_target_y = min(self.scroll_target_y, self.max_scroll_y)

    def on_click(self, event: events.Click) -> None:
        index = int(event.y) - 1 + self.scroll_offset.y
        if event.y < 1:
            at, gap = 2, gap_at(self._width - MARGIN)
            for column, wide in self._placed:
                if at <= event.x < at + wide:
                    self.post_message(self.HeadingClicked(column.name))
                at += wide + gap
            return
        if index >= self.count:
            return
        self.select(index)
        if event.chain == 2:
            self.post_message(self.Opened())

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        """Stop following if the user scrolls up."""
        super().watch_scroll_y(old_value, new_value)
        if self.follow and new_value < min(old_value, self.max_scroll_y):
            self.follow = False
            self.post_message(self.Moved())

    def prepare(self) -> None:
        self._width, self._wide = self.scrollable_content_region.width, self.outer_size.width
        self._top = self.scroll_offset.y
        self._measure()
        placed = self.place(self.columns, self._width - MARGIN)
        at_cursor = self._ground + self.get_component_rich_style("row--cursor", partial=True)
        if (placed, at_cursor) != (self._placed, self._at_cursor):
            was_placed, self._placed, self._at_cursor = self._placed, placed, at_cursor
            self._of_heading = self._ground + self.get_component_rich_style("row--heading")
            self._drawn.clear()
            if was_placed and was_placed != placed:
                self.refresh()  # The current frame may draw only one line.

    def render_line(self, y: int) -> Strip:
        width, ground = self._width, self._ground
        index = y - 1 + self._top
        pieces: list[Piece] = []
        if y == 0:
            ground = self._of_heading
            placed = self.place(self.columns, width - MARGIN)
            pieces = [("  ", None), (heading(placed, width - MARGIN), None)]
        elif self.count == 0 and 0 <= y - 2 < len(self.empty):
            text, role = self.empty[y - 2]
            pieces = [("  ", None), (cut(steady(text), width - 2), role)]
        elif index < self.count:
            if index == self.cursor:
                ground = self._at_cursor
            pieces = [(f"{self.mark(index):<2}", None), *self.line(index, width - MARGIN)]
        # As wide as the widget: the scrollbar covers its end.
        return Strip(self.paint(pieces, self._wide, ground), self._wide)

    def _measure(self) -> None:
        """Measure the rows that will be drawn."""
        needs = self.needs
        for y in range(self.HEADS, self.size.height):
            if y not in self._drawn and (index := y - 1 + self._top) < self.count:
                for name, text in self.growing(index):
                    needs[name] = max(needs.get(name, 0), cells(text))

    def _page(self) -> int:
        return max(self.size.height - 1, 1)

    def _repaint(self, index: int) -> None:
        y = index - self.scroll_offset.y + 1
        if 1 <= y < self.size.height:
            self.refresh(Region(0, y, self.size.width, 1))

    def _repaint_from(self, index: int) -> None:
        y, height = max(index - self.scroll_offset.y + 1, 1), self.size.height
        if y < height:
            self.refresh(Region(0, y, self.size.width, height - y))
