"""Widgets that draw lines of text by their roles.

Owns the styles of roles, and which lines have to be drawn again. Textual looks
up border, tint, opacity and filters for each line anew; here a line has none of
the first three, and filters are asked once a style. Refuses borders and padding.
"""

from __future__ import annotations

from typing import Any

from rich.segment import Segment
from rich.style import Style
from textual.geometry import Region
from textual.strip import Strip
from textual.widget import Widget

from mcpspy.ui.tui.reader.page import Piece
from mcpspy.ui.tui.text import cells, steady


class Painted(Widget):
    """A widget whose lines are pieces of text, in an application that has the roles as component classes."""

    def __init__(self, **arguments: Any) -> None:
        super().__init__(**arguments)
        self._drawn: dict[int, Strip] = {}
        """Lines as they were drawn last."""
        self._looks: dict[Style, dict[str | None, Style]] = {}
        """Ground → role → how that looks there."""
        self._ground = Style()
        self._theme = ""

    def refresh(
        self, *regions: Region, repaint: bool = True, layout: bool = False, recompose: bool = False
    ) -> Painted:
        """Have lines drawn anew; without regions, all of them."""
        if repaint and regions:
            for region in regions:
                for y in region.line_range:
                    self._drawn.pop(y, None)
        elif repaint:
            self._drawn.clear()
        super().refresh(*regions, repaint=repaint, layout=layout, recompose=recompose)
        return self

    def notify_style_update(self) -> None:
        super().notify_style_update()
        self._looks.clear()
        self._drawn.clear()

    def render_lines(self, crop: Region) -> list[Strip]:
        """Return lines, those drawn before as they were."""
        ground, theme = self.rich_style, self.app.theme
        if ground != self._ground or theme != self._theme:
            self._ground, self._theme = ground, theme
            self.notify_style_update()
        self.prepare()
        drawn, render_line = self._drawn, self.render_line
        for y in crop.line_range:
            if y not in drawn:
                drawn[y] = render_line(y)
        strips = [drawn[y] for y in crop.line_range]
        start, end = crop.column_span
        return strips if (start, end) == (0, self.outer_size.width) else [s.crop(start, end) for s in strips]

    def prepare(self) -> None:
        """Look up what all lines share."""

    def paint(self, pieces: list[Piece], width: int, ground: Style | None = None) -> list[Segment]:
        """Return pieces in their colours as so many columns, on the widget's own ground or another."""
        base = self._ground if ground is None else ground
        looks = self._looks.setdefault(base, {})
        segments: list[Segment] = []
        run, before, used = "", None, 0
        for text, role in pieces:
            if text:
                if (look := looks.get(role)) is None:
                    look = self._look(role, base)
                if look is not before and run:
                    segments.append(Segment(run, before))
                    used += cells(run)
                    run = ""
                run, before = run + steady(text), look
        if (plain := looks.get(None)) is None:
            plain = self._look(None, base)
        used += cells(run)
        if used < width:
            if before is not plain and run:
                segments.append(Segment(run, before))
                run = ""
            run, before = run + " " * (width - used), plain
        segments.append(Segment(run, before))
        return Segment.adjust_line_length(segments, width) if used > width else segments

    def look(self, role: str) -> Style:
        style = self.app.get_component_styles(f"role--{role}").partial_rich_style
        return Style(color=style.color, bold=style.bold, dim=style.dim, reverse=style.reverse)

    def filtered(self, style: Style) -> Style:
        """Return a style as the terminal gets it."""
        segments = [Segment("x", style)]
        for each in self.get_line_filters():
            segments = each.apply(segments, self.background_colors[1])
        return segments[0].style or style

    def _look(self, role: str | None, base: Style) -> Style:
        found = self._looks[base][role] = self.filtered(base + self.look(role) if role else base)
        return found
