"""A widget of painted lines that scrolls.

Owns what scrolling and growing cost: lines that stay in view are not drawn
again, the bar only where that is seen, and the screen is not laid out anew for
more or fewer lines. Which lines there are is a subclass's.
"""

from __future__ import annotations

from typing import ClassVar

from rich.segment import Segment
from rich.style import Style
from textual.geometry import Region, Size
from textual.scroll_view import ScrollView
from textual.scrollbar import ScrollBar, ScrollBarRender
from textual.strip import Strip

from mcpspy.ui.tui.painted import Painted

STEPS = 8
"""Positions of the bar's end in a cell."""


class Bar(ScrollBar, Painted):
    """The bar at the right: a track that is not seen, and where in it one is."""

    def render_lines(self, crop: Region) -> list[Strip]:
        """Return the bar, as it was drawn last if nothing has changed."""
        height = self.outer_size.height
        if len(self._drawn) != height:
            bar = self.render()
            assert isinstance(bar, ScrollBarRender)
            assert isinstance(bar.style, Style)
            assert bar.style.color is not None
            assert bar.style.bgcolor is not None
            cells = bar.render_bar(
                height,
                bar.virtual_size,
                bar.window_size,
                bar.position,
                back_color=bar.style.bgcolor,
                bar_color=bar.style.color,
            ).segments
            # Track and handle are one cell each, many times over.
            strips = {
                cell: Strip([Segment(cell.text, self.filtered(cell.style or bar.style))], 1)
                for cell in set(cells)
            }
            self._drawn = {y: strips[cell] for y, cell in enumerate(cells)}
        return [self._drawn[y] for y in crop.line_range]


class Scrolled(ScrollView, Painted, inherit_bindings=False):
    """Lines, of which those in view exist."""

    DEFAULT_CSS = """
    Scrolled { overflow-x: hidden; overflow-y: scroll; scrollbar-size-vertical: 1; background: $background;
               scrollbar-background: $background; scrollbar-background-hover: $background;
               scrollbar-background-active: $background; }
    """

    @property
    def vertical_scrollbar(self) -> ScrollBar:
        """The bar, which is there from the first use on."""
        if self._vertical_scrollbar is None:
            self._vertical_scrollbar = bar = Bar(name="vertical")
            self.app._start_widget(self, bar)
        return self._vertical_scrollbar

    HEADS: ClassVar[int] = 0
    """Lines at the top that do not scroll."""

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        """Move the lines that stay in view."""
        self._move_bar()
        if step := round(new_value) - round(old_value):
            heads, drawn = self.HEADS, self._drawn.items()
            moved = {
                y - step: strip for y, strip in drawn if y >= heads and heads <= y - step < self.size.height
            }
            moved |= {y: strip for y, strip in drawn if y < heads}
            self.refresh()
            self._drawn = moved

    def extend(self, lines: int) -> None:
        # Not as a reactive: that is a layout of the whole screen.
        self.set_reactive(Scrolled.virtual_size, Size(0, lines))
        self._move_bar()
        self.scroll_y = self.validate_scroll_y(self.scroll_y)

    def jump(self, top: int) -> None:
        self.scroll_to(y=top, animate=False, force=True)

    def _move_bar(self) -> None:
        """Have the bar show where this is, if that would be seen: it has few cells for a million lines."""
        if not self.show_vertical_scrollbar:
            return
        bar, lines, top = self.vertical_scrollbar, self.virtual_size.height, self.scroll_y
        seen = lines / (max(self.size.height, 1) * STEPS)
        was = bar.position == 0, bar.position >= bar.window_virtual_size - bar.window_size
        if (
            was != (top == 0, top >= self.max_scroll_y)
            or abs(lines - bar.window_virtual_size) >= seen
            or abs(top - bar.position) >= seen
        ):
            bar.window_virtual_size, bar.position = lines, top
