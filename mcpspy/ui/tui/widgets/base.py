"""Base classes: screens that close safely, and widgets that draw lines of text by role.

Textual looks up border, tint, opacity and filters for every line. These widgets
support none of the first three and cache the filters. Lines that stay visible are
not drawn again, and a changed number of lines does not lay out the screen.
"""

from __future__ import annotations

from typing import Any, ClassVar

from rich.cells import cell_len
from rich.segment import Segment
from rich.style import Style
from textual.await_complete import AwaitComplete
from textual.geometry import Region, Size
from textual.screen import ModalScreen, Screen, ScreenResultType
from textual.scroll_view import ScrollView
from textual.scrollbar import ScrollBar, ScrollBarRender
from textual.strip import Strip
from textual.widget import Widget

from mcpspy.core.regex import AllowUnsafe
from mcpspy.ui.text.width import cells, steady
from mcpspy.ui.tui.widgets.columns import Piece, fitted

CLIPBOARD = 256_000
"""Maximum bytes that terminals are known to accept over OSC 52: tmux 3.3a took 500 kB but not 900."""


def allows_unsafe(widget: Widget) -> AllowUnsafe:
    """Return the application's decision on regular expressions that RE2 cannot run: no, without `--unsafe-regex`."""
    is_allowed = bool(getattr(widget.app, "unsafe_regex", False))
    return lambda _pattern, _construct: is_allowed


class DismissibleScreen(Screen[ScreenResultType]):
    """A screen whose `dismiss` closes only itself: Textual's closes the top one, also after a key too many.

    While another screen covers it, it waits until that one is closed.
    """

    _dismissed_with: tuple[ScreenResultType | None] | None = None

    def dismiss(self, result: ScreenResultType | None = None) -> AwaitComplete:
        if self.is_active:
            return super().dismiss(result)
        self._dismissed_with = (result,)
        return AwaitComplete()

    def on_screen_resume(self) -> None:
        if self._dismissed_with is not None:
            self.dismiss(*self._dismissed_with)


class DismissibleModal(ModalScreen[ScreenResultType], DismissibleScreen[ScreenResultType]):
    pass


class BaseWidget(Widget):
    """A widget that draws styled text; the application must define the roles as component classes."""

    def __init__(self, **arguments: Any) -> None:
        super().__init__(**arguments)
        self._drawn: dict[int, Strip] = {}
        """Line number → the line as last drawn."""
        self._looks: dict[Style, dict[str | None, Style]] = {}
        """Background → role → style."""
        self._ground = Style()
        self._theme = ""

    def refresh(
        self, *regions: Region, repaint: bool = True, layout: bool = False, recompose: bool = False
    ) -> BaseWidget:
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
        """Look up the styles that all lines share; called before lines are drawn."""

    def paint(self, pieces: list[Piece], width: int, ground: Style | None = None) -> list[Segment]:
        """Return `width` columns of segments for the pieces, on `ground` or the widget's own background."""
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
        """Return a style with the line filters applied, as the terminal receives it."""
        segments = [Segment("x", style)]
        for each in self.get_line_filters():
            segments = each.apply(segments, self.background_colors[1])
        return segments[0].style or style

    def _look(self, role: str | None, base: Style) -> Style:
        found = self._looks[base][role] = self.filtered(base + self.look(role) if role else base)
        return found


STEPS = 8


class ScrollTrack(ScrollBar, BaseWidget):
    """A scrollbar that caches its lines."""

    def render_lines(self, crop: Region) -> list[Strip]:
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
            # Track and handle consist of few distinct cells.
            strips = {
                cell: Strip([Segment(cell.text, self.filtered(cell.style or bar.style))], 1)
                for cell in set(cells)
            }
            self._drawn = {y: strips[cell] for y, cell in enumerate(cells)}
        return [self._drawn[y] for y in crop.line_range]


class LineScrollView(ScrollView, BaseWidget, inherit_bindings=False):
    """A scrolling view that draws only visible lines."""

    DEFAULT_CSS = """
    LineScrollView { overflow-x: hidden; overflow-y: scroll; scrollbar-size-vertical: 1; background: $background;
               scrollbar-background: $background; scrollbar-background-hover: $background;
               scrollbar-background-active: $background; }
    """

    @property
    def vertical_scrollbar(self) -> ScrollBar:
        if self._vertical_scrollbar is None:
            self._vertical_scrollbar = bar = ScrollTrack(name="vertical")
            self.app._start_widget(self, bar)
        return self._vertical_scrollbar

    HEADS: ClassVar[int] = 0

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
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
        # Assigning to the reactive would lay out the whole screen.
        self.set_reactive(LineScrollView.virtual_size, Size(0, lines))
        self._move_bar()
        self.scroll_y = self.validate_scroll_y(self.scroll_y)

    def jump(self, top: int) -> None:
        self.scroll_to(y=top, animate=False, force=True)

    def _move_bar(self) -> None:
        """Move the scrollbar if the change is visible: it has few cells for a million lines."""
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


class SplitLine(BaseWidget):
    """A line with a left and a right part; the left part is truncated first."""

    DEFAULT_CSS = """
    SplitLine { height: 1; background: $panel; }
    SplitLine.-soft { background: $background; }
    """

    def __init__(self, *, id: str | None = None, classes: str | None = None) -> None:  # noqa: A002
        super().__init__(id=id, classes=classes)
        self._left: list[Piece] = []
        self._right: list[Piece] = []

    def set_text(self, left: list[Piece], right: list[Piece] | None = None) -> None:
        if (left, right or []) != (self._left, self._right):
            self._left, self._right = left, right or []
            self.refresh()

    @property
    def text(self) -> str:
        return "  ".join("".join(text for text, _ in side) for side in (self._left, self._right) if side)

    def render_line(self, y: int) -> Strip:
        width = self.outer_size.width - 2
        right = fitted(self._right, width)
        left = fitted(self._left, width - _cells(right) - (2 if right else 0))
        room: Piece = (" " * (width - _cells(left) - _cells(right)), None)
        return Strip(
            self.paint([(" ", None), *left, room, *right], self.outer_size.width), self.outer_size.width
        )


def _cells(pieces: list[Piece]) -> int:
    return sum(cell_len(text) for text, _ in pieces)
