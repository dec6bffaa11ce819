"""One or two pages side by side that scroll together, with a cursor, folds and search hits.

Draws only the visible rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from rich.segment import Segment
from rich.style import Style
from textual import events
from textual.geometry import Region
from textual.message import Message
from textual.strip import Strip

from mcpspy.ui.tui.detail.document import Section
from mcpspy.ui.tui.detail.layout import HIT, PagePosition, TextPage
from mcpspy.ui.tui.detail.search import HitPosition, Search
from mcpspy.ui.tui.widgets.base import LineScrollView
from mcpspy.ui.tui.widgets.columns import Piece

CURSOR = ">"
"""Mark of the line under the cursor, as colour alone is not enough."""

GUTTER = 2
"""Columns before a line, for the cursor and the fold mark."""

BESIDE = "│"

USUAL, LEAST = 80, 4
"""Columns of a page before the pane has a size, and minimum columns of a page."""


class Viewer(LineScrollView, can_focus=False, inherit_bindings=False):
    COMPONENT_CLASSES: ClassVar[set[str]] = {"row--cursor"}

    DEFAULT_CSS = """
    Viewer { height: 1fr; }
    Viewer > .row--cursor { background: $cursor; }
    """

    class Moved(Message):
        """The cursor is on another line."""

    def __init__(self, *, id: str | None = None) -> None:  # noqa: A002
        super().__init__(id=id)
        self._sections: list[list[Section]] = []
        self.pages: list[TextPage] = []
        self.column = 0
        self.place = PagePosition(0, 0)
        self.is_active = False
        """True if the pane receives keys, and so shows the cursor."""
        self._sought: Search | None = None
        self._top = self._wide = 0
        self._at_cursor = Style()

    @property
    def page(self) -> TextPage:
        return self.pages[self.column]

    @property
    def section(self) -> Section:
        return self.page.sections[self.place.section]

    def show(self, columns: Sequence[Sequence[Section]], *, place: tuple[int, int, int] | None) -> None:
        """Show sections; put the cursor on the first line of a text if no place is given."""
        self._sections = [list(sections) for sections in columns]
        self._lay_out()
        if place is None:
            self.column, self.place = 0, PagePosition(0, 0)
            first = next((n for n, layout in enumerate(self.page.layouts) if len(layout.source)), 0)
            self.place = self.page.place(first, 0)
            self.jump(0)
            self.post_message(self.Moved())
        else:
            self.column = min(place[0], len(self.pages) - 1)
            self.place = self.page.place(place[1], place[2])
            self.go(self.place)

    def renew(self, columns: Sequence[Sequence[Section]]) -> None:
        """Show updated sections without moving the visible text."""
        self._sections = [list(sections) for sections in columns]
        self._relayout()
        self.post_message(self.Moved())

    def where(self) -> tuple[int, int, int]:
        """Return column, section and offset of the cursor, which do not depend on the width."""
        return self.column, self.place.section, self.page.offset(self.place)

    def on_resize(self) -> None:
        if (
            self.pages
            and self.size.width
            and self._widths(len(self.pages)) != [page.width for page in self.pages]
        ):
            self._relayout()
        self.scroll_target_y = min(self.scroll_target_y, self.max_scroll_y)

    def line_of(self, position: HitPosition) -> HitPosition:
        """Return the start of the line at a position."""
        page = self.pages[position.column]
        return position._replace(offset=page.offset(page.place(position.section, position.offset)))

    def mark(self, query: Search | None) -> None:
        self._sought = query
        self.refresh()

    def activate(self, *, on: bool) -> None:
        if on != self.is_active:
            self.is_active = on
            self.refresh()

    def move(self, step: int) -> None:
        """Move by one line, or by one row in a line higher than the pane."""
        page, top, height = self.page, self.scroll_offset.y, max(self.size.height, 1)
        row = page.row_of(self.place)
        end = row + page.height(self.place)
        if step > 0 and row <= top + height - 1 < end - 1 and row >= top - (end - row):
            self.jump(top + 1)
        elif step < 0 and row < top < end:
            self.jump(top - 1)
        else:
            self.go(page.at(min(max(end if step > 0 else row - 1, 0), page.rows - 1))[0], step=step)

    def turn(self, step: int) -> None:
        """Move the page and the cursor by one page."""
        page, height = self.page, max(self.size.height - 1, 1)
        row = page.row_of(self.place) + step * height
        self.jump(min(max(self.scroll_offset.y + step * height, 0), self.max_scroll_y))
        self.go(page.at(min(max(row, 0), page.rows - 1))[0])

    def edge(self, *, last: bool) -> None:
        self.go(self.page.at(self.page.rows - 1 if last else 0)[0])
        self.jump(self.max_scroll_y if last else 0)

    def swap(self) -> None:
        if len(self.pages) > 1:
            row = self.page.row_of(self.place)
            self.column = 1 - self.column
            self.go(self.page.at(min(row, self.page.rows - 1))[0])
            self.refresh()

    def to(self, section: int) -> None:
        """Move to the start of a section, header included."""
        page = self.page
        self.jump(page.row_of(PagePosition(section, -len(page.sections[section].head))))
        self.go(page.place(section, 0))

    def go(self, place: PagePosition, *, step: int = 0, part: int = 0) -> None:
        """Put the cursor on a line and scroll it into view."""
        old, self.place = self.place, place
        row, height = self.page.row_of(place) + part, max(self.size.height, 1)
        end = row + max(self.page.height(place) - part, 1)
        top = self.scroll_offset.y
        if row < top:
            self.jump(max(row, end - height) if step < 0 else row)
        elif end > top + height:
            self.jump(min(end - height, row))
        self._repaint(old)
        self._repaint(place)
        self.post_message(self.Moved())

    def toggle(self) -> None:
        folds = self.section.folds
        if folds is not None and self.place.line in folds:
            self.unfold()
        else:
            self.fold(outer=False)

    def fold(self, *, outer: bool = True) -> None:
        """Fold at the cursor; if it is already folded, go to its parent."""
        folds, line = self.section.folds, self.place.line
        if folds is None or line < 0:
            return
        if line in folds:
            around = folds.around(line) if outer else None
            if around is not None:
                self.go(PagePosition(self.place.section, around))
            return
        container = folds.container(line)
        if container is not None:
            folds.fold(container)
            self._refold(container)

    def unfold(self) -> None:
        folds, line = self.section.folds, self.place.line
        if folds is not None and line in folds:
            folds.unfold(line)
            self._refold(line)

    def fold_all(self, *, on: bool) -> None:
        """Fold the top-level members of every message, or unfold all."""
        where = self.where()
        for page in self.pages:
            for number, section in enumerate(page.sections):
                if section.folds is not None:
                    section.folds.fold_all() if on else section.folds.unfold_all()
                    page.refold(number)
        section, place = self.section, self.page.place(where[1], where[2])
        if section.folds is not None and place.line >= 0:
            place = place._replace(line=section.folds.shown(place.line))
        self._grown()
        self.go(place)
        self.refresh()

    def reveal(self, column: int, section: int, offset: int) -> None:
        self.column = column
        page = self.page
        place = page.place(section, offset)
        folds = page.sections[section].folds
        if folds is not None and folds.reveal(place.line):
            page.refold(section)
            self._grown()
        part = page.layouts[section].part_of(place.line, offset, self._sought)
        self.go(place, part=part)
        self.refresh()

    def center(self) -> None:
        """Show what is above the cursor, too, if the cursor is not on the first page."""
        row, height = self.page.row_of(self.place), max(self.size.height, 1)
        self.jump(0 if row < height else row - height // 3)

    def prepare(self) -> None:
        self._top, self._wide = self.scroll_offset.y, self.outer_size.width
        self._at_cursor = self._ground + self.get_component_rich_style("row--cursor", partial=True)

    def render_line(self, y: int) -> Strip:
        row, wide = y + self._top, 0
        segments: list[Segment] = []
        for column, page in enumerate(self.pages):
            if column:
                segments += self.paint([(BESIDE, "quiet")], len(BESIDE))
                wide += len(BESIDE)
            segments += self._row(page, row, column == self.column)
            wide += page.width + GUTTER
        strip = Strip(segments, wide)
        return strip.adjust_cell_length(self._wide, segments[-1].style if segments else None)

    def _row(self, page: TextPage, row: int, has_cursor: bool) -> list[Segment]:
        width, ground, drawn = page.width + GUTTER, self._ground, list[Piece]()
        if row < page.rows:
            (place, part), mark = page.at(row), " "
            if self.is_active and has_cursor and place == self.place:
                ground, mark = self._at_cursor, " " if part else CURSOR
            drawn = [(mark, None), (page.mark(row), "quiet"), *page.draw(row, self._sought)]
        return self.paint(drawn, width, ground)

    def look(self, role: str) -> Style:
        """Return the style of a role, or of colours; a hit is reversed."""
        if role.startswith("#"):
            return Style.parse(role)
        return Style(reverse=True) if role == HIT else super().look(role)

    def on_click(self, event: events.Click) -> None:
        """Move the cursor; toggle the fold on a click on its mark or a double click."""
        x, row = int(event.x), int(event.y) + self.scroll_offset.y
        column = int(len(self.pages) > 1 and x > self.pages[0].width + GUTTER)
        if not self.pages or row >= self.pages[column].rows:
            return
        left = column * (self.pages[0].width + GUTTER + len(BESIDE))
        self.column = column
        self.go(self.page.at(row)[0])
        self.refresh()
        folds, line = self.section.folds, self.place.line
        if folds is not None and line >= 0 and folds.opens(line) and (x - left < GUTTER or event.chain == 2):
            self.toggle()

    def _relayout(self) -> None:
        where, top, page = self.where(), self.scroll_offset.y, self.page
        row = page.row_of(self.place)
        held = where[1:]
        if not top <= row < top + self.size.height and top < page.rows:
            row, place = top, page.at(top)[0]
            held = (place.section, page.offset(place))
        self._lay_out()
        self.column = min(self.column, len(self.pages) - 1)
        self.place = self.page.place(where[1], where[2])
        now = self.page.row_of(self.page.place(*held))
        # A page at its top stays there when lines are added above the cursor, if the cursor stays in view.
        self.jump(max(now - (row - top), 0) if top or now >= self.size.height else 0)

    def _lay_out(self) -> None:
        widths = self._widths(len(self._sections))
        self.pages = [TextPage(column, width) for column, width in zip(self._sections, widths, strict=True)]
        self._grown()

    def _widths(self, columns: int) -> list[int]:
        room = self.scrollable_content_region.width or USUAL
        if columns == 1:
            return [max(room - GUTTER, LEAST)]
        left = (room - len(BESIDE)) // 2
        return [max(left - GUTTER, LEAST), max(room - len(BESIDE) - left - GUTTER, LEAST)]

    def _refold(self, line: int) -> None:
        self.page.refold(self.place.section)
        self._grown()
        self.go(PagePosition(self.place.section, line))

    def _grown(self) -> None:
        self.extend(max(page.rows for page in self.pages))
        self.refresh()

    def _repaint(self, place: PagePosition) -> None:
        y = self.page.row_of(place) - self.scroll_offset.y
        height = self.page.height(place)
        if y < self.size.height and y + height > 0:
            self.refresh(Region(0, max(y, 0), self.size.width, height))
