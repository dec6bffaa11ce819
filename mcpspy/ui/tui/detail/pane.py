"""The detail pane: one message, or a request and its response.

It handles the keys, and keeps the current view, search and opened string.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import ClassVar

from textual import events
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.timer import Timer
from textual.widget import Widget
from textual.widgets import Input

from mcpspy.analysis.rows import size
from mcpspy.ui.tui.bindings import DETAIL_KEYS
from mcpspy.ui.tui.detail import views
from mcpspy.ui.tui.detail.document import Document, DocumentPart, Section
from mcpspy.ui.tui.detail.search import FilterSearch, HitPosition, SearchBox, SearchQuery, SearchState
from mcpspy.ui.tui.detail.viewer import Viewer
from mcpspy.ui.tui.detail.views import PRETTY, TEXT, VIEWS, renewed, sections, stacked, tabs
from mcpspy.ui.tui.widgets.base import CLIPBOARD, SplitLine, allows_unsafe
from mcpspy.ui.tui.widgets.columns import Piece
from mcpspy.ui.views.content import PENDING, Content, Line

BESIDE = 100
"""Minimum columns to show request and response side by side."""

SETTLE = 0.05
"""Seconds that the cursor rests before its path is computed, which is slow in a large message."""

RENDER_WAIT = 0.02
"""Seconds to wait for the view of a content, so that a fast one does not flicker."""

FLASH = 2.5

_Where = tuple[int, int, int]


class DetailPane(Widget, can_focus=True):
    DEFAULT_CSS = """
    DetailPane { layout: vertical; background: $background; }
    DetailPane > SplitLine { background: $background; }
    """

    BINDINGS: ClassVar[list[BindingType]] = DETAIL_KEYS

    HELP_NAME = "message"

    def __init__(self, *, id: str | None = None, is_beside: bool = False) -> None:  # noqa: A002
        """`is_beside` shows two messages side by side, where there is room."""
        super().__init__(id=id)
        self._heading = SplitLine(id="detail-view")
        self._viewer = Viewer()
        self._search_box = SearchBox()
        self._path = SplitLine(id="detail-path")
        self._document = Document([DocumentPart("message", [("", None)], b"")])
        self._key: object = object()
        self._view = PRETTY
        self._sections: dict[str, list[list[Section]]] = {}
        self._places: dict[str, _Where] = {}
        self._string: Section | None = None
        self._is_beside = is_beside
        self._search = SearchState()
        self._filter: FilterSearch | None = None
        """The search for matches of the filter, in use unless the user searches for something else."""
        self._is_incomplete = False
        """True if a view of a content was not ready when it was needed."""
        self._flash, self._flash_until = "", 0.0
        self._settling: Timer | None = None

    def compose(self) -> ComposeResult:
        yield self._heading
        yield self._viewer
        yield self._search_box
        yield self._path

    def show(self, document: Document, key: object) -> None:
        """Show a document; if the key is the same, keep the position, folds and opened string."""
        same = key == self._key
        before, self._document, self._key = self._document, document, key
        if not same:
            self._sections, self._places, self._string = {}, {}, None
            self._show(None)
            return
        self._sections = {
            view: renewed(made, before, document, view, self._view_of)
            for view, made in self._sections.items()
            if made
        }
        if self._string is None:
            self._viewer.renew(self._columns())
        self._search.renew(self._columns())
        self._update_heading()

    def on_mount(self) -> None:
        if not self._viewer.pages:
            self._show(None)

    def on_focus(self) -> None:
        self._viewer.activate(on=True)

    def on_blur(self) -> None:
        self._viewer.activate(on=False)

    def on_viewer_moved(self, event: Viewer.Moved) -> None:
        """Update the path once the cursor rests."""
        event.stop()
        self._update_status_later()

    def on_click(self, event: events.Click) -> None:
        if event.widget is self._heading and self._string is None:
            at = int(event.x) - 1
            for view, (name, _) in zip(VIEWS, tabs(self._view), strict=True):
                if 0 <= at < len(name):
                    self.action_view(view)
                at -= len(name)

    def on_resize(self, event: events.Resize) -> None:
        shown, wanted = len(self._viewer.pages), self._string is None and len(self._columns())
        if event.size.width and wanted and shown != wanted:
            self._rearrange()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Leave `escape` to the screen if there is nothing to close."""
        return action != "close" or self._string is not None or self._is_searching

    def action_move(self, step: int) -> None:
        self._viewer.move(step)

    def action_page(self, step: int) -> None:
        self._viewer.turn(step)

    def action_top(self) -> None:
        self._viewer.edge(last=False)

    def action_bottom(self) -> None:
        self._viewer.edge(last=True)

    def action_view(self, view: str) -> None:
        if view == self._view and self._string is None:
            return
        self._leave()
        self._view = view
        self._show(self._places.get(view))

    def action_toggle_fold(self) -> None:
        self._viewer.toggle()

    def action_fold(self) -> None:
        self._viewer.fold()

    def action_unfold(self) -> None:
        self._viewer.unfold()

    def action_fold_all(self, on: bool) -> None:
        self._viewer.fold_all(on=on)

    def action_open(self) -> None:
        string = views.opened(self._viewer.section, self._viewer.place.line)
        if string is None:
            self._flash_message("not a string")
            return
        self._leave()
        self._string = string
        self._show(None)

    def action_close(self) -> None:
        if self._string is not None:
            self._leave()
            self._show(self._places.get(self._view))
        else:
            self._set_query(None)

    def action_search(self) -> None:
        self._search_box.open()
        self._viewer.activate(on=True)

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Go to the first hit at or below the cursor."""
        event.stop()
        try:
            query = SearchQuery(event.value, allows_unsafe(self)) if event.value else None
        except ValueError as wrong:
            self._flash_message(str(wrong))
            return
        self._close_search()
        self._set_query(query)
        if query is not None:
            self._go_to_hit(1)

    def on_search_box_closed(self, event: SearchBox.Closed) -> None:
        event.stop()
        self._close_search()

    def action_next(self, step: int) -> None:
        if not self._search.query:
            self.action_search()
        else:
            self._go_to_hit(step)

    def action_copy_value(self) -> None:
        """Copy the value under the cursor (OSC 52)."""
        self._copy(views.copied(self._viewer.section, self._viewer.place.line), "value")

    def action_copy_path(self) -> None:
        path = views.path(self._viewer.section, self._viewer.place.line)
        if path:
            self._copy(path, path)
        else:
            self._flash_message("the path of the root is empty")

    def action_beside(self) -> None:
        if len(self._document.parts) < 2:
            self._flash_message("only one message")
        elif not self._is_beside and self.size.width < BESIDE:
            self._flash_message(f"side by side needs {BESIDE} columns (z to zoom)")
        else:
            self._is_beside = not self._is_beside
            if self._string is None:
                self._rearrange()

    def action_other(self) -> None:
        viewer = self._viewer
        if len(viewer.pages) > 1:
            viewer.swap()
            return
        made = self._sections.get(self._view, [])
        if self._string is not None or len(made) < 2:
            self._flash_message("only one message")
            return
        first = len(made[0])
        viewer.to(0 if viewer.place.section >= first else first)

    def mark_filter(self, text: str) -> None:
        """Mark the matches of a valid filter, and show the first one."""
        was_searching = self._is_searching
        self._filter = FilterSearch(text, allows_unsafe(self)) or None
        if not was_searching:
            self._set_query(None)
            self._show_first_match()

    def go_to_mark(self) -> None:
        """Put the cursor on the first marked value, if there is one."""
        for column, made in enumerate(self._columns()):
            for number, section in enumerate(made):
                if section.marks:
                    self._viewer.reveal(column, number, section.source.start(min(section.marks)))
                    self._viewer.center()
                    return

    @property
    def path(self) -> str:
        """Return the JSON pointer of the line under the cursor; empty at the root and in a header."""
        return views.path(self._viewer.section, self._viewer.place.line)

    @property
    def _is_searching(self) -> bool:
        return isinstance(self._search.query, SearchQuery)

    def _show_first_match(self) -> None:
        if self._filter is None or self._is_searching:
            return
        found = self._search.go(1, HitPosition(0, 0, 0), self._viewer.line_of, self._columns())
        if found is not None:
            self._viewer.reveal(*found[0])
            self._viewer.center()
            self._update_heading()

    def _columns(self) -> list[list[Section]]:
        if self._string is not None:
            return [[self._string]]
        if not self._sections.get(self._view):
            self._is_incomplete = False
            self._sections[self._view] = sections(self._document, self._view, self._view_of)
        made = self._sections[self._view]
        if self._is_beside and len(made) > 1 and self.size.width >= BESIDE:
            return made
        return [stacked(made)]

    def _view_of(self, content: Content) -> Sequence[Line] | None:
        """Return the view of a content. A slow one is shown later."""
        extension = getattr(self.app, "extension", None)
        lines = None if extension is None else extension.lines(content, wait=RENDER_WAIT)
        self._is_incomplete |= lines is PENDING
        return lines

    def complete(self) -> None:
        """Show the views that were not ready."""
        if self._is_incomplete and self._view == TEXT and self._string is None:
            place = self._viewer.where()
            self._sections.pop(TEXT, None)
            self._show(place)

    def _rearrange(self) -> None:
        column, section, offset = self._viewer.where()
        first = len(self._sections[self._view][0])
        if len(self._columns()) == 1:
            column, section = 0, section + column * first
        elif section >= first:
            column, section = 1, section - first
        self._places.clear()
        self._show((column, section, offset))

    def _show(self, place: _Where | None) -> None:
        self._search.forget()
        self._viewer.show(self._columns(), place=place)
        if place is None:
            self._show_first_match()
        self._update_heading()

    def _leave(self) -> None:
        """Remember the position in the view, or close the string."""
        if self._string is None:
            self._places[self._view] = self._viewer.where()
        self._string = None

    def _close_search(self) -> None:
        self.focus()
        self._search_box.remove_class("-open")

    def _set_query(self, query: SearchQuery | None) -> None:
        self._search = SearchState(query or self._filter)
        self._viewer.mark(query or self._filter)
        self._update_heading()

    def _go_to_hit(self, step: int) -> None:
        viewer = self._viewer
        found = self._search.go(step, HitPosition(*viewer.where()), viewer.line_of, self._columns())
        self._update_heading()
        if found is None:
            self._flash_message("not found")
            return
        position, has_turned = found
        viewer.reveal(*position)
        if has_turned:
            self._flash_message(f"search wrapped to the {'start' if step > 0 else 'end'}")

    def _copy(self, text: str, label: str) -> None:
        length = len(text.encode())
        if length > CLIPBOARD:
            self._flash_message(f"{size(length)} is too large for the clipboard")
            return
        self.app.copy_to_clipboard(text)
        self._flash_message(f"copied {label}, {length:,} bytes" if label != text else f"copied {label}")

    def _flash_message(self, text: str) -> None:
        self._flash, self._flash_until = text, time.monotonic() + FLASH
        self.set_timer(FLASH + 0.1, self._update_status)
        self._update_status()

    def _update_status_later(self) -> None:
        if self._settling is not None:
            self._settling.stop()
        self._settling = self.set_timer(SETTLE, self._update_status)

    def _update_heading(self) -> None:
        """Show the active view and the search."""
        string: list[Piece] = [("[string]", "title"), (" esc to close", "quiet")]
        self._heading.set_text(string if self._string else tabs(self._view), self._search.words())

    def _update_status(self) -> None:
        viewer = self._viewer
        line, lines = viewer.place.line, len(viewer.page.layouts[viewer.place.section].source)
        where: list[Piece] = [(f"{line + 1:,}/{lines:,}", "quiet")] if line >= 0 and lines else []
        if self._flash and time.monotonic() < self._flash_until:
            self._path.set_text([(self._flash, None)], where)
        else:
            self._path.set_text([(views.breadcrumbs(viewer.section, line), "quiet")], where)
