"""One message, whole: the pane that reads it.

Owns scrolling through a `Page` and keeping it as wide as the pane. What it
says is `facts`' and `page`'s.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from textual import events
from textual.binding import Binding, BindingType
from textual.geometry import Size
from textual.scroll_view import ScrollView
from textual.strip import Strip

from mcpspy.ui.body import Body
from mcpspy.ui.tui.page import Page, Piece
from mcpspy.ui.tui.theme import COMPONENTS, Painted


class Detail(ScrollView, Painted, can_focus=True, inherit_bindings=False):
    """A page that scrolls."""

    COMPONENT_CLASSES: ClassVar[set[str]] = COMPONENTS

    DEFAULT_CSS = """
    Detail { overflow-x: hidden; overflow-y: auto; scrollbar-gutter: stable; scrollbar-size-vertical: 1;
             padding: 0 1; background: $background; }
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("down,j", "move(1)", "a line down", show=False),
        Binding("up,k", "move(-1)", "a line up", show=False),
        Binding("pagedown,space", "page(1)", "a page down", show=False),
        Binding("pageup", "page(-1)", "a page up", show=False),
        Binding("home,g", "top", "first line", show=False),
        Binding("end,G", "bottom", "last line", show=False),
    ]

    HELP_NAME = "in the message"

    def __init__(self, *, id: str | None = None) -> None:  # noqa: A002
        super().__init__(id=id)
        self._head: Sequence[Piece] = ()
        self._body = Body(b"")
        self._page: Page | None = None

    def show(self, head: Sequence[Piece], body: Body) -> None:
        """Show a message; from its start, unless only its head changed."""
        same = body is self._body
        self._head, self._body = head, body
        self._lay_out()
        if not same:
            self.scroll_to(y=0, animate=False, force=True)

    def on_resize(self, event: events.Resize) -> None:
        """Wrap anew if the width is another."""
        if self._page is not None and self._page.width != self._width():
            self._lay_out()
        self.scroll_target_y = min(self.scroll_target_y, self.max_scroll_y)

    def _lay_out(self) -> None:
        self._page = Page(self._head, self._body, self._width())
        self.virtual_size = Size(0, self._page.rows)
        self.refresh()

    def _width(self) -> int:
        return self.scrollable_content_region.width

    def render_line(self, y: int) -> Strip:
        """Draw one row."""
        width, base = self._width(), self.rich_style
        index = y + self.scroll_offset.y
        if self._page is None or index >= self._page.rows:
            return Strip.blank(width, base)
        return Strip(self.segments(self._page.row(index), base)).adjust_cell_length(width, base)

    def action_move(self, step: int) -> None:
        """Scroll by a line."""
        self._scroll(self.scroll_offset.y + step)

    def action_page(self, step: int) -> None:
        """Scroll by a page."""
        self._scroll(self.scroll_offset.y + step * max(self.size.height - 1, 1))

    def action_top(self) -> None:
        """Scroll to the first line."""
        self._scroll(0)

    def action_bottom(self) -> None:
        """Scroll to the last line."""
        self._scroll(self.max_scroll_y)

    def _scroll(self, y: int) -> None:
        self.scroll_to(y=y, animate=False, force=True)
